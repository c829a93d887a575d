"""A step of a device as a timeline: its parts add up, and it is drawn as it ran."""

from __future__ import annotations

import pytest

from shardviz.profiles import profile as module
from shardviz.profiles.device_operations import DeviceOperations
from shardviz.profiles.joined_program import facts_of
from shardviz.profiles.profile import measured_timeline
from shardviz.timeline.program_timeline import ProgramTimeline
from tests.profiles.hand_made import Operation, device

PICO = 1e-12
ROWS: list[Operation] = [
    ("while.1", 100, 190, 0),
    ("fusion.1", 100, 130, 0),
    ("all-reduce.1", 120, 150, 0),
    ("copy-start.1", 140, 141, 0),
    ("copy-done.1", 160, 170, 0),
    ("fusion.1", 180, 190, 0),
]


def timeline(rows: list[Operation] = ROWS) -> ProgramTimeline:
    operations = DeviceOperations(device(rows), lambda each: facts_of(each, None))
    return measured_timeline(operations.whole, "step 0 of jit_f")


def test_compute_exposed_and_idle_time_add_up_to_all_of_it() -> None:
    found = timeline()
    exposed = dict(found.exposed_seconds)
    assert found.seconds == pytest.approx(90 * PICO)
    assert found.compute_seconds == pytest.approx(40 * PICO)
    # The copy is exposed where the links are idle as well.
    assert exposed == pytest.approx({"links": 20 * PICO, "HBM copies": 20 * PICO})
    assert dict(found.communication_seconds) == pytest.approx({"links": 30 * PICO, "HBM copies": 30 * PICO})
    assert found.idle_seconds == pytest.approx(10 * PICO)
    assert found.compute_seconds + sum(exposed.values()) + found.idle_seconds == pytest.approx(found.seconds)


def test_operations_stand_where_they_ran() -> None:
    found = timeline()
    assert [(op.name, round(op.start / PICO), round(op.end / PICO)) for op in found.ops] == [
        ("fusion.1", 0, 30),
        ("all-reduce.1", 20, 50),
        ("copy-start.1", 40, 70),
        ("fusion.1", 80, 90),
    ]
    assert [found.lanes[op.lane].kind for op in found.ops] == ["compute", "axis", "copy", "compute"]
    assert [round(op.exposed / PICO) for op in found.ops] == [0, 20, 30, 0]
    assert {op.estimate for op in found.ops} == {"measured"}
    (loop,) = found.spans
    assert (loop.name, loop.start, loop.end) == ("while.1", 0, pytest.approx(90 * PICO))


def test_of_very_many_operations_the_longest_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_OPS", 2)
    found = timeline()
    assert [op.name for op in found.ops] == ["fusion.1", "all-reduce.1"]
    assert found.compute_seconds == pytest.approx(40 * PICO)
    assert found.notes == ("the 2 shortest operations are not drawn",)
