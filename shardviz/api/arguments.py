"""Meshes, specs and shapes as Python code has them: text, ours, or JAX's, known by their attributes."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from shardviz.errors import QuestionError, plural, quote
from shardviz.hardware.machine import Machine
from shardviz.hardware.machine_file import named_machine, read_machine
from shardviz.notation.einsum import Einsum, parse_chain
from shardviz.notation.mesh import parse_mesh, with_device_order
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.sharding.mesh import writable_names

MeshLike: TypeAlias = "str | Mapping[str, int] | Mesh | Any"
"""``"X=2,Y=4"``, ``{"X": 2, "Y": 4}``, a `shardviz.sharding.Mesh`, JAX's `Mesh` or `AbstractMesh`."""


@dataclass(frozen=True)
class JaxMesh:
    """A `jax.sharding.Mesh` without JAX: names, sizes, and `devices` and their ids by row-major position.
    `slices` are the TPU slices that they are on, None where there are none. An abstract mesh has no devices,
    and `ids` is None. A name that no notation can write has _ in place of what offends: JAX takes any."""

    axis_names: tuple[str, ...]
    axis_sizes: tuple[int, ...]
    devices: tuple[Any, ...] | None

    @classmethod
    def of(cls, mesh: Any) -> JaxMesh | None:
        """The mesh that an object of JAX is; None when it is something else."""
        names, sizes = getattr(mesh, "axis_names", None), getattr(mesh, "axis_sizes", None)
        if not isinstance(names, tuple) or not isinstance(sizes, tuple):
            return None
        devices = None
        with suppress(AttributeError, ValueError):  # ValueError is what JAX's abstract meshes raise
            devices = tuple(mesh.devices.flat)
        return cls(writable_names(map(str, names)), tuple(map(int, sizes)), devices)

    @property
    def ids(self) -> tuple[int, ...] | None:
        return None if self.devices is None else tuple(int(device.id) for device in self.devices)

    @property
    def slices(self) -> tuple[int, ...] | None:
        indices = (getattr(device, "slice_index", None) for device in self.devices or ())
        return tuple(int(index) for index in indices if index is not None) or None

    def mesh(self) -> Mesh:
        """The same mesh, its devices numbered from 0 in the order of their ids, if that is not theirs."""
        number = {device: i for i, device in enumerate(sorted(self.ids or ()))}
        order = tuple(number[device] for device in self.ids or ())
        return Mesh(self.axis_names, self.axis_sizes, None if order == (*range(len(order)),) else order)


def as_mesh(mesh: MeshLike, device_order: str | Sequence[int] | None = None) -> Mesh:
    """The mesh, with its devices in `device_order` if one is given: ids by row-major position. A jax Mesh
    brings its own order; its devices are numbered from 0 in the order of their ids. Raises `QuestionError`
    for what is not a mesh, and for an order that does not fit it."""
    if isinstance(mesh, str):
        converted = parse_mesh(mesh)
    elif isinstance(mesh, Mapping):
        converted = parse_mesh(",".join(f"{axis}={size}" for axis, size in mesh.items()))
    elif isinstance(mesh, Mesh):
        converted = mesh
    else:
        foreign = JaxMesh.of(mesh)
        if foreign is None:
            hint = "give text such as 'X=2,Y=4', a shardviz Mesh or a jax Mesh"
            raise QuestionError(f"{quote(repr(mesh))} is not a mesh", hint)
        converted = foreign.mesh()
    if device_order is None:
        return converted
    text = device_order if isinstance(device_order, str) else ",".join(map(str, device_order))
    return with_device_order(converted, text)


MachineLike: TypeAlias = "str | PathLike[str] | Machine | None"
"""A name such as ``"v5p:4x4x8"``, a TOML file's path, a `Machine`; None for the first target's."""


def as_machine(machine: MachineLike | Any) -> Machine | None:
    """The machine; None where none is named. Raises `QuestionError` for what is not one."""
    if machine is None or isinstance(machine, Machine):
        return machine
    if isinstance(machine, str):
        return named_machine(machine)
    if isinstance(machine, PathLike):
        return read_machine(Path(machine))
    problem = f"{quote(repr(machine))} is not a machine"
    raise QuestionError(problem, "give text such as 'v5p:4x4x8', or a path of a TOML file")


SpecsLike: TypeAlias = "str | Sequence[Any] | None"
"""``"XY,Y_->X_"``, or for each operand, and for the result if it is wanted so, one of: text, a
`PartitionSpec`, a `NamedSharding`, a `jax.Array` or `jax.ShapeDtypeStruct` that has one, None to leave it
open."""
_SPECS_HINT = "give text such as 'XY,Y_->X_', or a P, a NamedSharding or an array for each operand"


def target_text(target: str | Sequence[str]) -> str:
    """The targets as after ``--target``. Raises `QuestionError` for neither text nor a list of texts."""
    if isinstance(target, str):
        return target
    if isinstance(target, Sequence) and all(isinstance(name, str) for name in target):
        return ",".join(target) or "none"
    problem = f"{quote(repr(target))} is not a target"
    raise QuestionError(problem, "give text such as 'cpu,v5e:2x4', or a list of such names")


def check_timeout(timeout: float) -> None:
    """Raise `QuestionError` for what is not a number of seconds."""
    if not isinstance(timeout, int | float) or not timeout > 0:
        raise QuestionError(f"timeout={timeout!r} is not a time", "give seconds, more than 0")


