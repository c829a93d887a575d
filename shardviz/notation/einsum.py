"""Einsum text, as `numpy.einsum` takes it, and chains of einsums.

Where words stand apart by spaces, as in ``batch d, d f -> batch f``, each word of the text is a dimension;
`numpy.einsum` would pass over the spaces and take each letter for one.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from shardviz.errors import quote
from shardviz.notation.scanner import MAX_RANK, Scanner, Word

MAX_PARTS = 1024
"""The longest chain."""

_HINT = "write letters for dimensions: bd,df->bf"
_LETTER = re.compile("[A-Za-z]")
_NAME = re.compile("[A-Za-z][A-Za-z0-9_]*")
_WORDS = re.compile(r"\w\w\s+\w|\w\s+\w\w", re.ASCII)
"""A word of several letters beside another one."""


@dataclass(frozen=True)
class Einsum:
    """A contraction of one or two operands: names of the dimensions of each operand and of the result.

    An ellipsis is already expanded into dimensions named ``...0``, ``...1``, … (outermost first).
    """

    operands: tuple[tuple[str, ...], ...]
    result: tuple[str, ...]

    @cached_property
    def dims(self) -> tuple[str, ...]:
        """Every dimension once, in order of first appearance."""
        return tuple(dict.fromkeys(dim for dims in (*self.operands, self.result) for dim in dims))

    @cached_property
    def contracted(self) -> tuple[str, ...]:
        """The dimensions that are summed over."""
        return tuple(dim for dim in self.dims if dim not in self.result)

    def __str__(self) -> str:
        """As `numpy.einsum` takes it; names longer than a letter stand apart by spaces."""
        apart = any(_is_long(dim) for dim in self.dims)
        operands = ",".join(dims_text(operand, apart) for operand in self.operands)
        return f"{operands}->{dims_text(self.result, apart)}"


def ellipsis_dims(rank: int) -> tuple[str, ...]:
    """The names of the dimensions that an ellipsis stands for."""
    return tuple(f"...{i}" for i in range(rank))


def dims_text(dims: tuple[str, ...], apart: bool = False) -> str:
    """Dimensions as einsum text writes them: ``bd``, ``...bd``; with spaces if `apart` or a name is long."""
    words: list[str] = []
    for dim in dims:
        if not dim.startswith("..."):
            words.append(dim)
        elif "..." not in words:
            words.append("...")
    return (" " if apart or any(map(_is_long, dims)) else "").join(words)


def has_words(text: str) -> bool:
    """Return whether an einsum's dimensions are words, apart by spaces, and not letters."""
    return _WORDS.search(text) is not None


def _is_long(dim: str) -> bool:
    return len(dim) > 1 and not dim.startswith("...")


def parse_einsum(text: str, ellipsis_rank: int = 0) -> Einsum:
    """Read one einsum. `ellipsis_rank` is the number of dimensions that ``...`` stands for.

    Without ``->`` the result has the dimensions of the ellipsis, then the letters that occur once, in
    alphabetical order, which is NumPy's rule. Raises `NotationError` for anything that NumPy refuses
    and for more than two operands.
    """
    scanner = Scanner(text, _HINT)
    einsum = _einsum(scanner, _dims_of(text, ellipsis_rank))
    scanner.expect_end()
    return einsum


def parse_chain(text: str, ellipsis_rank: int = 0) -> tuple[Einsum, ...]:
    """Read einsums apart by ``;``, in which each part's first operand is the previous part's result.

    Raises `NotationError` as `parse_einsum` does, and when two parts do not join.
    """
    scanner = Scanner(text, _HINT)
    written = _dims_of(text, ellipsis_rank)
    parts = [_einsum(scanner, written)]
    while scanner.take(";"):
        scanner.skip()
        start = scanner.pos
        part = _einsum(scanner, written)
        if part.operands[0] != parts[-1].result:
            first, previous = (quote(dims_text(dims), 30) for dims in (part.operands[0], parts[-1].result))
            problem = f"a part begins with {first} but the part before it makes {previous},"
            hint = "the first operand of each part is the result of the part before it, letter by letter"
            scanner.fail(problem, start, hint=hint)
        parts.append(part)
        scanner.at_most(MAX_PARTS, parts, "parts", start, "use a shorter chain")
    scanner.expect_end()
    return tuple(parts)


