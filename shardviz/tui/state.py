"""The state of the application, which its panes share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

from shardviz.forms.form import History, ProblemForm
from shardviz.forms.resolve import ResolvedProblem, resolve, resolve_as_given, resolve_first
from shardviz.forms.summary import AskedQuestions
from shardviz.lazy_names import LazyImports
from shardviz.planner.plan import LOCAL_OPS, Plan
from shardviz.tui.planning import Plans

with LazyImports():
    from shardviz.tui import compiler_queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.message import Message

    from shardviz.compiler import Worker
    from shardviz.forms.state_file import SavedSession
    from shardviz.planner.problem import Problem
    from shardviz.profiles.profile import Profile


class StateOwner(Protocol):
    """The application, as its state knows it."""

    def post_message(self, message: Message, /) -> bool:
        """Send a message, from any thread."""

    def call_later(self, callback: Callable[[], object]) -> bool:
        """Have a function called by the application, from any thread."""

    def problem_changed(self, is_other: bool) -> None:
        """Another problem is on screen, or the same one is wrong now; `is_other`: it has another plan, or
        other targets are asked."""

    def lens_changed(self) -> None:
        """Another device is marked everywhere, or none."""

    def step_changed(self) -> None:
        """Another step of the plan is under the cursor of every pane."""


@dataclass(frozen=True)
class OpenedProfile:
    """A profile to look at, and the command that shows it."""

    profile: Profile
    command: str


class SetAside(NamedTuple):
    """The problem and the place that a lesson comes back to."""

    history: History
    questions: AskedQuestions
    resolved: ResolvedProblem
    area: str
    step_number: int


class EditorState:
    """A form with undo, the problem that it states, and the queries to the compilers. `draft` may be a form
    with its steps. What a person changes the `app` hears of at once, what others do in a message.

    `resolved` is on screen: `edit` puts another form there, `show` one that is still being typed. `questions`
    are those of this session. `area` is the screen that has the keys, or had them last. `step_number` is the
    step of the plan under the cursor of every pane, from 1, `round_number` the round of it that Step shows or
    showed last. `lens` is the row-major position in the mesh of the device that is marked everywhere; None
    where none is. `profile` is one that was opened. With `draws_first` the problem is `resolved` as it is
    given, where its arrays can be drawn so, until `find_first_plan`."""

    def __init__(
        self,
        app: StateOwner,
        draft: ProblemForm | History,
        area: str,
        worker: Worker | None = None,
        draws_first: bool = False,
    ) -> None:
        self._app = app
        self.history = draft if isinstance(draft, History) else History(draft)
        draft = self.history.draft
        self.plans = Plans(lambda: app.call_later(self.look_again))
        self.questions = AskedQuestions()
        self._stopgap: Problem | None = None
        given = resolve_as_given(draft) if draws_first else None
        self.step_number, self.round_number = 1, 0
        self.resolved: ResolvedProblem = given or self._resolve_first()
        self.area = area
        self.lens: int | None = None
        self._worker = worker
        self.profile: OpenedProfile | None = None
        self.set_aside: SetAside | None = None
        """In a lesson, what was there before it."""
        self.is_quiet = False
        """True where a lesson names no machine: no seconds are shown, and nothing of memory."""

    def _resolve_first(self) -> ResolvedProblem:
        draft = self.history.draft
        self.resolved = resolve_first(draft, self.plans.plan)
        self.step_number = _first_collective(self.resolved.plan)
        self._asked = draft, self.resolved
        self._stopgap = self.resolved.problem if self.resolved.planning is not None else None
        self._note_question()
        return self.resolved

    def find_first_plan(self) -> bool:
        """Find the plan of what the application was opened on, if that is shown as it is given; return
        whether it was."""
        is_as_given = self.resolved.is_as_given
        if is_as_given:
            self._resolve_first()
        return is_as_given

    @cached_property
    def queries(self) -> compiler_queries.CompilerQueries:
        return compiler_queries.CompilerQueries(self._app.post_message, self._worker)

    @property
    def is_empty(self) -> bool:
        """True while there is no plan yet of what the application, or a lesson, was opened on."""
        resolved = self.resolved
        return resolved.planning is not None and resolved.problem is self._stopgap

    def kill_children(self) -> None:
        """Kill the compilers' and the planner's processes, for a signal handler: nothing is waited for."""
        self.plans.kill()
        if "queries" in vars(self):
            self.queries.kill()

    def close(self) -> None:
        self.plans.close()
        self.queries.close()

    def edit(self, draft: ProblemForm) -> None:
        """Put another form on screen, as one step of undo."""
        if self.history.push(draft) or self.resolved.draft != self.history.draft:
            self._resolve()

    def undo(self) -> None:
        if self.history.undo():
            self._resolve()

    def restore(self) -> None:
        """Take back what is refused: undo up to the problem that is shown, so that a redo has it."""
        shown = self.resolved.shown
        while self.history.draft != shown and self.history.undo():
            pass
        if self.history.draft == shown:
            self._resolve()
        else:
            self.edit(shown)

    def redo(self) -> None:
        if self.history.redo():
            self._resolve()

    def open(self, history: History, last: ResolvedProblem | None = None, step_number: int = 0) -> None:
        """Put the form of another history on screen; `last` is what is shown in place of its errors, and
        until it has a plan. Without it that is nothing: what was on screen is another problem."""
        self.history = history
        if last is None:
            last = resolve(ProblemForm())
            self._stopgap = last.problem
        self.show(self.history.draft, last, step_number)

    def set_all_aside(self) -> None:
        """Make room for a lesson, which has questions of its own."""
        self.set_aside = SetAside(self.history, self.questions, self.resolved, self.area, self.step_number)
        self.questions = AskedQuestions()

    def take_back(self) -> str:
        """Put back on screen what was set aside, and return the area that it is to be shown on."""
        assert self.set_aside is not None
        own, self.set_aside = self.set_aside, None
        self.questions = own.questions
        self.open(own.history, own.resolved, own.step_number)
        return own.area

    def go_on(self, last: SavedSession) -> None:
        """Put another session's form on screen: undo goes through its steps, then back to what is here."""
        here = (*self.history.before, self.history.draft)
        self.open(History(last.draft, (*here, *last.before), last.after), self.resolved)

    def show(self, draft: ProblemForm, last: ResolvedProblem, step_number: int = 0) -> None:
        """Put a form on screen, in place of `last`, of which is shown what this one has no plan of, or states
        wrongly. One that is still being typed is not a step of undo. The step under the cursor stays while
        the plan has the like there."""
        self._asked = draft, last
        before, self.resolved = self.resolved, resolve(draft, last, self.plans.plan)
        self._note_question()
        if self.lens is not None and self.lens >= self.resolved.problem.mesh.size:
            self.lens = None
        steps = [plan.steps[self.step_number - 1 :][:1] for plan in (before.plan, self.resolved.plan)]
        alike = {(step.op, step.array) for there in steps for step in there}
        if step_number or not all(steps) or len(alike) > 1:
            self.step_number = step_number or _first_collective(self.resolved.plan)
        is_other = (before.problem, before.targets) != (self.resolved.problem, self.resolved.targets)
        is_other = is_other or before.plan is not self.resolved.plan
        self._app.problem_changed(is_other)

    def set_lens(self, position: int | None) -> None:
        """Mark the device at a row-major position of the mesh everywhere, or none."""
        if position != self.lens:
            self.lens = position
            self._app.lens_changed()

    def set_step(self, number: int) -> None:
        """Put the cursor of every pane on a step of the plan."""
        if 0 < number <= len(self.resolved.plan.steps):
            self.step_number = number
            self._app.step_changed()

    def look_again(self) -> None:
        self.show(*self._asked)

    def follow_shardy(self) -> None:
        """Shardy's answer may be a way to a cheaper plan."""
        answer = self.queries.answers.get("shardy")
        if answer is not None and answer.compiled is not None:
            self.plans.follow(self.resolved.plan, self.resolved.placed, answer.compiled)

    def _note_question(self) -> None:
        """Keep what is on screen, unless it is still being typed, wrong, or not planned yet."""
        now = self.resolved
        if now.draft == self.history.draft and not now.faults and now.planning is None:
            self.questions.take(now)

    def _resolve(self) -> None:
        self.show(self.history.draft, self.resolved)


def _first_collective(plan: Plan) -> int:
    """The number of the first step that sends anything; the first of all where none does."""
    return next((number for number, step in enumerate(plan.steps, 1) if step.op not in LOCAL_OPS), 1)
