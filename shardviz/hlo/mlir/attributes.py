"""Types and attributes of MLIR: tensor types, dense arrays, meshes and shardings.

Shardy prints a sharding as ``<@mesh, [{"X", "Y":(1)2}, {?}p1], unreduced={"Z"}>``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from shardviz.errors import NotationError, QuestionError
from shardviz.hlo.groups.replica_groups import ReplicaGroups, groups_over, row_major
from shardviz.hlo.text.shapes import MAX_ELEMENTS, ArrayShape
from shardviz.sharding import Mesh, PartitionSpec, canonical_dtype
from shardviz.sharding.mesh import MAX_DEVICES, is_axis_name

_TENSOR = re.compile(r"tensor<([\dx?]*)(complex<\w+>|!?[A-Za-z][\w.]*)")
_DENSE_ROW = re.compile(r"\[([-\d, ]*)\]")
_INTEGER = re.compile(r"-?\d{1,15}")
_PADDING = -1
"""Fills a row of groups that has fewer members than others."""
MAX_HEX = 2**22
"""Longest dense array in hexadecimal digits that is read."""
AxisSizes = dict[str, int]
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

    def spec(self) -> PartitionSpec:
        """The same as a `PartitionSpec`. Raises `QuestionError` where parts of an axis overlap."""
        return PartitionSpec(
            tuple(tuple(map(str, dim)) for dim in self.dims), tuple(map(str, self.unreduced))
        )


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
    return tuple(axis_ref(match, sizes) for match in _AXIS.finditer(body))


def axis_ref(found: re.Match[str], sizes: AxisSizes) -> AxisRef:
    """The axis whose name, and maybe the parts above it and its own size, are groups of a match.

    Raises `NotationError` for an axis, or a part of one, that the mesh does not have.
    """
    name, size = found[1], sizes.get(found[1])
    if size is None:
        raise NotationError(f"the mesh has no axis {name}", found.string, found.start(), found.end())
    above, part = (1, size) if found[2] is None else (int(found[2]), int(found[3]))
    if above < 1 or part < 1 or size % (above * part):
        problem = f"axis {name} of size {size} has no such part"
        raise NotationError(problem, found.string, found.start(), found.end())
    return AxisRef(name, above, part, part == size)


def axis_groups(axes: Sequence[AxisRef], sizes: AxisSizes) -> ReplicaGroups:
    """The groups of a collective over `axes`, as positions in a mesh of those `sizes`."""
    loops = dict(zip(sizes, row_major(tuple(sizes.values())), strict=True))
    inner = []
    for axis in axes:
        whole, stride = loops[axis.name]
        inner.append((axis.size, stride * (whole // (axis.above * axis.size))))
    return groups_over(inner, math.prod(sizes.values()))


def parts(axes: Sequence[AxisRef]) -> int:
    """Into how many parts the axes cut a dimension."""
    return math.prod(axis.size for axis in axes)


def parse_tensor(text: str, start: int = 0) -> ArrayShape:
    """The first tensor type at or after `start`: ``tensor<8x2048xbf16>``.

    Raises `NotationError` when there is none, or one of a dynamic size or an element type of no known width.
    """
    match = _TENSOR.search(text, start)
    if match is None:
        raise NotationError("a tensor type was expected", text, start, min(len(text), start + 20))
    return _tensor(text, match)


def parse_tensors(text: str) -> Iterator[ArrayShape]:
    """Every tensor type in a text."""
    return (_tensor(text, match) for match in _TENSOR.finditer(text))


def _tensor(text: str, match: re.Match[str]) -> ArrayShape:
    sizes = [part for part in match[1].split("x") if part]
    if "?" in match[1] or any(len(part) > 15 for part in sizes) or len(sizes) > 64:
        raise NotationError("a tensor of fixed size was expected", text, match.start(), match.end())
    shape = tuple(map(int, sizes))
    product = 1
    for size in shape:
        product *= max(size, 1)
    if product > MAX_ELEMENTS:
        raise NotationError("no tensor is that large", text, match.start(), match.end())
    name = match[2]
    if name.startswith("complex<"):
        name = {"complex<f32>": "c64", "complex<f64>": "c128"}.get(name, name)
    try:
        return ArrayShape(
            canonical_dtype(name.replace("ui", "u", 1) if name.startswith("ui") else name), shape
        )
    except QuestionError as error:
        raise NotationError(error.message, text, match.start(2), match.end(2)) from None


def parse_dense_rows(text: str, start: int, columns: int) -> tuple[tuple[int, ...], ...]:
    """The rows of ``dense<[[0, 1], [2, -1]]>`` or its hexadecimal or single-value form, from `start` on.

    What pads a row is left out. Raises `NotationError` for anything else.
    """
    end = text.find(">", start)
    body = text[start + len("dense<") : end] if text.startswith("dense<", start) and end > 0 else ""
    if body.startswith("[["):
        return tuple(_unpadded(map(int, _INTEGER.findall(row[1]))) for row in _DENSE_ROW.finditer(body, 1))
    if body.startswith('"0x') and len(body) < MAX_HEX:
        try:
            raw = bytes.fromhex(body[3:].rstrip('"'))
        except ValueError:
            raw = b""
        flat = tuple(int.from_bytes(raw[i : i + 8], "little", signed=True) for i in range(0, len(raw), 8))
        return tuple(_unpadded(flat[i : i + columns]) for i in range(0, len(flat), max(1, columns)))
    if body.strip().isdigit() and len(body) < 15:
        return ((int(body),),)
    if text.startswith("dense<>", start):
        return ()
    raise NotationError("a dense array of groups was expected", text, start, min(len(text), start + 20))


def _unpadded(row: Iterable[int]) -> tuple[int, ...]:
    return tuple(number for number in row if number != _PADDING)


def _axis_sizes(body: str) -> AxisSizes:
    sizes = {match[1]: int(match[2]) for match in _DECLARED_AXIS.finditer(body)}
    if 0 in sizes.values() or math.prod(sizes.values()) > MAX_DEVICES:
        raise NotationError("a mesh of 1 to 2**40 devices was expected", body, 0, len(body))
    return sizes
