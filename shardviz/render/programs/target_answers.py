"""The answers of targets: one after another, or in one table with the reasons below it. An answer has the
collectives, the place of the mesh on the hardware, and the differences from the plan. Then which targets
there are and how to install them, and the state of those that were asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from shardviz.compare import AS_PLANNED, SAME_TRAFFIC, Difference
from shardviz.errors import plural
from shardviz.hardware.placement import AxisRun, Placement, axis_runs
from shardviz.planner.problem import Problem
from shardviz.render.caption import spec_text
from shardviz.render.lines import GAP, Cell, columns, records, sentence, sentences, shared, table
from shardviz.render.palette import SIGNS, Palette
from shardviz.render.programs.collective_rows import (
    has_schedule,
    parts_of_axes,
    row_lines,
    rows_of,
)
from shardviz.reports.target_result import TargetResult, bytes_sent, traffic_of
from shardviz.sharding import Mesh
from shardviz.units import exact_bytes, human_bytes, seconds, times


def target_view(
    compiled: TargetResult,
    differences: Sequence[Difference],
    problem: Problem,
    width: int,
    palette: Palette,
    rounded: bool = False,
) -> list[Text]:
    """A blank line, the target's name and time, its collectives or its error, and its differences. With
    `rounded` the bytes of collectives have three digits and a unit."""
    mesh, result = problem.mesh, problem.result
    time = f"answered in {seconds(compiled.elapsed_s)}" if compiled.elapsed_s else ""
    head: list[Cell] = [(compiled.target, "bold"), (time, "dim")]
    if compiled.result_spec is not None:
        chosen = spec_text(result.name, result.dims, compiled.result_spec, mesh, palette)
        head.append(Text("→ ").append_text(chosen))
    lines = [Text(), *records([head], width)]
    if compiled.placement is not None:
        lines += sentence(placement_words(compiled.placement, mesh), width, 2, "placed: ", "dim")
    if compiled.status != "ok":
        lines += error_lines(compiled, width, 2)
    elif compiled.collectives:
        rows = rows_of(compiled.collectives, mesh, palette, compiled.collective_matmuls, rounded)
        tells_how = compiled.placement is not None or any(
            collective.is_async or collective.algorithm for collective in compiled.collectives
        )
        lines += row_lines(rows, width, tells_how and has_schedule(compiled))
    else:
        lines.append(Text("  no collective: nothing is sent"))
    if traffic := traffic_words(compiled, mesh, rounded):
        lead, _, rest = traffic.partition(": ")
        lines += sentence(rest, width, 2, f"{lead}: ")
    lines += table([[(name, "bold"), text] for name, text in compiled.typeof], width, 2)
    for difference in differences:
        sign = "=" if difference.code in SAME_TRAFFIC else "≠"
        lines += sentence(difference.message, width, 2, f"{sign} {difference.code}: ")
    if compiled.status == "ok" and all(difference.code in AS_PLANNED for difference in differences):
        lines += sentence("as planned", width, 2, "= ", "dim")
    return lines


def error_lines(compiled: TargetResult, width: int, indent: int) -> list[Text]:
    """The reason why a target has no answer, and its hint."""
    lines = sentence(compiled.error, width, indent, "✗ ", "bold")
    return lines + sentence(compiled.hint, width, indent + 2, style="dim")


def traffic_words(compiled: TargetResult, mesh: Mesh, rounded: bool = False) -> str:
    """The traffic across the edges of slices or nodes and inside them; "" where there is one of them."""
    traffic = traffic_of(compiled, mesh)
    if traffic is None:
        return ""
    parts = {
        f"between {traffic.unit}s": traffic.between,
        f"between {traffic.unit}s and inside them": traffic.both,
        f"inside a {traffic.unit}": traffic.inside,
    }
    written = human_bytes if rounded else exact_bytes
    said = {
        where: f"{plural(len(those), 'collective')}, {written(bytes_sent(those))} sent by a device"
        for where, those in parts.items()
        if those
    }
    if not traffic.both:
        said = {where: said.get(where, "nothing") for where in parts if parts[where] is not traffic.both}
    return "; ".join(f"{where}: {words}" for where, words in said.items())


MAX_LISTED = 16
"""Devices whose order is told."""
BETWEEN = {"slice": "between slices", "node": "between nodes"}
WITHIN = {"core": "the cores of a chip", "gpu": "the GPUs of a node"}


def placement_words(placement: Placement, mesh: Mesh) -> str:
    """``X along y (1 hop, a line), Y along x (1 hop, a ring), on a torus of 2×4 chips``."""
    axes: dict[str, list[str]] = {}
    for run in axis_runs(placement, mesh):
        axes.setdefault(_run(run), []).append(run.axis)
    words = ", ".join(f"{' and '.join(names)} {way}" for way, names in axes.items()) + _order(placement, mesh)
    ground = _ground(placement)
    if placement.unit == "node" and f"along {WITHIN['gpu']}" in axes and BETWEEN["node"] not in words:
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
    count = placement.units
    if placement.unit == "node":
        gpus = plural(len(placement.places) // count, "GPU")
        return f"{gpus} of one node" if count == 1 else f"{count:,} nodes of {gpus}"
    is_one = set(placement.torus) == {1}
    shape = f"{times(placement.torus)} {'chip' if is_one else 'chips'}"
    return shape if count == 1 else f"{count:,} slices of {shape}"


HEADINGS = ("target", "compile", "result", "collectives", "of a device", "bytes", "sent", "", "when", "how")
RIGHT = frozenset({1, 5, 6})
MOVES = 3
"""The column of what moves."""
BENEATH = ((), (9,), (9, 4), (8, 9, 4))
"""Columns that narrower pages have beneath each row, in this order: the algorithm, then the shapes, then when
it runs."""

FEW = 2
"""So many targets may stand one after another."""

Answers = Sequence[tuple[TargetResult, Sequence[Difference]]]


def side_by_side(targets: Sequence[str]) -> bool:
    """True where one table has all: of two programs that run, and of three targets or more. Shardy's answer
    is not a program that runs, and has little to put in columns."""
    return len(targets) > FEW or (len(targets) == FEW and "shardy" not in targets)


def answers_view(
    answers: Answers,
    problem: Problem,
    width: int,
    palette: Palette,
    asked: Sequence[str] = (),
    rounded: bool = False,
) -> list[Text]:
    """Each target's answer, given with its differences from the plan, under a blank line. `asked` are the
    names of all targets, where more answers than these are to come. With `rounded` the bytes of collectives
    have three digits and a unit."""
    names = asked or [compiled.target for compiled, _ in answers]
    view = targets_table if side_by_side(names) else _target_views
    lines = view(answers, problem, width, palette, rounded)
    every = [collective for one, _ in answers for collective in one.collectives]
    return lines + sentences(parts_of_axes(every, problem.mesh), width, 2, style="dim")


def _target_views(
    answers: Answers, problem: Problem, width: int, palette: Palette, rounded: bool
) -> list[Text]:
    views = (target_view(one, differences, problem, width, palette, rounded) for one, differences in answers)
    return [line for view in views for line in view]


def targets_table(
    answers: Answers, problem: Problem, width: int, palette: Palette, rounded: bool = False
) -> list[Text]:
    """A blank line, a row a target (more where it has several collectives), and the reasons; on a page that
    is too narrow one target after another. `answers` are the targets' answers, each with its differences from
    the plan, in the order asked."""
    mesh, results = problem.mesh, [compiled for compiled, _ in answers]
    rows = _rows(results, problem, width, palette, rounded)
    if rows is None:
        return _target_views(answers, problem, width, palette, rounded)
    lines = [Text(), *rows, Text()]
    for one in results:
        if one.status != "ok":
            lines += [Text(one.target, "bold"), *error_lines(one, width, 2)]
    lines += shared(((one.target, traffic_words(one, mesh, rounded)) for one in results), width)
    lines += _reasons(answers, width)
    # The answers of `jax.typeof` under Explicit axes.
    types = ((one.target, ", ".join(f"{name} is {text}" for name, text in one.typeof)) for one in results)
    lines += shared(types, width, style="dim")
    placed = (
        (one.target, placement_words(one.placement, mesh)) for one in results if one.placement is not None
    )
    return lines + shared(placed, width, 0, "{} placed: ", "dim")


def _rows(
    answers: Sequence[TargetResult], problem: Problem, width: int, palette: Palette, rounded: bool
) -> list[Text] | None:
    """The table; where it is too wide, what is least needed goes beneath each row."""
    rows = []
    for answer in answers:
        name = _name(answer, problem, palette)
        for number, cells in enumerate(_moves(answer, problem.mesh, palette, rounded)):
            rows.append([*([Text()] * len(name) if number else name), *cells])
    used = {i for row in rows for i, cell in enumerate(row) if cell}
    head = [Text(heading if i in used else "", "bold") for i, heading in enumerate(HEADINGS)]
    for beneath in BENEATH:
        kept = [[Text() if i in beneath else cell for i, cell in enumerate(row)] for row in (head, *rows)]
        aligned = columns(kept, width, right=RIGHT)
        if aligned is not None:
            indent, lines = aligned[0].plain.index(HEADINGS[MOVES]) + 2, aligned[:1]
            for line, row in zip(aligned[1:], rows, strict=True):
                rest = "; ".join(row[i].plain for i in beneath if i < len(row) and row[i])
                lines += [line, *sentence(rest, width, indent, style="dim")]
            return lines
    return None


def _moves(compiled: TargetResult, mesh: Mesh, palette: Palette, rounded: bool) -> list[list[Text]]:
    """The cells of each of a target's collectives, which follow its name."""
    if compiled.status != "ok":
        words = "no answer" if compiled.status == "error" else "not available"
        return [[Text.assemble(("✗", SIGNS["✗"]), f" {words}")]]
    moving = [collective for collective in compiled.collectives if collective.op != "slice"]
    rows = rows_of(moving, mesh, palette, compiled.collective_matmuls, rounded)
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
        for compiled, differences in answers
        if compiled.status == "ok" and all(difference.code in AS_PLANNED for difference in differences)
    ]
    names: dict[tuple[str, str], list[Difference]] = {}
    for _, differences in answers:
        for difference in differences:
            names.setdefault((difference.code, difference.message_about("it")), []).append(difference)
    lines = sentence("as planned", width, lead=f"= {', '.join(planned)}: ") if planned else []
    for (code, _), same in names.items():
        sign = "=" if code in SAME_TRAFFIC else "≠"
        those = ", ".join(difference.target for difference in same)
        said = same[0].message_about("each" if len(same) > 1 else "it")
        lines += sentence(f"{code}: {said}", width, lead=f"{sign} {those}: ")
    return lines


SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
"""Takes a turn ten times a second."""
STILL = "…"
"""In its place where nothing may move."""


@dataclass(frozen=True)
class Wait:
    """A target that has not answered: asked `seconds` ago, and at `stage`; or, without seconds, not asked,
    and `stage` says why."""

    target: str
    stage: str
    seconds: float | None = None


def spinner(seconds: float, moving: bool) -> str:
    """The sign of something that has been under way for so long."""
    return SPINNER[int(seconds * 10) % len(SPINNER)] if moving else STILL


def wait_lines(waits: Sequence[Wait], width: int, moving: bool) -> list[Text]:
    """Each target, its stage and its seconds: ``⠹ cpu  compiling  1.2 s``."""
    rows: list[list[Cell]] = []
    for wait in waits:
        sign = "·" if wait.seconds is None else spinner(wait.seconds, moving)
        time = "" if wait.seconds is None else f"{wait.seconds:.1f} s"
        rows.append([Text.assemble(f"{sign} ", (wait.target, "bold")), (wait.stage, "dim"), (time, "dim")])
    return table(rows, width, right={2})


CHOSEN = "❯"


@dataclass(frozen=True)
class TargetTab:
    """A target on the strip: its `sign` ("✓", "✗", "·" or one that turns), and `words` of its state."""

    name: str
    sign: str
    words: str = ""


