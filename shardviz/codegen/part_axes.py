"""Problems and plans whose parts of mesh axes are axes of their own, as JAX wants them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from shardviz.sharding import Mesh, PartitionSpec
from shardviz.sharding.axis_parts import axis_part, finest_parts, parts_within, whole_axis

if TYPE_CHECKING:
    from shardviz.planner.plan import Plan
    from shardviz.planner.problem import Problem
    from shardviz.sharding import ShardedArray


@dataclass(frozen=True)
class PartAxes:
    """A mesh with an axis for every part of its axes that some names mean, the devices in the same order.

    `names` has the axis that stands for each of the finest parts: X1 and X2 for those of X.
    """

    mesh: Mesh
    names: Mapping[str, str]

    @classmethod
    def of(cls, mesh: Mesh, used: Iterable[str]) -> PartAxes:
        """The axes for the parts among the names `used`."""
        finest = finest_parts(mesh.shape, used)
        taken = set(mesh.axis_names)
        names: dict[str, str] = {}
        for parts in finest.values():
            for number, part in enumerate(parts, 1):
                if axis_part(part) is None:
                    names[part] = part
                    continue
                free = (f"{whole_axis(part)}{each}" for each in count(number))
                names[part] = next(name for name in free if name not in taken)
                taken.add(names[part])
        sizes = tuple(mesh.axis_size(part) for part in names)
        return cls(Mesh(tuple(names.values()), sizes, mesh.device_order), names)

    @property
    def comment(self) -> list[str]:
        """Lines that say which axes stand for parts of which."""
        wholes = dict.fromkeys(whole_axis(part) for part in self.names if part != whole_axis(part))
        said = []
        for whole in wholes:
            parts = [name for part, name in self.names.items() if whole_axis(part) == whole]
            said.append(f"{', '.join(parts[:-1])} and {parts[-1]} are the parts of {whole}, the major first")
        return [f"# JAX has no parts of mesh axes: {'; '.join(said)}."] if said else []

    def axes(self, axes: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.names[part] for axis in axes for part in parts_within(axis, self.names))

    def spec(self, spec: PartitionSpec) -> PartitionSpec:
        return PartitionSpec(tuple(map(self.axes, spec.dims)), self.axes(spec.unreduced))

    def array(self, array: ShardedArray) -> ShardedArray:
        return array if array.spec is None else array.with_spec(self.spec(array.spec))

    def problem(self, problem: Problem) -> Problem:
        """The problem on this mesh."""
        parts = tuple(
            replace(part, operands=tuple(map(self.array, part.operands)), result=self.array(part.result))
            for part in problem.parts
        )
        return replace(problem, mesh=self.mesh, parts=parts)


def axes_in(arrays: Iterable[ShardedArray]) -> set[str]:
    """The axes and parts that the specs of some arrays name."""
    specs = [array.spec for array in arrays if array.spec is not None]
    return {axis for spec in specs for axis in (*spec.axes, *spec.unreduced)}


def problem_on_parts(problem: Problem) -> tuple[Problem, PartAxes]:
    """The problem on a mesh whose axes are the parts that its specs name."""
    found = PartAxes.of(problem.mesh, axes_in(problem.arrays))
    return found.problem(problem), found


def plan_on_parts(plan: Plan) -> tuple[Plan, PartAxes]:
    """The plan on a mesh whose axes are the parts that its steps name."""
    used = axes_in(plan.problem.arrays)
    for step in plan.steps:
        for spec in (step.from_spec, step.to_spec, *step.operand_specs):
            used.update((*spec.axes, *spec.unreduced))
        used.update(step.axes)
    found = PartAxes.of(plan.problem.mesh, used)
    steps = tuple(
        replace(
            step,
            axes=found.axes(step.axes),
            from_spec=found.spec(step.from_spec),
            to_spec=found.spec(step.to_spec),
            operand_specs=tuple(map(found.spec, step.operand_specs)),
        )
        for step in plan.steps
    )
    result = found.spec(plan.result_spec)
    return replace(plan, problem=found.problem(plan.problem), steps=steps, result_spec=result), found
