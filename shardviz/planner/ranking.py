"""All shardings of the operands worth considering on a mesh, each with its plan."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, islice, product
from math import prod
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError
from shardviz.planner.plan import Plan, einsum_parts, multiply_adds
from shardviz.planner.planner import Planner
from shardviz.planner.problem import Problem
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray
from shardviz.sharding.axis_parts import whole_axis

if TYPE_CHECKING:
    from shardviz.hardware.machine import PlacedMesh
    from shardviz.planner.pricing.costs import PlanCost

MAX_PLANS = 1500
"""Plans that a ranking may need: some seconds of work."""
MAX_CONSIDERED = 100_000
"""Combinations of places for the axes, before those that do not divide or only swap axes are left out."""
Figures = tuple[float, ...]


@dataclass(frozen=True)
class Candidate:
    """One sharding of the operands, with its plan's `cost`.

    `memory_per_device` counts bytes of operands and results together, `work_per_device` multiply-adds. `best`
    marks the candidates that no other beats: to be faster, one must hold more.
    """

    cost: PlanCost
    memory_per_device: int
    work_per_device: int
    best: bool = False

    @property
    def plan(self) -> Plan:
        return self.cost.plan

    @property
    def bytes_and_work(self) -> tuple[int, int, int]:
        """Per device: bytes sent, bytes held, multiply-adds."""
        return self.plan.wire_bytes, self.memory_per_device, self.work_per_device


def rank(problem: Problem, placed: PlacedMesh) -> tuple[Candidate, ...]:
    """The candidates that fit on a device, and then the others, each ranked by the seconds of their steps in
    sequence, then by memory, wire bytes and work per device.

    Where a time is not known, all are ranked by wire bytes, then by memory and work, and `best` are those
    that no other beats in these three.

    Each operand is split in every way that divides it evenly, several axes on one dimension in the mesh's
    order (the other orders cost the same), axes of one size in one of the ways that they can be swapped;
    specs that the problem already gives stay. Raises `QuestionError` when that makes more than `MAX_PLANS`
    combinations, and where the result that the problem asks for cannot be had from any.
    """
    # Loaded here: most users of the planner ask for no times.
    from shardviz.planner.pricing.costs import price

    choices = list(islice(_choices(problem), MAX_PLANS + 1))
    if len(choices) > MAX_PLANS:
        raise _too_many(problem)
    planner = Planner(problem.mesh, placed, problem.objective)
    found: list[Candidate] = []
    refusal: QuestionError | None = None
    for given in choices:
        try:
            plan = planner.plan(_decided(problem, given))
        except QuestionError as error:
            # A result that is asked for cannot be had from every sharding of the operands.
            refusal = error
            continue
        found.append(Candidate(price(plan, placed), _memory(plan), _work(plan)))
    if not found and refusal is not None:
        raise refusal
    return tuple(_ranked(found))


def _choices(problem: Problem) -> Iterator[dict[str, PartitionSpec]]:
    """Specs for all open arrays: for each mesh axis, which dimension of each array it splits, if any."""
    mesh = problem.mesh
    arrays = [
        array for array in (*problem.arguments, *_made(problem)) if array.spec is None or array.spec.open_dims
    ]
    swappable = _asks_nothing(problem)
    axes = [axis for axis in mesh.axis_names if mesh.axis_size(axis) > 1]
    total = prod(len(_open_dims(array)) + 1 for array in arrays) ** len(axes)
    if total > MAX_CONSIDERED:
        raise _too_many(problem)
    ways = list(product(*((None, *_open_dims(array)) for array in arrays)))
    twins = [
        pair for pair in combinations(range(len(axes)), 2) if swappable and _same_size(mesh, axes, *pair)
    ]
    for chosen in product(range(len(ways)), repeat=len(axes)):
        if any(chosen[one] > chosen[other] for one, other in twins):
            continue
        placed = [
            [(axis, ways[way][place]) for axis, way in zip(axes, chosen, strict=True)]
            for place in range(len(arrays))
        ]
        if any(map(_uses_twice, arrays, placed)):
            continue
        given = {array.name: _extended(array, own) for array, own in zip(arrays, placed, strict=True)}
        if all(_divides(array, given[array.name], mesh) for array in arrays):
            yield given


def _made(problem: Problem) -> Iterator[ShardedArray]:
    """The results of which a spec leaves some dimensions open."""
    return (part.result for part in problem.parts if part.result.spec is not None)


def _open_dims(array: ShardedArray) -> tuple[int, ...]:
    """The dimensions that may be split in any way, or further than the spec says."""
    return tuple(range(array.rank)) if array.spec is None else array.spec.open_dims


def _uses_twice(array: ShardedArray, placed: list[tuple[str, int | None]]) -> bool:
    """Return whether an axis would split an array that its spec splits over it, or a part of it, already."""
    if array.spec is None:
        return False
    used = {whole_axis(axis) for axis in (*array.spec.axes, *array.spec.unreduced)}
    return any(dim is not None and axis in used for axis, dim in placed)


def _extended(array: ShardedArray, placed: list[tuple[str, int | None]]) -> PartitionSpec:
    """The spec of an array with more axes, each on a dimension."""
    given = array.spec or PartitionSpec.replicated(array.rank)
    dims = tuple(
        (*axes, *(axis for axis, where in placed if where == dim)) for dim, axes in enumerate(given.dims)
    )
    return PartitionSpec(dims, given.unreduced)


def _too_many(problem: Problem) -> QuestionError:
    return QuestionError(
        f"there are more than {MAX_PLANS:,} ways to split the arrays on the mesh {problem.mesh}",
        "give the specs, or use a mesh with fewer axes",
    )


def _same_size(mesh: Mesh, axes: list[str], one: int, other: int) -> bool:
    return mesh.axis_size(axes[one]) == mesh.axis_size(axes[other])


def _asks_nothing(problem: Problem) -> bool:
    """No spec is given at all, so that axes of one size are alike."""
    return all(array.spec is None for part in problem.parts for array in (*part.operands, part.result))


def _divides(array: ShardedArray, spec: PartitionSpec, mesh: Mesh) -> bool:
    return all(size % parts == 0 for size, parts in zip(array.shape, spec.parts(mesh), strict=True))


def _decided(problem: Problem, given: dict[str, PartitionSpec]) -> Problem:
    def decide(array: ShardedArray) -> ShardedArray:
        return array.with_spec(given[array.name]) if array.name in given else array

    parts = tuple(
        replace(part, operands=tuple(map(decide, part.operands)), result=decide(part.result))
        for part in problem.parts
    )
    return replace(problem, parts=parts)


def _memory(plan: Plan) -> int:
    problem = plan.problem
    arrays = (*problem.arguments, problem.result.with_spec(plan.result_spec))
    return sum(array.bytes_per_device(problem.mesh) for array in arrays)


def _work(plan: Plan) -> int:
    """Multiply-adds of one device."""
    return sum(multiply_adds(operands, plan.problem.mesh) for operands, _ in einsum_parts(plan))


def _ranked(candidates: list[Candidate]) -> Iterator[Candidate]:
    """The candidates in order, with those marked that no other beats."""
    if any(one.cost.unknown for one in candidates):
        candidates.sort(key=lambda one: one.bytes_and_work)
        yield from _marked(candidates, lambda one: one.bytes_and_work)
        return
    candidates.sort(key=lambda one: (one.cost.serial_seconds, one.memory_per_device, *one.bytes_and_work))
    too_large = [one for one in candidates if one.cost.over_bytes]
    fitting = [one for one in candidates if not one.cost.over_bytes]
    yield from _marked(fitting, lambda one: (one.cost.serial_seconds, one.memory_per_device))
    yield from too_large


def _marked(candidates: list[Candidate], figures: Callable[[Candidate], Figures]) -> Iterator[Candidate]:
    """Mark those that no other beats in all figures; candidates come ranked, so an earlier one may."""
    front: list[Figures] = []
    for one in candidates:
        own = figures(one)
        beaten = any(all(map(operator.le, other, own)) and other != own for other in front)
        if not beaten:
            front.append(own)
        yield replace(one, best=not beaten)
