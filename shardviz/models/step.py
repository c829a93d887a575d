"""A step of a whole model: the plans of its embedding, its layers and its logits, and their sums.

The layers are alike, so one of them is planned. A train step ends with the loss of each token.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from shardviz.models.layer_program import ModelPart, model_parts
from shardviz.models.question import ModelQuestion
from shardviz.planner.planner import Planner
from shardviz.planner.pricing.costs import PlanCost, price
from shardviz.planner.pricing.priced_steps import PricedStep

if TYPE_CHECKING:
    from shardviz.planner.problem import Phase, Problem
    from shardviz.planner.problem.training import Training


@dataclass(frozen=True)
class PlannedPart:
    """A part of a model with the cost of its plan; it runs `cost.layers` times."""

    part: ModelPart
    cost: PlanCost = field(repr=False)

    def collectives(self) -> Iterator[tuple[Phase, PricedStep]]:
        """The collectives of one run, in order, with the part of a train step that each belongs to."""
        for priced in self.cost.steps:
            if priced.is_collective:
                yield self.cost.plan.problem.parts[priced.step.part].phase, priced


@dataclass(frozen=True)
class ModelStep:
    """The parts of a step in order; seconds are the sum of all steps, one after the other."""

    parts: tuple[PlannedPart, ...]

    @property
    def layer(self) -> PlannedPart:
        """The layers."""
        return max(self.parts, key=lambda each: each.cost.layers)

    @cached_property
    def seconds_by_phase(self) -> dict[Phase, float]:
        """Seconds of all runs of all parts, by the part of a train step."""
        found: dict[Phase, float] = {}
        for each in self.parts:
            for phase, seconds in each.cost.seconds_by_phase.items():
                found[phase] = found.get(phase, 0.0) + each.cost.layers * seconds
        return found

    @property
    def seconds(self) -> float:
        return math.fsum(each.cost.layers_seconds for each in self.parts)

    @property
    def communication_seconds(self) -> float:
        """Seconds of the collectives, as if none were hidden behind the work."""
        return math.fsum(each.cost.layers * each.cost.communication_seconds for each in self.parts)

    @property
    def wire_bytes(self) -> int:
        """Bytes that a device sends."""
        return sum(each.cost.layers * each.cost.wire_bytes for each in self.parts)

    @property
    def flops(self) -> int:
        """Operations of a device."""
        return sum(each.cost.layers * each.cost.flops for each in self.parts)

    @property
    def count(self) -> int:
        """Collectives that run."""
        return sum(each.cost.layers * len(each.cost.plan.collectives) for each in self.parts)


def planned_step(question: ModelQuestion) -> ModelStep:
    """The step of a model. Raises `QuestionError` as `model_parts` does."""
    placed = question.placed
    planner = Planner(question.mesh, placed, is_bounded=False)
    return ModelStep(
        tuple(
            PlannedPart(part, price(planner.plan(part_problem(part, question.training)), placed))
            for part in model_parts(question.split, question.tokens, with_loss=question.training is not None)
        )
    )


def part_problem(part: ModelPart, training: Training | None) -> Problem:
    """The problem of a part with its backward pass, if there is one; only the layers are computed again."""
    if training is None:
        return part.problem
    from shardviz.planner.training import with_backward

    once = part.problem.layers == 1
    return with_backward(part.problem, replace(training, remat="none") if once else training)
