"""Edits of the mesh and of single dimensions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardviz.forms.axis_edits import (
    add_axis,
    assign,
    clear,
    cycle,
    cycle_unreduced,
    double_axis,
    enter_axis,
    halve_axis,
    move_axis,
    remove_axis,
    toggle_open,
    toggle_unreduced,
)
from shardviz.forms.enter import enter
from shardviz.forms.form import ProblemForm
from shardviz.forms.resolve import resolve

USUAL = ProblemForm()
LONG = enter(USUAL, "mesh", "data=2,model=4")
BROKEN = replace(USUAL, mesh="X=2,Y", specs=("XY", "!", "X_"))
ROW_BROKEN = replace(USUAL, specs=("XY", "!", "X_"))


@pytest.mark.parametrize(
    ("edit", "mesh", "specs"),
    [
        (lambda d: add_axis(d), "X=2,Y=4,Z=2", "XY,Y_,X_"),
        (lambda d: enter_axis(d, "Y", "Z"), "X=2,Z=4", "XZ,Z_,X_"),
        (lambda d: enter_axis(d, "Y", "model"), "X=2,model=4", "X model,model _,X_"),
        (lambda d: enter_axis(d, "Y", "X"), "X=2,X=4", "XY,Y_,X_"),
        (lambda d: enter_axis(d, "X", "6"), "X=6,Y=4", "XY,Y_,X_"),
        (lambda d: double_axis(enter_axis(d, "X", "6"), "X"), "X=8,Y=4", "XY,Y_,X_"),
        (lambda d: halve_axis(d, "Y"), "X=2,Y=2", "XY,Y_,X_"),
        (lambda d: halve_axis(enter_axis(d, "Y", "6"), "Y"), "X=2,Y=4", "XY,Y_,X_"),
        (lambda d: remove_axis(d, "X"), "Y=4", "_Y,Y_,__"),
        (lambda d: move_axis(d, "Y", -1), "Y=4,X=2", "XY,Y_,X_"),
        (lambda d: enter_axis(d, "X", " a = 16 "), "a=16,Y=4", "aY,Y_,a_"),
        (lambda d: enter_axis(d, "X", "a=b=c"), "a=b=c,Y=4", "XY,Y_,X_"),
        (lambda d: enter_axis(d, "X", "0"), "X=0,Y=4", "XY,Y_,X_"),
        (lambda d: enter_axis(d, "Y", "X=4 Z=2"), "X=4,Z=2", "XZ,Z_,X_"),
        (lambda d: enter_axis(d, "Y", "4x2"), "X=4,Y=2", "XY,Y_,X_"),
        (lambda d: enter_axis(d, "X", "X=2,"), "X=2,", "XY,Y_,X_"),
        (lambda d: enter_axis(assign(d, 0, 0, "Y"), "X", "X=3,Y=8"), "X=3,Y=8", "Y_,Y_,__"),
        (lambda d: enter(d, "mesh", "3x8"), "X=3,Y=8", "_Y,Y_,__"),
    ],
)
def test_the_mesh(edit, mesh, specs):
    edited = edit(USUAL)
    assert (edited.mesh, ",".join(edited.specs)) == (mesh, specs)


@pytest.mark.parametrize(
    "edit",
    [
        lambda d: add_axis(d),
        lambda d: enter_axis(d, "X", "Z"),
        lambda d: double_axis(d, "X"),
        lambda d: remove_axis(d, "X"),
        lambda d: cycle(d, 0, 0),
        lambda d: assign(d, 0, 0, "Y"),
        lambda d: toggle_unreduced(d, 2, "Y"),
    ],
)
def test_what_needs_the_mesh_leaves_one_that_cannot_be_read_as_it_is(edit):
    assert edit(BROKEN) == BROKEN


def test_axes_begin_anew_in_an_empty_mesh():
    assert add_axis(replace(USUAL, mesh=" ")).mesh == "X=2"


def test_a_row_that_cannot_be_read_stays_while_others_follow_the_mesh():
    assert remove_axis(ROW_BROKEN, "X").specs == ("_Y", "!", "__")
    assert assign(ROW_BROKEN, 1, 1, "X").specs == ("XY", "_X", "X_")


def test_cycling_passes_all_free_axes_and_comes_back():
    draft = replace(USUAL, mesh="X=2,Y=2,Z=2", specs=("_Y", "Y_", "X_"))
    seen = []
    for _ in range(4):
        draft = cycle(draft, 0, 0)
        seen.append(draft.specs[0])
    assert seen == ["XY", "ZY", "_Y", "XY"]
    assert cycle(replace(USUAL, specs=("(XY)_", "Y_", "X_")), 0, 0).specs[0] == "__"


@pytest.mark.parametrize(
    ("edit", "specs"),
    [
        (lambda d: assign(d, 1, 0, "X"), "XY,(YX)_,X_"),
        (lambda d: assign(d, 0, 0, "Y"), "(XY)_,Y_,X_"),
        (lambda d: assign(assign(clear(d, 0, 1), 0, 1, "X"), 0, 1, "Y"), "_(XY),Y_,X_"),
        (lambda d: assign(d, 0, 2, "X"), "XY,Y_,X_"),
        (lambda d: clear(d, 0, 0), "_Y,Y_,X_"),
        (lambda d: toggle_open(d, 2), "XY,Y_,?"),
        (lambda d: toggle_open(toggle_open(d, 2), 2), "XY,Y_,__"),
        (lambda d: toggle_open(d, 0), "XY,Y_,X_"),
        (lambda d: assign(toggle_open(d, 2), 2, 1, "Y"), "XY,Y_,_Y"),
        (lambda d: toggle_unreduced(d, 2, "Y"), "XY,Y_,X_{U_Y}"),
        (lambda d: toggle_unreduced(d, 2, "X"), "XY,Y_,__{U_X}"),
        (lambda d: cycle_unreduced(d, 2), "XY,Y_,X_{U_Y}"),
        (lambda d: cycle_unreduced(cycle_unreduced(d, 2), 2), "XY,Y_,X_"),
        (lambda d: assign(toggle_unreduced(d, 2, "Y"), 2, 1, "Y"), "XY,Y_,XY"),
    ],
)
def test_dimensions(edit, specs):
    assert ",".join(edit(USUAL).specs) == specs


def test_long_names_stay_apart():
    assert assign(LONG, 1, 1, "data").specs == ("data model", "model data", "data _")
    assert remove_axis(LONG, "data").specs == ("_ model", "model _", "__")
    one = enter(LONG, "einsum", "bd->b")
    assert resolve(assign(clear(one, 0, 0), 1, 0, "data")).draft.specs == ("_ model", "( data )")


@pytest.mark.parametrize(
    ("edit", "mesh", "specs"),
    [
        (lambda form: cycle(form, 0, 0), "X=2,Y=4", ("_ Y:(1)2", "Y:(1)2 _", "X_")),
        (lambda form: assign(form, 0, 0, "Y"), "X=2,Y=4", ("(XY)_", "Y:(1)2 _", "X_")),
        (lambda form: toggle_unreduced(form, 1, "Y"), "X=2,Y=4", ("X Y:(1)2", "__{U_Y}", "X_")),
        (lambda form: enter_axis(form, "Y", "data"), "X=2,data=4", ("X data:(1)2", "data:(1)2 _", "X_")),
        (lambda form: remove_axis(form, "Y"), "X=2", ("X_", "__", "X_")),
    ],
)
def test_parts_of_axes_follow_edits_of_their_axes(edit, mesh, specs):
    edited = edit(ProblemForm(specs=("X Y:(1)2", "Y:(1)2 _", "X_")))
    assert (edited.mesh, edited.specs) == (mesh, specs)
