"""The parameters of a model as rows: groups of layers that open and fold, each with a bar of its bytes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from rich.text import Text

from shardviz.models.splitting import FoldedParameter, SplitModel, folded
from shardviz.render.lines import bar, columns
from shardviz.render.model_view import layer_groups, split_text
from shardviz.render.palette import Palette
from shardviz.units import human_bytes, times

OPEN, FOLDED = "▾", "▸"
BAR = 10
"""Columns of a bar."""
SIZE = 3
"""The place of a device's bytes among the cells."""
KEPT = ((0, 1, 2, SIZE, 4), (0, 2, SIZE, 4), (0, 2, SIZE))
"""The cells of a row that are shown, by the room that there is."""


@dataclass(frozen=True)
class TreeRow:
    """A row: a group of layers, whose `parameter` is None, or a parameter within one or beside them."""

    name: str
    group: str
    parameter: FoldedParameter | None
    count: int
    bytes_per_device: int
    is_changed: bool = False


def tree_rows(
    split: SplitModel, base: SplitModel, closed: Collection[str], found_by: str = ""
) -> list[TreeRow]:
    """All rows in order, without those within groups that are `closed`; `base` is without changes. Of those
    that are `found_by` words only the parameters whose names have them, wherever they are."""
    before = {each.parameter.name: each.spec for each in base.parameters}
    words = found_by.lower().split()
    rows = []
    for group, members in layer_groups(folded(split.parameters)):
        if group and not words:
            held = sum(each.bytes_per_device for _, each in members)
            rows.append(TreeRow(group, group, None, max(each.count for _, each in members), held))
        if group in closed and not words:
            continue
        for name, each in members:
            if not all(word in each.first.parameter.name.lower() for word in words):
                continue
            is_changed = before[each.first.parameter.name] != each.first.spec
            rows.append(TreeRow(name, group, each, each.count, each.bytes_per_device, is_changed))
    return rows


def row_texts(rows: list[TreeRow], closed: Collection[str], width: int, palette: Palette) -> list[Text]:
    """A line for each row: name, shape, split, what a device holds of all layers, and that as a bar.

    Where there is no room, shapes go first, then the bars.
    """
    most = max((row.bytes_per_device for row in rows), default=0)
    cells = []
    for row in rows:
        drawn = Text(bar(row.bytes_per_device, most, BAR), palette.lanes["memory"])
        cells.append([*_cells(row, closed, palette), drawn])
    for kept in KEPT:
        chosen = [[row[place] for place in kept] for row in cells]
        lines = columns(chosen, width, right=frozenset({kept.index(SIZE)}))
        if lines is not None:
            return lines
    return [_cut(Text("  ").join(row), width) for row in chosen]


def _cut(line: Text, width: int) -> Text:
    line.truncate(width, overflow="ellipsis")
    return line


def _cells(row: TreeRow, closed: Collection[str], palette: Palette) -> list[Text]:
    held = Text(human_bytes(row.bytes_per_device))
    if row.parameter is None:
        mark = FOLDED if row.group in closed else OPEN
        return [Text(f"{mark} {row.name}", "bold"), Text(f"× {row.count}"), Text(), held]
    first = row.parameter.first
    split = split_text(first.spec, first.mesh, palette) if first.is_matched else Text("no rule", "italic")
    if row.is_changed:
        split.append(" *", "bold")
    name = row.name.removesuffix(".weight")
    return [Text(f"{'  ' * (1 + bool(row.group))}{name}"), Text(times(first.parameter.shape)), split, held]
