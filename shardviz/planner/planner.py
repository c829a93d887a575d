"""Problem → Plan: the steps with the least cost.

Every statement may share its work in any way in which the given arrays share it (`work_split`), every array
take the cheapest moves (`paths`) between the states of its uses, and every intermediate be in any state: the
least costs of all of them are carried from statement to statement, so the plan of a chain is the best of all.
With the work `anywhere`, an axis that some array names may split any dimension of any statement.

With the result the compiler's choice, its dimensions may be split over the axes over which some given array
splits them, and nothing is left pending.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError
from shardviz.planner.axis_pool import AxisPool
from shardviz.planner.contraction_order import Order, contraction_orders
from shardviz.planner.moves import ReshardMove, State, StateSpace
from shardviz.planner.paths import ArrayKind, PathSearch
from shardviz.planner.plan import Objective, Plan, Step
from shardviz.planner.prices import Cost, Prices
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.reasons import EinsumChoice, explain_einsum, explain_moves
from shardviz.planner.statement_ways import StatementWays, Way
from shardviz.planner.steps import Joined, move_step, work_step
from shardviz.planner.work_split import WorkSplit, case_of
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray

if TYPE_CHECKING:
    from shardviz.hardware.machine import PlacedMesh
    from shardviz.planner.dag.statement_choices import StatementChoices


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
        self._programs: dict[AxisPool, StatementChoices] = {}

    def plan(self, problem: Problem) -> Plan:
        """The plan. Raises `QuestionError` when the result cannot be had as asked."""
        if not problem.is_tree:
            return self._program(problem)
        return plan_of(problem, _Planning(self, problem).planned(), self.objective)

    def _program(self, problem: Problem) -> Plan:
        """The plan of a program whose arrays are used several times."""
        from shardviz.planner.dag.program_planner import planned_program
        from shardviz.planner.dag.program_steps import program_steps
        from shardviz.planner.dag.statement_choices import StatementChoices

        pool = AxisPool.of(problem)
        if pool not in self._programs:
            splits = None if self.anywhere else pool.splits
            self._programs[pool] = StatementChoices(pool, self.space(pool), self.prices, splits)
        planned = planned_program(self._programs[pool], problem)
        steps, cases = program_steps(problem, planned)
        spec = next(step.to_spec for step in reversed(steps) if step.array == problem.result.name)
        optimal = planned.least == planned.cost
        at_most = None if optimal else self.prices.ratio(planned.cost, planned.least)
        return Plan(problem, tuple(steps), spec, cases, self.objective, optimal, at_most)

    def space(self, pool: AxisPool) -> StateSpace:
        """The states that arrays can be in over some axes."""
        if pool not in self._spaces:
            self._spaces[pool] = StateSpace(pool.sizes, self.mesh, pool.may_mask)
        return self._spaces[pool]


def plan(problem: Problem, placed: PlacedMesh | None = None, objective: Objective = "time") -> Plan:
    """The best plan on a machine; see the module's text for the rules."""
    return Planner(problem.mesh, placed, objective).plan(problem)


def plan_of(problem: Problem, planned: Sequence[PlannedStatement], objective: Objective) -> Plan:
    """The plan of a problem's statements as planned, of which some may be several."""
    problem = replace(problem, parts=tuple(one.part for one in planned))
    steps = tuple(_steps(problem, planned))
    result = problem.result.name
    spec = next(step.to_spec for step in reversed(steps) if step.array == result)
    cases = tuple(case_of(one.part.einsum, one.starts, problem.mesh) for one in planned)
    return Plan(problem, steps, spec, cases, objective)


