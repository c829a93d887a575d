"""The part of a plan's cost that is padding (`problem.padding`)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from shardviz.planner.pricing.priced_plan import PricedPlan
from shardviz.planner.pricing.priced_steps import LATENCY, PricedStep


@dataclass(frozen=True)
class PaddingCost:
    """The part of a plan's cost on one device that padding is: of each step as much as of its elements, and
    no seconds of one that takes as long for any."""

    flops: int
    wire_bytes: int
    seconds: float


def padding_cost(cost: PricedPlan) -> PaddingCost:
    """The cost of the padding of a plan's problem."""
    problem = cost.plan.problem
    full = {each.dim: each.size / each.padded for each in problem.padding}
    dims_of = {array.name: array.dims for array in problem.arrays}

    def share(priced: PricedStep) -> float:
        step = priced.step
        dims = dims_of[step.array] if step.einsum is None else step.einsum.dims
        return 1 - math.prod(full.get(dim, 1.0) for dim in dict.fromkeys(dims))

    shares = [(each, share(each)) for each in cost.steps]
    return PaddingCost(
        round(math.fsum(each.flops * part for each, part in shares)),
        round(math.fsum(each.wire_bytes * part for each, part in shares)),
        math.fsum((each.seconds or 0.0) * part for each, part in shares if each.bound != LATENCY),
    )
