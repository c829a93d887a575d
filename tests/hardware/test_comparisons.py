"""All algorithms side by side, and where they cross over."""

from __future__ import annotations

import time

import numpy as np
import pytest

from shardviz.collectives.algorithms import candidates, schedule_for
from shardviz.collectives.pattern import Pattern
from shardviz.errors import QuestionError
from shardviz.hardware.comparisons import LARGEST, NotCompared, comparison, crossovers, fastest, left_out
from shardviz.hardware.links import LinkSpec
from shardviz.hardware.timelines import timeline
from shardviz.hardware.topology import topology_for
from tests.conftest import covering

WIRE = LinkSpec()


def test_a_row_says_what_the_timeline_says() -> None:
    pattern = Pattern("all_reduce", (8,))
    topology = topology_for(None, (8,))
    rows = {row.algorithm: row for row in comparison(pattern, 2**20, topology, WIRE)}
    row = rows["ring"]
    line = timeline(schedule_for("ring", pattern), 2**17, topology, WIRE)
    assert (row.rounds, row.device_bytes, row.busiest_bytes) == (14, line.device_bytes, line.busiest_bytes)
    assert (row.seconds, row.waiting, row.exact) == (line.seconds, 0, True)
    assert row.device_bytes == 2 * 7 * 2**17


def test_what_cannot_be_has_a_reason() -> None:
    pattern = Pattern("all_reduce", (5,))
    rows = {row.algorithm: row for row in comparison(pattern, 1000, topology_for(None, (5,)), WIRE)}
    assert "5 devices are not a power of two" in rows["recursive-doubling"].reason
    assert rows["ring"].device_bytes == 8 * 200
    assert "pairwise" not in rows


@pytest.mark.parametrize(
    ("pattern", "payload", "device_bytes"),
    [
        # (N - 1) / N of the gathered array, of what a device holds; all of it for a permute.
        (Pattern("all_gather", (8,)), 800, 700),
        (Pattern("reduce_scatter", (8,)), 800, 700),
        (Pattern("all_to_all", (8,)), 800, 700),
        (Pattern("permute", (8,), perm=((0, 1),)), 800, 800),
        # Chunks of 34, 33 and 33 bytes, the first sent twice.
        (Pattern("all_gather", (3,)), 100, 68),
    ],
)
def test_bytes_are_those_of_a_member(pattern: Pattern, payload: int, device_bytes: int) -> None:
    rows = {
        row.algorithm: row for row in comparison(pattern, payload, topology_for(None, pattern.dims), WIRE)
    }
    assert rows["direct"].device_bytes == device_bytes


