"""The main screen: the problem and the panes, the lines around them, and what each key does there."""

from __future__ import annotations

import gc
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.message import Message

from shardviz import garbage
from shardviz.forms.wording import error_words
from shardviz.lazy_names import LazyImports
from shardviz.render.caption import lens_text
from shardviz.tui import registry
from shardviz.tui.bars import Headline, KeyFooter, ScreenTabs, TooSmall, is_too_small
from shardviz.tui.pane import Pane
from shardviz.tui.problem.panel import ProblemPanel
from shardviz.tui.registry import APP, COMMANDS, Command, bindings
from shardviz.tui.resilient_app import ResilientApp, is_input
from shardviz.tui.state import EditorState
from shardviz.tui.themes import STYLES, THEMES, palette_of
from shardviz.tui.workspace import Workspace

with LazyImports():
    from shardviz.tui import targets_pane
    from shardviz.tui.step import pane as step_pane

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from textual.dom import DOMNode

    from shardviz.tui.lesson.view import LessonView


FOR_FILES = ("export", "model")
"""Windows that need files of this machine."""


class MainScreenApp(ResilientApp):
    """The problem on the left, one of the screens on the right, above them the headline, below the keys.
    `lesson` is the lesson that is open; None where none is. `is_guest`: a visitor uses the application from
    elsewhere, who may not touch the files of this machine."""

    SUSPENDED_SCREEN_CLASS = "behind"
    CSS = STYLES["ShardvizApp"]
    BINDINGS = bindings(APP)
    TITLE = "shardviz"

    state: EditorState
    workspace: Workspace
    lesson: LessonView | None = None
    is_guest = False
    keys: Path | None = None
    """The file with keys of one's own."""
    _keys_version: tuple[int, ...] | None = None
    own_commands: ClassVar[Sequence[Command]] = ()
    """Commands of one kind of application alone; they work everywhere."""

    @property
    def pane(self) -> Pane:
        return self.workspace.pane

    @property
    def panel(self) -> ProblemPanel:
        return self.workspace.panel

    def compose(self) -> ComposeResult:
        self.workspace.mark_size(self.screen)
        yield Headline()
        yield ScreenTabs()
        yield self.workspace
        yield KeyFooter()

    async def on_mount(self) -> None:
        if self.keys is not None:
            self._use_keys(self.keys)
            self.set_interval(1.0, partial(self._use_keys, self.keys))
        self.theme_changed_signal.subscribe(self, lambda _theme: self.show_problem())
        self.screen.bindings_updated_signal.subscribe(self, lambda _bindings: self._show_keys())
        self.workspace.is_left = not self.workspace.is_narrow and self.state.area == "layout"
        self.workspace.show_parts()
        self.show_problem(is_first=True)
        self.call_after_refresh(self.begin)
        await self.enter()

    async def enter(self) -> None:
        """Before the first frame: what else belongs in it."""

    async def begin(self) -> None:
        """After the first frame: the plan, what else belongs on screen, and the compilers' process."""
        self._find_first_plan()
        await self.workspace.show_panes()
        self.state.queries.start()
        self.ask()
        if not gc.isenabled():  # where the process is the application's own
            garbage.freeze()
            gc.enable()

    def _find_first_plan(self) -> None:
        if self.state.find_first_plan():
            self.show_problem()

    async def take(self, message: Message) -> None:
        if is_input(message):
            self._find_first_plan()  # a key may come before the first frame
        await super().take(message)

    def ask(self) -> None:
        if not self.state.is_empty:
            self.state.queries.ask(self.state.resolved)
            self.state.follow_shardy()

    def problem_changed(self, is_other: bool) -> None:
        if is_other:
            self.ask()
        self.show_problem()

    def show_problem(self, is_first: bool = False) -> None:
        """Draw what is on screen, for the first time or again."""
        self._show_headline()
        self.workspace.show_problem(is_first)
        if self.lesson is not None:
            self.lesson.show_problem(self.state.resolved)
        self._show_keys()

    def _show_headline(self) -> None:
        """Say the problem where its fields are not on screen; above the player, the collective."""
        line, resolved = self.screen_stack[0].query_one(Headline), self.state.resolved
        line.resolved, line.of_collective = resolved, self.state.area == "step"
        is_own = line.of_collective and resolved.draft.collective is not None
        line.display = is_own or self.workspace.is_narrow or self.workspace.left is not self.panel

    def on_workspace_pane_shown(self) -> None:
        self._show_headline()

    def on_compiler_queries_changed(self) -> None:
        self.state.follow_shardy()
        self.workspace.draw_each(lambda pane: pane.draw())

    def lens_changed(self) -> None:
        self.workspace.draw_each(lambda pane: pane.show_lens())
        self._show_keys()

    def step_changed(self) -> None:
        self.workspace.show_step()

    @property
    def commands(self) -> list[Command]:
        part = self.workspace.part
        if part.typing:
            return list(part.typing)
        letters = self.panel.letters.keys() if part is self.panel else set()
        may_not = {"restore", *(f"window({name!r})" for name in FOR_FILES)} if self.is_guest else set()
        if self.workspace.no_room:
            may_not.add("alone")
        everywhere = [APP[0], *part.commands, *(each for each in APP[1:] if each.name not in may_not)]
        if self.lesson is not None:
            everywhere = self.lesson.commands_among(everywhere)
        return [free for each in everywhere if (free := each.without(letters)) is not None]

    def _use_keys(self, path: Path) -> None:
        """Have the keys of a file, where it is another than before."""
        version = registry.version(path)
        if version != self._keys_version:
            self._keys_version = version
            if (refused := registry.use_own_keys(path)) is not None:
                words = f"{error_words(refused)} The default keys apply."
                self.notify(words, severity="warning", timeout=15)
            self.set_keymap(registry.keymap())
            for screen in self.screen_stack:
                screen.query("KeyFooter, ScreenTabs").refresh()

    def _show_keys(self) -> None:
        main, workspace = self.screen_stack[0], self.workspace
        tabs, mesh = main.query_one(ScreenTabs), self.state.resolved.problem.mesh
        tabs.area, tabs.areas, tabs.at_left = self.state.area, workspace.areas, workspace.is_left
        tabs.left = "Problem" if workspace.left is self.panel else "Lesson"
        tabs.lens = lens_text(mesh, self.state.lens, palette_of(self))
        main.query_one(KeyFooter).commands = self.commands

    async def on_key(self, event: events.Key) -> None:
        """A letter may name an axis; a key that means nothing to the problem goes to the pane beside it."""
        if len(self.screen_stack) > 1:
            return
        workspace, part = self.workspace, self.workspace.part
        lesson = None if part.typing else self.lesson
        if (part is self.panel and self.panel.takes(event)) or (lesson is not None and lesson.takes(event)):
            event.prevent_default()
            return
        command = None if lesson is None else lesson.command_of(event)
        widget: DOMNode = self
        if command is None and workspace.is_left and not self.panel.is_typing and self.pane.display:
            own = (each for each in COMMANDS if each.area == self.state.area and event.key in each.keys)
            command = None if event.key in self.screen.active_bindings else next(own, None)
            widget = self.pane
        if command is not None:
            event.prevent_default()
            await self.run_action(command.name, widget)

    def on_resize(self, event: events.Resize) -> None:
        if not is_too_small(*event.size):
            self.call_next(self._show_headline)
            self.call_next(self.workspace.show_parts)
            self.call_after_refresh(self.workspace.show_panes)
            if self.lesson is not None:
                self.call_next(self.lesson.draw)
        elif not isinstance(self.screen, TooSmall):
            self.push_screen(TooSmall())

    def on_driver_signal_resume(self) -> None:
        """Draw everything: a terminal that was left for a while, and entered afresh, is empty."""
        self.refresh(layout=True)

    def on_paste(self) -> None:
        self.notify("No field is open: press enter on a field, then paste.")

    async def on_pane_step_opened(self, event: Pane.StepOpened) -> None:
        await self._show_step(event.number)
        if isinstance(self.pane, step_pane.StepPane) and not self.pane.player.playing:
            self.pane.player.play()

    async def _show_step(self, number: int) -> None:
        self.state.set_step(number)
        await self.action_show("step")
        if self.state.resolved.collective is not None and self.pane.area == "step":
            await self.run_action("back_to_plan", self.pane)

    async def on_pane_instruction_opened(self, event: Pane.InstructionOpened) -> None:
        await self.action_show(event.area)
        if self.state.area == event.area and isinstance(self.pane, targets_pane.TargetsPane):
            self.pane.open_instruction(event.target, event.name)

    async def action_show(self, area: str) -> None:
        if self.is_kept_back(area):
            return
        await self.workspace.put_on(area)
        self.workspace.face(is_left=False)

    def action_problem(self) -> None:
        if self.lesson is None or self.lesson.turn:
            self.workspace.face(not self.workspace.is_left)

    async def action_alone(self) -> None:
        if self.workspace.no_room:
            self.notify(self.workspace.no_room)
            return
        self.workspace.is_alone = not self.workspace.is_alone
        await self.workspace.show_panes()
        self._show_keys()

    def is_kept_back(self, area: str = "") -> bool:
        """Return whether a lesson keeps a pane back, or, without one, what shows the answer; notify why."""
        why = self.lesson.refusal(area) if self.lesson is not None else ""
        if why:
            self.notify(why)
        return bool(why)

    def action_undo(self) -> None:
        self.state.undo()

    def action_redo(self) -> None:
        self.state.redo()

    def action_cancel(self) -> None:
        if self.state.resolved.faults:
            self.state.restore()
        elif self.state.queries.cancel():
            self.notify("The compilers are stopped; r recompiles.")
        else:
            self.state.set_lens(None)

    def action_theme(self) -> None:
        names = [theme.name for theme in THEMES]
        self.theme = names[(names.index(self.theme) + 1) % len(names)]
        self.notify(f"The theme is {self.theme.removeprefix('shardviz-')}.")

    def action_help_quit(self) -> None:
        """`ctrl+c` copies in a field; elsewhere it says how to quit."""
        self.notify("q quits; in a field, ctrl+q.")
