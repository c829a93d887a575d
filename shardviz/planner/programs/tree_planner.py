"""Plans of problems each of whose arrays is used once: a tree of statements.

Every intermediate may be in any state. The least cost of having an array in each state is carried from
statement to statement, so that the plan of a tree is the best of all (Bertelè and Brioschi, "Nonserial
Dynamic Programming", 1972). In (A·B)·C the cost of A·B in a state is that of the cheapest way to divide this
product, with the moves from what that leaves; the cost of the whole is the least, over all ways to divide
the last product, of its work and of having both operands as it needs them.

Few of these costs are ever found: each has a bound first (`relaxation`), ways are asked for in the order of
their bounds, and the search ends as soon as the next bound reaches the best cost.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from shardviz.errors import QuestionError
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.statements.array_searches import ArraySearches
from shardviz.planner.statements.axis_pool import AxisPool
from shardviz.planner.statements.contraction_order import Order, contraction_orders
from shardviz.planner.statements.planned_statement import (
    Joined,
    OtherWay,
    PlannedStatement,
    cost_of_other_way,
)
from shardviz.planner.statements.statement_ways import StatementWays, Way, WaysByResult
from shardviz.planner.statements.work_split import WorkSplit
from shardviz.planner.states.moves import Axes, ReshardMove, State
from shardviz.planner.states.paths import UNREACHABLE, ArrayPaths
from shardviz.planner.states.prices import Cost, Prices
from shardviz.sharding import PartitionSpec, ShardedArray

MOST_COMPARED = 3
"""Parts of axes up to which another way to split the work is looked for."""


@dataclass
class _Made:
    """An array as it is had: the searches through the states that it must pass, one after the other; where
    statements make it, the orders of these, each with the ways to run its last."""

    array: ShardedArray
    searches: list[ArrayPaths]
    ways: Sequence[tuple[_Order, WaysByResult]] = ()

    def least(self) -> dict[State, Cost]:
        """The least cost of the array in each state in which its statements can leave it."""
        found: dict[State, Cost] = {}
        for _, ways in self.ways:
            for state, least in ways.least.items():
                found[state] = min(least, found.get(state, least))
        return found

    def cost(self, state: State, limit: Cost) -> Cost | None:
        """The cost of the array in a state; None where that is not less than a limit."""
        found = self._cheapest(state, limit)
        return None if found is None else found[1].cost

    def way(self, state: State) -> tuple[_Order, Way]:
        """The cheapest way to make the array in a state in which it can be left, with its order."""
        found = self._cheapest(state, UNREACHABLE)
        if found is None:
            raise KeyError(state)
        return found

    def _cheapest(self, state: State, limit: Cost) -> tuple[_Order, Way] | None:
        found = None
        for order, ways in self.ways:
            way = ways.way(state, limit)
            if way is not None:
                found, limit = (order, way), way.cost
        return found


@dataclass(frozen=True)
class _Order:
    """A statement computed as one or several, with the arrays that are made on the way and those that it is
    given."""

    parts: Order
    arrays: ChainMap[str, _Made]


class TreePlanner:
    """One problem, each of whose arrays is used once, while it is planned.

    `splits` are the splits of dimensions that its statements may share their work by; None is all of them.
    """

    def __init__(
        self, problem: Problem, searches: ArraySearches, splits: frozenset[tuple[str, str]] | None
    ) -> None:
        self._problem, self._searches, self._splits = problem, searches, splits
        self._prices, self._pool, self._space = searches.prices, searches.pool, searches.space
        self._joined = Joined(problem.mesh)
        self._ways = StatementWays(self._space, self._prices)
        self._made: ChainMap[str, _Made] = ChainMap()
        self._names = frozenset(array.name for array in problem.arrays)

    def planned(self, limit: Cost = UNREACHABLE) -> tuple[Cost, list[PlannedStatement]] | None:
        """The statements as planned, of which some may be several, and what they cost; None where that is
        not less than `limit`."""
        *before, last = self._problem.parts
        for part in before:
            made = self._made[part.result.name] = self._as_made(
                part.result, [(order, self._ways_of(order)) for order in self._orders(part)]
            )
            if part.result.spec is not None:
                self._pass(made, part.result.spec)
        return self._last(last, limit)

    def _last(self, part: Statement, limit: Cost) -> tuple[Cost, list[PlannedStatement]] | None:
        """The cheapest way to run the last statement and to have its result as it is wanted."""
        best: tuple[_Order, Way] | None = None
        ends = self._ends(part)
        for order in self._orders(part):
            operands = self._operands(order.parts[-1], order)
            way = self._ways.best(order.parts[-1], operands, ends, limit, self._pool.uneven, self._splits)
            if way is not None:
                best, limit = (order, way), way.cost
        return None if best is None else (limit, self._traced(*best, ends))

    def _orders(self, part: Statement) -> Iterator[_Order]:
        """The orders in which a statement can be computed, with all but the last of their parts done."""
        for operand in part.operands:
            self._give(operand)
        done: dict[Order, _Made] = {}  # orders that begin alike share what they make
        for parts in contraction_orders(part, self._names):
            order = _Order(parts, self._made.new_child())
            for end, step in enumerate(parts[:-1], 1):
                made = done.get(parts[:end])
                if made is None:
                    own = _Order((step,), order.arrays)
                    made = done[parts[:end]] = self._as_made(step.result, [(own, self._ways_of(own))])
                order.arrays[step.result.name] = made
            yield order

    def _operands(self, part: Statement, order: _Order) -> list[ArrayPaths]:
        return [order.arrays[operand.name].searches[-1] for operand in part.operands]

    def _ways_of(self, order: _Order) -> WaysByResult:
        """The ways to run the last statement of an order."""
        part = order.parts[-1]
        return self._ways.ways(part, self._operands(part, order), self._pool.uneven, self._splits)

    def _as_made(self, array: ShardedArray, ways: Sequence[tuple[_Order, WaysByResult]]) -> _Made:
        made = _Made(array, [], ways)
        made.searches.append(self._searches.of_made(self._searches.kind(array), made.least(), made.cost))
        return made

    def _give(self, operand: ShardedArray) -> None:
        """Have an operand as a statement is given it."""
        made = self._made.get(operand.name)
        if made is None:
            start = self._pool.state(operand.decided_spec)
            given = self._searches.to(self._searches.kind(operand), {start: 0})
            self._made[operand.name] = _Made(operand, [given])
        elif operand.spec is not None:
            self._pass(made, operand.spec)

    def _pass(self, made: _Made, spec: PartitionSpec) -> None:
        """Have an array pass through the state of a spec."""
        state = self._pool.state(spec)
        cost = made.searches[-1].cost(state)
        if cost is None:
            raise cannot_be_had(made.array, spec)
        made.searches.append(self._searches.to(self._searches.kind(made.array), {state: cost}))

    def _ends(self, part: Statement) -> ArrayPaths:
        """The costs of bringing the last result from each state to where it may be left."""
        result, operands = part.result, [self._made.get(operand.name) for operand in part.operands]
        pending = {axis for made in operands if made is not None for axis in made.searches[-1].pending}
        for operand in part.operands:
            pending |= set(self._pool.state(operand.spec)[1]) if operand.spec is not None else set()
        if part.einsum.contracted:
            pending |= set(self._space.sizes)
        goals = self._pool.open_states(result) if result.spec is None else [self._pool.state(result.spec)]
        axes = tuple(axis for axis in self._space.sizes if axis in pending)
        return self._searches.onward(self._searches.kind(result), goals, axes)

    def _traced(self, order: _Order, way: Way, ends: ArrayPaths) -> list[PlannedStatement]:
        """The ways and the moves that led to the result, from the last statement to the first."""
        result = self._problem.result
        natural = way.split.result
        came = {result.name: (natural, [self._joined.moves(result, ends.path(natural)[1])])}
        # The backward search of each array to where the plan has it next.
        after = {result.name: ends}
        found: list[PlannedStatement] = []
        for whole in reversed(self._problem.parts):
            if whole is not self._problem.parts[-1]:
                order, way = self._made[whole.result.name].way(came[whole.result.name][0])
            for part in reversed(order.parts):
                if part is not order.parts[-1]:
                    _, way = order.arrays[part.result.name].way(came[part.result.name][0])
                found.append(self._planned_statement(part, order, way, came, after))
        return found[::-1]

    def _planned_statement(
        self,
        part: Statement,
        order: _Order,
        way: Way,
        came: dict[str, tuple[State, list[tuple[ReshardMove, ...]]]],
        after: dict[str, ArrayPaths],
    ) -> PlannedStatement:
        """A statement as planned; adds what its operands come from, and where they go next."""
        starts, operand_moves = [], []
        for operand, needed in zip(part.operands, way.split.operands, strict=True):
            made = order.arrays[operand.name]
            start, last = made.searches[-1].path(needed)
            starts.append(self._joined.state(start))
            operand_moves.append(self._joined.moves(operand, last))
            came[operand.name] = self._path(made, start, made.searches[:-1])
            if made.ways:
                goal = made.searches[1].sources[0].state if len(made.searches) > 1 else needed
                after[operand.name] = self._searches.onward(self._searches.kind(operand), [goal])
        split = self._joined.split(way.split)
        searches = [order.arrays[operand.name].searches[-1] for operand in part.operands]
        other_ways = TreeWays(
            self._ways,
            self._prices,
            self._pool,
            self._splits,
            part,
            way.split,
            searches,
            after[part.result.name],
        )
        return PlannedStatement(
            self._problem.mesh,
            part,
            split,
            tuple(starts),
            list(zip(part.operands, operand_moves, strict=True)),
            [(part.result, moves) for moves in came[part.result.name][1]],
            other_ways,
        )

    def _path(
        self, made: _Made, state: State, searches: Sequence[ArrayPaths]
    ) -> tuple[State, list[tuple[ReshardMove, ...]]]:
        """The state in which a statement left an array, and the moves through all searches to a state."""
        moves: list[tuple[ReshardMove, ...]] = []
        for search in reversed(searches):
            state, path = search.path(state)
            moves.insert(0, self._joined.moves(made.array, path))
        return state, moves


@dataclass(frozen=True)
class TreeWays:
    """A statement as planned, with all that its work could be split by otherwise.

    `searches` are those of its operands, `ends` leads its result to where it may be left, or, of an
    intermediate, to where the plan has it next.
    """

    ways: StatementWays
    prices: Prices
    pool: AxisPool
    splits: Collection[tuple[str, str]] | None
    part: Statement
    chosen: WorkSplit
    searches: Sequence[ArrayPaths]
    ends: ArrayPaths

    def keeping(self, dim: str, axes: Axes) -> OtherWay | None:
        """As `OtherWays` has it."""
        if len(self.pool.sizes) > MOST_COMPARED or dim in self.part.whole or self.part.merged:
            return None
        (own,), _ = self.pool.state(PartitionSpec((axes,)))
        way = self.ways.best(
            self.part, self.searches, self.ends, UNREACHABLE, self.pool.uneven, self.splits, (dim, own)
        )
        if way is None:
            return None
        gathered = frozenset(
            operand.name
            for operand, search, state in zip(
                self.part.operands, self.searches, way.split.operands, strict=True
            )
            if [move.op for move in search.path(state)[1]] == ["all_gather"]
        )
        return cost_of_other_way(self.prices, way.cost, self._cost(), gathered)

    def _cost(self) -> Cost:
        """The cost of the way that was chosen, from what its operands come from to the end."""
        total = self.ways.work(self.part, self.chosen)
        states = (*self.chosen.operands, self.chosen.result)
        for search, state in zip((*self.searches, self.ends), states, strict=True):
            total += search.cost(state) or 0
        return total


def cannot_be_had(array: ShardedArray, spec: PartitionSpec) -> QuestionError:
    return QuestionError(
        f"{array.name} cannot be left as {spec}: no moves over whole pieces lead to it",
        "split it in another way, or use sizes that its axes divide",
    )
