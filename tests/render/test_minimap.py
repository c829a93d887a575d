"""The overview of a picture of cells: its scale, the window in it, and its cost."""

from __future__ import annotations

import pytest
from rich.style import Style
from rich.text import Text

from shardviz.render.canvas import CURSOR, LENS, Minimap, Place, room_below, room_beside, with_map

SIZES = [
    (1, 1),
    (10, 40),
    (11, 41),
    (16, 32),
    (256, 256),
    (300, 7),
    (65_536, 1),
    (1, 65_536),
    (65_536, 65_536),
]


@pytest.mark.parametrize(("rows", "columns"), SIZES)
def test_every_cell_belongs_to_a_character_and_few_are_looked_at(rows, columns):
    looked_at = []
    drawn = Minimap(rows, columns, lambda place: looked_at.append(place) or ("x", Style()), "A", "device")
    width, height = drawn.size
    lines = drawn.lines(None, {})
    assert width <= 40
    assert height <= 10
    assert len(lines) == height + 2
    assert len(looked_at) == width * height <= 400
    down, across = drawn.step
    assert (height - 1) * down < rows <= height * down
    assert (width - 1) * across < columns <= width * across
    for number, place in enumerate(looked_at):
        y, x = divmod(number, width)
        assert (place.row // down, place.column // across) == (y, x)
        assert place.row < rows
        assert place.column < columns


def test_the_scale_is_said_in_words():
    assert Minimap(256, 512, lambda _: None, "A", "device").lines(None, {})[0].plain == (
        "A  one character is 32×16 devices"
    )
    assert Minimap(4, 4, lambda _: None, "A", "block").lines(None, {})[0].plain == (
        "A  4 characters are one block"
    )


@pytest.mark.parametrize(
    "window",
    [((0, 0), (0, 0)), ((0, 0), (255, 255)), ((100, 31), (131, 64)), ((255, 255), (255, 255))],
)
def test_the_characters_of_the_window_are_in_reverse(window):
    drawn = Minimap(256, 256, lambda _: ("x", Style()), "A", "device")
    first, last = (Place(*each) for each in window)
    down, across = drawn.step
    width, height = drawn.size
    lines = drawn.lines((first, last), {})[1:-1]
    for y in range(height):
        reverse = {x for span in lines[y].spans if span.style.reverse for x in range(span.start, span.end)}
        # A region is marked if any of its cells is seen.
        rows, columns = range(first.row, last.row + 1), range(first.column, last.column + 1)
        expected = {
            x
            for x in range(width)
            if set(rows) & set(range(y * down, (y + 1) * down))
            and set(columns) & set(range(x * across, (x + 1) * across))
        }
        assert reverse == expected


def test_marks_stand_where_their_cells_are_and_are_named():
    drawn = Minimap(64, 64, lambda _: (".", Style()), "A", "device")
    marks = {Place(63, 0): (LENS, Style(bold=True)), Place(8, 63): (CURSOR, Style(bold=True))}
    _, *lines, words = (line.plain for line in drawn.lines(None, marks))
    assert [line.index(LENS) for line in lines if LENS in line] == [0]
    assert lines[-1][0] == LENS
    assert lines[1][-1] == CURSOR
    assert words == "reverse: in view  ▹ marked  ▸ cursor"


def test_there_is_room_beside_wide_words_and_below_short_ones():
    assert room_beside(83, 8) == (36, 6)
    assert room_beside(200, 60) == (40, 10)
    assert room_beside(66, 8) is None
    assert room_beside(200, 5) is None
    assert room_below(42, 8) == (40, 6)
    assert room_below(42, 5) is None


def test_words_and_a_map_stand_side_by_side():
    lines = with_map([Text("ab"), Text("c")], [Text("1"), Text("2"), Text("3")], 5)
    assert [line.plain for line in lines] == ["ab   1", "c    2", "     3"]
