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


def checkpoint_lines(restore: Restore, width: int, palette: Palette, verbose: bool = False) -> list[Text]:
    """The checkpoint, what restoring it reads, and a row for the arrays that are alike, the largest first."""
    checkpoint, split, is_moved = restore.checkpoint, restore.split, restore.is_moved
    model, saved = checkpoint.model, checkpoint.mesh or split.mesh
    untyped = [one.array.name for one in restore.arrays if one.bytes is None]
    size = f"{model.elements:,} elements" if untyped else human_bytes(model.nbytes)
    count = plural(len(model.parameters) + len(checkpoint.shapeless), "array")
    lines = sentence(f"{count}, {size}", width, lead=f"{model.name}  ")
    if model.source != model.name:
        lines += sentence(model.source, width, style="dim")
    if checkpoint.mesh is not None:
        lines.append(Text("saved on mesh ").append_text(mesh_text(checkpoint.mesh, palette)))
    if is_moved:
        lines.append(Text("restored on mesh ").append_text(mesh_text(split.mesh, palette)))
        by = (
            "as saved, over the axes that this mesh has"
            if split.rules.function
            else f"rules {split.rules.name}"
        )
        lines += sentence(by, width, style="dim")
    lines += [Text(), *sentences(_words(restore, untyped), width), Text()]
    ordered = sorted(restore.arrays, key=lambda one: -one.array.elements)
    rows: list[Sequence[Cell]] = [
        (
            one.array.name,
            f"{own.dtype or 'unknown dtype'} {times(own.shape)}",
            ("not sharded", "dim") if own.spec is None else split_text(own.spec, saved, palette),
            split_text(one.array.first.spec, split.mesh, palette) if is_moved else "",
            "?" if one.bytes is None else human_bytes(one.bytes),
            f"{one.array.first.replicas:,}",
            percent(one.held) if is_moved else "",
        )
        for one in (ordered if verbose else ordered[:MOST])
        for own in (one.array.first.parameter,)
    ]
    restored, held = ("restored", "held") if is_moved else ("", "")
    heads = ("array", "shape", "saved", restored, "per device", "copies", held)
    lines += table(rows, width, 0, {4, 5, 6}, heads, ((5,), (5, 6)), style="dim")
    if left := len(ordered) - len(rows):
        lines.append(Text(f"and {plural(left, 'more row')}", "dim"))
    return lines + (rule_lines(split, width) if is_moved else [])


def _words(restore: Restore, untyped: Sequence[str]) -> Iterator[str]:
    """``each device needs 4 GiB, and held 25 % of that when it was saved``, and what is not known."""
    needed, shapeless = restore.bytes, restore.checkpoint.shapeless
    if needed and restore.is_moved:
        held = percent(restore.held_bytes / needed)
        yield f"each device needs {human_bytes(needed)}, and held {held} of that when it was saved"
        yield f"the stored pieces that it reads, each whole, have {human_bytes(restore.piece_bytes)}"
    elif needed:
        yield f"each device holds {human_bytes(needed)}"
    yield f"unknown dtype, in no figure: {some(untyped)}" if untyped else ""
    yield f"unknown shape: {some(shapeless)}" if shapeless else ""
    if untyped or shapeless:
        hint = "; --dtype bf16 assumes one" if untyped else ""
        yield f"tensorstore, installed beside shardviz, reads them from the checkpoint's database{hint}"
