"""The cells of an array's picture, blocks of the array or devices of the mesh, and their labels."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple

from rich.style import Style
from rich.text import Text

from shardviz.render.palette import PADDING, PARTIAL, Palette, glyph
from shardviz.sharding import Layout, Mesh
from shardviz.sharding.digits import row_major

ROOMY = 17
"""A label longer than this gives way to a shorter one, even where there is room."""
LISTED = 64
"""Up to so many devices are looked at one by one; of more, the first few and the last."""
FEW = 8
EVERYTHING = 10**6
"""Room for any label."""


class LayoutCell(NamedTuple):
    """One block: its `labels`, the longest first, a glyph for its data, a character in place of blanks, if
    any, and the part of its width (0 to 1) beyond the array's edge."""

    labels: tuple[str, ...]
    glyph: str
    style: Style
    fill: str = ""
    padding: float = 0.0

    @property
    def brief(self) -> str:
        """The shortest label that still names a device."""
        return self.labels[-2] if len(self.labels) > 2 else self.labels[0]

    def fitting(self, width: int) -> str:
        """The longest label that fits, or the shortest of all."""
        return next((label for label in self.labels if len(label) <= width), self.labels[-1])

    def text(self, width: int, glyphs: bool) -> str:
        name = f"{self.glyph} " if glyphs else ""
        return self.filled((name + self.fitting(width - 2 - len(name)))[:width], width)

    def filled(self, label: str, width: int) -> str:
        """A line of the cell with a label in its middle."""
        # Of what fills the cell something is seen.
        if label and self.fill and len(label) <= width - 4:
            label = f" {label} "
        fill = self.fill or " "
        left = (width - len(label)) // 2
        text = fill * left + label + fill * (width - len(label) - left)
        if self.padding:
            # The number stays readable: padding replaces only blanks.
            real = min(round(width * (1 - self.padding)), width - 1)
            text = text[:real] + "".join(PADDING if c in (" ", fill) else c for c in text[real:])
        return text


@dataclass(frozen=True)
class Edge:
    """An edge of the grid: its `title`, and ways to label its `count` parts; the first that fits is taken."""

    title: Text
    count: int
    labelings: Sequence[Callable[[int], Text]] = field(default_factory=tuple)


class CellIndex(NamedTuple):
    """A cell: in which of the grids of an array it is, and where there."""

    grid: int
    row: int
    column: int


class Cells(ABC):
    """The cells of one array, found by arithmetic alone, its first block being number `first`."""

    rows: Edge
    columns: Edge
    grids: int = 1

    def __init__(self, layout: Layout, palette: Palette, first: int = 0) -> None:
        self.layout, self.palette, self.first = layout, palette, first
        self.copies = Copies(layout)

    @abstractmethod
    def block(self, index: CellIndex) -> tuple[int, ...]:
        """The part of each dimension that the cell's device, or devices, hold."""

    @abstractmethod
    def index_of(self, position: int) -> CellIndex:
        """The cell that shows what the device at a row-major position of the mesh holds."""

    @abstractmethod
    def position(self, index: CellIndex) -> int:
        """The row-major position of the (first) device of a cell."""

    @abstractmethod
    def labels(self, index: CellIndex, room: int) -> tuple[str, ...]:
        """Ways to write the cell's devices, the longest first; what is longer than `room` may be missing."""

    def title(self, _grid: int) -> Text:
        return Text()

    @property
    def last(self) -> CellIndex:
        return CellIndex(self.grids - 1, self.rows.count - 1, self.columns.count - 1)

    def number(self, index: CellIndex) -> int:
        """The number of the block that the cell shows; partial sums of a block share it."""
        return self.first + ravel(self.block(index), self.layout.parts)

    def data(self, index: CellIndex) -> tuple[int, int]:
        """The identity of the cell's data: its number, and that of the partial sum that a device holds."""
        return self.number(index), 0

    def slice_text(self, index: CellIndex) -> str:
        """The slice of the array that the cell shows: ``b 0:4, d 512:1024``."""
        bounds = self.layout.slices(self.block(index))
        dims = self.layout.array.dims
        return ", ".join(f"{dim} {start}:{stop}" for dim, (start, stop) in zip(dims, bounds, strict=True))

    def cell(self, index: CellIndex, room: int = EVERYTHING) -> LayoutCell:
        number, labels = self.number(index), self.labels(index, room)
        return LayoutCell(
            labels,
            glyph(number),
            self.palette.shard(number),
            PARTIAL if self.copies.partials > 1 else "",
            padding(self.layout, self.block(index)) if self.layout.uneven else 0.0,
        )


