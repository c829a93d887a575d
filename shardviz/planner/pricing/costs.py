"""The cost of a plan, with what it is compared with: the plans that others would choose (the one with the
fewest bytes, the fastest, the textbook's), and the sizes at which it would be compute bound."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Literal

from shardviz.hardware.machine import PlacedMesh
from shardviz.planner.plan import Plan
from shardviz.planner.planner import Planner, is_searched_anywhere, plan
from shardviz.planner.pricing.priced_plan import PricedPlan, priced_plan
from shardviz.planner.pricing.priced_steps import priced_steps
from shardviz.planner.pricing.textbook import textbook_plan
from shardviz.planner.pricing.thresholds import Threshold, thresholds

NEGLIGIBLE = 0.01
"""The part of a plan's seconds that is not worth another plan."""
AlternativeName = Literal["fewest bytes", "fastest", "textbook"]


@dataclass(frozen=True)
class Alternative:
    """Another plan for the same problem on the same machine, and the rule by which it is chosen."""

    name: AlternativeName
    cost: PricedPlan

    @property
    def plan(self) -> Plan:
        return self.cost.plan


@dataclass(frozen=True)
class PlanCost(PricedPlan):
    """A priced plan that keeps what it is compared with once that was asked for."""

    @cached_property
    def thresholds(self) -> tuple[Threshold, ...]:
        """For each dimension the sizes at which the plan's steps are compute bound."""
        return thresholds(self)

    @cached_property
    def alternatives(self) -> tuple[Alternative, ...]:
        """The fastest plan and that with the fewest bytes, where they are better by that than the plan; and
        the textbook's where it is another."""
        problem, placed = self.plan.question, self.placed
        others: list[Alternative] = []
        faster = None if self.unknown else _faster(self)
        if faster is not None and faster.serial_seconds < self.serial_seconds * (1 - NEGLIGIBLE):
            others.append(Alternative("fastest", faster))
        if self.plan.objective != "bytes":
            fewest = priced_plan(plan(problem, placed, "bytes"), placed)
            if fewest.wire_bytes < self.wire_bytes:
                others.append(Alternative("fewest bytes", fewest))
        literal = textbook_plan(problem, placed)
        if literal is not None:
            textbook = priced_plan(literal, placed)
            if not any(_same(textbook, other) for other in (self, *(each.cost for each in others))):
                others.append(Alternative("textbook", textbook))
        return tuple(others)


def price(plan: Plan, placed: PlacedMesh) -> PlanCost:
    """The cost of a plan, whose mesh lies on a machine as `placed`."""
    return PlanCost(plan, placed, priced_steps(plan, placed))


def _faster(cost: PricedPlan) -> PricedPlan | None:
    shown, problem = cost.plan, cost.plan.question
    if shown.faster is not None:
        return priced_plan(shown.faster, cost.placed)
    if shown.objective == "time" or (
        shown.objective == "given" and (problem.is_tree or shown.optimal or not is_searched_anywhere(problem))
    ):
        return None
    return priced_plan(Planner(problem.mesh, cost.placed, "time", anywhere=True).plan(problem), cost.placed)


def _same(one: PricedPlan, other: PricedPlan) -> bool:
    """The same operations on the same arrays, or others that cost the same."""
    figures = attrgetter("serial_seconds", "wire_bytes", "flops")
    operation = attrgetter("op", "array", "axes", "to_spec")
    operations = [[*map(operation, cost.plan.steps)] for cost in (one, other)]
    return figures(one) == figures(other) or operations[0] == operations[1]
