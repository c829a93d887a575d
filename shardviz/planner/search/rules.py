"""The shardings that a search looks at: for each kind of axis, the dimensions of an array that it may split, and
those of a statement's work.

The first dimension of the program's first argument is that of the examples. Arguments that have it are inputs;
all others are parameters. A dimension of an input that no parameter has, beside that of the examples, is one
of positions; one that a parameter, another operand and their result share is one of experts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import prod

from shardviz.planner.problem import Problem, Statement
from shardviz.planner.reshard import Axes, State, state_of
from shardviz.planner.search.axes import Kind, SearchAxis
from shardviz.sharding import Mesh, ShardedArray

_ORDER: dict[Kind, int] = {"sequence": 0, "data": 1, "expert": 2, "tensor": 3, "any": 3, "fsdp": 4}
"""Major first, where several axes split one dimension: what is gathered most often is the minor end."""
Assignment = dict[str, Axes]
"""Dimension → the axes that split a statement's work along it."""


@dataclass(frozen=True)
class Roles:
    """Dimensions and arrays of a program by what they are for.

    `inputs` and `parameters` are names of arguments. `follows` names for an array another one that is split
    alike, such as for a gradient the array that it is of.
    """

    examples: frozenset[str]
    positions: frozenset[str]
    experts: frozenset[str]
    inputs: frozenset[str]
    parameters: frozenset[str]
    follows: dict[str, str]

    def leader(self, name: str) -> str:
        """The array that decides how this one is split."""
        while name in self.follows:
            name = self.follows[name]
        return name


def roles_of(problem: Problem) -> Roles:
    """The roles by the rules of this module."""
    arguments = problem.arguments
    merged = {dim: factors for part in problem.parts for dim, factors in part.merged}
    first = arguments[0].dims[:1]
    examples = {*first, *(dim for dim, factors in merged.items() if factors[:1] == first)}
    inputs = frozenset(each.name for each in arguments if examples.intersection(each.dims))
    parameters = frozenset(each.name for each in arguments) - inputs
    of_parameters = {dim for each in arguments if each.name in parameters for dim in each.dims}
    positions = {dim for each in arguments if each.name in inputs for dim in each.dims[1:]} - of_parameters
    positions |= {dim for dim, factors in merged.items() if factors[0] in positions}
    experts = {
        dim
        for part in problem.parts
        if part.function == "multiply" and part.phase == "forward"
        for dim in part.einsum.result
        if all(dim in dims for dims in part.einsum.operands)
        and len(part.operands) > 1
        and any(each.name in parameters for each in part.operands)
    }
    made = {part.result.name: part.result for part in problem.parts}
    known = {each.name: each for each in arguments} | made
    follows = {
        name: name[1:]
        for name, array in made.items()
        if name.startswith("d") and name[1:] in known and known[name[1:]].dims == array.dims
    }
    return Roles(
        frozenset(examples), frozenset(positions - examples), frozenset(experts), inputs, parameters, follows
    )


@dataclass(frozen=True)
class ShardingRules:
    """The rules on one mesh; axes of size 1 and those of pipelines split no array."""

    axes: tuple[SearchAxis, ...]
    mesh: Mesh
    roles: Roles

    @property
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
            [None if dim is None else array.dims.index(dim) for dim in self._of_array(axis, array.dims, is_parameter)]
            for axis in self.wide
        ]
        found: list[State] = []
        for chosen in product(*choices):
            members = [
                tuple(axis for axis, place in zip(self.wide, chosen, strict=True) if place == own)
                for own in places
            ]
            if self._divide(array.shape, members):
                found += [(dims, ()) for dims in product(*map(_orders, members))]
        return tuple(dict.fromkeys(found))

    def _of_array(self, axis: SearchAxis, dims: Sequence[str], is_parameter: bool) -> list[str | None]:
        examples = [dim for dim in dims if dim in self.roles.examples][:1]
        unique = [dim for dim in dict.fromkeys(dims) if dims.count(dim) == 1]
        own = [dim for dim in unique if dim not in self.roles.examples]
        kind = axis.kind
        if kind == "any":
            return [None, *unique]
        if is_parameter:
            experts = [dim for dim in unique if dim in self.roles.experts]
            if kind == "expert":
                return [*experts[:1]] or [None]
            return [None, *unique] if kind in ("fsdp", "tensor") else [None]
        return self._of_activation(kind, examples, own)

    def _of_activation(self, kind: Kind, examples: list[str], own: list[str]) -> list[str | None]:
        """Where an axis may split an activation, or the work on one, with these dimensions."""
        if kind in ("data", "fsdp"):
            return [*examples] or [None]
        if kind == "tensor":
            return [None, *own]
        roles = self.roles
        if kind == "sequence":
            return [None, *(dim for dim in own if dim in roles.positions)]
        return [*(dim for dim in own if dim in roles.experts), *examples] or [None]

    def splits(self, part: Statement) -> Iterator[Assignment]:
        """The ways in which devices may split a statement's work, each evenly."""
        sizes = dim_sizes(part)
        followers = {dim for dim, _ in part.merged}
        twice = {dim for dims in part.einsum.operands for dim in dims if dims.count(dim) > 1}
        dims = [dim for dim in sizes if dim not in followers and dim not in part.whole and dim not in twice]
        examples = [dim for dim in dims if dim in self.roles.examples][:1]
        own = [dim for dim in dims if dim not in self.roles.examples]
        choices: list[list[str | None]] = []
        for axis in self.wide:
            if axis.kind == "any" or (axis.kind in ("data", "fsdp") and not examples):
                choices.append([None, *dims])
            else:
                choices.append(self._of_activation(axis.kind, examples, own))
        for chosen in product(*choices):
            members = [
                tuple(axis for axis, dim in zip(self.wide, chosen, strict=True) if dim == each)
                for each in dims
            ]
            if self._divide([sizes[dim] for dim in dims], members):
                for ordered in product(*map(_orders, members)):
                    yield {dim: axes for dim, axes in zip(dims, ordered, strict=True) if axes}

    def _divide(self, sizes: Sequence[int], members: Sequence[tuple[SearchAxis, ...]]) -> bool:
        return all(
            size % prod(self.mesh.axis_size(axis.name) for axis in axes) == 0
            for size, axes in zip(sizes, members, strict=True)
        )


def _orders(axes: tuple[SearchAxis, ...]) -> list[Axes]:
    """The orders of axes that split one dimension: by their kinds; axes of the kind `any` in all orders."""
    if len(axes) > 1 and all(axis.kind == "any" for axis in axes):
        return [tuple(axis.name for axis in each) for each in permutations(axes)]
    return [tuple(axis.name for axis in sorted(axes, key=lambda axis: _ORDER[axis.kind]))]


def dim_sizes(part: Statement) -> dict[str, int]:
    """Elements along each dimension of a statement."""
    return {
        dim: size
        for array in (*part.operands, part.result)
        for dim, size in zip(array.dims, array.shape, strict=True)
    }


def needed_axes(part: Statement, dims: Sequence[str], assignment: Assignment) -> tuple[Axes, ...]:
    """The axes that split each dimension of an array of a statement whose work is split so."""
    factors = dict(part.merged)

    def of(dim: str) -> Axes:
        if dim not in factors:
            return assignment.get(dim, ())
        return tuple(axis for factor in factors[dim] for axis in of(factor))

    return tuple(map(of, dims))
