"""One array on a mesh: its picture, its share of every device in words, and, on request, every device."""

from __future__ import annotations

import math
from itertools import islice

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.caption import caption_cells, mesh_text, notes, repetition
from shardviz.render.layouts.layout_canvas import array_lines
from shardviz.render.lines import sentence, table
from shardviz.render.palette import Palette, glyph
from shardviz.sharding import DeviceShard, Layout

LISTED_DEVICES = 64


def layout_view(layout: Layout, width: int, palette: Palette, devices: bool = False) -> list[Text]:
    """The picture first, words under it; `devices` adds the table of up to `LISTED_DEVICES` devices."""
    lines = array_lines([[(layout, 0)]], width, palette)
    lines += [*repetition(math.prod(layout.parts), palette), Text()]
    lines += table([caption_cells(layout, palette)], width)
    lines += table([[Text.assemble("mesh ", mesh_text(layout.mesh, palette))]], width)
    for note in notes(layout):
        lines += sentence(note, width)
    if devices:
        lines += [Text(), *device_table(layout, width, palette, LISTED_DEVICES)]
    for line in lines:
        line.rstrip()
    return lines


def device_table(layout: Layout, width: int, palette: Palette, limit: int) -> list[Text]:
    """One line a device for the first `limit` devices of the mesh, in row-major order."""
    rows = [[Text(heading, "bold") for heading in ("device", "mesh", "shard", "holds")]]
    rows += [_cells(layout, device, palette) for device in islice(layout, limit)]
    lines = table(rows, width, right=frozenset({0}))
    more = len(layout) - limit
    if more > 0:
        lines += sentence(f"and {plural(more, 'more device')}: --json lists all", width, style="dim")
    return lines


def _cells(layout: Layout, device: DeviceShard, palette: Palette) -> list[Text]:
    mesh = layout.mesh
    place = Text(" ").join(
        Text(f"{name}={coordinate}", palette.axis(mesh, name))
        for name, coordinate in zip(mesh.axis_names, device.coords, strict=True)
    )
    name = layout.array.name
    held = ", ".join(f"{start}:{stop}" for start, stop in device.slices)
    return [
        Text(str(device.id)),
        place,
        Text(f" {glyph(device.shard)} ", palette.shard(device.shard)),
        Text(f"{name}[{held}]"),
    ]
