"""What one target answered, and where that differs from the plan."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.text import Text

from shardviz.compare import AS_PLANNED, SAME_TRAFFIC, Difference
from shardviz.compiler.compiled import Compiled
from shardviz.compiler.traffic import bytes_sent, traffic_of
from shardviz.errors import plural
from shardviz.hlo import Collective
from shardviz.planner.problem import Problem
from shardviz.render.caption import spec_text
from shardviz.render.lines import columns, records, sentence, table
from shardviz.render.palette import Palette
from shardviz.render.programs.collective_rows import RIGHT, Row, has_schedule, often, rows_of, shapes
from shardviz.render.programs.placement_lines import placement_lines
from shardviz.render.units import exact_bytes, seconds
from shardviz.sharding import Mesh


def target_view(
    compiled: Compiled, differences: Sequence[Difference], problem: Problem, width: int, palette: Palette
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


def error_lines(compiled: Compiled, width: int, indent: int) -> list[Text]:
    """Why a target has no answer, and what would help."""
    lines = sentence(compiled.error, width, indent, "✗ ", "bold")
    return lines + (sentence(compiled.hint, width, indent + 2, style="dim") if compiled.hint else [])


def traffic_words(compiled: Compiled, mesh: Mesh) -> str:
    """What crosses the edges of slices or nodes and what stays inside; "" where there is one of them."""
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
    """What is to see of collectives in one sentence, to find out whether two programs differ."""
    return [(each.op, each.dtype, each.bytes) for each in collectives]


def partitioned_words(partitioned: Sequence[Collective]) -> str:
    """What the partitioner inserted, before the backend rewrote it."""
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


def _collectives(compiled: Compiled, mesh: Mesh, width: int, palette: Palette) -> list[Text]:
    """One line a collective, and under it when it runs and how, where the compiler says so."""
    rows = rows_of(compiled.collectives, mesh, palette, compiled.collective_matmuls)
    cells = [row.cells for row in rows]
    aligned = columns(cells, width, 2, RIGHT)
    tells = has_schedule(compiled) and (
        compiled.placement is not None
        or any(each.is_async or each.algorithm for each in compiled.collectives)
    )
    lines = []
    for row in rows:
        lines += records([row.cells], width, 2) if aligned is None else [aligned.pop(0)]
        lines += sentence(_how(row), width, 4, style="dim") if tells else []
    return lines


def _how(row: Row) -> str:
    return f"{row.when}; {row.algorithm}" if row.algorithm else row.when


def _heading(compiled: Compiled, problem: Problem, palette: Palette) -> Text:
    line = Text.assemble((compiled.target, "bold"))
    if compiled.elapsed_s:
        line.append(f"  {seconds(compiled.elapsed_s)}", "dim")
    if compiled.result_spec is not None:
        result = problem.result
        line.append("  → ").append_text(
            spec_text(result.name, result.dims, compiled.result_spec, problem.mesh, palette)
        )
    return line
