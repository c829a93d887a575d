"""A timeline as a page (total, savings, chart; in full the critical path and the memory) and on one line, one
of its operations in words, and the times of one program by several tellers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.style import Style
from rich.text import Text

from shardviz.errors import plural
from shardviz.render.lines import bar, listed, sentence, sentences
from shardviz.render.palette import SIGNS, Palette
from shardviz.render.tables import Cell, columns, records, table
from shardviz.render.times.gantt import (
    FIGURED,
    WAITING,
    LaneStyles,
    is_matmul,
    picture_lines,
    stacked_pictures,
)
from shardviz.render.times.live_memory import BAR, LISTED, NEGLIGIBLE, memory_report_lines, misfit_lines
from shardviz.render.times.timeline_rows import HIDDEN, lane_times, unknown_lanes
from shardviz.reports.program_report import TargetTimes, TimesAnswer
from shardviz.timeline.program_timeline import Estimate, ProgramTimeline, TimedOp
from shardviz.units import exact_bytes, human_bytes, percent, seconds

Scale = tuple[float, int]
"""The seconds that a chart has at least, and its first column."""
ESTIMATES: dict[Estimate, str] = {
    "compiler": "the compiler's own cycles",
    "roofline": "a roofline",
    "links": "the link model",
    "scheduler": "the compiler's scheduler",
    "measured": "the device's clock",
}


def timeline_view(
    timeline: ProgramTimeline, width: int, palette: Palette, verbose: bool = False, scale: Scale = (0, 0)
) -> list[Text]:
    """A timeline's total, largest saving, chart and assumptions; `verbose` has all causes and the memory."""
    chart = picture_lines(timeline, width, palette, *scale)
    return [
        *total_lines(timeline, width, palette, with_parts=not chart or width < FIGURED),
        *sentences([saving.message for saving in timeline.savings[: not verbose]], width, 2),
        *[Text()] * bool(chart),
        *chart,
        *cause_lines(timeline, width, palette, verbose),
    ]


def brief_view(timeline: ProgramTimeline, width: int, palette: Palette) -> list[Text]:
    """Below another page: a blank line, the total with its parts, and the notes."""
    return [Text(), *total_lines(timeline, width, palette), *note_lines(timeline, width)]


def total_lines(
    timeline: ProgramTimeline, width: int, palette: Palette, with_parts: bool = True
) -> list[Text]:
    """That it does not fit, if so, ``jit_step on v5e:4x4: 3.71 s, 41 % of its peak FLOP/s``, and the parts of
    that, unless the lanes of a chart have them."""
    lines = [] if timeline.memory is None else misfit_lines(timeline.memory, width)
    words = [seconds(timeline.seconds)]
    if timeline.utilisation is not None:
        words.append(f"{percent(timeline.utilisation)} of its peak FLOP/s")
    if timeline.unknown:
        words.append(f"{plural(len(timeline.unknown), 'operation')} without an estimate not included")
    if timeline.idle_seconds and not with_parts:
        words.append(f"idle {seconds(timeline.idle_seconds)}")
    lines += sentence(", ".join(words), width, lead=f"{timeline.title} on {timeline.machine}: ")
    return lines + (parts_lines(timeline, width, palette) if with_parts else [])


def cause_lines(timeline: ProgramTimeline, width: int, palette: Palette, verbose: bool = True) -> list[Text]:
    """Savings, the critical path and memory if `verbose`, then notes, each after a blank line."""
    memory, blocks = timeline.memory, [note_lines(timeline, width)]
    if verbose:
        savings = [Text("largest savings", "bold")] if timeline.savings else []
        for saving in timeline.savings:
            source = timeline.ops[saving.op].source
            words = saving.message + (f" ({source})" if source and source not in saving.message else "")
            savings += sentence(words, width, 2, f"{seconds(saving.seconds)}  ")
        counts = Counter(op.optimistic for op in timeline.ops if op.optimistic)
        said = (f"{why} ({plural(count, 'operation')})" for why, count in counts.most_common())
        blocks = [
            savings,
            critical_lines(timeline, width, palette),
            [] if memory is None else memory_report_lines(memory, width, palette),
            sentence("; ".join(said), width, lead="optimistic: ") if counts else [],
            *blocks,
        ]
    return [line for block in blocks if block for line in (Text(), *block)]


