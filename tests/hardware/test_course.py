"""The running sums of a timeline, against the rounds added up one by one."""

from __future__ import annotations

import numpy as np
import pytest

from shardviz.collectives import schedules_for
from shardviz.collectives.pattern import Pattern
from shardviz.errors import QuestionError
from shardviz.hardware import Wire, course, timeline, topology_for
from shardviz.hardware.course import Course

PATTERNS = [
    Pattern("all_gather", (6,)),
    Pattern("all_reduce", (8,)),
    Pattern("all_reduce", (2, 4)),
    Pattern("all_to_all", (4,)),
    Pattern("broadcast", (5,)),
]


@pytest.mark.parametrize("pattern", PATTERNS, ids=str)
def test_sums_are_those_of_the_rounds(pattern):
    topology = topology_for(None, pattern.dims)
    for schedule in schedules_for(pattern):
        sizes = np.arange(1, schedule.chunks + 1) * 1000
        for chunk_bytes in (1000, sizes):
            rounds = timeline(schedule, chunk_bytes, topology, Wire())
            found = Course(rounds)
            sent = np.zeros(pattern.group_size)
            seconds = 0.0
            assert found.after(0).bytes == 0
            for number in range(1, schedule.rounds + 1):
                sends = schedule.round(number).expanded(schedule.chunks)
                np.add.at(sent, sends.src, np.broadcast_to(chunk_bytes, schedule.chunks)[sends.chunk])
                seconds += rounds[number - 1].seconds
                assert found.after(number).bytes == sent.max()
                assert found.after(number).seconds == pytest.approx(seconds)
            assert found.after(schedule.rounds).bytes == rounds.device_bytes
            assert found.after(schedule.rounds).seconds == pytest.approx(rounds.seconds)


def test_too_many_rounds_are_refused(monkeypatch):
    monkeypatch.setattr(course, "MAX_NUMBERS", 7)
    schedule = next(each for each in schedules_for(Pattern("all_gather", (8,))))
    with pytest.raises(QuestionError, match="too many to add up"):
        Course(timeline(schedule, 4, topology_for(None, (8,)), Wire()))
