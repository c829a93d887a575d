"""Collectives over GPUs against the times that were measured of them."""

import statistics
from itertools import groupby, pairwise

import pytest

from shardviz.hardware.chips import GPUS
from shardviz.hardware.collective_time import collective_time
from shardviz.hardware.family import SwitchedNodes
from shardviz.hardware.gpu_times import PERMUTE
from tests.benchmarks.measured_gpus import measured_times

MIB = 2**20


def level(chip, devices):
    return SwitchedNodes.published(GPUS[chip], 1, devices).dimensions[0].level(devices)


POINTS = [
    (chip, op, size, collective_time(op, size, [level(chip, devices)]).seconds / seconds - 1)
    for chip, op, devices, size, seconds in measured_times()
]
"""GPU, operation, bytes, and ours over measured less 1."""


def test_all_that_was_measured_is_read():
    assert len(POINTS) == 1094
    assert {chip for chip, *_ in POINTS} == {"h100", "b200", "gb200", "gb300"}


@pytest.mark.parametrize("low", [0, MIB, 64 * MIB])
@pytest.mark.parametrize("moves", [True, False], ids=["permutes", "others"])
def test_small_and_large_sizes_are_met_without_a_bias(low, moves):
    high = {0: MIB, MIB: 64 * MIB}.get(low, 2**60)
    off = [error for _, op, size, error in POINTS if low <= size < high and (op == PERMUTE) == moves]
    assert statistics.median(map(abs, off)) < 0.15
    assert abs(statistics.median(off)) < 0.1


@pytest.mark.parametrize("chip", ["h100", "b200", "gb200", "gb300"])
def test_of_each_gpu_most_times_are_met(chip):
    off = sorted(abs(error) for one, _, size, error in POINTS if one == chip and size >= 64 * 2**10)
    assert statistics.median(off) < 0.1
    assert off[int(0.9 * len(off))] < 0.35


@pytest.mark.parametrize(
    ("op", "devices"), [("all-gather", 4), ("reduce-scatter", 4), ("all-to-all", 8), ("all-to-all", 16)]
)
def test_small_collectives_over_a_few_of_a_domain_start_at_once(op, devices):
    off = [
        collective_time(op, size, [level(chip, devices)]).seconds / seconds - 1
        for chip, one, members, size, seconds in measured_times()
        if (chip, one, members) == ("gb200", op, devices) and size < 4 * MIB
    ]
    assert abs(statistics.median(off)) < 0.1


def test_more_devices_never_take_less():
    for gpu in (gpu for gpu in GPUS.values() if gpu.nccl):
        for op in ("all-gather", "all-reduce", "reduce-scatter", "all-to-all", PERMUTE):
            for size in (2**10, 2**16, 2**20, 2**24, 2**30):
                groups = [devices for devices in (2, 4, 8, 12, 16, 32, 64) if devices <= gpu.node]
                times = [collective_time(op, size, [level(gpu.name, devices)]).seconds for devices in groups]
                assert times == sorted(times), (gpu.name, op, size)


def test_an_unmeasured_gpu_goes_by_its_own_links():
    """An A100 has two thirds of an H100's links, and H100's share of them."""
    slow, fast = (
        collective_time(
            "all-gather", 2**32, [SwitchedNodes.published(GPUS[name], 1, 8).dimensions[0].level(8)]
        )
        for name in ("a100", "h100")
    )
    assert slow.bandwidth_seconds == pytest.approx(1.5 * fast.bandwidth_seconds)
    assert slow.latency_seconds == fast.latency_seconds


def test_lines_grow_with_the_size_and_meet_where_nccl_changes():
    for _, group in groupby(measured_times(), key=lambda row: row[:3]):
        chip, op, devices = next(group)[:3]
        links = [level(chip, devices)]
        seconds = [collective_time(op, 2**power, links).seconds for power in range(36)]
        assert seconds == sorted(seconds)
        assert all(twice <= 2 * once for once, twice in pairwise(seconds))


def test_two_devices_and_one_message_take_no_longer_than_a_swap():
    """A ring of two is a swap, and one message half of one."""
    size, two, four = 16 * MIB, level("h100", 2), level("h100", 4)

    def time(op, link, pairs=None):
        return collective_time(op, size, [link], pairs=pairs)

    swap = time(PERMUTE, four, [(0, 1), (1, 0), (2, 3), (3, 2)]).seconds
    one_way = (time(PERMUTE, four, [(0, 1)]), time("send", four), time(PERMUTE, two))
    assert {each.seconds for each in one_way} == {swap}
    ring = time(PERMUTE, four)
    assert ring.seconds > swap
    assert ring.convention.endswith("; pairs that swap take less")
    assert "swap" not in time(PERMUTE, two).convention + time(PERMUTE, level("b200", 4)).convention
