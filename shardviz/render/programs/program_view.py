"""A function of the user's as targets compile it: one target's page, or a line for each of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rich.text import Text

from shardviz.render.lines import Cell, sentence, sentences, shared, table
from shardviz.render.palette import SIGNS, Palette
from shardviz.render.programs.cost_lines import cost_lines
from shardviz.render.programs.hlo_view import hlo_view, module_lines
from shardviz.render.programs.target_answers import error_lines, placement_words, traffic_words
from shardviz.render.programs.why_lines import FEW, rematerialization_lines, why_lines
from shardviz.render.times.report import buffer_lines, memory_report_lines, misfit_lines
from shardviz.reports.entries import BY_COST, Selection
from shardviz.reports.program_report import ProgramReport
from shardviz.reports.suggestions import Suggestion
from shardviz.reports.target_program import TargetProgram
from shardviz.reports.why import Reason
from shardviz.units import estimated_seconds, human_bytes, seconds

HEADINGS = ("target", "collectives", "sent by a device", "time", "exposed", "memory")
TOLD = ("", "× collectives", " sent", "", " exposed", " of memory")
"""The words after the cells where there is no room for headings."""


def program_view(
    program: TargetProgram,
    report: ProgramReport | None,
    width: int,
    palette: Palette,
    selection: Selection = BY_COST,
    suggestions: Mapping[Reason, Suggestion] | None = None,
) -> list[Text]:
    """The target and where the mesh lies on it, then the page of `shardviz hlo` of its `report`, why the
    collectives are there (of the most expensive, or of all with `suggestions` of what avoids them), arrays
    that are made whole, the memory, and the notes; of a target without a program, and so without a report,
    the reason."""
    lines = target_lines(program, width)
    if program.answer.status != "ok":
        lines += error_lines(program.answer, width, 0)
    lines += sentences(program.warnings, width, lead="warning: ")
    if report is not None:
        lines += hlo_view(report, program.mesh, width, palette, selection)
        if program.reshards:
            asked = suggestions is not None
            chosen = selection if asked else replace(selection, top=FEW)
            hint = "" if asked else ": --why"
            lines += why_lines(report, program.reasons, chosen, width, palette, suggestions or {}, hint)
    lines += rematerialization_lines(program.rematerializations, width)
    if program.memory is not None:
        # A target that has refused it for that has said so above.
        is_refused = program.answer.status != "ok"
        lines += [Text(), *(() if is_refused else misfit_lines(program.memory, width))]
        lines += memory_report_lines(program.memory, width, palette)
        estimate = None if report is None or report.timeline is None else report.timeline.memory
        if not program.memory.buffers and estimate is not None and estimate.by == "estimate":
            # The compiler's sums do not say what lies there.
            lines += sentence("contents estimated from program order", width, 2, style="dim")
            lines += buffer_lines(estimate, width)
    return lines + sentences(program.notes, width, lead="note: ")


def program_lines(program: TargetProgram, width: int, palette: Palette) -> list[Text]:
    """The head of a page about the times of a target's program."""
    assert program.module is not None
    return [
        Text(),
        *target_lines(program, width),
        *module_lines(program.module, program.mesh, width, palette),
    ]


def target_lines(program: TargetProgram, width: int) -> list[Text]:
    """``v5e:2x4  compiled in 1.2 s``, or how long it took to refuse, the place of the mesh, and the traffic
    between slices or nodes."""
    answer, mesh = program.answer, program.mesh
    verb = "compiled in" if answer.status == "ok" else "refused after"
    took = f"  {verb} {seconds(answer.elapsed_s)}" if answer.elapsed_s else ""
    lines = sentence(took, width, lead=answer.target)
    if answer.placement is not None and mesh is not None:
        lines += sentence(placement_words(answer.placement, mesh), width, 2, "placed: ", "dim")
        if traffic := traffic_words(answer, mesh):
            lead, _, rest = traffic.partition(": ")
            lines += sentence(rest, width, 2, f"{lead}: ")
    return lines


def programs_view(
    programs: Sequence[tuple[TargetProgram, ProgramReport | None]],
    width: int,
    palette: Palette,
    selection: Selection = BY_COST,
) -> list[Text]:
    """A line a target: runs of collectives, what a device sends in them, the time of a run and what of it
    waits for communication, the memory at the peak; then what costs most on each, the first few if the
    selection does not say how many; and the reasons of those without a program."""
    rows = [_cells(program, report) for program, report in programs]
    lines = table(rows, width, 0, range(1, 6), HEADINGS, told=TOLD)
    few = selection if selection.top is not None else replace(selection, top=FEW)
    for program, report in programs:
        is_refused = program.answer.status != "ok"
        if is_refused or (report is not None and report.entries):
            lines += [Text(), Text(program.target, "bold")]
        if is_refused:
            lines += error_lines(program.answer, width, 2)
        if report is not None and report.entries:
            lines += cost_lines(report, few, width, palette)
    placed = [
        (each.target, placement_words(each.answer.placement, each.mesh))
        for each, _ in programs
        if each.answer.placement is not None and each.mesh is not None
    ]
    lines += [Text()] * bool(placed) + shared(placed, width, 0, "{} placed: ", "dim")
    lines += shared(
        ((each.target, f"warning: {said}") for each, _ in programs for said in each.warnings), width
    )
    lines += shared(((each.target, note) for each, _ in programs for note in each.notes), width)
    return lines


def _cells(program: TargetProgram, report: ProgramReport | None) -> list[Cell]:
    """The cells of a target's line, empty where nobody can tell."""
    name = Text(program.target, "bold")
    memory = program.memory
    taken = Text("" if memory is None else human_bytes(memory.peak_bytes))
    if memory is not None and memory.limit_bytes is not None:
        taken.append(f" of {human_bytes(memory.limit_bytes)}", "dim")
    if program.answer.status != "ok":
        name.append(" ").append("✗", SIGNS["✗"])
    if report is None or program.bytes_sent is None:
        return [name, "", "", "", "", taken]
    runs = sum(each.runs or 0 for each in report.entries if each.collective.wire_bytes)
    unknown = any(each.runs is None for each in report.entries)
    times = ["", ""]
    if report.timeline is not None:
        exposed = sum(waits for _, waits in report.timeline.exposed_seconds)
        times = [estimated_seconds(report.timeline.seconds), estimated_seconds(exposed) if exposed else "0"]
    return [name, f"{runs:,}" + " + ?" * unknown, human_bytes(program.bytes_sent), *times, taken]
