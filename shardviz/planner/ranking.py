"""All shardings of the operands worth considering on a mesh, each with its plan."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, islice, product
from math import prod

from shardviz.errors import QuestionError
from shardviz.hardware.machine import PlacedMesh
from shardviz.planner.plan import Plan, einsum_parts, multiply_adds
from shardviz.planner.planner import Planner
from shardviz.planner.pricing.costs import PlanCost, price
from shardviz.planner.problem import Problem
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray
from shardviz.sharding.axis_parts import whole_axis

MAX_PLANS = 1500
"""Plans that a ranking may need: some seconds of work."""
MAX_CONSIDERED = 100_000
"""Combinations of places for the axes, before those that do not divide or only swap axes are left out."""


@dataclass(frozen=True)
class Candidate:
    """One sharding of the operands, with its plan's `cost`. `work_per_device` counts multiply-adds. What is
    faster than one of the `best` holds more at once."""

    cost: PlanCost
    work_per_device: int
    best: bool = False

    @property
    def plan(self) -> Plan:
        return self.cost.plan


def rank(problem: Problem, placed: PlacedMesh) -> tuple[Candidate, ...]:
    """The candidates that fit on a device, then the others, ranked by the seconds of their steps in sequence,
    then by memory, wire bytes and work per device; where a time is not known by wire bytes, memory and work,
    in which then no other beats the `best`. Each operand is split in every way that divides it evenly,
    several axes on one dimension in the mesh's order, axes of one size in one of the ways that they can be
    swapped; specs that the problem gives stay. Raises `QuestionError` for more than `MAX_PLANS` combinations,
    and where the result that is asked for cannot be had from any."""
    choices = list(islice(_choices(problem), MAX_PLANS + 1))
    if len(choices) > MAX_PLANS:
        raise _too_many(problem)
    planner = Planner(problem.mesh, placed, problem.objective, is_bounded=False)
    candidates: list[Candidate] = []
    refusal: QuestionError | None = None
    for given in choices:
        try:
            plan = planner.plan(_decided(problem, given))
        except QuestionError as error:
            # A result that is asked for cannot be had from every sharding of the operands.
            refusal = error
            continue
        work = sum(multiply_adds(operands, problem.mesh) for operands, _ in einsum_parts(plan))
        candidates.append(Candidate(price(plan, placed), work))
    if not candidates and refusal is not None:
        raise refusal
    return tuple(_ranked(candidates))


def _choices(problem: Problem) -> Iterator[dict[str, PartitionSpec | None]]:
    """Specs for all open arrays: for each mesh axis, which dimension of each array it splits, if any."""
    mesh = problem.mesh
    made = [part.result for part in problem.parts if part.result.spec is not None]
    arrays = [array for array in (*problem.arguments, *made) if array.spec is None or array.spec.open_dims]
    axes = [axis for axis in mesh.axis_names if mesh.axis_size(axis) > 1]
    total = prod(len(_open_dims(array)) + 1 for array in arrays) ** len(axes)
    if total > MAX_CONSIDERED:
        raise _too_many(problem)
    ways = list(product(*((None, *_open_dims(array)) for array in arrays)))
    twins: list[tuple[int, int]] = []
    if all(array.spec is None for array in problem.arrays):  # axes of one size are alike
        pairs = combinations(enumerate(map(mesh.axis_size, axes)), 2)
        twins = [(one, other) for (one, size), (other, alike) in pairs if size == alike]
    for chosen in product(range(len(ways)), repeat=len(axes)):
        if any(chosen[one] > chosen[other] for one, other in twins):
            continue
        placed = [
            [(axis, ways[way][index]) for axis, way in zip(axes, chosen, strict=True)]
            for index in range(len(arrays))
        ]
        specs = [_extended(array, own, mesh) for array, own in zip(arrays, placed, strict=True)]
        if None not in specs:
            yield dict(zip([array.name for array in arrays], specs, strict=True))


def _open_dims(array: ShardedArray) -> tuple[int, ...]:
    """The dimensions that may be split in any way, or further than the spec says."""
    return tuple(range(array.rank)) if array.spec is None else array.spec.open_dims


def _extended(array: ShardedArray, placed: list[tuple[str, int | None]], mesh: Mesh) -> PartitionSpec | None:
    """The spec with more axes, each on a dimension; None where one splits the array already, or unevenly."""
    given = array.spec or PartitionSpec.replicated(array.rank)
    used = {whole_axis(axis) for axis in (*given.axes, *given.unreduced)}
    if any(dim is not None and axis in used for axis, dim in placed):
        return None
    rows = enumerate(given.dims)
    dims = tuple((*axes, *(axis for axis, where in placed if where == dim)) for dim, axes in rows)
    spec = PartitionSpec(dims, given.unreduced)
    is_even = not any(size % parts for size, parts in zip(array.shape, spec.parts(mesh), strict=True))
    return spec if is_even else None


def _too_many(problem: Problem) -> QuestionError:
    many = f"there are more than {MAX_PLANS:,} shardings on the mesh {problem.mesh}"
    return QuestionError(many, "give the specs, or use a mesh with fewer axes")


def _decided(problem: Problem, given: dict[str, PartitionSpec | None]) -> Problem:
    return problem.with_arrays(lambda array: array.with_spec(given.get(array.name, array.spec)))


def _ranked(candidates: list[Candidate]) -> Iterator[Candidate]:
    """The candidates in order, with those marked that no earlier one beats."""
    is_timed = not any(one.cost.unknown for one in candidates)

    def sizes(one: Candidate) -> tuple[int, int, int]:
        return one.plan.wire_bytes, one.cost.peak_bytes, one.work_per_device

    def figures(one: Candidate) -> tuple[float, ...]:
        return (one.cost.serial_seconds, one.cost.peak_bytes) if is_timed else sizes(one)

    front: list[tuple[float, ...]] = []
    for one in sorted(
        candidates, key=lambda one: (is_timed and one.cost.over_bytes > 0, *figures(one), *sizes(one))
    ):
        own = figures(one)
        is_best = not (is_timed and one.cost.over_bytes) and not any(
            all(map(operator.le, other, own)) and other != own for other in front
        )
        if is_best:
            front.append(own)
        yield replace(one, best=is_best)
