"""The cost of a plan beside others: the sizes at which it would be compute bound, and other rules' plans.

In the size of one dimension FLOPs and bytes of every step are affine; communication with its latency floors
and memory traffic are convex. So the arithmetic takes longest in one interval, whose ends are bisected."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import Literal

from shardviz.errors import NotationError, QuestionError, did_you_mean, quote
from shardviz.hardware.machine import PlacedMesh
from shardviz.notation.numbers import SizeRange
from shardviz.planner.plan import Plan
from shardviz.planner.planner import Planner, is_searched_anywhere, plan
from shardviz.planner.pricing.priced_plan import HBM, PricedPlan, PricedStep
from shardviz.planner.problem import Problem
from shardviz.planner.statements.work_split import steps_beside
from shardviz.planner.states.moves import PathMove, move_step, state_of
from shardviz.planner.states.prices import Prices
from shardviz.sharding import Mesh, array_bytes

NEGLIGIBLE = 0.01
"""The part of a plan's seconds that is not worth another plan."""
MAX_SIZE = 2**40
"""Sizes that are looked at."""
AlternativeName = Literal["fewest bytes", "fastest"]


@dataclass(frozen=True)
class Alternative:
    """Another plan for the same problem on the same machine, and the rule by which it is chosen."""

    name: AlternativeName
    cost: PricedPlan

    @property
    def plan(self) -> Plan:
        return self.cost.plan


@dataclass(frozen=True)
class Threshold:
    """The sizes of dimension `dim`, now `size`, at which the steps of a plan are compute bound: from `least`
    on (None: never), up to `largest` (None: without end), multiples of `multiple`, the parts into which the
    plan cuts the dimension. `limit` is what takes longer beyond: "HBM", or the longest collective's bound."""

    dim: str
    size: int
    multiple: int
    least: int | None
    largest: int | None
    limit: str

    @property
    def is_every_size(self) -> bool:
        return self.least == self.multiple and self.largest is None


@dataclass(frozen=True)
class PlanCost(PricedPlan):
    """A priced plan that keeps what it is compared with once that was asked for."""

    @cached_property
    def thresholds(self) -> tuple[Threshold, ...]:
        """A threshold for each dimension that a statement has once, but those that stand for others; none
        where a time is not known, nothing is computed, or a dimension has the size 0."""
        problem = self.plan.problem
        sizes, roots = problem.sizes, problem.roots
        if self.unknown or self.peak_flops is None or not self.flops or 0 in sizes.values():
            return ()
        without = {dim for dim in sizes if roots[dim] != dim}
        without |= {dim for array in problem.arrays for dim in array.dims if array.dims.count(dim) > 1}
        for part in problem.parts:
            without.update(dim for dim, _ in part.merged)
            of_part = [roots[dim] for dim in part.sizes]
            without.update(root for root in of_part if of_part.count(root) > 1)
        return tuple(_threshold(self, dim, size) for dim, size in sizes.items() if dim not in without)

    @cached_property
    def alternatives(self) -> tuple[Alternative, ...]:
        """The fastest plan and that with the fewest bytes, where they are better by that than the plan."""
        others: list[Alternative] = []
        shown, problem = self.plan, self.plan.question
        found = None if self.unknown else shown.faster
        is_best = problem.is_tree or shown.optimal or not is_searched_anywhere(problem)
        is_fastest = shown.objective == "time" or (shown.objective == "given" and is_best)
        if found is None and not self.unknown and not is_fastest:
            found = Planner(problem.mesh, self.placed, "time", anywhere=True).plan(problem)
        if found is not None:
            faster = PricedPlan(found, self.placed)
            if faster.serial_seconds < self.serial_seconds * (1 - NEGLIGIBLE):
                others.append(Alternative("fastest", faster))
        if shown.objective != "bytes":
            fewest = PricedPlan(plan(problem, self.placed, "bytes"), self.placed)
            if fewest.wire_bytes < self.wire_bytes:
                others.append(Alternative("fewest bytes", fewest))
        return tuple(others)


def price(plan: Plan, placed: PlacedMesh) -> PlanCost:
    """The cost of a plan, whose mesh lies on a machine as `placed`."""
    return PlanCost(plan, placed)


