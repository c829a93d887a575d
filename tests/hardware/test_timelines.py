"""Schedules on links: single rounds, sums over all of them, and how they agree."""

from __future__ import annotations

import time

import numpy as np
import pytest

from shardviz.collectives.algorithms import schedule_for, schedules_for
from shardviz.collectives.schedule import Pattern, Phase, Schedule, Sends
from shardviz.errors import QuestionError
from shardviz.hardware import timelines
from shardviz.hardware.links import LinkSpec
from shardviz.hardware.round_routing import MAX_WORK, RoundRouting
from shardviz.hardware.routes import messages
from shardviz.hardware.timelines import QUEUE_WORK, CumulativeCost, Timeline, timeline
from shardviz.hardware.topology import Torus, topology_for

WIRE = LinkSpec(1e-6, 1e9)
PATTERNS = [
    *(
        Pattern(kind, dims)
        for kind in ("all_gather", "reduce_scatter", "all_reduce", "all_to_all")
        for dims in ((8,), (5,), (2, 4))
    ),
    Pattern("broadcast", (6,), source=2),
    Pattern("permute", (6,), perm=((0, 1), (1, 4), (3, 3), (5, 2))),
]
CASES = [
    (schedule, topology_for(name, pattern.dims))
    for pattern in PATTERNS
    for schedule in schedules_for(pattern)
    for name in (None, "line", "ring", "switch")
]


def ring(n: int) -> Torus:
    return Torus((n,), (True,))


def sent(schedule: Schedule, number: int, sizes: np.ndarray) -> dict[tuple[int, int], int]:
    """Bytes by (src, dst) in one round, entry by entry."""
    found: dict[tuple[int, int], int] = {}
    sends = schedule.round(number).expanded(schedule.chunks)
    for src, dst, chunk in zip(sends.src.tolist(), sends.dst.tolist(), sends.chunk.tolist(), strict=True):
        if src != dst:
            found[src, dst] = found.get((src, dst), 0) + int(sizes[chunk])
    return found


@pytest.mark.slow
def test_rounds_and_sums_of_every_algorithm() -> None:
    assert len(CASES) > 200
    for schedule, topology in CASES:
        sizes = np.arange(schedule.chunks) % 4 * 10
        line = timeline(schedule, sizes, topology, WIRE)
        by_device = np.zeros(topology.devices, dtype=np.int64)
        for number in range(1, schedule.rounds + 1):
            load, expected = line[number - 1], sent(schedule, number, sizes)
            assert (load.number, load.phase) == (number, schedule.phase(number)[0].name)
            assert load.messages == len(expected)
            assert load.bytes == sum(expected.values())
            by_round = np.zeros_like(by_device)
            for (src, _), size in expected.items():
                by_round[src] += size
            by_device += by_round
            assert load.device_bytes == by_round.max()
            assert line.sent_bytes(number).tolist() == by_round.tolist()
            loads = line.link_bytes(number)
            assert load.busiest_bytes == loads.max()
            if load.busiest_link is not None:
                links = [link for link in range(topology.links) if topology.ends(link) == load.busiest_link]
                assert [loads[link] for link in links] == [load.busiest_bytes]
            assert load.seconds >= WIRE.seconds(load.busiest_bytes) * (1 - 1e-12) * bool(load.messages)
        assert line.device_bytes == by_device.max()
        total = sum((line.link_bytes(number) for number in range(1, len(line) + 1)), np.zeros(1))
        assert line.busiest_bytes == total.max()
        assert line.seconds == pytest.approx(sum(load.seconds for load in line), rel=1e-9)
        assert line.waiting == sum(load.waiting or 0 for load in line)
        assert line.exact


