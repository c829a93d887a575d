"""The operations of a timeline in rows, prepared once: any stretch of them is found by bisection."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from functools import cached_property

from shardviz.timeline.program_timeline import ProgramTimeline, TimeSpan

MAX_ROWS = 4
"""Rows of one lane; where more operations run at once, the last row has parts of the others."""
MAX_DEPTH = 3
"""Rows of loops, branches and calls within one another."""
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
        place = bisect_right(self.starts, time) - 1
        return self.busy[place] + min(time, self.ends[place]) - self.starts[place] if place >= 0 else 0.0

    def longest(self, start: float, end: float) -> int | None:
        """The operation that runs longest between two times; None where none does."""
        first, last = bisect_right(self.ends, start), bisect_left(self.starts, end)
        found = max(
            range(first, last),
            key=lambda i: min(self.ends[i], end) - max(self.starts[i], start),
            default=None,
        )
        return None if found is None else self.ops[found]


class TimelineRows:
    """A timeline with the rows of its lanes, those of a lane one after another.

    `row_of` has the row of each operation that takes time. `unknown` has for each lane the starts and the
    numbers of the operations that nobody can estimate. `spans` are by depth. A lane has at most `max_rows`
    rows; None is as many as it takes.
    """

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
        self.unknown = [([start for start, _ in each], [op for _, op in each]) for each in unknown]
        places = {id(row): place for place, row in enumerate(self.rows)}
        self.row_of = {number: places[id(row)] for number, row in chosen.items()}
        for _, number in (pair for each in unknown for pair in each):
            lane = timeline.ops[number].lane
            self.row_of.setdefault(number, places[id(of_lane[lane][0])])

    @cached_property
    def spans(self) -> list[list[TimeSpan]]:
        depth = min(max((span.depth for span in self.timeline.spans), default=-1) + 1, MAX_DEPTH)
        return [
            sorted((span for span in self.timeline.spans if span.depth == each), key=lambda span: span.start)
            for each in range(depth)
        ]

    def is_first_of_lane(self, place: int) -> bool:
        """True for the row that has its lane's name, and its marks of what nobody can estimate."""
        return not place or self.rows[place - 1].lane != self.rows[place].lane

    def waited_for(self, start: float, end: float) -> int | None:
        """The lane that is busiest between two times; copies only where no other lane is busy. None where no
        lane is, and where some row computes for more than half of the time: a CPU has several."""
        least = (end - start) * TIGHT
        best, most = None, (False, 0.0)
        for row in self.rows:
            kind, covered = self.timeline.lanes[row.lane].kind, row.covered(start, end)
            if kind == "compute" and covered > (end - start) / 2:
                return None
            if kind != "compute" and covered > least and (kind != "copy", covered) > most:
                best, most = row.lane, (kind != "copy", covered)
        return best
