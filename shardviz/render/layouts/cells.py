"""What the cells of a picture stand for: blocks of an array, or the devices of its mesh."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import NamedTuple

from rich.text import Text

from shardviz.render.layouts.edges import coordinates, edge, padding, slice_title, unravel
from shardviz.render.layouts.grid import Cell, Edge
from shardviz.render.layouts.holders import EVERYTHING, Copies
from shardviz.render.palette import Palette, glyph
from shardviz.sharding import Layout


class Spot(NamedTuple):
    """A cell: in which of the grids of an array it is, and where there."""

    grid: int
    row: int
    column: int


class Cells(ABC):
    """The cells of one array, each found by arithmetic alone; `first` is the number of its first block.

    `rows` and `columns` are the edges of every grid.
    """

    rows: Edge
    columns: Edge
    grids: int = 1

    def __init__(self, layout: Layout, palette: Palette, first: int = 0) -> None:
        self.layout = layout
        self.palette = palette
        self.first = first
        self.copies = Copies(layout)

    @abstractmethod
    def block(self, spot: Spot) -> tuple[int, ...]:
        """The part of each dimension that the cell's device, or devices, hold."""

    @abstractmethod
    def spot(self, position: int) -> Spot:
        """The cell that shows what the device at a row-major position of the mesh holds."""

    @abstractmethod
    def position(self, spot: Spot) -> int:
        """The row-major position of the (first) device of a cell."""

    @abstractmethod
    def labels(self, spot: Spot, room: int) -> tuple[str, ...]:
        """Ways to write the cell's devices, the longest first; what is longer than `room` may be missing."""

    @abstractmethod
    def title(self, grid: int) -> Text:
        """What stands above one of several grids."""

    @property
    def last(self) -> Spot:
        """The last cell of the last grid."""
        return Spot(self.grids - 1, self.rows.count - 1, self.columns.count - 1)

    def number(self, spot: Spot) -> int:
        """The number of the block that the cell shows; partial sums of a block share it."""
        number = 0
        for index, parts in zip(self.block(spot), self.layout.parts, strict=True):
            number = number * parts + index
        return self.first + number

    def data(self, spot: Spot) -> tuple[int, int]:
        """What tells the cell's data from others: its number, and which partial sum of it a device holds."""
        return self.number(spot), 0

    def cell(self, spot: Spot, room: int = EVERYTHING) -> Cell:
        """The cell as it is drawn."""
        number = self.number(spot)
        return Cell(
            self.labels(spot, room),
            glyph(number),
            self.palette.shard(number),
            self.copies.partials > 1,
            padding(self.layout, self.block(spot)) if self.layout.uneven else 0.0,
        )


class BlockCells(Cells):
    """The array's blocks: the last dimension but one down, the last across, a grid for each slice."""

    def __init__(self, layout: Layout, palette: Palette, first: int = 0) -> None:
        super().__init__(layout, palette, first)
        rank = layout.array.rank
        self.rows = edge(layout, rank - 2 if rank >= 2 else None, palette)
        self.columns = edge(layout, rank - 1 if rank else None, palette)
        self._leading = layout.parts[:-2]
        self.grids = math.prod(self._leading)

    def block(self, spot: Spot) -> tuple[int, ...]:
        return (*unravel(spot.grid, self._leading), spot.row, spot.column)[self._rank_below_two :]

    def spot(self, position: int) -> Spot:
        number = 0
        for index, parts in zip(self.layout.block(position), self.layout.parts, strict=True):
            number = number * parts + index
        return Spot(*unravel(number, (self.grids, self.rows.count, self.columns.count)))

    def position(self, spot: Spot) -> int:
        return self.copies.position(self.block(spot))

    def labels(self, spot: Spot, room: int) -> tuple[str, ...]:
        return tuple(self.copies.labels(self.block(spot), room))

    def title(self, grid: int) -> Text:
        return slice_title(self.layout, unravel(grid, self._leading), self.palette)

    @cached_property
    def _rank_below_two(self) -> int:
        """How many of row and column are no dimensions of the array."""
        return max(0, 2 - self.layout.array.rank)


class DeviceCells(Cells):
    """The mesh's devices: its last axis across, the others down."""

    def __init__(self, layout: Layout, palette: Palette, first: int = 0) -> None:
        super().__init__(layout, palette, first)
        mesh = layout.mesh
        down, across = mesh.axis_names[:-1], mesh.axis_names[-1:]
        self.rows = Edge(Text(), mesh.group_size(down), coordinates(down, mesh, palette) if down else ())
        self.columns = Edge(
            Text(), mesh.group_size(across), coordinates(across, mesh, palette) if across else ()
        )

    def block(self, spot: Spot) -> tuple[int, ...]:
        return self.layout.block(self.position(spot))

    def spot(self, position: int) -> Spot:
        return Spot(0, *divmod(position, self.columns.count))

    def position(self, spot: Spot) -> int:
        return spot.row * self.columns.count + spot.column

    def data(self, spot: Spot) -> tuple[int, int]:
        return self.number(spot), self.layout.partial(self.position(spot))

    def labels(self, spot: Spot, _room: int) -> tuple[str, ...]:
        return (str(self.layout.mesh.device_id(self.position(spot))),)

    def title(self, _grid: int) -> Text:
        return Text()
