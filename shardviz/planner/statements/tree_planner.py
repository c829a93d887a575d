"""Plans of problems each of whose arrays is used once: a tree of statements.

The least cost of having an array in each state is carried from statement to statement, so that the plan of a
tree is the best of all (Bertelè and Brioschi, "Nonserial Dynamic Programming", 1972): in (A·B)·C the cost of
the whole is the least, over all ways to divide the last product, of its work and of having both operands as
it needs them. Few of these costs are ever found: each has a bound first (`relaxation`), ways are asked for in
the order of their bounds, and the search ends as soon as the next bound reaches the best cost.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shardviz.errors import QuestionError
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.statements.contraction_order import Order, contraction_orders
from shardviz.planner.statements.statement_ways import StatementWays, Way, WithOperands
from shardviz.planner.statements.work_split import (
    Keeping,
    OtherWay,
    PlannedStatement,
    WorkSplit,
    cost_of_other_way,
    planned_statement,
)
from shardviz.planner.states.moves import Axes, PathMove, State, spec_of, state_of
from shardviz.planner.states.paths import CheapestPaths
from shardviz.planner.states.prices import UNREACHABLE, Cost
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray, array_bytes, shard_shape

_Came = dict[str, tuple[State, list[tuple[PathMove, ...]]]]
"""By array the state in which a statement leaves it, and its moves from there through all searches."""
MOST_PRIMES = 6
"""Prime parts of axes up to which those of a reshard are cut into them: with seven a search takes seconds."""
MOST_MOVES = 20_000
"""Moves that a search of a reshard lists before it gives up, after some tenths of a second."""
MOST_COMPARED = 3
"""Parts of axes up to which another way to split the work is looked for."""


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

    def searches(self, part: Statement) -> list[CheapestPaths]:
        """The searches for the operands of one of the parts."""
        return [self.arrays[operand.name].searches[-1] for operand in part.operands]

    @property
    def last(self) -> WithOperands:
        """The last of the parts."""
        return self.parts[-1], self.searches(self.parts[-1])


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
        # The backward search of each array to where the plan has it next.
        after = {result.name: ends}
        statements: list[PlannedStatement] = []
        for whole in reversed(self._problem.parts):
            if whole is not self._problem.parts[-1]:
                order, way = self._made[whole.result.name].way(came[whole.result.name][0])
            for part in reversed(order.parts):
                if part is not order.parts[-1]:
                    _, way = order.arrays[part.result.name].way(came[part.result.name][0])
                statements.append(self._planned_statement(part, order, way, came, after))
        return statements[::-1]

    def _planned_statement(
        self, part: Statement, order: _Order, way: Way, came: _Came, after: dict[str, CheapestPaths]
    ) -> PlannedStatement:
        """A statement as planned; adds what its operands come from, and where they go next."""
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
            if made.orders:
                (passed,) = made.searches[1].sources if len(made.searches) > 1 else (None,)
                after[operand.name] = self._ways.onward(made.kind, [passed.state if passed else needed])
        behind = [(part.result, moves) for moves in came[part.result.name][1]]
        keeping = self._keeping(part, order, way.split, after)
        return planned_statement(self._problem.mesh, part, way.split, starts, before, behind, keeping)

    def _keeping(
        self, part: Statement, order: _Order, chosen: WorkSplit, after: dict[str, CheapestPaths]
    ) -> Keeping:
        """The other ways to plan a statement, where its result goes on as it is planned."""
        ways, pool = self._ways, self._pool
        searches, ends = order.searches(part), after[part.result.name]

        def keeping(dim: str, axes: Axes) -> OtherWay | None:
            if len(pool.sizes) > MOST_COMPARED or dim in part.whole or part.merged:
                return None
            (own,), _ = pool.state(PartitionSpec((axes,)))
            way = ways.best([(part, searches)], ends, UNREACHABLE, (dim, own))
            if way is None:
                return None
            cost = ways.work(part, chosen)
            for search, state in zip((*searches, ends), chosen.states, strict=True):
                cost += search.cost(state) or 0
            moves = [
                (operand, search.path(state)[1])
                for operand, search, state in zip(part.operands, searches, way.split.operands, strict=True)
            ]
            return cost_of_other_way(ways.prices, way.cost, cost, moves)

        return keeping


def cannot_be_had(array: ShardedArray, spec: PartitionSpec) -> QuestionError:
    problem = f"{array.name} cannot be left as {spec}: no moves over whole pieces lead to it"
    return QuestionError(problem, "split it in another way, or use sizes that its axes divide")


# A statement that copies its operand, or transposes it, is nothing but a change of its sharding. Its axes can
# be cut finer than those of other statements: one search leads from the given state to the wanted one,
# instead of one for each way to divide the work.


def is_only_reshard(problem: Problem) -> bool:
    """Return whether a problem is one statement that copies or transposes its operand and does nothing
    else."""
    part, *others = problem.parts
    dims = part.einsum.operands[0]
    return (
        not others
        and part.function == "multiply"
        and len(part.operands) == 1
        and not (part.merged or part.whole)
        and len(set(dims)) == len(dims)
        and set(dims) == set(part.einsum.result)
        and part.operands[0].dtype == part.result.dtype
        and part.result.spec is not None
    )


def planned_reshard(part: Statement, mesh: Mesh, moves: Sequence[PathMove]) -> PlannedStatement:
    """A reshard by moves of its result from the given state, with the copy where it takes least: of the
    smallest pieces."""
    operand, result = part.operands[0], part.result

    def of_operand(state: State) -> State:
        return tuple(state[0][result.dims.index(dim)] for dim in operand.dims), state[1]

    given = state_of(operand.decided_spec, mesh)
    states = [given_state(part, given), *(move.after for move in moves)]
    pieces = [math.prod(shard_shape(result.shape, spec_of(state), mesh)) for state in states]
    index = pieces.index(min(pieces))
    dims, pending = states[index]
    assignment = {dim: axes for dim, axes in zip(result.dims, dims, strict=True) if axes}
    before = [
        PathMove(
            move.op,
            move.axes,
            None if move.dim is None else operand.dims.index(result.dims[move.dim]),
            of_operand(move.before),
            of_operand(move.after),
        )
        for move in moves[:index]
    ]
    split = WorkSplit(assignment, (of_operand(states[index]),), (dims, pending))
    return planned_statement(mesh, part, split, [given], [(operand, before)], [(result, moves[index:])])


def given_state(part: Statement, state: State) -> State:
    """The state of a reshard's operand, with the dimensions in the order of its result's."""
    dims = part.operands[0].dims
    return tuple(state[0][dims.index(dim)] for dim in part.result.dims), state[1]


def cheapest_moves(part: Statement, ways: StatementWays) -> tuple[Cost, Cost, tuple[PathMove, ...]] | None:
    """The moves of a reshard's result from the given state to the wanted one, behind what they cost with a
    copy of it, and what no plan costs less than: with the copy of the smallest pieces that there can be. None
    where none are found."""
    result, pool, space = part.result, ways.pool, ways.space
    start = given_state(part, pool.state(part.operands[0].decided_spec))
    goal = {pool.state(result.decided_spec): 0}
    pending = tuple(axis for axis in space.sizes if axis in start[1] or axis in space.may_mask)
    search = CheapestPaths(space, ways.kind(result), ways.prices, goal, pending, most_moves=MOST_MOVES)
    cost = search.cost(start)
    if cost is None:
        return None
    _, moves = search.path(start)
    held = min(search.local_bytes(state) for state in (start, *(move.after for move in moves)))
    smallest = array_bytes(result.shape, result.dtype) // space.group_size(tuple(space.sizes))
    work = (ways.prices.work(0, 2 * size, "") for size in (held, smallest))
    with_copy, least = (cost + copied for copied in work)
    return with_copy, least, moves
