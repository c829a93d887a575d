"""Names, specs, dtypes and meshes as JAX code writes them, and lines that all programs have."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from shardviz.errors import plural
from shardviz.sharding import Mesh, PartitionSpec

if TYPE_CHECKING:
    from shardviz.collectives.operations.several_dims import Rearrangement

WIDTH = 92
"""Columns of comments, and of lines that need not be longer."""
WIDE = frozenset(("s64", "u64", "f64", "c128"))
"""Types that JAX has only with 64-bit types enabled."""
_TAKEN = (
    "jax jnp np re os P AxisType NamedSharding AbstractMesh PassManager topologies mesh_utils GPU Exception "
    "SystemExit print sorted str mesh order devices placed place program compiled jitted lowered module "
    "passes line found collective shard error sent rng ones shape_of mapped array layer own forward backward "
    "on_one_device same numbers expected largest least"
)
"""Names that the programs themselves use."""


def program_text(parts: Iterable[Iterable[str]]) -> str:
    """The text of a program whose parts are lists of lines."""
    return "".join(f"{line}\n" for lines in parts for line in lines)


def spec_code(spec: PartitionSpec) -> str:
    """``P("X", None)``."""
    return str(spec).replace("'", '"')


def names_code(names: Iterable[str]) -> dict[str, str]:
    """A Python name for each array: its own where that is one and free."""
    found: dict[str, str] = {}
    taken = _TAKEN.split()
    for name in names:
        spelled = re.sub(r"\W", "_", name)
        if not spelled.isidentifier():
            spelled = f"array_{spelled}"
        while keyword.iskeyword(spelled) or spelled in taken or spelled in found.values():
            spelled += "_"
        found[name] = spelled
    return found


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
    """The line that enables 64-bit types, where the dtype is one."""
    return ['jax.config.update("jax_enable_x64", True)'] if dtype in WIDE else []


def devices_code(count: int, dtype: str) -> list[str]:
    """Lines that set up so many simulated devices."""
    return [
        f"# {plural(count, 'simulated device')}. Where there are real ones, leave these lines out.",
        'jax.config.update("jax_platforms", "cpu")',
        f'jax.config.update("jax_num_cpu_devices", {count})',
        *wide_code(dtype),
    ]


def mesh_code(mesh: Mesh, axis_types: str, devices: str = "") -> list[str]:
    """Lines that make the mesh; `axis_types` is "Auto" or "Explicit", `devices` the name of a list of them,
    or empty for those that JAX finds."""
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
    """The line that makes a mesh of the devices as `placed` has them."""
    return f"mesh = jax.sharding.Mesh(placed, {tuple_code(mesh.axis_names)}, {types_code(mesh, axis_types)})"


def types_code(mesh: Mesh, axis_types: str) -> str:
    """The same type for all axes of a mesh."""
    return f"axis_types=(AxisType.{axis_types},) * {len(mesh.axis_names)}"


_COLLECTIVES = "all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute"


def printed_code() -> list[str]:
    """Lines that print every collective of `compiled`, as the compiler writes it."""
    return [
        f'collective = r" ({_COLLECTIVES})(-start)?\\("',
        "sent = [line for line in compiled.as_text().splitlines() if re.search(collective, line)]",
        'print("collectives:" if sent else "collectives: none, nothing is sent")',
        "for line in sent:",
        '    print(line.partition(", metadata=")[0].strip())',
    ]
