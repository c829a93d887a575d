"""A timeline on one line, and one of its operations: its time, by whose estimate, and what it waited for."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.lines import printable, printable_line, records, sentence
from shardviz.render.palette import SIGNS
from shardviz.render.times.report import ESTIMATES, percent
from shardviz.timeline.program_timeline import ProgramTimeline, TimedOp
from shardviz.units import estimated_seconds, exact_bytes, human_bytes

MAX_AWAITED = 3
"""Operations that another waited for and that are named."""


def timeline_heading(timeline: ProgramTimeline, said: Sequence[str], width: int) -> Text:
    """``1.24 ms on v5e:2x4  exposed 210 µs  61 % of the peak``, with what is `said`, as far as that fits."""
    total = f"{estimated_seconds(timeline.seconds)} on {timeline.machine}"
    memory, exposed = timeline.memory, sum(seconds for _, seconds in timeline.exposed_seconds)
    over = memory.over_bytes if memory is not None else 0
    text = Text(total, "bold")
    if over:
        text = Text.assemble(("✗", SIGNS["✗"]), (f" does not fit by {human_bytes(over)}  ", "bold"), text)
    facts = [plural(len(timeline.unknown), "operation") + " without an estimate"] * bool(timeline.unknown)
    facts.append(f"exposed {estimated_seconds(exposed)}")
    if timeline.utilisation is not None:
        facts.append(f"{percent(timeline.utilisation)} of the peak")
    for fact in (*facts, *said):
        if text.cell_len + 2 + len(fact) <= width:
            text.append(f"  {fact}", "dim")
    return text


def comparison_heading(first: ProgramTimeline, second: ProgramTimeline) -> Text:
    """``below: 1.15 × as long, exposed 2.1 ms instead of 17.9 ms``."""
    waits = [sum(seconds for _, seconds in each.exposed_seconds) for each in (second, first)]
    exposed = " instead of ".join(map(estimated_seconds, waits))
    ratio = f"{second.seconds / first.seconds:.3g} × as long" if first.seconds else ""
    return Text.assemble((f"below: {ratio}", "bold"), (f"  exposed {exposed}", "dim"))


def op_details(timeline: ProgramTimeline, number: int, width: int, marked: Text | None = None) -> list[Text]:
    """Lines of at most `width` columns on the operation of that number, the most telling first. `marked` is
    the group of the device that is marked, where it takes part."""
    op = timeline.ops[number]
    lane = timeline.lanes[op.lane]
    kind = [Text(printable(op.op), "dim")] if op.op != op.name else []
    lines = records([[Text(printable(op.name), "bold"), *kind, Text(lane.name), *_times(op)]], width)
    by = ESTIMATES.get(op.estimate, "")
    counted = ": ".join(filter(None, (by, op.detail))) or "nobody can estimate it"
    lines += sentence(printable(counted), width, lead="by " if by else "")
    lines += records([[Text(fact, "dim") for fact in _facts(op)]], width) if _facts(op) else []
    lines += records([[Text.assemble("group ", marked)]], width) if marked else []
    lines += sentence(printable(op.source), width, lead="from " if op.source else "")
    awaited = sorted(op.after, key=lambda each: -timeline.ops[each].end)
    names = [printable(timeline.ops[each].name) for each in awaited[:MAX_AWAITED]]
    if more := len(awaited) - len(names):
        names.append(f"{more:,} more")
    lines += sentence(", ".join(names), width, lead="waited for " if names else "")
    return [printable_line(line) for line in lines]


def _times(op: TimedOp) -> list[Text]:
    if op.seconds is None:
        return [Text("time unknown", "bold")]
    cells = [Text(estimated_seconds(op.seconds), "bold")]
    if op.runs is None:
        cells.append(Text("in a loop of unknown length"))
    elif op.runs != 1:
        cells.append(Text(f"× {op.runs:,} = {estimated_seconds(op.seconds * op.runs)}"))
    if op.exposed > 0:
        each = " a run" if op.runs != 1 else ""
        cells.append(Text(f"exposed {estimated_seconds(op.exposed)}{each}", "bold"))
    elif op.is_async:
        cells.append(Text("hidden"))
    return cells


def _facts(op: TimedOp) -> list[str]:
    facts = [f"bound by {op.bound}"] if op.bound else []
    facts += [exact_bytes(op.bytes)] if op.bytes else []
    return [*facts, f"{op.flops:,.0f} FLOP"] if op.flops else facts
