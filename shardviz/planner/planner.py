"""Problem → Plan: the steps with the least cost.

Every statement may share its work in any way in which the given arrays share it (`work_split`), every array
take the cheapest moves (`paths`) between the states of its uses, and every intermediate be in any state: the
least costs of all of them are carried from statement to statement, so the plan of a chain is the best of all.
Where the best plan that lets these axes, and parts of them, split any dimension is better by more than
`MARGIN`, it is the plan.

So it is with a program whose arrays are used several times (`dag`), but that its best plan is not known: what
is found is set against a bound below which no plan can go.

With the result the compiler's choice, its dimensions may be split over the axes over which some given array
splits them, and nothing is left pending.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError
from shardviz.planner.other_ways import OtherWays
from shardviz.planner.plan import Plan, Step, einsum_parts
from shardviz.planner.problem import Objective, Problem, Statement
from shardviz.planner.reasons import EinsumChoice, explain_einsum, explain_moves
from shardviz.planner.statements.array_searches import ArraySearches, space_of
from shardviz.planner.statements.axis_pool import MOST_CUT, AxisPool
from shardviz.planner.statements.contraction_order import Order, contraction_orders, has_all_orders
from shardviz.planner.statements.local_work import matmul_dtype, statement_flops, statement_traffic
from shardviz.planner.statements.other_devices import (
    check_devices,
    cut_first,
    first_steps,
    has_first_steps,
    with_operand,
)
from shardviz.planner.statements.resharding import (
    MOST_PRIMES,
    cheapest_moves,
    given_state,
    is_only_reshard,
    resharded,
)
from shardviz.planner.statements.statement_ways import StatementWays, Way, WaysByResult
from shardviz.planner.statements.work_split import WorkSplit, case_of
from shardviz.planner.states.moves import ReshardMove, State, state_of
from shardviz.planner.states.paths import UNREACHABLE, ArrayPaths
from shardviz.planner.states.prices import Cost, Prices
from shardviz.planner.steps import Joined, move_step, moves_of_work, work_step
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray, array_bytes, shard_shape

if TYPE_CHECKING:
    from shardviz.hardware.machine import PlacedMesh
    from shardviz.planner.dag.statement_choices import StatementChoices


MARGIN = 1.0
"""How much longer than the best of all a plan may take, as a part of that, because it splits the work as the
given arrays are split, as compilers and textbooks do; `Plan.at_most` says how much it is."""
MOST_WAYS = 3000
"""Ways to split the work of all statements of a program up to which a bound is sought over all of them."""
MOST_WAYS_PLANNED = 500
"""Such ways up to which plans of a program are looked at that split the work elsewhere."""
MOST_PARTS = 10
"""Prime parts of axes up to which a bound is sought by the numbers of pieces."""
MOST_ANYWHERE = 5
"""Parts of axes up to which all plans are looked at that split the work elsewhere."""
MOST_WAYS_QUICK = 300
"""Ways to split the work of all statements up to which a tree of them is planned in some hundredths of a
second."""


class Planner:
    """Plans problems on one mesh; remembers prices, so that similar problems are planned quickly."""

    def __init__(
        self,
        mesh: Mesh,
        placed: PlacedMesh | None = None,
        objective: Objective = "given",
        *,
        anywhere: bool | None = None,
        is_bounded: bool = True,
    ) -> None:
        """Plan for a mesh as `placed` on a machine; without one on the assumed machine. With `anywhere` given
        only plans are looked at that split the work in any way, or only those that split it as the given
        arrays are. Without `is_bounded` the plan of a program does not say how far it is from the best, which
        takes longer to find than the plan."""
        from shardviz.hardware.machine import assumed_machine, on_assumed_machine

        self.mesh, self.objective, self.anywhere = mesh, objective, anywhere
        self.is_bounded = is_bounded
        self.placed = placed or on_assumed_machine(assumed_machine(), mesh)
        self.prices = Prices(self.placed, objective)
        self._programs: dict[tuple[AxisPool, frozenset[tuple[str, str]] | None], StatementChoices] = {}

    def plan(self, problem: Problem) -> Plan:
        """The plan. Raises `QuestionError` when the result cannot be had as asked."""
        check_devices(problem)
        found = self._found(problem)
        for left, steps in cut_first(problem):
            after = self._found(left)
            array = next(each for each in problem.arguments if each.name == steps[0].array)
            cut = replace(
                after,
                problem=with_operand(after.problem, array),
                steps=(*steps, *after.steps),
                faster=None,
                asked=after.asked and problem,
            )
            if self._cost(cut) < self._cost(found):
                found = cut
        # A collective may have been measured that takes less over more devices, which no bound expects.
        is_measured = self.placed.machine.measured and self.objective != "bytes"
        if is_measured or has_first_steps(problem):
            faster = found.faster and replace(found.faster, optimal=False)
            return replace(found, optimal=False, at_most=None, faster=faster)
        return found

    def _found(self, problem: Problem) -> Plan:
        return self._tree(problem) if problem.is_tree else self._program(problem)

    def _cost(self, found: Plan) -> Cost:
        """The cost of a plan's moves and of its work."""
        mesh = self.mesh
        arrays = {each.name: each for part in found.problem.parts for each in (*part.operands, part.result)}
        total, parts = 0, iter(zip(found.problem.parts, einsum_parts(found), strict=True))
        for step in found.steps:
            if step.op in ("einsum", "apply"):
                part, (operands, result) = next(parts)
                shapes = [each.shard_shape(mesh) for each in operands]
                local = result.shard_shape(mesh)
                work = statement_flops(part, shapes, local), statement_traffic(part, shapes, local)
                total += self.prices.work(*work, matmul_dtype(part))
            else:
                array = arrays[step.array]
                before, after = (
                    array_bytes(shard_shape(array.shape, each, mesh), array.dtype)
                    for each in (step.from_spec, step.to_spec)
                )
                total += self.prices.move(step.op, step.axes, before, after)
        return total

    def _tree(self, problem: Problem) -> Plan:
        """The plan of a problem whose arrays are used once."""
        pool = AxisPool.of(problem)
        given = None
        if self.anywhere is None and is_only_reshard(problem):
            reshard = self._reshard(problem, pool)
            if reshard is not None:
                return reshard
        searches = ArraySearches(pool, self.mesh, self.prices)
        if not self.anywhere:
            given = _Planning(problem, searches, pool.splits).planned()
        if self.anywhere or (self.anywhere is None and len(pool.sizes) <= MOST_ANYWHERE):
            limit = UNREACHABLE if given is None else given[0]
            fine = AxisPool.of(problem, into_primes=True)
            masked = fine.with_masks(problem)
            if len(fine.sizes) <= MOST_CUT:
                fine = masked  # with more parts that takes long
            if fine != pool:
                searches = ArraySearches(fine, self.mesh, self.prices)
            best = _Planning(problem, searches, None).planned(limit)
            ratio = self.prices.ratio(given[0], best[0]) if given and best else math.inf
            is_all = fine == masked and fine.is_finest and all(map(has_all_orders, problem.parts))
            fastest = None if best is None else plan_of(problem, best[1], self.objective, optimal=is_all)
            if fastest is not None and (ratio is None or ratio > 1 + self._margin):
                return replace(fastest, as_given=ratio) if given else fastest
            if given is not None:
                is_best = fastest is None and is_all
                found = plan_of(problem, given[1], self.objective, optimal=is_best)
                return replace(found, at_most=ratio if fastest and is_all else None, faster=fastest)
        if given is None:
            raise _cannot_be_had(problem.result, problem.result.decided_spec)
        return plan_of(problem, given[1], self.objective, optimal=False)

    def _reshard(self, problem: Problem, pool: AxisPool) -> Plan | None:
        """The plan of a problem that is a reshard over so many parts of axes that the ways to divide its work
        cannot all be tried; None where they can, or one search finds none either."""
        fine = AxisPool.of(problem, into_primes=True, most=MOST_PRIMES).with_masks(problem)
        if len(fine.sizes) <= MOST_CUT or len(fine.sizes) > MOST_PRIMES:
            return None
        part, joined = problem.parts[0], Joined(self.mesh)
        found = cheapest_moves(part, fine, space_of(fine, self.mesh), self.prices)
        if found is None:
            return None
        cost, planned = found.cost, [planned_reshard(part, self.mesh, joined.moves(part.result, found.moves))]
        searches = ArraySearches(pool, self.mesh, self.prices)
        given = _Planning(problem, searches, pool.splits).planned(cost)
        if given is not None:
            cost, planned = given
        is_best = fine.is_finest and cost <= found.least
        at_most = self.prices.ratio(cost, found.least) if fine.is_finest and not is_best else None
        return replace(plan_of(problem, planned, self.objective, optimal=is_best), at_most=at_most)

    def _program(self, problem: Problem) -> Plan:
        """The plan of a program whose arrays are used several times."""
        from shardviz.planner.dag.array_uses import ArrayUses
        from shardviz.planner.dag.lower_bound import lower_bound
        from shardviz.planner.dag.program_planner import planned_program
        from shardviz.planner.dag.program_steps import program_steps

        pool = AxisPool.of(problem)
        planned = planned_program(self._choices(pool, None if self.anywhere else pool.splits), problem)
        as_given = None
        if self.anywhere is None and is_searched_anywhere(problem):
            choices = self._choices(pool, None)
            # The bound is found at once, the plan is not.
            if self._is_too_dear(planned.cost, lower_bound(ArrayUses(choices, problem))):
                fastest = planned_program(choices, problem)
                if self._is_too_dear(planned.cost, fastest.cost):
                    as_given, planned = self.prices.ratio(planned.cost, fastest.cost), fastest
        steps, cases = program_steps(problem, planned)
        spec = _last_spec(problem, steps)
        least = self._least_of_program(problem) if self.is_bounded else None
        optimal = least is not None and planned.cost <= least
        at_most = None if optimal or least is None else self.prices.ratio(planned.cost, least)
        every = (*first_steps(problem), *steps)
        return Plan(problem, every, spec, cases, self.objective, optimal, at_most, as_given=as_given)

    def _least_of_program(self, problem: Problem) -> Cost | None:
        """A cost below which no plan of a program can go; None where that would take long to find."""
        from shardviz.planner.dag.array_uses import ArrayUses
        from shardviz.planner.dag.lower_bound import lower_bound
        from shardviz.planner.dag.piece_bound import piece_bound

        pool = AxisPool.of(problem, into_primes=True)
        if not all(len(contraction_orders(part)) == 1 and has_all_orders(part) for part in problem.parts):
            return None  # computed in several steps a statement may take less
        if not pool.is_finest or _ways_at_most(problem, pool) > MOST_WAYS:
            every_part = AxisPool.of(problem, into_primes=True, most=MOST_PARTS)
            if every_part.uneven or not every_part.is_finest:
                return None
            return piece_bound(ArrayUses(self._choices(every_part, None), problem))
        pool = replace(pool, may_mask=frozenset(pool.sizes))
        return lower_bound(ArrayUses(self._choices(pool, None), problem))

    def _is_too_dear(self, cost: Cost, best: Cost) -> bool:
        """Return whether a plan costs so much more than the best that it does not do for it."""
        ratio = self.prices.ratio(cost, best)
        return cost > best if ratio is None else ratio > 1 + self._margin

    @property
    def _margin(self) -> float:
        return MARGIN if self.objective == "given" else 0.0

    def _choices(self, pool: AxisPool, splits: frozenset[tuple[str, str]] | None) -> StatementChoices:
        """The ways of statements over some axes, with what has been found of them."""
        from shardviz.planner.dag.statement_choices import StatementChoices

        key = (pool, splits)
        if key not in self._programs:
            self._programs[key] = StatementChoices(pool, self.mesh, self.prices, splits)
        return self._programs[key]


