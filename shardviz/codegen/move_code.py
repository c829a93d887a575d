"""A move of an array between devices as a JAX expression inside `shard_map`.

Where a collective changes one dimension, JAX's parameters say it. Where it changes several at once the pieces
stand along a dimension of their own, in front, while they are sent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from shardviz.codegen.code_literals import axes_code, tuple_code

if TYPE_CHECKING:
    from shardviz.planner.plan import Step
    from shardviz.sharding import Mesh

Axes = tuple[str, ...]


@dataclass(frozen=True)
class MoveCode:
    """One step of a plan whose axes are whole axes of the mesh; `shape` is what a device holds before it."""

    step: Step
    mesh: Mesh
    shape: tuple[int, ...]

    @cached_property
    def removed(self) -> tuple[Axes, ...]:
        """The axes that leave the minor end of each dimension."""
        return tuple(_behind(old, new) for old, new in self._dims)

    @cached_property
    def appended(self) -> tuple[Axes, ...]:
        """The axes that come to the minor end of each dimension."""
        return tuple(_behind(new, old) for old, new in self._dims)

    @property
    def is_of_one_dim(self) -> bool:
        """JAX's own parameters say the collective, with its groups in the order of that dimension."""
        changed = [[axes for axes in side if axes] for side in (self.removed, self.appended)]
        return all(side in ([], [self.step.axes]) for side in changed)

    def code(self, name: str) -> str:
        """The expression of the array after the step; not for a psum, a pmax, a ppermute or local work."""
        match self.step.op:
            case "all_gather":
                return self._collected(f"jax.lax.all_gather({name}, {self._axes})", self.shape)
            case "psum_scatter":
                return f"jax.lax.psum_scatter({self._dealt(name)}, {self._axes})"
            case "all_to_all":
                sent = f"jax.lax.all_to_all({self._dealt(name)}, {self._axes}, 0, 0, tiled=True)"
                return self._collected(sent, self._pieces)
            case "mask":
                return f"jnp.where(jax.lax.axis_index({self._axes}) == 0, {name}, 0)"
            case _:
                return self._cut(name)

    @property
    def _dims(self) -> list[tuple[Axes, Axes]]:
        return list(zip(self.step.from_spec.dims, self.step.to_spec.dims, strict=True))

    @property
    def _axes(self) -> str:
        return axes_code(self.step.axes)

    @property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(map(self.mesh.axis_size, self.step.axes))

    @property
    def _pieces(self) -> tuple[int, ...]:
        """The shape of what one device sends to another."""
        pairs = zip(self.shape, self.appended, strict=True)
        return tuple(size // self.mesh.group_size(axes) for size, axes in pairs)

    def _dealt(self, name: str) -> str:
        """The pieces for each device of the group, along a dimension in front."""
        cut: list[int] = []
        places: dict[str, int] = {}
        rest = []
        for axes, size in zip(self.appended, self._pieces, strict=True):
            for axis in axes:
                places[axis] = len(cut)
                cut.append(self.mesh.axis_size(axis))
            rest.append(len(cut))
            cut.append(size)
        order = (*(places[axis] for axis in self.step.axes), *rest)
        return rearranged_code(name, cut, order, (math.prod(self._sizes), *self._pieces))

    def _collected(self, name: str, pieces: Sequence[int]) -> str:
        """The pieces of all devices of the group, side by side in their dimensions."""
        count = len(self.step.axes)
        order: list[int] = []
        shape = []
        for dim, (axes, size) in enumerate(zip(self.removed, pieces, strict=True)):
            order += [*(self.step.axes.index(axis) for axis in axes), count + dim]
            shape.append(size * self.mesh.group_size(axes))
        return rearranged_code(name, (*self._sizes, *pieces), order, shape)

    def _cut(self, name: str) -> str:
        """A device's own part along each dimension that is cut."""
        for dim, (axes, size) in enumerate(zip(self.appended, self._pieces, strict=True)):
            if axes:
                start = f"jax.lax.axis_index({axes_code(axes)}) * {size}"
                name = f"jax.lax.dynamic_slice_in_dim({name}, {start}, {size}, axis={dim})"
        return name


def _behind(longer: Axes, shorter: Axes) -> Axes:
    """The axes at the minor end of a dimension that another has not."""
    return longer[len(shorter) :]


def rearranged_code(name: str, cut: Sequence[int], order: Sequence[int], shape: Sequence[int]) -> str:
    """An array as a grid of so many dimensions, these in another order, joined to a shape."""
    if tuple(cut) == tuple(shape):
        return name
    grid = f"jnp.reshape({name}, {tuple_code(cut)})"
    if list(order) != sorted(order):
        grid = f"jnp.transpose({grid}, {tuple_code(order)})"
    return f"jnp.reshape({grid}, {tuple_code(shape)})"