def test_chunks_may_have_the_sizes_that_a_function_gives() -> None:
    pattern, topology = Pattern("all_gather", (4,)), topology_for(None, (4,))
    rows = comparison(pattern, lambda schedule: np.arange(schedule.chunks) * 10, topology, WIRE)
    ring = next(row for row in rows if row.algorithm == "ring")
    assert ring.device_bytes == 60
    assert ring.seconds == pytest.approx(3 * WIRE.seconds(30))
    even = comparison(pattern, lambda schedule: 96 // schedule.chunks, topology, WIRE)
    same = comparison(pattern, 96, topology, WIRE)
    assert [getattr(row, "seconds", 0) for row in even] == [getattr(row, "seconds", 0) for row in same]


def test_so_many_unequal_chunks_that_all_count_as_the_largest() -> None:
    pattern, topology = Pattern("all_gather", (8192,)), topology_for(None, (8192,))
    for sizes in (8192 * 3 - 1, lambda schedule: np.arange(schedule.chunks) % 4):
        rows = {row.algorithm: row for row in comparison(pattern, sizes, topology, WIRE)}
        assert rows["ring"].device_bytes == 8191 * 3


def test_fewer_bytes_than_none() -> None:
    with pytest.raises(QuestionError, match="-1 bytes cannot be sent"):
        comparison(Pattern("all_gather", (4,)), -1, topology_for(None, (4,)), WIRE)


def test_no_bytes_take_the_latency() -> None:
    rows = {
        row.algorithm: row
        for row in comparison(Pattern("all_gather", (4,)), 0, topology_for(None, (4,)), WIRE)
    }
    assert rows["ring"].seconds == pytest.approx(3e-6)
    assert rows["direct"].seconds == pytest.approx(2e-6)


def seconds_of(pattern: Pattern, topology_name: str | None, payload: int) -> dict[str, float]:
    rows = comparison(pattern, payload, topology_for(topology_name, pattern.dims), WIRE)
    return {row.algorithm: row.seconds for row in rows if not isinstance(row, NotCompared)}


@pytest.mark.parametrize(
    ("pattern", "name"),
    covering(
        [
            Pattern("all_reduce", (16,)),
            Pattern("all_gather", (16,)),
            Pattern("all_to_all", (4, 4)),
            Pattern("all_reduce", (4, 4)),
            Pattern("broadcast", (16,)),
        ],
        [None, "line", "switch", "4x4"],
    ),
)
def test_on_either_side_of_a_crossover_the_named_one_is_the_fastest(
    pattern: Pattern, name: str | None
) -> None:
    topology = topology_for(name, pattern.dims)
    found = crossovers(pattern, topology, WIRE)
    assert found[0][0] == 16
    assert [payload for payload, _ in found] == sorted({payload for payload, _ in found})
    ends = [*(payload for payload, _ in found[1:]), LARGEST]
    for (begin, algorithm), end in zip(found, ends, strict=True):
        # Multiples of many chunk numbers, well within the range.
        for payload in {begin * 101 // 100, int((begin * end) ** 0.5), end * 99 // 100}:
            payload = -(-payload // 1920) * 1920
            if begin <= payload < end and payload >= 19200:
                times = seconds_of(pattern, name, payload)
                assert times[algorithm] <= min(times.values()) * 1.003


def test_affine_times_cross_exactly_where_algebra_says() -> None:
    # Through a switch, 8 devices. Direct all-reduce: 2 latencies and 2 · 7/8 V; no other has fewer of either.
    topology = topology_for("switch", (8,))
    assert crossovers(Pattern("all_reduce", (8,)), topology, WIRE) == ((8, "direct"),)
    # Direct broadcast L + 7 V / W, a binomial tree 3 (L + V / W): equal at 4 V = 2 L W = 90,000 bytes.
    assert crossovers(Pattern("broadcast", (8,)), topology, WIRE)[:2] == (
        (8, "direct"),
        (22_500, "binomial-tree"),
    )


def test_where_nothing_takes_time_the_first_is_named() -> None:
    nothing = LinkSpec(0.0, float("inf"))
    found = crossovers(Pattern("all_reduce", (8,)), topology_for(None, (8,)), nothing)
    assert found == ((8, "ring"),)
    assert crossovers(Pattern("all_gather", (1,)), topology_for(None, (1,)), WIRE)[0][0] == 1


@pytest.mark.parametrize("kind", ["all_reduce", "all_to_all"])
def test_64_devices_on_a_ring_take_seconds_at_most(kind: str) -> None:
    begin = time.process_time()
    topology = topology_for(None, (64,))
    assert crossovers(Pattern(kind, (64,)), topology, WIRE)
    assert left_out(Pattern(kind, (64,)), topology) == ()
    assert time.process_time() - begin < 60


def test_large_groups_leave_out_what_would_take_too_long_and_say_so() -> None:
    pattern, topology = Pattern("all_gather", (512,)), topology_for(None, (512,))
    begin = time.process_time()
    assert crossovers(pattern, topology, WIRE) == ((512, "bidirectional-ring"),)
    reasons = dict(left_out(pattern, topology))
    assert time.process_time() - begin < 60
    assert set(reasons) == {"direct"}
    assert "too often to follow" in reasons["direct"]


WHOLE = 8 * 3 * 5 * 7 * 16
"""Payloads that are multiples of it are cut into equal chunks by all algorithms of the groups below."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "links"),
    covering(
        [
            Pattern("all_reduce", (8,)),
            Pattern("all_reduce", (4, 4)),
            Pattern("all_reduce", (2, 3, 2)),
            Pattern("all_gather", (16,)),
            Pattern("reduce_scatter", (2, 8)),
            Pattern("all_to_all", (8,)),
            Pattern("all_to_all", (2, 4)),
            Pattern("broadcast", (16,), source=3),
        ],
        [
            (None, LinkSpec()),
            ("line", LinkSpec(1e-5, 1e9)),
            ("switch", LinkSpec(1e-5, 1e9)),
            ("ring", LinkSpec(0.0)),
        ],
    ),
)
def test_crossovers_name_what_the_table_stars(pattern: Pattern, links: tuple[str | None, LinkSpec]) -> None:
    topology_name, link_spec = links
    topology = topology_for(topology_name, pattern.dims)
    borders = [begin for begin, _ in crossovers(pattern, topology, link_spec)]
    near = {border * percent // 100 for border in borders for percent in (99, 101)}
    for payload in sorted({-(-each // WHOLE) * WHOLE for each in (*near, 10**7)}):
        if not pattern.group_size < payload < LARGEST:
            continue
        named = [
            name for begin, name in crossovers(pattern, topology, link_spec, payload) if begin <= payload
        ][-1]
        assert named in fastest(comparison(pattern, payload, topology, link_spec)), payload


def test_lower_bounds_and_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardviz.hardware.timelines.QUEUE_WORK", 2**25)
    pattern, topology = Pattern("all_to_all", (512,)), topology_for(None, (512,))
    rows = {row.algorithm: row for row in comparison(pattern, 2048, topology, LinkSpec())}
    assert not rows["direct"].exact
    # The bound of direct is below the time of the others, so that nobody knows.
    assert fastest(tuple(rows.values())) == ()
    assert fastest((rows["bruck"], rows["pairwise"])) == ("bruck",)
    assert fastest((rows["bruck"], rows["pairwise"], rows["ring"])) == ("bruck",)
    assert fastest((rows["bruck"], rows["bruck"])) == ("bruck", "bruck")
    assert fastest((rows["ring"],)) == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "dims"),
    [
        ("all_reduce", (8, 8, 8)),
        ("all_to_all", (8, 8, 8)),
        ("all_reduce", (2,) * 8),
    ],
)
def test_large_comparisons_end(kind: str, dims: tuple[int, ...]) -> None:
    begin = time.process_time()
    pattern, topology = Pattern(kind, dims), topology_for(None, dims)
    rows = comparison(pattern, 4 * pattern.group_size, topology, LinkSpec())
    assert all(isinstance(row, NotCompared) or row.seconds > 0 for row in rows)
    assert crossovers(pattern, topology, LinkSpec(), 4 * pattern.group_size)
    # What a bound alone is known of is never compared as if it were a time.
    assert {row.algorithm for row in rows if not isinstance(row, NotCompared) and not row.exact} <= {
        name for name, _ in left_out(pattern, topology)
    }
    assert time.process_time() - begin < 60


def test_twenty_axes_are_refused_before_anything_is_listed() -> None:
    begin = time.process_time()
    assert all(candidates(Pattern("all_reduce", (2,) * 20)).values())
    with pytest.raises(QuestionError, match="the 20,971,520 links of a torus of 2x2x2x") as caught:
        topology_for(None, (2,) * 20)
    assert "--topology ring or switch" in caught.value.hint
    assert time.process_time() - begin < 60


def test_too_many_axes_are_too_long_though_rounds_are_alike() -> None:
    dims = (2,) * 18
    schedule = candidates(Pattern("all_reduce", dims))["torus"]
    assert not isinstance(schedule, str)
    line = timeline(schedule, 4, topology_for(None, dims), LinkSpec())
    assert line.too_long == "rounds of 262,144 sends along 18 axes are too many to add up"
