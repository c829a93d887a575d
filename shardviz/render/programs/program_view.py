"""A program's collectives: totals first, then each in program order under its line; a function of the user's
as targets compile it: one target's page, a line for each of several, or for each combination of values; what
JAX accepts in place of one that it refuses; and the modules of a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.text import Text

from shardviz.errors import plural
from shardviz.hlo import HloModule, ShardyModule
from shardviz.hlo.collective import totals
from shardviz.render.lines import bar, printable_line, sentence, sentences, shared
from shardviz.render.palette import BEST, SIGNS, Palette
from shardviz.render.programs.array_table import array_lines, rematerialization_lines
from shardviz.render.programs.collective_rows import parts_of_axes
from shardviz.render.programs.cost_lines import (
    FEW,
    cost_lines,
    sum_lines,
    total_lines,
    verdict_lines,
    why_lines,
)
from shardviz.render.programs.target_answers import error_lines, placement_words, traffic_lines
from shardviz.render.tables import Cell, giving_way, records, table
from shardviz.render.times.live_memory import buffer_lines, memory_report_lines, misfit_lines
from shardviz.render.times.report import brief_view
from shardviz.reports.entries import BY_COST, Selection
from shardviz.reports.lowered_module import ShardingRefusal
from shardviz.reports.program_report import DumpedModule, ProgramReport, TargetProgram
from shardviz.reports.trials import OPTION, TrialTable
from shardviz.reports.verdicts import WasteVerdict
from shardviz.sharding import Mesh
from shardviz.timeline.program_timeline import MemoryReport
from shardviz.units import human_bytes, seconds

HEADINGS = ("target", ">collectives", ">sent per device", ">time", ">exposed", ">memory")
MOST = 16
"""Lines of collectives on a page that was not asked for more."""
TOLD = ("", "× collectives", " sent", "", " exposed", " of memory")
"""The words after the cells where there is no room for headings."""


def program_view(
    program: TargetProgram,
    report: ProgramReport | None,
    width: int,
    palette: Palette,
    selection: Selection = BY_COST,
    verdicts: Sequence[WasteVerdict] | None = None,
    verbose: bool = False,
) -> list[Text]:
    """The target and its mesh, the page of `shardviz hlo` of its `report`, replicated arrays, memory and
    notes, or why there is no program. With `verdicts`, or when `verbose`, the reasons of collectives."""
    lines = target_lines(program, width)
    lines += sentences(program.warnings, width, lead="warning: ")
    if report is not None:
        lines += hlo_view(report, program.mesh, width, palette, selection, verbose)
        lines += verdict_lines(verdicts or (), width)
        if program.reshards and (verbose or verdicts is not None):
            lines += why_lines(report, program.reasons, selection, width, palette)
    lines += rematerialization_lines(program.rematerializations, width)
    if program.memory is not None:
        # A target that has refused it for that has said so above.
        is_refused = program.answer.status != "ok"
        lines += [Text(), *(() if is_refused else misfit_lines(program.memory, width))]
        lines += memory_lines(program.memory, width, palette, verbose)
        estimate = None if report is None or report.timeline is None else report.timeline.memory
        if verbose and not program.memory.buffers and estimate is not None and estimate.by == "estimate":
            # The compiler's sums do not say what lies there.
            lines += sentence("contents estimated from program order", width, 2, style="dim")
            lines += buffer_lines(estimate, width)
    return lines + sentences(program.notes, width, lead="note: ")


def arrays_view(
    program: TargetProgram,
    width: int,
    palette: Palette,
    verbose: bool = False,
    verdicts: Sequence[WasteVerdict] = (),
) -> list[Text]:
    """The target, every array of the program, and the `verdicts`; the reason where it has made none."""
    lines = target_lines(program, width)
    if program.module is None or program.mesh is None:
        return lines
    lines += module_lines(program.module, program.mesh, width, palette)
    lines += array_lines(program.arrays, program.mesh, width, palette, verbose)
    lines += verdict_lines(verdicts, width)
    lines += sentences(program.warnings, width, lead="warning: ")
    return lines + sentences(program.notes, width, lead="note: ")


def memory_lines(memory: MemoryReport, width: int, palette: Palette, verbose: bool) -> list[Text]:
    if verbose:
        return memory_report_lines(memory, width, palette)
    limit = "" if memory.limit_bytes is None else f" of {human_bytes(memory.limit_bytes)}"
    return sentence(f"{human_bytes(memory.peak_bytes)}{limit}", width, lead="peak memory: ")


def target_lines(program: TargetProgram, width: int) -> list[Text]:
    """``v5e:2x4 compiled in 1.2 s``, the mesh's place, the traffic between slices or nodes, and any error."""
    answer, mesh = program.answer, program.mesh
    verb = "compiled in" if answer.status == "ok" else "refused after"
    took = f"  {verb} {seconds(answer.elapsed_s)}" if answer.elapsed_s else ""
    took += ", read from the cache" if answer.is_cached else ""
    lines = sentence(took, width, lead=answer.target)
    if answer.placement is not None and mesh is not None:
        lines += sentence(placement_words(answer.placement, mesh), width, 2, "placed: ", "dim")
        lines += traffic_lines(answer, mesh, width)
    return lines + (error_lines(answer, width, 0) if answer.status != "ok" else [])


