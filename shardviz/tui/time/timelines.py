"""The timelines of the plan and of the targets' programs, worked out away from the screen's thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shardviz.errors import ShardvizError

if TYPE_CHECKING:
    from shardviz.compiler import TargetResult
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.planner import Plan
    from shardviz.timeline.program_timeline import ProgramTimeline

PLAN = "plan"
"""The name of the plan among the targets."""
Teller = Literal["plan", "model", "scheduler"]
"""Whose times: the plan's price on the machine, the model of a compiled program, the compiler's scheduler."""


@dataclass(frozen=True)
class ToldTimelines:
    """The timelines of a plan or of a target's answer by their teller; without any, `error` says why.

    `is_assumed`: nobody has named the machine.
    """

    subject: Plan | TargetResult
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


def tell_plan(resolved: ResolvedProblem) -> ToldTimelines:
    """The plan's timeline on the machine of the problem. Raises what placing its mesh there raises."""
    from shardviz.hardware.machine import assumed_machine, machine_of
    from shardviz.hardware.mesh_placement import place_mesh
    from shardviz.planner.costs import price
    from shardviz.timeline.of_plan import plan_timeline

    cluster = next((target.cluster for target in resolved.targets if target.cluster is not None), None)
    machine = machine_of(cluster) if cluster is not None else assumed_machine()
    cost = price(resolved.plan, place_mesh(machine, resolved.problem.mesh))
    return ToldTimelines(resolved.plan, (("plan", plan_timeline(cost)),), is_assumed=machine.assumed)


def tell_answer(compiled: TargetResult, _resolved: ResolvedProblem) -> ToldTimelines:
    """The timelines of a target's program: the model's, and the scheduler's where the answer has it."""
    from shardviz.errors import QuestionError

    raise QuestionError(f"the program of {compiled.target} has no timeline yet")
