"""The timelines of the plan and of the targets' programs, worked out away from the screen's thread."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from shardviz.errors import TargetError

if TYPE_CHECKING:
    from shardviz.compiler import Target, TargetResult
    from shardviz.errors import ShardvizError
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.planner import Plan
    from shardviz.timeline.program_timeline import ProgramTimeline

PLAN = "plan"
"""The name of the plan among the targets."""
Teller = Literal["plan", "model", "scheduler"]
"""Whose times: the plan's price on the machine, the model of a compiled program, the compiler's scheduler."""


@dataclass(frozen=True)
class TimelineQuestion:
    """A plan, or a target's answer that has a program, and what decides on which machine it runs."""

    subject: Plan | TargetResult
    machine: str
    targets: tuple[Target, ...]


@dataclass(frozen=True)
class ToldTimelines:
    """The timelines that answer a question, by their teller; without any, `error` says why.

    `is_assumed`: nobody has named the machine.
    """

    question: TimelineQuestion
    timelines: tuple[tuple[Teller, ProgramTimeline], ...] = ()
    error: ShardvizError | None = None
    is_assumed: bool = False

    def teller(self, wanted: Teller) -> Teller | None:
        """That teller, else the first; None where there is none."""
        tellers = [teller for teller, _ in self.timelines]
        return wanted if wanted in tellers else next(iter(tellers), None)

    def by(self, wanted: Teller) -> ProgramTimeline | None:
        """The timeline of that teller, else the first; None where there is none."""
        return next((each for teller, each in self.timelines if teller == self.teller(wanted)), None)


def tell_plan(question: TimelineQuestion, resolved: ResolvedProblem) -> ToldTimelines:
    """The plan's timeline on the machine of the problem."""
    from shardviz.planner.costs import price
    from shardviz.timeline.of_plan import plan_timeline

    timeline = plan_timeline(price(resolved.plan, resolved.placed))
    return ToldTimelines(question, (("plan", timeline),), is_assumed=resolved.machine.assumed)


def tell_program(
    question: TimelineQuestion, compiled: TargetResult, resolved: ResolvedProblem
) -> ToldTimelines:
    """The timelines of a target's program: the model's, and the scheduler's where the answer has it.

    Raises `TargetError` for a target that is no machine, unless the problem names one, and what
    `program_timeline` raises.
    """
    from shardviz.hardware.machine import machine_of
    from shardviz.timeline.compiler_memory import on_clock
    from shardviz.timeline.of_program import program_timeline

    target = next(each for each in resolved.targets if each.name == compiled.target)
    if target.cluster is not None:
        machine = machine_of(target.cluster)
    elif resolved.named is not None:
        machine = resolved.machine
    else:
        raise TargetError(
            f"{target.name} has no figures by which to tell the time of its program",
            "name a machine, such as v5e:2x4, or a target that is one",
        )
    mesh, placement = resolved.problem.mesh, compiled.placement
    placed = mesh if placement is None else placement.on(mesh)
    model = program_timeline(compiled.text, machine, mesh=placed, placement=placement)
    if compiled.memory is not None:
        model = replace(model, memory=on_clock(compiled.memory, model))
    return ToldTimelines(question, (("model", model),))
