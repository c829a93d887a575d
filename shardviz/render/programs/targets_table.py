"""The answers of several targets: one after another, or in one table with the reasons below it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shardviz.compare import AS_PLANNED, SAME_TRAFFIC, Difference
from shardviz.compiler.target_result import TargetResult
from shardviz.planner.problem import Problem
from shardviz.render.axis_parts import parts_of_axes
from shardviz.render.caption import spec_text
from shardviz.render.lines import columns, records, sentence
from shardviz.render.palette import Palette
from shardviz.render.programs.collective_rows import has_schedule, rows_of
from shardviz.render.programs.target_view import (
    error_lines,
    moved,
    partitioned_words,
    placement_lines,
    target_view,
    traffic_words,
)
from shardviz.render.units import seconds
from shardviz.sharding import Mesh

HEADINGS = ("target", "compile", "result", "collectives", "of a device", "bytes", "sent", "", "when", "how")
RIGHT = frozenset({1, 5, 6})
TIME = 1
"""The column of how long the compiler took."""
MOVES = 3
"""The column of what moves."""
HOW = 6
"""The cell of the algorithm, counted from that column."""
BENEATH = ((), (9,), (9, 4), (8, 9, 4), (8, 9, 4, 1))
"""Columns that narrower pages have beneath each row, in this order: the algorithm, then the shapes, then when
it runs, then the time."""

FEW = 2
"""So many targets may stand one after another."""

Answers = Sequence[tuple[TargetResult, Sequence[Difference]]]


def side_by_side(targets: Sequence[str]) -> bool:
    """True where one table has all: of two programs that run, and of three targets or more.

    Shardy's answer is no such program, and beside one there is little to put in columns.
    """
    return len(targets) > FEW or (len(targets) == FEW and "shardy" not in targets)


def answers_view(
    answers: Answers, problem: Problem, width: int, palette: Palette, asked: Sequence[str] = ()
) -> list[Text]:
    """Each target's answer, given with its differences from the plan, under a blank line.

    `asked` are the names of all targets, where more answers than these are to come.
    """
    names = asked or [compiled.target for compiled, _ in answers]
    if side_by_side(names):
        lines = targets_table(answers, problem, width, palette)
    else:
        views = (target_view(one, found, problem, width, palette) for one, found in answers)
        lines = [line for view in views for line in view]
    for words in parts_of_axes([each for one, _ in answers for each in one.collectives], problem.mesh):
        lines += sentence(words, width, 2, style="dim")
    return lines


def targets_table(answers: Answers, problem: Problem, width: int, palette: Palette) -> list[Text]:
    """A blank line, a row a target (more where it has several collectives), and the reasons.

    `answers` are the targets' answers, each with its differences from the plan, in the order asked.
    """
    mesh = problem.mesh
    lines = [Text(), *_rows([compiled for compiled, _ in answers], problem, width, palette), Text()]
    for compiled, _ in answers:
        if compiled.status != "ok":
            lines += [Text(compiled.target, "bold"), *error_lines(compiled, width, 2)]
    spread = [(compiled.target, words) for compiled, _ in answers if (words := traffic_words(compiled, mesh))]
    lines += _joined(spread, width)
    lines += _reasons(answers, width)
    before = [
        (compiled.target, partitioned_words(compiled.partitioned))
        for compiled, _ in answers
        if compiled.partitioned is not None and moved(compiled.partitioned) != moved(compiled.collectives)
    ]
    lines += _joined(before, width, "dim")
    lines += _types([compiled for compiled, _ in answers], width)
    placed = [(each.target, each.placement) for each, _ in answers if each.placement is not None]
    return lines + placement_lines(placed, mesh, width)


def _rows(answers: Sequence[TargetResult], problem: Problem, width: int, palette: Palette) -> list[Text]:
    """The table; where it is too wide, what is least needed goes beneath each row, or all of it in lines."""
    blocks = [(_name(each, problem, palette), _moves(each, problem.mesh, palette)) for each in answers]
    whole = []
    for name, moves in blocks:
        whole += [[*([Text()] * len(name) if number else name), *cells] for number, cells in enumerate(moves)]
    used = {i for row in whole for i, cell in enumerate(row) if cell.plain}
    whole.insert(0, [Text(heading if i in used else "", "bold") for i, heading in enumerate(HEADINGS)])
    for beneath in BENEATH:
        kept = [[Text() if i in beneath else cell for i, cell in enumerate(row)] for row in whole]
        aligned = columns(kept, width, right=RIGHT)
        if aligned is not None:
            left_out = [[_alone(row, i) for i in beneath if i < len(row)] for row in whole]
            left_out[0] = []
            rows = zip(aligned, left_out, strict=True)
            indent = aligned[0].plain.index(HEADINGS[MOVES]) + 2
            return [line for row, rest in rows for line in (row, *_details(rest, width, indent))]
    lines: list[Text] = []
    for name, moves in blocks:
        cells = [_alone(name, i) for i in range(len(name))]
        lines += records([[each for each in cells if each.plain]], width)
        for cells in moves:
            lines += records([[each for each in cells[:HOW] if each.plain]], width, 2)
            lines += _details(cells[HOW:], width, 4)
    return lines


def _alone(row: Sequence[Text], column: int) -> Text:
    """A cell as it stands without its heading."""
    cell = row[column]
    return Text.assemble("compiled in ", cell) if column == TIME and cell.plain else cell


def _details(cells: Sequence[Text], width: int, indent: int) -> list[Text]:
    return sentence("; ".join(cell.plain for cell in cells if cell.plain), width, indent, style="dim")


def _moves(compiled: TargetResult, mesh: Mesh, palette: Palette) -> list[list[Text]]:
    """The cells of each of a target's collectives that stand after its name."""
    if compiled.status != "ok":
        return [[Text("✗ no answer" if compiled.status == "error" else "✗ not available")]]
    moving = [each for each in compiled.collectives if each.op != "slice"]
    rows = rows_of(moving, mesh, palette, compiled.collective_matmuls)
    scheduled = has_schedule(compiled)
    cells = [[*row.cells, Text(row.when if scheduled else ""), Text(row.algorithm, "dim")] for row in rows]
    return cells or [[Text("none: nothing is sent")]]


