"""A timeline's operations in rows, found by bisection; a stretch of the clock and its ticks; Chrome's trace
events (the JSON object of the "Trace Event Format"), for https://ui.perfetto.dev and chrome://tracing."""

from __future__ import annotations

import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from shardviz.render.lines import printable
from shardviz.timeline.program_timeline import ProgramTimeline, TimedOp, TimeSpan
from shardviz.timeline.unrolled import unrolled
from shardviz.units import SCALES, seconds as human_seconds

MAX_ROWS = 4
"""Rows of one lane; where more operations run at once, the last row has parts of the others."""
MAX_DEPTH = 3
"""Rows of loops, branches and calls within one another."""
HIDDEN = "hidden"
"""Communication for which nothing waits."""
TIGHT = 0.02
"""Of a cell; what takes less of it is not in it."""


@dataclass(frozen=True)
class LaneRow:
    """Operations one after another, of the lane numbered `lane`: entry i, from `starts[i]` to `ends[i]`
    seconds, is operation `ops[i]`, and all before it take `busy[i]` seconds."""

    lane: int
    starts: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    ops: list[int] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)

    def add(self, start: float, end: float, op: int) -> None:
        self.busy.append(self.busy[-1] + self.ends[-1] - self.starts[-1] if self.busy else 0.0)
        self.starts.append(start)
        self.ends.append(end)
        self.ops.append(op)

    def covered(self, start: float, end: float) -> float:
        """Seconds between `start` and `end` in which an operation runs."""
        return self._until(end) - self._until(start)

    def _until(self, time: float) -> float:
        index = bisect_right(self.starts, time) - 1
        return self.busy[index] + min(time, self.ends[index]) - self.starts[index] if index >= 0 else 0.0

    def longest(self, start: float, end: float) -> int | None:
        """The operation that runs longest between two times; None where none does."""
        first, last = bisect_right(self.ends, start), bisect_left(self.starts, end)
        index = max(
            range(first, last),
            key=lambda i: min(self.ends[i], end) - max(self.starts[i], start),
            default=None,
        )
        return None if index is None else self.ops[index]


class TimelineRows:
    """A timeline with the rows of its lanes, at most `max_rows` for each. `row_of` has the row of each
    operation that takes time, `unknown` for each lane the starts and numbers of those without an estimate."""

    def __init__(self, timeline: ProgramTimeline, max_rows: int | None = MAX_ROWS) -> None:
        self.timeline = timeline
        of_lane: list[list[LaneRow]] = [[LaneRow(lane)] for lane in range(len(timeline.lanes))]
        unknown: list[list[tuple[float, int]]] = [[] for _ in timeline.lanes]
        chosen: dict[int, LaneRow] = {}
        for number, op in enumerate(timeline.ops):
            if op.seconds is None:
                unknown[op.lane].append((op.start, number))
            if op.end <= op.start:
                continue
            rows = of_lane[op.lane]
            slack = (op.end - op.start) * 1e-6
            row = next((row for row in rows if not row.ends or row.ends[-1] <= op.start + slack), None)
            if row is None and (max_rows is None or len(rows) < max_rows):
                row = LaneRow(op.lane)
                rows.append(row)
            row = rows[-1] if row is None else row
            start = max(op.start, row.ends[-1]) if row.ends else op.start
            chosen[number] = row
            if start < op.end:
                row.add(start, op.end, number)
        self.rows = [row for rows in of_lane for row in rows]
        self.unknown = [([start for start, _ in pairs], [op for _, op in pairs]) for pairs in unknown]
        places = {id(row): index for index, row in enumerate(self.rows)}
        self.row_of = {number: places[id(row)] for number, row in chosen.items()}
        for _, number in (pair for pairs in unknown for pair in pairs):
            lane = timeline.ops[number].lane
            self.row_of.setdefault(number, places[id(of_lane[lane][0])])

    @cached_property
    def spans(self) -> list[list[TimeSpan]]:
        depth = min(max((span.depth for span in self.timeline.spans), default=-1) + 1, MAX_DEPTH)
        return [
            sorted((span for span in self.timeline.spans if span.depth == level), key=lambda span: span.start)
            for level in range(depth)
        ]

    @cached_property
    def path(self) -> LaneRow:
        """The critical path's operations in a row; empty where these are all, or all of one lane."""
        row, ops = LaneRow(0), self.timeline.ops
        path = [number for number in self.timeline.critical_path if ops[number].end > ops[number].start]
        is_all = len(path) == sum(op.end > op.start for op in ops)
        for number in path if not is_all and len({ops[number].lane for number in path}) > 1 else ():
            start = max([ops[number].start, *row.ends[-1:]])
            if start < ops[number].end:
                row.add(start, ops[number].end, number)
        return row

    @cached_property
    def times(self) -> dict[str, tuple[str, str]]:
        return lane_times(self.timeline)

    def is_first_of_lane(self, index: int) -> bool:
        """True for the row that has its lane's name, and its marks of what nobody can estimate."""
        return not index or self.rows[index - 1].lane != self.rows[index].lane

    def waited_for(self, start: float, end: float) -> int | None:
        """The lane that is busiest between two times; copies only where no other lane is. None where none is,
        and where some row computes for more than half of the time: a CPU has several."""
        least = (end - start) * TIGHT
        best, most = None, (False, 0.0)
        for row in self.rows:
            kind, covered = self.timeline.lanes[row.lane].kind, row.covered(start, end)
            if kind == "compute" and covered > (end - start) / 2:
                return None
            if kind != "compute" and covered > least and (kind != "copy", covered) > most:
                best, most = row.lane, (kind != "copy", covered)
        return best


