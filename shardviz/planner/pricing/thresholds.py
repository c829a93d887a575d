"""The sizes of dimensions at which the steps of a plan are compute bound.

With all other sizes as they are, FLOPs and bytes of every step are affine in the size of one dimension, so
the arithmetic is a straight line; communication with its latency floors and memory traffic are convex. The
sizes at which the arithmetic takes longest are therefore one interval, whose ends are bisected.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from shardviz.hardware.machine import PlacedMesh
from shardviz.planner.plan import Plan, Step
from shardviz.planner.pricing.priced_plan import PricedPlan, priced_plan
from shardviz.planner.pricing.priced_steps import HBM, PricedStep
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.states.moves import reshard_move, state_of
from shardviz.planner.states.prices import collective_price
from shardviz.sharding import ShardedArray, array_bytes

MAX_SIZE = 2**40
"""Sizes that are looked at."""


@dataclass(frozen=True)
class Threshold:
    """The sizes of dimension `dim`, now `size`, at which the steps of a plan are compute bound.

    From `least` on, up to `largest`; a `largest` of None is without end, a `least` of None never. `multiple`
    is what divides all sizes that are looked at: the parts into which the plan cuts the dimension. `limit` is
    what takes longer than the arithmetic beyond: "HBM", or the bound of the longest collective.
    """

    dim: str
    size: int
    multiple: int
    least: int | None
    largest: int | None
    limit: str

    @property
    def is_every_size(self) -> bool:
        return self.least == self.multiple and self.largest is None


def thresholds(cost: PricedPlan) -> tuple[Threshold, ...]:
    """A threshold for each dimension that a statement has once, in the order of the statements.

    None where a time is not known, nothing is computed, or a dimension has the size 0. Of several names of a
    dimension the first counts; one that stands for others has none.
    """
    problem = cost.plan.problem
    sizes = {dim: size for array in problem.arrays for dim, size in zip(array.dims, array.shape, strict=True)}
    if cost.unknown or cost.peak_flops is None or not cost.flops or 0 in sizes.values():
        return ()
    twice = {dim for array in problem.arrays for dim in array.dims if array.dims.count(dim) > 1}
    for names in problem.aliases:
        first, *others = [dim for dim in sizes if dim in names]
        twice.update(others)
        if any(len(names.intersection(_dims(part))) > 1 for part in problem.parts):
            twice.add(first)
    merged = {dim for part in problem.parts for dim, _ in part.merged}
    return tuple(_threshold(cost, dim, size) for dim, size in sizes.items() if dim not in twice | merged)


def _dims(part: Statement) -> set[str]:
    """The dimensions of a statement."""
    return {dim for array in (*part.operands, part.result) for dim in array.dims}


@dataclass(frozen=True)
class _Line:
    """FLOPs or bytes as a function of a size."""

    start: float
    slope: float

    def at(self, size: int) -> float:
        return self.start + self.slope * size


def _threshold(cost: PricedPlan, dim: str, size: int) -> Threshold:
    excess, limit = _excess(cost, dim, size)
    multiple = parts_of(cost.plan, dim)
    least, largest = _interval(lambda count: excess(count * multiple), MAX_SIZE // multiple)
    beyond = size if least is None else (least - 1) * multiple if least > 1 else (largest or 0) * multiple + 1
    return Threshold(
        dim,
        size,
        multiple,
        None if least is None else least * multiple,
        None if largest is None else largest * multiple,
        "" if least == 1 and largest is None else limit(beyond),
    )


def _excess(cost: PricedPlan, dim: str, size: int) -> tuple[Callable[[int], float], Callable[[int], str]]:
    """By a size of `dim`: the seconds by which the arithmetic takes longer than the slower of memory and
    links, and which of them that is. Links are compared with the arithmetic of their own pass (`overlap`)."""
    device, placed = cost.machine.device, cost.placed
    none = priced_plan(resized(cost.plan, dim, 0), placed)
    peak, bandwidth = cost.peak_flops, device.hbm_bandwidth
    assert peak is not None
    assert bandwidth is not None

    def line(of: Callable[[PricedStep], int], now: PricedStep, at_none: PricedStep) -> _Line:
        return _Line(of(at_none), (of(now) - of(at_none)) / size)

    work, traffic = [_Line(0, 0), _Line(0, 0)], _Line(0, 0)
    collectives: list[tuple[Step, bool, _Line, _Line]] = []
    for now, at_none in zip(cost.steps, none.steps, strict=True):
        is_later = cost.phase_of(now) != "forward"
        moved = line(lambda each: each.hbm_bytes, now, at_none)
        if now.is_collective:
            collectives.append((now.step, is_later, line(lambda each: each.step.bytes, now, at_none), moved))
        else:
            flops, own = line(lambda each: each.flops, now, at_none), work[is_later]
            work[is_later] = _Line(own.start + flops.start, own.slope + flops.slope)
            traffic = _Line(traffic.start + moved.start, traffic.slope + moved.slope)

    times = [_seconds_of_bytes(step, placed) for step, *_ in collectives]
    passes = {is_later for _, is_later, *_ in collectives}

    def communication(count: int, is_later: bool) -> list[tuple[float, Step]]:
        return [
            (max(time(size.at(count)), moved.at(count) / bandwidth), step)
            for time, (step, later, size, moved) in zip(times, collectives, strict=True)
            if later is is_later
        ]

    def margins(count: int) -> dict[bool | str, float]:
        """The excess over memory, and of each pass over its communication."""
        arithmetic = [each.at(count) / peak for each in work]
        found: dict[bool | str, float] = {HBM: sum(arithmetic) - traffic.at(count) / bandwidth}
        for each in passes:
            found[each] = arithmetic[each] - sum(seconds for seconds, _ in communication(count, each))
        return found

    def excess(count: int) -> float:
        return min(margins(count).values())

    def limit(count: int) -> str:
        by = margins(count)
        slowest = min(by, key=by.__getitem__)
        if isinstance(slowest, str):
            return slowest
        longest = max(communication(count, slowest), key=lambda each: each[0])[1]
        return next(each.bound for each in cost.steps if each.step is longest)

    return excess, limit


def _seconds_of_bytes(step: Step, placed: PlacedMesh) -> Callable[[float], float]:
    """The time of a collective by its bytes: a latency and a straight line, but where NCCL chooses between
    protocols, or where it was measured."""
    if placed.machine.measured or any(level.nccl for level in placed.group_levels(step.axes)):
        return lambda count: collective_price(step.op, round(count), step.axes, placed).seconds
    time = collective_price(step.op, MAX_SIZE, step.axes, placed)
    latency, slope = time.latency_seconds, time.bandwidth_seconds / MAX_SIZE
    if time.seconds > max(time.latency_seconds, time.bandwidth_seconds):
        return lambda count: latency + slope * count
    return lambda count: max(latency, slope * count)


def _interval(excess: Callable[[int], float], most: int) -> tuple[int | None, int | None]:
    """The first and the last of 1 … `most` at which a concave function is not negative.

    None for the last where that is `most`, and for both where there is none.
    """
    top = _highest(excess, most) if excess(1) < 0 and excess(most) < 0 else None
    if top is not None and excess(top) < 0:
        return None, None
    inside = top if top is not None else 1 if excess(1) >= 0 else most
    least = _edge(excess, 0, inside) if excess(1) < 0 else 1
    largest = _edge(excess, most + 1, inside) if excess(most) < 0 else None
    return least, largest


def _edge(excess: Callable[[int], float], outside: int, inside: int) -> int:
    """The number nearest to `outside` at which the function is not negative, as it is at `inside`."""
    while abs(inside - outside) > 1:
        middle = (inside + outside) // 2
        if excess(middle) >= 0:
            inside = middle
        else:
            outside = middle
    return inside


def _highest(excess: Callable[[int], float], most: int) -> int:
    """A number at which a concave function is highest."""
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        if excess(middle) < excess(middle + 1):
            low = middle + 1
        else:
            high = middle
    return low


def parts_of(plan: Plan, dim: str) -> int:
    """The number of parts into which the arrays of a plan cut a dimension, at any step: all divide it."""
    mesh = plan.problem.mesh
    parts = 1
    same = next((names for names in plan.problem.aliases if dim in names), frozenset({dim}))
    specs = [(array, array.spec) for array in plan.problem.arrays if array.spec is not None]
    arrays = {array.name: array for array in plan.problem.arrays}
    for step in plan.steps:
        specs += [(arrays[step.array], step.from_spec), (arrays[step.array], step.to_spec)]
    for array, spec in specs:
        for name, axes in zip(array.dims, spec.dims, strict=True):
            if name in same:
                parts = math.lcm(parts, mesh.group_size(axes))
    return parts


def resized_problem(problem: Problem, dim: str, size: int) -> Problem:
    """The same problem with another size of a dimension, under all its names, and of those that stand for
    it among others."""
    sizes = {name: old for array in problem.arrays for name, old in zip(array.dims, array.shape, strict=True)}
    sizes.update(dict.fromkeys(next((names for names in problem.aliases if dim in names), {dim}), size))
    for part in problem.parts:
        sizes.update((name, math.prod(sizes[factor] for factor in factors)) for name, factors in part.merged)

    def resize(array: ShardedArray) -> ShardedArray:
        return replace(array, shape=tuple(sizes[name] for name in array.dims))

    parts = tuple(
        replace(part, operands=tuple(map(resize, part.operands)), result=resize(part.result))
        for part in problem.parts
    )
    return replace(problem, parts=parts)


def resized(plan: Plan, dim: str, size: int) -> Plan:
    """The same steps with another size of a dimension; reasons keep the words for the old one."""
    mesh = plan.problem.mesh
    problem = resized_problem(plan.problem, dim, size)
    arrays = {array.name: array for array in problem.arrays}
    steps = []
    for step in plan.steps:
        array = arrays[step.array]
        if step.op in ("einsum", "apply"):
            shape = array.with_spec(step.to_spec).shard_shape(mesh)
            steps.append(replace(step, shape=shape, bytes=array_bytes(shape, step.dtype)))
        else:
            states = state_of(step.from_spec, mesh), state_of(step.to_spec, mesh)
            move = reshard_move(array, mesh, step.op, step.axes, step.dim, *states)
            steps.append(replace(step, shape=move.shape, bytes=move.bytes, wire_bytes=move.wire_bytes))
    return replace(plan, problem=problem, steps=tuple(steps))
