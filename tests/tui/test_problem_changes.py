"""What each key makes of the draft."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardviz.forms.axis_edits import cycle_unreduced
from shardviz.forms.enter import enter
from shardviz.forms.form import OPEN, ProblemForm
from shardviz.forms.resolve import resolve
from shardviz.render.problem_picture import FieldCell, FieldPlace, field_rows
from shardviz.tui.problem import fields
from shardviz.tui.problem.fields import Cursor, cell_at, cursor_on, moved, place_at

BEGUN = resolve(ProblemForm())


def cell(field: str, index: int = 0, draft: ProblemForm | None = None) -> FieldCell:
    return cell_at(field_rows(resolve(draft or ProblemForm(), BEGUN)), Cursor(field, index))


@pytest.mark.parametrize(
    ("axes", "letters", "text"),
    [
        ("X Y", "X Y", "X Y"),
        ("data model", "d m", "d m"),
        ("data model mesh", "d", "d"),
        ("model mesh", "", ""),
        ("X X1", "X", "X"),
        ("S T U V W", "S T U V W", "S T U V …"),
    ],
)
def test_the_letters_of_the_axes(axes, letters, text):
    found = fields.letters_of(axes.split())
    assert [*found] == letters.split()
    assert all(axis.startswith(letter) and axis in axes.split() for letter, axis in found.items())
    assert fields.letters_text(found) == text


@pytest.mark.parametrize(
    ("field", "index", "text", "wanted"),
    [
        ("mesh", 0, "4", {"mesh": "X=4,Y=4"}),
        ("mesh", 0, "data", {"mesh": "data=2,Y=4", "specs": ("data Y", "Y_", "data _")}),
        ("mesh", 0, "", {"mesh": "Y=4", "specs": ("_Y", "Y_", "__")}),
        ("mesh", 0, "a=4,b=2", {"mesh": "a=4,b=2", "specs": ("ab", "b_", "a_")}),
        ("mesh", 1, "explain 'bd->b' --mesh X=8", {"mesh": "X=8", "einsum": "bd->b", "specs": ("__", "?")}),
        ("specs.0", 0, "P(None, 'X')", {"specs": ("_X", "Y_", "X_")}),
        ("specs.0", 2, "A[b_Y, d]", {"specs": ("Y_", "Y_", "X_")}),
        ("specs.2", 0, "?", {"specs": ("XY", "Y_", OPEN)}),
        ("dtype", 0, "float32", {"dtype": "f32"}),
        ("sizes", 0, "b=16", {"sizes": "b=16,d=2048,f=8192"}),
        ("targets", 0, "nonsense [", {"targets": "nonsense ["}),
    ],
)
def test_text_in_place_of_a_cell(field, index, text, wanted):
    assert fields.entered(ProblemForm(), cell(field, index), text) == replace(ProblemForm(), **wanted)


@pytest.mark.parametrize(
    ("field", "index", "text"),
    [("mesh", 1, "Y=4"), ("sizes", 0, "b=1024,d=2048,f=8192"), ("specs.1", 1, "Y_"), ("device_order", 0, "")],
)
def test_the_text_that_one_begins_with(field, index, text):
    assert fields.text_of(cell(field, index), BEGUN) == text


def test_a_result_is_cycled_between_the_compilers_choice_and_that_of_the_plan():
    opened = fields.cycled(ProblemForm(), cell("specs.2"), BEGUN)
    assert opened.specs[2] == OPEN
    scene = resolve(opened, BEGUN)
    assert fields.cycled(opened, cell("specs.2", 1, opened), scene) == ProblemForm()


def test_fields_of_few_words_are_cycled():
    assert fields.cycled(ProblemForm(), cell("axis_types"), BEGUN).axis_types == "explicit"
    odd = ProblemForm(dtype="s32")
    assert fields.cycled(odd, cell("dtype", 0, odd), BEGUN).dtype == "bf16"


def test_an_axis_that_moves_is_said_to():
    rows = field_rows(BEGUN)
    assert fields.moved_from(rows, cell("specs.0", 1), "Y") == "d of A"
    assert fields.moved_from(rows, cell("specs.0", 1), "X") == ""
    assert fields.moved_from(rows, cell("specs.1", 1), "X") == ""
    summed = enter(ProblemForm(), "specs.2", "X_{U_Y}")
    assert (
        fields.moved_from(field_rows(resolve(summed)), cell("specs.2", 2, summed), "Y")
        == "the partial sum of Out"
    )


def test_partial_sums_are_cleared():
    summed = cycle_unreduced(ProblemForm(), 1)
    assert summed.specs[1] == "Y_{U_X}"
    assert fields.cleared(summed, cell("specs.1", 3, summed)) == ProblemForm()


@pytest.mark.parametrize(
    ("command", "field", "index", "works"),
    [
        ("cycle", "specs.0", 1, True),
        ("cycle", "specs.0", 0, False),
        ("cycle", "specs.2", 0, True),
        ("cycle", "einsum", 0, False),
        ("cycle", "dtype", 0, True),
        ("axis", "mesh", 0, True),
        ("axis", "specs.0", 1, False),
        ("add_axis", "targets", 0, True),
    ],
)
def test_commands_work_where_they_mean_something(command, field, index, works):
    assert fields.works_on(command, cell(field, index), BEGUN) is works


A, B, C, D = (FieldCell("text", name, 0, name) for name in "abcd")
E = FieldCell("dim", "c", 1, "e")
PLACES = [
    FieldPlace(A, 0, 10, 20),
    FieldPlace(A, 1, 10, 20),
    FieldPlace(B, 2, 10, 13),
    FieldPlace(C, 3, 10, 13),
    FieldPlace(E, 3, 15, 18),
    FieldPlace(D, 5, 2, 30),
]


@pytest.mark.parametrize(
    ("start", "direction", "end"),
    [
        (A, "down", B),
        (A, "up", A),
        (C, "right", E),
        (E, "right", E),
        (E, "left", C),
        (C, "left", C),
        (E, "up", B),
        (E, "down", D),
        (D, "up", C),
        (D, "right", D),
    ],
)
def test_the_cursor_moves_to_the_nearest_cell(start, direction, end):
    assert moved(PLACES, start, direction) is end


@pytest.mark.parametrize(("x", "y", "found"), [(11, 0, A), (0, 3, C), (14, 3, E), (40, 3, E), (0, 4, None)])
def test_the_mouse_picks_the_nearest_cell_of_a_line(x, y, found):
    place = place_at(PLACES, x, y)
    assert (place and place.cell) is found


def test_the_cursor_stays_in_its_field_when_cells_go():
    rows = field_rows(BEGUN)
    assert cell_at(rows, Cursor("mesh", 7)).axes == ("Y",)
    assert cell_at(rows, Cursor("specs.9", 1)).field == "specs.2"
    assert cursor_on(rows, cell("specs.1", 2)) == Cursor("specs.1", 2)
