"""The application while a lesson is open in it: what each stage puts on screen, and what its keys do."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread

from textual import events
from textual.timer import Timer

from shardviz.errors import ShardvizError
from shardviz.forms.resolve import ResolvedProblem
from shardviz.forms.share import Shared
from shardviz.forms.state_file import state_path
from shardviz.forms.wording import error_words
from shardviz.lessons.attempt import Attempt, afresh, begin, shared_of, with_own
from shardviz.lessons.lesson import Lesson
from shardviz.lessons.writing import SavedFile, WritingCheck, check_written, starter_file
from shardviz.render.problem_picture import chain_lines
from shardviz.tui.kept import LessonProgress
from shardviz.tui.lesson.controller import NOT_REVEALED, LessonController
from shardviz.tui.lesson.sides import CodePage, GoalStrip, Guide, HiddenPane, LessonBar
from shardviz.tui.opening.pages import LineEntry
from shardviz.tui.pane import Side
from shardviz.tui.registry import LESSON, Command
from shardviz.tui.themes import PROJECTOR
from shardviz.tui.workspace import Workspace

LOW = 20
"""From so many lines of the terminal there is room for the tabs."""
POLL_S = 0.5
"""Seconds between two looks at whether a learner's file was saved."""
HIDDEN = "That would show the answer: predict first."
ALWAYS = {f"lesson('{what}')" for what in ("next", "back", "hint", "reset", "leave")}
"""The commands whose keys mean them even where they do nothing, so that no pane takes them for its own."""
LEADING_BACK = {"lesson('back')", "lesson('leave')"}
TELLING = ("code", "export", "history", "jump", "ranking", "shardings")
"""The windows that would show the answer."""


