"""What moves from one answer about a model to another: splits, memory, collectives, seconds."""

from __future__ import annotations

from rich.text import Text

from shardviz.models.answer import ModelChange, MovedCollective
from shardviz.render.caption import axes_text
from shardviz.render.lines import columns, sentence, table
from shardviz.render.models.memory_bars import memory_rows
from shardviz.render.models.parameter_table import split_text
from shardviz.render.models.step_lines import PHASES
from shardviz.render.palette import Palette
from shardviz.units import human_bytes, seconds

ARROW = "→"
RIGHT = frozenset({3, 4})


def change_view(change: ModelChange, width: int, palette: Palette) -> list[Text]:
    """The same after a blank line."""
    return [Text(), *change_lines(change, width, palette)]


def change_lines(change: ModelChange, width: int, palette: Palette) -> list[Text]:
    """The parameters that are split otherwise, then what that changes."""
    lines = [Text("what moves", "bold")]
    if not change.parameters:
        return [*lines, *sentence("nothing: no parameter is split otherwise", width, 2)]
    rows = []
    for before, after in change.parameters:
        rows.append(
            [
                Text(after.name.removesuffix(".weight")),
                split_text(before.first.spec, before.first.mesh, palette),
                Text(ARROW),
                split_text(after.first.spec, after.first.mesh, palette),
                Text(_bytes(before.bytes_per_device, after.bytes_per_device)),
            ]
        )
    lines += table(rows, width, 2)
    pairs = zip(
        memory_rows(change.before.memory, change.before.question),
        memory_rows(change.after.memory, change.after.question),
        strict=True,
    )
    rows = [
        [Text(name.strip()), Text(_bytes(before, after))]
        for (name, before), (_, after) in pairs
        if before != after
    ]
    lines += table(rows, width, 2)
    lines += _collective_lines(change, width, palette)
    one, other = change.before.step, change.after.step
    if one is not None and other is not None:
        words = (
            f"a step takes {seconds(one.seconds)} {ARROW} {seconds(other.seconds)}, of which its collectives "
        )
        words += f"{seconds(one.communication_seconds)} {ARROW} {seconds(other.communication_seconds)}"
        lines += sentence(words, width, 2)
    return lines


def _collective_lines(change: ModelChange, width: int, palette: Palette) -> list[Text]:
    """A row for the collectives of each operation and axes in a phase of a part."""
    mesh = change.after.question.mesh
    rows = []
    for each in change.collectives:
        over = axes_text(each.axes, mesh, palette, ",")
        rows.append(
            [
                Text(each.part),
                Text(PHASES[each.phase]),
                Text(f"{each.op} over ").append_text(over),
                Text(_count(each)),
                Text(_bytes(*each.bytes)),
            ]
        )
    found = columns(rows, width, 2, RIGHT)
    return table(rows, width, 2) if found is None else found


def _count(each: MovedCollective) -> str:
    """``64 × → 128 ×``."""
    before, after = each.counts
    return f"{before} ×" if before == after else f"{before} × {ARROW} {after} ×"


def _bytes(before: int, after: int) -> str:
    return human_bytes(after) if before == after else f"{human_bytes(before)} {ARROW} {human_bytes(after)}"
