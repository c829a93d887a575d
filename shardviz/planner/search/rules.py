"""The shardings that a search looks at: for each kind of axis, the dimensions of an array that it may split,
and those of a statement's work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, permutations, product

from shardviz.planner.problem import Statement
from shardviz.planner.problem.roles import Roles
from shardviz.planner.search.axes import Kind, SearchAxis
from shardviz.planner.statements.work_split import WorkSplits, splittable_dims
from shardviz.planner.states.moves import Axes, State, state_of
from shardviz.sharding import Mesh, ShardedArray

_ORDER: dict[Kind, int] = {"sequence": 0, "data": 1, "expert": 2, "tensor": 3, "any": 3, "fsdp": 4}
"""Major first, where several axes split one dimension: what is gathered most often is the minor end."""


@dataclass(frozen=True)
class ShardingRules:
    """The rules on one mesh; axes of size 1 and those of pipelines split no array."""

    axes: tuple[SearchAxis, ...]
    mesh: Mesh
    roles: Roles

    @cached_property
    def wide(self) -> tuple[SearchAxis, ...]:
        """The axes that may split arrays, in the mesh's order."""
        return tuple(
            axis for axis in self.axes if axis.kind != "pipeline" and self.mesh.axis_size(axis.name) > 1
        )

    def states(self, array: ShardedArray, is_parameter: bool) -> tuple[State, ...]:
        """The shardings of an array that divide it evenly; the given one alone where it has a spec."""
        if array.spec is not None:
            return (state_of(array.spec, self.mesh),)
        places = range(array.rank)
        choices = [
            [
                None if dim is None else array.dims.index(dim)
                for dim in self._of_array(axis, array, is_parameter)
            ]
            for axis in self.wide
        ]
        found: list[State] = []
        for chosen in product(*choices):
            members = [
                tuple(axis.name for axis, place in zip(self.wide, chosen, strict=True) if place == own)
                for own in places
            ]
            if all(map(self._divides, array.shape, members)):
                for dims in product(*map(self._orders, members)):
                    found += [(dims, pending) for pending in self._pending(array, dims)]
        return tuple(dict.fromkeys(found))

    def _pending(self, array: ShardedArray, dims: tuple[Axes, ...]) -> Iterator[Axes]:
        """The axes over which an array may be a pending sum, which split no dimension: none of most
        arrays."""
        idle: list[str] = []
        if array.name in self.roles.addends:
            idle = [axis.name for axis in self.wide if not any(axis.name in axes for axes in dims)]
        return subsets(idle)

    def _of_array(self, axis: SearchAxis, array: ShardedArray, is_parameter: bool) -> list[str | None]:
        """The dimensions that an axis may split, None for none: every matrix of parameters is split by axes
        that are for that, where it divides."""
        dims = array.dims
        unique = [dim for dim in dict.fromkeys(dims) if dims.count(dim) == 1]
        if axis.kind == "any":
            return [None, *unique]
        if not is_parameter:
            return self._of_activation(axis.kind, dims)
        if axis.kind == "expert":
            return [dim for dim in unique if dim in self.roles.experts] or [None]
        if axis.kind not in ("fsdp", "tensor"):
            return [None]
        size = self.mesh.axis_size(axis.name)
        found: list[str | None] = [dim for dim in unique if array.shape[dims.index(dim)] % size == 0]
        return found if found and len(dims) > 1 else [None, *found]

    def _of_activation(self, kind: Kind, dims: Sequence[str]) -> list[str | None]:
        """Where an axis may split an activation, or the work on one, with these dimensions."""
        roles = self.roles
        unique = [dim for dim in dict.fromkeys(dims) if dims.count(dim) == 1]
        examples = [dim for dim in unique if dim in roles.examples][:1]
        own = [dim for dim in unique if dim not in roles.examples]
        if kind in ("data", "fsdp"):
            return [*examples] or [None]
        if kind == "tensor":
            return [None, *own]
        if kind == "sequence":
            return [None, *(dim for dim in own if dim in roles.positions)]
        return [*(dim for dim in own if dim in roles.experts), *examples] or [None]

    def splits(self, part: Statement) -> WorkSplits:
        """The ways in which devices may split a statement's work, each evenly."""
        dims = splittable_dims(part)
        places = [self._of_work(axis.kind, part, dims) for axis in self.wide]
        sizes = {axis.name: self.mesh.axis_size(axis.name) for axis in self.wide}
        return WorkSplits(part, sizes, places, orders=lambda axes, _: self._orders(axes))

    def _of_work(self, kind: Kind, part: Statement, dims: Sequence[str]) -> list[str | None]:
        """Where an axis may split the work on a statement: a tensor axis splits it along dimensions of the
        parameters, where there is a matrix of them."""
        if kind == "any" or (kind in ("data", "fsdp") and not self.roles.examples.intersection(dims)):
            return [None, *dims]
        if kind == "tensor":
            matrices = [
                each.dims
                for each in (*part.operands, part.result)
                if self.roles.leader(each.name) in self.roles.parameters and each.rank > 1
            ]
            if matrices:
                return [dim for dim in dims if any(dim in each for each in matrices)]
        return self._of_activation(kind, dims)

    def uneven(self, array: ShardedArray, is_parameter: bool) -> str:
        """The dimension that must be split and does not divide, with the axes that must split it."""
        forced: dict[str | None, list[str]] = {}
        for axis in self.wide:
            places = self._of_array(axis, array, is_parameter)
            if len(places) == 1:
                forced.setdefault(places[0], []).append(axis.name)
        for dim, size in zip(array.dims, array.shape, strict=True):
            if not self._divides(size, tuple(forced.get(dim, ()))):
                return self._not_divided(dim, size, array.name, forced[dim])
        return f"{array.name} does not divide over {self._sizes([axis.name for axis in self.wide])}"

    def uneven_spec(self, array: ShardedArray) -> str:
        """The same of an array with a spec; "" where that divides it."""
        if array.spec is not None:
            for dim, size, axes in zip(array.dims, array.shape, array.spec.dims, strict=True):
                if not self._divides(size, axes):
                    return self._not_divided(dim, size, array.name, axes)
        return ""

    def uneven_work(self, part: Statement) -> str:
        """Words on a statement whose work no axes of these sizes can split."""
        axes = self._sizes([axis.name for axis in self.wide])
        return f"the work on {part.result.name} does not divide over {axes}"

    def _not_divided(self, dim: str, size: int, name: str, axes: Sequence[str]) -> str:
        return f"{dim}={size:,} of {name} does not divide over {self._sizes(axes)}"

    def _sizes(self, axes: Sequence[str]) -> str:
        return ",".join(f"{axis}={self.mesh.axis_size(axis)}" for axis in axes)

    def _divides(self, size: int, axes: Axes) -> bool:
        return size % self.mesh.group_size(axes) == 0

    def _orders(self, axes: Axes) -> Iterable[Axes]:
        """The orders of axes that split one dimension: by their kinds; those of `any` in all orders."""
        kinds = {axis.name: axis.kind for axis in self.wide}
        if all(kinds[axis] == "any" for axis in axes):
            return permutations(axes)
        return [tuple(sorted(axes, key=lambda axis: _ORDER[kinds[axis]]))]


def subsets(axes: Sequence[str]) -> Iterator[Axes]:
    """All sets of axes, none first, in alphabetical order each."""
    return chain.from_iterable(combinations(sorted(axes), count) for count in range(len(axes) + 1))
