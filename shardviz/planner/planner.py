"""Problem → Plan: the steps with the least cost.

Every statement may share its work in any way in which the given arrays share it (`work_split`), every array
take the cheapest moves (`paths`), every intermediate be in any state. If the best plan that lets these axes,
and parts of them, split any dimension is better by more than `MARGIN`, it is the plan. An open result may be
split over the axes over which some given array splits its dimensions, with nothing left pending."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from shardviz.hardware.machine import PlacedMesh, assumed_machine, place_mesh
from shardviz.planner.plan import Plan, Step
from shardviz.planner.problem import WRITTEN, Objective, Problem
from shardviz.planner.program_planner import ArrayUses, StatementChoices, planned_program
from shardviz.planner.reasons import MOVE_REASONS, MoveReason, explain_beside, explain_einsum
from shardviz.planner.statements.axis_pool import MOST_CUT, MOST_ORDERED, AxisPool
from shardviz.planner.statements.contraction_order import contraction_orders, has_all_orders
from shardviz.planner.statements.statement_ways import (
    MOST_SEARCHED,
    StatementWays,
    TreePlanner,
    cannot_be_had,
)
from shardviz.planner.statements.work_split import PlannedStatement, case_of, steps_beside
from shardviz.planner.states.moves import PathMove, State, move_step, spec_of
from shardviz.planner.states.paths import CheapestPaths, FreePaths
from shardviz.planner.states.prices import UNREACHABLE, Cost, Prices, SearchTooLongError
from shardviz.sharding import Mesh, array_bytes, shard_shape

MARGIN = 1.0
"""How much longer than the best of all a plan may take, as a part of that, because it splits the work as the
given arrays are split, as compilers and textbooks do; `Plan.at_most` says how much it is."""
MOST_WAYS = 3000
"""Ways to split the work of all statements of a program up to which a bound is sought over all of them."""
MOST_WAYS_PLANNED = 500
"""Such ways up to which plans of a program are looked at that split the work elsewhere."""
MOST_UNCOUNTED = 3
"""Parts of axes up to which a plan takes as long as it needs that says no distance from the best."""
MOST_LOOKS = 4_000
"""Moves and ways to divide work that it looks at over more: some tenths of a second."""
MOST_WAYS_QUICK = 300
"""Ways to split the work of all statements of a tree that take some hundredths of a second to plan."""


class Planner:
    """Plans problems on one mesh; remembers prices and bounds, so that similar ones are planned quickly."""

    def __init__(
        self,
        mesh: Mesh,
        placed: PlacedMesh | None = None,
        objective: Objective = "given",
        *,
        anywhere: bool | None = None,
        is_bounded: bool = True,
    ) -> None:
        """Plan for a mesh as `placed` on a machine, by default the assumed one. `anywhere` given looks only
        at plans that split the work in any way, or only as given arrays do. Without `is_bounded` nothing is
        done that takes long: the plan of a program does not say how far it is from the best, nor one over
        axes that are more than `MOST_UNCOUNTED` primes; over more parts of axes a program's moves are direct
        ones."""
        self.placed = placed or place_mesh(assumed_machine(), mesh)
        if self.placed.machine.family.lacks_links:
            # Collectives take nobody knows how long.
            objective = "bytes"
        self.mesh, self.objective, self.anywhere = mesh, objective, anywhere
        self.is_bounded = is_bounded
        self._margin = MARGIN if objective == "given" else 0.0
        self.prices = Prices(self.placed, objective)
        self._searches: dict[object, CheapestPaths] = {}
        self._programs: dict[tuple[AxisPool, frozenset[tuple[str, str]] | None], StatementChoices] = {}

    def plan(self, problem: Problem) -> Plan:
        """The plan. Raises `QuestionError` when the result cannot be had as asked."""
        # Of equal moves those that a search finds depend on what it was asked before.
        self._searches = {}
        chosen = self._tree(problem) if problem.is_tree else self._program(problem)
        # A collective that was measured, or on a link between each pair, may take less over more devices,
        # which no bound expects.
        machine = self.placed.machine
        is_unbounded = machine.measured or any(one.direct for one in machine.family.dimensions)
        if is_unbounded and self.objective != "bytes":
            faster = chosen.faster and replace(chosen.faster, optimal=False)
            return replace(chosen, optimal=False, at_most=None, faster=faster)
        return chosen

    def _tree(self, problem: Problem) -> Plan:
        pool, given = AxisPool.of(problem), None
        ways = self._ways(pool, pool.splits)
        if not self.anywhere:
            given = TreePlanner(problem, ways).planned()
        if self.anywhere or (self.anywhere is None and len(pool.sizes) <= MOST_CUT):
            fine = AxisPool.of(problem, into_primes=True).with_masks(problem)
            best, is_all = self._fastest(problem, pool, fine, UNREACHABLE if given is None else given[0])
            # A reshard has no work to divide: of many parts the best moves are taken.
            margin = 0.0 if problem.is_reshard and len(fine.sizes) > MOST_UNCOUNTED else self._margin
            ratio = self.prices.ratio(given[0], best[0]) if given and best else math.inf
            fastest = None if best is None else plan_of(problem, best[1], self.objective, optimal=is_all)
            if fastest is not None and (ratio is None or ratio > 1 + margin):
                return replace(fastest, as_given=ratio) if given else fastest
            if given is not None:
                is_best = fastest is None and is_all
                chosen = plan_of(problem, given[1], self.objective, optimal=is_best)
                return replace(chosen, at_most=ratio if fastest and is_all else None, faster=fastest)
        if given is None:
            raise cannot_be_had(problem.result, problem.result.decided_spec)
        return plan_of(problem, given[1], self.objective, optimal=False)

    def _fastest(
        self, problem: Problem, pool: AxisPool, fine: AxisPool, limit: Cost
    ) -> tuple[tuple[Cost, list[PlannedStatement]] | None, bool]:
        """The plan that costs the least over axes and parts of them, if less than a limit; and whether none
        is known to cost less. What it costs over whole axes bounds the search over their parts."""
        best, is_wide = None, len(pool.sizes) > MOST_SEARCHED
        if is_wide or fine.sizes != pool.sizes:
            if self.anywhere or not is_wide:
                best = TreePlanner(problem, self._ways(pool, None)).planned(limit)
                limit = limit if best is None else best[0]
            if len(fine.sizes) > (MOST_CUT if self.is_bounded else MOST_UNCOUNTED):
                return best, False
            if len(fine.sizes) > MOST_UNCOUNTED:
                self.prices.looks_left = MOST_LOOKS
        try:
            best = TreePlanner(problem, self._ways(fine, None, MOST_CUT)).planned(limit) or best
        except SearchTooLongError:
            return best, False
        finally:
            self.prices.looks_left = math.inf
        # Over more parts an open result is left only as some array is split.
        is_all = fine.is_finest and (len(fine.sizes) <= MOST_ORDERED or problem.result.spec is not None)
        return best, is_all and all(map(has_all_orders, problem.parts))

    def _program(self, problem: Problem) -> Plan:
        pool = AxisPool.of(problem)
        cost, planned = planned_program(self._choices(pool, None if self.anywhere else pool.splits), problem)
        as_given = None
        if self.anywhere is None and is_searched_anywhere(problem):
            choices = self._choices(pool, None)
            # The bound is found at once, the plan is not.
            if self._is_too_dear(cost, lower_bound(ArrayUses(choices, problem))):
                least, fastest = planned_program(choices, problem)
                if self._is_too_dear(cost, least):
                    as_given, cost, planned = self.prices.ratio(cost, least), least, fastest
        chosen = plan_of(problem, planned, self.objective, optimal=False)
        bound = self._least_of_program(problem) if self.is_bounded else None
        optimal = bound is not None and cost <= bound
        at_most = None if optimal or bound is None else self.prices.ratio(cost, bound)
        return replace(chosen, optimal=optimal, at_most=at_most, as_given=as_given)

    def _least_of_program(self, problem: Problem) -> Cost | None:
        """A cost below which no plan of a program can go; None where that would take long to find."""
        pool = AxisPool.of(problem, into_primes=True)
        if not all(len(contraction_orders(part)) == 1 and has_all_orders(part) for part in problem.parts):
            return None  # computed in several steps a statement may take less
        if len(pool.sizes) > MOST_SEARCHED or not pool.is_finest or _ways_at_most(problem, pool) > MOST_WAYS:
            return None  # moves are not known to be the cheapest, or there are too many ways
        pool = replace(pool, may_mask=frozenset(pool.sizes))
        return lower_bound(ArrayUses(self._choices(pool, None), problem))

    def _is_too_dear(self, cost: Cost, best: Cost) -> bool:
        """Return whether a plan costs so much more than the best that it does not do for it."""
        ratio = self.prices.ratio(cost, best)
        return cost > best if ratio is None else ratio > 1 + self._margin

    def _ways(
        self, pool: AxisPool, allowed: frozenset[tuple[str, str]] | None, most: int = MOST_SEARCHED
    ) -> StatementWays:
        return StatementWays(pool, self.mesh, self.prices, allowed, self._searches, most)

    def _choices(self, pool: AxisPool, splits: frozenset[tuple[str, str]] | None) -> StatementChoices:
        most = MOST_SEARCHED if self.is_bounded else MOST_UNCOUNTED
        return self._programs.setdefault((pool, splits), StatementChoices(self._ways(pool, splits, most)))


def plan(problem: Problem, placed: PlacedMesh | None = None, objective: Objective | None = None) -> Plan:
    """The best plan on a machine; see the module's text for the rules."""
    return Planner(problem.mesh, placed, objective or problem.objective).plan(problem)


