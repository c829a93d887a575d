"""The cost of a plan, with what it is compared with: the sizes at which it would be compute bound, and the
plans that other rules would choose, the one with the fewest bytes and the fastest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from shardviz.hardware.machine import PlacedMesh
from shardviz.planner.plan import Plan
from shardviz.planner.planner import Planner, is_searched_anywhere, plan
from shardviz.planner.pricing.priced_plan import PricedPlan
from shardviz.planner.pricing.thresholds import Threshold, thresholds

NEGLIGIBLE = 0.01
"""The part of a plan's seconds that is not worth another plan."""
AlternativeName = Literal["fewest bytes", "fastest"]


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
        """The fastest plan and that with the fewest bytes, where they are better by that than the plan."""
        others: list[Alternative] = []
        faster = None if self.unknown else _faster(self)
        if faster is not None and faster.serial_seconds < self.serial_seconds * (1 - NEGLIGIBLE):
            others.append(Alternative("fastest", faster))
        if self.plan.objective != "bytes":
            fewest = PricedPlan(plan(self.plan.question, self.placed, "bytes"), self.placed)
            if fewest.wire_bytes < self.wire_bytes:
                others.append(Alternative("fewest bytes", fewest))
        return tuple(others)


def price(plan: Plan, placed: PlacedMesh) -> PlanCost:
    """The cost of a plan, whose mesh lies on a machine as `placed`."""
    return PlanCost(plan, placed)


def _faster(cost: PricedPlan) -> PricedPlan | None:
    shown, problem = cost.plan, cost.plan.question
    found = shown.faster
    if found is None:
        is_best = problem.is_tree or shown.optimal or not is_searched_anywhere(problem)
        if shown.objective == "time" or (shown.objective == "given" and is_best):
            return None
        found = Planner(problem.mesh, cost.placed, "time", anywhere=True).plan(problem)
    return PricedPlan(found, cost.placed)