class _Dims(NamedTuple):
    """The form of dimensions: a letter or a word each, and so many of them as ``...``."""

    one: re.Pattern[str]
    ellipsis_rank: int


def _dims_of(text: str, ellipsis_rank: int) -> _Dims:
    return _Dims(_NAME if has_words(text) else _LETTER, ellipsis_rank)


def _einsum(scanner: Scanner, written: _Dims) -> Einsum:
    scanner.skip()
    start = scanner.pos
    if scanner.at_end or scanner.peek(";"):
        scanner.fail("there is no einsum", start)
    operands = [_texts(_operand(scanner, written))]
    while scanner.take(","):
        if len(operands) == 2:
            scanner.fail(
                "a third operand begins",
                scanner.pos - 1,
                hint="join contractions of two operands by ';', as in ab,bc->ac; ac,cd->ad; or write the "
                "result to have their order chosen: ab,bc,cd->ad",
            )
        operands.append(_texts(_operand(scanner, written)))
    explicit = scanner.take("->")
    result = _result(scanner, operands, written) if explicit else _implicit_result(operands)
    return Einsum(tuple(operands), result)


def _texts(dims: list[Word]) -> tuple[str, ...]:
    return tuple(dim.text for dim in dims)


def _operand(scanner: Scanner, written: _Dims) -> list[Word]:
    dims: list[Word] = []
    dotted = False
    while True:
        scanner.skip()
        start = scanner.pos
        if scanner.take("..."):
            if dotted:
                scanner.fail("a second '...' in one operand", start, start + 3, "an operand has at most one")
            dotted = True
            dims += [Word(dim, start, scanner.pos) for dim in ellipsis_dims(written.ellipsis_rank)]
        elif dim := scanner.match(written.one):
            dims.append(dim)
        elif scanner.at_end or scanner.text[start] in ",;" or scanner.peek("->"):
            return dims
        else:
            scanner.fail_here("a letter, ',', '->' or '...'")
        if len(dims) > MAX_RANK:
            hint = "use fewer dimensions"
            scanner.fail(f"an operand has more than {MAX_RANK} dimensions", start, hint=hint)


def _result(scanner: Scanner, operands: list[tuple[str, ...]], written: _Dims) -> tuple[str, ...]:
    known = {dim for operand in operands for dim in operand}
    start = scanner.pos
    dims: list[str] = []
    for dim in _operand(scanner, written if "...0" in known else written._replace(ellipsis_rank=0)):
        if dim.text not in known or dim.text in dims:
            problem = "is in no operand" if dim.text not in known else "occurs twice in the result"
            hint = "each letter of the result is one of the operands', once"
            scanner.fail(f"dimension {quote(dim.text)} {problem},", dim, hint=hint)
        dims.append(dim.text)
    missing = [dim for dim in known if dim.startswith("...") and dim not in dims]
    if missing:
        hint = "write '...' in the result as well"
        scanner.fail("the result leaves out the dimensions of '...'", start, scanner.pos, hint)
    if scanner.peek(","):
        scanner.fail("a second result begins", scanner.pos, hint="an einsum has one result")
    return tuple(dims)


def _implicit_result(operands: list[tuple[str, ...]]) -> tuple[str, ...]:
    count = Counter(dim for operand in operands for dim in operand)
    ellipsis = tuple(dim for dim in count if dim.startswith("..."))
    return (*ellipsis, *sorted(dim for dim in count if count[dim] == 1 and dim not in ellipsis))
