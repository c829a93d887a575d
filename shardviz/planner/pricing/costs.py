"""The cost of a plan, with what it is compared with: the sizes at which it would be compute bound, and the
plans that others would choose, the one with the fewest bytes, the fastest and the textbook's.

The textbook's plan is what its four cases give when they are taken literally ("How to Scale Your Model", part
3, https://jax-ml.github.io/scaling-book/sharding). An axis that splits a summed dimension of one operand only
is gathered (case 2). Where it splits the same summed dimension of both, partial sums are added (case 3). Of
two operands that use it for dimensions of their own, the one with fewer bytes is gathered (case 4). Sums are
added at once, to where the result is wanted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, zip_longest
from operator import attrgetter
from typing import Literal

from shardviz.hardware.machine import PlacedMesh
from shardviz.planner.plan import Plan
from shardviz.planner.planner import Planner, is_searched_anywhere, plan
from shardviz.planner.pricing.priced_plan import PricedPlan
from shardviz.planner.pricing.thresholds import Threshold, thresholds
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.statements.axis_pool import AxisPool
from shardviz.planner.statements.statement_ways import StatementWays
from shardviz.planner.statements.work_split import Assignment, PlannedStatement, WorkSplit, planned_statement
from shardviz.planner.states.moves import Axes, PathMove, State
from shardviz.planner.states.prices import Prices
from shardviz.planner.steps import plan_of
from shardviz.sharding import ShardedArray

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
            fewest = PricedPlan(plan(problem, placed, "bytes"), placed)
            if fewest.wire_bytes < self.wire_bytes:
                others.append(Alternative("fewest bytes", fewest))
        literal = textbook_plan(problem, placed)
        if literal is not None:
            textbook = PricedPlan(literal, placed)
            if not any(
                _same(textbook, other) for other in (self, *(alternative.cost for alternative in others))
            ):
                others.append(Alternative("textbook", textbook))
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


def _same(one: PricedPlan, other: PricedPlan) -> bool:
    """The same operations on the same arrays, or others that cost the same."""
    figures = attrgetter("serial_seconds", "wire_bytes", "flops")
    operation = attrgetter("op", "array", "axes", "to_spec")
    operations = [[*map(operation, cost.plan.steps)] for cost in (one, other)]
    return figures(one) == figures(other) or operations[0] == operations[1]


def textbook_plan(problem: Problem, placed: PlacedMesh) -> Plan | None:
    """The textbook's plan of a chain of einsums of one or two operands; None for other programs, of which the
    cases say nothing, and where no moves lead to what a case says."""
    if not problem.is_chain or any(len(part.operands) > 2 for part in problem.parts):
        return None
    ways = StatementWays(AxisPool.of(problem), problem.mesh, Prices(placed, "bytes"))
    try:
        statements = list(_textbook_statements(problem, ways))
    except KeyError:
        return None
    return plan_of(problem, statements, "bytes", optimal=False)


def _textbook_statements(problem: Problem, ways: StatementWays) -> Iterator[PlannedStatement]:
    """The statements, each as its case has it. Raises `KeyError` where no moves lead to what a case says."""

    def moves(array: ShardedArray, start: State, goal: State) -> tuple[ShardedArray, tuple[PathMove, ...]]:
        return array, ways.to(ways.kind(array), {start: 0}).path(goal)[1]

    held: dict[str, State] = {}
    for part, following in zip_longest(problem.parts, problem.parts[1:]):
        starts = tuple(
            held.get(operand.name) or ways.pool.state(operand.decided_spec) for operand in part.operands
        )
        split = _textbook_split(part, starts, ways.space.group_size)
        # The result passes: as it is wanted, and as the next statement is given it; where both are open, as
        # the multiplication leaves it, its sums added.
        specs = [part.result.spec, *([following.operands[0].spec] if following else ())]
        goals = [ways.pool.state(spec) for spec in specs if spec is not None]
        states = [split.result, *(goals or [(split.result[0], ())])]
        held[part.result.name] = states[-1]
        before = [*map(moves, part.operands, starts, split.operands)]
        behind = [moves(part.result, *pair) for pair in pairwise(states)]
        yield planned_statement(problem.mesh, part, split, starts, before, behind)


def _textbook_split(
    part: Statement, starts: tuple[State, ...], group_size: Callable[[Axes], int]
) -> WorkSplit:
    """The work as the cases share it; pending sums of operands are added first."""
    assignment: Assignment = {}
    for dim in part.einsum.dims:
        if axes := tuple(_textbook_axes(part, starts, dim, group_size)):
            assignment[dim] = axes

    def split(dims: Iterable[str]) -> tuple[Axes, ...]:
        return tuple(assignment.get(dim, ()) for dim in dims)

    pending = sorted(axis for axes in split(part.einsum.contracted) for axis in axes)
    operands = tuple((split(dims), ()) for dims in part.einsum.operands)
    return WorkSplit(assignment, operands, (split(part.einsum.result), tuple(pending)))


def _textbook_axes(
    part: Statement, starts: tuple[State, ...], dim: str, group_size: Callable[[Axes], int]
) -> Iterator[str]:
    """The axes that split a dimension while the devices multiply, the major first."""
    dims_of, contracted = part.einsum.operands, part.einsum.contracted
    holders = [
        (index, state[0][dims.index(dim)])
        for index, (dims, state) in enumerate(zip(dims_of, starts, strict=True))
        if dim in dims
    ]
    if not holders or any(dims.count(dim) > 1 for dims in dims_of):
        return
    index, axes = max(holders, key=lambda holder: len(holder[1]))
    if any(own and own != axes for _, own in holders):
        return  # two orders: no case; it is gathered

    def gathered_bytes(number: int) -> int:
        return part.operands[number].nbytes // math.prod(map(group_size, starts[number][0]))

    for axis in axes:
        keeps = len(holders) == 1 or dim not in contracted
        # The dimension of the other operand, if any, that the axis splits.
        for other, (dims, (held, _)) in enumerate(zip(dims_of, starts, strict=True)):
            for name, own in zip(dims, held, strict=True):
                if other != index and axis in own and name == dim:
                    keeps = True
                elif other != index and axis in own:
                    # Of two operands that use it for dimensions of their own one is gathered.
                    is_less = (gathered_bytes(other), other) <= (gathered_bytes(index), index)
                    keeps = dim not in contracted and (name in contracted or is_less)
        if not keeps:
            return  # what is minor to an axis that is gathered is gathered with it
        yield axis
