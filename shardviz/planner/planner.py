"""Problem → Plan: the steps with the least cost.

Every statement may share its work in any way in which the given arrays share it (`work_split`), every array
take the cheapest moves (`paths`) between the states of its uses, and every intermediate be in any state: the
least costs of all of them are carried from statement to statement, so the plan of a chain is the best of all.
With the work `anywhere`, an axis that some array names may split any dimension of any statement.

With the result the compiler's choice, its dimensions may be split over the axes over which some given array
splits them, and nothing is left pending.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError
from shardviz.planner.axis_pool import AxisPool
from shardviz.planner.moves import ReshardMove, State, StateSpace, reshard_move, spec_of
from shardviz.planner.paths import ArrayKind, PathMove, PathSearch
from shardviz.planner.plan import Objective, Plan, Step
from shardviz.planner.prices import Cost, Prices
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.reasons import EinsumChoice, explain_einsum, explain_moves
from shardviz.planner.statement_ways import StatementWays, Way
from shardviz.planner.work_split import WorkSplit, case_of
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray, array_bytes
from shardviz.sharding.axis_parts import joined_parts

if TYPE_CHECKING:
    from shardviz.hardware.machine import PlacedMesh


class Planner:
    """Plans problems on one mesh; remembers prices, so that similar problems are planned quickly."""

    def __init__(
        self,
        mesh: Mesh,
        placed: PlacedMesh | None = None,
        objective: Objective = "time",
        *,
        anywhere: bool = False,
    ) -> None:
        """Plan for a mesh as `placed` on a machine; without one on the assumed machine."""
        from shardviz.hardware.machine import assumed_machine, on_assumed_machine

        self.mesh, self.objective, self.anywhere = mesh, objective, anywhere
        self.placed = placed or on_assumed_machine(assumed_machine(), mesh)
        self.prices = Prices(self.placed, objective)
        self._spaces: dict[AxisPool, StateSpace] = {}

    def plan(self, problem: Problem) -> Plan:
        """The plan. Raises `QuestionError` when the result cannot be had as asked."""
        planned = _Planning(self, problem).planned()
        steps = tuple(_steps(problem, planned))
        result = problem.result.name
        spec = next(step.to_spec for step in reversed(steps) if step.array == result)
        cases = tuple(case_of(one.part.einsum, one.starts, problem.mesh) for one in planned)
        return Plan(problem, steps, spec, cases, self.objective)

    def space(self, pool: AxisPool) -> StateSpace:
        """The states that arrays can be in over some axes."""
        if pool not in self._spaces:
            self._spaces[pool] = StateSpace(pool.sizes, self.mesh, pool.may_mask)
        return self._spaces[pool]


def plan(problem: Problem, placed: PlacedMesh | None = None, objective: Objective = "time") -> Plan:
    """The best plan on a machine; see the module's text for the rules."""
    return Planner(problem.mesh, placed, objective).plan(problem)


@dataclass
class _Made:
    """An array as it is had: the searches through the states that it must pass, one after the other, and the
    way to run its statement to each state in which that leaves it; none of an argument."""

    array: ShardedArray
    searches: list[PathSearch]
    ways: Mapping[State, Way]


@dataclass(frozen=True)
class PlannedStatement:
    """One statement as planned: how its work is split, the moves of each operand, those of the result to each
    state that it must pass through, and the operands' states before the moves."""

    part: Statement
    work_split: WorkSplit
    operand_moves: tuple[tuple[ReshardMove, ...], ...]
    result_moves: tuple[tuple[ReshardMove, ...], ...]
    starts: tuple[State, ...]


