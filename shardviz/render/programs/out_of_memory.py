"""Memory that a device did not have: what asked for how much, and the largest arrays of the program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.lines import sentence, table
from shardviz.reports.entries import common_name, numberless
from shardviz.reports.failures import LargeArray, OutOfMemory
from shardviz.units import human_bytes

MOST = 8
"""Rows of a failure on a page that was not asked for more."""


def out_of_memory_lines(failures: Sequence[OutOfMemory], width: int, verbose: bool = False) -> list[Text]:
    """A sentence for each failure, and its arrays; alike ones of several layers in one row."""
    lines: list[Text] = []
    for failure in failures:
        lines += sentence(failure.words, width, lead="✗ ")
        groups: dict[object, list[LargeArray]] = {}
        for one in failure.arrays:
            key = numberless(one.name), one.shape, one.bytes, one.source
            groups.setdefault(key, []).append(one)
        ordered = sorted(groups.values(), key=lambda group: -sum(one.bytes for one in group))
        rows = [
            (
                human_bytes(sum(one.bytes for one in group)),
                human_bytes(padding) if (padding := sum(one.padding_bytes for one in group)) else "",
                group[0].shape + f" × {len(group):,}" * (len(group) > 1),
                common_name(one.name for one in group).rpartition("/")[2],
                (PurePath(group[0].source).name, "dim"),
            )
            for group in (ordered if verbose else ordered[:MOST])
        ]
        head = ("bytes", "padding", "largest arrays", "", "line") if rows else ()
        lines += table(rows, width, 2, {0, 1}, head, ((3,),), ("", " padding", "", "", ""))
        if left := len(ordered) - len(rows):
            lines.append(Text(f"  and {plural(left, 'more row')}", "dim"))
    return lines
