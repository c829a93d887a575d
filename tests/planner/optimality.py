"""How many plans of random problems are the best there are: against the exhaustive search, and Shardy's."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from shardviz.planner.plan import Plan
from shardviz.planner.planner import Planner
from shardviz.planner.pricing.costs import PlanCost, price
from shardviz.planner.problem import Problem
from tests.planner.exhaustive import TIME, Cost, Way, least_cost, nanoseconds
from tests.planner.exhaustive_programs import least_program_cost
from tests.planner.random_problems import Draw, Kind

if TYPE_CHECKING:
    from shardviz.compiler import Worker

KINDS = (
    Kind("one einsum, two axes", 2, real=True, axis_sizes=(2, 4)),
    Kind("one einsum, two axes, specs with parts of axes", 2, cut=True, real=True, axis_sizes=(2, 4)),
    Kind("one einsum, three axes", 3, real=True, axis_sizes=(2, 3)),
    Kind("one einsum, three axes of up to 4", 3, real=True, axis_sizes=(2, 2, 4)),
    Kind("one einsum, 4×4", 2, real=True, axis_sizes=(4,)),
    Kind("one einsum, four axes", 4, real=True, axis_sizes=(2, 3)),
    Kind("one einsum, five axes", 5, real=True, axis_sizes=(2,)),
    Kind("one einsum, five axes of up to 3", 5, real=True, axis_sizes=(2, 2, 3)),
    Kind("two einsums, two axes", 2, parts=2, real=True, axis_sizes=(2, 4)),
    Kind("two einsums, 4×4", 2, parts=2, real=True, axis_sizes=(4,)),
    Kind("two einsums, three axes", 3, parts=2, real=True, axis_sizes=(2, 3)),
    Kind("three einsums, two axes", 2, parts=3, real=True, axis_sizes=(2, 4)),
    Kind("three einsums, three axes", 3, parts=3, real=True, axis_sizes=(2, 3)),
    Kind("program of three statements, one axis", 1, parts=3, real=True, axis_sizes=(2, 4), shared=True),
    Kind("program of five statements, one axis", 1, parts=5, real=True, axis_sizes=(2, 4), shared=True),
    Kind("program of three statements, two axes", 2, parts=3, real=True, axis_sizes=(2,), shared=True),
    Kind("one einsum, two axes, links and chips of any speed", 2),
    Kind("one einsum, three axes, links and chips of any speed", 3, axis_sizes=(2, 2, 3)),
    Kind("one einsum, five axes, links and chips of any speed", 5, axis_sizes=(2, 2, 3)),
    Kind("two einsums, two axes, links and chips of any speed", 2, parts=2),
    Kind(
        "program of four statements, links and chips of any speed", 2, parts=4, axis_sizes=(2,), shared=True
    ),
)


@dataclass(frozen=True)
class Measured:
    """One problem: the plan's cost, the least there is, and Shardy's seconds where it was asked.

    `fastest` is the best plan that may split the work in any way; the plan keeps to how the given arrays are
    split unless that takes much longer. The ratios are those of seconds, or bytes, to the least; `is_least`
    and `is_fastest_least` say that no plan is better by what else costs are compared by, either.
    `adopted_seconds` are those of the plan once Shardy's answer is known.
    """

    problem: Problem
    cost: PlanCost
    best: Way | None
    ratio: float
    milliseconds: float
    fastest: Plan
    fastest_ratio: float
    fastest_milliseconds: float
    is_least: bool
    is_fastest_least: bool
    shardy_seconds: float | None = None
    adopted_seconds: float | None = None

    @property
    def is_optimal(self) -> bool:
        """No plan costs less; the search finds none better, and the plan itself is in its space."""
        return self.best is not None and self.is_least

    @property
    def is_fastest_optimal(self) -> bool:
        """No plan costs less than the fastest."""
        return self.best is not None and self.is_fastest_least

    @property
    def is_within_bound(self) -> bool:
        """The plan is optimal where it says so, and else costs no more than it says."""
        plan = self.cost.plan
        if (plan.optimal and not self.is_optimal) or (self.fastest.optimal and not self.is_fastest_optimal):
            return False
        return plan.optimal or plan.at_most is None or self.ratio <= plan.at_most

    @property
    def is_beaten(self) -> bool:
        """Shardy's answer costs less."""
        told = self.shardy_seconds
        return told is not None and told < self.cost.serial_seconds * (1 - 1e-8)

    @property
    def is_beaten_after(self) -> bool:
        """Shardy's answer costs less than the plan that has looked at it."""
        told, own = self.shardy_seconds, self.adopted_seconds
        return told is not None and own is not None and told < own * (1 - 1e-8)


