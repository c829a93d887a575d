"""The axes of the meshes that a search looks at, and for each kind of axis what it may split: `data` the
examples, `fsdp` the examples and the parameters (ZeRO), `tensor` the dimensions of parameters and what is
made with them (Megatron), `sequence` the positions of each example, `expert` the experts, `pipeline` the
layers, `any` every dimension of every array."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product
from typing import Literal, get_args

from shardviz.errors import NotationError, listed, quote
from shardviz.planner.problem import Statement
from shardviz.planner.problem.roles import Roles
from shardviz.planner.statements.work_split import WorkSplits, splittable_dims
from shardviz.planner.states.moves import Axes, State, state_of, subsets
from shardviz.sharding import Mesh, ShardedArray
from shardviz.sharding.mesh import is_axis_name

Kind = Literal["data", "fsdp", "tensor", "sequence", "expert", "pipeline", "any"]
KINDS: tuple[Kind, ...] = get_args(Kind)
COPYING = ("data", "fsdp", "expert")
"""Kinds of axes that split the examples."""
_OTHER_NAMES: dict[Kind, str] = {
    "data": "dp batch replica",
    "fsdp": "zero",
    "tensor": "tp mp model",
    "sequence": "sp cp context seq",
    "expert": "ep",
    "pipeline": "pp stage",
}
"""Names that people give such axes."""
MAX_AXES = 5
MAX_FREE = 4
"""Axes of the kind `any`: with more there are too many splits of a statement."""
MOST_ORDERED = 3
"""Axes of the kind `any` up to which those that split one dimension have every order."""


@dataclass(frozen=True)
class SearchAxis:
    """An axis of the meshes to look at; `size` is None where the search chooses it."""

    name: str
    kind: Kind
    size: int | None = None


def kind_of(name: str) -> Kind:
    """The kind that an axis of this name has where none is given; `any` for a name that says nothing."""
    word = name.lower()
    known = (kind for kind in KINDS if word in (kind, *_OTHER_NAMES.get(kind, "").split()))
    return next(known, "any")


def parse_axes(text: str) -> tuple[SearchAxis, ...]:
    """Read ``data,fsdp,tensor``, ``X,Y``, ``X=fsdp,Y=tensor``, ``data,tensor=8``. Raises `NotationError` for
    a name that is not an axis's, one that stands twice, and a size of 0."""
    axes: list[SearchAxis] = []
    for word, start in listed(text):
        span = (text, start, start + max(1, len(word)))
        name, equals, value = (part.strip() for part in word.partition("="))
        hint = "write names, with a kind or a size where needed: data,X=fsdp,tensor=8"
        if not is_axis_name(name):
            raise NotationError(f"{quote(name)} is not an axis name,", *span, hint)
        if any(axis.name == name for axis in axes):
            raise NotationError(f"the axis {name} is given twice,", *span, hint)
        kind, size = kind_of(name), None
        if value.isascii() and value.isdigit() and len(value) < 10 and int(value):
            size = int(value)
        elif equals:
            said = next((known for known in KINDS if known == kind_of(value) and value), None)
            if said is None or (said == "any" and value != "any"):
                problem = f"{quote(value)} is neither a kind of axis nor a size,"
                raise NotationError(problem, *span, f"the kinds are {', '.join(KINDS)}")
            kind = said
        axes.append(SearchAxis(name, kind, size))
    if len(axes) > MAX_AXES:
        problem = f"a search takes at most {MAX_AXES} axes, not {len(axes)},"
        raise NotationError(problem, text, 0, len(text), "use fewer")
    if sum(axis.kind == "any" for axis in axes) > MAX_FREE:
        hint = f"name some by kind: {', '.join(KINDS[:-1])}"
        raise NotationError(f"more than {MAX_FREE} axes have no kind,", text, 0, len(text), hint)
    if sum(axis.kind == "pipeline" for axis in axes) > 1:
        raise NotationError("several pipeline axes,", text, 0, len(text), "use one pipeline axis")
    return tuple(axes)


