"""One array: a page of its picture and words, and its cells in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from rich.text import Text

from shardviz.errors import QuestionError, plural
from shardviz.lazy_names import LazyImports
from shardviz.render.caption import axes_text, caption_cells, coordinates, mesh_text, notes, repetition
from shardviz.render.layouts.cells import LISTED, CellIndex, Cells, DeviceCells, Holders
from shardviz.render.layouts.layout_canvas import array_lines
from shardviz.render.lines import sentence, sentences
from shardviz.render.palette import DIM, Palette, glyph
from shardviz.render.tables import Cell, records, table
from shardviz.sharding import Layout
from shardviz.units import times, whole_bytes

with LazyImports():
    from shardviz.hardware import machine as machines

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.hardware.placement import Placement

AXES = ("x", "y", "z")
PLACES = 16
"""Devices of one cell whose places are listed."""


class DevicePlacement:
    """The places of a mesh's devices on a target, in words."""

    def __init__(self, target: str, placement: Placement) -> None:
        self.target, self.placement = target, placement
        self._has_cores = placement.unit == "slice" and any(coords.core for coords in placement.places)
        self._has_slices = placement.units > 1

    def words(self, position: int, device: int) -> str:
        """``x1 y2`` of a torus, ``GPU 3 of node 1``; and the target's number of the device, if another."""
        coords, there = self.placement.places[position], self.placement.ids[position]
        number = f" (device {there})" if there != device else ""
        if self.placement.unit == "node":
            return f"GPU {coords.core}" + f" of node {coords.slice}" * self._has_slices + number
        words = " ".join(f"{axis}{at}" for axis, at in zip(AXES, coords.coords, strict=False))
        words += f" core {coords.core}" * self._has_cores + f" slice {coords.slice}" * self._has_slices
        return words + number


def device_placements(resolved: ResolvedProblem) -> list[DevicePlacement]:
    """The mesh on the machine that is named, and on the hardware of each target of its size, where JAX places
    it there."""
    mesh, by_name = resolved.problem.mesh, {}
    if resolved.named is not None and resolved.named.placement is not None:
        by_name[resolved.named.machine.name] = resolved.named.placement
    for name, machine in ((target.name, target.machine) for target in resolved.targets):
        if machine is not None and machine.devices == mesh.size and name not in by_name:
            with suppress(QuestionError):
                if (placement := machines.place_mesh(machine, mesh).placement) is not None:
                    by_name[name] = placement
    return [DevicePlacement(name, placement) for name, placement in by_name.items()]


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
    layout, copies, block = cells.layout, cells.copies, cells.block(index)
    mesh, count = layout.mesh, layout.replicas * copies.partials
    number = Text(str(mesh.device_id(position)), "bold")
    if is_device or count == 1:
        rows.append([Text("device", DIM), number, coordinates(mesh, position, cells.palette)])
    else:  # all devices of a block, and the mesh coordinates that they have: ``X0 Y0–3``
        every = coordinates(mesh, copies.position(block), cells.palette, split=layout.spec.axes)
        held = Text(_ids(copies.holders(block)), "bold"), every, Text(plural(count, "copy", "copies"))
        rows.append([Text("mesh", DIM), every] if copies.partials > 1 else [Text("devices", DIM), *held])
    if is_device and layout.replicas > 1:
        ids = _ids(copies.holders(block, layout.partial(position)), without=mesh.device_id(position))
        rows.append([Text("also on", DIM), Text(ids), Text(plural(layout.replicas, "copy", "copies"))])
    elif is_device and copies.partials == 1:
        rows.append([Text("also on", DIM), Text("no other device")])
    if copies.partials > 1:  # the devices whose values are to be added up, and the part that a device has
        axes = axes_text(sorted(layout.spec.unreduced, key=mesh.stride, reverse=True), mesh, cells.palette)
        labels = list(copies.labels(block))
        members = next((label for label in labels if len(label) <= width * 2 // 3), labels[-1])
        sums = f"{copies.partials} partial sums over "
        if is_device:
            sums = f"partial sum {layout.partial(position) + 1} of {copies.partials} over "
        rows += [[Text("holds", DIM), Text(sums) + axes], [Text("the sum", DIM), Text(members)]]
    shown, count = [position], 1 if is_device else count
    if not is_device:  # the copies of each partial sum one after another
        offsets = copies.offsets if layout.replicas <= LISTED else copies.offsets[:-1]
        bases = (copies.position(block, partial) for partial in range(copies.partials))
        shown = list(islice((base + offset for base in bases for offset in offsets), PLACES))
    for placement in placements:
        places = [placement.words(each, mesh.device_id(each)) for each in shown]
        if count == 1 and placement.placement.unit == "slice":
            places = [f"chip {places[0]}"]
        more = [Text("…")] * (count > len(places))
        rows.append([Text(placement.target, DIM), *map(Text, places), *more])
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


def _ids(held: Holders, without: int | None = None) -> str:
    """``0, 1, 2, 3``; of many the first ones and the last."""
    ids = [id_ for id_ in held.first if id_ != without]
    if held.count <= PLACES:
        return ", ".join(map(str, ids))
    last = [held.last] if held.last != without else []
    return ", ".join(map(str, ids[:6])) + ", …, " + ", ".join(map(str, last or ids[-1:]))


def layout_view(layout: Layout, width: int, palette: Palette, devices: bool = False) -> list[Text]:
    """The picture first, words under it; `devices` adds the table of up to `LISTED` devices."""
    mesh = layout.mesh
    lines = array_lines([[(layout, 0)]], width, palette)
    lines += [*repetition(math.prod(layout.parts), palette), Text()]
    lines += table([caption_cells(layout, palette)], width)
    lines += table([[Text.assemble("mesh ", mesh_text(mesh, palette))]], width)
    lines += sentences(notes(layout), width)
    if devices:
        rows: list[list[Cell]] = []
        for device in islice(layout, LISTED):
            places = zip(mesh.axis_names, device.coords, strict=True)
            axes = (Text(f"{name}={at}", palette.axis(mesh, name)) for name, at in places)
            rows.append([str(device.id), Text(" ").join(axes), "", ("nothing", "dim")])
            if layout.spec.only_device in (None, device.id):
                held = ", ".join(f"{start}:{stop}" for start, stop in device.slices)
                shard = (f" {glyph(device.shard)} ", palette.shard(device.shard))
                rows[-1][2:] = shard, f"{layout.array.name}[{held}]"
        lines += [Text(), *table(rows, width, 0, (">device", "mesh", "shard", "holds"))]
        if (more := len(layout) - LISTED) > 0:
            lines += sentence(f"and {plural(more, 'more device')}: --json lists all", width, style="dim")
    for line in lines:
        line.rstrip()
    return lines
