"""Sums of collectives by what they have in common."""

from __future__ import annotations

import pytest

from shardviz.reports.entries import cost_sum, sums
from tests.reports.entries import entry

ENTRIES = (
    entry(sent=10, runs=4, link="ICI", phase="forward", seconds=2.0, exposed=1.0),
    entry(sent=20, runs=1, link="DCN", phase="backward", seconds=9.0, exposed=9.0, axes=("data", "model")),
    entry("all-reduce", sent=1, runs=2, link="ICI", phase="backward", source=""),
    entry("all-reduce", sent=99, runs=None, link="ICI", phase="backward", seconds=1.0, exposed=1.0),
)


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("op", ("all-gather", "all-reduce")),
        ("axes", ("data, model", "data")),
        ("link", ("DCN", "ICI")),
        ("phase", ("backward", "forward")),
        ("source", ("/home/me/step.py:12", "")),
    ],
)
def test_the_most_expensive_comes_first(by, names):
    found = sums(ENTRIES, by)
    assert tuple(each.name for each in found) == names
    whole = cost_sum(ENTRIES)
    assert (whole.count, whole.runs, whole.wire_bytes, whole.bytes) == (4, 7, 62, 124)
    assert (whole.seconds, whole.exposed, whole.unknown) == (17.0, 13.0, 1)


def test_what_is_not_known_is_counted_apart():
    gathers, sums_of = sums(ENTRIES, "op")
    assert (gathers.seconds, gathers.exposed, gathers.unknown) == (17.0, 13.0, 0)
    assert (sums_of.runs, sums_of.wire_bytes, sums_of.seconds) == (2, 2, None)
    assert sums_of.unknown == 1


def test_nothing():
    assert sums((), "op") == ()
    assert cost_sum(()).seconds is None
