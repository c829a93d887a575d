"""Summaries of reports, the changes between two of them, and the limits that these break."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardviz.errors import NotationError
from shardviz.reports.changes import (
    ArrayLine,
    ReportSummary,
    SummaryLine,
    broken_limits,
    parse_limits,
    report_changes,
)

GATHER = SummaryLine("all-gather", ("data",), "forward", "params['w']", "bf16[64]→[256]", 4, 512, 384, 4)
REDUCE = SummaryLine("all-reduce", ("model",), "forward", "mlp", "bf16[256]", 4, 512, 768, 0)
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
        (replace(GATHER, runs=32, overlapped=32), "more runs"),
        (replace(GATHER, runs=None), "other runs"),
        (replace(GATHER, runs=None, in_loop=True), "into a loop"),
        (replace(GATHER, runs=32, overlapped=32, in_loop=True), "into a loop"),
        (replace(GATHER, overlapped=3), "less overlapped"),
        (replace(REDUCE, overlapped=1), "more overlapped"),
        (replace(GATHER, bytes=1024, wire_bytes=1536, runs=1, overlapped=1), "grown"),
        (replace(GATHER, bytes=2048, wire_bytes=1536, runs=1, overlapped=1, in_loop=True), "into a loop"),
        # In larger groups, which follow no axes, more is sent for the same result.
    ],
)
def test_one_collective_changes(line, kind):
    old, other = (GATHER, REDUCE) if line.op == GATHER.op else (REDUCE, GATHER)
    (change,) = changed(line, other).changes
    assert (change.kind, change.before, change.after) == (kind, old, line)


def test_a_change_of_names_is_none():
    assert (
        changed(replace(GATHER, place="params['weight']"), replace(REDUCE, place="Block/mlp")).changes == ()
    )


@pytest.mark.parametrize(
    "line",
    [
        replace(REDUCE, place="attention", runs=2),
        replace(REDUCE, place="attention", runs=64, in_loop=True),
        replace(REDUCE, place="", runs=2),
        replace(REDUCE, place="attention", shape="bf16[512]", bytes=1024, wire_bytes=1536),
    ],
)
def test_one_that_stands_elsewhere_and_costs_otherwise_is_another(line):
    found = changed(GATHER, line)
    assert sorted(kinds(found)) == ["added", "removed"]
    (broken,) = broken_limits(parse_limits("new-collective"), found)
    assert broken.message == "all-reduce over model is new"


def test_without_a_name_size_tells_them_apart_where_all_else_is_alike():
    old = replace(REDUCE, place="")
    before = replace(BEFORE, lines=(old,))
    larger = replace(old, shape="bf16[512]", bytes=1024, wire_bytes=1536)
    assert kinds(report_changes(before, replace(BEFORE, lines=(larger,)))) == ["grown"]
    for other in (replace(larger, shape="bf16[2,256]"), replace(larger, runs=16), replace(larger, axes=())):
        assert sorted(kinds(report_changes(before, replace(BEFORE, lines=(other,))))) == ["added", "removed"]


def test_lines_that_both_have_are_counted():
    assert report_changes(BEFORE, BEFORE).same == 2
    assert changed(GATHER, replace(REDUCE, place="attention")).same == 1


def test_the_longest_files_are_compared_at_once():
    """20,000 lines, the most that a file may have; pairs of all with all would take minutes."""
    many = [replace(GATHER, place=f"params['w{number}']") for number in range(20_000)]
    moved = [replace(line, runs=5, overlapped=5) for line in many]
    found = report_changes(replace(BEFORE, lines=(*many,)), replace(BEFORE, lines=(*moved,)))
    assert kinds(found) == ["more runs"] * 20_000


def test_what_moves_into_a_loop_has_another_place_there():
    moved = replace(REDUCE, place="", runs=64, in_loop=True)
    (change,) = changed(GATHER, moved).changes
    assert (change.kind, change.before, change.after) == ("into a loop", REDUCE, moved)
    back = report_changes(replace(BEFORE, lines=(GATHER, moved)), BEFORE)
    assert kinds(back) == ["out of a loop"]


def test_a_loop_of_as_many_runs_is_no_change():
    assert changed(replace(GATHER, in_loop=True), REDUCE).changes == ()


def test_of_several_at_one_place_those_of_one_shape_are_the_same():
    other = replace(GATHER, shape="bf16[8]→[32]", bytes=64, wire_bytes=48)
    grown = replace(other, shape="bf16[16]→[64]", bytes=128, wire_bytes=96)
    before = replace(BEFORE, lines=(GATHER, other))
    (change,) = report_changes(before, replace(BEFORE, lines=(grown, GATHER))).changes
    assert (change.kind, change.before, change.after) == ("grown", other, grown)


def test_a_collective_that_moves_to_another_axis_is_new():
    assert sorted(kinds(changed(replace(GATHER, axes=("model",)), REDUCE))) == ["added", "removed"]


@pytest.mark.parametrize(
    ("limits", "fields", "message"),
    [
        ("new-collective", {}, ""),
        ("seconds+5%", {"seconds": 1.06e-3}, "from 1 ms to 1.06 ms, 6.0 % more: the limit is seconds+5%"),
        ("seconds+20us", {"seconds": 1.03e-3}, "to 1.03 ms, 3.0 % more: the limit is seconds+20us"),
        ("memory+1GiB", {"memory": 2 << 30}, ""),
        ("memory+1MiB", {"memory": 2 << 30}, "memory rises from 1 GiB to 2 GiB, 100.0 % more: the"),
        ("memory+1MiB", {"memory": 200 << 30}, "memory rises from 1 GiB to 200 GiB, ×200: the limit is"),
        ("seconds+1%", {"seconds": 1.02e-3}, "2.0 % more: the limit is seconds+1%"),
        ("memory+1GiB", {"memory": None}, "memory: one of the two programs has no figure for it"),
    ],
)  # fmt: skip
def test_limits(limits, fields, message):
    found = broken_limits(parse_limits(limits), changed(GATHER, REDUCE, **fields))
    assert [message in each.message for each in found] == [True] * bool(message)


def test_a_loop_of_unknown_length_breaks_a_limit_of_bytes():
    limits = parse_limits("bytes+900%")
    (broken,) = broken_limits(limits, changed(replace(GATHER, runs=None, in_loop=True), REDUCE))
    assert broken.message == "bytes: all-gather over data is in a loop of unknown length"
    new = replace(GATHER, op="all-to-all", axes=(), runs=None, in_loop=True)
    (broken,) = broken_limits(limits, changed(GATHER, REDUCE, new))
    assert broken.message == "bytes: all-to-all is in a loop of unknown length"


def test_a_loop_of_unknown_length_that_stays_as_it_was_breaks_none():
    before = replace(BEFORE, lines=(GATHER, replace(REDUCE, runs=None, in_loop=True)))
    after = replace(before, lines=(replace(GATHER, runs=1, overlapped=1), *before.lines[1:]))
    assert broken_limits(parse_limits("bytes+0%"), report_changes(before, after)) == ()


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
        ("new-collective+1", "new-collective takes no amount"),
        ("bytes+5parsecs", "'parsecs' is not a unit of bytes"),
        ("bytes+5%,sconds+1%", "there is no limit 'sconds' at character 10"),
        ("bytes-5%", "there is no limit"),
    ],
)
def test_limits_that_cannot_be_read(text, message):
    with pytest.raises(NotationError) as caught:
        parse_limits(text)
    assert message in str(caught.value)


def test_an_argument_and_an_output_of_one_path_are_two_arrays():
    argument = ArrayLine("argument", "result", "f32[64,64]", "P('X', None)")
    output = ArrayLine("output", "result", "f32[64,64]", "P(None, 'Y')")
    own = replace(BEFORE, arrays=(argument, output))
    assert not report_changes(own, own).arrays
    whole = replace(argument, spec="P(None, None)")
    assert report_changes(own, replace(own, arrays=(whole, output))).arrays == ((argument, whole),)
    twice = replace(own, arrays=(argument, whole))
    assert not report_changes(twice, replace(own, arrays=(whole, argument))).arrays