def target_strip(tabs: Sequence[TargetTab], chosen: int, width: int) -> Text:
    """All targets, with as many words as fit; where the names do not, the chosen one and its number."""
    for worded in (range(len(tabs)), (chosen,), ()):
        text = Text()
        for number, tab in enumerate(tabs):
            text.append(" " * (GAP if number else 0))
            text.append_text(_tab(tab, number == chosen, number in worded))
        if text.cell_len <= width:
            return text
    text = Text.assemble((f"{chosen + 1}/{len(tabs)} ", "dim")).append_text(_tab(tabs[chosen], True, True))
    text.truncate(width, overflow="ellipsis")
    return text


def target_at(strip: str, names: Sequence[str], column: int) -> str:
    """The target at a column of the strip; empty where there is none."""
    found, index = "", 0
    for name in names:
        start = strip.find(f" {name} ", index)
        if start < 0:
            break
        if column > start:
            found = name
        index = start + len(name)
    return found


def _tab(tab: TargetTab, is_chosen: bool, with_words: bool) -> Text:
    text = Text.assemble((f"{CHOSEN} " if is_chosen else "  ", "bold"))
    text.append(tab.name, "bold" if is_chosen else "")
    text.append(" ").append(tab.sign, SIGNS.get(tab.sign, "" if is_chosen else "dim"))
    if with_words and tab.words:
        text.append(f" {tab.words}", "dim")
    return text