class _Planning:
    """One problem, each of whose arrays is used once, while it is planned."""

    def __init__(self, planner: Planner, problem: Problem) -> None:
        self._problem, self._prices = problem, planner.prices
        self._pool = AxisPool.of(problem)
        self._space = planner.space(self._pool)
        self._ways = StatementWays(self._space, planner.prices)
        self._splits = None if planner.anywhere else self._pool.splits
        self._made: dict[str, _Made] = {}

    def planned(self) -> list[PlannedStatement]:
        """The statements as planned."""
        for part in self._problem.parts:
            operands = [self._operand(operand) for operand in part.operands]
            ways = self._ways.ways(part, operands, self._pool.uneven, self._splits)
            sources = {state: way.cost for state, way in ways.items()}
            made = _Made(part.result, [self._search(part.result, sources)], ways)
            self._made[part.result.name] = made
            if part.result.spec is not None:
                self._pass(made, part.result.spec)
        return self._traced()

    def _operand(self, operand: ShardedArray) -> PathSearch:
        """The costs of having an operand in each state."""
        made = self._made.get(operand.name)
        if made is None:
            start = self._pool.state(operand.decided_spec)
            made = self._made[operand.name] = _Made(operand, [self._search(operand, {start: 0})], {})
        elif operand.spec is not None:
            self._pass(made, operand.spec)
        return made.searches[-1]

    def _search(self, array: ShardedArray, sources: Mapping[State, Cost]) -> PathSearch:
        kind = ArrayKind(array.shape, array.dtype, self._pool.uneven_of(array))
        return PathSearch(self._space, kind, self._prices, sources)

    def _pass(self, made: _Made, spec: PartitionSpec) -> None:
        """Have an array pass through the state of a spec."""
        state = self._pool.state(spec)
        cost = made.searches[-1].cost(state)
        if cost is None:
            raise _cannot_be_had(made.array, spec)
        made.searches.append(self._search(made.array, {state: cost}))

    def _goal(self) -> State:
        """The state in which the result is left."""
        made = self._made[self._problem.result.name]
        if made.array.spec is not None:
            return self._pool.state(made.array.spec)
        for (dims, pending), _ in made.searches[-1].costs():
            placed = {(dim, axis) for dim, axes in zip(made.array.dims, dims, strict=True) for axis in axes}
            if not pending and placed <= self._pool.splits:
                return dims, pending
        raise AssertionError("a whole array can always be had")

    def _traced(self) -> list[PlannedStatement]:
        """The ways and the moves that led to the result, from the last statement to the first."""
        result = self._made[self._problem.result.name]
        natural, moves = self._path(result, self._goal())
        came: dict[str, tuple[State, list[tuple[ReshardMove, ...]]]] = {result.array.name: (natural, moves)}
        found: list[PlannedStatement] = []
        for part in reversed(self._problem.parts):
            natural, moves = came[part.result.name]
            split = self._made[part.result.name].ways[natural].split
            starts, operand_moves = [], []
            for operand, needed in zip(part.operands, split.operands, strict=True):
                made = self._made[operand.name]
                start, last = made.searches[-1].path(needed)
                starts.append(self._joined(start))
                operand_moves.append(self._written(made.array, last))
                came[operand.name] = self._path(made, start, made.searches[:-1])
            found.append(
                PlannedStatement(
                    part, self._joined_split(split), tuple(operand_moves), tuple(moves), tuple(starts)
                )
            )
        return found[::-1]

    def _path(
        self, made: _Made, state: State, searches: Sequence[PathSearch] | None = None
    ) -> tuple[State, list[tuple[ReshardMove, ...]]]:
        """The state in which a statement left an array, and the moves through all searches to a state."""
        moves: list[tuple[ReshardMove, ...]] = []
        for search in reversed(made.searches if searches is None else searches):
            state, path = search.path(state)
            moves.insert(0, self._written(made.array, path))
        return state, moves

    def _written(self, array: ShardedArray, moves: Sequence[PathMove]) -> tuple[ReshardMove, ...]:
        """The moves with their bytes, over joined axes."""
        mesh = self._problem.mesh
        return tuple(
            reshard_move(
                array,
                mesh,
                move.op,
                move.axes,
                move.dim,
                self._joined(move.before),
                self._joined(move.after),
            )
            for move in moves
        )

    def _joined(self, state: State) -> State:
        spec = spec_of(state, self._problem.mesh)
        return spec.dims, spec.unreduced

    def _joined_split(self, split: WorkSplit) -> WorkSplit:
        shape = self._problem.mesh.shape
        return WorkSplit(
            {dim: joined_parts(axes, shape) for dim, axes in split.assignment.items()},
            tuple(map(self._joined, split.operands)),
            self._joined(split.result),
        )


def _steps(problem: Problem, planned: Sequence[PlannedStatement]) -> Iterator[Step]:
    """The steps of all statements, with their reasons."""
    gathered = frozenset(_gathered(planned))
    following = [*(part.operands[0] for part in problem.parts[1:]), None]
    for number, (one, next_input) in enumerate(zip(planned, following, strict=True)):
        part = one.part
        choice = EinsumChoice(problem.mesh, part, one.work_split, one.starts, gathered, next_input)
        for operand, moves in zip(part.operands, one.operand_moves, strict=True):
            reasons = explain_moves(choice, operand, moves)
            yield from (_step(operand, move, why, number) for move, why in zip(moves, reasons, strict=True))
        yield _work_step(problem.mesh, part, one.work_split, explain_einsum(choice), number)
        for moves in one.result_moves:
            reasons = explain_moves(choice, part.result, moves)
            yield from (
                _step(part.result, move, why, number) for move, why in zip(moves, reasons, strict=True)
            )


def _work_step(mesh: Mesh, part: Statement, split: WorkSplit, reason: str, number: int) -> Step:
    spec = spec_of(split.result)
    array = part.result.with_spec(spec)
    shape = array.shard_shape(mesh)
    is_einsum = part.function == "multiply"
    return Step(
        "einsum" if is_einsum else "apply",
        array.name,
        (),
        None,
        spec,
        spec,
        shape,
        array.dtype,
        array_bytes(shape, array.dtype),
        0,
        reason,
        tuple(operand.name for operand in part.operands),
        part.einsum,
        number,
        "" if is_einsum else part.function,
        tuple(map(spec_of, split.operands)),
    )


def _step(array: ShardedArray, move: ReshardMove, reason: str, number: int) -> Step:
    return Step(
        move.op,
        array.name,
        move.axes,
        move.dim,
        spec_of(move.before),
        spec_of(move.after),
        move.shape,
        array.dtype,
        move.bytes,
        move.wire_bytes,
        reason,
        part=number,
    )


def _gathered(planned: Sequence[PlannedStatement]) -> Iterator[str]:
    """The names of the arrays that a plan gathers."""
    for one in planned:
        named = zip(one.part.operands, one.operand_moves, strict=True)
        for array, moves in (*named, *((one.part.result, moves) for moves in one.result_moves)):
            if any(move.op == "all_gather" for move in moves):
                yield array.name


def _cannot_be_had(array: ShardedArray, spec: PartitionSpec) -> QuestionError:
    return QuestionError(
        f"{array.name} cannot be left as {spec}: no moves over whole pieces lead to it",
        "split it in another way, or use sizes that its axes divide",
    )
