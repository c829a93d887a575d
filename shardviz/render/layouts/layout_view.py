"""One array: a page of its picture and words, and its cells in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.caption import axes_text, caption_cells, coordinates, mesh_text, notes, repetition
from shardviz.render.layouts.cells import LISTED, CellIndex, Cells, DeviceCells, Holders
from shardviz.render.layouts.layout_canvas import array_lines
from shardviz.render.lines import Cell, records, sentence, sentences, table
from shardviz.render.palette import DIM, Palette, glyph
from shardviz.sharding import DeviceShard, Layout
from shardviz.units import times, whole_bytes

if TYPE_CHECKING:
    from shardviz.hardware.placement import Placement

AXES = ("x", "y", "z")
PLACES = 16
"""Devices of one cell whose places are listed."""


class DevicePlacement:
    """The places of a mesh's devices on a target, in words."""

    def __init__(self, target: str, placement: Placement) -> None:
        self.target = target
        self.placement = placement
        self._has_cores = placement.unit == "slice" and any(coords.core for coords in placement.places)
        self._has_slices = placement.units > 1

    def words(self, position: int, device: int) -> str:
        """``x1 y2`` of a torus, with core and slice where there are several; ``GPU 3 of node 1``. A device
        that the target numbers otherwise has that number, too."""
        coords, there = self.placement.places[position], self.placement.ids[position]
        number = f" (device {there})" if there != device else ""
        if self.placement.unit == "node":
            return f"GPU {coords.core}" + f" of node {coords.slice}" * self._has_slices + number
        words = " ".join(f"{axis}{at}" for axis, at in zip(AXES, coords.coords, strict=False))
        words += f" core {coords.core}" * self._has_cores + f" slice {coords.slice}" * self._has_slices
        return words + number


def cell_details(
    cells: Cells,
    index: CellIndex,
    width: int,
    placements: Sequence[DevicePlacement] = (),
    has_bytes: bool = True,
) -> list[Text]:
    """A cell in words: the slice and its bytes, the devices, their places on each target, notes."""
    position = cells.position(index)
    is_device = isinstance(cells, DeviceCells)
    *data, size = _data(cells, index, f" of {times(cells.layout.array.shape)}")
    rows = [[*data, size] if has_bytes else data]
    rows.append(_device(cells, position) if is_device else _devices(cells, index))
    if is_device:
        rows += _others(cells, index, position)
    if cells.copies.partials > 1:
        rows += _sum(cells, index, position if is_device else None, width)
    shown = [position] if is_device else list(islice(_positions(cells, index), PLACES))
    count = 1 if is_device else cells.layout.replicas * cells.copies.partials
    rows += [_places(placement, cells, shown, count) for placement in placements]
    indent = max(label.cell_len for label, *_ in rows) + 2
    lines: list[Text] = []
    for label, *words in rows:
        for place, line in enumerate(records([words], width - indent)):
            line.rstrip()
            start = label if not place else Text()
            # What goes on is not indented any further: the labels' column does that.
            rest = line[2:] if place else line
            lines.append(Text.assemble(start, " " * (indent - start.cell_len), rest))
    return lines + sentences(notes(cells.layout), width, style="dim")


def device_lines(arrays: Sequence[Cells], position: int, width: int) -> list[Text]:
    """The slice of each array that the device at a position holds, a line for each, or more if too long."""
    return table(
        [
            _data(cells, cells.index_of(position))
            if cells.layout.holds_data(position)
            else [Text.assemble("   ", " ", (cells.layout.array.name, "bold")), Text("nothing", DIM), Text()]
            for cells in arrays
        ],
        width,
    )


def _data(cells: Cells, index: CellIndex, whole: str = "") -> list[Text]:
    """The glyph, the array, its slice in every dimension, and the shape, of the `whole`, and bytes on each
    device."""
    layout = cells.layout
    number = cells.number(index)
    bounds = layout.slices(cells.block(index))
    name = Text.assemble(
        (f" {glyph(number)} ", cells.palette.shard(number)), " ", (layout.array.name, "bold")
    )
    slices = cells.slice_text(index)
    shape = tuple(stop - start for start, stop in bounds)
    padded = f", padded to {times(layout.shard_shape)}" * (shape != layout.shard_shape)
    held = f"{times(shape)}{whole * (shape != layout.array.shape)} {layout.array.dtype}"
    sizes = Text(held + padded), Text(whole_bytes(layout.bytes_per_device))
    return [name, *([Text(slices, "bold")] if slices else []), *sizes]


def _device(cells: Cells, position: int) -> list[Text]:
    number = Text(str(cells.layout.mesh.device_id(position)), "bold")
    return [Text("device", DIM), number, coordinates(cells.layout.mesh, position, cells.palette)]


