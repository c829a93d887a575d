"""The scrolled view of lines: the styles of a line, as pieces."""

from __future__ import annotations

import pytest
from rich.style import Style
from rich.text import Text

from shardviz.tui.lines_view import LinesView


@pytest.mark.parametrize(
    ("line", "pieces"),
    [
        (Text("asked before", "dim"), [("asked before", Style(dim=True))]),
        (Text("case 3", Style(bold=True)), [("case 3", Style(bold=True))]),
        (Text("plain"), [("plain", None)]),
        (Text.assemble("a ", ("b", "bold")), [("a ", None), ("b", Style(bold=True)), ("", None)]),
    ],
)
def test_a_line_in_pieces(line, pieces):
    assert [(piece.text, piece.style) for piece in LinesView()._segments(line)] == pieces