def programs_view(
    programs: Sequence[tuple[TargetProgram, ProgramReport | None]],
    width: int,
    palette: Palette,
    selection: Selection = BY_COST,
    verbose: bool = False,
) -> list[Text]:
    """A line a target: runs of collectives, bytes sent, time, exposed time, peak memory; then what costs most
    on each, few unless `verbose` or the selection says how many; and refusals."""
    rows: list[list[Cell]] = []
    for program, report in programs:
        name, memory = Text(program.target, "bold"), program.memory
        taken = Text("" if memory is None else human_bytes(memory.peak_bytes))
        if memory is not None and memory.limit_bytes is not None:
            taken.append(f" of {human_bytes(memory.limit_bytes)}", "dim")
        if program.answer.status != "ok":
            name.append(" ").append("✗", SIGNS["✗"])
        rows.append([name, "", "", "", "", taken])
        if report is None or program.bytes_sent is None:
            continue
        runs = sum(entry.runs or 0 for entry in report.entries if entry.collective.wire_bytes)
        unknown = any(entry.runs is None for entry in report.entries)
        rows[-1][1:3] = f"{runs:,}" + " + ?" * unknown, human_bytes(program.bytes_sent)
        if report.timeline is not None:
            exposed = sum(waits for _, waits in report.timeline.exposed_seconds)
            rows[-1][3:5] = seconds(report.timeline.seconds), seconds(exposed) if exposed else "0"
    lines = table(rows, width, 0, HEADINGS, told=TOLD)
    few = selection if verbose or selection.top is not None else replace(selection, top=FEW)
    for program, report in programs:
        is_refused = program.answer.status != "ok"
        if is_refused or (report is not None and report.entries):
            lines += [Text(), Text(program.target, "bold")]
        if is_refused:
            lines += error_lines(program.answer, width, 2)
        if report is not None and report.entries:
            lines += cost_lines(report, few, width, palette)
    placed = [
        (program.target, placement_words(program.answer.placement, program.mesh))
        for program, _ in programs
        if program.answer.placement is not None and program.mesh is not None
    ]
    lines += [Text()] * bool(placed) + shared(placed, width, 0, "{} placed: ", "dim")
    warnings = ((program.target, f"warning: {said}") for program, _ in programs for said in program.warnings)
    notes = ((program.target, note) for program, _ in programs for note in program.notes)
    return [*lines, *shared(warnings, width), *shared(notes, width)]


def hlo_view(
    report: ProgramReport,
    given: Mesh | None,
    width: int,
    palette: Palette,
    selection: Selection = BY_COST,
    verbose: bool = False,
) -> list[Text]:
    """The module's facts, its mesh, and its collectives by cost, with their total, and seconds where there is
    a timeline; when `verbose`, all of them and all sums. `given` is the mesh that the user named, if any."""
    lines = module_lines(report.module, given, width, palette)
    if report.timeline is not None:
        lines.append(Text(f"times on {report.timeline.machine}", "dim"))
    lines.append(Text())
    if report.entries:
        shown = selection if verbose or selection.top is not None else replace(selection, top=MOST)
        lines += cost_lines(report, shown, width, palette)
        if verbose and len(selection.groups(report.entries)) > 1:
            lines += sum_lines(report, selection, width, palette)
        else:
            lines += total_lines(report, selection, width)
        # What the figures leave out or take together, and the parts of axes.
        module, moving, remarks = report.module, [entry.collective for entry in report.entries], []
        if module.unread_collectives:
            unread = plural(module.unread_collectives, "collective")
            remarks += sentence(f"unreadable and not in the sums: {unread}", width)
        if module.awaits_partitioner:
            words = "the partitioner may insert more later: read the text of the compiled program"
            remarks += sentence(words, width, style="dim")
        if count := sum(collective.in_branch for collective in moving):
            words = "in branches of conditionals: the sums count every branch, but a run takes one"
            remarks += sentence(f"{plural(count, 'collective is', 'collectives are')} {words}", width)
        if count := sum(collective.op == "slice" for collective in module.collectives):
            words = f"and {plural(count, 'local slice')} of replicated arrays: nothing is sent"
            remarks += sentence(words, width, style="dim")
        remarks += sentences(parts_of_axes(moving, module.mesh), width, style="dim")
        lines += [Text(), *remarks] if remarks else []
    else:
        lines += [Text("no collective: nothing is sent")]
        if report.module.unread:
            lines[-1] = Text("no collective in the readable part")
        elif report.module.awaits_partitioner:
            words = "the partitioner inserts them later: read the text of the compiled program"
            lines[-1:] = sentence(words, width, lead="no collective yet: ")
    if report.timeline is not None:
        lines += brief_view(report.timeline, width, palette)
    return [printable_line(line) for line in lines]


