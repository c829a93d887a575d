"""A compilation step by step: what each pass decided about shardings, and what it made of the collectives."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shardviz.hlo.collective_changes import lacking
from shardviz.hlo.dumps import PassStage
from shardviz.hlo.mlir.shardings import ARGUMENT, RESULT, Axes
from shardviz.notation.spec_string import write_spec
from shardviz.planner.problem import Problem
from shardviz.render.caption import colour_axes
from shardviz.render.lines import cut, printable_line, sentence
from shardviz.render.palette import Palette
from shardviz.render.plan_pages import headline
from shardviz.render.programs.collective_rows import FLUSH, rows_of
from shardviz.render.tables import Cell, rest_line, table
from shardviz.reports.target_result import PassTrace
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.units import seconds, shaped

MAX_SPLITS, FEW_SPLITS = 16, 6
"""A larger program has more; the JSON document has them all."""
INDENT = 4
GONE, NEW = "−", "+"


def passes_view(
    traced: PassTrace,
    problem: Problem,
    width: int,
    palette: Palette,
    diffs: frozenset[int] = frozenset(),
    verbose: bool = False,
) -> list[Text]:
    """The question, the target with the collectives of the final schedule, and a line for each stage with its
    number; in full those with their diffs in `diffs`, and all when `verbose`."""
    compiled, last = traced.compiled, traced.stages[-1:]
    name = Text.assemble((compiled.target, "bold"), f"  {seconds(compiled.elapsed_s)}")
    lines = [*headline(problem, width, palette), name]
    if not verbose:
        for stage in last:
            lines += sentence(stage.title, width, INDENT, style="bold")
            lines += _collectives_lines(stage, problem.mesh, width, palette)
        lines.append(Text())
    for number, stage in enumerate(traced.stages, 1):
        is_full = verbose or number in diffs
        if is_full:
            lines += [Text(), *stage_view(stage, number, problem, width, palette)]
        elif stage not in last:
            lines += _title_lines(stage, number, width)
            lines += _splits_lines(stage, problem, width, palette, FEW_SPLITS) if number > 1 else []
        if number in diffs:
            lines += diff_lines(stage.diff(), width)
    return lines


def _title_lines(stage: PassStage, number: int, width: int) -> list[Text]:
    titled = sentence(stage.title, width - INDENT, 0)
    leads = [f"{number:>2}".ljust(INDENT), *[" " * INDENT] * len(titled)]
    return [Text.assemble(lead, line.plain, style="bold") for lead, line in zip(leads, titled, strict=False)]


def stage_view(stage: PassStage, number: int, problem: Problem, width: int, palette: Palette) -> list[Text]:
    """One stage: its title, the compiler's name of the pass, splits that it decided, collectives − and +."""
    lines = _title_lines(stage, number, width)
    if lines[-1].cell_len + 2 + len(stage.pass_name) <= width:
        lines[-1].append(f"  {stage.pass_name}", "dim")
    else:
        lines += sentence(stage.pass_name, width, INDENT, style="dim")
    for change in stage.changes if stage.title not in ("; ".join(stage.changes),) else ():
        lines += sentence(change, width, INDENT, "· ")
    lines += _splits_lines(stage, problem, width, palette)
    return lines + _collectives_lines(stage, problem.mesh, width, palette)


def _splits_lines(
    stage: PassStage, problem: Problem, width: int, palette: Palette, most: int = MAX_SPLITS
) -> list[Text]:
    """``A  argument  bf16[8,2048]  XY`` as given, ``%0  dot  bf16[8,8192]  ? → X_`` as the stage decided."""
    shown = stage.splits[:most]
    rows: list[list[Cell]] = []
    for split in shown:
        name = split.name
        if split.op == ARGUMENT and int(name) < len(problem.arguments):
            name = problem.arguments[int(name)].name
        elif split.op == RESULT:
            name = problem.result.name
        spec = _spec_text(split.dims, split.unreduced, problem.mesh, palette)
        if stage.kind != "input":
            spec = _spec_text(split.before, (), problem.mesh, palette).append(" → ").append_text(spec)
        rows.append([(name, "bold"), (split.op, "dim"), shaped(split.dtype, split.shape), spec])
    lines = table(rows, width, INDENT)
    return lines + rest_line(len(stage.splits) - len(shown), "tensor", INDENT, " more: --json lists all")


def _spec_text(dims: Axes | None, unreduced: tuple[str, ...], mesh: Mesh, palette: Palette) -> Text:
    """A spec as `--specs` takes it, its axes coloured; ``?`` where it is open."""
    if dims is None:
        return Text("?")
    text = Text(write_spec(PartitionSpec(dims, unreduced)))
    colour_axes(text, (*(axis for axes in dims for axis in axes), *sorted(unreduced)), 0, mesh, palette)
    return text


def _collectives_lines(stage: PassStage, mesh: Mesh, width: int, palette: Palette) -> list[Text]:
    """Collectives that are gone after −, new ones after +; the rest counted, or listed for the schedule."""
    gone, new = lacking(stage.before, stage.after), lacking(stage.after, stage.before)
    kept = len(stage.after) - len(new)
    is_last = stage.kind == "schedule"
    # A pass may change some of a collective matmul's permutes; all of them are one line.
    matmuls = stage.collective_matmuls if is_last or not kept + len(gone) else ()
    with_when = is_last or any(collective.is_async for collective in (*gone, *new))
    rows = [(GONE, row) for row in rows_of(gone, mesh, palette)]
    after = rows_of(stage.after if is_last else new, mesh, palette, matmuls)
    rows += [(NEW if new else " ", row) for row in after]
    cells = []
    for sign, row in rows:
        first = Text.assemble((f"{sign} ", "bold"), row.cells[0])
        when, algorithm = Text(row.when if with_when else ""), Text(row.algorithm, "dim")
        cells.append([first, *row.cells[1:], when, algorithm])
        for cell in cells[-1] if sign == GONE else ():
            cell.stylize("dim")
    lines = table(cells, width, INDENT, FLUSH)
    others = kept if (gone or new) and not is_last else 0
    return lines + rest_line(others, "collective", INDENT + 2, " as before")


def diff_lines(diff: Sequence[str], width: int) -> list[Text]:
    """The diff with its long lines cut: the whole of it is in the JSON document."""
    lines = []
    for line in diff:
        style = {"+": "bold", "-": "dim", "@": "italic"}.get(line[:1], "")
        lines.append(Text.assemble(" " * INDENT, (line, style)))
        lines[-1].truncate(width, overflow="ellipsis")
    return lines or sentence("the lines differ only in folded text", width, INDENT, style="dim")


def stage_list(
    stages: Sequence[PassStage],
    chosen: int,
    problem: Problem,
    width: int,
    palette: Palette,
    diff: Sequence[Text] = (),
) -> tuple[list[Text], range]:
    """The lines, with `diff` under the chosen stage, and which of them are the chosen stage's."""
    lines: list[Text] = []
    shown = range(0)
    for index, stage in enumerate(stages):
        if index == chosen:
            start = len(lines)
            lines += [printable_line(line) for line in stage_view(stage, index + 1, problem, width, palette)]
            lines += diff
            shown = range(start, len(lines))
            continue
        line = Text(f"{index + 1:>2}  {stage.title}", "dim")
        lines.append(printable_line(cut(line, width)))
    return lines, shown