def is_searched_anywhere(problem: Problem) -> bool:
    """Return whether plans are looked at that split the work of a program elsewhere than its arrays are."""
    return _ways_at_most(problem, AxisPool.of(problem)) <= MOST_WAYS_PLANNED


def is_planned_quickly(problem: Problem) -> bool:
    """Return whether a plan is found in less time than a person notices."""
    pool = AxisPool.of(problem, into_primes=True)
    return problem.is_tree and _ways_at_most(problem, pool) <= MOST_WAYS_QUICK


def _ways_at_most(problem: Problem, pool: AxisPool) -> int:
    """The number of ways to split the work of all statements over some axes, but for the order of axes."""
    return sum((len(part.sizes) + 1) ** len(pool.sizes) for part in problem.parts)


def lower_bound(uses: ArrayUses) -> Cost:
    """A cost below which no plan of a program can go. A plan may move an array once and use the copy several
    times; here every array is charged the moves to its next use alone, and is there for all others as they
    need it, also with pending sums. What is left, a forest, is planned as a tree is. In H = A·W; G = A·V; Y =
    H + G the moves of A are charged to H, and the least costs of H and of G lead to that of Y."""
    ways, total = uses.choices.ways, 0
    waiting: dict[str, CheapestPaths] = {}

    def passed(paths: CheapestPaths, state: State) -> CheapestPaths:
        """The moves of an array from a state that it must pass."""
        return ways.to(paths.kind, {state: paths.cost(state) or 0})

    for part, form, names, first in uses.statements:
        operands: list[CheapestPaths] = []
        for index, (kind, name) in enumerate(zip(form.kinds[:-1], names, strict=True)):
            given, through = first[index], form.through[index]
            operand: CheapestPaths = FreePaths(ways.space, kind, ways.prices)
            if form.same[index] == index:
                operand = waiting.pop(name, operand)
                if given is not None:
                    operand = ways.to(kind, dict.fromkeys(given.states, 0))
                if through is not None:
                    operand = passed(operand, through)
            operands.append(operand)
        kind = form.kinds[-1]
        if part.result.name in uses.used:
            made = ways.ways([(part, operands)])
            waiting[part.result.name] = ways.of_made(kind, made.least, made.cost)
            if form.wanted is not None:
                waiting[part.result.name] = passed(waiting[part.result.name], form.wanted)
        else:
            goals = uses.open[part.result.name] if form.wanted is None else (form.wanted,)
            way = ways.best([(part, operands)], ways.onward(kind, goals), UNREACHABLE)
            total += 0 if way is None else way.cost
    return total