def lane_times(timeline: ProgramTimeline) -> dict[str, tuple[str, str]]:
    """By the name of a lane the time for which it is busy, and that for which the device waits for it."""
    exposed, unknown = dict(timeline.exposed_seconds), unknown_lanes(timeline)
    times: dict[str, tuple[str, str]] = {}
    for name, seconds in (("compute", timeline.compute_seconds), *timeline.communication_seconds):
        is_unknown = name in unknown and not seconds
        waited = "" if name == "compute" else "?" if is_unknown else HIDDEN
        if exposed.get(name):
            waited = human_seconds(exposed[name])
        times[name] = "?" if is_unknown else human_seconds(seconds), waited
    if timeline.idle_seconds:
        times["idle"] = "", human_seconds(timeline.idle_seconds)
    return times


def unknown_lanes(timeline: ProgramTimeline) -> set[str]:
    """The lanes with operations that nobody can estimate."""
    return {timeline.lanes[op.lane].name for op in timeline.ops if op.seconds is None and op.runs != 0}


MAX_DECIMALS = 4
"""Of a tick; where it needs more, it is in the next smaller unit."""
SMALLEST = 1e-10
"""Seconds of the narrowest window."""
GAP = 3
"""Columns between two ticks' labels at least."""


@dataclass(frozen=True)
class TimeWindow:
    """Seconds `start` to `end` of a drawn clock that ends at `limit`; none of it lies outside."""

    start: float
    end: float
    limit: float

    @classmethod
    def whole(cls, drawn_seconds: float) -> TimeWindow:
        """All of a drawn clock, or of a nanosecond where nothing takes time."""
        limit = drawn_seconds if drawn_seconds > 0 else 1e-9
        return cls(0.0, limit, limit)

    @property
    def seconds(self) -> float:
        return self.end - self.start

    def zoom(self, factor: float, at: float = 0.5) -> TimeWindow:
        """A window `factor` times as long, in which the time at the share `at` of this one stays in place."""
        length = min(max(self.seconds * factor, SMALLEST), self.limit)
        return self._from(self.start + (self.seconds - length) * at, length)

    def pan(self, share: float) -> TimeWindow:
        """The window moved by a share of its length: later, or earlier where it is negative."""
        return self._from(self.start + self.seconds * share, self.seconds)

    def around(self, start: float, end: float, share: float = 0.5) -> TimeWindow:
        """A window in the middle of which `start` to `end` take this share."""
        length = min(max((end - start) / share, SMALLEST), self.limit)
        return self._from((start + end - length) / 2, length)

    def containing(self, start: float, end: float) -> TimeWindow:
        """The window as it is if it shows `start` to `end`, else moved, and widened where that is longer."""
        if self.start <= start and end <= self.end:
            return self
        if end - start > self.seconds:
            return self.around(start, end, 0.9)
        return self._from((start + end - self.seconds) / 2, self.seconds)

    def _from(self, start: float, length: float) -> TimeWindow:
        start = min(max(start, 0.0), self.limit - length)
        return TimeWindow(start, start + length, self.limit)


def ticks(window: TimeWindow, width: int) -> list[tuple[float, str]]:
    """Round times in a window of `width` columns, as many as have room, each with its label: ``20 ms``."""
    least = window.seconds / max(width, 1)
    power = math.floor(math.log10(least))
    steps = (digit * 10.0**exponent for exponent in range(power, power + 9) for digit in (1, 2, 5))
    for step in steps:
        if step < least:
            continue
        unit = next((i for i, (_, size) in enumerate(SCALES) if window.end >= size * 0.9995), len(SCALES) - 1)
        while True:
            name, size = SCALES[unit]
            decimals = max(0, math.ceil(-math.log10(step / size) - 1e-9))
            if decimals <= MAX_DECIMALS or unit == len(SCALES) - 1:
                break
            unit += 1
        if step / least >= len(f"{window.end / size:,.{decimals}f} {name}") + GAP:
            first, last = math.ceil(window.start / step - 1e-9), math.floor(window.end / step + 1e-9)
            times = [n * step for n in range(first, last + 1)]
            return [(time, f"{time / size:,.{decimals}f} {name}" if time else "0") for time in times]
    return []


