"""The application: its lines, its workspace, and the commands that work everywhere."""

from __future__ import annotations

import gc
import os
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.message import Message
from textual.screen import Screen

from shardviz.errors import ShardvizError
from shardviz.forms.form import History, ProblemForm
from shardviz.forms.wording import as_sentence, error_words
from shardviz.lazy_names import LazyImports
from shardviz.render.caption import lens_text
from shardviz.tui.bars import Headline, KeyFooter, ScreenTabs
from shardviz.tui.pane import Pane
from shardviz.tui.problem.panel import ProblemPanel
from shardviz.tui.registry import APP, COMMANDS, Command, bindings, keymap
from shardviz.tui.resilient_app import ResilientApp, is_input
from shardviz.tui.session import KeptSession
from shardviz.tui.state import EditorState, OpenedProfile
from shardviz.tui.themes import STYLES, THEMES, palette_of, set_up_themes
from shardviz.tui.workspace import PANES, TooSmall, Workspace, is_too_small

with LazyImports():
    from shardviz.forms import enter, jumps, share
    from shardviz.lessons import attempt
    from shardviz.tui import own_keys, targets_pane
    from shardviz.tui.dialogs import dialog, export, lists, tables
    from shardviz.tui.lesson import progress, view
    from shardviz.tui.opening import dialog as opening
    from shardviz.tui.opening import kinds, pages
    from shardviz.tui.step import pane as step_pane

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from textual.dom import DOMNode
    from textual.notifications import SeverityLevel

    from shardviz.compiler import Worker
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.forms.share import Shared
    from shardviz.lessons.attempt import Attempt
    from shardviz.lessons.lesson import Lesson
    from shardviz.tui.lesson.progress import LessonProgress
    from shardviz.tui.lesson.view import LessonView

NO_FILES = "A visitor's session cannot write files; c shows the code, y copies it."


