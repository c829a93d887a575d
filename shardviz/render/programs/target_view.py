"""The answer of one target, where its mesh lies on the hardware, and where it differs from the plan."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.text import Text

from shardviz.compare import AS_PLANNED, SAME_TRAFFIC, Difference
from shardviz.compiler.target_result import TargetResult, bytes_sent, traffic_of
from shardviz.errors import plural
from shardviz.hardware import AxisRun, Placement, axis_runs
from shardviz.hlo import Collective
from shardviz.planner.problem import Problem
from shardviz.render.caption import spec_text
from shardviz.render.lines import sentence, table
from shardviz.render.palette import Palette
from shardviz.render.programs.collective_rows import has_schedule, often, row_lines, rows_of, shapes
from shardviz.render.units import exact_bytes, seconds, times
from shardviz.sharding import Mesh


def target_view(
    compiled: TargetResult, differences: Sequence[Difference], problem: Problem, width: int, palette: Palette
) -> list[Text]:
    """A blank line, the target's name and time, its collectives or its error, and its differences."""
    lines = [Text(), _heading(compiled, problem, palette)]
    mesh = problem.mesh
    if compiled.placement is not None:
        lines += placement_lines([("", compiled.placement)], mesh, width, 2)
    if compiled.status != "ok":
        lines += error_lines(compiled, width, 2)
    elif compiled.collectives:
        lines += _collectives(compiled, mesh, width, palette)
    else:
        lines.append(Text("  no collective: nothing is sent"))
    if traffic := traffic_words(compiled, mesh):
        lead, _, rest = traffic.partition(": ")
        lines += sentence(rest, width, 2, f"{lead}: ")
    if compiled.partitioned is not None and moved(compiled.partitioned) != moved(compiled.collectives):
        lines += sentence(partitioned_words(compiled.partitioned), width, 2, style="dim")
    lines += table([[Text(name, "bold"), Text(text)] for name, text in compiled.typeof], width, 2)
    for difference in differences:
        sign = "=" if difference.code in SAME_TRAFFIC else "≠"
        lines += sentence(difference.message, width, 2, f"{sign} {difference.code}: ")
    if compiled.status == "ok" and all(each.code in AS_PLANNED for each in differences):
        lines.append(Text("  = as planned", "dim"))
    return lines


def error_lines(compiled: TargetResult, width: int, indent: int) -> list[Text]:
    """Why a target has no answer, and what would help."""
    lines = sentence(compiled.error, width, indent, "✗ ", "bold")
    return lines + (sentence(compiled.hint, width, indent + 2, style="dim") if compiled.hint else [])


def traffic_words(compiled: TargetResult, mesh: Mesh) -> str:
    """The traffic across the edges of slices or nodes and inside them; "" where there is one of them."""
    traffic = traffic_of(compiled, mesh)
    if traffic is None:
        return ""
    parts = {
        f"between {traffic.unit}s": traffic.between,
        f"between {traffic.unit}s and inside them": traffic.both,
        f"inside a {traffic.unit}": traffic.inside,
    }
    said = {
        where: f"{plural(len(those), 'collective')}, {exact_bytes(bytes_sent(those))} sent by a device"
        for where, those in parts.items()
        if those
    }
    if not traffic.both:
        said = {where: said.get(where, "nothing") for where in parts if parts[where] is not traffic.both}
    return "; ".join(f"{where}: {words}" for where, words in said.items())


def moved(collectives: Sequence[Collective]) -> list[tuple[str, str, int]]:
    """The part of collectives that one sentence shows, to tell two programs apart."""
    return [(each.op, each.dtype, each.bytes) for each in collectives]


def partitioned_words(partitioned: Sequence[Collective]) -> str:
    """The collectives that the partitioner inserted, before the backend rewrote it."""
    if not partitioned:
        return "right after SPMD partitioning: no collective"
    said = []
    for _, run in groupby(partitioned, lambda each: (each.op, each.axes, shapes(each), each.bytes)):
        same = [*run]
        one = same[0]
        over = f" over {', '.join(one.axes)}" if one.axes else ""
        what = f"{shapes(one)} {exact_bytes(one.bytes)}"
        if len(same) == 1:
            said.append(f"{one.op}{over} {what}" + f" {often(same)}".rstrip())
        else:
            said.append(f"{len(same):,} {one.op}s{over}, {what} each" + _in_loops(same))
    return f"right after SPMD partitioning: {'; '.join(said)}"


