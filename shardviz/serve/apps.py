"""The application for a guest: alone, as a pupil who follows a teacher's page, or as the teacher whose page
leads."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from shardviz.errors import ShardvizError
from shardviz.forms.form import OPEN
from shardviz.forms.share import Shared, from_string, to_string
from shardviz.forms.wording import error_words
from shardviz.lessons.attempt import attempt_of
from shardviz.lessons.course import find
from shardviz.serve.lecture import PagePointer
from shardviz.tui.app import ShardvizApp
from shardviz.tui.pane import Pane
from shardviz.tui.registry import TABLES, Command, bindings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardviz.compiler import Worker

PAUSE_S = 0.2
"""The seconds between two looks at what is on screen: several keys that follow one another are one change."""
FOLLOWS = "This page follows the teacher's, until you go elsewhere in it."
ALONE = "You continue alone. T follows the teacher again."
PREDICTED = "Your prediction is {}. The teacher shows the answer; until then you may choose another."
FOLLOW = TABLES["FOLLOW"]


def follow_pointer(app: ShardvizApp, to: PagePointer) -> None:
    """Look where a pointer does, as far as the page shows the like."""
    if to.lens is None or 0 <= to.lens < app.state.resolved.problem.mesh.size:
        app.state.set_lens(to.lens)
    app.state.set_step(to.step)
    for pane in app.workspace.shown:
        pane.post_message(Pane.RoundOpened(to.round))


class VisitorApp(ShardvizApp):
    """The application without files, with compilers that start when something shows their answers."""

    def __init__(self, shared: Shared, worker: Worker, present: bool = False) -> None:
        """Open on a shared problem, or in a shared lesson. Raises `LessonError` for an unknown one."""
        lesson = attempt_of(shared) if shared.lesson else None
        draft = None if lesson is not None else shared.draft
        super().__init__(draft, shared.screen, worker, is_guest=True, lesson=lesson, present=present)

    def ask(self) -> None:
        if self.state.area != "layout" or OPEN in self.state.resolved.draft.specs:
            super().ask()

    def on_workspace_pane_shown(self) -> None:
        self.ask()  # Textual runs the application's own handler too.

    def tell(self, said: dict[str, object]) -> None:
        """Tell the server something of what is on screen."""
        if self._driver is not None:
            self._driver.write_meta(said)  # type: ignore[attr-defined]

    async def follow(self, string: str, pointer: PagePointer) -> None:
        """Only a pupil follows."""

    async def remember(self, predictions: Sequence[tuple[str, int, str]]) -> None:
        """Only a pupil predicts."""


class PupilApp(VisitorApp):
    """Shows what the teacher's page shows, until the pupil goes elsewhere or changes something. A prediction
    changes nothing: the server counts it, and the answer waits for the teacher."""

    BINDINGS = bindings(FOLLOW)
    own_commands = FOLLOW

    def __init__(self, shared: Shared, worker: Worker) -> None:
        super().__init__(shared, worker)
        self.is_following = True
        self._led = shared
        self._pointer = PagePointer()
        self._followed: Shared | None = None
        """The view when it was last the teacher's; None before it ever was, and on the way there."""
        self._told: dict[str, object] = {}

    async def begin(self) -> None:
        await super().begin()
        await self._go_along()
        self.notify(FOLLOWS, timeout=10)
        self.set_interval(PAUSE_S, self._look)

    @property
    def commands(self) -> list[Command]:
        first, *rest = super().commands
        return [first, *rest] if self.is_following or self.workspace.part.typing else [first, *FOLLOW, *rest]

    async def follow(self, string: str, pointer: PagePointer) -> None:
        """Go where the teacher is now and looks, unless the pupil has gone elsewhere."""
        self._look()
        before, self._led, self._pointer = self._led, from_string(string), pointer
        if not self.is_following or self._followed is None:
            return  # it goes along as soon as it has begun
        if before != self._led:
            await self._go_along()
        else:
            follow_pointer(self, pointer)

    async def remember(self, predictions: Sequence[tuple[str, int, str]]) -> None:
        """Take up what was predicted in this tab before its connection broke: the lesson, the number of the
        prediction, the answer."""
        for name, number, choice in predictions:
            open_one = None if self.lesson is None else self.lesson.controller
            here = open_one if open_one is not None and open_one.lesson.name == name else None
            lesson = find(name, may_read_files=False)
            own = await self.progress.resumed(lesson) if here is None else here.attempt
            if number < len(own.answers):
                own = replace(own, answers=(*own.answers[:number], choice, *own.answers[number + 1 :]))
                self.progress.keep(own)
                if here is not None:
                    here.attempt = own
        if self.lesson is not None:
            self.lesson.draw()

    async def action_follow(self) -> None:
        self.is_following = True
        await self._go_along()

    async def action_lesson(self, what: str) -> None:
        if what != "answer" or self.lesson is None or not self.lesson.controller.does(what):
            await super().action_lesson(what)
            return
        self._look()
        controller = self.lesson.controller
        name, number, choice = controller.lesson.name, controller.attempt.stage.number, controller.choice
        self.tell({"type": "predicts", "lesson": name, "number": number, "choice": choice})
        if not self.is_following:
            await super().action_lesson(what)
            return
        self.lesson.predict()
        self.notify(PREDICTED.format(choice))
        self._show_keys()

    async def _go_along(self) -> None:
        led, self._followed = self._led, None
        self.clear_notifications()
        if led.lesson:
            attempt = attempt_of(led)
            if self.lesson is not None and self.lesson.controller.lesson == attempt.lesson:
                await self.lesson.join(attempt)
            else:
                await self.open_lesson(attempt)
        else:
            if self.lesson is not None:
                await self._close_lesson(self.lesson)
            self.state.edit(led.draft)
        if self.state.area != led.screen:
            await self.workspace.put_on(led.screen)
            self.workspace.face(self.workspace.is_left)
        follow_pointer(self, self._pointer)
        self._followed = self._seen
        self._look()
        self._show_keys()

    @property
    def _seen(self) -> Shared:
        """The view: the problem, also while it is still being typed, the screen, the lesson and its stage."""
        shared = self.shared()
        return Shared(self.state.resolved.draft, self.state.area, shared.lesson, shared.stage)

    def _look(self) -> None:
        """Notice that the pupil has gone elsewhere, and tell the server."""
        if self._followed is None:
            return
        seen = self._seen
        if self.is_following and seen != self._followed:
            self.is_following = False
            self.notify(ALONE)
            self._show_keys()
        here: dict[str, object] = {"lesson": seen.lesson, "stage": seen.stage, "follows": self.is_following}
        if here != self._told:
            self._told = here
            self.tell({"type": "stands", **here})


class TeacherApp(VisitorApp):
    """Presents lessons, and tells the server what is on screen, for the pupils to follow."""

    def __init__(self, shared: Shared, worker: Worker) -> None:
        super().__init__(shared, worker, present=True)
        self._led: tuple[Shared, PagePointer] | None = None

    async def begin(self) -> None:
        await super().begin()
        self.set_interval(PAUSE_S, self._lead)

    def _lead(self) -> None:
        """Tell where the page is and looks, unless something is still being typed."""
        state, shared = self.state, self.shared()
        pointer = PagePointer(state.lens, state.step_number, state.round_number * (state.area == "step"))
        led = shared, pointer
        if led == self._led or self.state.resolved.draft != self.state.history.draft:
            return
        self._led = led
        try:
            self.tell({"type": "leads", "shared": to_string(shared), **asdict(pointer)})
        except ShardvizError as error:
            self.notify(error_words(error), severity="warning")


APPS = {"visitor": VisitorApp, "pupil": PupilApp, "teacher": TeacherApp}
"""The application of each role."""
