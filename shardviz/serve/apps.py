"""The application for a guest: alone, for all pupils who follow a teacher's page, for one who has taken over,
or for the teacher whose page leads."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict

from shardviz.compiler import Worker
from shardviz.errors import QuestionError
from shardviz.forms.form import OPEN
from shardviz.forms.share import Shared, from_string, to_string
from shardviz.lessons.attempt import UNKNOWN, attempt_of
from shardviz.serve.lecture import PagePointer
from shardviz.tui.app import ShardvizApp
from shardviz.tui.layout_pane import LayoutPane, LayoutView
from shardviz.tui.registry import TABLES, Command, bindings
from shardviz.tui.step.pane import StepPane
from shardviz.tui.themes import THEMES

PAUSE_S = 0.05
"""The seconds between two looks at what is on screen: several keys that follow one another are one change."""
FOLLOW = TABLES["FOLLOW"]


class VisitorApp(ShardvizApp):
    """The application without files, with compilers that start when something shows their answers."""

    def __init__(self, shared: Shared, worker: Worker, present: bool = False) -> None:
        """Open on a shared problem, or in a shared lesson. Raises `LessonError` for an unknown one."""
        lesson = attempt_of(shared) if shared.lesson else None
        draft = None if lesson is not None else shared.draft
        super().__init__(draft, shared.screen, worker, is_guest=True, lesson=lesson, present=present)

    def ask(self) -> None:
        resolved = self.state.resolved
        has_product = any(len(part.operands) > 1 for part in resolved.problem.parts)
        if self.state.area != "layout" or (has_product and OPEN in resolved.draft.specs):
            super().ask()

    def on_workspace_pane_shown(self) -> None:
        self.ask()  # Textual runs the application's own handler too.

    def tell(self, said: dict[str, object]) -> None:
        if self._driver is not None:
            self._driver.write_meta(said)  # type: ignore[attr-defined]


class FollowerApp(VisitorApp):
    """Shows what the teacher's page shows, for all who follow in windows of one size; nobody types in it.
    `led` is what that page shows, and its pointer. Of several changes while it draws, it shows the last."""

    commands = ()  # type: ignore[assignment]

    def __init__(self, shared: Shared, worker: Worker) -> None:
        super().__init__(shared, worker, present=True)
        self.led = to_string(shared), PagePointer()
        self._followed: str | None = None

    def validate_theme(self, _theme: str) -> str:
        """Stay dark: the lines of a picture that a page scales do not quite touch."""
        return THEMES[0].name

    async def begin(self) -> None:
        await super().begin()
        self._followed = ""
        await self.follow()

    async def follow(self) -> None:
        string, pointer = self.led
        if self._followed is None:
            return  # it goes along as soon as it has begun
        if string != self._followed:
            self._followed = string
            await self._go_to(from_string(string))
        if pointer.lens is None or 0 <= pointer.lens < self.state.resolved.problem.mesh.size:
            self.state.set_lens(pointer.lens)
        self.state.set_step(pointer.step)
        for pane in self.workspace.shown:
            if isinstance(pane, StepPane):
                pane.call_later(pane.show_round, pointer.round)
            if isinstance(pane, LayoutPane) and pointer.layout:
                pane.call_after_refresh(pane.show_view, LayoutView(*pointer.layout))

    async def _go_to(self, led: Shared) -> None:
        self.clear_notifications()
        if led.lesson:
            await self.open_lesson(attempt_of(led))
        else:
            await self.leave_lesson(is_told=False)
            self.state.edit(led.draft)
        if self.state.area != led.screen:
            await self.workspace.put_on(led.screen)
            self.workspace.face(self.workspace.is_left)
        if self.lesson is not None and self.lesson.controller.attempt.prediction is not None:
            self.workspace.face(is_left=False)  # the page itself has the question and its choices


class PupilApp(VisitorApp):
    """The application of a pupil who has taken over, and goes on alone."""

    BINDINGS = bindings(FOLLOW)
    own_commands = FOLLOW

    def __init__(self, shared: Shared, worker: Worker) -> None:
        super().__init__(shared, worker)
        self._told: dict[str, object] = {}

    async def begin(self) -> None:
        await super().begin()
        self.set_interval(PAUSE_S, self._look)

    @property
    def commands(self) -> list[Command]:
        first, *rest = super().commands
        return [first, *rest] if self.workspace.part.typing else [first, *FOLLOW, *rest]

    def action_follow(self) -> None:
        self.tell({"type": "follows"})

    async def action_lesson(self, what: str) -> None:
        if what == "answer" and self.lesson is not None and self.lesson.controller.does(what):
            controller = self.lesson.controller
            name, number = controller.lesson.name, controller.attempt.stage.number
            if number not in controller.attempt.again:
                with suppress(QuestionError):  # of what is typed
                    choice = controller.choice
                    self.tell({"type": "predicts", "lesson": name, "number": number, "choice": choice})
        await super().action_lesson(what)

    def _look(self) -> None:
        shared = self.shared()
        here: dict[str, object] = {"type": "stands", "lesson": shared.lesson, "stage": shared.stage}
        if here != self._told:
            self._told = here
            self.tell(here)


class TeacherApp(VisitorApp):
    """Presents lessons, and tells the server what is on screen, for the pupils to follow."""

    def __init__(self, shared: Shared, worker: Worker) -> None:
        super().__init__(shared, worker, present=True)
        self._led: tuple[Shared, PagePointer] | None = None

    async def begin(self) -> None:
        await super().begin()
        self.set_interval(PAUSE_S, self._lead)

    async def action_lesson(self, what: str) -> None:
        await super().action_lesson(what)
        self._lead()  # the others draw while this page does

    def _lead(self) -> None:
        """Tell where the page is and looks, unless something is still being typed."""
        state, shared = self.state, self.shared()
        views = [pane.view for pane in self.workspace.shown if isinstance(pane, LayoutPane)]
        layout = next((view for view in views if view.array), ())
        pointer = PagePointer(
            state.lens, state.step_number, state.round_number * (state.area == "step"), layout
        )
        led = shared, pointer
        if led == self._led or self.state.resolved.draft != self.state.history.draft:
            return
        self._led = led
        self.tell({"type": "leads", "shared": to_string(shared), "asks": self._asks, **asdict(pointer)})

    @property
    def _asks(self) -> dict[str, object] | None:
        controller = None if self.lesson is None else self.lesson.controller
        if controller is None or (prediction := controller.attempt.prediction) is None:
            return None
        facts = controller.told
        return {
            "number": controller.attempt.stage.number,
            "question": prediction.question,
            "choices": (*facts.choices, UNKNOWN),
            "answer": facts.answer,
            "is_shown": controller.kind == "reveal",
        }


APPS = {"visitor": VisitorApp, "follower": FollowerApp, "pupil": PupilApp, "teacher": TeacherApp}
"""The application of each role."""
