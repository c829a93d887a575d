"""Numbers as a user types them: those of an array, sizes and shapes, ranges of sizes, and who sends to whom.
The prefixes are those of SI and IEC 80000-13: ``2k`` is 2,000, ``4Ki`` is 4,096."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from shardviz.errors import NotationError, plural, quote
from shardviz.notation.einsum import ellipsis_dims
from shardviz.notation.scanner import MAX_RANK, Scanner, Word

MAX_NUMBERS = 2**20
"""More numbers than anybody reads; bounds what a hostile text can take."""

MAX_DIGITS = 400
"""The longest finite number of 64 bits, written out, has 309 digits."""

_REAL = r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|inf|nan)"
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_COMPLEX = re.compile(rf"(?:{_REAL}(?=[+-]))?{_REAL}j", re.ASCII | re.IGNORECASE)
_NUMBER = re.compile(_REAL, re.ASCII | re.IGNORECASE)
_TRUTH = re.compile(r"true|false", re.IGNORECASE)
_PIECE = re.compile(r"[^\s,\[\]]+|[\[\]]")


KINDS = ("bool", "int", "float", "complex")


@dataclass(frozen=True)
class Numbers:
    """Numbers in order, as they were written: nothing is rounded before a dtype is known. `kind` is the
    narrowest of `KINDS` that holds all of them."""

    texts: tuple[str, ...]
    kind: str

    def __len__(self) -> int:
        return len(self.texts)


def parse_numbers(text: str) -> Numbers:
    """Read numbers, apart by commas, spaces or both, in one pair of brackets or none. Raises `NotationError`,
    also for truth values among numbers."""
    scanner = Scanner(text, "write numbers with commas between them: 3,9,5,2")
    closing = "]" if scanner.take("[") else ""
    texts: list[str] = []
    kinds: set[str] = set()
    for _ in scanner.apart("another number", closing):
        word, kind = _number(scanner)
        texts.append(word.text)
        kinds.add(kind)
        if "bool" in kinds and len(kinds) > 1:
            problem = f"{quote(word.text, 30)} stands among {'numbers' if kind == 'bool' else 'truth values'}"
            scanner.fail(problem, word, hint="write only true and false, or only numbers")
        if len(texts) > MAX_NUMBERS:
            scanner.fail(f"more than {MAX_NUMBERS:,} numbers", word, hint="use a smaller array")
    if not texts:
        scanner.fail("there is no number", 0, len(text))
    return Numbers(tuple(texts), max(kinds, key=KINDS.index))


def _number(scanner: Scanner) -> tuple[Word, str]:
    piece = scanner.next(_PIECE) or scanner.fail_here("a number")
    if piece.text in "[]":
        hint = "write the numbers in one row; --shape says the array's shape"
        scanner.fail("a bracket stands among the numbers", piece, hint=hint)
    if len(piece.text) > MAX_DIGITS:
        problem = f"the number {quote(piece.text, 20)} of {len(piece.text):,} characters is too long"
        scanner.fail(problem, piece, hint=f"use at most {MAX_DIGITS}")
    for pattern, kind in ((_TRUTH, "bool"), (_WHOLE, "int"), (_NUMBER, "float"), (_COMPLEX, "complex")):
        if pattern.fullmatch(piece.text):
            return piece, kind
    return scanner.fail(f"{quote(piece.text, 30)} is not a number", piece)


_PREFIXES = {"k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_PREFIX = re.compile(r"(?:[KMG]i|[kKMG])(?![A-Za-wyz0-9_])")


def parse_sizes(text: str) -> dict[str, int]:
    """Read sizes: dimension → elements, those of an ellipsis as in `Einsum`. Raises `NotationError`."""
    scanner = Scanner(text, "write each dimension and its size: b=8,d=2048,f=8192")
    sizes: dict[str, int] = {}
    for _ in scanner.apart("another dimension"):
        start = scanner.pos
        if scanner.take("..."):
            scanner.expect("=")
            lengths = [scan_size(scanner, "...")]
            while scanner.take("x", "×"):
                lengths.append(scan_size(scanner, "..."))
            if len(lengths) > MAX_RANK:
                scanner.fail(f"more than {MAX_RANK} dimensions", start, scanner.pos, "use fewer dimensions")
            given = dict(zip(ellipsis_dims(len(lengths)), lengths, strict=True))
        else:
            name = scanner.name("a dimension").text
            scanner.expect("=")
            given = {name: scan_size(scanner, name)}
        repeated = next((name for name in given if name in sizes), None)
        if repeated is not None:
            problem = f"dimension {quote(repeated, 30)} is given twice, again"
            scanner.fail(problem, start, scanner.pos, "give every dimension one size")
        sizes |= given
    return sizes


def scan_size(scanner: Scanner, name: str) -> int:
    """A size such as ``4Ki``; `name` is the dimension that it is of."""
    start = scanner.skip()
    negative = scanner.take("-")
    size = scanner.integer(f"the size of {quote(name, 30)}")
    if prefix := scanner.match(_PREFIX):
        size *= _PREFIXES[prefix.text]
    if negative:
        problem = f"dimension {quote(name, 30)} has the size -{size}"
        scanner.fail(problem, start, scanner.pos, "sizes are 0 or more")
    return size


RANGE_HINT = "write a dimension or a mesh axis with its first and its last size: b=1Ki:1Mi, or b=1Ki:1Mi:4"
MAX_SIZES = 64


class SizeRange(NamedTuple):
    """The sizes of the dimension or mesh axis `name`; `text` is what was typed."""

    name: str
    sizes: tuple[int, ...]
    text: str


def parse_range(text: str) -> SizeRange:
    """Read ``NAME=FIRST:LAST`` or ``NAME=FIRST:LAST:FACTOR``: FIRST, times the factor (2), up to LAST. Raises
    `NotationError`, also for more than `MAX_SIZES`."""
    scanner = Scanner(text, RANGE_HINT)
    name = scanner.name("a dimension or a mesh axis").text
    scanner.expect("=")
    start = scanner.skip()
    first = scan_size(scanner, name)
    if not first:
        scanner.fail(f"{quote(name, 30)} begins with 0", start, scanner.pos, "begin with 1 or more")
    scanner.expect(":")
    start = factor_at = scanner.skip()
    last, factor = scan_size(scanner, name), 2
    stop = scanner.pos
    if scanner.take(":"):
        factor_at = scanner.skip()
        factor = scan_size(scanner, "the factor")
        if factor < 2:
            scanner.fail(f"a factor of {factor}", factor_at, scanner.pos, "use a factor of 2 or more")
    scanner.expect_end()
    if last <= first:
        scanner.fail(f"{last:,} is not above {first:,}", start, stop, "end with a larger size")
    sizes = [first]
    while sizes[-1] * factor <= last:
        sizes.append(sizes[-1] * factor)
    if len(sizes) > MAX_SIZES:
        problem = f"{len(sizes)} sizes, more than {MAX_SIZES},"
        scanner.fail(problem, 0, len(text), "use a larger factor: b=1:1Gi:4")
    if len(sizes) < 2:
        problem = f"one size: {first:,} times {factor:,} is above {last:,},"
        scanner.fail(problem, factor_at, scanner.pos, "use a smaller factor")
    return SizeRange(name, tuple(sizes), text)


SHAPE_HINT = "write sizes with x between them: 16384x16384; () is a scalar"
MAX_COUNT_DIGITS = 19


def parse_shape(text: str) -> tuple[int, ...]:
    """Read ``8x2048`` (also with ``×``, commas, blanks or brackets). Raises `NotationError`."""
    if text.strip() in ("()", "[]", "scalar"):
        return ()
    pieces = re.finditer(r"[^x×X*,\s()\[\]]+", text)
    sizes = tuple(count_at(piece, text, "size", SHAPE_HINT) for piece in pieces)
    if not sizes:
        raise NotationError("there is no size", text, len(text), hint=SHAPE_HINT)
    return sizes


def count_at(match: re.Match[str], text: str, what: str, hint: str) -> int:
    """The number that a match in `text` is; `NotationError` where it is none, calling it `what`."""
    digits = match.group()
    if not (digits.isascii() and digits.isdigit()) or len(digits) > MAX_COUNT_DIGITS:
        raise NotationError(f"{quote(digits, 30)} is not a {what}", text, *match.span(), hint=hint)
    return int(digits)


_PERMUTATION_HINT = "write pairs of source and destination: (0,1),(1,2)"


def parse_permutation(text: str, group_size: int) -> tuple[tuple[int, int], ...]:
    """Read pairs of members of a group; ``[]`` is nobody sends. Raises `NotationError`, also for a member
    that the group does not have, and one that sends or receives twice."""
    scanner = Scanner(text, _PERMUTATION_HINT)
    closing = "]" if scanner.take("[") else ""
    # Dictionaries for their order: a list takes long to look through.
    senders: dict[int, None] = {}
    receivers: dict[int, None] = {}
    for _ in scanner.apart("another pair", closing):
        for members, word, does in zip(
            (senders, receivers), _pair(scanner), ("sends", "receives"), strict=True
        ):
            member = scanner.to_int(word)
            if member >= group_size:
                problem = f"there is no device {member} in a group of {group_size:,}"
                hint = f"devices of a group count from 0 to {group_size - 1}"
                scanner.fail(problem, word, hint=hint)
            if member in members:
                problem = f"device {member} {does} twice, again"
                hint = "in a ppermute a device sends to one device at most, and receives from one"
                scanner.fail(problem, word, hint=hint)
            members[member] = None
    if not closing and not senders:
        scanner.fail("there is no pair", 0, len(text), f"{_PERMUTATION_HINT}; [] sends nothing")
    return tuple(zip(senders, receivers, strict=True))


def _pair(scanner: Scanner) -> tuple[Word, Word]:
    if scanner.take("("):
        source = scanner.whole("a source")
        scanner.expect(",")
        target = scanner.whole("a destination")
        scanner.take(",")
        scanner.expect(")")
        return source, target
    source = scanner.whole("a pair")
    if not scanner.take("->", "→"):
        scanner.fail_here(f"{quote('->')} after {quote(source.text, 20)}")
    return source, scanner.whole("a destination")


def parse_send_sizes(text: str, group_size: int) -> tuple[tuple[int, ...], ...]:
    """Read one row of `group_size` numbers for each of as many senders. Raises `NotationError`."""
    scanner = Scanner(text, "write a line for each sender with ; between them: 1,2;0,3")
    if scanner.at_end:
        scanner.fail("there is no line of numbers", 0, len(text))
    rows: list[tuple[int, ...]] = []
    while not rows or scanner.take(";"):
        start = scanner.skip()
        rows.append(_row(scanner, group_size))
        if len(rows) > group_size:
            problem = f"a line too many for a group of {group_size:,}"
            scanner.fail(problem, start, scanner.pos, "write as many lines as there are devices")
    scanner.expect_end()
    if len(rows) < group_size:
        scanner.fail(f"only {len(rows):,} of {group_size:,} lines", 0, len(text))
    return tuple(rows)


def _row(scanner: Scanner, group_size: int) -> tuple[int, ...]:
    start, sizes = scanner.skip(), list[int]()
    while len(sizes) <= group_size and not (scanner.at_end or scanner.peek(";")):
        if scanner.peek("-"):
            scanner.fail("a negative number of rows", scanner.pos, scanner.pos + 1, "send 0 rows or more")
        sizes.append(scanner.integer("a number of rows"))
        if not scanner.peek(";"):
            scanner.separate("another number")
    if len(sizes) != group_size:
        shown = quote(scanner.text[start : scanner.pos].strip(), 30)
        count = "a number too many" if len(sizes) > group_size else plural(len(sizes), "number")
        problem = f"the line {shown} has {count} for a group of {group_size:,},"
        scanner.fail(problem, start, scanner.pos, "write how many rows go to each device, its own among them")
    return tuple(sizes)
