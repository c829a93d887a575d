"""Published times, met by schedules on links: each with its convention.

The scaling book counts bandwidth without latency, V / W for a gather on a wrapped axis (W: both directions of
a link together), and 1 µs a hop where that is more.
"""

from __future__ import annotations

import numpy as np
import pytest

from shardviz.collectives.algorithms import schedule_for
from shardviz.collectives.schedule import Pattern, Phase, Schedule, Sends
from shardviz.hardware.links import LinkSpec
from shardviz.hardware.timelines import timeline
from shardviz.hardware.topology import Torus, topology_for

V4P, V5E, H100 = 4.5e10, 4.5e10, 4.5e11
"""Bytes a second, one way: of a TPU's link, of a GPU's links to its switch together."""


def seconds(
    algorithm: str, kind: str, n: int, payload: int, topology: str | None, link_spec: LinkSpec
) -> float:
    schedule = schedule_for(algorithm, Pattern(kind, (n,)))
    return timeline(schedule, payload // n, topology_for(topology, (n,)), link_spec).seconds


def along_a_line(n: int) -> Schedule:
    """An all-gather in which each device passes on, both ways, what it got from the other side."""
    device = np.arange(n)

    def sends(number: int) -> Sends:
        right = device[(device < n - 1) & (device >= number)]
        left = device[(device > 0) & (device < n - number)]
        return Sends(
            np.concatenate((right, left)),
            np.concatenate((right + 1, left - 1)),
            np.concatenate((right - number, left + number)),
            np.zeros(len(right) + len(left), dtype=bool),
        )

    return Schedule("line", Pattern("all_gather", (n,)), n, (Phase("all-gather", n - 1, sends),))


@pytest.mark.parametrize(
    ("kind", "payload", "published"),
    [
        # v4p 4x4x4: all-gather over X of bf16[1024_X,4096_Y]; V is one Y shard.
        pytest.param("all_gather", 1024 * 1024 * 2, 23.3e-6, id="D1"),
        # The same, all-reduce over Z of an array split on X and Y.
        pytest.param("all_reduce", 256 * 1024 * 2, 11.65e-6, id="D3"),
        # v5e 8x4: all-gather over Y of bf16[2048_Y,8192], if the axis of 4 were a ring.
        pytest.param("all_gather", 2048 * 8192 * 2, 373e-6, id="D5 ring"),
    ],
)
def test_both_directions_of_a_ring_without_latency(kind: str, payload: int, published: float) -> None:
    found = seconds("bidirectional-ring", kind, 4, payload, None, LinkSpec(0.0, V4P))
    assert found == pytest.approx(published, rel=2e-3)


def test_both_axes_of_a_torus_need_at_least_15_16_of_the_published_time() -> None:
    # D2, v4p: all-gather over X and Y of bf16[1024_X,4096_Y] in V / (2 W) = 46.6 µs, rounded up from 15/16.
    torus = Torus((4, 4), (True, True))
    line = timeline(schedule_for("direct", Pattern("all_gather", (4, 4))), 2**19, torus, LinkSpec(0.0, V4P))
    least = 15 * 2**19 / (4 * V4P)
    assert least == pytest.approx(46.6e-6 * 15 / 16, rel=2e-3)
    assert line.seconds > least


def test_few_bytes_take_the_latency_of_the_hops() -> None:
    # D4: v4p, a ring of 4, 128 elements: 2 µs. D6: v5e, a line of 4, bf16[256,256]: 3 µs.
    assert seconds("bidirectional-ring", "all_gather", 4, 256, None, LinkSpec(1e-6, V4P)) == pytest.approx(
        2e-6, rel=0.01
    )
    line = timeline(along_a_line(4), 1, topology_for("line", (4,)), LinkSpec(1e-6, V5E))
    assert line.seconds == pytest.approx(3e-6, rel=0.01)


def test_a_line_needs_three_quarters_of_the_array_over_each_link() -> None:
    # D5: v5e 8x4, the axis of 4 has no wraparound: V (N - 1) / N / W1 = 559 µs without latency.
    line = timeline(along_a_line(4), 2048 * 8192 * 2 // 4, topology_for("line", (4,)), LinkSpec(0.0, V5E))
    assert line.seconds == pytest.approx(559e-6, rel=2e-3)
    assert line.waiting == 0


@pytest.mark.parametrize("algorithm", ["ring", "direct", "recursive-doubling", "bruck"])
@pytest.mark.parametrize(
    ("shape", "published"),
    [pytest.param((1024, 16384), 65.2e-6, id="D12"), pytest.param((4096, 65536), 1.044e-3, id="D13")],
)
def test_an_all_gather_through_the_switch_of_a_gpu_node(
    algorithm: str, shape: tuple[int, int], published: float
) -> None:
    # 8 H100s: V (N - 1) / N / We without latency, whatever the algorithm: all links are busy all the time.
    payload = shape[0] * shape[1] * 2
    found = seconds(algorithm, "all_gather", 8, payload, "switch", LinkSpec(0.0, H100))
    assert found == pytest.approx(published, rel=2e-3)


def test_an_all_to_all_through_a_switch() -> None:
    # V (N - 1) / N² / We, with V the bytes of all devices together.
    payload = 2**26
    for algorithm in ("direct", "pairwise"):
        schedule = schedule_for(algorithm, Pattern("all_to_all", (8,)))
        line = timeline(schedule, payload // 64, topology_for("switch", (8,)), LinkSpec(0.0, H100))
        assert line.seconds == pytest.approx(payload * 7 / 64 / H100, rel=1e-9)


@pytest.mark.parametrize("n", [8, 16, 64])
def test_an_all_to_all_on_a_ring_takes_a_quarter_of_an_all_gather(n: int) -> None:
    # V / (4 W), a lower bound that the queues come close to.
    payload = 2**26
    schedule = schedule_for("direct", Pattern("all_to_all", (n,)))
    line = timeline(schedule, payload // n**2, topology_for(None, (n,)), LinkSpec(0.0, V5E))
    assert line.busiest_bytes == payload // 8
    assert 1 <= line.seconds / (payload / (4 * 2 * V5E)) < 1.2