_ORDER: dict[Kind, int] = {"sequence": 0, "data": 1, "tensor": 2, "any": 2, "fsdp": 3, "expert": 4}
"""Major first, where several axes split one dimension: what is gathered or sent most often is the minor."""


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

    @property
    def is_free(self) -> bool:
        """Return whether an axis is of any kind. Then the states are those of meshes of all sizes."""
        return any(axis.kind == "any" for axis in self.wide)

    def states(self, array: ShardedArray, is_parameter: bool) -> tuple[State, ...]:
        """The shardings of an array that divide it evenly, or, if they are `is_free`, all; the given one
        alone where it has a spec."""
        if array.spec is not None:
            return (state_of(array.spec, self.mesh),)
        shardings: list[State] = []
        for chosen in product(*(self._of_array(axis, array, is_parameter) for axis in self.wide)):
            places = [None if dim is None else array.dims.index(dim) for dim in chosen]
            members = [
                tuple(axis.name for axis, index in zip(self.wide, places, strict=True) if index == own)
                for own in range(array.rank)
            ]
            if self.is_free or self.divides(array, members):
                used = {axis for own in members for axis in own}
                may_pend = array.name in self.roles.addends
                idle = sorted(axis.name for axis in self.wide if may_pend and axis.name not in used)
                shardings += product(product(*map(self._orders, members)), ((), *subsets(idle)))
        return tuple(dict.fromkeys(shardings))

    def _of_array(self, axis: SearchAxis, array: ShardedArray, is_parameter: bool) -> list[str | None]:
        """The dimensions that an axis may split, None for none: of parameters every matrix it divides, and an
        fsdp axis the width of those that have it."""
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
        dividing: list[str | None] = [dim for dim in unique if array.shape[dims.index(dim)] % size == 0]
        if axis.kind == "tensor" and array.name in self.roles.tables:
            # Rows of a vocabulary (Megatron), as those of the logits' matrix.
            dividing = [dim for dim in dividing if dim not in self.roles.width] or dividing
        if axis.kind == "fsdp":
            # A gather takes as long along any dimension: rules of logical axes have one for all matrices.
            dividing = [dim for dim in dividing if dim in self.roles.width] or dividing
        return dividing if dividing and len(dims) > 1 else [None, *dividing]

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
        """The ways in which devices may split a statement's work, with axes of any sizes; where dimensions
        stand for others, with those of this mesh."""
        dims = splittable_dims(part)
        places = [self._of_work(axis.kind, part, dims) for axis in self.wide]
        sizes = {axis.name: self.mesh.axis_size(axis.name) if part.merged else 1 for axis in self.wide}
        is_update = part.phase == "optimizer"
        return WorkSplits(part, sizes, places, orders=lambda axes, _: self._orders(axes, is_update))

    def _of_work(self, kind: Kind, part: Statement, dims: Sequence[str]) -> list[str | None]:
        """Where an axis may split the work on a statement, a tensor axis along dimensions of its matrices."""
        if kind == "any" or (kind in ("data", "fsdp") and not self.roles.examples.intersection(dims)):
            return [None, *dims]
        if kind == "tensor":
            matrices = [
                array.dims
                for array in part.arrays
                if self.roles.leader(array.name) in self.roles.parameters and array.rank > 1
            ]
            if matrices:
                return [dim for dim in dims if any(dim in matrix for matrix in matrices)]
        return self._of_activation(kind, dims)

    def uneven(self, array: ShardedArray, is_parameter: bool) -> str:
        """The dimension that its axes, given or forced, do not divide, and these, in words; "" for none."""
        forced: dict[str | None, list[str]] = {}
        for axis in self.wide:
            places = self._of_array(axis, array, is_parameter)
            if len(places) == 1:
                forced.setdefault(places[0], []).append(axis.name)
        split = [tuple(forced.get(dim, ())) for dim in array.dims] if array.spec is None else array.spec.dims
        for dim, size, axes in zip(array.dims, array.shape, split, strict=True):
            if not self._divides(size, axes):
                return self.not_divided(f"{dim}={size:,} of {array.name}", axes)
        return self.not_divided(array.name) if array.spec is None else ""

    def not_divided(self, what: str, axes: Axes | None = None) -> str:
        """Words on what does not divide over some axes, or over all."""
        names = [axis.name for axis in self.wide] if axes is None else axes
        sizes = ",".join(f"{axis}={self.mesh.axis_size(axis)}" for axis in names)
        return f"{what} is not divisible by {sizes}"

    def divides(self, array: ShardedArray, dims: Sequence[Axes]) -> bool:
        """Return whether axes that split its dimensions so divide an array evenly."""
        return all(map(self._divides, array.shape, dims))

    def _divides(self, size: int, axes: Axes) -> bool:
        return size % self.mesh.group_size(axes) == 0

    def _orders(self, axes: Axes, is_update: bool = False) -> Iterable[Axes]:
        """The orders of axes that split one dimension: by their kinds, or up to three `any` in all. What an
        update takes over axes of copies is gathered over these, the minor ones then."""
        kinds = {axis.name: axis.kind for axis in self.wide}
        if all(kinds[axis] == "any" for axis in axes):
            return permutations(axes) if [*kinds.values()].count("any") <= MOST_ORDERED else [axes]
        last = ("data",) if is_update else ()
        return [tuple(sorted(axes, key=lambda axis: (kinds[axis] in last, _ORDER[kinds[axis]])))]
