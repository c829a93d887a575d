"""Shardings in every notation, a line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text

from shardviz.errors import ShardvizError
from shardviz.notation import NOTATIONS, Notation, Reading
from shardviz.render.caption import mesh_text
from shardviz.render.lines import sentence, table
from shardviz.render.palette import Palette
from shardviz.sharding import Mesh


def translate_view(
    readings: Sequence[Reading],
    notation: Notation,
    written: Sequence[Mapping[str, str | ShardvizError]],
    mesh: Mesh | None,
    width: int,
    palette: Palette,
) -> list[Text]:
    """For each array the notations by name with the text in each, the one that was read marked; then why
    others have none, and the reader's notes."""
    lines: list[Text] = []
    for reading, said in zip(readings, written, strict=True):
        if len(readings) > 1:
            lines += table([[Text(reading.name or "", "bold")]], width)
        lines += _array(notation, said, width)
        for note in reading.notes:
            lines += sentence(note, width)
    if mesh is not None:
        lines += table([[Text.assemble("mesh ", mesh_text(mesh, palette))]], width)
    return lines


def _array(notation: Notation, written: Mapping[str, str | ShardvizError], width: int) -> list[Text]:
    rows, lacking = [], []
    for known in NOTATIONS:
        said = written[known.key]
        if isinstance(said, str):
            mark = Text("read", "dim") if known is notation else Text()
            rows.append([Text(known.key), Text(said, "bold"), Text(known.title, "dim"), mark])
        else:
            lacking += sentence(said.message, width, lead=f"– {known.key}: ", style="dim")
    return [*table(rows, width), *lacking]
