"""Einsum text, as `numpy.einsum` takes it, and chains of einsums. Where words stand apart by spaces, as in
``batch d, d f -> batch f``, each word is a dimension."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from shardviz.errors import quote
from shardviz.notation.scanner import MAX_RANK, Scanner, Word

MAX_PARTS = 1024

Dims: TypeAlias = tuple[str, ...]
_LETTER = re.compile("[A-Za-z]")
_NAME = re.compile("[A-Za-z][A-Za-z0-9_]*")
_WORDS = re.compile(r"\w\w\s+\w|\w\s+\w\w", re.ASCII)


@dataclass(frozen=True)
class Einsum:
    """A contraction of one or two operands: names of the dimensions of each operand and of the result. An
    ellipsis is expanded into dimensions named ``...0``, ``...1``, … (outermost first)."""

    operands: tuple[Dims, ...]
    result: Dims

    @cached_property
    def dims(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(dim for dims in (*self.operands, self.result) for dim in dims))

    @cached_property
    def contracted(self) -> tuple[str, ...]:
        return tuple(dim for dim in self.dims if dim not in self.result)

    def __str__(self) -> str:
        """As `numpy.einsum` takes it; names longer than a letter stand apart by spaces."""
        apart = any(_is_long(dim) for dim in self.dims)
        operands = ",".join(dims_text(operand, apart) for operand in self.operands)
        return f"{operands}->{dims_text(self.result, apart)}"


def ellipsis_dims(rank: int) -> tuple[str, ...]:
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


def parse_chain(text: str, ellipsis_rank: int = 0) -> tuple[Einsum, ...]:
    """Read einsums apart by ``;``, in which each part's first operand is the previous part's result, and
    ``...`` stands for `ellipsis_rank` dimensions. Raises `NotationError` for anything that NumPy refuses, for
    more than two operands, and where two parts do not join."""
    scanner = _EinsumScanner(text, ellipsis_rank)
    parts = [scanner.einsum()]
    while scanner.take(";"):
        start = scanner.skip()
        part = scanner.einsum()
        if part.operands[0] != parts[-1].result:
            first, previous = (quote(dims_text(dims), 30) for dims in (part.operands[0], parts[-1].result))
            problem = f"a part begins with {first} but the part before it makes {previous},"
            hint = "the first operand of each part is the result of the part before it, letter by letter"
            scanner.fail(problem, start, hint=hint)
        parts.append(part)
        scanner.at_most(MAX_PARTS, parts, "parts", start, "use a shorter chain")
    scanner.expect_end()
    return tuple(parts)


class _EinsumScanner(Scanner):
    def __init__(self, text: str, ellipsis_rank: int) -> None:
        super().__init__(text, "write letters for dimensions: bd,df->bf")
        self._dim = _NAME if has_words(text) else _LETTER
        self._ellipsis_rank = ellipsis_rank

    def einsum(self) -> Einsum:
        start = self.skip()
        if self.at_end or self.peek(";"):
            self.fail("there is no einsum", start)
        operands = [self._operand()]
        while self.take(","):
            if len(operands) == 2:
                hint = (
                    "join contractions of two operands by ';', as in ab,bc->ac; ac,cd->ad; or write the "
                    "result to have their order chosen: ab,bc,cd->ad"
                )
                self.fail("a third operand begins", self.pos - 1, hint=hint)
            operands.append(self._operand())
        texts = tuple(tuple(dim.text for dim in operand) for operand in operands)
        if self.take("->"):
            return Einsum(texts, self._result(texts))
        # NumPy's rule: the dimensions of the ellipsis, then the letters that occur once, in order.
        count = Counter(dim for operand in texts for dim in operand)
        ellipsis = tuple(dim for dim in count if dim.startswith("..."))
        once = sorted(dim for dim in count if count[dim] == 1 and dim not in ellipsis)
        return Einsum(texts, (*ellipsis, *once))

    def _operand(self, has_ellipsis: bool = True) -> list[Word]:
        dims: list[Word] = []
        dotted = False
        while True:
            start = self.skip()
            if self.take("..."):
                if dotted:
                    self.fail("a second '...' in one operand", start, start + 3, "an operand has at most one")
                dotted = True
                names = ellipsis_dims(self._ellipsis_rank if has_ellipsis else 0)
                dims += [Word(dim, start, self.pos) for dim in names]
            elif dim := self.match(self._dim):
                dims.append(dim)
            elif self.at_end or self.text[start] in ",;" or self.peek("->"):
                return dims
            else:
                self.fail_here("a letter, ',', '->' or '...'")
            if len(dims) > MAX_RANK:
                hint = "use fewer dimensions"
                self.fail(f"an operand has more than {MAX_RANK} dimensions", start, hint=hint)

    def _result(self, operands: Sequence[Dims]) -> Dims:
        known = {dim for operand in operands for dim in operand}
        start = self.pos
        dims: list[str] = []
        for dim in self._operand(has_ellipsis="...0" in known):
            if dim.text not in known or dim.text in dims:
                problem = "is in no operand" if dim.text not in known else "occurs twice in the result"
                hint = "name letters of the operands, each once"
                self.fail(f"dimension {quote(dim.text)} {problem},", dim, hint=hint)
            dims.append(dim.text)
        if any(dim.startswith("...") and dim not in dims for dim in known):
            hint = "write '...' in the result as well"
            self.fail("the result leaves out the dimensions of '...'", start, self.pos, hint)
        if self.peek(","):
            self.fail("a second result begins", self.pos, hint="an einsum has one result")
        return tuple(dims)
