"""The timelines of the plan and of the targets' programs: how each is worked out, away from the screen's
thread, and which of them are known and shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from shardviz.errors import ShardvizError
from shardviz.lazy_names import LazyImports
from shardviz.tui.time.chart import ChartPart

with LazyImports():
    from shardviz.planner.pricing import costs as pricing
    from shardviz.reports import program_report
    from shardviz.timeline import of_plan

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.planner.plan import Plan
    from shardviz.profiles.profile import Profile
    from shardviz.reports.target_result import TargetResult
    from shardviz.targets import Target
    from shardviz.timeline.program_timeline import ProgramTimeline
    from shardviz.tui.compiler_queries import ShownAnswer
    from shardviz.tui.state import EditorState, OpenedProfile

PLAN = "plan"
"""The name of the plan among the targets."""
PROFILE = "profile"
"""The name of a profile that was opened."""
Teller = Literal["plan", "model", "scheduler", "measured", "predicted"]
"""Whose times: the plan's price on the machine, the model of a compiled program, the compiler's scheduler; of
a profile what was measured, and the model's prediction of it."""


@dataclass(frozen=True)
class TimelineQuestion:
    """A plan, a target's answer that has a program, or a profile, and what decides on which machine that
    runs."""

    subject: Plan | TargetResult | Profile
    machine: str
    targets: tuple[Target, ...]


@dataclass(frozen=True)
class ToldTimelines:
    """The timelines that answer a question, by their teller; without any, `error` says why. `is_assumed`:
    nobody has named the machine. `note` says why a compiler has no schedule of its own."""

    question: TimelineQuestion
    timelines: tuple[tuple[Teller, ProgramTimeline], ...] = ()
    error: ShardvizError | None = None
    is_assumed: bool = False
    note: str = ""

    def teller(self, wanted: Teller) -> Teller | None:
        """That teller, else the first; None where there is none."""
        tellers = [teller for teller, _ in self.timelines]
        return wanted if wanted in tellers else next(iter(tellers), None)

    def by(self, wanted: Teller) -> ProgramTimeline | None:
        """The timeline of that teller, else the first; None where there is none."""
        return next((timeline for teller, timeline in self.timelines if teller == self.teller(wanted)), None)


def tell_plan(question: TimelineQuestion, resolved: ResolvedProblem) -> ToldTimelines:
    timeline = of_plan.plan_timeline(pricing.price(resolved.plan, resolved.placed))
    return ToldTimelines(question, (("plan", timeline),), is_assumed=resolved.machine.assumed)


def tell_program(
    question: TimelineQuestion, compiled: TargetResult, resolved: ResolvedProblem
) -> ToldTimelines:
    """The timelines of a target's program: the model's, and the scheduler's where the answer has it. Raises
    what `program_machine` and `target_times` raise."""
    named = resolved.machine if resolved.named is not None else None
    machine = program_report.program_machine(compiled.target, named)
    times = program_report.target_times(compiled, machine, resolved.problem.mesh)
    timelines: tuple[tuple[Teller, ProgramTimeline], ...] = (("model", times.model),)
    if times.scheduler is not None:
        timelines += (("scheduler", times.scheduler),)
    return ToldTimelines(question, timelines, note=times.note)


def tell(name: str, question: TimelineQuestion, resolved: ResolvedProblem) -> ToldTimelines:
    """The timelines of the plan or of a target's program; without any, why there are none."""
    try:
        if name == PLAN:
            return tell_plan(question, resolved)
        return tell_program(question, cast("TargetResult", question.subject), resolved)
    except ShardvizError as error:
        return ToldTimelines(question, error=error)