def module_lines(
    module: HloModule | ShardyModule, given: Mesh | None, width: int, palette: Palette
) -> list[Text]:
    """``jit_f  8 partitions, scheduled``, then the mesh."""
    facts = ["StableHLO, no schedule"]
    if isinstance(module, HloModule):
        facts = [plural(module.num_partitions, "partition")]
        facts += [plural(module.replica_count, "replica")] * (module.replica_count > 1)
        facts += [f"one of {module.num_slices} slices"] * (module.num_slices > 1)
        facts += ["scheduled" if module.is_scheduled else "not scheduled"]
    lines = sentence(f"  {', '.join(facts)}", width, lead=module.name or "unnamed program")
    mesh = module.mesh
    if mesh is None:
        words = "no mesh: numbers are device positions; --mesh names the axes"
        has_groups = any(collective.group_count for collective in module.collectives)
        return lines + (sentence(words, width, style="dim") if has_groups else [])
    axes = [Text(f"{name}={size}", palette.axis(mesh, name)) for name, size in mesh.shape.items()]
    cells = [Text("mesh ").append_text(Text(", ").join(axes)), Text(plural(mesh.size, "device"))]
    if isinstance(module, HloModule) and given is None:
        cells.append(Text("found in the text; --mesh names your axes", "dim"))
    lines += records([cells], width)
    if isinstance(module, HloModule) and module.mesh_orders > 1:
        words = f"the text has {module.mesh_orders} device orders of this mesh"
        words += ": axes are shown only where a collective's groups name them"
        lines += sentence(words, width, style="dim")
    return lines


def modules_view(modules: Sequence[DumpedModule], width: int, selection: Selection) -> list[Text]:
    """A line a module, with what the selection has of it; others are counted, or say why they fail."""
    read = [(module.file, module.report) for module in modules if module.report is not None]
    sending = [(file, report) for file, report in read if selection.chosen(report.entries)]
    rows = [_module_cells(str(file.number), file.module, [report], selection) for file, report in sending]
    if len(sending) > 1:
        rows.append(_module_cells("", "all", [report for _, report in sending], selection))
    has_times = any(report.timeline is not None for _, report in sending)
    head = (">", "module", ">devices", ">collectives", ">sent per device", ">time" * has_times)
    lines = table(rows, width, 0, head)
    whole = [report for _, report in read if not report.module.unread]
    if silent := [report for report in whole if not selection.chosen(report.entries)]:
        words = f"{plural(len(silent), 'module sends', 'modules send')} nothing"
        words += " of the kind" * (selection != BY_COST)
        times = [report.timeline.seconds for report in silent if report.timeline is not None]
        words += f", in {seconds(sum(times))}" if times else ""
        lines += sentence(words, width, style="dim")
    for module in modules:
        if module.error:
            lines += sentence(module.error, width, lead=f"{module.file.path}: ")
    if sending:
        one = f"shardviz hlo {sending[-1][0].path}"
        lines += [Text(), *sentence(f"the collectives of one: {one}", width, style="dim")]
    return lines


def _module_cells(
    number: str, name: str, reports: Sequence[ProgramReport], selection: Selection
) -> list[Cell]:
    chosen = [entry.collective for report in reports for entry in selection.chosen(report.entries)]
    op_totals = [total for total in totals(chosen) if not total.is_host_transfer]
    more = " + ?" * any(total.unknown for total in op_totals)
    programs = [report.module for report in reports if isinstance(report.module, HloModule)]
    devices = {program.num_partitions * program.replica_count * program.num_slices for program in programs}
    times = [report.timeline for report in reports if report.timeline is not None]
    return [
        number,
        (name, "bold"),
        f"{devices.pop():,}" if len(devices) == 1 else "",
        f"{sum(total.count for total in op_totals):,}{more}",
        human_bytes(sum(total.wire_bytes for total in op_totals)) + more,
        seconds(sum(time.seconds for time in times)) if times else "",
    ]


