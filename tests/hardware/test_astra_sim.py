"""ASTRA-sim's published times, met by its closed form, and our own times where both assume the same.

The rows are those that ASTRA-sim publishes (https://astra-sim.github.io): 500 ns a link, 50 GB/s in
powers of two, an endpoint delay of 10 ns a message, 1600 GB/s of local memory, four chunks one after the
other. Its closed form, written down here alone, is

    phase = steps · int(h · latency + m / B) + reductions · 3 · int(m / LM) + (steps + 1) · endpoint

with m bytes a message, h = 1 on a ring and 2 through a switch. Ours has neither endpoints nor local memory.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from shardviz.collectives.algorithms import schedule_for
from shardviz.collectives.schedule import Pattern
from shardviz.hardware.collective_time import collective_time
from shardviz.hardware.links import LinkLevel, LinkSpec
from shardviz.hardware.timelines import timeline
from shardviz.hardware.topology import Switch, Torus

LATENCY, BANDWIDTH = 500, Fraction(50 * 2**30, 10**9)
"""Nanoseconds, and bytes a nanosecond."""
ENDPOINT, MEMORY, SPLITS = 10, 1600, 4
LINK = LinkSpec(LATENCY * 1e-9, 50.0 * 2**30)
THROUGH_A_SWITCH = LinkSpec(2 * LATENCY * 1e-9, LINK.bandwidth)
"""Ours has one latency from device to device, ASTRA-sim's one to the switch and one from it."""
KIB, MIB, GIB = 2**10, 2**20, 2**30


def phase(kind: str, members: int, message: Fraction, hops: int) -> tuple[int, int]:
    """Nanoseconds of one phase, and those of them that the links alone take."""
    steps = (2 if kind == "all_reduce" else 1) * (members - 1)
    reductions = 0 if kind == "all_gather" else members - 1
    on_links = steps * math.floor(hops * LATENCY + message / BANDWIDTH)
    return on_links + reductions * 3 * math.floor(message / MEMORY) + (steps + 1) * ENDPOINT, on_links


def in_turn(phases: list[tuple[str, int]], chunks: int) -> int:
    """Nanoseconds until the last of equal chunks has passed all phases; a dimension serves one chunk at a
    time, in the order in which they come to it."""
    free: dict[str, int] = {}
    waiting = [(0, chunk, 0) for chunk in range(chunks)]
    end = 0
    while waiting:
        waiting.sort(key=lambda each: (each[0], each[1]))
        ready, chunk, number = waiting.pop(0)
        dimension, takes = phases[number]
        done = free[dimension] = max(ready, free.get(dimension, 0)) + takes
        if number + 1 < len(phases):
            waiting.append((done, chunk, number + 1))
        end = max(end, done)
    return end


SWITCHED = [(KIB, 56_600), (64 * KIB, 58_812), (MIB, 92_440), (GIB, 36_818_164)]
ON_A_TORUS = [(KIB, 15_366), (MIB, 43_040), (GIB, 31_522_268)]


@pytest.mark.parametrize(("size", "published"), SWITCHED, ids=["1 KiB", "64 KiB", "1 MiB", "1 GiB"])
def test_an_all_reduce_through_a_switch(size, published):
    # D24: 8 devices.
    message = Fraction(size, SPLITS * 8)
    whole, on_links = phase("all_reduce", 8, message, hops=2)
    assert SPLITS * whole == published
    rounds = timeline(
        schedule_for("ring", Pattern("all_reduce", (8,))), int(message), Switch(8), THROUGH_A_SWITCH
    )
    assert len(rounds) == 14
    # ASTRA-sim drops parts of a nanosecond in each step.
    assert rounds.seconds * 1e9 == pytest.approx(on_links, abs=14)


@pytest.mark.parametrize(("size", "published"), ON_A_TORUS, ids=["1 KiB", "1 MiB", "1 GiB"])
def test_an_all_reduce_on_a_torus(size, published):
    # D26: 4×4, a reduce-scatter along one axis, an all-reduce along the other, an all-gather along the first.
    chunk = Fraction(size, SPLITS)
    scatter, first = phase("reduce_scatter", 4, chunk / 4, hops=1)
    reduce, second = phase("all_reduce", 4, chunk / 16, hops=1)
    gather, third = phase("all_gather", 4, chunk / 4, hops=1)
    phases = [("A", scatter), ("B", reduce), ("A", gather)]
    assert in_turn(phases, SPLITS) == published
    # One chunk alone on our links: the same rounds, one after the other.
    rounds = timeline(
        schedule_for("torus", Pattern("all_reduce", (4, 4))),
        int(chunk / 16),
        Torus((4, 4), (True, True)),
        LINK,
    )
    assert len(rounds) == 12
    assert rounds.seconds * 1e9 == pytest.approx(first + second + third, abs=12)


SENDS = [("ring", 21_031, 60_093), ("fully connected", 20_031, 20_031), ("switch", 20_531, 40_062)]


@pytest.mark.parametrize(("network", "pipelined", "stored"), SENDS, ids=[each[0] for each in SENDS])
def test_a_message_from_1_to_4_of_16(network, pipelined, stored):
    # D21 passes a message on while it comes in, as our closed form does; D22 ("with congestion") stores it at
    # every device, as our rounds do. A switch is a hop of its own: devices 0 and 2 of a line of three.
    topology, src, dst = {
        "ring": (Torus((16,), (True,)), 1, 4),
        "fully connected": (Torus((2,), (False,)), 0, 1),
        "switch": (Torus((3,), (False,)), 0, 2),
    }[network]
    hops = abs(dst - src)
    level = LinkLevel("ring" if network == "ring" else "line", topology.devices, LINK, "x")
    closed = collective_time("send", MIB, [level], pairs=[(0, hops)])
    assert math.floor(closed.seconds * 1e9) == pipelined
    pattern = Pattern("permute", (topology.devices,), perm=((src, dst),))
    rounds = timeline(schedule_for("direct", pattern), MIB, topology, LINK)
    assert math.floor(rounds.seconds * 1e9) == stored


def test_a_ring_in_both_directions_takes_half_the_time_of_its_bytes():
    # ASTRA-sim's ring sends one way; ours, and a TPU's, both: on one direction both agree.
    size, members = GIB, 8
    one_way, on_links = phase("all_gather", members, Fraction(size, members), hops=1)
    level = LinkLevel("ring", members, LINK, "x")
    single = collective_time("all-gather", size, [level], strategy="UniDirection1DRing{colors:1}")
    both = collective_time("all-gather", size, [level])
    without_latency = on_links - (members - 1) * LATENCY
    assert one_way > on_links
    assert single.bandwidth_seconds * 1e9 == pytest.approx(without_latency, abs=members)
    assert both.bandwidth_seconds == pytest.approx(single.bandwidth_seconds / 2)
