"""What stands at the edges of a layout's cells: dimensions, mesh coordinates, slices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text

from shardviz.render.layouts.grid import Edge
from shardviz.render.palette import Palette
from shardviz.sharding import Layout, Mesh


def edge(layout: Layout, dim: int | None, palette: Palette) -> Edge:
    """The edge along a dimension: its name and size, and the coordinates of its parts; None has neither."""
    if dim is None:
        return Edge(Text(), 1)
    title = Text(f"{layout.array.dims[dim]} {layout.array.shape[dim]}")
    axes = layout.spec.dims[dim]
    return Edge(title, layout.parts[dim], coordinates(axes, layout.mesh, palette) if axes else ())


def coordinates(axes: Sequence[str], mesh: Mesh, palette: Palette) -> Sequence[Callable[[int], Text]]:
    """Two ways to label a place along axes: ``X1 Y3`` and, shorter, ``1,3`` in the axes' colours."""
    sizes = [mesh.axis_size(axis) for axis in axes]
    space = "" if all(len(axis) == 1 for axis in axes) else " "

    def long(index: int) -> Text:
        return Text(" ").join(
            Text(f"{axis}{space}{coordinate}", palette.axis(mesh, axis))
            for axis, coordinate in zip(axes, unravel(index, sizes), strict=True)
        )

    def short(index: int) -> Text:
        return Text(",").join(
            Text(str(coordinate), palette.axis(mesh, axis))
            for axis, coordinate in zip(axes, unravel(index, sizes), strict=True)
        )

    return long, short


def slice_title(layout: Layout, block: tuple[int, ...], palette: Palette) -> Text:
    """Which part of the leading dimensions a slice shows: ``h 0:4 X0``."""
    title = Text()
    bounds = layout.slices((*block, *(0,) * min(layout.array.rank, 2)))
    for dim, index in enumerate(block):
        start, stop = bounds[dim]
        title.append("  " if dim else "").append(f"{layout.array.dims[dim]} {start}:{stop}")
        if axes := layout.spec.dims[dim]:
            title.append(" ").append_text(coordinates(axes, layout.mesh, palette)[0](index))
    return title


def padding(layout: Layout, block: tuple[int, ...]) -> float:
    """The part of a block (0 to 1) that lies beyond the array's edge."""
    held = 1.0
    for (start, stop), size in zip(layout.slices(block), layout.shard_shape, strict=True):
        held *= (stop - start) / size if size else 1.0
    return 1.0 - held


def unravel(index: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """The coordinates of a row-major index."""
    found = []
    for size in reversed(sizes):
        index, coordinate = divmod(index, size)
        found.append(coordinate)
    return tuple(reversed(found))
