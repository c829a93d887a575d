"""The answers of targets: a table of their collectives against the plan, and all that is known of each; then
the state of those that were asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

from shardviz.compare import AS_PLANNED, CAUSES, SAME_TRAFFIC, Difference
from shardviz.errors import plural
from shardviz.hardware.placement import Placement, axis_runs
from shardviz.planner.problem import Problem
from shardviz.render.caption import spec_text
from shardviz.render.lines import GAP, beside, cut, sentence, sentences
from shardviz.render.palette import SIGNS, Palette
from shardviz.render.programs.collective_rows import has_schedule, parts_of_axes, row_lines, rows_of
from shardviz.render.tables import Cell, columns, records, table
from shardviz.reports.target_result import TargetResult, bytes_sent, traffic_of
from shardviz.sharding import Mesh
from shardviz.units import exact_bytes, human_bytes, seconds, times

HEADINGS = ("target", "result", "collectives", ">bytes", ">sent", "", ">compile", "")
TOLD = ("", "", "", "", " sent", "", "", "")
"""The words after the cells where there is no room for headings."""
LEAST_CAUSE, INDENT = 12, 2
"""Columns that the cause of a difference takes at least beside a row, and its indent below it."""
NO_DIFFERENCE = "as planned"
BETWEEN = {"slice": "between slices", "node": "between nodes"}
WITHIN = {"core": "the cores of a chip", "gpu": "the GPUs of a node"}
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
"""Takes a turn ten times a second."""
STILL = "…"
"""In its place where nothing may move."""

Answers = Sequence[tuple[TargetResult, Sequence[Difference]]]
"""The targets' answers, each with its differences from the plan."""


def targets_table(
    answers: Answers, problem: Problem, width: int, palette: Palette, is_below_plan: bool = False
) -> list[Text]:
    """A row for each collective of each target: what moves, how much, and whether the plan has it so; or why
    there is no answer. Below a plan, an answer that is as planned has no figures of its own."""
    if not answers:
        return []
    rows: list[list[Text]] = []
    causes: list[str] = []
    for one, differences in answers:
        sign, cause = ("", "") if one.status != "ok" else cause_words(differences)
        cells = _rows(one, problem, palette)
        cells[0].append(Text(sign, SIGNS.get(sign, "")))
        if is_below_plan and cause == NO_DIFFERENCE:
            for row in cells:
                row[3:5] = Text(), Text()
        rows += cells
        causes += [cause, *[""] * (len(cells) - 1)]
    used = {column for row in rows for column, cell in enumerate(row) if cell}
    head = [heading if column in used else "" for column, heading in enumerate(HEADINGS)]
    rooms = (width - LEAST_CAUSE - 1, width)
    fitted = (columns(rows, room, 0, head, (("compile",),)) for room in rooms)
    texts = next((texts for texts in fitted if texts), None)
    if texts is None:
        cells = []
        for row, cause in zip(rows, causes, strict=True):
            row += [Text()] * (len(HEADINGS) - len(row))
            cells.append([*row[:-1], row[-1].append(f" {cause}", "dim") if cause else Text()])
        lines = table(cells, width, told=TOLD)
    else:
        left = max(line.cell_len for line in texts) + 1
        lines = [
            line
            for text, cause in zip(texts, ["", *causes], strict=True)
            for line in beside(text, cause, left, width, LEAST_CAUSE, INDENT)
        ]
    for one, _ in answers:
        lines += error_lines(one, width, INDENT) if one.status != "ok" else []
    return [Text(), *lines]


def _rows(compiled: TargetResult, problem: Problem, palette: Palette) -> list[list[Text]]:
    """The cells of a target's rows below `HEADINGS`, without the sign."""
    result, chosen = problem.result, Text()
    name = Text(compiled.target, "bold")
    if compiled.status != "ok":
        words = "no answer" if compiled.status == "error" else "not available"
        return [[name, chosen, Text.assemble(("✗", SIGNS["✗"]), f" {words}")]]
    if compiled.result_spec is not None and result.spec is None:
        chosen = spec_text(result.name, result.dims, compiled.result_spec, problem.mesh, palette)
    moving = [collective for collective in compiled.collectives if collective.op != "slice"]
    moves = [
        [row.operation, Text(human_bytes(row.bytes)), Text(row.sent), Text(row.often)]
        for row in rows_of(moving, problem.mesh, palette, compiled.collective_matmuls)
    ] or [[Text("none"), Text(), Text(), Text()]]
    time = Text(seconds(compiled.elapsed_s) if compiled.elapsed_s else "", "dim")
    return [[name, chosen, *moves[0], time], *([Text(), Text(), *move] for move in moves[1:])]