def _threshold(cost: PricedPlan, dim: str, size: int) -> Threshold:
    margins, multiple = _margins(cost, dim, size), parts_of(cost.plan, dim)
    ends = _interval(lambda count: min(margins(count * multiple).values()), MAX_SIZE // multiple)
    least, largest = (None if count is None else count * multiple for count in ends)
    if least == multiple and largest is None:
        return Threshold(dim, size, multiple, least, largest, "")
    over = margins(size if least is None else least - multiple if least > multiple else (largest or 0) + 1)
    return Threshold(dim, size, multiple, least, largest, min(over, key=over.__getitem__))


def _margins(cost: PricedPlan, dim: str, size: int) -> Callable[[int], dict[str, float]]:
    """By a size of `dim` the seconds by which arithmetic at the peak takes longer than memory traffic, and
    that of each pass longer than its communication, by the bound of its longest collective."""
    double, prices = PricedPlan(resized(cost.plan, dim, 2 * size), cost.placed), Prices(cost.placed)
    peak, bandwidth = cost.peak_flops, cost.machine.device.hbm_bandwidth
    assert peak is not None
    assert bandwidth is not None

    def line(figure: Callable[[PricedStep], float], steps: Iterable[int]) -> Callable[[int], float]:
        """The sum of a figure of some steps as a function of the size."""
        pairs = [(figure(cost.steps[number]), figure(double.steps[number])) for number in steps]
        now, twice = sum(first for first, _ in pairs), sum(last for _, last in pairs)
        return lambda count: 2 * now - twice + (twice - now) / size * count

    later = [cost.phase_of(step) != "forward" for step in cost.steps]
    numbers = range(len(cost.steps))
    local = [number for number in numbers if not cost.steps[number].is_collective]
    sent = [[n for n in numbers if n not in local and later[n] is is_later] for is_later in (False, True)]
    work = [
        line(lambda step: step.compute_seconds or 0.0, [n for n in local if later[n] is is_later])
        for is_later in (False, True)
    ]
    flops, traffic = line(lambda step: step.flops, local), line(lambda step: step.hbm_bytes, local)
    held = [line(lambda step: step.step.bytes, [number]) for number in numbers]
    moved = [line(lambda step: step.hbm_bytes, [number]) for number in numbers]

    def seconds(number: int, count: int) -> float:
        step = cost.steps[number].step
        links = prices.collective_seconds(step.op, step.axes, round(held[number](count)))
        return max(links, moved[number](count) / bandwidth)

    def margins(count: int) -> dict[str, float]:
        over = {HBM: flops(count) / peak - traffic(count) / bandwidth}
        for own, collectives in zip(work, sent, strict=True):
            if waits := {number: seconds(number, count) for number in collectives}:
                bound = cost.steps[max(waits, key=waits.__getitem__)].bound
                over[bound] = min(own(count) - sum(waits.values()), over.get(bound, math.inf))
        return over

    return margins


def _interval(excess: Callable[[int], float], most: int) -> tuple[int | None, int | None]:
    """The first and the last of 1 … `most` (None) at which a concave function is not negative."""
    numbers, inside = range(most + 2), 1
    if excess(1) < 0:
        inside = most
        if excess(most) < 0:
            # The highest of all.
            inside = bisect_left(numbers, True, 1, most, key=lambda at: excess(at) >= excess(at + 1))
        if excess(inside) < 0:
            return None, None
    least = bisect_left(numbers, True, 1, inside, key=lambda at: excess(at) >= 0)
    if excess(most) >= 0:
        return least, None
    return least, bisect_left(numbers, True, inside, most, key=lambda at: excess(at) < 0) - 1


def parts_of(plan: Plan, dim: str) -> int:
    """The number of parts into which the arrays of a plan cut a dimension, at any step: all divide it."""
    roots, mesh = plan.problem.roots, plan.problem.mesh
    specs = [(array, array.spec) for array in plan.problem.arrays if array.spec is not None]
    arrays = {array.name: array for array in plan.problem.arrays}
    for step in plan.steps:
        specs += [(arrays[step.array], step.from_spec), (arrays[step.array], step.to_spec)]
    return math.lcm(
        *(
            mesh.group_size(axes)
            for array, spec in specs
            for name, axes in zip(array.dims, spec.dims, strict=True)
            if roots[name] == roots[dim]
        )
    )


def resized_problem(problem: Problem, dim: str, size: int) -> Problem:
    """The same problem with another size of a dimension, and of those that stand for it."""
    roots, sizes = problem.roots, problem.sizes
    sizes |= {name: size for name, root in roots.items() if root == roots[dim]}
    for part in problem.parts:
        sizes.update((name, math.prod(sizes[factor] for factor in factors)) for name, factors in part.merged)
    return problem.resized(sizes)


def resized(plan: Plan, dim: str, size: int) -> Plan:
    """The same steps with another size of a dimension; reasons keep the words for the old one."""
    mesh = plan.problem.mesh
    problem = resized_problem(plan.problem, dim, size)
    arrays = {array.name: array for array in problem.arrays}
    beside = {
        (work.part, own.array): own
        for work in plan.steps
        if work.op == "apply"
        for own in steps_beside(mesh, problem.parts[work.part], (*work.operand_specs, work.to_spec))
    }
    steps = []
    for step in plan.steps:
        array = arrays[step.array]
        if step.op in ("einsum", "apply"):
            shape = array.with_spec(step.to_spec).shard_shape(mesh)
            steps.append(replace(step, shape=shape, bytes=array_bytes(shape, step.dtype)))
        else:
            states = state_of(step.from_spec, mesh), state_of(step.to_spec, mesh)
            move = PathMove(step.op, step.axes, step.dim, *states)
            own = beside[step.part, step.array] if step.is_beside else move_step(array, mesh, move)
            steps.append(replace(step, shape=own.shape, bytes=own.bytes, wire_bytes=own.wire_bytes))
    return replace(plan, problem=problem, steps=tuple(steps))


# A range of sizes of a dimension or of a mesh axis, and where compute and communication cross.


@dataclass(frozen=True)
class Crossing:
    """The smallest size at which compute takes longer than communication, or with `compute_grows` False the
    other way round. With `same_plan` it is exact; else it is the next of the sizes that are looked at. Where
    a figure of the machine is missing, it is the latest at which compute can take over."""

    size: int
    compute_grows: bool
    same_plan: bool


@dataclass(frozen=True)
class Sweep:
    """The costs of the plans of a problem at some sizes of `name`, a mesh axis or a dimension. `plans_change`
    are the sizes at which the plan's steps are others than at the size before."""

    problem: Problem
    name: str
    sizes: tuple[int, ...]
    costs: tuple[PlanCost, ...]
    crossings: tuple[Crossing, ...]
    plans_change: tuple[int, ...]

    @property
    def is_axis(self) -> bool:
        return self.name in self.problem.mesh.axis_names


def sweep(problem: Problem, sizes: SizeRange, placed: Callable[[Mesh], PlacedMesh]) -> Sweep:
    """Plan and price a problem at every size; `placed` lays a mesh on the machine. Raises `NotationError` at
    the place in the range's text for a name that the problem lacks and a size that its axes do not divide;
    `QuestionError` for an axis of a mesh on a machine, and where nothing is known of a time."""
    is_axis = sizes.name in problem.mesh.axis_names
    _check_name(problem, sizes)
    if is_axis and not (machine := placed(problem.mesh).machine).assumed:
        raise QuestionError(
            f"{machine.name} has a fixed size, but {sizes.name} varies",
            "leave out machine and target: each mesh axis is then a ring of v5e links",
        )
    problems = [_of_size(problem, sizes, is_axis, size) for size in sizes.sizes]
    costs = tuple(_priced(problem, placed) for problem in problems)
    crossings = tuple(_crossings(costs, sizes, is_axis))
    changes = tuple(
        size for size, pair in zip(sizes.sizes[1:], pairwise(costs), strict=True) if not _same_steps(*pair)
    )
    return Sweep(problem, sizes.name, sizes.sizes, costs, crossings, changes)


def _check_name(problem: Problem, sizes: SizeRange) -> None:
    names = (*problem.roots, *problem.mesh.axis_names)
    if sizes.name not in names:
        start = sizes.text.index(sizes.name)
        complaint = f"{quote(sizes.name, 30)} is neither a dimension nor a mesh axis,"
        hint = f"{did_you_mean(sizes.name, names)}the names are {', '.join(names)}"
        raise NotationError(complaint, sizes.text, start, start + len(sizes.name), hint)
    if sizes.name in problem.mesh.axis_names and problem.mesh.device_order is not None:
        raise QuestionError("a device order needs one mesh, but its size varies", "leave out the order")


def _of_size(problem: Problem, sizes: SizeRange, is_axis: bool, size: int) -> Problem:
    if is_axis:
        shape = problem.mesh.shape | {sizes.name: size}
        other = replace(problem, mesh=Mesh(tuple(shape), tuple(shape.values())))
    else:
        other = resized_problem(problem, sizes.name, size)
    rows = (
        (array.name, *row)
        for array in other.arrays
        if array.spec is not None
        for row in zip(array.dims, array.shape, array.spec.dims, strict=True)
    )
    for name, dim, elements, axes in rows:
        if elements % (parts := other.mesh.group_size(axes)):
            over = ",".join(f"{axis}={other.mesh.axis_size(axis)}" for axis in axes)
            hint = f"begin with a multiple of {parts}"
            if is_axis:
                hint = f"use sizes that divide {dim}={elements:,}, or make {dim} larger by --sizes"
            fault, text = f"{dim}={elements:,} of {name} is not divisible by {over},", sizes.text
            raise NotationError(fault, text, text.index("=") + 1, len(text), hint)
    return other


def _priced(problem: Problem, placed: Callable[[Mesh], PlacedMesh]) -> PlanCost:
    where = placed(problem.mesh)
    cost = price(plan(problem, where), where)
    unknown = next((priced for priced in cost.unknown if priced.seconds is None), None)
    if unknown is not None:
        step = unknown.step
        others = sorted(dtype for dtype, _ in cost.machine.device.peak if dtype != step.dtype)
        measured = "psum" if unknown.is_collective else "matmul,copy"
        hint = f"use a --machine with the figure; shardviz measure {measured} -o FILE.toml measures one"
        if others and unknown.compute_seconds is None and not unknown.is_collective:
            hint = f"use another --dtype, such as {others[0]}, or a --machine with a figure for it"
        what = f"{step.op} {step.einsum or step.array}"
        raise QuestionError(f"the time of {what} is unknown: {cost.missing_figure}", hint)
    return cost


def _crossings(costs: tuple[PlanCost, ...], sizes: SizeRange, is_axis: bool) -> Iterator[Crossing]:
    for (before, after), (low, high) in zip(pairwise(costs), pairwise(sizes.sizes), strict=True):
        grows = _is_compute_longer(after)
        if _is_compute_longer(before) == grows or (after.unknown and not grows):
            continue  # a lower bound of compute does not show that communication takes longer
        if is_axis or not _same_steps(before, after):
            yield Crossing(high, grows, same_plan=False)
            continue
        # The least size by which the order is as at `high`, in the parts that the plan cuts.
        step = parts_of(before.plan, sizes.name)

        def is_beyond(count: int, cost: PlanCost = before, step: int = step, grows: bool = grows) -> bool:
            other = price(resized(cost.plan, sizes.name, count * step), cost.placed)
            return _is_compute_longer(other) == grows

        first = bisect_left(range(high // step), True, low // step + 1, high // step, key=is_beyond)
        yield Crossing(first * step, grows, same_plan=True)


def _is_compute_longer(cost: PlanCost) -> bool:
    return cost.compute_seconds >= cost.communication_seconds


def _same_steps(one: PlanCost, other: PlanCost) -> bool:
    """Both plans have the same operations over the same axes, on arrays that are split alike."""
    kinds = attrgetter("op", "array", "axes", "dim", "from_spec", "to_spec")
    return [*map(kinds, one.plan.steps)] == [*map(kinds, other.plan.steps)]
