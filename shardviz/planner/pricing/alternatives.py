"""The plans that others would choose: the one with the fewest bytes, the fastest, and the textbook's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shardviz.planner.plan import Plan
from shardviz.planner.planner import Planner, is_searched_anywhere, plan
from shardviz.planner.pricing.priced_plan import PricedPlan, priced_plan
from shardviz.planner.pricing.textbook import textbook_plan

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


def alternatives(cost: PricedPlan) -> tuple[Alternative, ...]:
    """The fastest plan and that with the fewest bytes, where they are better by that than the plan; and the
    textbook's where it is another."""
    problem, placed = cost.plan.question, cost.placed
    found: list[Alternative] = []
    faster = None if cost.unknown else _faster(cost)
    if faster is not None and faster.serial_seconds < cost.serial_seconds * (1 - NEGLIGIBLE):
        found.append(Alternative("fastest", faster))
    if cost.plan.objective != "bytes":
        fewest = priced_plan(plan(problem, placed, "bytes"), placed)
        if fewest.wire_bytes < cost.wire_bytes:
            found.append(Alternative("fewest bytes", fewest))
    literal = textbook_plan(problem, placed)
    if literal is not None:
        textbook = priced_plan(literal, placed)
        if not any(_same(textbook, each) for each in (cost, *(each.cost for each in found))):
            found.append(Alternative("textbook", textbook))
    return tuple(found)


def _faster(cost: PricedPlan) -> PricedPlan | None:
    """The plan that may be faster, as it splits the work elsewhere than the arrays are."""
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
    return _figures(one) == _figures(other) or _operations(one) == _operations(other)


def _figures(cost: PricedPlan) -> tuple[float, int, int]:
    return cost.serial_seconds, cost.wire_bytes, cost.flops


def _operations(cost: PricedPlan) -> list[tuple[object, ...]]:
    return [(step.op, step.array, step.axes, step.to_spec) for step in cost.plan.steps]