class ShownTimelines:
    """The timelines of the profile, the plan and the targets' programs by name: as they were last `told`, and
    the questions that they answer or are to answer, of which each is asked once. One of them is `chosen`, by
    a `teller` where it has that one; what is `below` it for comparison has a teller of its own."""

    def __init__(self, state: EditorState) -> None:
        self._state = state
        self.told: dict[str, ToldTimelines] = {}
        self.chosen = PLAN
        self.teller: Teller = "model"
        self.below: tuple[str, Teller] | None = None
        self._asked: dict[str, TimelineQuestion] = {}
        self._profile: OpenedProfile | None = None

    @property
    def names(self) -> list[str]:
        """The profile, the plan and the targets, in the order in which they are chosen."""
        profile = [PROFILE] if self._state.profile is not None else []
        return [*profile, PLAN, *(name for name in self._state.queries.answers if name != "shardy")]

    @property
    def answer(self) -> ShownAnswer | None:
        return self._state.queries.answers.get(self.chosen)

    @property
    def chosen_told(self) -> ToldTimelines | None:
        return self.told.get(self.chosen)

    @property
    def timeline(self) -> ProgramTimeline | None:
        return None if self.chosen_told is None else self.chosen_told.by(self.teller)

    @property
    def others(self) -> list[tuple[str, Teller]]:
        """Those that may stand below the chosen one: its other teller, then the others by the same."""
        told = self.chosen_told
        tellers = [teller for teller, _ in told.timelines] if told is not None else []
        own = [(self.chosen, teller) for teller in tellers if told and teller != told.teller(self.teller)]
        return [*own, *((name, self.teller) for name in self.names if name != self.chosen)]

    def next_teller(self) -> None:
        """The chosen one by its other teller; what is below goes along, or has the teller that was above."""
        before, self.teller = self.teller, "model" if self.teller == "scheduler" else "scheduler"
        if self.below is not None:
            name = self.below[0]
            self.below = name, before if name == self.chosen else self.teller

    def next_below(self) -> None:
        """The next of the others below; after the last one, none."""
        others = self.others
        index = others.index(self.below) + 1 if self.below in others else 0
        self.below = others[index] if index < len(others) else None

    def parts(self, before: Sequence[ChartPart]) -> list[ChartPart]:
        """The chosen one and the one below, as far as they are here; prepared once for as long as they are
        shown."""
        shown = [(self.chosen, self.teller), *([self.below] if self.below else [])]
        parts = []
        for name, teller in shown:
            told = self.told.get(name)
            timeline = told.by(teller) if told is not None else None
            if told is not None and timeline is not None:
                known = (part for part in before if part.timeline is timeline)
                own = told.teller(teller) if name == PROFILE else None
                parts.append(next(known, None) or ChartPart(timeline, own or name))
        return parts

    def question(self, name: str) -> TimelineQuestion | None:
        """The question of the profile, of the plan on screen, or of the target's answer to it, if it has a
        program."""
        if name == PROFILE:
            return self._asked[PROFILE]
        resolved, answer = self._state.resolved, self._state.queries.answers.get(name)
        compiled = answer.compiled if answer is not None else None
        if name != PLAN and (compiled is None or compiled.status != "ok"):
            return None
        return TimelineQuestion(compiled or resolved.plan, resolved.shown.machine, resolved.targets)

    def is_current(self, name: str) -> bool:
        """True if the timelines of that name are those of the problem on screen."""
        told = self.told.get(name)
        return told is not None and told.question == self.question(name)

    def ask(self) -> list[tuple[str, TimelineQuestion]]:
        """The questions to work out that are not under way; what a failed target had told is forgotten, and
        what is there no more is shown no more."""
        self._take_profile()
        answers, names = self._state.queries.answers, self.names
        if self.chosen not in names:
            self.chosen = PLAN
        if self.below not in self.others:
            self.below = None
        failed = {
            name for name, answer in answers.items() if answer.compiled and answer.compiled.status != "ok"
        }
        kept = {*names} - failed
        self.told = {name: told for name, told in self.told.items() if name in kept}
        self._asked = {name: question for name, question in self._asked.items() if name in kept}
        wanted = {name: self.question(name) for name in dict.fromkeys((self.chosen, *names))}
        new = [(name, asked) for name, asked in wanted.items() if asked and asked != self._asked.get(name)]
        self._asked.update(new)
        return new

    def take(self, name: str, told: ToldTimelines) -> bool:
        """Keep timelines, unless another question was asked meanwhile; return whether they are kept."""
        if self._asked.get(name) != told.question:
            return False
        self.told[name] = told
        return True

    def _take_profile(self) -> None:
        """Choose the profile that was opened, once; what was predicted stands below it from the start."""
        opened = self._state.profile
        if opened is None or opened is self._profile:
            return
        timelines: tuple[tuple[Teller, ProgramTimeline], ...] = (("measured", opened.profile.timeline),)
        if opened.profile.predicted is not None:
            timelines += (("predicted", opened.profile.predicted),)
        told = ToldTimelines(TimelineQuestion(opened.profile, "", ()), timelines)
        self.told[PROFILE], self._asked[PROFILE] = told, told.question
        self._profile, self.chosen = opened, PROFILE
        self.below = next(iter(self.others), None) if len(told.timelines) > 1 else None
