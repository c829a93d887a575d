"""Names, specs, dtypes and meshes as JAX code writes them, with an axis for every part of one; lines that all
programs have."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count, groupby
from string import Template
from typing import TYPE_CHECKING, Any

from shardviz.errors import plural
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray
from shardviz.sharding.array import WIDE
from shardviz.sharding.axis_parts import axis_part, finest_parts, in_parts, whole_axis
from shardviz.text_tables import sections_beside

if TYPE_CHECKING:
    from shardviz.collectives.operations.several_dims import Rearrangement
    from shardviz.planner.plan import Plan
    from shardviz.planner.problem import Problem

WIDTH = 92
"""Columns of comments, and of lines that need not be longer."""
_TAKEN = (
    "jax jnp np re os P AxisType NamedSharding AbstractMesh PassManager topologies mesh_utils GPU Exception "
    "SystemExit print sorted str mesh order devices placed place program compiled jitted lowered module "
    "passes line found collective shard error sent rng ones shape_of mapped array layer own forward backward "
    "on_one_device same numbers expected largest least"
)


def program_text(title: str, parts: Iterable[Iterable[str]], environment: Iterable[str] = ()) -> str:
    """A program of a docstring, the imports that its parts need, and these parts, lists of lines; those of
    `environment` come before JAX is imported."""
    body, first = lines_text(parts), [*environment]

    def used(names: Iterable[str], suffix: str = "") -> list[str]:
        text = lines_text([first]) + body
        return [name for name in names if re.search(rf"\b{name}{suffix}", text)]

    standard = [f"import {name}" for name in used(("os", "re"), r"\.")]
    jax = [f"import {_MODULES[name]}" for name in used(_MODULES, r"\.")]
    for module, every in _NAMES.items():
        if names := used(every):
            jax.append(f"from {module} import {', '.join(names)}")
        if module == "jax.sharding":
            jax.append("from jax.sharding import PartitionSpec as P")
    head = [f'"""{title}"""', "", *standard, *[""] * bool(standard), *first, *jax, ""]
    return lines_text([head]) + body


_MODULES = {"jax": "jax", "jnp": "jax.numpy as jnp", "np": "numpy as np"}
_NAMES = {
    "jax.experimental": ("mesh_utils", "topologies"),
    "jax.sharding": ("AbstractMesh", "AxisType", "NamedSharding"),
    "jaxlib.mlir.passmanager": ("PassManager",),
}


def text_lines(name: str, **values: object) -> list[str]:
    """The lines of a text of programs, with values in the places of ``$name``; its further lines are
    as far to the right as its first."""
    lines: list[str] = []
    for line in sections_beside(__file__, "texts.txt")[name].split("\n"):
        margin = line[: len(line) - len(line.lstrip())]
        lines += Template(line).substitute(values).replace("\n", f"\n{margin}").split("\n")
    return lines


def lines_text(parts: Iterable[Iterable[str]]) -> str:
    return "".join(f"{line}\n" for lines in parts for line in lines)


def spec_code(spec: PartitionSpec) -> str:
    return str(spec).replace("'", '"')


def names_code(names: Iterable[str]) -> dict[str, str]:
    """A Python name for each array: its own where that is one and free."""
    identifiers: dict[str, str] = {}
    taken = _TAKEN.split()
    for name in names:
        spelled = re.sub(r"\W", "_", name)
        if not spelled.isidentifier():
            spelled = f"array_{spelled}"
        while keyword.iskeyword(spelled) or spelled in taken or spelled in identifiers.values():
            spelled += "_"
        identifiers[name] = spelled
    return identifiers


def tuple_code(items: Iterable[object]) -> str:
    """``(2,)``, ``("X", "Y")``: a tuple with double quotes."""
    return str(tuple(items)).replace("'", '"')


def axes_code(axes: tuple[str, ...]) -> str:
    """``"X"``, ``("X", "Y")``: the axes of a collective."""
    return f'"{axes[0]}"' if len(axes) == 1 else tuple_code(axes)


def parameters_code(parameters: Mapping[str, Any], rank: int) -> str:
    """``, axis=0, tiled=True``: the parameters of a collective on an array of so many dimensions."""
    written = []
    for name, value in parameters.items():
        if name in ("scatter_dimension", "split_axis", "concat_axis"):
            # JAX before 0.12 takes no negative ones here.
            value %= max(1, rank)
        written.append(f", {name}={list(value) if isinstance(value, tuple) else value}")
    return "".join(written)


def rearranged_code(name: str, into: Rearrangement) -> str:
    """An array as a grid, its dimensions in another order, joined to a shape."""
    if into.grid == into.shape:
        return name
    grid = f"jnp.reshape({name}, {tuple_code(into.grid)})"
    if list(into.order) != sorted(into.order):
        grid = f"jnp.transpose({grid}, {tuple_code(into.order)})"
    return f"jnp.reshape({grid}, {tuple_code(into.shape)})"


def shard_map_spec(spec: PartitionSpec) -> str:
    """A spec for `shard_map`: the addends of a pending sum are a dimension of their own, in front."""
    return spec_code(PartitionSpec((spec.unreduced, *spec.dims)) if spec.unreduced else spec)


def stacked_shape(shape: tuple[int, ...], spec: PartitionSpec, mesh: Mesh) -> tuple[int, ...]:
    """The shape of an array by its `shard_map_spec`."""
    return (mesh.group_size(spec.unreduced), *shape) if spec.unreduced else shape


def wide_code(dtype: str) -> list[str]:
    return ['jax.config.update("jax_enable_x64", True)'] if dtype in WIDE else []


def devices_code(count: int, dtype: str) -> list[str]:
    devices = plural(count, "simulated device")
    return [*text_lines("simulated", devices=devices, count=count), *wide_code(dtype)]


def mesh_code(mesh: Mesh, axis_types: str, devices: str = "") -> list[str]:
    """Lines that make the mesh of the list called `devices`, or of those that JAX finds."""
    sizes, names = tuple_code(mesh.axis_sizes), tuple_code(mesh.axis_names)
    if mesh.device_order is None:
        given = f", devices={devices}" if devices else ""
        return [f"mesh = jax.make_mesh({sizes}, {names}, {types_code(mesh, axis_types)}{given})"]
    return [
        f"order = {list(mesh.device_order)}",
        f"placed = np.array({devices or 'jax.devices()'})[order].reshape({sizes})",
        placed_mesh_code(mesh, axis_types),
    ]


def placed_mesh_code(mesh: Mesh, axis_types: str) -> str:
    return f"mesh = jax.sharding.Mesh(placed, {tuple_code(mesh.axis_names)}, {types_code(mesh, axis_types)})"


def types_code(mesh: Mesh, axis_types: str) -> str:
    return f"axis_types=(AxisType.{axis_types},) * {len(mesh.axis_names)}"


def mapped_code(function: str, into: str, out: str) -> list[str]:
    """The lines that map a function over shards; `into` and `out` are the specs of arguments and results."""
    given = [function, "mesh=mesh", f"in_specs={into}", f"out_specs={out}", "check_vma=False"]
    line = f"mapped = jax.shard_map({', '.join(given)})"
    if len(line) <= WIDTH:
        return [line]
    inner = f"    {', '.join(given)}"
    inside = [inner] if len(inner) <= WIDTH else [f"    {each}," for each in given]
    return ["mapped = jax.shard_map(", *inside, ")"]


@dataclass(frozen=True)
class PartAxes:
    """A mesh with an axis for every part of its axes that some names mean, the devices in the same order.
    `names` has the axis that stands for each of the finest parts: X1 and X2 for those of X."""

    mesh: Mesh
    names: Mapping[str, str]

    @classmethod
    def of(cls, mesh: Mesh, used: Iterable[str]) -> PartAxes:
        taken = set(mesh.axis_names)
        names: dict[str, str] = {}
        for _, parts in groupby(finest_parts(mesh.shape, used), whole_axis):
            for number, part in enumerate(parts, 1):
                if axis_part(part) is None:
                    names[part] = part
                    continue
                free = (f"{whole_axis(part)}{suffix}" for suffix in count(number))
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
        return [f"# JAX has no sub-axes: {'; '.join(said)}."] if said else []

    def axes(self, axes: Iterable[str]) -> tuple[str, ...]:
        return tuple(self.names[part] for part in in_parts(axes, self.names))

    def spec(self, spec: PartitionSpec) -> PartitionSpec:
        return PartitionSpec(tuple(map(self.axes, spec.dims)), self.axes(spec.unreduced))

    def problem(self, problem: Problem) -> Problem:
        on_parts = problem.with_arrays(
            lambda array: array if array.spec is None else array.with_spec(self.spec(array.spec))
        )
        return replace(on_parts, mesh=self.mesh)


def axes_in(arrays: Iterable[ShardedArray]) -> set[str]:
    """The axes and parts that the specs of some arrays name."""
    specs = [array.spec for array in arrays if array.spec is not None]
    return {axis for spec in specs for axis in (*spec.axes, *spec.unreduced)}


def plan_on_parts(plan: Plan) -> tuple[Plan, PartAxes]:
    """The plan on a mesh whose axes are the parts that its steps name."""
    used = axes_in(plan.problem.arrays)
    for step in plan.steps:
        specs = (step.from_spec, step.to_spec, *step.operand_specs)
        used.update(step.axes, *((*spec.axes, *spec.unreduced) for spec in specs))
    axes = PartAxes.of(plan.problem.mesh, used)
    steps = tuple(
        replace(
            step,
            axes=axes.axes(step.axes),
            from_spec=axes.spec(step.from_spec),
            to_spec=axes.spec(step.to_spec),
            operand_specs=tuple(map(axes.spec, step.operand_specs)),
        )
        for step in plan.steps
    )
    result = axes.spec(plan.result_spec)
    return replace(plan, problem=axes.problem(plan.problem), steps=steps, result_spec=result), axes