@dataclass
class Tally:
    """The problems of one kind."""

    kind: Kind
    all: list[Measured] = field(default_factory=list)

    @property
    def optimal(self) -> int:
        return sum(each.is_optimal for each in self.all)

    @property
    def fastest_optimal(self) -> int:
        return sum(each.is_fastest_optimal for each in self.all)

    @property
    def claimed(self) -> int:
        """Plans that say that they are optimal."""
        return sum(each.cost.plan.optimal for each in self.all)

    @property
    def wrongly_claimed(self) -> list[Measured]:
        """Plans that cost more than they say."""
        return [each for each in self.all if not each.is_within_bound]

    @property
    def worst(self) -> float:
        return max(each.ratio for each in self.all)

    @property
    def median_ms(self) -> float:
        return statistics.median(each.milliseconds for each in self.all)

    @property
    def fastest_worst(self) -> float:
        return max(each.fastest_ratio for each in self.all)

    @property
    def asked(self) -> int:
        return sum(each.shardy_seconds is not None for each in self.all)

    @property
    def beaten(self) -> list[Measured]:
        return [each for each in self.all if each.is_beaten]


def measured(kind: Kind, count: int, seed: int, worker: Worker | None = None, objective: str = TIME) -> Tally:
    """So many problems of one kind, planned and searched."""
    draw = Draw(random.Random(f"{kind.name} {seed}"), kind)
    return Tally(kind, [_measured(draw, worker, objective) for _ in range(count)])


def _measured(draw: Draw, worker: Worker | None, objective: str) -> Measured:
    problem, placed = draw.problem()
    shown = "given" if objective == TIME else objective
    plan, milliseconds = _timed(Planner(problem.mesh, placed, shown), problem)
    fastest, fastest_milliseconds = _timed(Planner(problem.mesh, placed, objective, anywhere=True), problem)
    cost, least = price(plan, placed), price(fastest, placed)
    own, other = _compared(cost, objective), _compared(least, objective)
    limit: Cost = (min(own[0], other[0]), math.inf, math.inf)
    search = least_program_cost if draw.kind.shared else least_cost
    best = search(problem, placed, objective, limit)

    def ratio(found: Cost) -> float:
        return found[0] / best.cost[0] if best is not None and best.cost[0] else 1.0

    def is_least(found: Cost) -> bool:
        return best is not None and found <= best.cost[: len(found)]

    told, adopted = (None, None) if worker is None else _shardy_seconds(worker, plan, draw)
    return Measured(
        problem,
        cost,
        best,
        ratio(own),
        milliseconds,
        fastest,
        ratio(other),
        fastest_milliseconds,
        is_least(own),
        is_least(other),
        told,
        adopted,
    )


def _compared(found: PlanCost, objective: str) -> tuple[int, ...]:
    """What plans are compared by, in order."""
    time = sum(nanoseconds(step.seconds) for step in found.steps)
    sent = found.wire_bytes, len(found.plan.collectives)
    return (time, *sent) if objective == TIME else sent


def _timed(planner: Planner, problem: Problem) -> tuple[Plan, float]:
    """The plan, and the milliseconds of processor time that it took."""
    start = time.process_time()
    return planner.plan(problem), 1e3 * (time.process_time() - start)


def _shardy_seconds(worker: Worker, plan: Plan, draw: Draw) -> tuple[float | None, float | None]:
    """Seconds of Shardy's answer for the same result, and of the plan that may adopt it; None where it cannot
    be asked."""
    from shardviz.compare.adoption import cheaper_plan
    from shardviz.targets import TARGETS
    from tests.planner.shardy_cost import shardy_seconds

    problem = plan.problem
    last = problem.parts[-1]
    repeated = any(len(set(dims)) < len(dims) for part in problem.parts for dims in part.einsum.operands)
    specs = [array.spec for array in problem.arrays if array.spec is not None]
    if not draw.kind.real:
        return None, None
    if repeated or plan.result_spec.unreduced or any(spec.unreduced for spec in specs):
        return None, None
    last = replace(last, result=last.result.with_spec(plan.result_spec))
    answer = worker.ask(replace(problem, parts=(*problem.parts[:-1], last)), TARGETS["shardy"])
    if answer.status != "ok":
        return None, None
    placed = Planner(problem.mesh).placed
    adopted = price(cheaper_plan(plan, [answer], placed), placed)
    return shardy_seconds(answer, placed, problem), adopted.serial_seconds


def described(one: Measured) -> Iterator[str]:
    """A problem, its plan and what is better, in lines, for a failure."""
    problem = one.problem
    arrays = " ".join(f"{each.name}{list(each.shape)}:{each.spec}" for each in problem.arrays)
    plan = one.cost.plan
    says = "optimal" if plan.optimal else f"at most {plan.at_most} times the least"
    yield f"{problem.mesh} {problem.text} {arrays}: {one.ratio:.4f} times the least, says {says}"
    for each in one.cost.steps:
        step, axes = each.step, " ".join(each.step.axes)
        yield f"  {step.op} {step.array} {axes} {step.from_spec} to {step.to_spec}: {each.seconds}"
    if one.best is None:
        yield "the exhaustive search finds none as good"
        return
    yield f"best: {one.best.cost}"
    for said in one.best.steps():
        yield f"  {said}"
