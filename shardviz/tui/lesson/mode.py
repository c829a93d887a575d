"""The application while a lesson is open in it: what stands where at each stage, and what its keys do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shardviz.drafts.form import History
from shardviz.drafts.resolve import resolve
from shardviz.drafts.wording import error_words
from shardviz.errors import ShardvizError
from shardviz.lessons.attempt import Attempt
from shardviz.lessons.sharing import shared_of
from shardviz.render.problem_picture import chain_lines
from shardviz.tui.lesson.classroom import NOT_REVEALED, Classroom
from shardviz.tui.lesson.widgets import LOW, CodePage, Curtain, GoalStrip, Guide, LessonBar, Side
from shardviz.tui.registry import LESSON
from shardviz.tui.themes import PROJECTOR

if TYPE_CHECKING:
    from textual import events

    from shardviz.drafts.resolve import ResolvedProblem
    from shardviz.drafts.share import Shared
    from shardviz.tui.app import ShardvizApp
    from shardviz.tui.command import Command

CURTAINED = "That would show the answer: predict first."
BEHIND = "B goes back to the sandbox and its screens."
ALWAYS = {"next", "back", "hint", "reset", "leave"}
"""What the keys of a lesson mean even where they do nothing, so that no screen takes them for its own."""


@dataclass(frozen=True)
class Own:
    """What was on screen before the lesson, to come back to."""

    history: History
    scene: ResolvedProblem
    area: str
    step_number: int
    is_left: bool
    theme: str


class LessonMode:
    """Puts a classroom's stages on the application's screen, and keeps what was there before.

    `left` and `right` are what takes the place of the problem and of the screen; None leaves them there.
    """

    def __init__(self, app: ShardvizApp, classroom: Classroom) -> None:
        self.app, self.classroom = app, classroom
        self.own = Own(app.history, app.scene, app.pane.area, app.step_number, app.is_left, app.theme)
        self._bar, self._strip = LessonBar(classroom), GoalStrip(classroom)
        self._guide, self._curtain, self._code = Guide(classroom), Curtain(classroom.is_presented), CodePage()

    @property
    def left(self) -> Side | None:
        room = self.classroom
        return None if room.kind == "change" and not room.is_about_collective else self._guide

    @property
    def right(self) -> Side | None:
        if self.classroom.kind == "code":
            return self._code
        return self._curtain if self.classroom.is_curtained else None

    def refusal(self, area: str = "") -> str:
        """Why a screen cannot be shown now, or, without one, why the problem cannot be given out; empty where
        nothing speaks against it."""
        room = self.classroom
        if room.kind == "predict":
            prediction = room.attempt.prediction
            is_open = area and prediction is not None and area == prediction.before
            return "" if is_open else NOT_REVEALED if room.is_presented else CURTAINED
        return BEHIND if area and room.kind == "code" else ""

    @property
    def command_words(self) -> str:
        """The command line of the lesson, while that of the problem would show the answer; else empty."""
        number = self.classroom.lesson.number
        return f"shardviz lesson {number}" if self.classroom.kind == "predict" and number else ""

    @property
    def program(self) -> str:
        """The lesson's own program where its code is shown; empty where it is that of what was made."""
        return self.classroom.lesson.program if self.classroom.kind == "code" else ""

    def shared(self) -> Shared:
        """The lesson at its stage."""
        return shared_of(self.classroom.attempt, self.app.pane.area)

    @property
    def commands(self) -> list[Command]:
        """The lesson's commands that do something now."""
        found = self.classroom.commands
        return [each for each in found if self._is_asking or each.name not in _MOVES]

    @property
    def turn(self) -> str:
        """What the key that leads from the left to the right, and back, leads to; empty where it does not."""
        if self.classroom.is_curtained:
            return ""
        if self.app.is_left:
            return "code" if self.classroom.kind == "code" else "picture"
        return "problem" if self.left is None else "lesson"

    @property
    def _is_asking(self) -> bool:
        """Whether arrows and enter choose an answer: they are the screen's while the keys go there."""
        return self.app.is_left or self.classroom.is_curtained

    def commands_among(self, others: Sequence[Command]) -> list[Command]:
        """All that works now: help, what leads on in the lesson, the screen's, and what leads back."""
        own = self.commands
        ahead = [command for command in own if command.name not in _BACK]
        keys = {
            key for command in LESSON if command in own or command.name in _ALWAYS for key in command.keys
        }
        free = filter(None, (self._turned(command).without(keys) for command in others))
        first, *rest = [command for command in free if command.name != "problem" or self.turn]
        screen = [command for command in rest if command.area != "app"]
        kept_back = _GIVE_OUT if self.refusal() else ()
        app = [command for command in rest if command.area == "app" and command.name not in kept_back]
        turn = [command for command in app if command.name == "problem" and self.app.is_narrow]
        back = [command for command in own if command.name in _BACK]
        return [first, *ahead, *turn, *screen, *back, *(command for command in app if command not in turn)]

    def _turned(self, command: Command) -> Command:
        return replace(command, footer=self.turn) if command.name == "problem" else command

    def command_of(self, event: events.Key) -> Command | None:
        """What a key means to the lesson, before it means anything else."""
        works = self.commands
        for command in LESSON:
            if event.key in command.keys and (command in works or command.name in _ALWAYS):
                return command
        return None

    async def begin(self) -> None:
        """Put the lesson's widgets on screen, and its stage."""
        main, body = self.app.screen_stack[0], self.app.screen_stack[0].query_one("#body")
        await main.mount(self._bar, before=0)
        await main.mount(self._strip, before=body)
        await body.mount(self._guide, before=0)
        await body.mount(self._curtain, self._code)
        if self.classroom.is_presented:
            self.app.theme = PROJECTOR.name
        await self._enter()

    async def open(self, classroom: Classroom) -> None:
        """Another lesson in place of this one."""
        self.classroom = classroom
        for widget in (self._bar, self._strip, self._guide):
            widget.classroom = classroom
        await self._enter()

    async def leave(self) -> None:
        """Take the widgets away, and put back what was there before."""
        for widget in (self._bar, self._strip, self._guide, self._curtain, self._code):
            await widget.remove()
        app, own = self.app, self.own
        if self.classroom.is_presented:
            app.theme = own.theme
        app.lesson = None
        app.history, app.step_number = own.history, own.step_number
        app.show(resolve(own.history.draft, own.scene))
        await app.put_on(own.area)
        app.face(own.is_left)

    async def do(self, what: str) -> None:
        """What a command says, where it does something now."""
        room, before = self.classroom, self.classroom.attempt
        if what == "leave":
            await self.leave()
            return
        if what == "next" and not room.may_go_on:
            self.app.notify(room.refusal)
            return
        if not room.does(what):
            return
        if what == "next" and room.kind == "code":
            assert room.opened.after is not None
            await self.app.open_lesson(room.opened.after)
        elif what == "reset":
            self.app.edit(room.lesson.setup)
        elif what in ("up", "down"):
            room.move(1 if what == "down" else -1)
        else:
            {"next": room.next, "back": room.back, "hint": room.next_hint}.get(what, room.answer)()
        if room is self.classroom and what in ("next", "back", "answer", "reveal"):
            self.app.clear_notifications()
            await self._enter()
        if room is self.classroom:
            self.draw()
            self._keep(before)

    def show_scene(self, scene: ResolvedProblem) -> None:
        """The draft on screen has changed."""
        before = self.classroom.attempt
        self.classroom.look_at(scene)
        self._keep(before)
        self.draw()

    def draw(self) -> None:
        """Draw what the lesson has on screen, for the size of the terminal."""
        self._bar.refresh()
        self._strip.display = self.classroom.kind == "change"
        self._strip.draw()
        self._guide.draw()
        if self.classroom.is_curtained:
            self._curtain.show(chain_lines(self.app.scene, self.app.palette))
        main = self.app.screen_stack[0]
        main.set_class(self.app.size.height < LOW, "low")
        main.set_class(self.classroom.kind == "change", "sandbox")

    def _keep(self, before: Attempt) -> None:
        if self.classroom.attempt != before and not self.classroom.is_presented:
            self.app.record.keep(self.classroom.attempt)
            self.app.tell_record()

    async def _enter(self) -> None:
        """Put a stage on screen, from its beginning; the keys go to where there is something to choose or to
        change, else to the picture."""
        app, room = self.app, self.classroom
        app.history, app.step_number = room.history, 0
        app.show(resolve(app.history.draft, app.scene))
        await app.put_on(room.screen)
        if room.kind == "code":
            self._code.show(self._program())
        is_left = self.left is None or room.kind == "predict"
        app.face(is_left or (app.is_narrow and room.kind != "change"))
        app.pane.begin(room.place)
        self.draw()

    def _program(self) -> str:
        try:
            return self.app.jax_code()
        except ShardvizError as error:
            return f"# {error_words(error)}"


_BACK = {"lesson('back')", "lesson('leave')"}
_GIVE_OUT = {"code", "export"}
_MOVES = {f"lesson('{what}')" for what in ("answer", "down", "up")}
_ALWAYS = {f"lesson('{what}')" for what in ALWAYS}