def plan(problem: Problem, placed: PlacedMesh | None = None, objective: Objective | None = None) -> Plan:
    """The best plan on a machine; see the module's text for the rules."""
    return Planner(problem.mesh, placed, objective or problem.objective).plan(problem)


def is_searched_anywhere(problem: Problem) -> bool:
    """Return whether plans are looked at that split the work of a program elsewhere than its arrays are."""
    return _ways_at_most(problem, AxisPool.of(problem)) <= MOST_WAYS_PLANNED


def is_planned_quickly(problem: Problem) -> bool:
    """Return whether a plan is found in less time than a person notices."""
    return (
        problem.is_tree and _ways_at_most(problem, AxisPool.of(problem, into_primes=True)) <= MOST_WAYS_QUICK
    )


def _ways_at_most(problem: Problem, pool: AxisPool) -> int:
    """The number of ways to split the work of all statements over some axes, but for the order of axes."""
    return sum(
        (len({dim for array in (*part.operands, part.result) for dim in array.dims}) + 1) ** len(pool.sizes)
        for part in problem.parts
    )


def plan_of(
    problem: Problem,
    planned: Sequence[PlannedStatement],
    objective: Objective,
    *,
    optimal: bool,
) -> Plan:
    """The plan of a problem's statements as planned, of which some may be several."""
    asked, problem = problem, replace(problem, parts=tuple(one.part for one in planned))
    steps = (*first_steps(problem), *_steps(problem, planned))
    cases = tuple(case_of(one.part.einsum, one.starts, problem.mesh) for one in planned)
    return Plan(problem, steps, _last_spec(problem, steps), cases, objective, optimal, asked=asked)


