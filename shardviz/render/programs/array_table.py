"""A program's arrays: a table for each kind, the largest first, and what of them is waste; those for which a
device had no memory; and those that a compiler fully replicates in order to reshard them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import PurePath

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.caption import split_text
from shardviz.render.lines import sentence
from shardviz.render.palette import Palette
from shardviz.render.tables import Cell, giving_way, rest_line, table
from shardviz.reports.arrays import ArrayKind, ProgramArray, alike_arrays
from shardviz.reports.entries import common_name, numberless
from shardviz.reports.failures import LargeArray, OutOfMemory
from shardviz.reports.rematerialization import Rematerialization, route_code
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
"""Wastes, and arrays of a failure, on such a page."""
HEADINGS = ("", "shape", "spec", "", ">per device", ">copies", "line")


def array_lines(
    arrays: Sequence[ProgramArray], mesh: Mesh, width: int, palette: Palette, verbose: bool = False
) -> list[Text]:
    """The tables and the wastes; alike arrays of several layers in one row."""
    lines: list[Text] = []
    for kind, of_kind in groupby(arrays, lambda one: one.kind):
        groups = alike_arrays(of_kind)
        shown = groups if verbose else groups[:MOST]
        held = sum(one.bytes for group in groups for one in group)
        lines += [Text(), *sentence(f"  {human_bytes(held)} per device", width, lead=TITLES[kind])]
        rows = [_cells(group, mesh, palette) for group in shown]
        lines += table(rows, width, 2, HEADINGS, giving_way("line", "shape"))
        left = sum(one.bytes for group in groups[len(shown) :] for one in group)
        lines += rest_line(len(groups) - len(shown), "more row", 2, f", {human_bytes(left)}")
    # A line for each mark, the most bytes first.
    marked = [(mark, group) for group in alike_arrays(arrays) for mark in group[0].marks]
    marked.sort(key=lambda pair: -pair[0].bytes * len(pair[1]))
    lines += [Text(), Text("waste", "bold")] if marked else []
    few = marked if verbose else marked[:FEW]
    for mark, group in few:
        wasted = f", {human_bytes(mark.bytes * len(group))} per device" if mark.bytes else ""
        place = f" ({PurePath(group[0].source).name})" if group[0].source else ""
        lines += sentence(f"{mark.words}{wasted}", width, 2, f"{mark.kind}: {_name(group)}{place}: ")
    return lines + rest_line(len(marked) - len(few), "more", 2)


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
        human_bytes(sum(item.bytes for item in group)),
        "?" if one.copies is None else f"{one.copies:,}",
        (PurePath(one.source).name, "dim"),
    ]


def _name(group: Sequence[ProgramArray]) -> str:
    """``params['layers'][*]['w'] × 24``; of what has no path the end of JAX's name."""
    name = common_name(one.name for one in group)
    if group[0].kind not in ("argument", "slice", "output"):
        name = "/".join(name.split("/")[-2:])
    return f"{name} × {len(group):,}" if len(group) > 1 else name


def out_of_memory_lines(failures: Sequence[OutOfMemory], width: int, verbose: bool) -> list[Text]:
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
            for group in (ordered if verbose else ordered[:FEW])
        ]
        head = (">bytes", ">padding", "largest arrays", "", "line")
        lines += table(rows, width, 2, head, (("",),), ("", " padding", "", "", ""))
        lines += rest_line(len(ordered) - len(rows), "more row", 2)
    return lines


def rematerialization_lines(rematerializations: Sequence[Rematerialization], width: int) -> list[Text]:
    """Some lines for each array, under a heading; nothing where there is none."""
    if not rematerializations:
        return []
    arrays = plural(len(rematerializations), "array is", "arrays are")
    them = "it" if len(rematerializations) == 1 else "them"
    lines = [Text(), *sentence(f"{arrays} fully replicated in order to reshard {them}", width, style="bold")]
    for rematerialization in rematerializations[:8]:
        lines += _route_lines(rematerialization, width)
    return lines + rest_line(len(rematerializations) - 8, "more array")


def log_lines(
    rematerializations: Sequence[Rematerialization], mesh: Mesh | None, width: int, *, is_given: bool
) -> list[Text]:
    """The page of a log alone: the mesh of its shardings, and the arrays."""
    if not rematerializations:
        return sentence("the log has a warning that cannot be read", width)
    lines = [] if mesh is None else sentence(str(mesh), width, lead="mesh ")
    if not is_given:
        words = "axes are from the log's shardings: --mesh NAME=SIZE,… names yours"
        lines += sentence(words, width, style="dim")
    return [*lines, *rematerialization_lines(rematerializations, width)]


def _route_lines(one: Rematerialization, width: int) -> list[Text]:
    array = "" if one.shape is None else f"{one.dtype}[{','.join(map(str, one.shape))}] "
    part = f"{one.dtype}[{','.join(map(str, one.kept))}]"
    splits = one.written or ("a sharding over all devices", f"a shard {part} on each device")
    specs = zip((one.before, one.after), splits, strict=True)
    before, after = (split if spec is None else str(spec) for spec, split in specs)
    times = f", {one.times} times" if one.times > 1 else ""
    lines = sentence(f"{array}from {before} to {after}{times}", width)
    origin = one.source if one.op_name in ("", one.source) else f"{one.op_name}  {one.source}"
    if origin and "/" not in origin:
        origin = f"the argument {origin}"
    if origin:
        lines += sentence(origin, width, 2, style="dim")
    if one.whole_bytes is not None and one.wire_bytes is not None:
        words = f"takes {human_bytes(one.whole_bytes)} and sends {human_bytes(one.wire_bytes)} per device"
        if one.route_bytes is not None:
            words += f"; in steps, it sends {human_bytes(one.route_bytes)}"
        lines += sentence(words, width, 2)
    if len(one.route) > 1:
        lines += [Text(f"  {route_code(step)}") for step in one.route]
    return lines
