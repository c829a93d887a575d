"""All algorithms side by side."""

from __future__ import annotations

import time

import numpy as np
import pytest

from shardviz.collectives.algorithms import candidates, schedule_for
from shardviz.collectives.schedule import Pattern, Schedule
from shardviz.collectives.values import Ints
from shardviz.errors import QuestionError
from shardviz.hardware.links import LinkSpec
from shardviz.hardware.timelines import ChunkBytes, NotCompared, comparison, fastest, timeline
from shardviz.hardware.topology import topology_for

WIRE = LinkSpec()


def even(payload: int) -> ChunkBytes:
    """The larger of a member's operand and result, cut into chunks as equal as whole bytes can be."""

    def sizes(schedule: Schedule) -> int | Ints:
        is_of_one = schedule.pattern.kind in ("all_to_all", "permute")
        count = schedule.chunks // (schedule.pattern.group_size if is_of_one else 1)
        least, more = divmod(payload, count)
        return least + (np.arange(schedule.chunks) % count < more) if more else least

    return sizes


def test_a_row_says_what_the_timeline_says() -> None:
    pattern = Pattern("all_reduce", (8,))
    topology = topology_for(None, (8,))
    rows = {row.algorithm: row for row in comparison(pattern, even(2**20), topology, WIRE)}
    row = rows["ring"]
    line = timeline(schedule_for("ring", pattern), 2**17, topology, WIRE)
    assert (row.rounds, row.device_bytes, row.busiest_bytes) == (14, line.device_bytes, line.busiest_bytes)
    assert (row.seconds, row.waiting, row.exact) == (line.seconds, 0, True)
    assert row.device_bytes == 2 * 7 * 2**17


def test_what_cannot_be_has_a_reason() -> None:
    pattern = Pattern("all_reduce", (5,))
    rows = {row.algorithm: row for row in comparison(pattern, even(1000), topology_for(None, (5,)), WIRE)}
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
        row.algorithm: row
        for row in comparison(pattern, even(payload), topology_for(None, pattern.dims), WIRE)
    }
    assert rows["direct"].device_bytes == device_bytes


def test_chunks_may_have_the_sizes_that_a_function_gives() -> None:
    pattern, topology = Pattern("all_gather", (4,)), topology_for(None, (4,))
    rows = comparison(pattern, lambda schedule: np.arange(schedule.chunks) * 10, topology, WIRE)
    ring = next(row for row in rows if row.algorithm == "ring")
    assert ring.device_bytes == 60
    assert ring.seconds == pytest.approx(3 * WIRE.seconds(30))


def test_so_many_unequal_chunks_that_all_count_as_the_largest() -> None:
    pattern, topology = Pattern("all_gather", (8192,)), topology_for(None, (8192,))
    for sizes in (even(8192 * 3 - 1), lambda schedule: np.arange(schedule.chunks) % 4):
        rows = {row.algorithm: row for row in comparison(pattern, sizes, topology, WIRE)}
        assert rows["ring"].device_bytes == 8191 * 3


def test_no_bytes_take_the_latency() -> None:
    rows = {
        row.algorithm: row
        for row in comparison(Pattern("all_gather", (4,)), even(0), topology_for(None, (4,)), WIRE)
    }
    assert rows["ring"].seconds == pytest.approx(3e-6)
    assert rows["direct"].seconds == pytest.approx(2e-6)


def test_lower_bounds_and_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardviz.hardware.timelines.QUEUE_WORK", 2**25)
    pattern, topology = Pattern("all_to_all", (512,)), topology_for(None, (512,))
    rows = {row.algorithm: row for row in comparison(pattern, even(2048), topology, LinkSpec())}
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
    ],
)
def test_large_comparisons_end(kind: str, dims: tuple[int, ...]) -> None:
    begin = time.process_time()
    pattern, topology = Pattern(kind, dims), topology_for(None, dims)
    rows = comparison(pattern, even(4 * pattern.group_size), topology, LinkSpec())
    assert all(isinstance(row, NotCompared) or row.seconds > 0 for row in rows)
    assert time.process_time() - begin < 240


def test_twenty_axes_are_refused_before_anything_is_listed() -> None:
    begin = time.process_time()
    assert all(candidates(Pattern("all_reduce", (2,) * 20)).values())
    with pytest.raises(QuestionError, match="the 20,971,520 links of a torus of 2x2x2x") as caught:
        topology_for(None, (2,) * 20)
    assert "--topology ring or switch" in caught.value.hint
    assert time.process_time() - begin < 240


def test_too_many_axes_are_too_long_though_rounds_are_alike() -> None:
    dims = (2,) * 18
    schedule = candidates(Pattern("all_reduce", dims))["torus"]
    assert not isinstance(schedule, str)
    line = timeline(schedule, 4, topology_for(None, dims), LinkSpec())
    assert line.too_long == "rounds of 262,144 sends along 18 axes are too many to add up"
