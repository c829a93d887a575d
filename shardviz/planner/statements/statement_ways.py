"""The ways to run statements over the axes of a pool, and the moves of their arrays, each found once; and the
plans of trees of statements, each of whose arrays is used once.

In a tree the least cost of an array in each state is carried from statement to statement, so that its plan is
the best of all (Bertelè and Brioschi, "Nonserial Dynamic Programming", 1972): the cost of (A·B)·C is the
least, over all ways to divide the last product, of its work and of its operands as it needs them. Few costs
are found: each has a bound (`relaxation`), and the search ends as the next bound reaches the best cost."""

from __future__ import annotations

import heapq
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from math import prod
from operator import itemgetter
from typing import NamedTuple

from shardviz.errors import QuestionError
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.problem.functions import local_work, sent_beside
from shardviz.planner.statements.axis_pool import AxisPool
from shardviz.planner.statements.contraction_order import Order, contraction_orders
from shardviz.planner.statements.work_split import (
    PlannedStatement,
    WorkSplit,
    WorkSplits,
    planned_statement,
    splittable_dims,
)
from shardviz.planner.states.moves import Axes, PathMove, State, state_space
from shardviz.planner.states.paths import ArrayKind, CheapestPaths, DirectPaths
from shardviz.planner.states.prices import UNREACHABLE, Cost, Prices
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray, array_bytes

MOST_SEARCHED = 5
"""Parts of axes up to which the cheapest moves are searched: with more, direct ones are taken."""
WithOperands = tuple[Statement, Sequence[CheapestPaths]]


class Way(NamedTuple):
    """One way to run a statement, of several that make the same that of this `number`: what it costs with
    the moves of its operands, and how its work is split."""

    cost: Cost
    split: WorkSplit
    number: int = 0


