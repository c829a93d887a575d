"""Ranges of sizes, and what is refused, with its place."""

from __future__ import annotations

import pytest

from shardviz.errors import NotationError
from shardviz.notation.numbers import parse_range


@pytest.mark.parametrize(
    ("text", "name", "sizes"),
    [
        ("b=1:8", "b", (1, 2, 4, 8)),
        ("b=1Ki:4Ki", "b", (1024, 2048, 4096)),
        (" b = 3 : 13 ", "b", (3, 6, 12)),
        ("model=2:64:4", "model", (2, 8, 32)),
        ("b=1k:1M:10", "b", (1000, 10_000, 100_000, 1_000_000)),
    ],
)
def test_ranges(text, name, sizes):
    found = parse_range(text)
    assert (found.name, found.sizes, found.text) == (name, sizes, text)


@pytest.mark.parametrize(
    ("text", "message", "start"),
    [
        ("", "expected a dimension or a mesh axis", 0),
        ("b", "expected '='", 1),
        ("b=1", "expected ':'", 3),
        ("b=1:", "expected the size of 'b'", 4),
        ("b=0:8", "'b' begins with 0", 2),
        ("b=1:1Ti", "expected the end but found 'Ti'", 5),
        ("b=8:8", "8 is not above 8", 4),
        ("b=1:8:1", "a factor of 1", 6),
        ("b=1:8:9", "one size: 1 times 9 is above 8", 6),
        ("b=1:8 9", "expected the end", 6),
        ("b=-1:8", "dimension 'b' has the size -1", 2),
    ],
)
def test_what_is_not_one(text, message, start):
    with pytest.raises(NotationError, match=message.replace("(", r"\(")) as caught:
        parse_range(text)
    assert caught.value.start == start


def test_too_many():
    with pytest.raises(NotationError, match="90 sizes, more than 64"):
        parse_range("b=1:999999999999999999Gi")
