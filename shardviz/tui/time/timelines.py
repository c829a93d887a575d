"""The timelines of the plan and of the targets' programs, worked out away from the screen's thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from shardviz.errors import ShardvizError
from shardviz.lazy_names import LazyImports

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

PLAN = "plan"
"""The name of the plan among the targets."""
PROFILE = "profile"
"""The name of a profile that was opened."""
Teller = Literal["plan", "model", "scheduler", "measured", "predicted"]
"""Whose times: the plan's price on the machine, the model of a compiled program, the compiler's scheduler; of
a profile what was measured, and the model's prediction of it."""


@dataclass(frozen=True)
class OpenedProfile:
    """A profile to look at, and the command that shows it."""

    profile: Profile
    command: str


@dataclass(frozen=True)
class TimelineQuestion:
    """A plan, a target's answer that has a program, or a profile, and what decides on which machine that
    runs."""

    subject: Plan | TargetResult | Profile
    machine: str
    targets: tuple[Target, ...]


@dataclass(frozen=True)
class ToldTimelines:
    """The timelines that answer a question, by their teller; without any, `error` says why.

    `is_assumed`: nobody has named the machine. `note` says why a compiler has no schedule of its own.
    """

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


def tell_profile(profile: Profile) -> ToldTimelines:
    """The step of a profile that its timeline shows, and the prediction where there is one."""
    timelines: tuple[tuple[Teller, ProgramTimeline], ...] = (("measured", profile.timeline),)
    if profile.predicted is not None:
        timelines += (("predicted", profile.predicted),)
    return ToldTimelines(TimelineQuestion(profile, "", ()), timelines)


def tell_plan(question: TimelineQuestion, resolved: ResolvedProblem) -> ToldTimelines:
    """The plan's timeline on the machine of the problem."""
    timeline = of_plan.plan_timeline(pricing.price(resolved.plan, resolved.placed))
    return ToldTimelines(question, (("plan", timeline),), is_assumed=resolved.machine.assumed)


def tell_program(
    question: TimelineQuestion, compiled: TargetResult, resolved: ResolvedProblem
) -> ToldTimelines:
    """The timelines of a target's program: the model's, and the scheduler's where the answer has it.

    Raises what `program_machine` and `target_times` raise.
    """
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
