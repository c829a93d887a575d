"""Parts of mesh axes, as Shardy and HLO write them: ``"Y":(2)4`` is the part of size 4 below 2 parts of Y.

A mesh is refined so that each part is an axis of its own; what is read over the refined mesh is written in
parts of the given one again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from shardviz.errors import QuestionError
from shardviz.sharding import Mesh
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
