"""The neighbours of operations on their lanes."""

from __future__ import annotations

import pytest

from shardviz.timeline.program_timeline import LaneIndex
from tests.tui import hand_made

PROGRAM = hand_made.program()
NAMES = [op.name for op in PROGRAM.ops]
INDEX = LaneIndex(PROGRAM)


def named(number):
    return None if number is None else NAMES[number]


@pytest.mark.parametrize(
    ("name", "step", "found"),
    [
        ("fusion.1", 1, "fusion.2"),
        ("fusion.2", 1, "custom-call.7"),
        ("fusion.3", 1, "fusion.3"),
        ("fusion.3", -2, "fusion.2"),
        ("fusion.1", -1, "fusion.1"),
        ("all-gather-start", 1, "all-gather-start"),
    ],
)
def test_the_next_one_on_the_lane(name, step, found):
    assert named(INDEX.beside(NAMES.index(name), step)) == found


def test_the_ends_of_a_lane():
    assert named(INDEX.at_end(NAMES.index("fusion.2"), -1)) == "fusion.1"
    assert named(INDEX.at_end(NAMES.index("fusion.2"), 1)) == "fusion.3"


@pytest.mark.parametrize(
    ("name", "step", "found"),
    [
        ("all-gather-start", -1, "copy-start.1"),
        ("all-gather-start", 1, "reduce-scatter.5"),
        ("reduce-scatter.5", 1, None),
        ("copy-start.1", -1, "fusion.1"),
        ("reduce-scatter.5", -1, "all-gather-start"),
    ],
)
def test_what_runs_at_the_same_time_on_the_next_lane(name, step, found):
    assert named(INDEX.on_lane_beside(NAMES.index(name), step)) == found


def test_the_operation_of_a_time():
    assert named(INDEX.nearest(0, 11e-6)) == "fusion.2"
    assert named(INDEX.nearest(0, 13.2e-6)) == "fusion.2"
    assert named(INDEX.nearest(3, 0.0)) == "reduce-scatter.5"
    assert named(INDEX.edge(1, 12e-6)) == "fusion.2"
    assert named(INDEX.edge(-1, 12e-6)) == "reduce-scatter.5"


def test_the_operation_that_ended_last_is_the_one_it_waited_for():
    assert named(INDEX.waited_for(NAMES.index("fusion.3"))) == "all-gather-start"
    assert INDEX.waited_for(NAMES.index("fusion.1")) is None


def test_operations_by_name():
    assert INDEX.named("fusion.3") == NAMES.index("fusion.3")
    assert INDEX.named("tuple.9") is None
