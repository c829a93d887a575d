"""The screen of a whole model: walk the tree, change a split, see what moves; and its state."""

from __future__ import annotations

import pytest
from textual.widgets import Input, OptionList

from shardviz.errors import ShardvizError
from shardviz.tui.dialogs.model import ModelDialog, ModelEditor
from tests.conftest import one_in
from tests.tui.conftest import SIZES, check_snapshot, drive, text_of, until


async def opened(pilot):
    await pilot.press("M")
    assert isinstance(pilot.app.screen, ModelDialog)
    await until(pilot, lambda: pilot.app.screen.query_one(OptionList).option_count)


async def typed(pilot, text, before=""):
    """Type a text in place of the one before, once the field is open."""
    field = pilot.app.screen.query_one(Input)
    await until(pilot, lambda: field.display and field.value.startswith(before))
    field.value = text
    await pilot.press("enter")


@pytest.mark.parametrize("size", one_in(3, SIZES))
def test_a_change_says_what_moves(size):
    async def script(pilot):
        await opened(pilot)
        await pilot.press(*("down",) * 6)
        await pilot.press("enter")
        await typed(pilot, "tensor data", before="data tensor")
        await until(pilot, lambda: "what moves" in text_of(pilot.app))
        assert "tensor data *" in text_of(pilot.app)
        await pilot.pause()
        check_snapshot(f"model-{size}", text_of(pilot.app))
        await pilot.press("backspace")
        await until(pilot, lambda: "what moves" not in text_of(pilot.app))
        await pilot.press("u")
        await until(pilot, lambda: "what moves" in text_of(pilot.app))
        await pilot.press("escape")
        assert len(pilot.app.screen_stack) == 1
        await opened(pilot)
        assert "tensor data *" in text_of(pilot.app)

    drive(script, SIZES[size])


def test_layers_fold_and_open():
    async def script(pilot):
        await opened(pilot)
        await pilot.press("down", "down", "space")
        assert "▸ model.layers.0–31" in text_of(pilot.app)
        assert "q_proj" not in text_of(pilot.app).partition("step")[0]
        await pilot.press("space")
        assert "▾ model.layers.0–31" in text_of(pilot.app)

    drive(script)


def test_words_narrow_the_tree():
    async def script(pilot):
        await opened(pilot)
        choices = pilot.app.screen.query_one(OptionList)
        everything = choices.option_count
        await pilot.press("slash", *"proj q")
        await until(pilot, lambda: choices.option_count == 1)
        assert "q_proj" in text_of(pilot.app)
        await pilot.press("enter", "enter")
        await typed(pilot, "data tensor", before="tensor data")
        await until(pilot, lambda: "what moves" in text_of(pilot.app))
        await pilot.press("slash", *" zzz")
        await until(pilot, lambda: choices.option_count == 0)
        await pilot.press("enter", "enter", "backspace", "space", "slash", "escape")
        await until(pilot, lambda: choices.option_count == everything)

    drive(script)


def test_another_model_and_a_train_step():
    async def script(pilot):
        await opened(pilot)
        await pilot.press("m")
        await typed(pilot, "gpt2")
        await until(pilot, lambda: "124 million parameters" in text_of(pilot.app))
        await pilot.press("b")
        await until(pilot, lambda: "adam state" in text_of(pilot.app))

    drive(script)


def test_what_cannot_be_read_stays_with_its_reason():
    async def script(pilot):
        await opened(pilot)
        await pilot.press("r")
        await typed(pilot, "fdsp")
        await until(pilot, lambda: "no rules called 'fdsp'" in text_of(pilot.app))
        assert pilot.app.screen.query_one(Input).display
        await pilot.press("escape")
        assert not pilot.app.screen.query_one(Input).display
        assert "fsdp+tensor" in text_of(pilot.app)

    drive(script)


def test_a_split_that_cannot_be_read_is_told_without_a_pattern():
    async def script(pilot):
        await opened(pilot)
        await pilot.press(*("down",) * 3, "enter")
        await typed(pilot, "foo bar", before="tensor data")
        await until(pilot, lambda: "Unknown mesh axis 'foo'" in text_of(pilot.app))
        assert "[0-9]" not in text_of(pilot.app)

    drive(script)


def test_changes_are_kept_by_pattern_and_undone():
    editor = ModelEditor()
    first = editor.form
    editor.edit(first.changed("^a$", "_ tensor").changed("^b$", "tensor _").changed("^a$", "tensor _"))
    assert [(each.subject, each.split) for each in editor.form.changes] == [
        ("^a$", "tensor _"),
        ("^b$", "tensor _"),
    ]
    with pytest.raises(ShardvizError, match="unknown mesh axis"):
        editor.edit(editor.form.changed("q_proj", "nothing _"))
    assert [(each.subject, each.split) for each in editor.form.changes] == [
        ("^a$", "tensor _"),
        ("^b$", "tensor _"),
    ]
    with pytest.raises(ShardvizError, match="'data=4'"):
        editor.edit(editor.form.changed("q_proj", "data=4"))
    assert editor.undo()
    assert editor.form == first
    assert not editor.undo()
