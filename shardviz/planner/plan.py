"""The answer of the planner: steps that turn sharded operands into the sharded result, and the copies of
arrays that they take and make."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple

from shardviz.lazy_names import LazyImports
from shardviz.notation.einsum import Einsum
from shardviz.planner.problem import Objective, Problem
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray, shard_shape
from shardviz.sharding.axis_parts import finest_parts, in_parts, joined_parts

with LazyImports():
    from shardviz.planner.problem import functions, jax_code

LOCAL_OPS = ("einsum", "apply", "slice", "mask", "pad")
HLO_OPS = {
    "all_gather": "all-gather",
    "psum": "all-reduce",
    "pmax": "all-reduce",
    "psum_scatter": "reduce-scatter",
    "all_to_all": "all-to-all",
    "ppermute": "collective-permute",
}
"""JAX's name of a collective → HLO's."""


@dataclass(frozen=True)
class Step:
    """One operation that every device performs at the same time.

    `op` is JAX's name: all_gather, psum, pmax, psum_scatter, all_to_all, ppermute, or the local einsum, apply
    (another `function`), slice, mask (a whole copy becomes a pending sum: the first device of a group keeps
    it, the others have zeros) and pad (a shard becomes one, with zeros around it). `array` is what it changes
    or makes, `part` the number of its statement. `axes` are the mesh axes of the collective's groups, major
    first. `dim` is the first dimension that is gathered, scattered, sliced or padded; for all_to_all the one
    that becomes whole; None otherwise. `shape` is per device, of the larger of operand and result, and
    `bytes` its bytes; for an einsum, its result's. Where an array stays as it is, a ppermute sends a halo of
    it to a neighbour, and an all_gather the sums of a softmax, of that `shape`. `wire_bytes`: what one device
    must send at least. `operands` are the arrays that an einsum or a function takes, under `operand_specs`,
    which say which copy of an array that several statements use. `reason` is a sentence with the numbers of
    the case, `short_reason` at most ten words of it."""

    op: str
    array: str
    axes: tuple[str, ...]
    dim: int | None
    from_spec: PartitionSpec
    to_spec: PartitionSpec
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    wire_bytes: int
    reason: str = ""
    operands: tuple[str, ...] = ()
    einsum: Einsum | None = None
    part: int = 0
    function: str = ""
    operand_specs: tuple[PartitionSpec, ...] = ()
    short_reason: str = ""

    @property
    def is_beside(self) -> bool:
        """It sends what a statement needs beside its operands, and its array stays as it is."""
        return self.op in HLO_OPS and self.from_spec == self.to_spec


@dataclass(frozen=True)
class Plan:
    """Steps in order. `cases` names, for each part of the chain, which case of the textbook it is.

    `objective` is what the steps minimise. With `optimal` no other plan of the space searched is better;
    else `at_most` says how many times the best it may cost, where that is known, and `faster` is a plan that
    costs less and splits the work elsewhere than the arrays are, where one was found. `as_given` says of a
    plan that splits the work elsewhere how many times its cost one has that does not. `teller` says who
    found it: "planner", or "shardy" where its answer is cheaper. `asked` is the problem as it was asked,
    where the statements of `problem` may be other ones that compute the same."""

    problem: Problem
    steps: tuple[Step, ...]
    result_spec: PartitionSpec
    cases: tuple[str, ...]
    objective: Objective = "given"
    optimal: bool = True
    at_most: float | None = None
    faster: Plan | None = None
    as_given: float | None = None
    teller: Literal["planner", "shardy"] = "planner"
    asked: Problem | None = None

    @property
    def question(self) -> Problem:
        """The problem as it was asked, before its statements were put in an order of contraction."""
        return self.problem if self.asked is None else self.asked

    @property
    def collectives(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.op not in LOCAL_OPS)

    @property
    def wire_bytes(self) -> int:
        return sum(step.wire_bytes for step in self.steps)


Parts = list[tuple[tuple[ShardedArray, ...], ShardedArray]]
"""Operands and result of every part of a chain."""


def einsum_parts(plan: Plan) -> Parts:
    """The operands as each statement takes them, and its result as it leaves it, often as partial sums."""
    work = (step for step in plan.steps if step.op in ("einsum", "apply"))
    parts: Parts = []
    for part, step in zip(plan.problem.parts, work, strict=True):
        operands = tuple(map(ShardedArray.with_spec, part.operands, step.operand_specs))
        parts.append((operands, part.result.with_spec(step.to_spec)))
    return parts


def multiply_adds(operands: tuple[ShardedArray, ...], mesh: Mesh) -> int:
    """Those of an einsum on one device: the sizes of its dimensions as the device holds them, multiplied."""
    return math.prod(
        functions.local_sizes((array.dims, array.shard_shape(mesh)) for array in operands).values()
    )


def decided_parts(plan: Plan) -> Parts:
    """Operands and result of every part; where the compiler may choose, with the spec after its reduction."""
    newest, specs = "", dict[str, PartitionSpec]()
    for step in plan.steps:
        is_reduced = step.array == newest and step.op in ("psum", "pmax", "psum_scatter")
        if is_reduced or step.op in ("einsum", "apply"):
            newest = step.array
            specs[newest] = step.to_spec
    specs[newest] = plan.result_spec

    def decided(array: ShardedArray) -> ShardedArray:
        return array if array.spec is not None else array.with_spec(specs[array.name])

    return [(tuple(map(decided, part.operands)), decided(part.result)) for part in plan.problem.parts]


class RepeatedWork(NamedTuple):
    """Statements, by their numbers, that devices along `axes` all compute alike, `factor` times in all."""

    factor: int
    axes: tuple[str, ...]
    parts: tuple[int, ...]


def repeated_work(plan: Plan) -> RepeatedWork | None:
    """The work that most devices repeat: of an einsum the axes that split its arrays as the problem gives
    and wants them, but none of its dimensions while the devices multiply. None where there is none."""
    mesh = plan.problem.mesh
    by_axes: dict[tuple[str, ...], list[int]] = {}
    for step in plan.steps:
        if step.op != "einsum":
            continue
        arrays = plan.problem.parts[step.part].arrays
        given = {axis for array in arrays if array.spec is not None for axis in array.spec.axes}
        used = {axis for spec in step.operand_specs for axis in spec.axes}
        finest = finest_parts(mesh.shape, given | used)
        idle = {*in_parts(given, finest)}.difference(in_parts(used, finest))
        if axes := tuple(name for name in finest if name in idle and mesh.axis_size(name) > 1):
            by_axes.setdefault(axes, []).append(step.part)
    if not by_axes:
        return None
    axes = max(by_axes, key=mesh.group_size)
    return RepeatedWork(mesh.group_size(axes), joined_parts(axes, mesh.shape), tuple(by_axes[axes]))


def axes_words(axes: tuple[str, ...]) -> str:
    """Axes as the scaling book writes several: ``XY``, or ``data·model`` for long names."""
    return ("" if all(len(axis) == 1 for axis in axes) else "·").join(axes)


Copy = tuple[str, PartitionSpec]
"""An array as it is split."""


@dataclass(frozen=True)
class PlanCopies:
    """The copies of a plan; steps are known by their index, from 0."""

    plan: Plan

    @cached_property
    def arrays(self) -> dict[str, ShardedArray]:
        return {array.name: array for array in self.plan.problem.arrays}

    def copy(self, name: str, spec: PartitionSpec) -> Copy:
        """A copy of an array; axes of one device split nothing."""
        size = self.plan.problem.mesh.axis_size
        every = ((axis for axis in axes if size(axis) > 1) for axes in (*spec.dims, spec.unreduced))
        *dims, unreduced = map(tuple, every)
        return name, PartitionSpec(tuple(dims), unreduced)

    @cached_property
    def given(self) -> tuple[Copy, ...]:
        return tuple(self.copy(array.name, array.decided_spec) for array in self.plan.problem.arguments)

    @cached_property
    def made(self) -> tuple[Copy, ...]:
        """The copy that each step makes."""
        return tuple(self.copy(step.array, step.to_spec) for step in self.plan.steps)

    @cached_property
    def taken(self) -> list[tuple[Copy, ...]]:
        """The copies that each step takes, and at the end those that are returned."""
        newest = {name: (name, spec) for name, spec in self.given}
        by_step: list[tuple[Copy, ...]] = []
        for step, made in zip(self.plan.steps, self.made, strict=True):
            if step.operand_specs:
                by_step.append(tuple(map(self.copy, step.operands, step.operand_specs)))
            elif step.operands:
                by_step.append(tuple(newest[name] for name in step.operands))
            else:
                by_step.append((self.copy(step.array, step.from_spec),))
            newest[step.array] = made
        result = self.plan.problem.result.name
        returned = []
        for array in self.plan.problem.returned_arrays:
            spec = self.plan.result_spec if array.name == result else array.spec
            returned.append(newest[array.name] if spec is None else self.copy(array.name, spec))
        return [*by_step, tuple(returned)]

    def shard(self, copy: Copy) -> tuple[int, ...]:
        """The shape that one device holds."""
        name, spec = copy
        return shard_shape(self.arrays[name].shape, spec, self.plan.problem.mesh)

    def local(self, index: int, axes_code: Callable[[tuple[str, ...]], str] = repr) -> jax_code.LocalDims:
        """The dimensions of a step's statement as one device works on them; `axes_code` writes axes."""
        einsum = self.plan.problem.parts[self.plan.steps[index].part].einsum
        copies = [
            *zip((*einsum.operands, einsum.result), (*self.taken[index], self.made[index]), strict=True)
        ]
        rows = (row for dims, own in copies for row in zip(dims, self.shard(own), own[1].dims, strict=True))
        split = {dim: (size, axes) for dim, size, axes in rows if axes}
        starts = {
            dim: f"jax.lax.axis_index({axes_code(axes)}) * {size}" for dim, (size, axes) in split.items()
        }
        sizes = functions.local_sizes((dims, self.shard(own)) for dims, own in copies)
        groups, mesh = dict[str, tuple[str, str]](), self.plan.problem.mesh
        for dim, (_, axes) in split.items():
            # JAX's ppermute counts the members by the mesh's own order of the axes.
            ordered = tuple(sorted(axes, key=[*mesh.axis_names, *axes].index))
            counted = mesh.groups(ordered)[0]
            numbers = [counted.index(position) for position in mesh.groups(axes)[0]]
            pairs = str([*pairwise(numbers)])
            if ordered == axes:
                pairs = f"[(place, place + 1) for place in range({len(numbers) - 1})]"
            groups[dim] = axes_code(ordered), pairs
        return jax_code.LocalDims(sizes, starts, groups)