# The plan of planned statements.


def plan_of(
    problem: Problem, planned: Sequence[PlannedStatement], objective: Objective, *, optimal: bool
) -> Plan:
    """The plan of a problem's statements as planned, of which some may be several."""
    parts = tuple(one.part for one in planned)
    asked = None if parts == problem.parts else problem
    problem = replace(problem, parts=parts)
    steps = tuple(plan_steps(problem, planned))
    cases = tuple(map(case_of, planned))
    result_spec = next(step.to_spec for step in reversed(steps) if step.array == problem.result.name)
    return Plan(problem, steps, result_spec, cases, objective, optimal, asked=asked)


def plan_steps(problem: Problem, planned: Sequence[PlannedStatement]) -> Iterator[Step]:
    """The steps of all statements of a problem in order, with their reasons."""
    mesh = problem.mesh
    for number, one in enumerate(planned):
        part, split = one.part, one.work_split
        later = (operand for part in problem.parts[number + 1 :] for operand in part.operands)
        next_input = next((operand for operand in later if operand.name == part.result.name), None)
        behind = list(one.behind)
        if split.largest:
            # The largest of all parts is taken at once.
            largest = PathMove("pmax", split.largest, None, split.made, split.result)
            behind.insert(0, (part.result, (move_step(part.result, mesh, largest),)))
        specs = map(spec_of, (*split.operands, split.made))
        beside = [
            replace(step, part=number, reason=reason, short_reason=short)
            for step in steps_beside(mesh, part, (*specs,))
            for short, reason in [explain_beside(one, step)]
        ]
        for is_behind, arrays in enumerate((one.before, behind)):
            if is_behind:
                yield from (step for step in beside if step.array != part.result.name)
                spec, result = spec_of(split.made), part.result
                shape = shard_shape(result.shape, spec, mesh)
                function = "" if part.function == "multiply" else WRITTEN.get(part.function, part.function)
                short, reason = explain_einsum(one)
                yield Step(
                    "apply" if function else "einsum",
                    *(result.name, (), None, spec, spec, shape, result.dtype),
                    *(array_bytes(shape, result.dtype), 0, reason),
                    operands=tuple(operand.name for operand in part.operands),
                    einsum=part.einsum,
                    part=number,
                    function=function,
                    operand_specs=tuple(map(spec_of, split.operands)),
                    short_reason=short,
                )
                yield from (step for step in beside if step.array == part.result.name)
            for array, moves in arrays:
                for move, following in zip_longest(moves, moves[1:]):
                    why = MoveReason(one, next_input, array, move, following, moves[-1].to_spec)
                    short, reason = MOVE_REASONS[move.op](why)
                    yield replace(move, reason=reason, short_reason=short, part=number)
