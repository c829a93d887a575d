"""Plans of problems each of whose arrays is used once: a tree of statements.

The least cost of having an array in each state is carried from statement to statement, so that the plan of a
tree is the best of all (Bertelè and Brioschi, "Nonserial Dynamic Programming", 1972): in (A·B)·C the cost of
the whole is the least, over all ways to divide the last product, of its work and of having both operands as
it needs them. Few of these costs are ever found: each has a bound first (`relaxation`), ways are asked for in
the order of their bounds, and the search ends as soon as the next bound reaches the best cost.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shardviz.errors import QuestionError
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.statements.contraction_order import Order, contraction_orders
from shardviz.planner.statements.statement_ways import StatementWays, Way, WithOperands
from shardviz.planner.statements.work_split import PlannedStatement, planned_statement
from shardviz.planner.states.moves import PathMove, State
from shardviz.planner.states.paths import CheapestPaths
from shardviz.planner.states.prices import UNREACHABLE, Cost
from shardviz.sharding import PartitionSpec, ShardedArray

_Came = dict[str, tuple[State, list[tuple[PathMove, ...]]]]
"""By array the state in which a statement leaves it, and its moves from there through all searches."""


class _Made:
    """An array as it is had: the searches through the states that it must pass, one after the other; where
    statements make it, the `orders` of these, and the ways to run the last of one."""

    def __init__(self, ways: StatementWays, array: ShardedArray, orders: Sequence[_Order] = ()) -> None:
        self._ways, self.array, self.orders = ways, array, orders
        self.kind = ways.kind(array)
        if orders:
            self._made = ways.ways([order.last for order in orders])
            self.searches = [ways.of_made(self.kind, self._made.least, self._made.cost)]
        else:
            self.searches = [ways.to(self.kind, {ways.pool.state(array.decided_spec): 0})]

    def pass_through(self, spec: PartitionSpec) -> None:
        """Have the array pass through the state of a spec."""
        state = self._ways.pool.state(spec)
        cost = self.searches[-1].cost(state)
        if cost is None:
            raise cannot_be_had(self.array, spec)
        self.searches.append(self._ways.to(self.kind, {state: cost}))

    def way(self, state: State) -> tuple[_Order, Way]:
        """The cheapest way to make the array in a state, where a path starts, with its order."""
        way = self._made.way(state, UNREACHABLE)
        assert way is not None
        return self.orders[way.number], way


@dataclass(frozen=True)
class _Order:
    """A statement computed as one or several, with the arrays that are made on the way and those that it is
    given."""

    parts: Order
    arrays: ChainMap[str, _Made]

    @property
    def last(self) -> WithOperands:
        """The last of the parts."""
        part = self.parts[-1]
        return part, [self.arrays[operand.name].searches[-1] for operand in part.operands]


class TreePlanner:
    """One problem, each of whose arrays is used once, while it is planned."""

    def __init__(self, problem: Problem, ways: StatementWays) -> None:
        self._problem, self._ways, self._pool = problem, ways, ways.pool
        self._made: ChainMap[str, _Made] = ChainMap()
        self._names = frozenset(array.name for array in problem.arrays)

    def planned(self, limit: Cost = UNREACHABLE) -> tuple[Cost, list[PlannedStatement]] | None:
        """The statements as planned, of which some may be several, and what they cost; None where that is
        not less than `limit`."""
        *before, last = self._problem.parts
        for part in before:
            made = self._made[part.result.name] = _Made(self._ways, part.result, [*self._orders(part)])
            if part.result.spec is not None:
                made.pass_through(part.result.spec)
        ends, orders = self._ends(last), [*self._orders(last)]
        best = self._ways.best([order.last for order in orders], ends, limit)
        return None if best is None else (best.cost, self._traced(orders[best.number], best, ends))

    def _orders(self, part: Statement) -> Iterator[_Order]:
        """The orders in which a statement can be computed, with all but the last of their parts done."""
        for operand in part.operands:
            made = self._made.get(operand.name)
            if made is None:
                self._made[operand.name] = _Made(self._ways, operand)
            elif operand.spec is not None:
                made.pass_through(operand.spec)
        done: dict[Order, _Made] = {}  # orders that begin alike share what they make
        for parts in contraction_orders(part, self._names):
            order = _Order(parts, self._made.new_child())
            for end, step in enumerate(parts[:-1], 1):
                if parts[:end] not in done:
                    done[parts[:end]] = _Made(self._ways, step.result, [_Order((step,), order.arrays)])
                order.arrays[step.result.name] = done[parts[:end]]
            yield order

    def _ends(self, part: Statement) -> CheapestPaths:
        """The costs of bringing the last result from each state to where it may be left."""
        result, operands = part.result, [self._made.get(operand.name) for operand in part.operands]
        pending = {axis for made in operands if made is not None for axis in made.searches[-1].pending}
        for operand in part.operands:
            pending |= set(self._pool.state(operand.spec)[1]) if operand.spec is not None else set()
        if part.einsum.contracted:
            pending |= set(self._pool.sizes)
        goals = self._pool.open_states(result) if result.spec is None else [self._pool.state(result.spec)]
        axes = tuple(axis for axis in self._pool.sizes if axis in pending)
        return self._ways.onward(self._ways.kind(result), goals, axes)

    def _traced(self, order: _Order, way: Way, ends: CheapestPaths) -> list[PlannedStatement]:
        """The ways and the moves that led to the result, from the last statement to the first."""
        result = self._problem.result
        natural = way.split.result
        came: _Came = {result.name: (natural, [ends.path(natural)[1]])}
        statements: list[PlannedStatement] = []
        for whole in reversed(self._problem.parts):
            if whole is not self._problem.parts[-1]:
                order, way = self._made[whole.result.name].way(came[whole.result.name][0])
            for part in reversed(order.parts):
                if part is not order.parts[-1]:
                    _, way = order.arrays[part.result.name].way(came[part.result.name][0])
                statements.append(self._planned_statement(part, order, way, came))
        return statements[::-1]

    def _planned_statement(self, part: Statement, order: _Order, way: Way, came: _Came) -> PlannedStatement:
        """A statement as planned; adds what its operands come from."""
        starts, before = [], []
        for operand, needed in zip(part.operands, way.split.operands, strict=True):
            made = order.arrays[operand.name]
            start, moves = made.searches[-1].path(needed)
            starts.append(start)
            before.append((operand, moves))
            behind_maker: list[tuple[PathMove, ...]] = []
            state = start
            for search in reversed(made.searches[:-1]):
                state, moves = search.path(state)
                behind_maker.insert(0, moves)
            came[operand.name] = state, behind_maker
        behind = [(part.result, moves) for moves in came[part.result.name][1]]
        return planned_statement(self._problem.mesh, part, way.split, starts, before, behind)


def cannot_be_had(array: ShardedArray, spec: PartitionSpec) -> QuestionError:
    problem = f"{array.name} cannot be left as {spec}: no collectives over equal shards lead to it"
    return QuestionError(problem, "shard it in another way, or use sizes that its axes divide")