class ShardvizApp(ResilientApp):
    """The problem on the left, one of the screens on the right, above them the headline, below the keys.
    `lesson` is the lesson that is open; None where none is. `is_guest`: a visitor uses the application from
    elsewhere, who may not touch the files of this machine."""

    SUSPENDED_SCREEN_CLASS = "behind"
    CSS = STYLES["ShardvizApp"]
    BINDINGS = bindings(APP)
    TITLE = "shardviz"

    def __init__(
        self,
        draft: ProblemForm | History | None = None,
        screen: str = "layout",
        worker: Worker | None = None,
        is_guest: bool = False,
        lesson: Lesson | Attempt | None = None,
        present: bool = False,
        warning: str = "",
        keys: Path | None = None,
    ) -> None:
        """Open on a draft, alone or with its steps, or in a lesson: where it was left, at the stage of an
        attempt that was sent, or to `present` it to a class. A `warning` is shown first. `keys` is the file
        with keys of one's own."""
        # Without colours the terminal's own are taken, since shades of grey would show nothing either.
        super().__init__(ansi_color="NO_COLOR" in os.environ or None)
        set_up_themes(self)
        if lesson is not None:
            screen = (lesson.lesson if isinstance(lesson, attempt.Attempt) else lesson).screen
        draws_first = screen == "layout" and lesson is None
        self.state = EditorState(self, draft or ProblemForm(), screen, worker, draws_first)
        self.workspace = Workspace(self.state)
        self.is_guest = is_guest
        self.lesson: LessonView | None = None
        self._first_lesson, self._is_presenting, self._warning = lesson, present, warning
        self._keys = keys
        self._keys_version: tuple[int, ...] | None = None
        self._session = KeptSession(self, self.state, may_keep=not is_guest)

    own_commands: ClassVar[Sequence[Command]] = ()
    """Commands of one kind of application alone; they work everywhere."""

    @cached_property
    def progress(self) -> LessonProgress:
        """The learner's progress: loaded with the first lesson."""
        return progress.LessonProgress(self.is_guest)

    @property
    def pane(self) -> Pane:
        return self.workspace.pane

    @property
    def panel(self) -> ProblemPanel:
        return self.workspace.panel

    def compose(self) -> ComposeResult:
        self.workspace.mark_size(self.screen)
        headline = Headline()
        headline.display = self.workspace.is_narrow
        yield headline
        yield ScreenTabs()
        yield self.workspace
        yield KeyFooter()

    async def on_mount(self) -> None:
        if self._keys is not None:
            self._use_keys(self._keys)
            self.set_interval(1.0, partial(self._use_keys, self._keys))
        self.theme_changed_signal.subscribe(self, lambda _theme: self.show_problem())
        self.screen.bindings_updated_signal.subscribe(self, lambda _bindings: self._show_keys())
        self.workspace.is_left = not self.workspace.is_narrow and self.state.area == "layout"
        self.workspace.show_parts()
        self.show_problem(is_first=True)
        if self._first_lesson is not None:
            await self.open_lesson(self._first_lesson)
        if self._warning:
            self.notify(self._warning, severity="warning", timeout=15)
        self.call_after_refresh(self.begin)

    async def begin(self) -> None:
        """After the first frame: the plan, what else belongs on screen, and the compilers' process."""
        self._find_first_plan()
        await self.workspace.show_panes()
        self.state.queries.start()
        self.ask()
        if not gc.isenabled():  # where the process is the application's own
            gc.freeze()
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
        self._session.keep_soon()
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

    def plans_found(self) -> None:
        self.call_later(self.state.look_again)

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
        may_not = {"export", "model", "restore"} if self.is_guest else set()
        if self.workspace.no_room:
            may_not.add("alone")
        everywhere = [APP[0], *part.commands, *(each for each in APP[1:] if each.name not in may_not)]
        if self.lesson is not None:
            everywhere = self.lesson.commands_among(everywhere)
        return [free for each in everywhere if (free := each.without(letters)) is not None]

    def _use_keys(self, path: Path) -> None:
        """Have the keys of a file, where it is another than before."""
        version = own_keys.version(path)
        if version != self._keys_version:
            self._keys_version = version
            if (refused := own_keys.use_own_keys(path)) is not None:
                words = f"{error_words(refused)} The default keys apply."
                self.notify(words, severity="warning", timeout=15)
            self.set_keymap(keymap())
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
        part = self.workspace.part
        if part is self.panel and self.panel.takes(event):
            event.prevent_default()
            return
        if self.lesson is not None and not part.typing:
            if self.lesson.takes(event):
                event.prevent_default()
                return
            if (meant := self.lesson.command_of(event)) is not None:
                event.prevent_default()
                await self.run_action(meant.name, self)
                return
        if not self.workspace.is_left or self.panel.is_typing or event.key in self.screen.active_bindings:
            return
        own = (each for each in COMMANDS if each.area == self.state.area and event.key in each.keys)
        if self.pane.display and (command := next(own, None)) is not None:
            event.prevent_default()
            await self.run_action(command.name, self.pane)

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
        if self._is_kept_back(area):
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

    def _is_kept_back(self, area: str = "") -> bool:
        """Return whether a lesson keeps a pane back, or, without one, what shows the answer; notify why."""
        why = self.lesson.refusal(area) if self.lesson is not None else ""
        if why:
            self.notify(why)
        return bool(why)

    async def action_run_command(self, command: Command | None) -> None:
        widget: DOMNode = self
        if command is None:
            return
        if command.area in PANES:
            await self.action_show(command.area)
            if self.workspace.right is not self.pane or self.state.area != command.area:
                return
            widget = self.pane
        elif command.area == "problem":
            if not self.workspace.is_left:
                self.action_problem()
            widget = self.panel
        elif command.area == "lesson" and self.lesson is None:
            self.notify("No lesson is open; L lists them.")
            return
        if widget is self.panel and self.workspace.left is not self.panel:
            self.notify("The problem panel opens with the sandbox, later in the lesson.")
            return
        await self.run_action(command.name, widget)

    def action_jump(self) -> None:
        if not self._is_kept_back():
            self.push_screen(lists.JumpDialog(self.state), self.open)

    async def open(self, found: object) -> None:
        """Put on screen what a dialog was left with: a problem, as one step of undo, a place of it, a lesson,
        a window, or what a file or a text is."""
        try:
            match found:
                case None:
                    pass
                case jumps.DeviceJump():
                    self.state.set_lens(found.position)
                case jumps.StepJump() if self.state.area == "step":
                    await self._show_step(found.number)
                case jumps.StepJump():
                    await self.action_show("plan")
                    self.state.set_step(found.number)
                case ProblemForm():
                    if self.lesson is not None and not self.lesson.is_sandbox:
                        await self.leave_lesson()
                    self.state.edit(found)
                case OpenedProfile():
                    self.state.profile = found
                    await self.action_show("time")
                case kinds.Openable(kind="machine"):  # of the same problem: a lesson goes on
                    self.state.edit(enter.enter(self.state.history.draft, "machine", found.path))
                case kinds.Openable():
                    await self.open(pages.shown_by(found, self.state))
                case share.Shared() if found.lesson:
                    await self.open_lesson(attempt.attempt_of(found))
                case share.Shared():
                    await self.leave_lesson()
                    self.state.edit(found.draft)
                    if found.screen:
                        await self.action_show(found.screen)
                case Screen():
                    self.push_screen(found)
        except ShardvizError as error:
            self.notify(error_words(error), severity="error")

    def action_help(self) -> None:
        if isinstance(self.screen, dialog.Dialog):
            sections = [("This window", self.screen.all_commands)]
            self.push_screen(dialog.HelpDialog(self.screen.title_text, sections))
            return
        areas = ["problem", self.state.area] if self.workspace.is_left else [self.state.area, "problem"]
        areas = ["lesson", *areas] if self.lesson is not None else areas
        self.push_screen(dialog.help_of_areas(areas, self.own_commands))

    def action_command_palette(self) -> None:
        """The commands of the window that is open, but for those of its fields, or of all screens."""
        window = self.screen
        if isinstance(window, lists.PaletteDialog):
            return
        if not isinstance(window, dialog.Dialog):
            offered = [command for command in COMMANDS if command.name != "command_palette"]
            self.push_screen(lists.PaletteDialog([*offered, *self.own_commands]), self.action_run_command)
            return

        async def run(command: Command | None) -> None:
            if command is not None:
                await window.run_action(command.name)

        works = [one for one in window.all_commands if hasattr(window, f"action_{one.action}")]
        self.push_screen(lists.PaletteDialog(works), run)

    def action_examples(self) -> None:
        self.push_screen(lists.ExamplesDialog(), self.open)

    def action_history(self) -> None:
        if not self._is_kept_back():
            self.push_screen(tables.QuestionsDialog(self.state), self.open)

    async def action_model(self) -> None:
        if self.is_guest:
            self.notify(NO_FILES, severity="warning")
        else:
            await self.open(kinds.Openable("llama-3-8b", "model"))

    def action_open_file(self) -> None:
        self.push_screen(opening.OpenDialog(self.state, not self.is_guest), self.open)

    def action_shardings(self) -> None:
        self._rank(tables.ShardingsDialog)

    def action_ranking(self) -> None:
        self._rank(tables.RankingDialog)

    def _rank(self, table: Callable[[ResolvedProblem], Screen[object]]) -> None:
        if self._is_kept_back():
            return
        resolved = self.state.resolved
        if resolved.faults:
            said = as_sentence(resolved.faults[0].message)
            self.notify(f"{said} esc restores the last valid problem.", severity="warning")
        elif resolved.planning is not None:
            self.notify("Your problem is still being planned; try again in a moment.")
        else:
            self.push_screen(table(resolved), self.open)

    def action_lessons(self) -> None:
        open_now = self.lesson.controller.lesson if self.lesson is not None else None
        self.push_screen(lists.LessonsDialog(self.progress, open_now), self.open_lesson)

    async def open_lesson(self, lesson: Lesson | Attempt | None) -> None:
        """Continue a lesson where it was left, or open an attempt as it is, in place of the open lesson."""
        if lesson is None:
            return
        try:
            controller, note = await view.controller_of(lesson, self.progress, self._is_presenting)
        except ShardvizError as error:
            self.notify(error_words(error), severity="error")
            return
        if self.lesson is None:
            self.lesson = view.LessonView(self.workspace, self.progress, controller)
        await self.lesson.open(controller)
        if note:
            self.notify(note, timeout=10)
        self.progress.report(self)

    async def action_lesson(self, what: str) -> None:
        if self.lesson is None:
            return
        controller = self.lesson.controller
        if what == "leave":
            await self._close_lesson(self.lesson)
        elif what == "next" and controller.kind == "code" and controller.after is not None:
            await self.open_lesson(controller.after)
        else:
            await self.lesson.do(what)

    async def leave_lesson(self) -> None:
        """Back to the problem of one's own, as it was, where a lesson is open; L leads back to that."""
        if self.lesson is not None:
            await self._close_lesson(self.lesson)
            self.notify("The lesson is closed at this stage; L continues it.")

    async def _close_lesson(self, lesson: LessonView) -> None:
        self.lesson = None
        await lesson.leave()

    def shared(self) -> Shared:
        if self.lesson is not None:
            return self.lesson.shared()
        return share.Shared(self.state.resolved.draft, self.state.area)

    def jax_code(self) -> str:
        """The JAX program of what is on screen. Raises `ShardvizError` where it would not run."""
        return (self.lesson is not None and self.lesson.program) or self.pane.jax_code()

    def action_code(self) -> None:
        if self._is_kept_back():
            return
        try:
            self.push_screen(export.CodeDialog(self.jax_code()))
        except ShardvizError as error:
            self.notify(error_words(error), severity="warning")

    def action_export(self, suffix: str = "svg") -> None:
        if self._is_kept_back():
            return
        if self.is_guest:
            self.notify(NO_FILES, severity="warning")
            return
        self.clear_notifications()
        exports = export.exports_of(self.screen_stack[0], self.pane, self.jax_code)
        self.push_screen(export.ExportDialog(exports, f"shardviz-{self.state.area}", suffix))

    def action_command_line(self) -> None:
        line = self.lesson.command_line if self.lesson is not None else ""
        if line or not self._is_kept_back():
            shared = self.shared()
            self.push_screen(export.CommandLineDialog(line or self.pane.command_line(), shared))
            if self.lesson is not None and not shared.lesson:
                self.notify("The string holds only the problem, not the lesson's file.")

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

    async def action_restore(self) -> None:
        if self.is_guest:
            self.notify("A visitor's session is not kept; y copies it as a string.", severity="warning")
            return
        last = await self._session.last()
        if last is None:
            self.notify(self._session.problem or "No last session is saved.", severity="warning")
            return
        await self.leave_lesson()
        self.state.go_on(last)
        await self.action_show(last.screen)

    def action_theme(self) -> None:
        names = [theme.name for theme in THEMES]
        self.theme = names[(names.index(self.theme) + 1) % len(names)]
        self.notify(f"The theme is {self.theme.removeprefix('shardviz-')}.")

    def action_help_quit(self) -> None:
        """`ctrl+c` copies in a field; elsewhere it says how to quit."""
        self.notify("q quits; in a field, ctrl+q.")

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a notification in place of the one before, without markup."""
        self.clear_notifications()
        super().notify(message, title=title, severity=severity, timeout=timeout, markup=markup)

    def on_unmount(self) -> None:
        self._session.keep()
        if "progress" in vars(self):
            self.progress.close()
        self.state.close()
