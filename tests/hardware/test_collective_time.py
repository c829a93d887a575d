"""Closed forms against published times, each with its convention, and against bounds that hold for any."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, strategies as st

from shardviz.hardware.clusters import parse_cluster
from shardviz.hardware.collective_time import TIMED, collective_time
from shardviz.hardware.links import LinkLevel, LinkSpec
from shardviz.hardware.routes import link_loads
from shardviz.hardware.topology import Torus

MIB = 2**20
V4P = V5E = LinkSpec(1e-6, 4.5e10)
V5P = LinkSpec(1e-6, 9e10)
H100 = LinkSpec(0.0, 4.5e11)
DCN = LinkSpec(1e-5, 6.25e9)


def ring(size: int, spec: LinkSpec = V4P, name: str = "x", hops: int = 1) -> LinkLevel:
    return LinkLevel("ring", size, spec, name, hops)


def line(size: int, spec: LinkSpec = V5E, name: str = "y", hops: int = 1) -> LinkLevel:
    return LinkLevel("line", size, spec, name, hops)


def node(size: int = 8, spec: LinkSpec = H100) -> LinkLevel:
    return LinkLevel("switch", size, spec, "NVLink", nccl="h100")


@pytest.mark.parametrize(
    ("op", "size", "levels", "published"),
    [
        # v4p 4x4x4: over X of bf16[1024_X,4096_Y]: V/W over one ring, W two directions.
        pytest.param("all-gather", 1024 * 1024 * 2, [ring(4)], 23.3e-6, id="D1"),
        # Over X and Y: V/(2·W).
        pytest.param("all-gather", 1024 * 4096 * 2, [ring(4), ring(4, name="y")], 46.6e-6, id="D2"),
        # All-reduce over Z of an array split on X and Y: 2·V/W.
        pytest.param("all-reduce", 256 * 1024 * 2, [ring(4, name="z")], 11.65e-6, id="D3"),
        # v5e 8x4: over Y of bf16[2048_Y,8192], if the axis of 4 were a ring; as a line, where the book has
        # three hops of a quarter each, over one direction.
        pytest.param("all-gather", 2048 * 8192 * 2, [ring(4)], 373e-6, id="D5 ring"),
        pytest.param("all-gather", 2048 * 8192 * 2, [line(4)], 559e-6, id="D5 line"),
        # 8 H100: 7/8 of V over NVLink, without latency.
        pytest.param("all-gather", 1024 * 16384 * 2, [node()], 65.2e-6, id="D12"),
        pytest.param("all-gather", 4096 * 65536 * 2, [node()], 1.044e-3, id="D13"),
    ],
)
def test_the_bytes_take_as_long_as_the_book_counts(op, size, levels, published):
    found = collective_time(op, size, levels)
    assert found.textbook_seconds == pytest.approx(published, rel=2e-3)
    if not levels[0].nccl:
        assert found.bandwidth_seconds <= found.textbook_seconds * (1 + 1e-12)


def test_few_bytes_take_the_hops():
    # D4: v4p, a ring of 4, 128 elements: half the ring. D6: v5e, a line of 4, bf16[256,256]: three hops.
    on_a_ring = collective_time("all-gather", 128 * 2, [ring(4)])
    assert (on_a_ring.seconds, on_a_ring.bound) == (pytest.approx(2e-6), "latency")
    on_a_line = collective_time("all-gather", 256 * 256 * 2, [line(4)])
    assert (on_a_line.seconds, on_a_line.bound) == (pytest.approx(3e-6), "latency")


def test_a_dimension_is_named_once():
    levels = [line(2, name="y and x", hops=4), line(2, name="y"), line(2, name="x")]
    found = collective_time("collective-permute", 2**20, levels)
    assert found.convention.startswith("6 hops along y and x: ")
    assert collective_time("all-gather", 2**20, levels).bound == "y and x"


def test_no_axis_carries_more_than_its_links():
    """A quarter of 4 GB has to come over the 10 GB/s of the slow level, however fast the other one is."""
    slow, fast = line(2, LinkSpec(1e-6, 4e10), "x", hops=4), line(2, LinkSpec(1e-6, 4e10), "y")
    assert collective_time("all-gather", 4 * 10**9, [slow, fast]).bandwidth_seconds == pytest.approx(0.1)
    assert collective_time("all-reduce", 4 * 10**9, [slow, fast]).bandwidth_seconds == pytest.approx(0.2)
    # On one axis both take their turns on its links.
    both = collective_time("all-gather", 4 * 10**9, [slow, line(2, LinkSpec(1e-6, 4e10), "x")])
    assert both.bandwidth_seconds == pytest.approx(0.125)
    assert both.convention.startswith(
        "two along x, 4 hops apart on shared links and two along x, at once: 1/4 over 10 GB/s and 1/4 over "
        "40 GB/s of 3.73 GiB on links along x"
    )


def test_in_rounds_the_hops_and_the_bytes_add_up():
    # Each of N−1 rounds on a line: a hop's latency and the bytes of one member.
    found = collective_time("all-gather", 2**17, [line(4)], in_rounds=True)
    assert found.seconds == pytest.approx(3 * (1e-6 + 2**15 / 4.5e10))
    assert found.seconds == pytest.approx(found.latency_seconds + found.bandwidth_seconds)
    assert found.convention.endswith(", and 3 hops of 1 µs")
    both = collective_time("all-reduce", 2**17, [ring(4)], in_rounds=True)
    assert both.seconds == pytest.approx(2 * (2e-6 + 0.75 * 2**17 / 9e10))


def test_a_message_across_a_grid_takes_both_axes():
    # D9: v5e 4x4, (0,0) to (3,3), bf16[8,128,8192]: the first byte after 6 hops, all over two links at once.
    found = collective_time("send", 8 * 128 * 8192 * 2, [line(4, name="x"), line(4)])
    assert found.latency_seconds == pytest.approx(6e-6)
    assert found.seconds == pytest.approx(192e-6, rel=5e-3)


def test_flops_for_each_byte_that_hide_a_collective():
    # D16, v5p: peak over what one axis, three axes and the data-center network carry in all directions.
    peak, network = 4.59e14, LinkLevel("network", 4, LinkSpec(0.0, 6.25e9), "DCN")
    axes = [ring(16, V5P, name) for name in "xyz"]
    size = 2**40
    one = peak * collective_time("all-gather", size, axes[:1]).textbook_seconds / size
    three = peak * collective_time("all-gather", size, axes).textbook_seconds / size
    over_network = peak * collective_time("all-gather", size, [network]).textbook_seconds / size
    assert one == pytest.approx(2550, rel=1e-3)
    assert three == pytest.approx(850, rel=1e-3)
    assert over_network == pytest.approx(73_440, rel=1e-3)


def test_an_all_to_all_is_a_quarter_of_an_all_gather_of_all_that_is_held():
    held, size = 4 * MIB, 16
    whole = collective_time("all-gather", held * size, [ring(size)])
    assert collective_time("all-to-all", held, [ring(size)]).bandwidth_seconds == pytest.approx(
        whole.textbook_seconds / 4
    )


def test_bus_bandwidth_of_nccl_is_what_the_links_carry():
    # D28: all-reduce of 1 MiB over 40 GPUs in 354.9 µs: 2.95 GB/s of the data, 5.76 GB/s over each link.
    taken = 354.9e-6
    assert MIB / taken == pytest.approx(2.95e9, rel=2e-3)
    found = collective_time("all-reduce", MIB, [node(40, LinkSpec(0.0, 5.76e9))])
    assert found.textbook_seconds == pytest.approx(taken, rel=2e-3)


SPECS = st.builds(LinkSpec, st.sampled_from([0.0, 1e-6, 1e-5]), st.sampled_from([6.25e9, 4.5e10, 9e10]))
TORI = st.lists(
    st.builds(
        LinkLevel,
        st.sampled_from(["ring", "line"]),
        st.sampled_from([1, 2, 3, 4, 8, 16]),
        SPECS,
        st.sampled_from("xyz"),
        st.sampled_from([1, 1, 2]),
    ),
    max_size=3,
)
NODES = st.builds(
    lambda nodes, gpus, network, links: [
        LinkLevel("network", nodes, network, "network", nccl="h100"),
        LinkLevel("switch", gpus, links, "NVLink", nccl="h100"),
    ],
    st.sampled_from([1, 2, 5]),
    st.sampled_from([1, 4, 8]),
    SPECS,
    SPECS,
)
SLICES = st.tuples(
    st.builds(LinkLevel, st.just("network"), st.sampled_from([1, 2, 3]), SPECS, st.just("DCN")).map(
        lambda level: [level]
    ),
    TORI,
    st.builds(LinkLevel, st.just("chip"), st.sampled_from([1, 2]), SPECS, st.just("cores")).map(
        lambda level: [level]
    ),
).map(lambda parts: [*parts[0], *parts[1], *parts[2]])
LEVELS = st.one_of(TORI, NODES, SLICES)
STRATEGIES = st.sampled_from(["", "UniDirection1DRingStrategy{colors:2", "StrategyRing", "1D {colors:1 "])


def ingress(levels):
    """Bytes a second that any device can receive at most, over all of its links at once."""
    return sum(2 * level.spec.bandwidth for level in levels if level.size > 1)


@given(st.sampled_from(TIMED), st.integers(0, 2**34), LEVELS, STRATEGIES)
def test_never_below_the_least_that_the_wires_carry(op, size, levels, strategy):
    found = collective_time(op, size, levels, strategy=strategy)
    members = math.prod(level.size for level in levels)
    if members == 1:
        assert found.seconds == 0
        return
    assert found.seconds >= max(found.latency_seconds, found.bandwidth_seconds)
    share = {"all-reduce": 2 * (members - 1) / members}.get(op, (members - 1) / members)
    least = size if op in ("send", "recv", "collective-permute", "collective-broadcast") else share * size
    assert found.bandwidth_seconds * ingress(levels) >= least * (1 - 1e-9)
    assert found.bound
    assert found.convention


@given(st.sampled_from(TIMED), st.integers(0, 2**30), st.integers(0, 2**30), LEVELS, STRATEGIES)
def test_more_bytes_never_take_less(op, size, more, levels, strategy):
    less = collective_time(op, size, levels, strategy=strategy)
    assert collective_time(op, size + more, levels, strategy=strategy).seconds >= less.seconds


@given(
    st.sampled_from([op for op in TIMED if op != "collective-permute"]),
    st.integers(0, 2**30),
    st.sampled_from(["line", "ring", "switch", "network"]),
    st.integers(3, 32),
    SPECS,
)
def test_a_larger_group_never_takes_less(op, size, kind, members, spec):
    smaller, larger = (
        collective_time(op, size, [LinkLevel(kind, many, spec, "x")]) for many in (members, members + 1)
    )
    assert larger.seconds >= smaller.seconds * (1 - 1e-9)


@given(st.integers(0, 2**34), LEVELS, STRATEGIES)
def test_an_all_reduce_is_never_cheaper_than_its_halves(size, levels, strategy):
    whole, scatter, gather = (
        collective_time(op, size, levels, strategy=strategy)
        for op in ("all-reduce", "reduce-scatter", "all-gather")
    )
    # NCCL's lines were fitted to each operation by itself, and a small all-reduce, one kernel in a tree, was
    # measured below a reduce-scatter, a ring; where bytes count it takes both halves.
    if any(level.nccl for level in levels):
        assert size < 2**27 or whole.seconds >= max(scatter.seconds, gather.seconds)
        return
    assert whole.bandwidth_seconds >= scatter.bandwidth_seconds + gather.bandwidth_seconds - 1e-9
    assert whole.seconds >= max(scatter.seconds, gather.seconds) * (1 - 1e-9)


@given(st.integers(0, 2**34), st.sampled_from([4, 6, 8, 16]), SPECS)
def test_one_ring_through_a_grid_never_beats_all_axes_at_once(size, side, spec):
    levels = [LinkLevel("ring", side, spec, "x"), LinkLevel("ring", side, spec, "y")]
    both = collective_time("all-gather", size, levels)
    one = collective_time("all-gather", size, levels, strategy="UniDirection1DRingStrategy")
    assert one.bandwidth_seconds == pytest.approx(2 * both.bandwidth_seconds)
    assert one.seconds >= both.seconds


@pytest.mark.parametrize(
    ("op", "levels", "convention"),
    [
        (
            "all-gather",
            [ring(4)],
            "a ring of 4 along x, both directions: 3/4 of 8 MiB over 2 × 45 GB/s; at least 2 hops of 1 µs",
        ),
        (
            "all-reduce",
            [line(4)],
            "a line of 4 along y: twice 3/4 of 8 MiB over 45 GB/s; at least twice 3 hops of 1 µs",
        ),
        (
            "all-gather",
            [line(2, name="x"), line(2, hops=2)],
            "two along x and two along y, 2 hops apart on shared links, at once: 3/4 of 8 MiB over 45 GB/s + "
            "22.5 GB/s; at least 3 hops of 1 µs",
        ),
        (
            "reduce-scatter",
            [LinkLevel("network", 2, DCN, "DCN"), ring(4)],
            "a ring of 4 along x, both directions: 3/4 of 8 MiB over 2 × 45 GB/s; then 2 over DCN: 1/2 of "
            "2 MiB over 6.25 GB/s; at least 2 hops of 1 µs and 1 hop of 10 µs",
        ),
        (
            "all-gather",
            [node()],
            "8 through NVLink: 7/8 of 8 MiB over 450 GB/s at 77% of that, and 43.3 µs to start",
        ),
        (
            "all-gather",
            [LinkLevel("network", 2, LinkSpec(0.0, 5e10), "network", nccl="h100")],
            "2 over network: 1/2 of 8 MiB over 50 GB/s at 100% of that, and 10.1 µs to start",
        ),
        (
            "collective-permute",
            [line(4)],
            "3 hops along y: 3 µs, then 8 MiB over 45 GB/s",
        ),
        (
            "all-to-all",
            [ring(16)],
            "a ring of 16 along x, both directions: 2 × 8 MiB over each link of 45 GB/s; "
            "at least 8 hops of 1 µs",
        ),
    ],
)  # fmt: skip
def test_the_convention_is_said(op, levels, convention):
    assert collective_time(op, 8 * MIB, levels).convention == convention


@pytest.mark.parametrize("members", [2, 4, 8])
def test_where_each_pair_has_a_link_a_member_uses_all_at_once(members):
    """MI355X: 3/4 of a peak of (N-1) × 76.8 GB/s (vllm-project/vllm#39080); a permute goes over one link."""
    (level,) = parse_cluster(f"mi355x:{members}").family.levels_of_any(members)
    size = 2**30
    sent = size * (members - 1) / members
    links = 5.76e10 * (members - 1)
    for op, seconds in (
        ("all-gather", sent / links),
        ("all-reduce", 2 * sent / links),
        ("all-to-all", sent / links),
        ("collective-permute", size / 5.76e10),
    ):
        assert collective_time(op, size, [level]).bandwidth_seconds == pytest.approx(seconds), op
    many = f"{members - 1} × " * (members > 2)
    assert f"over {many}57.6 GB/s" in collective_time("all-gather", size, [level]).convention


@pytest.mark.parametrize("closes", [True, False])
def test_a_permute_of_any_pairs_takes_its_longest_way_and_its_busiest_link(closes):
    """Against link_loads, which routes each message by itself."""
    torus, spec = Torus((8,), (closes,)), LinkSpec(0.0, 1.0)
    level = LinkLevel("ring" if closes else "line", 8, spec, "x")
    chance = random.Random(0)
    for _ in range(50):
        targets = chance.sample(range(8), 8)
        pairs = [
            (source, target) for source, target in enumerate(targets) if (target - source) % 8 not in (0, 4)
        ]
        ends = np.array(pairs, np.int64).reshape(-1, 2)
        loads = link_loads(torus, ends[:, 0], ends[:, 1], np.ones(len(ends), np.int64))
        time = collective_time("collective-permute", 1, [level], pairs=pairs)
        assert time.bandwidth_seconds == (loads.max(initial=0) if len(pairs) != 1 else 1)
