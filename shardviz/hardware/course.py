"""What has been sent, and how long that took, up to any round of a timeline."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError
from shardviz.hardware.messages import sums

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shardviz.hardware.timelines import Timeline

    Ints = NDArray[np.int64]

MAX_NUMBERS = 2**22
"""Different rounds times devices of which the sums are kept."""


@dataclass(frozen=True)
class Spent:
    """Up to a round: the most bytes that one device has sent, and seconds."""

    bytes: int
    seconds: float


class Course:
    """The running sums of a timeline; a query costs the same for every round.

    Raises `QuestionError` where the rounds are too many to add up.
    """

    def __init__(self, timeline: Timeline) -> None:
        import numpy as np

        devices = timeline.topology.devices
        self._last: list[int] = []
        """The last round of each run of alike rounds."""
        self._before: list[tuple[Ints, float]] = [(np.zeros(devices, dtype=np.int64), 0.0)]
        self._each: list[tuple[Ints, float]] = []
        last = 0
        for index, load, count in timeline.different_rounds():
            if (len(self._each) + 1) * devices > MAX_NUMBERS:
                raise QuestionError(
                    f"the rounds of {timeline.schedule.algorithm} over {devices:,} devices are too many to "
                    "add up one by one",
                    "use a smaller group",
                )
            sent = sums(load.src, load.bytes, devices)
            seconds = timeline[index if index >= 0 else -1 - index].seconds
            before, took = self._before[-1]
            self._each.append((sent, seconds))
            self._before.append((before + count * sent, took + count * seconds))
            last += count
            self._last.append(last)

    def after(self, number: int) -> Spent:
        """What rounds 1 to `number` have cost."""
        run = bisect_left(self._last, number)
        if not number or run == len(self._last):
            sent, seconds = self._before[-1 if number else 0]
            return Spent(int(sent.max(initial=0)), seconds)
        rounds = number - (self._last[run - 1] if run else 0)
        (before, took), (each, duration) = self._before[run], self._each[run]
        return Spent(int((before + rounds * each).max(initial=0)), took + rounds * duration)