def test_a_ring_all_gather_on_eight_devices() -> None:
    line = timeline(schedule_for("ring", Pattern("all_gather", (8,))), 1000, ring(8), WIRE)
    load = line[0]
    assert len(line) == 7
    assert (load.messages, load.bytes, load.device_bytes, load.hops) == (8, 8000, 1000, 8)
    assert (load.busiest_link, load.busiest_bytes, load.waiting, load.exact) == ((0, 1), 1000, 0, True)
    assert load.seconds == pytest.approx(2e-6)
    assert line.link_bytes(7).tolist() == [1000] * 8 + [0] * 8
    assert (line.seconds, line.device_bytes, line.busiest_bytes) == (pytest.approx(14e-6), 7000, 7000)


def test_one_device_sends_nothing() -> None:
    line = timeline(schedule_for("ring", Pattern("all_gather", (1,))), 1000, ring(1), WIRE)
    assert (len(line), line.seconds, line.device_bytes, line.busiest_bytes, line.waiting) == (0, 0, 0, 0, 0)
    assert list(line) == []


def test_rounds_that_are_not_there() -> None:
    line = timeline(schedule_for("ring", Pattern("all_gather", (4,))), 1, ring(4), WIRE)
    for index in (-1, 3):
        with pytest.raises(IndexError):
            line[index]
    with pytest.raises(QuestionError, match="round 4 does not exist"):
        line.link_bytes(4)


def test_what_a_member_sends_to_itself_uses_no_link() -> None:
    pattern = Pattern("permute", (4,), perm=((0, 0), (1, 1)))
    sends = Sends(*(np.array([0, 1]),) * 3, np.zeros(2, dtype=bool))
    schedule = Schedule("toy", pattern, 4, (Phase("permute", 1, lambda _: sends),))
    load = timeline(schedule, 100, ring(4), WIRE)[0]
    assert (load.messages, load.bytes, load.busiest_link, load.seconds) == (0, 0, None, 0.0)


def test_entries_of_one_pair_are_one_message_in_the_order_of_the_entries() -> None:
    sends = Sends(
        np.array([2, 0, 2, 1]),
        np.array([0, 1, 0, 1]),
        np.array([3, 1, 4, 0]),
        np.zeros(4, dtype=bool),
        span=2,
    )
    entries = messages(sends, 5, np.array([1, 10, 100, 1000, 10000]))
    assert entries.bytes.tolist() == [11000, 110, 10001]
    merged = entries.merged()
    assert [each.tolist() for each in (merged.src, merged.dst, merged.bytes)] == [
        [2, 0],
        [0, 1],
        [21001, 110],
    ]


def test_more_bytes_than_can_be_counted() -> None:
    line = timeline(schedule_for("ring", Pattern("all_gather", (4,))), 2**61, ring(4), WIRE)
    with pytest.raises(QuestionError, match="too many to count"):
        assert line[0]


def all_reduce_of_65536(chunk_bytes: int | np.ndarray) -> Timeline:
    schedule = schedule_for("ring", Pattern("all_reduce", (65536,)))
    return timeline(schedule, chunk_bytes, ring(65536), WIRE)


def test_a_ring_of_65536_devices_takes_well_under_a_second() -> None:
    begin = time.process_time()
    line = all_reduce_of_65536(1000)
    assert (line.device_bytes, line.busiest_bytes) == (131070 * 1000, 131070 * 1000)
    assert line.seconds == pytest.approx(131070 * 2e-6)
    assert (line[130_000].number, line[130_000].phase) == (130_001, "all-gather")
    assert time.process_time() - begin < 240


def test_unequal_chunks_on_a_long_ring_take_as_long_as_the_largest() -> None:
    sizes = np.arange(65536) % 3 * 500
    line = all_reduce_of_65536(sizes)
    assert line.seconds == pytest.approx(131070 * 2e-6)
    assert line.device_bytes == 131070 * 1000
    assert {line[index].seconds for index in (0, 1, 2, 77_777, 131_069)} == {line[0].seconds}


