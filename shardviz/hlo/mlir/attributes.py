"""Types and attributes of MLIR: tensor types, dense arrays, meshes and shardings.

Shardy prints a sharding as ``<@mesh, [{"X", "Y":(1)2}, {?}p1], unreduced={"Z"}>``."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from shardviz.errors import NotationError, QuestionError
from shardviz.hlo.text.shapes import MAX_ELEMENTS, ArrayShape
from shardviz.sharding import Mesh, PartitionSpec, canonical_dtype
from shardviz.sharding.axis_parts import SubAxis
from shardviz.sharding.digits import AxisSizes, part_name
from shardviz.sharding.mesh import MAX_DEVICES, is_axis_name

_TENSOR = re.compile(r"tensor<([\dx?]*)(complex<\w+>|!?[A-Za-z][\w.]*)")
_DENSE_ROW = re.compile(r"\[([-\d, ]*)\]")
_INTEGER = re.compile(r"-?\d{1,15}")
_PADDING = -1
"""Fills a row of groups that has fewer members than others."""
MAX_HEX = 2**22
"""Longest dense array in hexadecimal digits that is read."""
_MESH = re.compile(r"<\[([^\]]*)\](?:, device_ids=\[([\d, ]*)\])?")
_MESH_NAME = re.compile(r'@"([^"]*)"|@([\w.$-]+)')
_LITERAL = re.compile(rf"#sdy\.mesh{_MESH.pattern}>")
_NUMBER = re.compile(r"\d{1,15}")
_DECLARED_AXIS = re.compile(r'"([^"]*)"\s*=\s*(\d{1,12})')
_MESH_REF = re.compile(r'\s*<(?:@"([^"]*)"|@([\w.$-]+)|mesh<\[([^\]]*)\][^>]*>)\s*,\s*')
_DIMS = re.compile(r"\[((?:\s*\{[^{}]*\}(?:p\d+)?(?:\s*,)?)*+)\]?")
_DIM = re.compile(r"\{([^{}]*)\}")
_AXIS = re.compile(r'\s*"([^"]*)"(?:\s*:\s*\((\d{1,12})\)\s*(\d{1,12}))?\s*,?')
_EXTRA = re.compile(r"\s*,\s*(replicated|unreduced)=\{([^{}]*)\}")
_COMMA = re.compile(r"\s*, ?")

Dims = tuple[tuple[SubAxis, ...], ...]


@dataclass(frozen=True)
class TensorSharding:
    """The axes on each dimension, major first, and those over which the tensor is a pending sum; `sizes` are
    those of the mesh's axes, none where nothing is said of a tensor."""

    dims: Dims
    unreduced: tuple[SubAxis, ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()

    @property
    def parts(self) -> tuple[int, ...]:
        """Into how many parts each dimension is cut."""
        return tuple(map(cuts, self.dims))

    def without(self, names: Collection[str]) -> TensorSharding:
        """As seen inside a manual computation over the axes `names`."""
        dims = tuple(tuple(part for part in dim if part.axis not in names) for dim in self.dims)
        return TensorSharding(dims, (), self.sizes)

    def names(self, axes: Iterable[SubAxis]) -> tuple[str, ...]:
        """Axes, and parts of axes, as Shardy writes them; those of size 1 split nothing."""
        sizes = dict(self.sizes)
        return tuple(part_name(part, sizes) for part in axes if part.size > 1)

    def spec(self) -> PartitionSpec:
        """The same as a `PartitionSpec`. Raises `QuestionError` where parts of an axis overlap."""
        return PartitionSpec(tuple(map(self.names, self.dims)), self.names(self.unreduced))


def cuts(axes: Iterable[SubAxis]) -> int:
    """Into how many parts the axes cut a dimension."""
    return math.prod(part.size for part in axes)


class Meshes:
    """The meshes that a module declares, by name: the sizes of their axes, and the order of their devices."""

    def __init__(self, declarations: Iterable[str]) -> None:
        self.sizes: dict[str, AxisSizes] = {}
        self.device_orders: dict[str, tuple[int, ...] | None] = {}
        for text in declarations:
            name, mesh = _MESH_NAME.search(text), _MESH.search(text)
            if name is not None and mesh is not None:
                key = next(filter(None, name.groups()), "")
                self.sizes[key], self.device_orders[key] = _mesh(mesh)

    def mesh(self) -> Mesh | None:
        """The first mesh as an object of its own, where its axes have ordinary names."""
        for name, sizes in self.sizes.items():
            if sizes and all(map(is_axis_name, sizes)):
                return Mesh(tuple(sizes), tuple(sizes.values()), self.device_orders[name])
        return None


def mesh_literals(header: str) -> list[tuple[AxisSizes, tuple[int, ...] | None]]:
    """The meshes in an HLO module's header, ``xla.sdy.meshes={mesh = #sdy.mesh<["X"=2, "Y"=4]>}``. With each
    its ``device_ids`` in row-major order, None where it has none."""
    return list(map(_mesh, _LITERAL.finditer(header)))


def _mesh(match: re.Match[str]) -> tuple[AxisSizes, tuple[int, ...] | None]:
    return _axis_sizes(match[1]), tuple(map(int, _NUMBER.findall(match[2] or ""))) or None


def parse_sharding(text: str, start: int, meshes: Meshes) -> tuple[TensorSharding, int]:
    """The sharding at `start`, and where it ends. Raises `NotationError` when there is none, or it names a
    mesh or an axis that is not declared."""
    ref = _MESH_REF.match(text, start)
    if ref is None:
        raise NotationError("this is not a sharding", text, start, min(len(text), start + 20))
    name = ref[1] or ref[2]
    sizes = _axis_sizes(ref[3]) if ref[3] is not None else meshes.sizes.get(name)
    if sizes is None:
        raise NotationError(f"the mesh {name} is not declared", text, ref.start(), ref.end())
    dims, position = parse_dims(text, ref.end(), sizes)
    unreduced: tuple[SubAxis, ...] = ()
    while extra := _EXTRA.match(text, position):
        if extra[1] == "unreduced":
            unreduced = parse_axes(extra[2], sizes)
        position = extra.end()
    return TensorSharding(dims, unreduced, tuple(sizes.items())), position + text.startswith(">", position)


def parse_sharding_list(text: str, start: int, meshes: Meshes) -> list[TensorSharding]:
    """The shardings of a list ``[<...>, <...>]``, whose bracket is at `start`."""
    position, shardings = start + 1, []
    while text.startswith("<", position):
        sharding, position = parse_sharding(text, position, meshes)
        shardings.append(sharding)
        comma = _COMMA.match(text, position)
        position = comma.end() if comma else len(text)
    return shardings


def parse_dims(text: str, start: int, sizes: AxisSizes) -> tuple[Dims, int]:
    """``[{"X"}, {}]``: the axes of each dimension, and where the list ends."""
    listed = _DIMS.match(text, start)
    if listed is None:
        raise NotationError("a list of axes was expected", text, start, min(len(text), start + 20))
    return tuple(parse_axes(dim, sizes) for dim in _DIM.findall(listed[1])), listed.end()


def parse_axes(body: str, sizes: AxisSizes) -> tuple[SubAxis, ...]:
    """``"X", "Y":(1)2``: axes and parts of axes; ``?`` and what else may stand there is passed over."""
    return tuple(axis_of(match, sizes) for match in _AXIS.finditer(body))


def axis_of(match: re.Match[str], sizes: AxisSizes) -> SubAxis:
    """The axis whose name, and maybe the parts above it and its own size, are groups of a match. Raises
    `NotationError` for an axis, or a part of one, that the mesh does not have."""
    name, size = match[1], sizes.get(match[1])
    if size is None:
        raise NotationError(f"the mesh has no axis {name}", match.string, match.start(), match.end())
    before, part = (1, size) if match[2] is None else (int(match[2]), int(match[3]))
    if before < 1 or part < 1 or size % (before * part):
        problem = f"axis {name} of size {size} has no such part"
        raise NotationError(problem, match.string, match.start(), match.end())
    return SubAxis(name, before, part)


def parse_tensor(text: str, start: int = 0) -> ArrayShape:
    """The first tensor type at or after `start`: ``tensor<8x2048xbf16>``. Raises `NotationError` where there
    is none, or one of a dynamic size or of an element type of no known width."""
    match = _TENSOR.search(text, start)
    if match is None:
        raise NotationError("a tensor type was expected", text, start, min(len(text), start + 20))
    return _tensor(text, match)


def parse_tensors(text: str) -> list[ArrayShape]:
    """Every tensor type in a text."""
    return [_tensor(text, match) for match in _TENSOR.finditer(text)]


def element_type(name: str) -> str:
    """The dtype that MLIR calls ``bf16``, ``i32``, ``ui8`` or ``complex<f32>``. Raises `QuestionError`."""
    if name.startswith("complex<"):
        name = {"complex<f32>": "c64", "complex<f64>": "c128"}.get(name, name)
    return canonical_dtype(name.replace("ui", "u", 1) if name.startswith("ui") else name)


def _tensor(text: str, match: re.Match[str]) -> ArrayShape:
    sizes = [part for part in match[1].split("x") if part]
    if "?" in match[1] or any(len(part) > 15 for part in sizes) or len(sizes) > 64:
        raise NotationError("a tensor of fixed size was expected", text, match.start(), match.end())
    shape = tuple(map(int, sizes))
    if math.prod(max(size, 1) for size in shape) > MAX_ELEMENTS:
        raise NotationError("no tensor is that large", text, match.start(), match.end())
    try:
        return ArrayShape(element_type(match[2]), shape)
    except QuestionError as error:
        raise NotationError(error.message, text, match.start(2), match.end(2)) from None


def parse_dense_rows(text: str, start: int, columns: int) -> tuple[tuple[int, ...], ...]:
    """The rows of ``dense<[[0, 1], [2, -1]]>`` or its hexadecimal or single-value form, from `start` on. What
    pads a row is left out. Raises `NotationError` for anything else."""
    end = text.find(">", start)
    body = text[start + len("dense<") : end] if text.startswith("dense<", start) and end > 0 else ""
    if body.startswith("[["):
        rows = (map(int, _INTEGER.findall(row[1])) for row in _DENSE_ROW.finditer(body, 1))
        return tuple(tuple(number for number in row if number != _PADDING) for row in rows)
    if body.startswith('"0x') and len(body) < MAX_HEX:
        try:
            raw = bytes.fromhex(body[3:].rstrip('"'))
        except ValueError:
            raw = b""
        flat = [int.from_bytes(raw[i : i + 8], "little", signed=True) for i in range(0, len(raw), 8)]
        parts = (flat[i : i + columns] for i in range(0, len(flat), max(1, columns)))
        return tuple(tuple(number for number in part if number != _PADDING) for part in parts)
    if body.strip().isdigit() and len(body) < 15:
        return ((int(body),),)
    if text.startswith("dense<>", start):
        return ()
    raise NotationError("a dense array of groups was expected", text, start, min(len(text), start + 20))


def _axis_sizes(body: str) -> dict[str, int]:
    sizes = {match[1]: int(match[2]) for match in _DECLARED_AXIS.finditer(body)}
    if 0 in sizes.values() or math.prod(sizes.values()) > MAX_DEVICES:
        raise NotationError("a mesh of 1 to 2**40 devices was expected", body, 0, len(body))
    return sizes
