"""Arrays and specs as coloured words: ``A[b_X, d_Y]``, and what of it a device holds."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from shardviz.errors import plural
from shardviz.notation import write_book
from shardviz.render.palette import Palette
from shardviz.render.units import human_bytes, times
from shardviz.sharding import Layout, Mesh, PartitionSpec, ShardedArray


def axes_text(axes: Iterable[str], mesh: Mesh, palette: Palette, separator: str = ", ") -> Text:
    """Mesh axes, each in its colour: ``X, Y``."""
    return Text(separator).join(Text(axis, palette.axis(mesh, axis)) for axis in axes)


def array_text(array: ShardedArray, mesh: Mesh, palette: Palette) -> Text:
    """The array in the scaling book's notation, axes coloured: ``A[b_X, d_Y]``, ``Out[b, f]{U_Y}``."""
    if array.spec is None:
        return Text(f"{array.name}[{', '.join(array.dims)}]")
    return spec_text(array.name, array.dims, array.spec, mesh, palette)


def spec_text(name: str, dims: tuple[str, ...], spec: PartitionSpec, mesh: Mesh, palette: Palette) -> Text:
    """A spec over named dimensions in the scaling book's notation."""
    text = Text(write_book(name, dims, spec, mesh.axis_names))
    text.stylize("bold", 0, len(name))
    position = len(name)
    for marker, axes in (*zip(dims, spec.dims, strict=True), ("{U", spec.unreduced)):
        if not axes:
            continue
        position = text.plain.index(f"{marker}_", position) + len(marker) + 1
        for axis in axes:
            position = text.plain.index(axis, position)
            text.stylize(palette.axis(mesh, axis), position, position + len(axis))
            position += len(axis)
    return text


def caption_cells(layout: Layout, palette: Palette) -> list[Text]:
    """The array, its dtype, its shape and a device's share of it, as the cells of one table row."""
    array = layout.array
    return [
        array_text(array, layout.mesh, palette),
        Text(array.dtype),
        Text(f"{times(array.shape)} → {times(layout.shard_shape)} a device"),
        Text(human_bytes(layout.bytes_per_device)),
        Text(plural(layout.replicas, "copy", "copies")),
    ]