def cause_words(differences: Sequence[Difference]) -> tuple[str, str]:
    """The sign of an answer beside the plan, and the causes of its differences: ``≠``, ``wider dtype``."""
    codes = dict.fromkeys(difference.code for difference in differences)
    other = [code for code in codes if code not in SAME_TRAFFIC]
    causes = [CAUSES[code] for code in other or codes] or [NO_DIFFERENCE]
    more = f", {len(causes) - 2} more" if len(causes) > 2 else ""
    return "≠" if other else "=", ", ".join(causes[:2]) + more


def targets_view(answers: Answers, problem: Problem, width: int, palette: Palette) -> list[Text]:
    """All that is known of each target's answer, one after another, with blank lines between."""
    lines: list[Text] = []
    for compiled, differences in answers:
        lines += [Text()] * bool(lines) + target_view(compiled, differences, problem, width, palette)
    every = [collective for one, _ in answers for collective in one.collectives]
    return lines + sentences(parts_of_axes(every, problem.mesh), width, 2, style="dim")


def target_view(
    compiled: TargetResult, differences: Sequence[Difference], problem: Problem, width: int, palette: Palette
) -> list[Text]:
    """The target's name, time and mesh, its collectives in full, or its error; then its differences."""
    mesh, result = problem.mesh, problem.result
    time = f"answered in {seconds(compiled.elapsed_s)}" if compiled.elapsed_s else ""
    time = f"{time}, read from the cache" if compiled.is_cached else time
    head: list[Cell] = [(compiled.target, "bold"), (time, "dim")]
    if compiled.result_spec is not None:
        chosen = spec_text(result.name, result.dims, compiled.result_spec, mesh, palette)
        head.append(Text("→ ").append_text(chosen))
    lines = records([head], width)
    if compiled.placement is not None:
        lines += sentence(placement_words(compiled.placement, mesh), width, 2, "placed: ", "dim")
    if compiled.status != "ok":
        return lines + error_lines(compiled, width, 2)
    rows = rows_of(compiled.collectives, mesh, palette, compiled.collective_matmuls)
    tells_how = compiled.placement is not None or any(
        collective.is_async or collective.algorithm for collective in compiled.collectives
    )
    lines += row_lines(rows, width, tells_how and has_schedule(compiled))
    lines += [] if rows else [Text("  no collective: nothing is sent")]
    lines += traffic_lines(compiled, mesh, width)
    lines += table([[(name, "bold"), text] for name, text in compiled.typeof], width, 2)
    return lines + difference_lines(differences, width, 2)


def difference_lines(differences: Sequence[Difference], width: int, indent: int = 0) -> list[Text]:
    """Each difference in full, after its sign and code, or that there is none."""
    lines: list[Text] = []
    for difference in differences:
        sign = "=" if difference.code in SAME_TRAFFIC else "≠"
        lines += sentence(difference.message, width, indent, f"{sign} {difference.code}: ")
    if all(difference.code in AS_PLANNED for difference in differences):
        lines += sentence(NO_DIFFERENCE, width, indent, "= ", "dim")
    return lines


def error_lines(compiled: TargetResult, width: int, indent: int) -> list[Text]:
    """The reason why a target has no answer, and its hint."""
    lines = sentence(compiled.error, width, indent, "✗ ", "bold")
    return lines + sentence(compiled.hint, width, indent + 2, style="dim")