Event = dict[str, Any]
MAX_EVENTS = 100_000
"""Of all timelines together, beyond which the rest of a loop's runs is one bar."""
SPANS = 1
"""The thread of loops, branches and calls; those of lanes follow."""
JUST_BEFORE = 1e-4
"""Of an operation's time, by which a flow leaves before its end: at the end it would leave the next one."""


def trace(timelines: Sequence[ProgramTimeline]) -> str:
    """A trace with a process for each timeline and a thread for each row of its lanes, an event a line.
    Unlike on the timeline, a loop has all its runs: of many the first, and a bar for the rest."""
    share = MAX_EVENTS // max(1, len(timelines))
    full = [unrolled(timeline, share) for timeline in timelines]
    events = [event for process, timeline in enumerate(full, 1) for event in _events(timeline, process)]
    lines = ",\n".join(json.dumps(event, ensure_ascii=False, separators=(",", ":")) for event in events)
    return f'{{"displayTimeUnit":"ns","traceEvents":[\n{lines}\n]}}\n'


def _events(timeline: ProgramTimeline, process: int) -> Iterator[Event]:
    rows = TimelineRows(timeline, max_rows=None)
    names = {0: f"{printable(timeline.title)} on {printable(timeline.machine)}"}
    if timeline.spans:
        names[SPANS] = "loops and branches"
    names |= {
        SPANS + 1 + index: printable(timeline.lanes[row.lane].name) for index, row in enumerate(rows.rows)
    }
    for thread, name in names.items():
        yield _event("M", process, thread, "thread_name" if thread else "process_name", args={"name": name})
    yield _event("M", process, 0, "process_sort_index", args={"sort_index": process})
    for thread in range(SPANS, SPANS + 1 + len(rows.rows)):
        yield _event("M", process, thread, "thread_sort_index", args={"sort_index": thread})
    timed = []
    for span in sorted(timeline.spans, key=lambda span: span.depth):
        count = f" ×{span.count:,}" if span.count is not None else " ×?" if span.kind == "loop" else ""
        name, start = f"{printable(span.name)}{count}", _micro(span.start)
        rest = {"ts": start, "dur": round(_micro(span.end) - start, 6), "args": {"count": span.count}}
        timed.append(_event("X", process, SPANS, name, cat=span.kind, **rest))
    for number, index in sorted(rows.row_of.items()):
        op, thread = timeline.ops[number], SPANS + 1 + index
        rest = {"cat": op.op, "ts": _micro(op.start), "args": _arguments(timeline, op)}
        if op.end > op.start:
            rest = {"dur": round(_micro(op.end) - _micro(op.start), 6), **rest}
            timed.append(_event("X", process, thread, printable(op.name), **rest))
        else:
            timed.append(_event("i", process, thread, printable(op.name), s="t", **rest))
    timed += _flows(rows, process)
    for time, size in () if timeline.memory is None else timeline.memory.curve:
        timed.append(_event("C", process, 0, "live memory", ts=_micro(time), args={"bytes": size}))
    yield from sorted(timed, key=lambda event: event["ts"])


def _micro(seconds: float) -> float:
    return round(seconds * 1e6, 6)


def _event(phase: str, process: int, thread: int, name: str, **rest: Any) -> Event:
    return {"ph": phase, "pid": process, "tid": thread, "name": name, **rest}


def _arguments(timeline: ProgramTimeline, op: TimedOp) -> dict[str, Any]:
    details = {
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
    return {name: value for name, value in details.items() if value} | seconds


def _flows(rows: TimelineRows, process: int) -> Iterator[Event]:
    """From an operation to one on another lane that waited for it."""
    ops, count = rows.timeline.ops, 0
    for number, op in enumerate(ops):
        for before in op.after:
            if ops[before].lane == op.lane or not {before, number} <= rows.row_of.keys():
                continue
            count += 1
            leaves = ops[before].end - (ops[before].end - ops[before].start) * JUST_BEFORE
            flow = {"cat": "dependency", "id": process << 32 | count}
            for phase, end, time in (("s", before, leaves), ("f", number, max(op.start, leaves))):
                more = flow | ({"bp": "e"} if phase == "f" else {})
                thread = SPANS + 1 + rows.row_of[end]
                yield _event(phase, process, thread, "waited for", ts=_micro(time), **more)