def _name(compiled: TargetResult, problem: Problem, palette: Palette) -> tuple[Text, ...]:
    """The target, how long it took, and what it chose for a result that the question leaves open."""
    chosen = Text()
    if compiled.result_spec is not None and problem.result.spec is None:
        result = problem.result
        chosen = spec_text(result.name, result.dims, compiled.result_spec, problem.mesh, palette)
    time = Text(seconds(compiled.elapsed_s) if compiled.elapsed_s else "", "dim")
    return Text(compiled.target, "bold"), time, chosen


def _reasons(answers: Answers, width: int) -> list[Text]:
    """Each difference once, after the targets that have it."""
    planned = [
        compiled.target
        for compiled, found in answers
        if compiled.status == "ok" and all(each.code in AS_PLANNED for each in found)
    ]
    names: dict[tuple[str, str], list[Difference]] = {}
    for _, found in answers:
        for each in found:
            names.setdefault((each.code, each.message_about("it")), []).append(each)
    lines = sentence("as planned", width, lead=f"= {', '.join(planned)}: ") if planned else []
    for (code, _), same in names.items():
        sign = "=" if code in SAME_TRAFFIC else "≠"
        those = ", ".join(each.target for each in same)
        said = same[0].message_about("each" if len(same) > 1 else "it")
        lines += sentence(f"{code}: {said}", width, lead=f"{sign} {those}: ")
    return lines


def _joined(said: Sequence[tuple[str, str]], width: int, style: str = "") -> list[Text]:
    """Each sentence once, after the targets that it is about."""
    names: dict[str, list[str]] = {}
    for name, words in said:
        names.setdefault(words, []).append(name)
    return [
        line
        for words, those in names.items()
        for line in sentence(words, width, lead=f"{', '.join(those)}: ", style=style)
    ]


def _types(answers: Sequence[TargetResult], width: int) -> list[Text]:
    """The answers of `jax.typeof` under Explicit axes."""
    said = [(each.target, ", ".join(f"{name} is {text}" for name, text in each.typeof)) for each in answers]
    return _joined([(name, words) for name, words in said if words], width, "dim")
