"""Bars in eighths of a column."""

from __future__ import annotations

import pytest

from shardviz.render.lines import bar


@pytest.mark.parametrize(
    ("size", "most", "room", "drawn"),
    [
        (0, 8, 4, ""),
        (1, 1000, 4, "▏"),
        (8, 8, 4, "████"),
        (5, 8, 4, "██▌"),
        (2.5e-6, 5e-6, 4, "██"),
        (0, 0, 4, ""),
    ],
)
def test_bars(size, most, room, drawn):
    assert bar(size, most, room) == drawn
