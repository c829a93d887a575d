"""Numbers of an array as a user types them: ``3,9,5,2``, ``[0.5 -1e3 inf]``, ``true,false``, ``1+2j``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from shardviz.errors import quote
from shardviz.notation.scanner import Scanner, Word

MAX_NUMBERS = 2**20
"""More numbers than anybody reads; bounds what a hostile text can take."""

MAX_DIGITS = 400
"""The longest finite number of 64 bits, written out, has 309 digits."""

_HINT = "write numbers with commas between them: 3,9,5,2"
_REAL = r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|inf|nan)"
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_COMPLEX = re.compile(rf"(?:{_REAL}(?=[+-]))?{_REAL}j", re.ASCII | re.IGNORECASE)
_NUMBER = re.compile(_REAL, re.ASCII | re.IGNORECASE)
_TRUTH = re.compile(r"true|false", re.IGNORECASE)
_PIECE = re.compile(r"[^\s,\[\]]+|[\[\]]")


KINDS = ("bool", "int", "float", "complex")


@dataclass(frozen=True)
class Numbers:
    """Numbers in order, as they were written: nothing is rounded before a dtype is known.

    `kind` is the narrowest of `KINDS` that holds all of them.
    """

    texts: tuple[str, ...]
    kind: str

    def __len__(self) -> int:
        return len(self.texts)


def parse_numbers(text: str) -> Numbers:
    """Read numbers, apart by commas, spaces or both, in one pair of brackets or none.

    Raises `NotationError` for what is no number, for none at all, for brackets within brackets, and for
    truth values among numbers.
    """
    scanner = Scanner(text)
    closing = "]" if scanner.take("[") else ""
    texts: list[str] = []
    kinds: set[str] = set()
    while not scanner.at_end and not (closing and scanner.peek(closing)):
        word, kind = _number(scanner)
        texts.append(word.text)
        kinds.add(kind)
        if "bool" in kinds and len(kinds) > 1:
            scanner.fail(
                f"{quote(word.text, 30)} stands among {'numbers' if kind == 'bool' else 'truth values'}",
                word.start,
                word.stop,
                "write only true and false, or only numbers",
            )
        if len(texts) > MAX_NUMBERS:
            scanner.fail(f"more than {MAX_NUMBERS:,} numbers", word.start, word.stop, "use a smaller array")
        if not (closing and scanner.peek(closing)):
            scanner.separate("another number", _HINT)
    if closing:
        scanner.expect(closing, _HINT)
        scanner.expect_end(_HINT)
    if not texts:
        scanner.fail("there is no number", 0, len(text), _HINT)
    return Numbers(tuple(texts), max(kinds, key=KINDS.index))


def _number(scanner: Scanner) -> tuple[Word, str]:
    scanner.skip()
    piece = scanner.match(_PIECE) or scanner.fail_here("a number", _HINT)
    if piece.text in "[]":
        hint = "write the numbers in one row; --shape says the array's shape"
        scanner.fail("a bracket stands among the numbers", piece.start, piece.stop, hint)
    if len(piece.text) > MAX_DIGITS:
        problem = f"the number {quote(piece.text, 20)} of {len(piece.text):,} characters is too long"
        scanner.fail(problem, piece.start, piece.stop, f"use at most {MAX_DIGITS}")
    for pattern, kind in ((_TRUTH, "bool"), (_WHOLE, "int"), (_NUMBER, "float"), (_COMPLEX, "complex")):
        if pattern.fullmatch(piece.text):
            return piece, kind
    return scanner.fail(f"{quote(piece.text, 30)} is not a number", piece.start, piece.stop, _HINT)
