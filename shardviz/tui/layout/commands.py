"""The commands of the layout."""

from __future__ import annotations

from shardviz.tui.command import Command

LAYOUT = (
    Command(
        "layout", "view", ("v",), "By array, by device", "Cells are blocks of the arrays, or devices.", "view"
    ),
    Command(
        "layout",
        "moment",
        ("m",),
        "At the einsum",
        "The arrays as each device multiplies them: gathered operands, partial sums; or as given and wanted.",
        "einsum",
    ),
    Command("layout", "next_array(1)", ("n",), "Next array", "To the next array.", "array"),
    Command("layout", "next_array(-1)", ("N",), "Previous array", "To the array before."),
    Command(
        "layout", "move(-1, 0)", ("left",), "Left", "One cell to the left, or to the array there.", "", "←"
    ),
    Command(
        "layout", "move(1, 0)", ("right",), "Right", "One cell to the right, or to the array there.", "", "→"
    ),
    Command("layout", "move(0, -1)", ("up",), "Up", "One cell up, or to the array above.", "", "↑"),
    Command("layout", "move(0, 1)", ("down",), "Down", "One cell down, or to the array below.", "", "↓"),
    Command("layout", "row_end(-1)", ("home",), "First cell", "To the first cell of the row."),
    Command("layout", "row_end(1)", ("end",), "Last cell", "To the last cell of the row."),
    Command("layout", "page(-1)", ("pageup",), "Page up", "As many lines up as are seen."),
    Command("layout", "page(1)", ("pagedown",), "Page down", "As many lines down as are seen."),
)
