"""What MLIR text looks like where shardviz reads it: tensor types and dense integer arrays."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from shardviz.errors import NotationError, QuestionError
from shardviz.hlo.text.shape import MAX_ELEMENTS, ArrayShape
from shardviz.sharding import canonical_dtype

_TENSOR = re.compile(r"tensor<([\dx?]*)(complex<\w+>|!?[A-Za-z][\w.]*)")
_DENSE_ROW = re.compile(r"\[([-\d, ]*)\]")
_NUMBER = re.compile(r"-?\d{1,15}")
_PADDING = -1
"""Fills a row of groups that has fewer members than others."""
MAX_HEX = 2**22
"""Longest dense array in hexadecimal digits that is read."""


def parse_tensor(text: str, start: int = 0) -> ArrayShape:
    """The first tensor type at or after `start`: ``tensor<8x2048xbf16>``.

    Raises `NotationError` when there is none, or one of a dynamic size or an element type of no known width.
    """
    match = _TENSOR.search(text, start)
    if match is None:
        raise NotationError("a tensor type was expected", text, start, min(len(text), start + 20))
    return _tensor(text, match)


def parse_tensors(text: str) -> Iterator[ArrayShape]:
    """Every tensor type in a text."""
    return (_tensor(text, match) for match in _TENSOR.finditer(text))


def _tensor(text: str, match: re.Match[str]) -> ArrayShape:
    sizes = [part for part in match[1].split("x") if part]
    if "?" in match[1] or any(len(part) > 15 for part in sizes) or len(sizes) > 64:
        raise NotationError("a tensor of fixed size was expected", text, match.start(), match.end())
    shape = tuple(map(int, sizes))
    product = 1
    for size in shape:
        product *= max(size, 1)
    if product > MAX_ELEMENTS:
        raise NotationError("no tensor is that large", text, match.start(), match.end())
    name = match[2]
    if name.startswith("complex<"):
        name = {"complex<f32>": "c64", "complex<f64>": "c128"}.get(name, name)
    try:
        return ArrayShape(
            canonical_dtype(name.replace("ui", "u", 1) if name.startswith("ui") else name), shape
        )
    except QuestionError as error:
        raise NotationError(error.message, text, match.start(2), match.end(2)) from None


def parse_dense_rows(text: str, start: int, columns: int) -> tuple[tuple[int, ...], ...]:
    """The rows of ``dense<[[0, 1], [2, -1]]>`` or its hexadecimal or single-value form, from `start` on.

    What pads a row is left out. Raises `NotationError` for anything else.
    """
    end = text.find(">", start)
    body = text[start + len("dense<") : end] if text.startswith("dense<", start) and end > 0 else ""
    if body.startswith("[["):
        return tuple(_unpadded(map(int, _NUMBER.findall(row[1]))) for row in _DENSE_ROW.finditer(body, 1))
    if body.startswith('"0x') and len(body) < MAX_HEX:
        try:
            raw = bytes.fromhex(body[3:].rstrip('"'))
        except ValueError:
            raw = b""
        flat = tuple(int.from_bytes(raw[i : i + 8], "little", signed=True) for i in range(0, len(raw), 8))
        return tuple(_unpadded(flat[i : i + columns]) for i in range(0, len(flat), max(1, columns)))
    if body.strip().isdigit() and len(body) < 15:
        return ((int(body),),)
    if text.startswith("dense<>", start):
        return ()
    raise NotationError("a dense array of groups was expected", text, start, min(len(text), start + 20))


def _unpadded(row: Iterable[int]) -> tuple[int, ...]:
    return tuple(number for number in row if number != _PADDING)
