"""The screen of what was opened: a window of its own, or a screen that is there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from shardviz.errors import ShardvizError
from shardviz.forms.enter import enter
from shardviz.forms.share import from_string
from shardviz.forms.wording import error_words
from shardviz.tui.opening.kinds import Openable
from shardviz.tui.opening.options import read_options
from shardviz.tui.time.timelines import OpenedProfile

if TYPE_CHECKING:
    from shardviz.tui.app import ShardvizApp
    from shardviz.tui.opening.reading import Opened


async def show_opened(app: ShardvizApp, found: Opened | None) -> None:
    """Show what the dialog was left with."""
    try:
        await _shown(app, found)
    except ShardvizError as error:
        app.notify(error_words(error), severity="error")


async def _shown(app: ShardvizApp, found: Opened | None) -> None:
    if found is None:
        return
    if isinstance(found, OpenedProfile):
        app.state.profile = found
        await app.action_show("time")
    elif isinstance(found, Openable):
        await _show(app, found)
    else:
        from shardviz.tui.opening.pages import ChangesDialog, ModulesDialog, ProgramDialog
        from shardviz.tui.opening.reading import OpenedChanges, OpenedModules

        if isinstance(found, OpenedChanges):
            app.push_screen(ChangesDialog(found))
        elif isinstance(found, OpenedModules):
            app.push_screen(ModulesDialog(found, app.state), partial(show_opened, app))
        else:
            app.push_screen(ProgramDialog(found, app.state))


async def _show(app: ShardvizApp, found: Openable) -> None:
    """Show a text, or a file that takes no time to read."""
    draft = app.state.history.draft
    if found.kind == "notation":
        from shardviz.tui.opening.pages import TranslationDialog

        app.push_screen(TranslationDialog(found.name))
    elif found.kind == "model":
        read_options(found.options, ())
        app.open_model(found.path)
    elif found.kind == "machine":
        app.state.edit(enter(draft, "machine", found.path))
    elif found.kind == "line":
        await app.leave_lesson()
        app.state.edit(enter(draft, "einsum", found.name))
    else:
        shared = from_string(found.name)
        if shared.lesson:
            from shardviz.lessons.attempt import attempt_of

            await app.open_lesson(attempt_of(shared))
            return
        await app.leave_lesson()
        app.state.edit(shared.draft)
        await app.action_show(shared.screen)