def parts_lines(timeline: ProgramTimeline, width: int, palette: Palette) -> list[Text]:
    """A line for compute, each lane that moves data, and idle time: busy, exposed, its share of the total."""
    total, lanes = timeline.seconds, LaneStyles(timeline, palette)
    looks = {"?": "bold", HIDDEN: "dim"}
    numbers = {lane.name: number for number, lane in enumerate(timeline.lanes) if lane.kind != "compute"}
    parts = {"compute": timeline.compute_seconds, "idle": timeline.idle_seconds}
    parts |= dict(timeline.exposed_seconds)
    rows: list[list[Cell]] = []
    told: list[list[Cell]] = []
    for name, (busy, waited) in lane_times(timeline).items():
        number = numbers.get(name)
        label = (name, Style(bold=True) if number is None else lanes.name(number))
        share = parts.get(name, 0.0) / total if total else 0.0
        drawn = bar(min(share, 1.0), 1.0, BAR)
        if name != "compute":
            drawn = WAITING * max(round(min(share, 1.0) * BAR * 8) // 8, int(share > 0))
        ratio = (" " * bool(drawn) + percent(share) if share else "", "dim")
        shown = Text.assemble((drawn, Style() if number is None else lanes.bar(number)), ratio)
        rows.append([label, (busy, looks.get(busy, "")), (waited, looks.get(waited, "")), shown])
        word = " exposed" * (name != "idle" and waited not in ("", HIDDEN))
        told.append([label, f"{busy} busy" * bool(busy), (f"{waited}{word}", looks.get(waited, "")), shown])
    whole = columns(rows, width, 2, ("", ">busy", ">exposed", "of the total"))
    return records(told, width, 2) if whole is None else whole


def critical_lines(timeline: ProgramTimeline, width: int, palette: Palette) -> list[Text]:
    """The chain of operations that the end had to wait for; where it is long, the longest of them."""
    path = timeline.critical_path
    if not path:
        return []
    ops = [timeline.ops[number] for number in path]
    least = sum(map(_all_runs, ops)) * NEGLIGIBLE
    longest = sorted(range(len(ops)), key=lambda i: -_all_runs(ops[i]))[:12]
    # Of very many operations none may be a thousandth.
    listed = {i for i in longest if _all_runs(ops[i]) >= least} or {*longest}
    listed |= {i for i, op in enumerate(ops) if op.seconds is None}
    styles = LaneStyles(timeline, palette)
    rows: list[list[Cell]] = []
    for op in (op for i, op in enumerate(ops) if i in listed):
        lane = timeline.lanes[op.lane]
        is_compute = lane.kind == "compute"
        what = "matmul" if is_matmul(op) else "" if op.op in op.name else op.op
        where = Text() if is_compute else Text(lane.name, styles.name(op.lane))
        time = Text(seconds(_all_runs(op))) if op.seconds is not None else Text("?", "bold")
        runs = "" if op.runs == 1 else "×?" if op.runs is None else f"×{op.runs:,}"
        bound = op.bound if is_compute else ""
        rows.append([time, (op.name, "bold"), what, runs, where, (bound, "dim"), (op.source, "dim")])
    shorter = [op for i, op in enumerate(ops) if i not in listed]
    if shorter:
        words = f"and {plural(len(shorter), 'shorter operation')}"
        rows.append([Text(seconds(sum(map(_all_runs, shorter)))), Text(words, "dim")])
    return [Text("critical path", "bold"), *table(rows, width, 2, (">",))]


def _all_runs(op: TimedOp) -> float:
    return (op.seconds or 0.0) * (1 if op.runs is None else op.runs)


def note_lines(timeline: ProgramTimeline, width: int) -> list[Text]:
    """Operations without an estimate, whose the other estimates are, and the warnings."""
    lines = []
    if timeline.unknown and not any(timeline.unknown[0] in note for note in timeline.notes):
        words = listed(timeline.unknown, LISTED)
        lines += sentence(f"{words}: not in the total", width, lead="no estimate: ")
    parts: Counter[Estimate] = Counter()
    for op in timeline.ops:
        parts[op.estimate] += _all_runs(op)  # type: ignore[assignment]
    said = [
        f"{seconds(spent)} by {ESTIMATES[name]}"
        for name, spent in parts.most_common()
        if name in ESTIMATES and spent and name != "measured"
    ]
    if said:
        words = f"{', '.join(said)}, overlapped time included"
        lines += sentence(words, width, lead="estimates: ", style="dim")
    return lines + sentences(timeline.notes, width, lead="note: ")


def timeline_heading(
    timeline: ProgramTimeline, facts: Sequence[str], width: int, has_total: bool = True
) -> Text:
    """``1.24 ms on v5e:2x4 exposed 210 µs 61 % of the peak``: the total, if wanted, and `facts` that fit."""
    cells = [Text(f"{seconds(timeline.seconds)} on {timeline.machine}", "bold")] * has_total
    if timeline.memory is not None and (over := timeline.memory.over_bytes):
        cells.insert(0, Text.assemble(("✗", SIGNS["✗"]), (f" does not fit by {human_bytes(over)}", "bold")))
    text = Text("  ").join(cells)
    for fact in facts:
        if text.cell_len + 2 + len(fact) <= width:
            text.append(f"{'  ' * bool(text)}{fact}", "dim")
    return text


def timeline_facts(timeline: ProgramTimeline, has_lanes: bool) -> list[str]:
    """Operations left out of a total, its exposed time (idle time below lanes), its share of the peak."""
    facts = [plural(len(timeline.unknown), "operation") + " without an estimate"] * bool(timeline.unknown)
    if not has_lanes:
        facts.append(f"exposed {seconds(sum(waits for _, waits in timeline.exposed_seconds))}")
    elif timeline.idle_seconds:
        facts.append(f"idle {seconds(timeline.idle_seconds)}")
    if timeline.utilisation is not None:
        facts.append(f"{percent(timeline.utilisation)} of the peak")
    return facts


def comparison_heading(first: ProgramTimeline, second: ProgramTimeline) -> Text:
    """``below: 1.15 × the time, exposed 2.1 ms instead of 17.9 ms``."""
    waits = [sum(waits for _, waits in timeline.exposed_seconds) for timeline in (second, first)]
    exposed = " instead of ".join(map(seconds, waits))
    ratio = f"{second.seconds / first.seconds:.3g} × the time" if first.seconds else ""
    return Text.assemble((f"below: {ratio}", "bold"), (f"  exposed {exposed}", "dim"))


def op_details(timeline: ProgramTimeline, number: int, width: int, marked: Text | None = None) -> list[Text]:
    """Lines on an operation, the most telling first; `marked` is the group of the marked device, if any."""
    op = timeline.ops[number]
    lane = timeline.lanes[op.lane]
    kind = [(op.op, "dim")] if op.op != op.name else []
    cells = [Text("time unknown" if op.seconds is None else seconds(op.seconds), "bold")]
    if op.seconds is not None:
        if op.runs is None:
            cells.append(Text("in a loop of unknown length"))
        elif op.runs != 1:
            cells.append(Text(f"× {op.runs:,} = {seconds(op.seconds * op.runs)}"))
        if words := exposure(op):
            cells.append(Text(words, "bold" if op.exposed else ""))
    lines = records([[(op.name, "bold"), *kind, lane.name, *cells]], width)
    by = ESTIMATES.get(op.estimate, "")
    counted = ": ".join(filter(None, (by, op.detail))) or "no estimate"
    counted += f". Optimistic: {op.optimistic}" * bool(op.optimistic)
    lines += sentence(counted, width, lead="by " if by else "")
    facts = [f"bound by {op.bound}"] * bool(op.bound) + [exact_bytes(op.bytes or 0)] * bool(op.bytes)
    facts += [f"{op.flops:,.0f} FLOP"] if op.flops else []
    lines += records([[(fact, "dim") for fact in facts]], width) if facts else []
    lines += records([[Text.assemble("group ", marked)]], width) if marked else []
    lines += sentences([op.source], width, lead="from ")
    awaited = sorted(op.after, key=lambda index: -timeline.ops[index].end)
    names = [timeline.ops[index].name for index in awaited[:3]]
    names += [f"{len(awaited) - 3:,} more"] * (len(awaited) > 3)
    return lines + sentences([", ".join(names)], width, lead="waited for ")


def exposure(op: TimedOp) -> str:
    """The part of an operation's time for which the device waits, in words; "" where that says nothing."""
    if op.exposed == op.seconds:
        return "all exposed"
    if op.exposed > 0:
        return f"exposed {seconds(op.exposed)}{' per run' * (op.runs != 1)}"
    return "hidden" if op.is_async else ""


def target_times_view(answer: TimesAnswer, width: int, palette: Palette, verbose: bool = False) -> list[Text]:
    """A blank line and the times of a target's answer; where there are none, the reason and the memory."""
    lines = [Text()]
    if answer.times is not None:
        return [*lines, *times_view(answer.times, width, palette, verbose)]
    if answer.error is not None:
        lines += sentence(answer.error.message, width, lead="no times: ")
        lines += sentence(answer.error.hint, width, 2, style="dim")
    if answer.memory is not None:
        lines += [*misfit_lines(answer.memory, width), *memory_report_lines(answer.memory, width, palette)]
    return lines


def times_view(times: TargetTimes, width: int, palette: Palette, verbose: bool = False) -> list[Text]:
    """The model's page, with the compiler's scheduler beside it where that has simulated the program."""
    model, scheduler = times.model, times.scheduler
    if scheduler is None:
        lines = timeline_view(model, width, palette, verbose)
        return [*lines, *(sentence(times.note, width, lead="note: ") if times.note else ())]
    tellers = (("by the model", model), ("by the compiler's scheduler", scheduler))
    lines = [
        *total_lines(model, width, palette, with_parts=width < FIGURED),
        *sentences([saving.message for saving in model.savings[:1]], width, 2),
    ]
    lines += [Text(), *totals_table(tellers, width)]
    return [*lines, *stacked_pictures(tellers, width, palette), *cause_lines(model, width, palette, verbose)]


def totals_table(tellers: Sequence[tuple[str, ProgramTimeline]], width: int) -> list[Text]:
    """A row a teller: the total, compute, communication, copies where there are any, and what is exposed.
    Where something has no estimate, a figure is a sum without it, ``24.3 ms + ?``."""
    kinds = {lane.name: lane.kind for _, timeline in tellers for lane in timeline.lanes}
    used = {name for _, timeline in tellers for name, spent in timeline.communication_seconds if spent}
    used.update(*(unknown_lanes(timeline) for _, timeline in tellers))
    columns_of = {"communication": ("axis", "network")}
    if any(kinds[name] in ("copy", "host") for name in used):
        columns_of["copies"] = ("copy", "host")
    words = ("total", "compute", *columns_of, "exposed")
    rows = []
    for name, timeline in tellers:
        unknown = unknown_lanes(timeline)
        row = [Text(name, "bold"), _without_unknown(timeline.seconds, bool(unknown))]
        row.append(_without_unknown(timeline.compute_seconds, "compute" in unknown))
        for wanted in columns_of.values():
            moved = sum(spent for lane, spent in timeline.communication_seconds if kinds[lane] in wanted)
            row.append(_without_unknown(moved, any(kinds[lane] in wanted for lane in unknown)))
        exposed = sum(waits for _, waits in timeline.exposed_seconds)
        rows.append([*row, _without_unknown(exposed, bool(unknown - {"compute"}))])
    told = ("", " total", *(f" {what}" for what in words[1:]))
    return table(rows, width, 2, ("", *map(">{}".format, words)), told=told)


def _without_unknown(time: float, is_partial: bool) -> Text:
    if not is_partial:
        return Text(seconds(time))
    return Text.assemble(f"{seconds(time)} + " if time else "", ("?", "bold"))
