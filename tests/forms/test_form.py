"""Undo and redo."""

from __future__ import annotations

from shardviz.forms.form import MAX_STEPS, History, ProblemForm

FIRST, SECOND, THIRD = (ProblemForm(mesh=f"X={size}") for size in (1, 2, 4))


def test_undo_goes_back_and_redo_forward_again():
    history = History(FIRST)
    assert history.push(SECOND)
    assert history.push(THIRD)
    assert history.undo()
    assert history.draft == SECOND
    assert history.undo()
    assert not history.undo()
    assert history.draft == FIRST
    assert history.redo()
    assert history.redo()
    assert not history.redo()
    assert history.draft == THIRD


def test_an_edit_after_undo_takes_the_place_of_what_was_undone():
    history = History(FIRST)
    history.push(SECOND)
    history.undo()
    history.push(THIRD)
    assert not history.redo()
    assert history.undo()
    assert history.draft == FIRST


def test_no_change_is_no_step():
    history = History(FIRST)
    assert not history.push(ProblemForm(mesh="X=1"))
    assert not history.undo()


def test_the_oldest_steps_are_forgotten():
    history = History(FIRST)
    for size in range(2, MAX_STEPS + 10):
        history.push(ProblemForm(mesh=f"X={size}"))
    steps = 0
    while history.undo():
        steps += 1
    assert steps == MAX_STEPS - 1
    assert history.draft == ProblemForm(mesh="X=10")
