"""Summaries of reports, the changes between two of them, and the limits that these break."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardviz.errors import NotationError
from shardviz.reports.changes import report_changes
from shardviz.reports.limits import broken_limits, parse_limits
from shardviz.reports.summary import ReportSummary, SummaryLine

GATHER = SummaryLine("all-gather", ("data",), "forward", "params['w']", "bf16[64]→[256]", 4, 512, 384, True)
REDUCE = SummaryLine("all-reduce", ("model",), "forward", "mlp", "bf16[256]", 4, 512, 768, False)
BEFORE = ReportSummary((("data", 4), ("model", 2)), "v5e:2x4", (GATHER, REDUCE), 1e-3, 1 << 30)


def changed(*lines, **fields):
    return report_changes(BEFORE, replace(BEFORE, lines=lines, **fields))


def kinds(found):
    return [each.kind for each in found.changes]


def test_nothing_changes():
    assert report_changes(BEFORE, BEFORE).changes == ()


def test_added_and_removed_the_most_bytes_first():
    found = changed(GATHER, replace(REDUCE, op="all-to-all"))
    assert kinds(found) == ["removed", "added"] or kinds(found) == ["added", "removed"]
    assert {each.kind: each.wire_bytes for each in found.changes} == {"removed": -4 * 768, "added": 4 * 768}


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (replace(GATHER, bytes=1024, wire_bytes=768, shape="bf16[128]→[512]"), "grown"),
        (replace(GATHER, bytes=256, wire_bytes=192, shape="bf16[32]→[128]"), "shrunk"),
        (replace(GATHER, runs=32), "more runs"),
        (replace(GATHER, runs=None), "more runs"),
        (replace(GATHER, runs=1), "fewer runs"),
        (replace(GATHER, is_overlapped=False), "not overlapped"),
    ],
)
def test_one_collective_changes(line, kind):
    (change,) = changed(line, REDUCE).changes
    assert (change.kind, change.before, change.after) == (kind, GATHER, line)


def test_a_change_of_names_is_none():
    assert (
        changed(replace(GATHER, place="params['weight']"), replace(REDUCE, place="Block/mlp")).changes == ()
    )


def test_a_collective_that_moves_to_another_axis_is_new():
    assert sorted(kinds(changed(replace(GATHER, axes=("model",)), REDUCE))) == ["added", "removed"]


@pytest.mark.parametrize(
    ("limits", "fields", "message"),
    [
        ("new-collective", {}, ""),
        ("bytes+5%", {}, ""),
        ("seconds+5%", {"seconds": 1.05e-3}, ""),
        ("seconds+5%", {"seconds": 1.06e-3}, "from 1.00 ms to 1.06 ms, 6.0 % more: the limit is seconds+5%"),
        ("seconds+20us", {"seconds": 1.03e-3}, "to 1.03 ms, 3.0 % more: the limit is seconds+20us"),
        ("memory+1GiB", {"memory": 2 << 30}, ""),
        ("memory+1MiB", {"memory": 2 << 30}, "memory rises from 1 GiB to 2 GiB, 100.0 % more: the"),
        ("memory+1GiB", {"memory": None}, "memory: one of the two programs has no figure for it"),
    ],
)  # fmt: skip
def test_limits(limits, fields, message):
    found = broken_limits(parse_limits(limits), changed(GATHER, REDUCE, **fields))
    assert [message in each.message for each in found] == [True] * bool(message)


def test_a_new_collective_breaks_two_limits():
    new = replace(GATHER, op="all-to-all", axes=("model",))
    found = broken_limits(parse_limits("new-collective, bytes+1KiB"), changed(GATHER, REDUCE, new))
    assert [each.limit.quantity for each in found] == ["new-collective", "bytes"]
    assert found[0].message == "all-to-all over model is new"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a limit is missing in an empty text"),
        ("bytes", "bytes needs an amount, such as +5%"),
        ("bytes+", "bytes needs an amount"),
        ("new-collective+1", "new-collective takes no amount"),
        ("bytes+5parsecs", "'parsecs' is not a unit of bytes"),
        ("seconds+5GiB", "'GiB' is not a unit of seconds"),
        ("bytes+5%,sconds+1%", "there is no limit 'sconds' at character 10"),
        ("bytes-5%", "there is no limit"),
    ],
)
def test_limits_that_cannot_be_read(text, message):
    with pytest.raises(NotationError) as caught:
        parse_limits(text)
    assert message in str(caught.value)
