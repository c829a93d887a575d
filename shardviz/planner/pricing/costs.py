"""The cost of a plan, with what it is compared with: the plans that others would choose, and the sizes at
which it would be compute bound."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from shardviz.hardware.machine import PlacedMesh
from shardviz.planner.plan import Plan
from shardviz.planner.pricing.alternatives import Alternative, alternatives
from shardviz.planner.pricing.priced_plan import PricedPlan
from shardviz.planner.pricing.priced_steps import priced_steps
from shardviz.planner.pricing.thresholds import Threshold, thresholds


@dataclass(frozen=True)
class PlanCost(PricedPlan):
    """A priced plan that keeps what it is compared with once that was asked for."""

    @cached_property
    def alternatives(self) -> tuple[Alternative, ...]:
        """The plans that others would choose, where they are other plans."""
        return alternatives(self)

    @cached_property
    def thresholds(self) -> tuple[Threshold, ...]:
        """For each dimension the sizes at which the plan's steps are compute bound."""
        return thresholds(self)


def price(plan: Plan, placed: PlacedMesh) -> PlanCost:
    """The cost of a plan, whose mesh lies on a machine as `placed`."""
    return PlanCost(plan, placed, priced_steps(plan, placed))