def _last_spec(problem: Problem, steps: Sequence[Step]) -> PartitionSpec:
    """The spec in which the last step leaves the result."""
    return next(step.to_spec for step in reversed(steps) if step.array == problem.result.name)


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


@dataclass(frozen=True)
class PlannedStatement:
    """One statement as planned: how its work is split, the moves of each operand, those of the result to each
    state that it must pass through, and the operands' states before the moves; and how it could be planned
    otherwise, where that is looked for."""

    part: Statement
    work_split: WorkSplit
    operand_moves: tuple[tuple[ReshardMove, ...], ...]
    result_moves: tuple[tuple[ReshardMove, ...], ...]
    starts: tuple[State, ...]
    other_ways: OtherWays | None = None


class _Planning:
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
            raise _cannot_be_had(made.array, spec)
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
        result_moves = tuple(came[part.result.name][1])
        split = self._joined.split(way.split)
        searches = [order.arrays[operand.name].searches[-1] for operand in part.operands]
        other_ways = OtherWays(
            self._ways,
            self._prices,
            self._pool,
            self._splits,
            part,
            way.split,
            searches,
            after[part.result.name],
        )
        return PlannedStatement(part, split, tuple(operand_moves), result_moves, tuple(starts), other_ways)

    def _path(
        self, made: _Made, state: State, searches: Sequence[ArrayPaths]
    ) -> tuple[State, list[tuple[ReshardMove, ...]]]:
        """The state in which a statement left an array, and the moves through all searches to a state."""
        moves: list[tuple[ReshardMove, ...]] = []
        for search in reversed(searches):
            state, path = search.path(state)
            moves.insert(0, self._joined.moves(made.array, path))
        return state, moves


