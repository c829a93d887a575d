"""The copies of arrays that the steps of a plan take and make: a plan may hold several of one array."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from shardviz.planner.plan import Plan
from shardviz.planner.problem.statement_code import LocalDims
from shardviz.sharding import PartitionSpec, ShardedArray, shard_shape

Copy = tuple[str, PartitionSpec]
"""An array as it is split."""


@dataclass(frozen=True)
class PlanCopies:
    """The copies of a plan; steps are known by their index, from 0."""

    plan: Plan

    @cached_property
    def arrays(self) -> dict[str, ShardedArray]:
        """Every array by its name."""
        return {array.name: array for array in self.plan.problem.arrays}

    def copy(self, name: str, spec: PartitionSpec) -> Copy:
        """A copy of an array; axes of one device split nothing."""
        wide = [
            tuple(axis for axis in axes if self.plan.problem.mesh.axis_size(axis) > 1)
            for axes in (*spec.dims, spec.unreduced)
        ]
        return name, PartitionSpec(tuple(wide[:-1]), wide[-1])

    @cached_property
    def given(self) -> tuple[Copy, ...]:
        """The arguments."""
        return tuple(self.copy(array.name, array.decided_spec) for array in self.plan.problem.arguments)

    @cached_property
    def made(self) -> tuple[Copy, ...]:
        """The copy that each step makes."""
        return tuple(self.copy(step.array, step.to_spec) for step in self.plan.steps)

    @cached_property
    def taken(self) -> list[tuple[Copy, ...]]:
        """The copies that each step takes, and at the end those that are returned."""
        newest = {name: (name, spec) for name, spec in self.given}
        found: list[tuple[Copy, ...]] = []
        for step, made in zip(self.plan.steps, self.made, strict=True):
            if step.operand_specs:
                found.append(tuple(map(self.copy, step.operands, step.operand_specs)))
            elif step.operands:
                found.append(tuple(newest[name] for name in step.operands))
            else:
                found.append((self.copy(step.array, step.from_spec),))
            newest[step.array] = made
        result = self.plan.problem.result.name
        returned = []
        for array in self.plan.problem.returned_arrays:
            spec = self.plan.result_spec if array.name == result else array.spec
            returned.append(newest[array.name] if spec is None else self.copy(array.name, spec))
        return [*found, tuple(returned)]

    def shard(self, copy: Copy) -> tuple[int, ...]:
        """The shape that one device holds."""
        name, spec = copy
        return shard_shape(self.arrays[name].shape, spec, self.plan.problem.mesh)

    def local(self, index: int, axes_code: Callable[[tuple[str, ...]], str] = repr) -> LocalDims:
        """The dimensions of a step's statement as one device has them when it works on them; `axes_code`
        writes axes."""
        part = self.plan.problem.parts[self.plan.steps[index].part]
        sizes: dict[str, int] = {}
        starts: dict[str, str] = {}
        copies = (*self.taken[index], self.made[index])
        for dims, copy in zip((*part.einsum.operands, part.einsum.result), copies, strict=True):
            for dim, size, axes in zip(dims, self.shard(copy), copy[1].dims, strict=True):
                sizes[dim] = min(size, sizes.get(dim, size))
                if axes:
                    starts[dim] = f"jax.lax.axis_index({axes_code(axes)}) * {size}"
        return LocalDims(sizes, starts)
