"""The application: the windows above its screen, what becomes of what they are left with, and its lessons."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from textual.screen import Screen

from shardviz.errors import QuestionError
from shardviz.forms.form import History, ProblemForm
from shardviz.forms.wording import as_sentence
from shardviz.lazy_names import LazyImports
from shardviz.tui.kept import KeptSession, LessonProgress
from shardviz.tui.main_screen import FOR_FILES, MainScreenApp
from shardviz.tui.registry import COMMANDS, Command
from shardviz.tui.state import EditorState, OpenedProfile
from shardviz.tui.themes import set_up_themes
from shardviz.tui.workspace import PANES, Workspace

with LazyImports():
    from shardviz.forms import enter, jumps, share
    from shardviz.lessons import attempt, lesson as lessons
    from shardviz.tui.dialogs import dialog, export, lists, tables
    from shardviz.tui.lesson import view
    from shardviz.tui.opening import dialog as opening, kinds, pages

if TYPE_CHECKING:
    from pathlib import Path

    from textual.dom import DOMNode

    from shardviz.compiler import Worker
    from shardviz.forms.resolve import ResolvedProblem


class ShardvizApp(MainScreenApp):
    """The main screen with its windows and lessons, and a session that is kept."""

    def __init__(
        self,
        draft: ProblemForm | History | None = None,
        screen: str = "layout",
        worker: Worker | None = None,
        is_guest: bool = False,
        lesson: lessons.Lesson | attempt.Attempt | None = None,
        present: bool = False,
        warning: str = "",
        keys: Path | None = None,
    ) -> None:
        """Open on a draft, alone or with its steps, or in a lesson: where it was left, at the stage of an
        attempt that was sent, or to `present` it to a class. A `warning` is shown first. `keys` is the file
        with keys of one's own."""
        if lesson is not None:
            screen = (lesson.lesson if isinstance(lesson, attempt.Attempt) else lesson).screen
        draws_first = screen == "layout" and lesson is None
        # Without colours the terminal's own are taken, since shades of grey would show nothing either.
        super().__init__(ansi_color="NO_COLOR" in os.environ or None)
        set_up_themes(self)
        self.state = EditorState(self, draft or ProblemForm(), screen, worker, draws_first)
        self.workspace = Workspace(self.state)
        self.is_guest, self.keys = is_guest, keys
        self._first_lesson, self._is_presenting, self._warning = lesson, present, warning
        self._session = KeptSession(self, self.state, may_keep=not is_guest)
        self.progress = LessonProgress(is_guest)

    async def enter(self) -> None:
        if self._warning:
            self.notify(self._warning, severity="warning", timeout=15)
        if self._first_lesson is not None:
            await self.open_lesson(self._first_lesson)

    def problem_changed(self, is_other: bool) -> None:
        self._session.keep_soon()
        super().problem_changed(is_other)

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

    async def action_window(self, name: str, *more: str) -> None:
        """Open a window, unless a lesson keeps back what it shows, or it is not for a guest."""
        is_telling = self.lesson is not None and name in view.TELLING
        if not is_telling or not self.is_kept_back():
            if self.is_guest and name in FOR_FILES:
                raise QuestionError("a visitor's session cannot write files; c shows the code, y copies it")
            await self.open(self._window(name, *more))

    def _window(self, name: str, suffix: str = "svg") -> object:
        """The window of a name; that of an export begins with the form of a `suffix`. Raises `ShardvizError`
        where the problem on screen does not allow it."""
        match name:
            case "examples":
                return lists.ExamplesDialog()
            case "lessons":
                open_now = self.lesson.controller.lesson if self.lesson is not None else None
                return lists.LessonsDialog((self.progress, open_now))
            case "history":
                return tables.QuestionsDialog(self.state)
            case "open":
                return opening.OpenDialog(self.state, not self.is_guest)
            case "model":
                return kinds.Openable("llama-3-8b", "model")
            case "jump":
                return lists.JumpDialog(self.state.resolved)
            case "code":
                return export.CodeDialog(self.jax_code())
            case "export":
                self.clear_notifications()
                exports = export.exports_of(self.screen_stack[0], self.pane, self.jax_code)
                return export.ExportDialog(exports, f"shardviz-{self.state.area}", suffix)
            case "shardings":
                return tables.ShardingsDialog(self._planned)
            case _:
                return tables.RankingDialog(self._planned)

    @property
    def _planned(self) -> ResolvedProblem:
        """The problem on screen. Raises `QuestionError` where it is wrong, or its plan is not here yet."""
        resolved = self.state.resolved
        if resolved.faults:
            said = as_sentence(resolved.faults[0].message)
            raise QuestionError(f"{said} esc restores the last valid problem")
        if resolved.planning is not None:
            raise QuestionError("your problem is still being planned", "try again in a moment")
        return resolved

    async def open(self, found: object) -> None:
        """Put on screen what a window was left with: a problem, as one step of undo, a place of it, a lesson,
        another window, or what a file or a text is. Raises `ShardvizError` for what cannot be read."""
        match found:
            case None:
                pass
            case Screen():
                self.push_screen(found, self.open)
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
            case lessons.Lesson():
                await self.open_lesson(found)

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

        works = (
            one for one in window.all_commands if "." in one.name or hasattr(window, f"action_{one.action}")
        )
        self.push_screen(lists.PaletteDialog([*works]), run)

    async def open_lesson(self, lesson: lessons.Lesson | attempt.Attempt) -> None:
        """Continue a lesson where it was left, or open an attempt as it is, in place of the open one. Raises
        `ShardvizError` for a lesson that cannot be opened."""
        controller, note = await view.controller_of(lesson, self.progress, self._is_presenting)
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
            await self.leave_lesson(is_told=False)
        elif what == "next" and controller.kind == "code" and controller.after is not None:
            await self.open_lesson(controller.after)
        else:
            await self.lesson.do(what)

    async def leave_lesson(self, is_told: bool = True) -> None:
        """Back to the problem of one's own, as it was, where a lesson is open; L leads back to that."""
        if self.lesson is not None:
            lesson, self.lesson = self.lesson, None
            await lesson.leave()
            if is_told:
                self.notify("The lesson is closed at this stage; L continues it.")

    def shared(self) -> share.Shared:
        if self.lesson is not None:
            return self.lesson.shared()
        return share.Shared(self.state.resolved.draft, self.state.area)

    def jax_code(self) -> str:
        """The JAX program of what is on screen. Raises `ShardvizError` where it would not run."""
        return (self.lesson is not None and self.lesson.program) or self.pane.jax_code()

    def action_command_line(self) -> None:
        line = self.lesson.command_line if self.lesson is not None else ""
        if line or not self.is_kept_back():
            shared = self.shared()
            self.push_screen(export.CommandLineDialog(line or self.pane.command_line(), shared))
            if self.lesson is not None and not shared.lesson:
                self.notify("The string holds only the problem, not the lesson's file.")

    async def action_restore(self) -> None:
        if self.is_guest:
            raise QuestionError("a visitor's session is not kept", "y copies it as a string")
        last = await self._session.last()
        if last is None:
            raise QuestionError(self._session.problem or "no last session is saved")
        await self.leave_lesson()
        self.state.go_on(last)
        await self.action_show(last.screen)

    def on_unmount(self) -> None:
        self._session.close()
        self.progress.close()
        self.state.close()
