"""A program's arrays: a table for each kind, the largest first, then what of them is waste."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import PurePath

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.caption import split_text
from shardviz.render.lines import Cell, as_text, columns, sentence, sentences, table
from shardviz.render.palette import Palette
from shardviz.reports.arrays import ArrayKind, Mark, ProgramArray, alike_arrays
from shardviz.reports.entries import common_name
from shardviz.sharding import Mesh
from shardviz.units import human_bytes, times

TITLES: dict[ArrayKind, str] = {
    "argument": "arguments",
    "slice": "slices of arguments in a loop",
    "constant": "constants",
    "carry": "carried by loops",
    "stacked": "written by loops",
    "residual": "residuals: made forward, read backward",
    "temporary": "largest intermediates",
    "output": "outputs",
}
MOST = 6
"""Rows of a kind on a page that was not asked for more."""
FEW = 8
"""Wastes on such a page."""


def array_lines(
    arrays: Sequence[ProgramArray],
    mesh: Mesh,
    width: int,
    palette: Palette,
    verbose: bool = False,
) -> list[Text]:
    """The tables and the wastes; alike arrays of several layers in one row."""
    lines: list[Text] = []
    for kind, of_kind in groupby(arrays, lambda one: one.kind):
        groups = alike_arrays(of_kind)
        shown = groups if verbose else groups[:MOST]
        held = sum(one.bytes for group in groups for one in group)
        lines += [Text(), *sentence(f"  {human_bytes(held)} per device", width, lead=TITLES[kind])]
        rows = [_cells(group, mesh, palette) for group in shown]
        lines += table(rows, width, 2, {4, 5}, HEADINGS, ((6,), (6, 1)))
        if rest := groups[len(shown) :]:
            left = sum(one.bytes for group in rest for one in group)
            lines.append(Text(f"  and {plural(len(rest), 'more row')}, {human_bytes(left)}", "dim"))
    return lines + _waste_lines(arrays, width, verbose)


def array_rows(
    groups: Iterable[Sequence[ProgramArray]], mesh: Mesh, palette: Palette, width: int
) -> list[Text]:
    """A heading and a line for each of some groups of alike arrays, what matters most first: a window cuts
    them off. A name takes half of the `width` at most."""
    rows: list[list[Cell]] = [["", "per device", "spec", "copies", "shape", "kind", "waste"]]
    for group in groups:
        name, shape, spec, host, held, copies, line = _cells(group, mesh, palette)
        name = as_text(name)
        name = name if name.cell_len <= width // 2 else Text("…").append_text(name[1 - width // 2 :])
        marks = ", ".join(mark.kind for mark in group[0].marks)
        rows.append([name, held, spec, copies, shape, group[0].kind, marks, host, line])
    return columns(rows, ENDLESS, 0, {1, 3}) or []


def array_details(group: Sequence[ProgramArray], width: int) -> list[Text]:
    """Sentences on alike arrays: their names, the spec that was asked for, a device's part, the waste."""
    one = group[0]
    words = f"{one.kind} {common_name(each.name for each in group)}{f' × {len(group):,}' * (len(group) > 1)}"
    lines = sentence(words, width, style="bold")
    place = "on the host" * (one.memory_kind == "host"), PurePath(one.source).name
    part = ", ".join(filter(None, (f"{times(one.part)} per device", *place)))
    asked = f"the program asks for {one.asked}" if one.asked is not None else ""
    lines += sentences([part, asked], width)
    return lines + sentences((f"{mark.kind}: {mark.words}" for mark in one.marks), width)


ENDLESS = 10**6
"""Columns of a line that is cut off where it is shown."""
HEADINGS = ("", "shape", "spec", "", "per device", "copies", "line")


def _cells(group: Sequence[ProgramArray], mesh: Mesh, palette: Palette) -> list[Cell]:
    one = group[0]
    shape = times(one.part if one.shape is None else one.shape)
    named = one.rule or ", ".join(name or "_" for name in one.logical)
    logical = f"  ({named})" if named else ""
    return [
        Text(_name(group)).append(logical, "dim"),
        f"{one.dtype} {shape}" + " per device" * (one.shape is None),
        ("?", "dim") if one.spec is None else split_text(one.spec, mesh, palette),
        ("host", "bold") if one.memory_kind == "host" else "",
        human_bytes(sum(each.bytes for each in group)),
        "?" if one.copies is None else f"{one.copies:,}",
        (PurePath(one.source).name, "dim"),
    ]


def _name(group: Sequence[ProgramArray]) -> str:
    """``params['layers'][*]['w'] × 24``; of what has no path the end of JAX's name."""
    name = common_name(one.name for one in group)
    if group[0].kind not in ("argument", "slice", "output"):
        name = "/".join(name.split("/")[-2:])
    return f"{name} × {len(group):,}" if len(group) > 1 else name


def _waste_lines(arrays: Sequence[ProgramArray], width: int, verbose: bool) -> list[Text]:
    """A line for each mark, the most bytes first."""
    marked: list[tuple[Mark, list[ProgramArray]]] = [
        (mark, group) for group in alike_arrays(arrays) for mark in group[0].marks
    ]
    marked.sort(key=lambda pair: -pair[0].bytes * len(pair[1]))
    shown = marked if verbose else marked[:FEW]
    lines = [Text(), Text("waste", "bold")] if shown else []
    for mark, group in shown:
        wasted = f", {human_bytes(mark.bytes * len(group))} per device" if mark.bytes else ""
        place = f" ({PurePath(group[0].source).name})" if group[0].source else ""
        lines += sentence(f"{mark.words}{wasted}", width, 2, f"{mark.kind}: {_name(group)}{place}: ")
    return lines + [Text(f"  and {plural(len(marked) - len(shown), 'more')}", "dim")] * (
        len(marked) > len(shown)
    )
