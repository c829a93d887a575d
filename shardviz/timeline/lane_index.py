"""The neighbours of a timeline's operations: on their lane, on the next one, and in what they wait for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from shardviz.timeline.program_timeline import ProgramTimeline


class LaneIndex:
    """Finds the neighbours of operations, which are numbered as in the timeline."""

    def __init__(self, timeline: ProgramTimeline) -> None:
        self._ops = timeline.ops
        self._lanes: list[list[int]] = [[] for _ in timeline.lanes]
        for number, op in enumerate(timeline.ops):
            self._lanes[op.lane].append(number)
        self._starts = [[timeline.ops[number].start for number in lane] for lane in self._lanes]
        self._names: dict[str, int] = {}
        for number, op in enumerate(timeline.ops):
            self._names.setdefault(op.name, number)

    def named(self, name: str) -> int | None:
        return self._names.get(name)

    def beside(self, number: int, step: int) -> int:
        """So many operations on, on the same lane; at its end the last one."""
        lane = self._lanes[self._ops[number].lane]
        return lane[min(max(bisect_left(lane, number) + step, 0), len(lane) - 1)]

    def at_end(self, number: int, side: int) -> int:
        """The first operation of the same lane, or, where `side` is 1, its last."""
        return self._lanes[self._ops[number].lane][0 if side < 0 else -1]

    def on_lane_beside(self, number: int, step: int) -> int | None:
        """The operation of the next lane that has any, at the same time; None where there is none."""
        op = self._ops[number]
        lane = op.lane + step
        while 0 <= lane < len(self._lanes):
            beside = self.nearest(lane, (op.start + op.end) / 2)
            if beside is not None:
                return beside
            lane += step
        return None

    def nearest(self, lane: int, time: float) -> int | None:
        """The operation of a lane that runs at a time, or the nearest to it; None where the lane is empty."""

        def away(number: int) -> float:
            op = self._ops[number]
            return max(op.start - time, time - op.end, 0.0)

        index = bisect_right(self._starts[lane], time)
        return min(self._lanes[lane][max(index - 2, 0) : index + 1], key=away, default=None)

    def edge(self, step: int, time: float) -> int | None:
        """The operation at a time on the first lane that has any, or, where `step` is -1, on the last."""
        nearest = (self.nearest(lane, time) for lane in range(len(self._lanes))[::step])
        return next((number for number in nearest if number is not None), None)

    def waited_for(self, number: int) -> int | None:
        """The operation whose end it waited for last; None where it waited for none."""
        return max(self._ops[number].after, key=lambda other: self._ops[other].end, default=None)