class LessonView:
    """Puts a lesson's stages into the application's workspace, and keeps what was there before."""

    def __init__(self, workspace: Workspace, progress: LessonProgress, controller: LessonController) -> None:
        self.workspace, self.app, self.state = workspace, workspace.app, workspace.state
        self.progress, self.controller = progress, controller
        self._own_side, self._own_theme = workspace.is_left, self.app.theme
        self.state.set_all_aside()
        self._bar, self._strip, self._guide = LessonBar(), GoalStrip(markup=False), Guide()
        self._guide.set_class(controller.is_presented, "presented")
        self._hidden, self._code = HiddenPane(controller.is_presented), CodePage()
        self._saves: Timer | None = None
        """Looks at whether the learner's file was saved."""
        self._written = ""
        """The text that was checked last."""

    def refusal(self, area: str = "") -> str:
        """The reason why a screen cannot be shown now, or, without one, why the problem cannot be given out;
        empty where nothing speaks against it."""
        controller = self.controller
        if controller.kind == "predict":
            prediction = controller.attempt.prediction
            is_open = area and prediction is not None and area == prediction.before
            return "" if is_open else NOT_REVEALED if controller.is_presented else HIDDEN
        if area == "time" and self.state.is_quiet:
            return "This lesson counts bytes; seconds come with the roofline, in a later lesson."
        return "B goes back to the sandbox and its screens." if area and controller.kind == "code" else ""

    @property
    def is_sandbox(self) -> bool:
        return self.controller.kind == "change"

    @property
    def command_line(self) -> str:
        """The command line of the lesson, while that of the problem would show the answer; else empty."""
        number = self.controller.lesson.number
        return f"shardviz lesson {number}" if self.controller.kind == "predict" and number else ""

    @property
    def program(self) -> str:
        """The lesson's own program where its code is shown; empty where it is that of the learner's work."""
        return self.controller.lesson.program if self.controller.kind == "code" else ""

    def shared(self) -> Shared:
        return shared_of(self.controller.attempt, self.state.area)

    @property
    def commands(self) -> list[Command]:
        """The lesson's commands that do something now; those that choose an answer, unless the pane has the
        keys."""
        chooses = self.workspace.is_left or self.controller.is_hidden
        choosing = () if chooses else ("lesson('answer')", "lesson('down')", "lesson('up')")
        return [command for command in self.controller.commands if command.name not in choosing]

    @property
    def turn(self) -> str:
        """The name of the other side, to which `p` leads; empty where it does not."""
        if self.controller.is_hidden:
            return ""
        if self.workspace.is_left:
            return "code" if self.controller.kind == "code" else "picture"
        return "problem" if self._covers[0] is None else "lesson"

    def commands_among(self, others: Sequence[Command]) -> list[Command]:
        """All that works now: help, what leads on in the lesson, the pane's, and what leads back."""
        own = self.commands
        ahead = [command for command in own if command.name not in LEADING_BACK]
        keys = {key for command in LESSON if command in own or command.name in ALWAYS for key in command.keys}
        named = (replace(each, footer=self.turn) if each.name == "problem" else each for each in others)
        free = filter(None, (each.without(keys) for each in named))
        kept_back = {"problem"} if not self.turn else set()
        kept_back |= {f"window('{name}')" for name in TELLING if self.refusal()}
        first, *rest = [each for each in free if each.area != "app" or each.name not in kept_back]
        pane = [each for each in rest if each.area != "app"]
        turn = [each for each in rest if each.name == "problem" and self.workspace.is_narrow]
        back = [each for each in own if each.name in LEADING_BACK]
        return [first, *ahead, *turn, *pane, *back, *(each for each in rest if each not in (*pane, *turn))]

    def command_of(self, event: events.Key) -> Command | None:
        """The lesson's command that a key means, before it means anything else."""
        works = self.commands
        meant = (command for command in LESSON if command in works or command.name in ALWAYS)
        return next((command for command in meant if event.key in command.keys), None)

    def takes(self, event: events.Key) -> bool:
        """Type a key into the answer, where one is typed; return whether it was one for it."""
        if not self.controller.takes(event.key, event.character):
            return False
        self._guide.draw()
        return True

    async def open(self, controller: LessonController) -> None:
        """Put a lesson on screen, at its stage, in place of the one that was open here."""
        self.controller = controller
        for widget in (self._bar, self._strip, self._guide):
            widget.controller = controller
        if not self._bar.is_attached:
            self.workspace.screen.add_class("lesson")
            await self.workspace.screen.mount(self._bar, before=0)
            await self.workspace.screen.mount(self._strip, before=self.workspace)
            await self.workspace.mount(self._guide, before=0)
            await self.workspace.room.mount(self._hidden, self._code)
            if controller.is_presented:
                self.app.theme = PROJECTOR.name
        await self._enter()
        # Beside the screen, as some take half a second.
        answers = controller.compute_answers
        self.app.call_after_refresh(self.app.run_worker, answers, thread=True, exit_on_error=False)

    async def leave(self) -> None:
        self._end_writing()
        self.workspace.screen.remove_class("lesson")
        for widget in (self._bar, self._strip, self._guide, self._hidden, self._code):
            await widget.remove()
        if self.controller.is_presented:
            self.app.theme = self._own_theme
        self.workspace.covers, self.state.is_quiet = None, False
        await self.workspace.put_on(self.state.take_back())
        self.workspace.face(self._own_side)

    async def do(self, what: str) -> None:
        controller, before = self.controller, self.controller.attempt
        if what == "next" and not controller.may_go_on:
            self.app.notify(controller.refusal)
        if not controller.does(what):
            return
        if what == "reset":
            self.state.edit(controller.lesson.setup)
        elif what == "write":
            entry = LineEntry(controller.written, controller.lesson.title)
            self.app.push_screen(entry, self._check)
        elif what in ("up", "down"):
            controller.move(1 if what == "down" else -1)
        else:
            commands = {"next": controller.next, "back": controller.back, "hint": controller.next_hint}
            commands.get(what, controller.answer)()
        if what in ("next", "back", "answer", "reveal"):
            self.app.clear_notifications()
            await self._enter()
        self.draw()
        self._keep(before)

    def show_problem(self, resolved: ResolvedProblem) -> None:
        """Compare another problem with the goal."""
        before = self.controller.attempt
        self.controller.look_at(resolved)
        self._keep(before)
        self.draw()

    def _begin_writing(self) -> None:
        """Check what was written before, and look for saves of a file. A visitor's code does not run here."""
        controller, lesson = self.controller, self.controller.lesson
        if controller.is_field:
            self._check(controller.written)
            return
        self._code.show(starter_file(lesson))
        if not self.progress.is_guest:
            file = SavedFile(state_path(f"{lesson.name.replace('-', '_')}.py"), starter_file(lesson))
            controller.file = str(file.path).replace(str(Path.home()), "~", 1)
            self._saves = self.app.set_interval(POLL_S, lambda: self._look(file))
            self._look(file)

    def _end_writing(self) -> None:
        if self._saves is not None:
            self._saves.stop()

    def _look(self, file: SavedFile) -> None:
        text = file.saved()
        if text is not None:
            self._code.show(text)
            self._check(text, file.path)

    def _check(self, text: str | None, file: Path | None = None) -> None:
        """Show what was written, and its check as soon as that is made; None where it was left as it is."""
        if text is None:
            return
        self._written = text
        self._show_written(text, None)
        lesson, worker = self.controller.lesson, self.state.queries.worker

        def show(check: WritingCheck) -> None:
            if text == self._written:
                self._show_written(text, check)

        def wait() -> None:
            check = check_written(lesson, text, worker, file)
            with suppress(RuntimeError):  # the application has ended
                self.app.call_later(show, check)

        # A daemon: whoever quits need not wait for a loop that does not end.
        Thread(target=wait, daemon=True).start()

    def _show_written(self, text: str, check: WritingCheck | None) -> None:
        before = self.controller.attempt
        self.controller.wrote(text, check)
        if self.controller.kind == "write" and self.controller.is_field:
            self.state.open(self.controller.history)
        self._keep(before)
        self.draw()

    def draw(self) -> None:
        self._bar.refresh()
        self._strip.display = self.is_sandbox
        self._strip.draw()
        self._guide.draw()
        if self.controller.is_hidden:
            self._hidden.show(chain_lines(self.state.resolved, self.workspace.panel.palette))
        self.workspace.screen.set_class(self.app.size.height < LOW, "low")
        self.workspace.screen.set_class(self.is_sandbox, "sandbox")

    def _keep(self, before: Attempt) -> None:
        if self.controller.attempt != before and not self.controller.is_presented:
            self.progress.keep(self.controller.attempt)
            self.progress.report(self.app)

    @property
    def _covers(self) -> tuple[Side | None, Side | None]:
        controller = self.controller
        is_free = controller.kind == "change" and controller.lesson.goal.may_change != ("collective",)
        left = None if is_free else self._guide
        if controller.kind == "code" or (controller.kind == "write" and not controller.is_field):
            return left, self._code
        return left, self._hidden if controller.is_hidden else None

    async def _enter(self) -> None:
        controller, workspace = self.controller, self.workspace
        workspace.covers = self._covers
        self.state.is_quiet = not controller.attempt.shown.machine and controller.screen != "time"
        self.state.open(controller.history)
        await workspace.put_on(controller.screen)
        workspace.panel.show_problem()  # in the first frame already
        if controller.kind == "code":
            try:
                self._code.show(self.program or workspace.pane.jax_code())
            except ShardvizError as error:
                self._code.show(f"# {error_words(error)}")
        self._end_writing()
        if controller.kind == "write":
            self._begin_writing()
        is_left = workspace.covers[0] is None or controller.kind == "predict"
        workspace.face(is_left or (workspace.is_narrow and controller.kind != "change"))
        workspace.pane.begin(controller.place)
        self.draw()


async def controller_of(
    lesson: Lesson | Attempt, progress: LessonProgress, is_presented: bool
) -> tuple[LessonController, str]:
    """A lesson at the stage where it was left, or where an attempt that was sent is, and what to say of it.
    What the learner has done stays, and the sandbox as the learner left it is a step of undo away. Raises
    `ShardvizError` where the lesson cannot be opened."""
    sent, lesson = (lesson, lesson.lesson) if isinstance(lesson, Attempt) else (None, lesson)
    own = begin(lesson) if is_presented else await progress.resumed(lesson)
    attempt = afresh(own) if sent is None else with_own(sent, own)
    note = "You continue at the sender's stage. Your answers stay; u in the sandbox restores yours."
    is_other = sent is not None and own not in (attempt, begin(lesson))
    return LessonController(attempt, is_presented, own.draft, progress.seed), note if is_other else ""
