"""The picture of a layout: which devices hold which block of the array, as a grid or as labelled slices.

Rows are the last dimension but one, columns the last; the dimensions before them cut the array into slices,
one grid each. A rank-1 array is one row, a scalar one cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.caption import array_text
from shardviz.render.layouts.grid import DIM, Cell, Edge, Grid, draw, visible
from shardviz.render.layouts.holders import holders, sum_labels
from shardviz.render.palette import PADDING, PARTIAL, Palette, glyph
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
        grid = _grid(layout, (0,) * len(leading), width, palette, first, max_rows)
        remark = [_remark(layout)] if grid.summarised else []
        return Picture(title, (*grid.lines, *remark), grid.top, grid.summarised)
    slices = [None if number is None else _unravel(number, leading) for number in visible(count, MAX_SLICES)]
    rows = max(max_rows // 2, 4)
    drawn = [block for block in slices if block is not None]
    grids = [_grid(layout, block, width, palette, first, rows) for block in drawn]
    if not all(grid.glyphs for grid in grids):
        grids = [_grid(layout, block, width, palette, first, rows, glyphs=False) for block in drawn]
    blocks = [
        [_slice_title(layout, block, palette), *grid.lines] for block, grid in zip(drawn, grids, strict=True)
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


def _slice_title(layout: Layout, block: tuple[int, ...], palette: Palette) -> Text:
    """Which part of the leading dimensions a slice shows: ``h 0:4 X0``."""
    title = Text()
    bounds = layout.slices((*block, *(0,) * min(layout.array.rank, 2)))
    for dim, index in enumerate(block):
        start, stop = bounds[dim]
        title.append("  " if dim else "").append(f"{layout.array.dims[dim]} {start}:{stop}")
        if layout.spec.dims[dim]:
            title.append(" ").append_text(_coordinates(layout, dim, palette)[0](index))
    return title


def _grid(
    layout: Layout,
    leading: tuple[int, ...],
    width: int,
    palette: Palette,
    first: int,
    max_rows: int,
    glyphs: bool = True,
) -> Grid:
    rank = layout.array.rank
    row_dim = rank - 2 if rank >= 2 else None
    column_dim = rank - 1 if rank >= 1 else None
    partials = layout.mesh.group_size(layout.spec.unreduced)

    def cell(row: int, column: int) -> Cell:
        block = (*leading, *(() if row_dim is None else (row,)), *(() if column_dim is None else (column,)))
        number = 0
        for index, parts in zip(block, layout.parts, strict=True):
            number = number * parts + index
        if partials > 1:
            labels = tuple(sum_labels(layout, block, partials))
        else:
            labels = tuple(holders(layout, block).labels())
        style = palette.shard(first + number)
        return Cell(labels, glyph(first + number), style, partials > 1, _padding(layout, block))

    rows, columns = _edge(layout, row_dim, palette), _edge(layout, column_dim, palette)
    return draw(rows, columns, cell, width, max_rows, glyphs)


def _padding(layout: Layout, block: tuple[int, ...]) -> float:
    """The part of a block that lies beyond the array's edge."""
    held = 1.0
    for (start, stop), size in zip(layout.slices(block), layout.shard_shape, strict=True):
        held *= (stop - start) / size if size else 1.0
    return 1.0 - held


def _edge(layout: Layout, dim: int | None, palette: Palette) -> Edge:
    if dim is None:
        return Edge(Text(), 1)
    title = Text(f"{layout.array.dims[dim]} {layout.array.shape[dim]}")
    labelings = _coordinates(layout, dim, palette) if layout.spec.dims[dim] else ()
    return Edge(title, layout.parts[dim], labelings)


def _coordinates(layout: Layout, dim: int, palette: Palette) -> Sequence[Callable[[int], Text]]:
    """Two ways to label a part of a dimension: ``X1 Y3`` and, shorter, ``1,3`` in the axes' colours."""
    axes, mesh = layout.spec.dims[dim], layout.mesh
    sizes = [mesh.axis_size(axis) for axis in axes]
    space = "" if all(len(axis) == 1 for axis in axes) else " "

    def long(index: int) -> Text:
        return Text(" ").join(
            Text(f"{axis}{space}{coordinate}", palette.axis(mesh, axis))
            for axis, coordinate in zip(axes, _unravel(index, sizes), strict=True)
        )

    def short(index: int) -> Text:
        return Text(",").join(
            Text(str(coordinate), palette.axis(mesh, axis))
            for axis, coordinate in zip(axes, _unravel(index, sizes), strict=True)
        )

    return long, short


def _unravel(index: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """The coordinates of a row-major index."""
    coordinates = []
    for size in reversed(sizes):
        index, coordinate = divmod(index, size)
        coordinates.append(coordinate)
    return tuple(reversed(coordinates))