def planned_reshard(part: Statement, mesh: Mesh, moves: Sequence[ReshardMove]) -> PlannedStatement:
    """A reshard by such moves of its result, as its statement is planned."""
    given = state_of(part.operands[0].decided_spec, mesh)
    found = resharded(part, mesh, given_state(part, given), moves)
    return PlannedStatement(part, found.split, (found.operand_moves,), (found.result_moves,), (given,))


def _steps(problem: Problem, planned: Sequence[PlannedStatement]) -> Iterator[Step]:
    """The steps of all statements, with their reasons."""
    for number, one in enumerate(planned):
        part = one.part
        uses = (operand for later in problem.parts[number + 1 :] for operand in later.operands)
        next_input = next((operand for operand in uses if operand.name == part.result.name), None)
        choice = EinsumChoice(problem.mesh, part, one.work_split, one.starts, next_input, one.other_ways)
        for operand, moves in zip(part.operands, one.operand_moves, strict=True):
            reasons = explain_moves(choice, operand, moves)
            yield from (
                move_step(operand, move, why, number) for move, why in zip(moves, reasons, strict=True)
            )
        yield work_step(problem.mesh, part, one.work_split, explain_einsum(choice), number)
        for moves in (moves_of_work(problem.mesh, part, one.work_split), *one.result_moves):
            reasons = explain_moves(choice, part.result, moves)
            yield from (
                move_step(part.result, move, why, number) for move, why in zip(moves, reasons, strict=True)
            )


def _cannot_be_had(array: ShardedArray, spec: PartitionSpec) -> QuestionError:
    return QuestionError(
        f"{array.name} cannot be left as {spec}: no moves over whole pieces lead to it",
        "split it in another way, or use sizes that its axes divide",
    )
