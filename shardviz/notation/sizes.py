"""Sizes of dimensions: ``b=8,d=2k,f=8Ki``, and ``...=4x8`` for the dimensions of an ellipsis; shapes:
``16384x16384``, also with ``×``, commas, blanks or brackets; ``()`` is a scalar.

The prefixes are those of SI and IEC 80000-13: ``2k`` is 2,000, ``4Ki`` is 4,096, ``1M`` is 1,000,000.
"""

from __future__ import annotations

import re

from shardviz.errors import NotationError, quote
from shardviz.notation.einsum import ellipsis_dims
from shardviz.notation.scanner import MAX_RANK, Scanner

_HINT = "write each dimension and its size: b=8,d=2048,f=8192"
_PREFIXES = {"k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_PREFIX = re.compile(r"(?:[KMG]i|[kKMG])(?![A-Za-wyz0-9_])")


def parse_sizes(text: str) -> dict[str, int]:
    """Read sizes, apart by commas, spaces or both: dimension → elements.

    The dimensions of an ellipsis are named ``...0``, ``...1``, … as in `Einsum`. Empty text gives no
    sizes. Raises `NotationError` for text of another form and a dimension given twice.
    """
    scanner = Scanner(text)
    sizes: dict[str, int] = {}
    while not scanner.at_end:
        start = scanner.pos
        if scanner.take("..."):
            scanner.expect("=", _HINT)
            found = [_size(scanner, "...")]
            while scanner.take("x", "×"):
                found.append(_size(scanner, "..."))
            if len(found) > MAX_RANK:
                scanner.fail(f"more than {MAX_RANK} dimensions", start, scanner.pos, "use fewer dimensions")
            given = dict(zip(ellipsis_dims(len(found)), found, strict=True))
        else:
            name = scanner.name("a dimension", _HINT).text
            scanner.expect("=", _HINT)
            given = {name: _size(scanner, name)}
        repeated = next((name for name in given if name in sizes), None)
        if repeated is not None:
            problem = f"dimension {quote(repeated, 30)} is given twice, again"
            scanner.fail(problem, start, scanner.pos, "give every dimension one size")
        sizes |= given
        scanner.separate("another dimension", _HINT)
    return sizes


def _size(scanner: Scanner, name: str) -> int:
    scanner.skip()
    start = scanner.pos
    negative = scanner.take("-")
    size = scanner.integer(f"the size of {quote(name, 30)}", _HINT)
    if prefix := scanner.match(_PREFIX):
        size *= _PREFIXES[prefix.text]
    if negative:
        problem = f"dimension {quote(name, 30)} has the size -{size}"
        scanner.fail(problem, start, scanner.pos, "sizes are 0 or more")
    return size


SHAPE_HINT = "write sizes with x between them: 16384x16384; () is a scalar"
MAX_DIGITS = 19


def parse_shape(text: str) -> tuple[int, ...]:
    """Read ``8x2048`` (also with ``×``, commas, blanks or brackets). Raises `NotationError`."""
    body = text.strip()
    if body in ("()", "[]", "scalar"):
        return ()
    sizes = []
    for match in re.finditer(r"[^x×X*,\s()\[\]]+|[x×X*,]", text):
        piece = match.group()
        if piece in "x×X*,":
            continue
        sizes.append(count_at(match, text, "size", SHAPE_HINT))
    if not sizes:
        raise NotationError("there is no size", text, len(text), hint=SHAPE_HINT)
    return tuple(sizes)


def count_at(match: re.Match[str], text: str, what: str, hint: str) -> int:
    """The number that a match in `text` is; `NotationError` where it is none, calling it `what`."""
    digits = match.group()
    if not (digits.isascii() and digits.isdigit()) or len(digits) > MAX_DIGITS:
        raise NotationError(f"{quote(digits, 30)} is not a {what}", text, *match.span(), hint=hint)
    return int(digits)
