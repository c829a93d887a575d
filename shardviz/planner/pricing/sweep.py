"""A plan's cost over a range of sizes of a dimension or of a mesh axis, and where compute and communication
cross."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter

from shardviz.errors import NotationError, QuestionError, did_you_mean, quote
from shardviz.hardware.machine import PlacedMesh
from shardviz.notation.numbers import SizeRange
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import PlanCost, parts_of, price, resized, resized_problem
from shardviz.planner.problem import Problem
from shardviz.sharding import Mesh


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
        """True for a mesh axis."""
        return self.name in self.problem.mesh.axis_names


def sweep(problem: Problem, sizes: SizeRange, placed: Callable[[Mesh], PlacedMesh]) -> Sweep:
    """Plan and price a problem at every size; `placed` lays a mesh on the machine.

    Raises `NotationError` at the place in the range's text for a name that the problem does not have and for
    a size that its axes do not divide; `QuestionError` for an axis of a mesh on a machine, and where nothing
    is known of a time.
    """
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
        raise NotationError(
            f"{quote(sizes.name, 30)} is neither a dimension nor a mesh axis,",
            sizes.text,
            start,
            start + len(sizes.name),
            f"{did_you_mean(sizes.name, names)}the names are {', '.join(names)}",
        )
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
        raise QuestionError(
            f"the time of {step.op} {step.einsum or step.array} is unknown: {cost.missing_figure}",
            f"use another --dtype, such as {others[0]}, or a --machine with a figure for it"
            if others and unknown.compute_seconds is None and not unknown.is_collective
            else f"use a --machine with the figure; shardviz measure {measured} -o FILE.toml measures one",
        )
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
