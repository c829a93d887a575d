"""A target's final program: HLO as a picture, Shardy's MLIR as text."""

from __future__ import annotations

from dataclasses import replace

from rich.text import Text

from shardviz.compiler.compiled import Compiled
from shardviz.hlo.listing import list_hlo
from shardviz.render.palette import Palette
from shardviz.render.programs.hlo_picture import hlo_picture
from shardviz.sharding import Mesh

CUT = "…"


def program_view(compiled: Compiled, mesh: Mesh, width: int, palette: Palette) -> list[Text]:
    """A blank line, a heading and the program; lines of MLIR are cut at the page's edge."""
    if compiled.target == "shardy":
        heading = "Shardy's program, all devices at once: MLIR, not HLO"
        program = [_cut(line, width) for line in compiled.text.splitlines() if line.strip()]
    else:
        heading = f"{compiled.target}'s program on each device"
        if compiled.placement is not None:
            mesh = replace(mesh, device_order=compiled.placement.ids)
        program = hlo_picture(list_hlo(compiled.text, mesh), width, palette)
    return [Text(), Text(_fitting(heading, width), "bold"), *program]


def _fitting(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 1] + CUT


def _cut(line: str, width: int) -> Text:
    return Text(_fitting(line.rstrip().expandtabs(2), width))
