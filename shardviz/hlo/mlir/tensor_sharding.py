"""Shardings as Shardy prints them: ``<@mesh, [{"X", "Y":(1)2}, {?}p1], unreduced={"Z"}>``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shardviz.errors import NotationError
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.sharding.mesh import MAX_DEVICES, is_axis_name

AxisSizes = dict[str, int]


@dataclass(frozen=True)
class AxisRef:
    """A mesh axis, or the part of it of `size` below `above` parts: Shardy's ``"Y":(above)size``."""

    name: str
    above: int
    size: int
    whole: bool

    def __str__(self) -> str:
        return self.name if self.whole else f"{self.name}:({self.above}){self.size}"


Dims = tuple[tuple[AxisRef, ...], ...]


@dataclass(frozen=True)
class TensorSharding:
    """The axes on each dimension, major first, and those over which the tensor is a pending sum."""

    dims: Dims
    unreduced: tuple[AxisRef, ...] = ()

    def without(self, names: Sequence[str]) -> TensorSharding:
        """As seen inside a manual computation over the axes `names`."""
        return TensorSharding(
            tuple(tuple(axis for axis in dim if axis.name not in names) for dim in self.dims)
        )

    def spec(self) -> PartitionSpec | None:
        """The same as a `PartitionSpec`; None where it takes parts of axes."""
        axes = [axis for dim in (*self.dims, self.unreduced) for axis in dim]
        if not all(axis.whole for axis in axes) or len({axis.name for axis in axes}) < len(axes):
            return None
        return PartitionSpec(
            tuple(tuple(axis.name for axis in dim) for dim in self.dims),
            tuple(axis.name for axis in self.unreduced),
        )


def parts(axes: Sequence[AxisRef]) -> int:
    """Into how many parts the axes cut a dimension."""
    return math.prod(axis.size for axis in axes)


_DECLARATION = re.compile(
    r'sdy\.mesh @(?:"([^"]*)"|([\w.$-]+)) = <\[([^\]]*)\](?:, device_ids=\[([\d, ]*)\])?'
)
_LITERAL = re.compile(r"#sdy\.mesh<\[([^\]]*)\](?:, device_ids=\[([\d, ]*)\])?>")
_NUMBER = re.compile(r"\d{1,15}")
_DECLARED_AXIS = re.compile(r'"([^"]*)"\s*=\s*(\d{1,12})')
_MESH_REF = re.compile(r'\s*<(?:@"([^"]*)"|@([\w.$-]+)|mesh<\[([^\]]*)\][^>]*>)\s*,\s*')
_AXES = re.compile(r"\s*\{([^{}]*)\}(?:p\d+)?")
_AXIS = re.compile(r'\s*"([^"]*)"(?:\s*:\s*\((\d{1,12})\)\s*(\d{1,12}))?\s*,?')
_EXTRA = re.compile(r"\s*,\s*(replicated|unreduced)=\{([^{}]*)\}")
_COMMA = re.compile(r"\s*,")


class Meshes:
    """The meshes that a module declares, by name."""

    def __init__(self, text: str) -> None:
        self.sizes: dict[str, AxisSizes] = {}
        self.device_orders: dict[str, tuple[int, ...] | None] = {}
        for match in _DECLARATION.finditer(text):
            name = match[1] or match[2] or ""
            self.sizes[name] = _axis_sizes(match[3])
            self.device_orders[name] = tuple(map(int, _NUMBER.findall(match[4] or ""))) or None

    def mesh(self) -> Mesh | None:
        """The first mesh as an object of its own, where its axes have ordinary names."""
        for name, sizes in self.sizes.items():
            if sizes and all(map(is_axis_name, sizes)):
                return Mesh(tuple(sizes), tuple(sizes.values()), self.device_orders[name])
        return None


def mesh_literals(header: str) -> list[tuple[AxisSizes, tuple[int, ...] | None]]:
    """The meshes in an HLO module's header, ``xla.sdy.meshes={mesh = #sdy.mesh<["X"=2, "Y"=4]>}``.

    With each its ``device_ids`` in row-major order, None where it has none.
    """
    return [
        (_axis_sizes(match[1]), tuple(map(int, _NUMBER.findall(match[2] or ""))) or None)
        for match in _LITERAL.finditer(header)
    ]


def _axis_sizes(body: str) -> AxisSizes:
    sizes = {match[1]: int(match[2]) for match in _DECLARED_AXIS.finditer(body)}
    if 0 in sizes.values() or math.prod(sizes.values()) > MAX_DEVICES:
        raise NotationError("a mesh of 1 to 2**40 devices was expected", body, 0, len(body))
    return sizes


def parse_sharding(text: str, start: int, meshes: Meshes) -> tuple[TensorSharding, AxisSizes, int]:
    """The sharding at `start`, the axis sizes of its mesh, and where it ends.

    Raises `NotationError` when there is none, or it names a mesh or an axis that is not declared.
    """
    ref = _MESH_REF.match(text, start)
    if ref is None:
        raise NotationError("this is not a sharding", text, start, min(len(text), start + 20))
    if ref[3] is not None:
        sizes = _axis_sizes(ref[3])
    else:
        declared = meshes.sizes.get(ref[1] or ref[2])
        if declared is None:
            raise NotationError(f"the mesh {ref[1] or ref[2]} is not declared", text, ref.start(), ref.end())
        sizes = declared
    dims, position = parse_dims(text, ref.end(), sizes)
    unreduced: tuple[AxisRef, ...] = ()
    while extra := _EXTRA.match(text, position):
        if extra[1] == "unreduced":
            unreduced = parse_axes(extra[2], sizes)
        position = extra.end()
    return TensorSharding(dims, unreduced), sizes, position + text.startswith(">", position)


def parse_sharding_list(text: str, start: int, meshes: Meshes) -> Iterator[tuple[TensorSharding, AxisSizes]]:
    """The shardings of a list ``[<...>, <...>]``, whose bracket is at `start`."""
    position = start + text.startswith("[", start)
    while text.startswith("<", position):
        sharding, sizes, position = parse_sharding(text, position, meshes)
        yield sharding, sizes
        if (comma := _COMMA.match(text, position)) is None:
            return
        position = comma.end() + text.startswith(" ", comma.end())


def parse_dims(text: str, start: int, sizes: AxisSizes) -> tuple[Dims, int]:
    """``[{"X"}, {}]``: the axes of each dimension, and where the list ends."""
    if not text.startswith("[", start):
        raise NotationError("a list of axes was expected", text, start, min(len(text), start + 20))
    position, dims = start + 1, []
    while match := _AXES.match(text, position):
        dims.append(parse_axes(match[1], sizes))
        position = match.end()
        if comma := _COMMA.match(text, position):
            position = comma.end()
    return tuple(dims), position + text.startswith("]", position)


def parse_axes(body: str, sizes: AxisSizes) -> tuple[AxisRef, ...]:
    """``"X", "Y":(1)2``: axes and parts of axes; ``?`` and what else may stand there is passed over."""
    found = []
    for match in _AXIS.finditer(body):
        name, size = match[1], sizes.get(match[1])
        if size is None:
            raise NotationError(f"the mesh has no axis {name}", body, match.start(), match.end())
        above, part = (1, size) if match[2] is None else (int(match[2]), int(match[3]))
        if above < 1 or part < 1 or size % (above * part):
            raise NotationError(
                f"axis {name} of size {size} has no such part", body, match.start(), match.end()
            )
        found.append(AxisRef(name, above, part, part == size))
    return tuple(found)
