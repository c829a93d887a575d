"""Timelines as Chrome's trace events, which https://ui.perfetto.dev and chrome://tracing open.

The format is the JSON object of the "Trace Event Format": complete events ("X") in microseconds, flows ("s"
and "f") from an operation to those on other lanes that waited for it, counters ("C") of live memory. Unlike
on the timeline, a loop has all its runs: of many the first, and a bar for the rest. An operation's arguments
tell how often it runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from shardviz.render.lines import printable
from shardviz.render.times.timeline_rows import TimelineRows
from shardviz.timeline.program_timeline import ProgramTimeline, TimedOp
from shardviz.timeline.unrolled import unrolled

Event = dict[str, Any]
MAX_EVENTS = 100_000
"""Of all timelines together, beyond which the rest of a loop's runs is one bar."""
MICRO = 1e6
SPANS = 1
"""The thread of loops, branches and calls; those of lanes follow."""
JUST_BEFORE = 1e-4
"""Of an operation's time, by which a flow leaves before its end: at the end it would leave the next one."""


def trace(timelines: Sequence[ProgramTimeline]) -> str:
    """A trace with a process for each timeline and a thread for each row of its lanes, an event a line."""
    share = MAX_EVENTS // max(1, len(timelines))
    full = [unrolled(each, share) for each in timelines]
    events = [event for process, each in enumerate(full, 1) for event in _events(each, process)]
    lines = ",\n".join(json.dumps(event, ensure_ascii=False, separators=(",", ":")) for event in events)
    return f'{{"displayTimeUnit":"ns","traceEvents":[\n{lines}\n]}}\n'


def _events(timeline: ProgramTimeline, process: int) -> Iterator[Event]:
    rows = TimelineRows(timeline, max_rows=None)
    title = f"{printable(timeline.title)} on {printable(timeline.machine)}"
    yield _named("process_name", title, process, 0)
    yield {"ph": "M", "pid": process, "tid": 0, "name": "process_sort_index", "args": {"sort_index": process}}
    if timeline.spans:
        yield _named("thread_name", "loops and branches", process, SPANS)
    for place, row in enumerate(rows.rows):
        name = printable(timeline.lanes[row.lane].name)
        yield _named("thread_name", name, process, _thread(place))
    for thread in range(SPANS, _thread(len(rows.rows))):
        sort = {"sort_index": thread}
        yield {"ph": "M", "pid": process, "tid": thread, "name": "thread_sort_index", "args": sort}
    timed = [*_spans(timeline, process), *_operations(rows, process), *_flows(rows, process)]
    timed += _counters(timeline, process)
    yield from sorted(timed, key=lambda event: event["ts"])


def _thread(place: int) -> int:
    return SPANS + 1 + place


def _named(what: str, name: str, process: int, thread: int) -> Event:
    return {"ph": "M", "pid": process, "tid": thread, "name": what, "args": {"name": name}}


def _micro(seconds: float) -> float:
    return round(seconds * MICRO, 6)


def _spans(timeline: ProgramTimeline, process: int) -> Iterator[Event]:
    for span in sorted(timeline.spans, key=lambda span: (span.start, span.depth)):
        count = f" ×{span.count:,}" if span.count is not None else " ×?" if span.kind == "loop" else ""
        start, end = _micro(span.start), _micro(span.end)
        yield {
            "ph": "X",
            "pid": process,
            "tid": SPANS,
            "name": f"{printable(span.name)}{count}",
            "cat": span.kind,
            "ts": start,
            "dur": round(end - start, 6),
            "args": {"count": span.count},
        }


def _operations(rows: TimelineRows, process: int) -> Iterator[Event]:
    for number, op in enumerate(rows.timeline.ops):
        if number not in rows.row_of:
            continue
        start = _micro(op.start)
        event: Event = {
            "pid": process,
            "tid": _thread(rows.row_of[number]),
            "name": printable(op.name),
            "cat": op.op,
            "ts": start,
        }
        arguments = _arguments(rows.timeline, op)
        if op.end > op.start:
            yield event | {"ph": "X", "dur": round(_micro(op.end) - start, 6), "args": arguments}
        else:
            yield event | {"ph": "i", "s": "t", "args": arguments}


def _arguments(timeline: ProgramTimeline, op: TimedOp) -> dict[str, Any]:
    """The details of an operation; those that are empty are left out."""
    found = {
        "op": op.op,
        "lane": timeline.lanes[op.lane].name,
        "source": op.source,
        "estimate": op.estimate,
        "detail": op.detail,
        "bound": op.bound,
        "bytes": op.bytes,
        "flops": op.flops,
        "exposed_us": _micro(op.exposed),
    }
    seconds = {"us_a_run": None if op.seconds is None else _micro(op.seconds), "runs": op.runs}
    return {name: value for name, value in found.items() if value} | seconds


def _flows(rows: TimelineRows, process: int) -> Iterator[Event]:
    """From an operation to one on another lane that waited for it."""
    ops, count = rows.timeline.ops, 0
    for number, op in enumerate(ops):
        for before in op.after:
            if ops[before].lane == op.lane or not {before, number} <= rows.row_of.keys():
                continue
            count += 1
            flow = {"pid": process, "name": "waited for", "cat": "dependency", "id": process << 32 | count}
            leaves = ops[before].end - (ops[before].end - ops[before].start) * JUST_BEFORE
            yield flow | {"ph": "s", "tid": _thread(rows.row_of[before]), "ts": _micro(leaves)}
            at = max(op.start, leaves)
            yield flow | {"ph": "f", "bp": "e", "tid": _thread(rows.row_of[number]), "ts": _micro(at)}


def _counters(timeline: ProgramTimeline, process: int) -> Iterator[Event]:
    if timeline.memory is None:
        return
    for time, size in timeline.memory.curve:
        yield {
            "ph": "C",
            "pid": process,
            "tid": 0,
            "name": "live memory",
            "ts": _micro(time),
            "args": {"bytes": size},
        }
