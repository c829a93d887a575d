"""The sharding that a notation states of one array, and the context that it is read in: a mesh, which may be
refined.

Shardy and HLO name parts of mesh axes: ``"Y":(2)4`` is the part of size 4 below 2 parts of Y. A mesh is
refined so that each part is an axis of its own; what is read over it is written in parts of the given mesh
again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise, product

from shardviz.errors import QuestionError, plural
from shardviz.notation.scanner import Scanner
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.sharding.mesh import MAX_DEVICES

_PART = re.compile(r"\b(\w++)[\"']?\s*+:\s*+\(\s*+(\d{1,12})\s*+\)\s*+(\d{1,12})")


@dataclass(frozen=True)
class AxisPart:
    """The part of `size` of a mesh axis, below `above` parts; `is_whole` where it is all of the axis."""

    axis: str
    above: int
    size: int
    is_whole: bool = False

    def __str__(self) -> str:
        return self.axis if self.is_whole else f"{self.axis}:({self.above}){self.size}"


@dataclass(frozen=True)
class RefinedMesh:
    """`mesh` has an axis for each part of an axis of the `given` one; `parts` says by name which it is."""

    given: Mesh
    mesh: Mesh
    parts: Mapping[str, AxisPart]

    def axes_of(self, axis: str, above: int = 1, size: int | None = None) -> tuple[str, ...]:
        """The axes of `mesh` that make a part of a given axis, or all of it, major first; none where it has
        no such part."""
        below = self.given.axis_size(axis) if size is None else above * size
        found = [name for name, own in self.parts.items() if own.axis == axis and above <= own.above < below]
        is_made = math.prod(self.parts[name].size for name in found) * above == below
        return tuple(found) if is_made else ()

    def joined(self, axes: Iterable[str]) -> list[AxisPart]:
        """Axes of `mesh` as axes of the given one and parts of them, neighbours joined."""
        found: list[AxisPart] = []
        for name in axes:
            part = self.parts[name]
            if found and found[-1].axis == part.axis and found[-1].above * found[-1].size == part.above:
                major = found.pop()
                part = AxisPart(part.axis, major.above, major.size * part.size)
            found.append(replace(part, is_whole=part.size == self.given.axis_size(part.axis)))
        return found

    def whole_axes(self, axes: Iterable[str], notation: str) -> tuple[str, ...]:
        """Axes of the given mesh. Raises `QuestionError` where a part of one stands alone."""
        found = self.joined(axes)
        for part in found:
            if not part.is_whole:
                raise QuestionError(
                    f"{notation} text names whole axes, and {part} is a part of one",
                    "make two axes of it in the mesh",
                )
        return tuple(part.axis for part in found)


def refined(mesh: Mesh, text: str) -> RefinedMesh | None:
    """The mesh with an axis for each part that the text names; None where it names none.

    A part that an axis cannot have makes none: its reader refuses it.
    """
    cuts: dict[str, set[int]] = {}
    for axis, above, size in _PART.findall(text):
        if axis in mesh.axis_names and 0 < int(above) * int(size) <= MAX_DEVICES:
            cuts.setdefault(axis, set()).update((int(above), int(above) * int(size)))
    if not cuts:
        return None
    sizes: dict[str, int] = {}
    parts: dict[str, AxisPart] = {}
    for axis, size in mesh.shape.items():
        bounds = sorted({1, size, *cuts.get(axis, ())})
        is_cut = len(bounds) > 2 and bounds[-1] == size
        if not is_cut or any(below % above for above, below in pairwise(bounds)):
            bounds = [1, size]
        for above, below in pairwise(bounds):
            name = axis if below // above == size else f"{axis}_{above}"
            while name in sizes or (name != axis and name in mesh.axis_names):
                name += "_"
            sizes[name] = below // above
            parts[name] = AxisPart(axis, above, below // above, below // above == size)
    return RefinedMesh(mesh, Mesh(tuple(sizes), tuple(sizes.values()), mesh.device_order), parts)


@dataclass(frozen=True)
class Context:
    """The knowledge of a reader beside the text.

    `mesh` is the mesh whose axes the text names or whose devices it numbers; `rank` the number of
    dimensions, for notations that do not say it; `sizes` are elements by dimension, for those that
    show them. `refined` says what the axes of `mesh` are where they are parts of those that the text names.
    """

    mesh: Mesh | None = None
    rank: int | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    refined: RefinedMesh | None = None

    @property
    def axis_names(self) -> tuple[str, ...] | None:
        return None if self.mesh is None else self.mesh.axis_names

    @property
    def given_mesh(self) -> Mesh | None:
        """The mesh as it was given, none of its axes in parts."""
        return self.mesh if self.refined is None else self.refined.given

    def known_mesh(self, what: str) -> Mesh:
        """The mesh; `QuestionError` when there is none."""
        if self.mesh is None:
            raise QuestionError(
                f"{what} numbers devices, and no mesh is given", "give the mesh, as in X=2,Y=4"
            )
        return self.mesh

    def check_rank(self, scanner: Scanner, rank: int) -> None:
        """Raise `NotationError` when the text has `rank` dimensions and the array another number."""
        if self.rank is not None and rank != self.rank:
            problem = f"{plural(rank, 'dimension')}, but the array has {self.rank},"
            hint = "write one entry for each dimension"
            scanner.fail(problem, 0, len(scanner.text), hint)

    def known_rank(self, scanner: Scanner) -> int:
        """The rank, for text that does not say it; `NotationError` when it is not known."""
        if self.rank is None:
            hint = "say how many dimensions the array has, as in --rank 2"
            scanner.fail("the number of dimensions is not said", 0, len(scanner.text), hint)
        return self.rank

    def named(self, axes: Sequence[str]) -> tuple[str, ...]:
        """Axes of `mesh` as the text names them: whole, or parts of axes."""
        return tuple(axes) if self.refined is None else tuple(map(str, self.refined.joined(axes)))

    def mesh_order(self, axes: Sequence[str]) -> tuple[str, ...]:
        """`axes` in the order in which the mesh has them, as JAX prints sets of axes."""
        known = self.axis_names or ()
        return (*(axis for axis in known if axis in axes), *(axis for axis in axes if axis not in known))


@dataclass(frozen=True)
class Reading:
    """One array's sharding, and all else that the text says of the array; None where it says nothing.

    `open_dims` are dimensions that the compiler may split further, `manual` the axes along which the program
    moves data itself, so that the layout is that of one device's piece along them. `notes` are sentences
    about what the text says beyond the layout.
    """

    spec: PartitionSpec
    dims: tuple[str, ...] | None = None
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    name: str | None = None
    open_dims: tuple[int, ...] = ()
    manual: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def dim_names(self) -> tuple[str, ...]:
        """The dimensions' names; I, J, K, … where the text gives none."""
        return placeholder_dims(self.spec.rank) if self.dims is None else self.dims


def placeholder_dims(rank: int, taken: Sequence[str] = ()) -> tuple[str, ...]:
    """Names for dimensions that have none: I, J, …, Z, A, …, H, then II, IJ, …, but none of `taken`."""
    letters = "IJKLMNOPQRSTUVWXYZABCDEFGH"
    names = chain(letters, map("".join, product(letters, repeat=2)))
    free = (name for name in names if name not in taken)
    return tuple(next(free) for _ in range(rank))
