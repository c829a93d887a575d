"""The picture of a layout: which devices hold which block of the array, as a grid or as labelled slices.

Rows are the last dimension but one, columns the last; the dimensions before them cut the array into slices,
one grid each. A rank-1 array is one row, a scalar one cell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.caption import array_text
from shardviz.render.layouts.cells import BlockCells, Spot
from shardviz.render.layouts.edges import slice_title, unravel
from shardviz.render.layouts.grid import DIM, Cell, Grid, draw, visible
from shardviz.render.palette import PADDING, PARTIAL, Palette
from shardviz.render.units import times
from shardviz.sharding import Layout

MAX_ROWS = 16
MAX_SLICES = 6


@dataclass(frozen=True)
class Picture:
    """A title and the lines under it; `top` is the line of the (first) box's upper border."""

    title: Text
    lines: tuple[Text, ...]
    top: int
    summarised: bool

    @property
    def width(self) -> int:
        return max(line.cell_len for line in (self.title, *self.lines))


def picture(
    layout: Layout, width: int, palette: Palette, first: int = 0, max_rows: int = MAX_ROWS
) -> Picture:
    """A layout in at most `width` columns.

    `first` is the number of its first shard in colours and glyphs, so that arrays drawn side by side do
    not share them.
    """
    title = array_text(layout.array, layout.mesh, palette)
    title.truncate(width, overflow="ellipsis")
    leading = layout.parts[:-2]
    count = math.prod(leading)
    if count == 1:
        grid = _grid(layout, 0, width, palette, first, max_rows)
        remark = [_remark(layout)] if grid.summarised else []
        return Picture(title, (*grid.lines, *remark), grid.top, grid.summarised)
    slices = visible(count, MAX_SLICES)
    rows = max(max_rows // 2, 4)
    drawn = [number for number in slices if number is not None]
    grids = [_grid(layout, number, width, palette, first, rows) for number in drawn]
    if not all(grid.glyphs for grid in grids):
        grids = [_grid(layout, number, width, palette, first, rows, glyphs=False) for number in drawn]
    blocks = [
        [slice_title(layout, unravel(number, leading), palette), *grid.lines]
        for number, grid in zip(drawn, grids, strict=True)
    ]
    if None in slices:
        gap = Text(f"… {plural(count - len(drawn), 'more slice')} …", DIM)
        blocks.insert(slices.index(None), [gap])
    return Picture(title, tuple(shelve(blocks, width)), 1 + grids[-1].top, None in slices)


def _remark(layout: Layout) -> Text:
    """What a summarised picture leaves out."""
    return Text(f"some of {times(layout.parts)} blocks", DIM)


def notes(layout: Layout) -> list[str]:
    """What the picture cannot say by itself: partial sums, and dimensions that do not divide."""
    said = []
    spec, mesh = layout.spec, layout.mesh
    if spec.unreduced:
        axes = ", ".join(spec.unreduced)
        group = mesh.group_size(spec.unreduced)
        said.append(
            f"{PARTIAL} {layout.array.name} is unreduced over {axes}: each block is the sum of"
            f" {plural(group, 'partial sum')}, one on each of the devices joined by +."
        )
    for uneven in layout.uneven:
        name = f"{layout.array.dims[uneven.dim]} of {layout.array.name}"
        axes = ", ".join(spec.dims[uneven.dim])
        padding = "one is padding" if uneven.padding == 1 else f"{uneven.padding} are padding"
        padded, held = uneven.size + uneven.padding, uneven.shard_size
        said.append(
            f"{PADDING} {name}: {uneven.size} does not divide by the {uneven.parts} parts over {axes}."
            f" jit pads it to {padded}, {held} a device, and the last {padding};"
            " a JAX array refuses it (IndivisibleError)."
        )
    return said


def repetition(shards: int, palette: Palette) -> list[Text]:
    """A line under pictures of more `shards` than there are colours."""
    turn = len(palette.shards)
    if not palette.shown or shards <= turn:
        return []
    return [Text(f"colours repeat after {turn}; letters and device numbers do not", DIM)]


def shelve(blocks: Sequence[Sequence[Text]], width: int, gap: int = 3) -> list[Text]:
    """Blocks of lines, as many beside one another as fit, top-aligned; then the next ones below."""
    lines: list[Text] = []
    shelf: list[Text] = []
    for block in blocks:
        wide = max(line.cell_len for line in block)
        used = max((line.cell_len for line in shelf), default=0)
        if shelf and used + gap + wide > width:
            lines += shelf
            shelf, used = [], 0
        left = used + gap if shelf else 0
        for _ in range(len(block) - len(shelf)):
            shelf.append(Text())
        for line, addition in zip(shelf, block, strict=False):
            line.append(" " * (left - line.cell_len)).append_text(addition)
    return lines + shelf


def _grid(
    layout: Layout,
    number: int,
    width: int,
    palette: Palette,
    first: int,
    max_rows: int,
    glyphs: bool = True,
) -> Grid:
    """The grid of one slice of the leading dimensions; slices count in row-major order."""
    cells = BlockCells(layout, palette, first)

    def cell(row: int, column: int) -> Cell:
        return cells.cell(Spot(number, row, column))

    return draw(cells.rows, cells.columns, cell, width, max_rows, glyphs)