def _devices(cells: Cells, index: CellIndex) -> list[Text]:
    """All devices of a block, and the mesh coordinates that they have: ``X0 Y0–3``."""
    layout, copies = cells.layout, cells.copies
    block = cells.block(index)
    position = copies.position(block)
    count = layout.replicas * copies.partials
    if count == 1:
        return _device(cells, position)
    text = coordinates(layout.mesh, position, cells.palette, split=layout.spec.axes)
    if copies.partials > 1:
        return [Text("mesh", DIM), text]
    held = copies.holders(block)
    return [Text("devices", DIM), Text(_ids(held), "bold"), text, Text(plural(count, "copy", "copies"))]


def _others(cells: Cells, index: CellIndex, position: int) -> list[list[Text]]:
    layout = cells.layout
    if layout.replicas == 1:
        return [] if cells.copies.partials > 1 else [[Text("also on", DIM), Text("no other device")]]
    held = cells.copies.holders(cells.block(index), layout.partial(position))
    ids = _ids(held, without=layout.mesh.device_id(position))
    return [[Text("also on", DIM), Text(ids), Text(plural(layout.replicas, "copy", "copies"))]]


def _sum(cells: Cells, index: CellIndex, position: int | None, width: int) -> list[list[Text]]:
    """The devices whose values are to be added up, and the part that a device has."""
    layout, copies = cells.layout, cells.copies
    over = sorted(layout.spec.unreduced, key=layout.mesh.stride, reverse=True)
    axes = axes_text(over, layout.mesh, cells.palette)
    labels = list(copies.labels(cells.block(index)))
    members = next((label for label in labels if len(label) <= width * 2 // 3), labels[-1])
    which = f"partial sum {layout.partial(position) + 1} of " if position is not None else ""
    part = Text(f"{which}{copies.partials}" + " partial sums" * (not which) + " over ").append_text(axes)
    return [[Text("holds", DIM), part], [Text("the sum", DIM), Text(members)]]


def _places(placement: DevicePlacement, cells: Cells, positions: Sequence[int], count: int) -> list[Text]:
    words = [placement.words(position, cells.layout.mesh.device_id(position)) for position in positions]
    if count == 1 and placement.placement.unit == "slice":
        words = [f"chip {words[0]}"]
    more = ["…"] if count > len(words) else []
    return [Text(placement.target, DIM), *map(Text, words), *map(Text, more)]


def _positions(cells: Cells, index: CellIndex) -> Iterable[int]:
    """Positions of the devices of a block, the copies of each partial sum one after another."""
    copies = cells.copies
    block = cells.block(index)
    offsets = copies.offsets if cells.layout.replicas <= LISTED else copies.offsets[:-1]
    for partial in range(copies.partials):
        base = copies.position(block, partial)
        for offset in offsets:
            yield base + offset


def _ids(held: Holders, without: int | None = None) -> str:
    """``0, 1, 2, 3``; of many the first ones and the last."""
    ids = [id_ for id_ in held.first if id_ != without]
    if held.count <= PLACES:
        return ", ".join(map(str, ids))
    last = [held.last] if held.last != without else []
    return ", ".join(map(str, ids[:6])) + ", …, " + ", ".join(map(str, last or ids[-1:]))


LISTED_DEVICES = 64


def layout_view(layout: Layout, width: int, palette: Palette, devices: bool = False) -> list[Text]:
    """The picture first, words under it; `devices` adds the table of up to `LISTED_DEVICES` devices."""
    lines = array_lines([[(layout, 0)]], width, palette)
    lines += [*repetition(math.prod(layout.parts), palette), Text()]
    lines += table([caption_cells(layout, palette)], width)
    lines += table([[Text.assemble("mesh ", mesh_text(layout.mesh, palette))]], width)
    lines += sentences(notes(layout), width)
    if devices:
        rows = [_cells(layout, device, palette) for device in islice(layout, LISTED_DEVICES)]
        lines += [Text(), *table(rows, width, 0, {0}, ("device", "mesh", "shard", "holds"))]
        if (more := len(layout) - LISTED_DEVICES) > 0:
            lines += sentence(f"and {plural(more, 'more device')}: --json lists all", width, style="dim")
    for line in lines:
        line.rstrip()
    return lines


def _cells(layout: Layout, device: DeviceShard, palette: Palette) -> list[Cell]:
    mesh = layout.mesh
    text = Text(" ").join(
        Text(f"{name}={coordinate}", palette.axis(mesh, name))
        for name, coordinate in zip(mesh.axis_names, device.coords, strict=True)
    )
    if layout.spec.only_device not in (None, device.id):
        return [str(device.id), text, "", ("nothing", "dim")]
    held = ", ".join(f"{start}:{stop}" for start, stop in device.slices)
    shard = (f" {glyph(device.shard)} ", palette.shard(device.shard))
    return [str(device.id), text, shard, f"{layout.array.name}[{held}]"]