class StatementWays:
    """The ways of statements over the axes of a pool, where given with those splits alone that are `allowed`:
    (dimension, axis). The `searches` of arrays' moves may be shared by pools of a mesh. Over more than `most`
    axes only some are looked at."""

    def __init__(
        self,
        pool: AxisPool,
        mesh: Mesh,
        prices: Prices,
        allowed: frozenset[tuple[str, str]] | None = None,
        searches: dict[object, CheapestPaths] | None = None,
        most: int = MOST_SEARCHED,
    ) -> None:
        self.pool, self.prices, self._allowed = pool, prices, allowed
        self.space = state_space(pool.sizes_of_parts, tuple(mesh.shape.items()), pool.may_mask, pool.may_pad)
        self._most = most
        self._paths = CheapestPaths if len(pool.sizes) <= most else DirectPaths
        self._searches: dict[object, CheapestPaths] = {} if searches is None else searches

    def kind(self, array: ShardedArray) -> ArrayKind:
        return ArrayKind(array.shape, array.dtype)

    def to(
        self, kind: ArrayKind, sources: Mapping[State, Cost], ends_pending: Axes | None = None
    ) -> CheapestPaths:
        """The moves to any state from some, which have had a cost; for `ends_pending` see `CheapestPaths`."""
        key = self.space, kind, tuple(sources.items()), ends_pending
        if key not in self._searches:
            self._searches[key] = self._paths(self.space, kind, self.prices, sources, ends_pending)
        return self._searches[key]

    def onward(self, kind: ArrayKind, goals: Iterable[State], pending: Axes | None = None) -> CheapestPaths:
        """The moves from any state to a goal, where sums are `pending` over no other axes, if given."""
        may_pend = tuple(self.space.sizes) if pending is None else pending
        return self.to(kind, dict.fromkeys(goals, 0), may_pend)

    def of_made(
        self, kind: ArrayKind, least: Mapping[State, Cost], exact: Callable[[State, Cost], Cost | None]
    ) -> CheapestPaths:
        """The moves from the states in which statements leave an array, which cost at least so much; `exact`
        finds how much, or None where that is not less than a limit."""
        return self._paths(self.space, kind, self.prices, least, None, exact)

    def splits(self, part: Statement) -> WorkSplits:
        dims, allowed, sizes = splittable_dims(part), self._allowed, self.space.sizes
        places = [
            (None, *(dim for dim in dims if allowed is None or (dim, axis) in allowed)) for axis in sizes
        ]
        return WorkSplits(part, sizes, places, most=self._most)

    def ways(self, several: Sequence[WithOperands], limit: Cost = UNREACHABLE) -> WaysByResult:
        """The ways to run one of several statements that make the same array, before any move of it, but for
        those that cost as much as a limit."""
        by_result: dict[State, list[tuple[int, Cost, Cost, WorkSplit]]] = {}
        for number, (part, operands) in enumerate(several):
            splits = self.splits(part)
            for _, work, unordered in self._likely(part, splits, operands, limit):
                for least, split in self._bounded(work, splits.ordered(unordered), operands, limit):
                    by_result.setdefault(split.result, []).append((number, least, work, split))
        return WaysByResult(self, [operands for _, operands in several], by_result)

    def best(self, several: Sequence[WithOperands], ends: CheapestPaths, limit: Cost) -> Way | None:
        """The cheapest way to run one of several statements and to have its result where a backward search
        `ends`, with the cost of all of it; None where none costs less than `limit`."""
        way: Way | None = None
        for number, (part, operands) in enumerate(several):
            arrays, splits = (*operands, ends), self.splits(part)
            queue: list[tuple[Cost, int, Cost, WorkSplit, bool]] = []
            for least, work, split in self._likely(part, splits, arrays, limit):
                queue.append((least, len(queue), work, split, False))
            heapq.heapify(queue)
            serial = count(len(queue))
            while queue and queue[0][0] < limit:
                _, _, work, split, is_ordered = heapq.heappop(queue)
                if not is_ordered:
                    for least, ordered in self._bounded(work, splits.ordered(split), arrays, limit):
                        heapq.heappush(queue, (least, next(serial), work, ordered, True))
                elif (cost := self.within(arrays, split, work, limit)) is not None:
                    way, limit = Way(cost, split, number), cost
        return way

    def _likely(
        self, part: Statement, splits: WorkSplits, arrays: Sequence[CheapestPaths], limit: Cost
    ) -> Iterator[tuple[Cost, Cost, WorkSplit]]:
        """The splits with the axes of each dimension in the mesh's order that may cost less than a limit in
        some order: the least that each costs, and its work. `arrays` are the operands, and the result if
        its moves count."""
        pending, local = [array.pending for array in arrays[: len(part.operands)]], self.local(part)
        for split in splits.unordered(pending, lambda cuts, devices: local(cuts, devices) < limit):
            self.prices.look(1)
            work = self.work(part, split, local)
            least = _least_with(work, [array.least_in_any_order for array in arrays], split, limit)
            if least < limit:
                yield least, work, split

    def _bounded(
        self, work: Cost, splits: Iterable[WorkSplit], arrays: Sequence[CheapestPaths], limit: Cost
    ) -> Iterator[tuple[Cost, WorkSplit]]:
        """The splits of the same work that may cost less than a limit, each with the least that it costs."""
        for split in splits:
            self.prices.look(1)
            least = _least_with(work, [array.least for array in arrays], split, limit)
            if least < limit:
                yield least, split

    def within(
        self, arrays: Sequence[CheapestPaths], split: WorkSplit, work: Cost, limit: Cost
    ) -> Cost | None:
        """The cost of a way, with its result's moves if `arrays` go so far; None from `limit` on."""
        states = split.states[: len(arrays)]
        bounds = [array.least(state, limit) for array, state in zip(arrays, states, strict=True)]
        total = work + sum(bounds)
        for index, (array, state, bound) in enumerate(zip(arrays, states, bounds, strict=True)):
            moved = array.cost(state, limit - total + bound)
            if moved is None:
                return None
            total += moved - bound
            if index == 0:
                total += self.prices.of_first(array.added(state))
            if total >= limit:
                return None
        return total

    def work(self, part: Statement, split: WorkSplit, local: Callable[..., Cost] | None = None) -> Cost:
        """The cost of the `local` work, of what is sent beside it, and of the `pmax` behind it."""
        cuts = {dim: self.space.group_size(axes) for dim, axes in split.assignment.items()}
        work = (local or self.local(part))(cuts)
        for sent in sent_beside(part, cuts):
            size, axes = array_bytes(sent.shape, sent.dtype), split.assignment[part.whole[0]]
            work += self.prices.move(sent.op, self.space.whole(axes), size, size)
        if not split.largest:
            return work
        paths = CheapestPaths(self.space, self.kind(part.result), self.prices, {})
        size = paths.local_bytes(split.result)
        return work + self.prices.move("pmax", self.space.whole(split.largest), size, size)

    def local(self, part: Statement) -> Callable[..., Cost]:
        """The least cost of the local work by the `Cuts`, if so many devices (1) may cut it further; each is
        found once."""
        arrays, merged = part.arrays, dict(part.merged)
        dims = [dim for dim in part.sizes if dim not in merged]

        @cache
        def of_cuts(devices: int, *cuts: int) -> Cost:
            cut = dict(zip(dims, cuts, strict=True))
            cut |= {dim: prod([cut[own] for own in factors]) for dim, factors in merged.items()}
            *operands, result = (
                tuple([-(-size // cut[dim]) for dim, size in zip(array.dims, array.shape, strict=True)])
                for array in arrays
            )
            flops, traffic, dtype = local_work(part, operands, result)
            return self.prices.work(flops // devices, traffic // devices, dtype)

        return lambda cuts, devices=1: of_cuts(devices, *[cuts.get(dim, 1) for dim in dims])


class WaysByResult:
    """The ways to run a statement, by the state in which it leaves its result; of each is known what it costs
    at least, and the cheapest is found when it is asked for."""

    def __init__(
        self,
        ways: StatementWays,
        operands: Sequence[Sequence[CheapestPaths]],
        splits: Mapping[State, list[tuple[int, Cost, Cost, WorkSplit]]],
    ) -> None:
        self._ways, self._operands, self._splits = ways, operands, splits
        self.least = {state: min(least for _, least, _, _ in own) for state, own in splits.items()}
        self._found: dict[State, Way] = {}

    def way(self, state: State, limit: Cost) -> Way | None:
        """The cheapest way to a state; None where it does not cost less than a limit."""
        way = self._found.get(state)
        if way is not None:
            return way if way.cost < limit else None
        for number, least, work, split in sorted(self._splits.get(state, ()), key=itemgetter(0, 1)):
            if least < limit:
                cost = self._ways.within(self._operands[number], split, work, limit)
                if cost is not None:
                    way, limit = Way(cost, split, number), cost
        if way is not None:
            self._found[state] = way
        return way

    def cost(self, state: State, limit: Cost) -> Cost | None:
        way = self.way(state, limit)
        return None if way is None else way.cost


def _least_with(
    least: Cost, bounds: Sequence[Callable[[State, Cost], Cost]], split: WorkSplit, limit: Cost
) -> Cost:
    """A bound on the cost of a split with the moves of its arrays, its result last if at all."""
    for bound, state in zip(bounds, split.states, strict=False):
        if least >= limit:
            break
        least += bound(state, limit - least)
    return least


# Plans of trees.

_Came = dict[str, tuple[State, list[tuple[PathMove, ...]]]]


class _Made:
    """An array as it is had: the searches through the states that it must pass, one after the other; where
    statements make it, the `orders` of these, and the ways to run the last of one."""

    def __init__(
        self, ways: StatementWays, array: ShardedArray, orders: Sequence[_Order] = (), limit: Cost = 0
    ) -> None:
        self._ways, self._array, self.orders = ways, array, orders
        kind = ways.kind(array)
        if orders:
            self._made = ways.ways([order.last for order in orders], limit)
            self.searches = [ways.of_made(kind, self._made.least, self._made.cost)]
        else:
            self.searches = [ways.to(kind, {ways.pool.state(array.decided_spec): 0})]

    def pass_through(self, spec: PartitionSpec, limit: Cost) -> None:
        state = self._ways.pool.state(spec)
        cost = self.searches[-1].cost(state, limit)
        if cost is None and limit == UNREACHABLE:
            raise cannot_be_had(self._array, spec)
        self.searches.append(self._ways.to(self.searches[-1].kind, {} if cost is None else {state: cost}))

    def way(self, state: State) -> tuple[_Order, Way]:
        """The cheapest way to make the array in a state, where a path starts, with its order."""
        way = self._made.way(state, UNREACHABLE)
        assert way is not None
        return self.orders[way.number], way


@dataclass(frozen=True)
class _Order:
    """A statement computed as one or several, with the arrays that these make and are given."""

    parts: Order
    arrays: ChainMap[str, _Made]

    @property
    def last(self) -> WithOperands:
        part = self.parts[-1]
        return part, [self.arrays[operand.name].searches[-1] for operand in part.operands]


class TreePlanner:
    """One problem, each of whose arrays is used once, while it is planned."""

    def __init__(self, problem: Problem, ways: StatementWays) -> None:
        self._problem, self._ways, self._pool = problem, ways, ways.pool
        self._made: ChainMap[str, _Made] = ChainMap()
        self._names = frozenset(array.name for array in problem.arrays)

    def planned(self, limit: Cost = UNREACHABLE) -> tuple[Cost, list[PlannedStatement]] | None:
        """The statements as planned, of which some may be several, and their cost, if less than `limit`."""
        *before, last = self._problem.parts
        work = [self._least_work(part) for part in self._problem.parts] if before else [0]
        for part, own in zip(before, work, strict=False):
            # What the other statements cost at least is not left for this.
            left = limit - sum(work) + own
            made = _Made(self._ways, part.result, [*self._orders(part, left)], left)
            self._made[part.result.name] = made
            if part.result.spec is not None:
                made.pass_through(part.result.spec, limit)
        ends, orders = self._ends(last), [*self._orders(last, limit)]
        best = self._ways.best([order.last for order in orders], ends, limit)
        return None if best is None else (best.cost, self._traced(orders[best.number], best, ends))

    def _least_work(self, part: Statement) -> Cost:
        """The work of a statement, in the order that has the least, if every device does an equal part."""
        orders, devices = contraction_orders(part, self._names), prod(self._pool.sizes.values())
        return min(sum(self._ways.local(step)({}, devices) for step in steps) for steps in orders)

    def _orders(self, part: Statement, limit: Cost) -> Iterator[_Order]:
        """The orders in which a statement can be computed, with all but the last of their parts done."""
        for operand in part.operands:
            made = self._made.get(operand.name)
            if made is None:
                self._made[operand.name] = _Made(self._ways, operand)
            elif operand.spec is not None:
                made.pass_through(operand.spec, limit)
        done: dict[Order, _Made] = {}  # orders that begin alike share what they make
        for parts in contraction_orders(part, self._names):
            order = _Order(parts, self._made.new_child())
            for end, step in enumerate(parts[:-1], 1):
                if parts[:end] not in done:
                    done[parts[:end]] = _Made(self._ways, step.result, [_Order((step,), order.arrays)], limit)
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
        # By array the state in which a statement leaves it, and its moves from there through all searches.
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