def _in_loops(several: Sequence[Collective]) -> str:
    looped = [each for each in several if each.count != 1]
    which = "all" if len(looped) == len(several) else f"{len(looped):,} of them"
    return f", {which} in a loop" if looped else ""


def _collectives(compiled: TargetResult, mesh: Mesh, width: int, palette: Palette) -> list[Text]:
    """One line a collective, and under it when it runs and how, where the compiler says so."""
    rows = rows_of(compiled.collectives, mesh, palette, compiled.collective_matmuls)
    tells_how = has_schedule(compiled) and (
        compiled.placement is not None
        or any(each.is_async or each.algorithm for each in compiled.collectives)
    )
    return row_lines(rows, width, tells_how)


def _heading(compiled: TargetResult, problem: Problem, palette: Palette) -> Text:
    line = Text.assemble((compiled.target, "bold"))
    if compiled.elapsed_s:
        line.append(f"  {seconds(compiled.elapsed_s)}", "dim")
    if compiled.result_spec is not None:
        result = problem.result
        line.append("  → ").append_text(
            spec_text(result.name, result.dims, compiled.result_spec, problem.mesh, palette)
        )
    return line


MAX_LISTED = 16
"""Devices whose order is told."""
BETWEEN = {"slice": "between slices", "node": "between nodes"}
WITHIN = {"core": "the cores of a chip", "gpu": "the GPUs of a node"}


def placement_lines(
    placements: Sequence[tuple[str, Placement]], mesh: Mesh, width: int, indent: int = 0
) -> list[Text]:
    """A sentence for every placement, after the names of the targets that have it."""
    names: dict[str, list[str]] = {}
    for name, placement in placements:
        names.setdefault(placement_words(placement, mesh), []).append(name)
    lines: list[Text] = []
    for words, those in names.items():
        lead = f"{', '.join(those)} placed: ".lstrip()
        lines += sentence(words, width, indent, lead, "dim")
    return lines


def placement_words(placement: Placement, mesh: Mesh) -> str:
    """``X along y (1 hop, a line), Y along x (1 hop, a ring), on a torus of 2×4 chips``."""
    axes: dict[str, list[str]] = {}
    for run in axis_runs(placement, mesh):
        axes.setdefault(_run(run), []).append(run.axis)
    words = ", ".join(f"{' and '.join(names)} {way}" for way, names in axes.items()) + _order(placement, mesh)
    ground = _ground(placement)
    if not placement.torus and f"along {WITHIN['gpu']}" in axes and BETWEEN["node"] not in words:
        return words.replace(WITHIN["gpu"], f"the {ground}")
    return f"{words}, on {ground}"


def _order(placement: Placement, mesh: Mesh) -> str:
    """The devices by mesh position, a row for each line along the last axis; "" where they are in order."""
    ids, row = placement.ids, mesh.axis_sizes[-1]
    if ids == (*range(len(ids)),) or len(ids) > MAX_LISTED:
        return ""
    rows = (" ".join(map(str, ids[start : start + row])) for start in range(0, len(ids), row))
    return f", devices {' / '.join(rows)}"


def _run(run: AxisRun) -> str:
    if not run.along:
        return "on one device"
    ways = [BETWEEN[one] for one in run.along if one in BETWEEN]
    along = [WITHIN.get(one, one) for one in run.along if one not in BETWEEN]
    ways += [f"along {' and '.join(along)}"] if along else []
    words = " and ".join(ways)
    if run.hops is None or not set(run.along) - {*BETWEEN, *WITHIN}:
        return words
    return f"{words} ({plural(run.hops, 'hop')}, {'a ring' if run.is_ring else 'a line'})"


def _ground(placement: Placement) -> str:
    count = len({place.slice for place in placement.places})
    if not placement.torus:
        gpus = plural(len(placement.places) // count, "GPU")
        return f"{gpus} of one node" if count == 1 else f"{count:,} nodes of {gpus}"
    is_one = set(placement.torus) == {1}
    shape = f"{times(placement.torus)} {'chip' if is_one else 'chips'}"
    return shape if count == 1 else f"{count:,} slices of {shape}"
