"""A mesh as Python code has one: text, shardviz's own, or JAX's, which is known by its attributes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from shardviz.errors import QuestionError, quote

if TYPE_CHECKING:
    from shardviz.sharding import Mesh

MeshLike: TypeAlias = "str | Mapping[str, int] | Mesh | Any"
"""``"X=2,Y=4"``, ``{"X": 2, "Y": 4}``, a `shardviz.sharding.Mesh`, JAX's `Mesh` or `AbstractMesh`."""
_HINT = "give text such as 'X=2,Y=4', a shardviz Mesh or a jax Mesh"


@dataclass(frozen=True)
class JaxMesh:
    """A `jax.sharding.Mesh` without JAX: names, sizes and device ids by row-major position.

    `slices` are the TPU slices that the devices are on, None where there are none. An abstract mesh has no
    devices, and `ids` is None. A name that no notation can write has _ in place of what offends: JAX takes
    any.
    """

    axis_names: tuple[str, ...]
    axis_sizes: tuple[int, ...]
    ids: tuple[int, ...] | None
    slices: tuple[int, ...] | None = None

    @classmethod
    def of(cls, mesh: Any) -> JaxMesh | None:
        """The mesh that an object of JAX is; None when it is something else."""
        names, sizes = getattr(mesh, "axis_names", None), getattr(mesh, "axis_sizes", None)
        if not isinstance(names, tuple) or not isinstance(sizes, tuple):
            return None
        try:
            devices = [*mesh.devices.flat]
        except (AttributeError, ValueError):  # ValueError is what JAX's abstract meshes raise
            return cls(_writable(map(str, names)), tuple(map(int, sizes)), None)
        slices = [int(s) for device in devices if (s := getattr(device, "slice_index", None)) is not None]
        return cls(
            _writable(map(str, names)),
            tuple(map(int, sizes)),
            tuple(int(device.id) for device in devices),
            tuple(slices) if slices else None,
        )

    @property
    def numbers(self) -> tuple[int, ...] | None:
        """The devices by position, numbered from 0 in the order of their ids; None where all is in order."""
        if self.ids is None:
            return None
        number = {device: i for i, device in enumerate(sorted(self.ids))}
        found = tuple(number[device] for device in self.ids)
        return None if found == tuple(range(len(found))) else found

    def mesh(self) -> Mesh:
        """The same mesh, its devices numbered from 0."""
        from shardviz.sharding import Mesh

        return Mesh(self.axis_names, self.axis_sizes, self.numbers)


def as_mesh(mesh: MeshLike, device_order: str | Sequence[int] | None = None) -> Mesh:
    """The mesh, with its devices in `device_order` if one is given: ids by row-major position.

    A jax Mesh brings its own order; its devices are numbered from 0 in the order of their ids. Raises
    `QuestionError` for what is no mesh, and for an order that does not fit it.
    """
    from shardviz.notation import parse_mesh
    from shardviz.notation.device_order import with_device_order
    from shardviz.sharding import Mesh

    if isinstance(mesh, str):
        found = parse_mesh(mesh)
    elif isinstance(mesh, Mapping):
        found = parse_mesh(",".join(f"{axis}={size}" for axis, size in mesh.items()))
    elif isinstance(mesh, Mesh):
        found = mesh
    else:
        foreign = JaxMesh.of(mesh)
        if foreign is None:
            raise QuestionError(f"{quote(repr(mesh))} is not a mesh", _HINT)
        found = foreign.mesh()
    if device_order is None:
        return found
    text = device_order if isinstance(device_order, str) else ",".join(map(str, device_order))
    return with_device_order(found, text)


def _writable(names: Iterable[str]) -> tuple[str, ...]:
    from shardviz.sharding.mesh import is_axis_name

    found: list[str] = []
    for name in names:
        name = re.sub(r"[^A-Za-z0-9_]", "_", name)
        if not is_axis_name(name):
            name = f"axis_{name.strip('_')}"
        while name in found:
            name += "_"
        found.append(name)
    return tuple(found)
