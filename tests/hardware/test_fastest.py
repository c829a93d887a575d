"""Which algorithm is named as the fastest, in a table and on either side of a crossover."""

from __future__ import annotations

import time

import pytest

from shardviz.collectives import Pattern
from shardviz.errors import QuestionError
from shardviz.hardware import LinkSpec, comparison, crossovers, fastest, left_out, timeline, topology_for
from shardviz.hardware.comparisons import LARGEST, AlgorithmRow, candidates

WHOLE = 8 * 3 * 5 * 7 * 16
"""Payloads that are multiples of it are cut into equal chunks by all algorithms of the groups below."""


@pytest.mark.parametrize(
    ("topology_name", "link_spec"),
    [
        (None, LinkSpec()),
        ("line", LinkSpec(1e-5, 1e9)),
        ("switch", LinkSpec(1e-5, 1e9)),
        ("ring", LinkSpec(0.0)),
    ],
)
@pytest.mark.parametrize(
    "pattern",
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
)
def test_crossovers_name_what_the_table_stars(
    pattern: Pattern, topology_name: str | None, link_spec: LinkSpec
) -> None:
    topology = topology_for(topology_name, pattern.dims)
    borders = [begin for begin, _ in crossovers(pattern, topology, link_spec)]
    near = {border * percent // 100 for border in borders for percent in (50, 99, 101, 150)}
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
    assert fastest((rows["bruck"], AlgorithmRow("twin", rows["bruck"].timeline))) == ("bruck", "twin")
    assert fastest((rows["ring"],)) == ()


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
    assert all(row.reason or row.seconds > 0 for row in rows)
    assert crossovers(pattern, topology, LinkSpec(), 4 * pattern.group_size)
    # What a bound alone is known of is never compared as if it were a time.
    assert {row.algorithm for row in rows if not row.exact} <= {
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