def test_what_is_too_long_to_add_up_is_refused_and_single_rounds_are_not() -> None:
    line = timeline(schedule_for("pairwise", Pattern("all_to_all", (16384,))), 100, ring(16384), WIRE)
    assert "16,383 different rounds of 16,384 sends are too many to add up" in line.too_long
    with pytest.raises(QuestionError, match="too many to add up"):
        assert line.seconds
    assert line[8191].hops == 16384 * 8192


def test_a_pipeline_that_fills_slowly_is_too_long_all_the_same() -> None:
    line = timeline(schedule_for("ring", Pattern("broadcast", (16384,))), 100, ring(16384), WIRE)
    assert line[0].messages == 1
    assert "different rounds of 16,383 sends are too many to add up" in line.too_long


def test_queues_are_followed_once_for_a_round_and_for_the_sums() -> None:
    line = timeline(schedule_for("direct", Pattern("all_reduce", (9,))), 1000, ring(9), WIRE)
    rounds = [line[0], line[1]]
    assert line.seconds == rounds[0].seconds + rounds[1].seconds
    assert line.waiting == sum(load.waiting for load in rounds)
    assert list(line) == rounds


def test_direct_on_a_ring_of_256() -> None:
    schedule = schedule_for("direct", Pattern("all_gather", (256,)))
    load = timeline(schedule, 4096, ring(256), LinkSpec())[0]
    assert (load.messages, load.hops, load.exact) == (256 * 255, 256 * 128 * 128, True)
    assert load.busiest_bytes == 4096 * 256 * 256 // 8


@pytest.mark.parametrize("chunk", [1024, 2**20])
@pytest.mark.parametrize("latency", [0.0, 1e-6])
def test_direct_on_a_ring_of_512_is_within_what_is_followed(chunk: int, latency: float) -> None:
    pattern = Pattern("all_gather", (512,))
    link_spec = LinkSpec(latency=latency)
    line = timeline(schedule_for("direct", pattern), chunk, topology_for("ring", pattern.dims), link_spec)
    ((_, messages, _),) = line.different_rounds()
    assert RoundRouting(messages, line.topology, link_spec).work <= min(QUEUE_WORK, MAX_WORK)


SUMMED = [
    Pattern("all_gather", (6,)),
    Pattern("all_reduce", (8,)),
    Pattern("all_reduce", (2, 4)),
    Pattern("all_to_all", (4,)),
    Pattern("broadcast", (5,)),
]


@pytest.mark.parametrize("pattern", SUMMED, ids=str)
def test_sums_are_those_of_the_rounds(pattern):
    topology = topology_for(None, pattern.dims)
    for schedule in schedules_for(pattern):
        sizes = np.arange(1, schedule.chunks + 1) * 1000
        for chunk_bytes in (1000, sizes):
            rounds = timeline(schedule, chunk_bytes, topology, LinkSpec())
            found = CumulativeCost(rounds)
            sent = np.zeros(pattern.group_size)
            seconds = 0.0
            assert found.bytes(0) == 0
            for number in range(1, schedule.rounds + 1):
                sends = schedule.round(number).expanded(schedule.chunks)
                np.add.at(sent, sends.src, np.broadcast_to(chunk_bytes, schedule.chunks)[sends.chunk])
                seconds += rounds[number - 1].seconds
                assert found.bytes(number) == sent.max()
                assert found.seconds(number) == pytest.approx(seconds)
            assert found.bytes(schedule.rounds) == rounds.device_bytes
            assert found.seconds(schedule.rounds) == pytest.approx(rounds.seconds)


def test_too_many_rounds_are_refused(monkeypatch):
    monkeypatch.setattr(timelines, "MAX_NUMBERS", 7)
    schedule = next(each for each in schedules_for(Pattern("all_gather", (8,))))
    with pytest.raises(QuestionError, match="too many to add up"):
        CumulativeCost(timeline(schedule, 4, topology_for(None, (8,)), LinkSpec()))