class BlockCells(Cells):
    """The array's blocks: the last dimension but one down, the last across, a grid for each slice."""

    def __init__(self, layout: Layout, palette: Palette, first: int = 0) -> None:
        super().__init__(layout, palette, first)
        rank = layout.array.rank
        self.rows = edge(layout, rank - 2 if rank >= 2 else None, palette)
        self.columns = edge(layout, rank - 1 if rank else None, palette)
        self._leading, self._lacking = layout.parts[:-2], max(0, 2 - rank)
        self.grids = math.prod(self._leading)

    def block(self, index: CellIndex) -> tuple[int, ...]:
        return (*unravel(index.grid, self._leading), index.row, index.column)[self._lacking :]

    def index_of(self, position: int) -> CellIndex:
        number = ravel(self.layout.block(position), self.layout.parts)
        return CellIndex(*unravel(number, (self.grids, self.rows.count, self.columns.count)))

    def position(self, index: CellIndex) -> int:
        return self.copies.position(self.block(index))

    def labels(self, index: CellIndex, room: int) -> tuple[str, ...]:
        return tuple(self.copies.labels(self.block(index), room))

    def title(self, grid: int) -> Text:
        """The part of the leading dimensions that a slice shows: ``h 0:4 X0``."""
        layout, title = self.layout, Text()
        block = unravel(grid, self._leading)
        bounds = layout.slices((*block, *(0,) * min(layout.array.rank, 2)))
        for dim, (index, (start, stop)) in enumerate(zip(block, bounds, strict=False)):
            title.append("  " if dim else "").append(f"{layout.array.dims[dim]} {start}:{stop}")
            if axes := layout.spec.dims[dim]:
                title.append(" ").append_text(axis_labels(axes, layout.mesh, self.palette)[0](index))
        return title


class DeviceCells(Cells):
    """The mesh's devices: its last axis across, the others down."""

    def __init__(self, layout: Layout, palette: Palette, first: int = 0) -> None:
        super().__init__(layout, palette, first)
        mesh = layout.mesh
        down, across = mesh.axis_names[:-1], mesh.axis_names[-1:]
        self.rows = Edge(Text(), mesh.group_size(down), axis_labels(down, mesh, palette) if down else ())
        labels = axis_labels(across, mesh, palette) if across else ()
        self.columns = Edge(Text(), mesh.group_size(across), labels)

    def block(self, index: CellIndex) -> tuple[int, ...]:
        return self.layout.block(self.position(index))

    def index_of(self, position: int) -> CellIndex:
        return CellIndex(0, *divmod(position, self.columns.count))

    def position(self, index: CellIndex) -> int:
        return index.row * self.columns.count + index.column

    def data(self, index: CellIndex) -> tuple[int, int]:
        return self.number(index), self.layout.partial(self.position(index))

    def labels(self, index: CellIndex, _room: int) -> tuple[str, ...]:
        return (str(self.layout.mesh.device_id(self.position(index))),)


def edge(layout: Layout, dim: int | None, palette: Palette) -> Edge:
    """The edge along a dimension: its name and size, and the coordinates of its parts; None has neither."""
    if dim is None:
        return Edge(Text(), 1)
    title = Text(f"{layout.array.dims[dim]} {layout.array.shape[dim]}")
    axes = layout.spec.dims[dim]
    return Edge(title, layout.parts[dim], axis_labels(axes, layout.mesh, palette) if axes else ())


def axis_labels(axes: Sequence[str], mesh: Mesh, palette: Palette) -> Sequence[Callable[[int], Text]]:
    """Two ways to label a place along axes: ``X1 Y3`` and, shorter, ``1,3`` in the axes' colours."""
    sizes = [mesh.axis_size(axis) for axis in axes]
    space = "" if all(len(axis) == 1 for axis in axes) else " "

    def label(index: int, *, separator: str, is_named: bool) -> Text:
        return Text(separator).join(
            Text(f"{axis}{space}{coordinate}" if is_named else f"{coordinate}", palette.axis(mesh, axis))
            for axis, coordinate in zip(axes, unravel(index, sizes), strict=True)
        )

    return partial(label, separator=" ", is_named=True), partial(label, separator=",", is_named=False)


def padding(layout: Layout, block: tuple[int, ...]) -> float:
    """The part of a block (0 to 1) that lies beyond the array's edge."""
    sizes = zip(layout.slices(block), layout.shard_shape, strict=True)
    return 1.0 - math.prod((stop - start) / size if size else 1.0 for (start, stop), size in sizes)


