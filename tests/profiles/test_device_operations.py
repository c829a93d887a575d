"""Compute, communication and copies of one device, against sets of picoseconds."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given, strategies as st

from shardviz.profiles.device_operations import DeviceOperations
from shardviz.profiles.device_trace import DeviceTrace
from shardviz.profiles.joined_program import facts_of
from tests.profiles.hand_made import Operation, device

PICO = 1e-12
Kind = Literal["fusion", "all-reduce"]


def operations(trace: DeviceTrace) -> DeviceOperations:
    return DeviceOperations(trace, lambda instruction: facts_of(instruction, None))


def transfers(trace: DeviceTrace) -> list[tuple[str, int, int]]:
    found = operations(trace)
    return [
        (trace.instruction_table[each.instruction].name, each.start, each.end) for each in found.transfers
    ]


@given(st.lists(st.tuples(st.sampled_from(["fusion", "all-reduce"]), st.integers(0, 60), st.integers(0, 20))))
def test_exposed_is_what_moves_while_nothing_computes(found: list[tuple[Kind, int, int]]) -> None:
    rows: list[Operation] = [(f"{name}.{i}", at, at + size, 0) for i, (name, at, size) in enumerate(found)]
    points: dict[str, set[int]] = {"fusion": set(), "all-reduce": set()}
    for name, at, size in found:
        points[name] |= set(range(at, at + size))
    activity = operations(device(rows)).whole.activity()
    assert round(activity.exposed / PICO) == len(points["all-reduce"] - points["fusion"])
    assert round(activity.compute / PICO) == len(points["fusion"])
    assert round(activity.communication / PICO) == len(points["all-reduce"])
    assert round(activity.busy / PICO) == len(points["all-reduce"] | points["fusion"])
    assert activity.idle == pytest.approx(activity.seconds - activity.busy)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # A start and its done are one transfer, whatever runs between.
        ([("all-gather-start.1", 0, 1, 0), ("fusion.1", 1, 5, 0), ("all-gather-done.1", 5, 9, 0)], [(0, 9)]),
        # Two under way: without a text the first that began is the first that ends.
        (
            [
                ("all-gather-start.1", 0, 1, 0),
                ("all-gather-start.2", 2, 3, 0),
                ("all-gather-done.1", 5, 6, 0),
                ("all-gather-done.2", 8, 9, 0),
            ],
            [(0, 6), (2, 9)],
        ),
        # The profile begins or ends in between.
        ([("all-gather-done.1", 5, 6, 0)], [(5, 6)]),
        ([("all-gather-start.1", 5, 6, 0)], [(5, 6)]),
        # A TPU's fusion that ends a collective of any kind.
        ([("all-gather-start.1", 0, 1, 0), ("async-collective-done.4", 5, 9, 0)], [(0, 9)]),
        # Copies and collectives do not end one another.
        (
            [("copy-start.1", 0, 1, 0), ("all-gather-start.1", 1, 2, 0), ("all-gather-done.1", 4, 5, 0)],
            [(0, 1), (1, 5)],
        ),
    ],
)
def test_transfers_go_from_their_start_to_their_done(
    rows: list[Operation], expected: list[tuple[int, int]]
) -> None:
    assert sorted((start, end) for _, start, end in transfers(device(rows))) == expected


def test_spans_of_xlas_own_line_go_before_pairs() -> None:
    rows: list[Operation] = [("all-gather-start.1", 0, 1, 0), ("all-gather-done.1", 5, 9, 0)]
    spans: list[Operation] = [("all-gather-start.1 ", 0, 7, 0)]
    trace = device([*rows, *spans], asynchronous=["all-gather-start.1 "])
    table = [each._replace(name=each.name.strip()) for each in trace.instruction_table]
    found = DeviceOperations(
        DeviceTrace(**{**vars(trace), "instruction_table": table}), lambda each: facts_of(each, None)
    )
    assert [(each.start, each.end) for each in found.transfers] == [(0, 7), (5, 9)]


def test_what_a_run_begins_no_other_ends() -> None:
    # The first done is written before its start, at one time with it; the second run lacks its start.
    rows: list[Operation] = [
        ("copy-done.1", 5, 9, 0),
        ("copy-start.1", 5, 5, 0),
        ("copy-done.1", 15, 19, 1),
        ("copy-start.1", 20, 21, 2),
        ("copy-done.1", 25, 29, 2),
    ]
    assert sorted((start, end) for _, start, end in transfers(device(rows))) == [(5, 9), (15, 19), (20, 29)]
    begun_late: list[Operation] = [("copy-start.1", 5, 6, 0), ("copy-done.1", 15, 19, 1)]
    assert sorted((start, end) for _, start, end in transfers(device(begun_late))) == [(5, 6), (15, 19)]


def test_a_loop_counts_by_what_runs_in_it() -> None:
    rows: list[Operation] = [("while.1", 0, 100, 0), ("fusion.1", 10, 20, 0), ("all-reduce.1", 20, 50, 0)]
    activity = operations(device(rows)).whole.activity()
    assert [round(each / PICO) for each in (activity.compute, activity.communication, activity.exposed)] == [
        10,
        30,
        30,
    ]


def test_a_call_in_which_nothing_is_traced_computes() -> None:
    found = operations(device([("call.1", 0, 100, 0), ("while.1", 200, 300, 0), ("fusion.1", 210, 220, 0)]))
    assert round(found.whole.activity().compute / PICO) == 110


def test_operations_by_step() -> None:
    found = operations(device([("fusion.1", 0, 10, 0), ("all-reduce.1", 10, 15, 0), ("fusion.1", 20, 40, 1)]))
    steps = found.by_step({0: 5, 1: 6})
    assert {number: step.span for number, step in steps.items()} == {5: (0, 15), 6: (20, 40)}
    assert [*found.by_step({})] == []
