"""What one target answered, and where that differs from the plan."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.text import Text

from shardviz.compare import Difference
from shardviz.compiler.compiled import Compiled
from shardviz.errors import plural
from shardviz.hlo import Collective
from shardviz.planner.problem import Problem
from shardviz.render.caption import axes_text, spec_text
from shardviz.render.lines import sentence, table
from shardviz.render.palette import Palette
from shardviz.render.units import exact_bytes, seconds
from shardviz.sharding import Mesh

RIGHT = frozenset({2, 3})
MAX_GROUPS = 2
MAX_MEMBERS = 4


def target_view(
    compiled: Compiled, differences: Sequence[Difference], problem: Problem, width: int, palette: Palette
) -> list[Text]:
    """A blank line, the target's name and time, its collectives or its error, and its differences."""
    lines = [Text(), _heading(compiled, problem, palette)]
    mesh = problem.mesh
    if compiled.status != "ok":
        lines += sentence(compiled.error, width, 2, "✗ ", "bold")
        lines += sentence(compiled.hint, width, 4, style="dim") if compiled.hint else []
    elif compiled.collectives:
        lines += collectives_table(compiled.collectives, mesh, width, palette)
    else:
        lines.append(Text("  no collective: nothing is sent"))
    if compiled.partitioned is not None and _moved(compiled.partitioned) != _moved(compiled.collectives):
        lines += sentence(_partitioned(compiled), width, 2, style="dim")
    lines += table([[Text(name, "bold"), Text(text)] for name, text in compiled.typeof], width, 2)
    for difference in differences:
        lines += sentence(difference.message, width, 2, f"≠ {difference.code}: ")
    if compiled.status == "ok" and not differences:
        lines.append(Text("  = as planned", "dim"))
    return lines


def collectives_table(
    collectives: Sequence[Collective], mesh: Mesh, width: int, palette: Palette
) -> list[Text]:
    """One line a collective: op and axes, operand and result on a device, bytes, bytes sent, how often.

    Equal ones in a row share a line.
    """
    rows = []
    for collective, count in folded(collectives):
        rows.append(
            [
                _op(collective, mesh, palette),
                Text(shapes(collective)),
                Text(exact_bytes(collective.bytes)),
                Text(f"{collective.wire_bytes:,} sent", "dim"),
                Text("in a loop" if count is None else f"×{count:,}" * (count != 1)),
            ]
        )
    return table(rows, width, 2, RIGHT)


def folded(collectives: Sequence[Collective]) -> list[tuple[Collective, int | None]]:
    """The first of each run of collectives that read alike, and how often all of it runs; None where nobody
    can say."""
    found = []
    for _, run in groupby(collectives, _reads):
        same = [*run]
        counts = [each.count for each in same if each.count is not None]
        found.append((same[0], sum(counts) if counts else None))
    return found


def _reads(each: Collective) -> tuple[object, ...]:
    """All that a line says of a collective but how often it runs."""
    sizes = each.bytes, each.wire_bytes, each.arrays
    return each.op, each.axes, each.groups, shapes(each), sizes, each.count is None


def shapes(collective: Collective) -> str:
    """``bf16[4,8192]``, or ``bf16[4,512]→[4,2048]`` where the shape changes, ``(3 arrays)`` when combined."""
    operand, result = (
        f"[{','.join(map(str, shape))}]" for shape in (collective.operand_shape, collective.result_shape)
    )
    text = f"{collective.dtype}{operand}" + (f"→{result}" if operand != result else "")
    return text if collective.arrays == 1 else f"{text} ({plural(collective.arrays, 'array')})"


def _op(collective: Collective, mesh: Mesh, palette: Palette) -> Text:
    text = Text.assemble((collective.op, "bold"))
    if collective.axes:
        return text.append(" over ").append_text(axes_text(collective.axes, mesh, palette))
    if collective.groups:
        pairs = collective.op in ("collective-permute", "send", "recv")
        shown = [_group(group, "→" if pairs else ",") for group in collective.groups[:MAX_GROUPS]]
        more = len(collective.groups) - len(shown)
        text.append(f" {' '.join(shown)}" + (f" +{more:,}" if more else ""))
    return text


def _group(ids: tuple[int, ...], separator: str) -> str:
    """``{0,1}``, ``{0→1}``, ``{0,4,…,60}``."""
    shown = [*map(str, ids)] if len(ids) <= MAX_MEMBERS else [str(ids[0]), str(ids[1]), "…", str(ids[-1])]
    return f"{{{separator.join(shown)}}}"


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


def _moved(collectives: Sequence[Collective]) -> list[tuple[str, str, int]]:
    return [(each.op, each.dtype, each.bytes) for each in collectives]


def _partitioned(compiled: Compiled) -> str:
    """What the partitioner inserted, before the backend rewrote it."""
    if not compiled.partitioned:
        return "right after SPMD partitioning: no collective"
    said = []
    for each, count in folded(compiled.partitioned):
        over = f" over {', '.join(each.axes)}" if each.axes else ""
        often = f" ×{count:,}" if count is not None and count > 1 else ""
        said.append(f"{each.op}{over} {shapes(each)} {exact_bytes(each.bytes)}{often}")
    return f"right after SPMD partitioning: {'; '.join(said)}"
