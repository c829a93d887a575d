"""Arrays that a compiler makes whole on their way: from which sharding to which, what it costs, and a
route."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.lines import sentence
from shardviz.render.sanitize import printable
from shardviz.reports.rematerialization import Rematerialization
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.units import human_bytes

UNNAMED = "axes are those of the log's shardings: --mesh NAME=SIZE,… names yours"
MOST = 8
"""Arrays that a page tells of; JSON has all."""


def rematerialization_lines(found: Sequence[Rematerialization], width: int) -> list[Text]:
    """Some lines for each array, under a heading; nothing where there is none."""
    if not found:
        return []
    arrays = plural(len(found), "array is", "arrays are")
    them = "it" if len(found) == 1 else "them"
    lines = [
        Text(),
        *sentence(f"{arrays} fully replicated in order to reshard {them}", width, style="bold"),
    ]
    for each in found[:MOST]:
        lines += _lines(each, width)
    if len(found) > MOST:
        lines.append(Text(f"and {plural(len(found) - MOST, 'more array')}", "dim"))
    return lines


def log_lines(
    found: Sequence[Rematerialization], mesh: Mesh | None, width: int, *, is_given: bool
) -> list[Text]:
    """The page of a log alone: the mesh of its shardings, and the arrays."""
    if not found:
        return sentence("the log has a warning of a rematerialization that cannot be read", width)
    lines = [] if mesh is None else sentence(str(mesh), width, lead="mesh ")
    if not is_given:
        lines += sentence(UNNAMED, width, style="dim")
    return [*lines, *rematerialization_lines(found, width)]


def _lines(one: Rematerialization, width: int) -> list[Text]:
    array = "" if one.shape is None else f"{one.dtype}[{','.join(map(str, one.shape))}] "
    before, after = (_split(spec, number, one) for number, spec in enumerate((one.before, one.after)))
    times = f", {one.times} times" if one.times > 1 else ""
    lines = sentence(printable(f"{array}from {before} to {after}{times}"), width)
    place = one.source if one.op_name in ("", one.source) else f"{one.op_name}  {one.source}"
    if place and "/" not in place:
        place = f"the argument {place}"
    if place:
        lines += sentence(printable(place), width, 2, style="dim")
    if one.whole_bytes is not None and one.wire_bytes is not None:
        words = (
            f"takes {human_bytes(one.whole_bytes)} on each device, and sends {human_bytes(one.wire_bytes)}"
        )
        if one.route_bytes is not None:
            words += f"; in steps it sends {human_bytes(one.route_bytes)}"
        lines += sentence(words, width, 2)
    if len(one.route) > 1:
        lines += [Text(f"  {step.code}") for step in one.route]
    return lines


def _split(spec: PartitionSpec | None, number: int, one: Rematerialization) -> str:
    if spec is not None:
        return str(spec)
    if one.written is not None:
        return one.written[number]
    part = f"{one.dtype}[{','.join(map(str, one.kept))}]"
    return f"a part {part} on each device" if number else "a split over all devices"
