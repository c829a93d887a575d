"""The state of the application: a draft with undo, what is seen of it, the compilers, the kept session."""

from __future__ import annotations

import asyncio
import os
from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

from textual.message import Message

from shardviz.drafts.form import History, ProblemForm
from shardviz.drafts.resolve import resolve, resolve_first
from shardviz.tui.last_session import LastSession
from shardviz.tui.resilient_app import ResilientApp
from shardviz.tui.themes import next_theme, palette_of, set_up_themes

if TYPE_CHECKING:
    from textual.app import App
    from textual.notifications import SeverityLevel
    from textual.timer import Timer

    from shardviz.compiler import Worker
    from shardviz.drafts.examples import Example
    from shardviz.drafts.resolve import ResolvedProblem
    from shardviz.lessons.attempt import Attempt
    from shardviz.lessons.lesson import Lesson
    from shardviz.render.palette import Palette
    from shardviz.tui.command import Command
    from shardviz.tui.compiler_queries import CompilerQueries
    from shardviz.tui.lesson.mode import LessonMode
    from shardviz.tui.lesson.record import Record

KEEP_AFTER_S = 0.5
"""How long after the last edit the session is kept."""


class Editor(ResilientApp):
    """What panel, screens and dialogs know of the application.

    `scene` is what is on screen; `edit` puts another draft there, `show` what is still being typed. `queries`
    asks the compilers. `step_number` is the step of the plan that was opened last, from 1; 0 where none was.
    `lesson` is the lesson that is open, whose sandbox `history` is then; None where none is.
    `is_guest`: a visitor uses it from elsewhere, who has no business with the files of this machine.
    """

    class AnswersChanged(Message):
        """A target's answer has changed."""

    def __init__(
        self,
        draft: ProblemForm | None = None,
        screen: str = "layout",
        worker: Worker | None = None,
        is_guest: bool = False,
    ) -> None:
        # Without colours the terminal's own are taken, since grey ones would tell nothing either.
        super().__init__(ansi_color="NO_COLOR" in os.environ or None)
        set_up_themes(self)
        self.history = History(draft or ProblemForm())
        self.scene: ResolvedProblem = resolve_first(self.history.draft)
        self._worker = worker
        self._last = LastSession()
        self._keeping: Timer | None = None
        self._shown = screen
        self.step_number = 0
        self.is_guest = is_guest
        self.lesson: LessonMode | None = None

    @cached_property
    def queries(self) -> CompilerQueries:
        """The questions to the compilers: loaded behind the first frame."""
        from shardviz.tui.compiler_queries import CompilerQueries

        return CompilerQueries(lambda: self.post_message(self.AnswersChanged()), self._worker)

    @cached_property
    def record(self) -> Record:
        """The learner's progress: loaded with the first lesson."""
        from shardviz.tui.lesson.record import Record

        return Record(self.is_guest)

    def tell_record(self) -> None:
        """Say what the learner has to know of the progress, if anything."""
        if problem := self.record.taken_problem():
            self.notify(problem, severity="warning", timeout=15)

    def kill_compilers(self) -> None:
        """Kill the compilers' processes, for a signal handler: nothing is waited for."""
        if "queries" in vars(self):
            self.queries.kill()

    @property
    def palette(self) -> Palette:
        """The colours of the terminal and the theme."""
        return palette_of(self)

    @abstractmethod
    def show_scene(self) -> None:
        """Draw `scene`."""

    @abstractmethod
    async def action_show(self, name: str) -> None:
        """Put one of the four screens on the right."""

    @abstractmethod
    async def run_command(self, command: Command) -> None:
        """Run a command from wherever one is, on its own screen."""

    @abstractmethod
    def command_words(self) -> str:
        """The command line that shows the same as the screen."""

    @abstractmethod
    def jax_code(self) -> str:
        """The JAX program of what is on screen. Raises `ShardvizError` where it would be too large to run."""

    async def open_example(self, example: Example) -> None:
        """Put an example on screen, as one step of undo, and the screen that shows it best; a lesson ends."""
        await self.leave_lesson()
        self.edit(example.draft)
        self.step_number = 0
        await self.action_show(example.screen)

    async def leave_lesson(self) -> None:
        """Back to the problem of one's own, as it was, where a lesson is open; L leads back to that."""
        if self.lesson is not None:
            await self.lesson.leave()
            self.notify("The lesson is left as it stands; L goes on with it.")

    @abstractmethod
    async def open_lesson(self, lesson: Lesson | Attempt, is_presented: bool = False) -> None:
        """Go on with a lesson where it was left, or open an attempt at one as it is."""

    async def show_step(self, number: int) -> None:
        """Open a collective of the plan, by the number of its step, on the step screen."""
        self.step_number = number
        await self.action_show("step")

    def on_unmount(self) -> None:
        self._keep_session()
        if "record" in vars(self):
            self.record.close()
        self.queries.close()

    def _keep_session(self) -> None:
        """Keep what is on screen for the next time, unless nothing was ever changed; in a lesson, what was
        there before it."""
        own = self.lesson.own if self.lesson is not None else None
        draft, screen = (self.history.draft, self._shown) if own is None else (own.history.draft, own.area)
        if draft != ProblemForm() and not self.is_guest:
            self._last.keep(draft, screen)

    def _keep_soon(self) -> None:
        """Keep it after a pause in typing, away from the screen's thread."""
        if self._keeping is not None:
            self._keeping.stop()
        self._keeping = self.set_timer(KEEP_AFTER_S, lambda: self.run_worker(self._keep_session, thread=True))

    async def action_restore(self) -> None:
        if self.is_guest:
            self.notify("A visitor's session is not kept; y copies it as a string.", severity="warning")
            return
        last = await asyncio.to_thread(lambda: self._last.last)
        if last is None:
            words = self._last.problem or "There is no last session."
            self.notify(words, severity="warning")
            return
        await self.leave_lesson()
        self.edit(last.draft)
        await self.action_show(last.screen)

    def begin(self) -> None:
        """After the first frame: the compilers' process starts behind it."""
        self.queries.start()
        self.ask()
        if not self.is_guest:
            self.run_worker(self._last.load, thread=True)

    def ask(self) -> None:
        """Ask the compilers about what is on screen."""
        self.queries.ask(self.scene)

    def edit(self, draft: ProblemForm) -> None:
        """Put another draft on screen, as one step of undo."""
        if self.history.push(draft) or self.scene.draft != self.history.draft:
            self._read()

    def action_undo(self) -> None:
        if self.history.undo():
            self._read()

    def action_redo(self) -> None:
        if self.history.redo():
            self._read()

    def _read(self) -> None:
        self.show(resolve(self.history.draft, self.scene))

    def show(self, scene: ResolvedProblem) -> None:
        """Put a scene on screen; that of a draft which is still being typed is no step of undo."""
        problem = self.scene.problem, self.scene.targets
        self.scene = scene
        self._keep_soon()
        if (self.scene.problem, self.scene.targets) != problem:
            self.ask()
        self.show_scene()

    def action_cancel(self) -> None:
        if self.queries.cancel():
            self.notify("The compilers are stopped; r asks again.")

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Say something in passing, in place of what was said before."""
        self.clear_notifications()
        super().notify(message, title=title, severity=severity, timeout=timeout, markup=markup)

    def action_help_quit(self) -> None:
        """What `ctrl+c`, which copies in a field, does elsewhere."""
        self.notify("q quits; in a field, ctrl+q.")

    def action_next_theme(self) -> None:
        self.theme = next_theme(self.theme)
        self.notify(f"Theme: {self.theme.removeprefix('shardviz-')}")
        # The theme's variables are the new ones only after this.
        self.call_after_refresh(self.show_scene)


def as_editor(app: App[Any]) -> Editor:
    """The application of a widget, by its own type."""
    assert isinstance(app, Editor)
    return app