def ravel(coordinates: Sequence[int], sizes: Sequence[int]) -> int:
    return sum(at * stride for at, (_, stride) in zip(coordinates, row_major(sizes), strict=True))


def unravel(index: int, sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(index // stride % size for size, stride in row_major(sizes))


def position_of(number: int, digits: Iterable[tuple[int, int]]) -> int:
    """The position with the digits of a number, the minor first, each of a size and a stride."""
    position = 0
    for size, stride in digits:
        number, digit = divmod(number, size)
        position += stride * digit
    return position


@dataclass(frozen=True)
class Holders:
    """Device ids that hold equal data: the first in order (all, up to `LISTED`), the last, and how many."""

    first: tuple[int, ...]
    last: int
    count: int

    def labels(self, room: int = EVERYTHING) -> Iterator[str]:
        """Ways to write them, the longest first: ``0,1,2,3`` (where that may fit into `room`), ``0–3``, ``4
        devices``, ``×4``. Those not in a row make no range: ``0,4,8,12``, ``0,4,…,12``, ``0,…,12``."""
        if self.count == len(self.first) and 2 * self.count - 1 <= room:
            yield ",".join(map(str, self.first))
        if self.count > 2:
            start, step = self.first[0], self.first[1] - self.first[0]
            regular = all(b - a == step for a, b in pairwise(self.first))
            regular = regular and self.last == start + step * (self.count - 1)
            ends = f"{start}–{self.last}" if regular and step == 1 else f"{start},…,{self.last}"
            if regular:
                yield ends if step == 1 else f"{start},{start + step},…,{self.last}"
            yield f"{self.count:,} devices"
            yield ends
        if self.count > 1:
            yield f"×{self.count}"


@dataclass(frozen=True)
class Copies:
    """The holders of a layout's blocks, each found without a look at the others."""

    layout: Layout

    def position(self, block: tuple[int, ...], partial: int = 0) -> int:
        """The row-major position of the first device that holds a block and, unreduced, a partial sum."""
        mesh, spec = self.layout.mesh, self.layout.spec
        only = 0 if spec.only_device is None else self.layout.only_position
        parts = zip((*spec.dims, spec.unreduced), (*block, partial), strict=True)
        return only + sum(position_of(index, map(mesh.digit, reversed(axes))) for axes, index in parts)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """From a block's first holder to all, in order; of more than `LISTED`, the first few and the last."""
        count, spec = self.layout.replicas, self.layout.spec
        # Size and stride of the axes, and parts of axes, along which copies lie, the minor first.
        loops = self.layout.mesh.loops_without((*spec.axes, *spec.unreduced))[::-1]
        shown = range(count) if count <= LISTED else (*range(FEW), count - 1)
        return tuple(position_of(number, loops) for number in shown)

    def holders(self, block: tuple[int, ...], partial: int = 0) -> Holders:
        """The devices that hold a block (an index per dimension) and, unreduced, a partial sum of it."""
        base, mesh, count = self.position(block, partial), self.layout.mesh, self.layout.replicas
        ids = [mesh.device_id(base + offset) for offset in self.offsets]
        if count <= LISTED:
            ids.sort()
            return Holders(tuple(ids), ids[-1], count)
        return Holders(tuple(ids[:-1]), ids[-1], count)

    def labels(self, block: tuple[int, ...], room: int = EVERYTHING) -> Iterator[str]:
        """Ways to write who holds a block, the longest first, as `Holders.labels`; the devices of a pending
        sum are joined by +: ``0+1+2+3``, ``(0,4)+…+(3,7)``, ``Σ4``. What cannot fit into `room` may be
        missing."""
        partials = self.partials
        if partials == 1:
            yield from self.holders(block).labels(room)
            return
        if partials <= LISTED and 2 * partials - 1 <= room:
            yield "+".join(self._addend(block, partial) for partial in range(partials))
        if partials > 2:
            yield f"{self._addend(block, 0)}+…+{self._addend(block, partials - 1)}"
        yield f"Σ{partials}"

    @cached_property
    def partials(self) -> int:
        """The number of partial sums of a block; 1 unless the array is unreduced."""
        return self.layout.mesh.group_size(self.layout.spec.unreduced)

    def _addend(self, block: tuple[int, ...], partial: int) -> str:
        label = next(self.holders(block, partial).labels())
        return f"({label})" if "," in label else label
