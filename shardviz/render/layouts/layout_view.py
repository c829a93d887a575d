"""One array on a mesh: its picture, its share of every device in words, and, on request, every device."""

from __future__ import annotations

import math

from rich.text import Text

from shardviz.render.caption import caption_cells
from shardviz.render.layouts.device_table import device_table
from shardviz.render.layouts.picture import notes, picture, repetition
from shardviz.render.lines import sentence, table
from shardviz.render.palette import Palette
from shardviz.render.plans.question_view import mesh_text
from shardviz.sharding import Layout

LISTED_DEVICES = 64


def layout_view(layout: Layout, width: int, palette: Palette, devices: bool = False) -> list[Text]:
    """The picture first, words under it; `devices` adds the table of up to `LISTED_DEVICES` devices."""
    drawn = picture(layout, width, palette)
    lines = [drawn.title, *drawn.lines, *repetition(math.prod(layout.parts), palette), Text()]
    lines += table([caption_cells(layout, palette)], width)
    lines += table([[Text.assemble("mesh ", mesh_text(layout.mesh, palette))]], width)
    for note in notes(layout):
        lines += sentence(note, width)
    if devices:
        lines += [Text(), *device_table(layout, width, palette, LISTED_DEVICES)]
    for line in lines:
        line.rstrip()
    return lines
