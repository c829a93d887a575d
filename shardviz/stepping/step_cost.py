"""What a collective of a plan costs by the usual algorithm, beside the least that any can do with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardviz.planner import Plan


@dataclass(frozen=True)
class StepCost:
    """Rounds, and the bytes that the device which sends most sends over all of them: by `algorithm`, and at
    least (`shardviz.collectives.pattern`)."""

    algorithm: str
    rounds: int
    wire_bytes: int
    least_rounds: int
    least_wire_bytes: int


def step_cost(plan: Plan, number: int) -> StepCost:
    """The cost of step `number`, from 1. Raises `QuestionError` where that is no collective, or too large."""
    from shardviz.hardware.links import links_from_text
    from shardviz.stepping.plan_step import question_of_step
    from shardviz.stepping.walk import Walk

    step = plan.steps[number - 1]
    if step.op == "ppermute":
        # Each device has one message; who sends to whom takes long to find on a large mesh.
        return StepCost("direct", 1, step.wire_bytes, 1, step.wire_bytes)
    question = question_of_step(plan, number)
    schedule = question.schedule
    walk = Walk(question, links_from_text(schedule.pattern.dims, None, None, None))
    sent, bound = walk.timeline.device_bytes, walk.bound
    return StepCost(schedule.algorithm, schedule.rounds, sent, bound.rounds, bound.wire_bytes)
