"""A timeline on the device's clock: loops, drawn once elsewhere, as often as they run, each run as long as
their mean, without branches that are not taken."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from shardviz.timeline.program_timeline import ProgramTimeline, TimedOp, TimeSpan


def unrolled(timeline: ProgramTimeline, limit: int) -> ProgramTimeline:
    """The timeline with the runs of its loops one after the other; its `drawn_seconds` are its `seconds`. Of
    each loop one run is drawn, and the others as long as there are fewer than `limit` operations, ends of
    arrows and changes of live memory; a span stands for the rest."""
    if all(span.kind == "call" for span in timeline.spans):
        return timeline
    slack = timeline.drawn_seconds * 1e-9  # sums of times may differ by so much
    root = _Stretch(TimeSpan("call", "", 0.0, timeline.drawn_seconds, 1, -1), 1)
    for span in sorted(timeline.spans, key=lambda span: (span.start, span.depth)):
        if span.end > span.start:
            root.around(span, slack).put(span)
    for number, op in enumerate(timeline.ops):
        if op.runs != 0:
            root.of_op(op, slack).ops.append(number)
    curve = timeline.memory.curve if timeline.memory is not None else ()
    for time, size in curve:
        root.at_time(time).curve.append((time, size))
    root.measure()
    unroller = _Unroller(timeline, curve, limit, root.seconds)
    unroller.stretch(root, 0.0, 1.0, 0)
    ends = [op.end for op in unroller.ops] + [span.end for span in unroller.spans]
    done = max(ends, default=0.0)
    if done < root.seconds - slack:
        # The end of what goes on after a loop is not known where it queues in each run for another's links.
        unroller.spans.append(TimeSpan("call", "not drawn", done, root.seconds, 1, 0))
    indexes = sorted(range(len(unroller.ops)), key=lambda number: unroller.ops[number].start)
    new = {old: number for number, old in enumerate(indexes)}
    ops = map(unroller.ops.__getitem__, indexes)
    return replace(
        timeline,
        ops=tuple(replace(op, after=tuple(new[index] for index in op.after)) for op in ops),
        spans=tuple(unroller.spans),
        drawn_seconds=root.seconds,
        critical_path=(),
        savings=(),
        memory=timeline.memory and replace(timeline.memory, curve=tuple(unroller.curve)),
    )


@dataclass
class _Stretch:
    """A span with what is drawn in it, but not in one of the spans `inside`; by its `shifts` the real start
    of each of these is later than the drawn one. `runs` is how often it runs in all, None where that is not
    known. `seconds` is its real length, of a loop that of all its runs, `body` that of one."""

    span: TimeSpan
    runs: int | None
    inside: list[_Stretch] = field(default_factory=list)
    ops: list[int] = field(default_factory=list)
    curve: list[tuple[float, int]] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    shifts: list[float] = field(default_factory=list)
    body: float = 0.0
    seconds: float = 0.0

    @property
    def count(self) -> int:
        return (self.span.count or 1) if self.span.kind == "loop" else 1

    def put(self, span: TimeSpan) -> None:
        runs = self.runs
        if span.kind == "loop":
            runs = None if runs is None or span.count is None else runs * span.count
        self.inside.append(_Stretch(span, runs))
        self.starts.append(span.start)

    def _last(self, time: float) -> _Stretch | None:
        """The last inside that begins at a time or before it."""
        index = bisect_right(self.starts, time) - 1
        return self.inside[index] if index >= 0 else None

    def around(self, span: TimeSpan, slack: float) -> _Stretch:
        """The innermost that a span is in."""
        stretch = self._last(span.start + slack)
        if stretch is None or stretch.span.depth >= span.depth or span.end > stretch.span.end + slack:
            return self
        return stretch.around(span, slack)

    def of_op(self, op: TimedOp, slack: float) -> _Stretch:
        """The innermost that runs an operation; what runs beside a loop lies in it too but runs less."""
        stretch = self._last(op.start + slack)
        if stretch is None or op.end > stretch.span.end + slack or stretch.span.seconds == 0:
            return self
        inner = stretch.of_op(op, slack)
        is_beside = (op.is_async or op.end <= op.start) and inner is stretch and op.runs != stretch.runs
        return self if is_beside else inner

    def at_time(self, time: float) -> _Stretch:
        stretch = self._last(time)
        return self if stretch is None or time >= stretch.span.end else stretch.at_time(time)

    def measure(self) -> None:
        """Find the real lengths, from the inside outwards."""
        shift = 0.0
        for stretch in self.inside:
            stretch.measure()
            self.shifts.append(shift)
            shift += stretch.seconds - (stretch.span.end - stretch.span.start)
        self.body = self.span.end - self.span.start + shift
        known = self.span.seconds
        self.seconds = self.body * self.count if known is None else known

    def offset(self, time: float) -> float:
        """Real seconds of one run until a drawn time."""
        stretch = self._last(time)
        if stretch is None:
            return time - self.span.start
        span, shift = stretch.span, self.shifts[bisect_right(self.starts, time) - 1]
        width = span.end - span.start
        inside = min(time - span.start, width)
        real = span.start - self.span.start + shift + inside / width * stretch.seconds
        return real + time - span.start - inside


class _Unroller:
    def __init__(
        self, timeline: ProgramTimeline, curve: Sequence[tuple[float, int]], limit: int, total: float
    ) -> None:
        self._of = timeline
        self._drawn_curve = curve
        self._times = [time for time, _ in curve]
        self._left = limit
        self._total = total
        self._latest: dict[int, int] = {}  # the last copy of each operation
        self.ops: list[TimedOp] = []
        self.spans: list[TimeSpan] = []
        self.curve: list[tuple[float, int]] = []

    def stretch(self, stretch: _Stretch, begin: float, scale: float, since: int) -> None:
        """All runs of a stretch from `begin` on, `scale` times as long.

        Operations wait for the last copies of others, not for those before the one numbered `since`."""
        span, length = stretch.span, stretch.seconds * scale
        if span.depth >= 0 and length:
            self.spans.append(replace(span, start=begin, end=begin + length, seconds=length))
        if not length:
            self._level(span.end, begin)
            return
        once, drawn = length / stretch.count, 0
        while not drawn or (drawn < stretch.count and self._left > 0):
            here = len(self.ops)
            if drawn:
                self._level(span.start, begin + drawn * once)
            self._run(stretch, begin + drawn * once, once / stretch.body if stretch.body else 1.0, since)
            since = max(since, here)
            drawn += 1
            self._left -= 1
        if left := stretch.count - drawn:
            name, start = f"{span.name}, the rest", begin + drawn * once
            self.spans.append(TimeSpan("loop", name, start, begin + length, left, span.depth + 1))

    def _run(self, stretch: _Stretch, begin: float, scale: float, since: int) -> None:
        items = [(self._of.ops[number].start, 1, number) for number in stretch.ops]
        items += [(inner.span.start, 0, index) for index, inner in enumerate(stretch.inside)]
        items += [(time, 2, size) for time, size in stretch.curve]
        for time, kind, which in sorted(items):
            start = begin + stretch.offset(time) * scale
            if kind == 0:
                self.stretch(stretch.inside[which], start, scale, since)
            elif kind == 2:
                self.curve.append((start, which))
                self._left -= 1
            else:
                op = self._of.ops[which]
                latest = (self._latest.get(number, -1) for number in op.after)
                after = tuple(number for number in latest if number >= since)
                end = max(start, begin + stretch.offset(op.end) * scale)
                if op.is_async and op.seconds and stretch.count > 1 and op.end >= stretch.span.end:
                    # Drawn elsewhere up to the end of the run, it goes on in the next one or after the loop.
                    end = max(end, min(start + op.seconds, self._total))
                self._latest[which] = len(self.ops)
                self._left -= 1 + 2 * len(after)
                self.ops.append(replace(op, start=start, end=end, after=after))

    def _level(self, drawn: float, time: float) -> None:
        """Live memory is as it was at a drawn time."""
        index = bisect_right(self._times, drawn) - 1
        if index >= 0:
            self.curve.append((time, self._drawn_curve[index][1]))