@dataclass
class _Made:
    """An array as it is had: the searches through the states that it must pass, one after the other; where a
    statement makes it, for each state in which that leaves it the order and the way to run it."""

    array: ShardedArray
    searches: list[PathSearch]
    ways: dict[State, tuple[_Order, Way]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Order:
    """A statement computed as one or several, with the arrays that are made on the way and those that it is
    given."""

    parts: Order
    arrays: ChainMap[str, _Made]


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
        self._joined = Joined(problem.mesh)
        self._pool = AxisPool.of(problem)
        self._space = planner.space(self._pool)
        self._ways = StatementWays(self._space, planner.prices)
        self._splits = None if planner.anywhere else self._pool.splits
        self._made: ChainMap[str, _Made] = ChainMap()

    def planned(self) -> list[PlannedStatement]:
        """The statements as planned, of which some may be several."""
        for part in self._problem.parts:
            for operand in part.operands:
                self._give(operand)
            ways: dict[State, tuple[_Order, Way]] = {}
            for parts in contraction_orders(part):
                order = _Order(parts, self._made.new_child())
                for step in parts[:-1]:
                    found = {
                        state: (_Order((step,), order.arrays), way) for state, way in self._run(step, order)
                    }
                    order.arrays[step.result.name] = self._as_made(step.result, found)
                for state, way in self._run(parts[-1], order):
                    if state not in ways or way.cost < ways[state][1].cost:
                        ways[state] = order, way
            made = self._made[part.result.name] = self._as_made(part.result, ways)
            if part.result.spec is not None:
                self._pass(made, part.result.spec)
        return self._traced()

    def _run(self, part: Statement, order: _Order) -> Iterable[tuple[State, Way]]:
        """Each state in which a statement can leave its result, and the way to there."""
        operands = [order.arrays[operand.name].searches[-1] for operand in part.operands]
        return self._ways.ways(part, operands, self._pool.uneven, self._splits).items()

    def _as_made(self, array: ShardedArray, ways: dict[State, tuple[_Order, Way]]) -> _Made:
        sources = {state: way.cost for state, (_, way) in ways.items()}
        return _Made(array, [self._search(array, sources)], ways)

    def _give(self, operand: ShardedArray) -> None:
        """Have an operand as a statement is given it."""
        made = self._made.get(operand.name)
        if made is None:
            start = self._pool.state(operand.decided_spec)
            self._made[operand.name] = _Made(operand, [self._search(operand, {start: 0})])
        elif operand.spec is not None:
            self._pass(made, operand.spec)

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
        came = {result.array.name: self._path(result, self._goal(), result.searches)}
        found: list[PlannedStatement] = []

        def trace(part: Statement, order: _Order, way: Way) -> None:
            """Add a statement, and what its operands come from."""
            split = way.split
            starts, operand_moves = [], []
            for operand, needed in zip(part.operands, split.operands, strict=True):
                made = order.arrays[operand.name]
                start, last = made.searches[-1].path(needed)
                starts.append(self._joined.state(start))
                operand_moves.append(self._joined.moves(operand, last))
                came[operand.name] = self._path(made, start, made.searches[:-1])
            found.append(
                PlannedStatement(
                    part,
                    self._joined.split(split),
                    tuple(operand_moves),
                    tuple(came[part.result.name][1]),
                    tuple(starts),
                )
            )

        for whole in reversed(self._problem.parts):
            order, way = self._made[whole.result.name].ways[came[whole.result.name][0]]
            for part in reversed(order.parts):
                if part is not order.parts[-1]:
                    _, way = order.arrays[part.result.name].ways[came[part.result.name][0]]
                trace(part, order, way)
        return found[::-1]

    def _path(
        self, made: _Made, state: State, searches: Sequence[PathSearch]
    ) -> tuple[State, list[tuple[ReshardMove, ...]]]:
        """The state in which a statement left an array, and the moves through all searches to a state."""
        moves: list[tuple[ReshardMove, ...]] = []
        for search in reversed(searches):
            state, path = search.path(state)
            moves.insert(0, self._joined.moves(made.array, path))
        return state, moves


def _steps(problem: Problem, planned: Sequence[PlannedStatement]) -> Iterator[Step]:
    """The steps of all statements, with their reasons."""
    gathered = frozenset(_gathered(planned))
    for number, one in enumerate(planned):
        part = one.part
        uses = (operand for later in problem.parts[number + 1 :] for operand in later.operands)
        next_input = next((operand for operand in uses if operand.name == part.result.name), None)
        choice = EinsumChoice(problem.mesh, part, one.work_split, one.starts, gathered, next_input)
        for operand, moves in zip(part.operands, one.operand_moves, strict=True):
            reasons = explain_moves(choice, operand, moves)
            yield from (
                move_step(operand, move, why, number) for move, why in zip(moves, reasons, strict=True)
            )
        yield work_step(problem.mesh, part, one.work_split, explain_einsum(choice), number)
        for moves in one.result_moves:
            reasons = explain_moves(choice, part.result, moves)
            yield from (
                move_step(part.result, move, why, number) for move, why in zip(moves, reasons, strict=True)
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
