"""A checkpoint: its arrays as they were saved and as they are restored, and what each device reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from shardviz.errors import plural
from shardviz.models.checkpoint import Restore
from shardviz.render.caption import mesh_text, split_text
from shardviz.render.lines import Cell, sentence, sentences, table
from shardviz.render.model_view import rule_lines, some
from shardviz.render.palette import Palette
from shardviz.render.times.report import percent
from shardviz.units import human_bytes, times

MOST = 24
"""Rows of a page that was not asked for more."""
UNKNOWN = "unknown dtype"


def checkpoint_lines(restore: Restore, width: int, palette: Palette, verbose: bool = False) -> list[Text]:
    """The checkpoint, what restoring it reads, and a row for the arrays that are alike, the largest first."""
    checkpoint, split = restore.checkpoint, restore.split
    model = checkpoint.model
    count = plural(len(model.parameters) + len(checkpoint.shapeless), "array")
    size = f"{count}, {model.elements:,} elements"
    if not restore.untyped:
        size = f"{count}, {human_bytes(model.nbytes)}"
    lines = sentence(size, width, lead=f"{model.name}  ") + sentence(model.source, width, style="dim")
    if checkpoint.mesh is not None:
        lines.append(Text("saved on mesh ").append_text(mesh_text(checkpoint.mesh, palette)))
    if restore.is_moved:
        lines.append(Text("restored on mesh ").append_text(mesh_text(split.mesh, palette)))
        by = (
            "as saved, over the axes that this mesh has"
            if split.rules.function
            else f"rules {split.rules.name}"
        )
        lines += sentence(by, width, style="dim")
    lines += [Text(), *sentences(_words(restore), width), Text()]
    rows: list[Sequence[Cell]] = []
    ordered = sorted(restore.arrays, key=lambda one: -one.array.elements)
    for one in ordered if verbose else ordered[:MOST]:
        first, own = one.array.first, one.array.first.parameter
        rows.append(
            [
                one.array.name,
                f"{own.dtype or UNKNOWN} {times(own.shape)}",
                ("not sharded", "dim")
                if own.spec is None
                else split_text(own.spec, checkpoint.mesh or split.mesh, palette),
                split_text(first.spec, split.mesh, palette) if restore.is_moved else "",
                "?" if one.bytes is None else human_bytes(one.bytes),
                f"{first.replicas:,}",
                percent(one.held) if restore.is_moved else "",
            ]
        )
    restored, held = ("restored", "held") if restore.is_moved else ("", "")
    heads = ("array", "shape", "saved", restored, "per device", "copies", held)
    lines += table(rows, width, 0, {4, 5, 6}, heads, ((5,), (5, 6)), style="dim")
    if left := len(ordered) - len(rows):
        lines.append(Text(f"and {plural(left, 'more row')}", "dim"))
    return lines + (rule_lines(split, width) if restore.is_moved else [])


def _words(restore: Restore) -> Iterator[str]:
    """``each device reads 4 GiB, of which it held 25 % when they were saved``, and what is not known."""
    typed = restore.bytes
    if typed and restore.is_moved:
        held = percent(restore.held_bytes / typed)
        yield f"each device needs {human_bytes(typed)}, and held {held} of that when it was saved"
        yield f"the stored pieces that it reads, each whole, have {human_bytes(restore.piece_bytes)}"
    elif typed:
        yield f"each device holds {human_bytes(typed)}"
    if restore.untyped:
        yield f"unknown dtype, in no figure: {some([array.name for array in restore.untyped])}"
    if restore.checkpoint.shapeless:
        yield f"unknown shape: {some(restore.checkpoint.shapeless)}"
    if restore.untyped or restore.checkpoint.shapeless:
        hint = "; --dtype bf16 assumes one" if restore.untyped else ""
        yield f"tensorstore, installed beside shardviz, reads them from the checkpoint's database{hint}"