@dataclass(frozen=True)
class _Item:
    text: str
    mesh: Any = None
    shape: tuple[int, ...] | None = None
    dtype: str | None = None


def given_arrays(
    einsum: str, specs: SpecsLike | Any
) -> tuple[str | None, list[Any], dict[str, int], list[str]]:
    """The specs of an einsum's arrays as text, and the meshes, sizes by dimension and dtypes of the arrays.
    Raises `QuestionError` for others, too few and too many."""
    if specs is None or isinstance(specs, str):
        return specs, [], {}, []
    is_several = isinstance(specs, Sequence) and not _is_partition_spec(specs)
    items = [*map(_item, specs)] if is_several else [_item(specs)]
    parts = parse_chain(einsum)
    count = sum(len(part.operands) for part in parts) - len(parts) + 1
    if len(items) not in (count, count + 1):
        raise QuestionError(
            f"specs has {plural(len(items), 'entry', 'entries')}, but {quote(einsum)} has "
            f"{plural(count, 'operand')}",
            "give one for each operand, and one for the result if it is wanted so",
        )
    left = iter(items)
    texts = []
    for number, part in enumerate(parts):
        first = ["?"] if number else []
        texts.append(",".join([*first, *(next(left).text for _ in part.operands[len(first) :])]))
    text = "; ".join(texts) + (f"->{items[-1].text}" if len(items) > count else "")
    meshes = [item.mesh for item in items if item.mesh is not None]
    dtypes = dict.fromkeys(item.dtype for item in items if item.dtype is not None)
    return text, meshes, _sizes(einsum, parts, items), [*dtypes]


def merged_sizes(sizes: Mapping[str, int], others: Mapping[str, int]) -> dict[str, int]:
    """Both; `QuestionError` for a dimension that has two sizes."""
    for dim in sizes.keys() & others.keys():
        if sizes[dim] != others[dim]:
            problem = f"dimension {dim} has the size {others[dim]} and the size {sizes[dim]}"
            raise QuestionError(problem, "give it one size")
    return {**sizes, **others}


def _sizes(einsum: str, parts: Sequence[Einsum], items: Sequence[_Item]) -> dict[str, int]:
    """The sizes of the dimensions of arrays that have a shape."""
    if all(item.shape is None for item in items):
        return {}
    if "..." in einsum:
        raise QuestionError(f"the arrays' shapes do not say what ... is in {quote(einsum)}", "name it")
    operands = [dims for number, part in enumerate(parts) for dims in part.operands[min(number, 1) :]]
    sizes: dict[str, int] = {}
    for dims, item in zip([*operands, parts[-1].result], items, strict=False):
        if item.shape is None:
            continue
        if len(item.shape) != len(dims):
            raise QuestionError(
                f"an array of shape {item.shape} is given for the dimensions {', '.join(dims) or 'none'}",
                "give the arrays in the einsum's order",
            )
        sizes = merged_sizes(sizes, dict(zip(dims, map(int, item.shape), strict=True)))
    return sizes


def _item(value: Any) -> _Item:
    if value is None or isinstance(value, str):
        return _Item("?" if value is None else value)
    if _is_partition_spec(value):
        return _Item(_spec_text(value))
    sharding = getattr(value, "sharding", value)
    spec = getattr(sharding, "spec", None)
    if not _is_partition_spec(spec):
        raise QuestionError(f"{quote(repr(value))} has no sharding", _SPECS_HINT)
    if sharding is value:
        return _Item(_spec_text(spec), sharding.mesh)
    return _Item(_spec_text(spec), sharding.mesh, tuple(value.shape), str(value.dtype))


def _is_partition_spec(value: Any) -> bool:
    """Return whether a value is JAX's: its class was once a tuple's and has had two names."""
    return type(value).__name__ in ("PartitionSpec", "P")


def _spec_text(spec: Any) -> str:
    dims = []
    for entry in getattr(spec, "partitions", spec):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
        if not isinstance(axes, tuple):
            raise QuestionError(f"{quote(str(spec))} leaves a dimension open", "name its axes, or give None")
        dims.append(tuple(map(str, axes)))
    return str(PartitionSpec(tuple(dims), tuple(getattr(spec, "unreduced", None) or ())))


def with_shardings(shapes: Any, shardings: Any, mesh: Any = None) -> Any:
    """Return a tree of `jax.ShapeDtypeStruct`s, for `inspect` and for `shardviz program`.

    `shapes` is a tree of what has a shape and a dtype, such as `jax.eval_shape` returns; other leaves stay.
    `shardings` is a tree of JAX's shardings, or of `PartitionSpec`s on `mesh`, a mesh of JAX's. As in
    `jax.jit`'s `in_shardings`, one stands for all leaves below it, and None leaves them to the compiler.

    Raises `QuestionError` for a `PartitionSpec` without a mesh, and what JAX raises for trees that differ."""
    jax = sys.modules["jax"]
    spec = jax.sharding.PartitionSpec

    def placed(sharding: Any, below: Any) -> Any:
        if isinstance(sharding, spec):
            if mesh is None:
                raise QuestionError(f"{sharding} is on no mesh", "add mesh=mesh, the mesh of its axes")
            sharding = jax.sharding.NamedSharding(mesh, sharding)

        def of_leaf(leaf: Any) -> Any:
            is_array = hasattr(leaf, "shape") and hasattr(leaf, "dtype")
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding) if is_array else leaf

        return jax.tree.map(of_leaf, below)

    return jax.tree.map(
        placed, shardings, shapes, is_leaf=lambda each: each is None or isinstance(each, spec)
    )
