"""The plan that the textbook's four cases give when they are taken literally, at any cost.

The cases are those of "How to Scale Your Model", part 3 (https://jax-ml.github.io/scaling-book/sharding). An
axis that splits a summed dimension of one operand only is gathered (case 2). Where it splits the same summed
dimension of both, partial sums are added (case 3). Of two operands that use it for dimensions of their own,
the one with fewer bytes is gathered (case 4). Sums are added at once, to where the result is wanted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from shardviz.planner.plan import Plan
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.statements.axis_pool import AxisPool
from shardviz.planner.statements.planned_statement import PlannedStatement, planned_statement
from shardviz.planner.statements.statement_ways import StatementWays
from shardviz.planner.statements.work_split import Assignment, WorkSplit
from shardviz.planner.states.moves import PathMove, State
from shardviz.planner.states.prices import Prices
from shardviz.planner.steps import plan_of
from shardviz.sharding import ShardedArray

if TYPE_CHECKING:
    from shardviz.hardware.machine import PlacedMesh


def textbook_plan(problem: Problem, placed: PlacedMesh) -> Plan | None:
    """The textbook's plan of a chain of einsums of one or two operands; None for other programs, of which the
    cases say nothing, and where no moves lead to what a case says."""
    if not problem.is_chain or any(len(part.operands) > 2 for part in problem.parts):
        return None
    try:
        statements = list(_Textbook(problem, placed).statements())
    except KeyError:
        return None
    return plan_of(problem, statements, "bytes", optimal=False)


class _Textbook:
    def __init__(self, problem: Problem, placed: PlacedMesh) -> None:
        self._problem, self._pool = problem, AxisPool.of(problem)
        self._ways = StatementWays(self._pool, problem.mesh, Prices(placed, "bytes"))

    def statements(self) -> Iterator[PlannedStatement]:
        """The statements, each as its case has it."""
        held: State | None = None
        for place, part in enumerate(self._problem.parts):
            starts = tuple(self._start(operand, held) for operand in part.operands)
            split = self._work_split(part, starts)
            following = self._problem.parts[place + 1] if place + 1 < len(self._problem.parts) else None
            goals = self._goals(part, split, following)
            held = goals[-1]
            states = (split.result, *goals)
            yield planned_statement(
                self._problem.mesh,
                part,
                split,
                starts,
                [
                    (operand, self._moves(operand, start, needed))
                    for operand, start, needed in zip(part.operands, starts, split.operands, strict=True)
                ],
                [(part.result, self._moves(part.result, old, new)) for old, new in pairwise(states)],
            )

    def _start(self, operand: ShardedArray, held: State | None) -> State:
        if held is not None and operand.name in {part.result.name for part in self._problem.parts}:
            return held
        return self._pool.state(operand.decided_spec)

    def _goals(self, part: Statement, split: WorkSplit, following: Statement | None) -> list[State]:
        """The states that the result passes: as it is wanted, and as the next statement is given it; where
        both are open, as the multiplication leaves it, its sums added."""
        specs = [part.result.spec]
        if following is not None:
            specs.append(following.operands[0].spec)
        wanted = [self._pool.state(spec) for spec in specs if spec is not None]
        return wanted or [(split.result[0], ())]

    def _moves(self, array: ShardedArray, start: State, goal: State) -> tuple[PathMove, ...]:
        """The moves between two states. Raises `KeyError` where none lead from the one to the other."""
        return self._ways.to(self._ways.kind(array), {start: 0}).path(goal)[1]

    def _work_split(self, part: Statement, starts: tuple[State, ...]) -> WorkSplit:
        """The work as the cases share it; pending sums of operands are added first."""
        assignment: Assignment = {}
        for dim in part.einsum.dims:
            axes = tuple(self._axes(part, starts, dim))
            if axes:
                assignment[dim] = axes
        operands = tuple(
            (tuple(assignment.get(dim, ()) for dim in dims), ()) for dims in part.einsum.operands
        )
        pending = sorted(axis for dim in part.einsum.contracted for axis in assignment.get(dim, ()))
        result = tuple(assignment.get(dim, ()) for dim in part.einsum.result)
        return WorkSplit(assignment, operands, (result, tuple(pending)))

    def _axes(self, part: Statement, starts: tuple[State, ...], dim: str) -> Iterator[str]:
        """The axes that split a dimension while the devices multiply, the major first."""
        holders = [
            (place, state[0][dims.index(dim)])
            for place, (dims, state) in enumerate(zip(part.einsum.operands, starts, strict=True))
            if dims.count(dim) == 1
        ]
        if not holders or any(dims.count(dim) > 1 for dims in part.einsum.operands):
            return
        place, axes = max(holders, key=lambda holder: len(holder[1]))
        if any(own and own != axes for _, own in holders):
            return  # two orders: no case; it is gathered
        is_summed = dim in part.einsum.contracted
        alone = sum(dim in dims for dims in part.einsum.operands) == 1
        for axis in axes:
            others = _other_places(part, starts, place, axis)
            if others and set(others.values()) != {dim}:
                keeps = not is_summed and self._stays(part, starts, place, others)
            else:
                keeps = bool(others) or alone or not is_summed
            if not keeps:
                return  # what is minor to an axis that is gathered is gathered with it
            yield axis

    def _stays(
        self, part: Statement, starts: tuple[State, ...], place: int, others: Mapping[int, str]
    ) -> bool:
        """Return whether the other of two operands is gathered, which use an axis for dimensions of their
        own."""
        other, dim = next(iter(others.items()))
        if dim in part.einsum.contracted:
            return True
        own = self._gathered_bytes(part, starts, place), place
        return (self._gathered_bytes(part, starts, other), other) <= own

    def _gathered_bytes(self, part: Statement, starts: tuple[State, ...], place: int) -> int:
        array = part.operands[place]
        parts = 1
        for axes in starts[place][0]:
            parts *= self._ways.space.group_size(axes)
        return array.nbytes // parts


def _other_places(part: Statement, starts: tuple[State, ...], place: int, axis: str) -> dict[int, str]:
    return {
        other: dim
        for other, (dims, (placed, _)) in enumerate(zip(part.einsum.operands, starts, strict=True))
        if other != place
        for dim, axes in zip(dims, placed, strict=True)
        if axis in axes
    }