def traffic_lines(compiled: TargetResult, mesh: Mesh, width: int) -> list[Text]:
    """The traffic across the edges of slices or nodes and inside them; no line where there is one of them."""
    traffic, placement = traffic_of(compiled, mesh), compiled.placement
    if not any(traffic.values()) or placement is None:
        return []
    between, inside = f"between {placement.unit}s", f"inside a {placement.unit}"
    parts = {"between": between, "both": f"{between} and inside them", "inside": inside}
    said = [
        f"{parts[part]}: {plural(len(those), 'collective')}, {exact_bytes(bytes_sent(those))} sent per device"
        for part, those in traffic.items()
        if those
    ]
    lead, _, rest = "; ".join(said).partition(": ")
    return sentence(rest, width, 2, f"{lead}: ")


def placement_words(placement: Placement, mesh: Mesh) -> str:
    """``X along y (1 hop, a line), Y along x (1 hop, a ring), on a torus of 2×4 chips``."""
    axes: dict[str, list[str]] = {}
    for run in axis_runs(placement, mesh):
        ways = [BETWEEN[one] for one in run.along if one in BETWEEN]
        along = [WITHIN.get(one, one) for one in run.along if one not in BETWEEN]
        ways += [f"along {' and '.join(along)}"] if along else []
        way = " and ".join(ways) or "on one device"
        if run.hops is not None and set(run.along) - {*BETWEEN, *WITHIN}:
            way += f" ({plural(run.hops, 'hop')}, {'a ring' if run.is_ring else 'a line'})"
        axes.setdefault(way, []).append(run.axis)
    words = ", ".join(f"{' and '.join(names)} {way}" for way, names in axes.items())
    ids, row, count = placement.ids, mesh.axis_sizes[-1], placement.units
    if ids != (*range(len(ids)),) and len(ids) <= 16:
        # A row for each line along the mesh's last axis.
        rows = (" ".join(map(str, ids[start : start + row])) for start in range(0, len(ids), row))
        words += f", devices {' / '.join(rows)}"
    if placement.unit == "node":
        gpus = plural(len(placement.places) // count, "GPU")
        ground = f"{gpus} of one node" if count == 1 else f"{count:,} nodes of {gpus}"
    else:
        shape = f"{times(placement.torus)} {'chip' if set(placement.torus) == {1} else 'chips'}"
        ground = shape if count == 1 else f"{count:,} slices of {shape}"
    if placement.unit == "node" and f"along {WITHIN['gpu']}" in axes and BETWEEN["node"] not in words:
        return words.replace(WITHIN["gpu"], f"the {ground}")
    return f"{words}, on {ground}"


class Wait(NamedTuple):
    """A target at a `stage`, asked `seconds` ago; without seconds, not asked, for the reason in `stage`."""

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
    return table(rows, width, 0, ("", "", ">"))


class TargetTab(NamedTuple):
    """A target on the strip: its `sign` ("✓", "✗", "·" or one that turns), and `words` of its state."""

    name: str
    sign: str
    words: str = ""


def target_strip(tabs: Sequence[TargetTab], chosen: int, width: int) -> Text:
    """All targets, with as many words as fit; where the names do not, the chosen one and its number."""

    def drawn(number: int, with_words: bool) -> Text:
        tab, is_chosen = tabs[number], number == chosen
        text = Text.assemble(("❯ " if is_chosen else "  ", "bold"), (tab.name, "bold" if is_chosen else ""))
        text.append(" ").append(tab.sign, SIGNS.get(tab.sign, "" if is_chosen else "dim"))
        return text.append(f" {tab.words}" if with_words and tab.words else "", "dim")

    for worded in (range(len(tabs)), (chosen,), ()):
        text = Text(" " * GAP).join(drawn(number, number in worded) for number in range(len(tabs)))
        if text.cell_len <= width:
            return text
    text = Text.assemble((f"{chosen + 1}/{len(tabs)} ", "dim"), drawn(chosen, True))
    return cut(text, width)


def target_at(strip: str, names: Sequence[str], column: int) -> str:
    """The target at a column of the strip; empty where there is none."""
    target, index = "", 0
    for name in names:
        start = strip.find(f" {name} ", index)
        if start < 0:
            break
        if column > start:
            target = name
        index = start + len(name)
    return target