FIGURES = (">step", ">per sample", ">exposed", ">sent per device", ">memory", " ")
LONG = 20
"""Columns of a name: of a longer one, such as a flag of XLA, the end tells it apart."""
WORDS = 5
"""Lines of JAX's words that are shown unless all are asked for."""


def trials_view(answer: TrialTable, width: int) -> list[Text]:
    """The table, and below it the reasons why there is no program or no time."""
    trials = answer.trials
    short = [name.removeprefix(OPTION) for name in trials[0].values]
    names = [name if len(name) <= LONG else f"…{name[1 - LONG :]}" for name in short]
    memory = [one.answer.memory for one in trials if one.answer.memory is not None]
    most = max((one.peak_bytes for one in memory), default=0)
    rows: list[list[Cell]] = []
    for one in trials:
        is_refused = one.answer.status != "ok"
        peak = None if one.answer.memory is None else one.answer.memory.peak_bytes
        times = (one.seconds, one.sample_seconds, one.exposed_seconds)
        rows.append([("✗", SIGNS["✗"]) if is_refused else (BEST * one.is_best, "bold"), *one.values.values()])
        rows[-1] += ["" if each is None else seconds(each) for each in times]
        rows[-1] += ["" if each is None else human_bytes(each) for each in (one.bytes_sent, peak)]
        rows[-1].append((bar(peak or 0, most, 12), SIGNS["✗"] if is_refused else ""))
    words = f"{plural(len(trials), 'combination')} on {answer.target}"
    lines = sentence(words, width, lead=f"{answer.name}  ")
    head = [word * any(row[i] for row in rows) for i, word in enumerate(("", *names, *FIGURES))]
    lines += table(rows, width, 0, head, giving_way(" ", "sent per device", "exposed"))
    values = [
        " ".join(f"{name}={value}" for name, value in zip(short, one.values.values(), strict=True))
        for one in trials
    ]
    errors = zip(values, (one.answer.error for one in trials), strict=True)
    lines += shared(errors, width, 0, "✗ {}: ")
    by = " per sample" if any(one.sample_seconds for one in trials) else ""
    limit = f", of {human_bytes(memory[0].limit_bytes)}" if memory and memory[0].limit_bytes else ""
    notes = [f"{BEST} Pareto-optimal: nothing faster{by} uses less memory."] * any(o.is_best for o in trials)
    notes += [f"Memory is the compiler's peak per device{limit}."] * bool(memory)
    notes += [f"No times: {words}." for words in dict.fromkeys(one.untimed for one in trials) if words]
    return [*lines, *sentence(" ".join(notes), width, style="dim")]


def refusal_view(refusal: ShardingRefusal, width: int, verbose: bool) -> list[Text]:
    """The place, the types of the arrays, JAX's words, whole if `verbose`, and each change that JAX accepts:
    what the whole program with it sends and takes on a target."""
    lines = sentence(f"  {refusal.source}", width, lead=refusal.place)
    lines += sentence("  ".join(refusal.types), width, 2)
    words = sentences(refusal.words.splitlines(), width, 2)
    if not verbose and len(words) > WORDS:
        words[WORDS - 1 :] = [Text("  … -v shows all", "dim")]
    lines += words
    if not refusal.changes:
        return [*lines, Text(), *sentence("JAX accepted no change that was tried.", width)]
    priced = [change for change in refusal.changes if change.sent_bytes is not None]
    shown = refusal.changes if verbose or not priced else priced
    timed = any(change.seconds is not None for change in shown)
    rows: list[list[Cell]] = []
    for change in shown:
        sent = "" if change.sent_bytes is None else human_bytes(change.sent_bytes)
        took = "" if change.seconds is None else seconds(change.seconds)
        peak = "" if change.peak_bytes is None else human_bytes(change.peak_bytes)
        note = f"then {change.then}" if change.then else change.note
        rows.append([sent, *[took] * timed, peak, change.code, (note, "dim")])
    hidden = len(refusal.changes) - len(shown)
    more = f" ({hidden} more lead to another refusal: -v)" * (hidden > 0)
    target = f" The whole program with each, on {refusal.target}:" * bool(priced)
    lines += [Text(), *sentence(f"JAX accepts these changes{more}.{target}", width)]
    head = [">sent", *[">time"] * timed, ">peak", "in its place"]
    told = [" sent", *[""] * timed, " peak", "", ""]
    return [*lines, *table(rows, width, 2, head, told=told)]
