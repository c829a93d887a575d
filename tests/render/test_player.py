"""Pages of a collective that is played, line by line."""

from __future__ import annotations

import pytest

from shardviz.hardware import timelines
from shardviz.render.palette import PLAIN
from shardviz.render.rounds.player import (
    cost_summary,
    flowed,
    progress_line,
    state_line,
    title_line,
    words_line,
)


@pytest.fixture
def run(run_of):
    return run_of("psum", "i=4", range(16), shard=(4,))


def test_phases_are_marked_on_the_bar(run):
    assert progress_line(run, 2, 38).plain == "round 2 of 6  ━━━━━━━━────┼───────────"
    assert progress_line(run, 6, 38).plain == "round 6 of 6  ━━━━━━━━━━━━┼━━━━━━━━━━━"
    assert progress_line(run, 2, 38, "4/s").plain.endswith("──  4/s")


def test_words_name_the_phases_then_the_round(run):
    assert words_line(run, 0, 80).plain == "reduce-scatter → all-gather"
    assert words_line(run, 4, 80).plain == "all-gather  each sends 1 chunk to the next, 4 B"
    assert words_line(run, 4, 20).plain == "all-gather  each se…"


def test_before_after_and_the_final_result(run):
    before = state_line(run, run, 0, 80)
    after = state_line(run, run, 6, 80)
    assert before is not None
    assert before.plain == "BEFORE  each device has one addend, 4"
    assert state_line(run, run, 3, 80) is None
    assert after is not None
    assert after.plain == "AFTER  s32[4] per device   FINAL RESULT  s32[4] P()"


def test_the_account_runs_and_never_moves(run):
    lines = [[line.plain for line in cost_summary(run, "", number, 100)] for number in range(7)]
    assert lines[3] == [
        "sent     12 B of 24 B per device, optimal   time     3 µs of 6 µs",
        "ring of 4 as given, 45 GB/s per link   4 µs by formula   min 2 rounds",
    ]
    assert len({tuple(map(len, each)) for each in lines}) == 1
    assert lines[6][0].startswith("sent     24 B of 24 B")
    assert cost_summary(run, "v5e:2x4", 3, 100)[1].plain.startswith("ring of 4 on v5e:2x4, 45 GB/s per link")
    assert cost_summary(run, "", 3, 40)[0].plain == "sent     12 B of 24 B, optimal"


def test_without_sums_the_least_is_told(run_of, monkeypatch):
    monkeypatch.setattr(timelines, "MAX_NUMBERS", 0)
    (line,) = cost_summary(run_of("psum", "i=4", range(16), shard=(4,)), "", 3, 80)
    assert line.plain == "too many rounds to sum   min 24 B, 2 rounds"


def test_the_title_says_as_much_as_fits(run, run_of):
    whole = title_line(run, 80, PLAIN, "step 2  ").plain
    assert whole == "step 2  psum over i   by ring   A[d0_i]   s32[16], 4 per device"
    assert title_line(run, 30, PLAIN).plain == "psum over i   by ring"
    # What `a` switches is always said.
    assert title_line(
        run_of("psum", "i=4", range(16), "double-binary-tree", shard=(4,)), 30, PLAIN
    ).plain == ("psum over i   by double-binar…")
    assert title_line(run, 8, PLAIN).plain == "psum ov…"


def test_parts_flow_over_lines(run):
    parts = [run.mesh.axis_names[0] * count for count in (4, 5, 6)]
    from rich.text import Text

    assert [line.plain for line in flowed([Text(part) for part in parts], 12)] == ["iiii   iiiii", "iiiiii"]


def test_what_is_cut_off_is_marked(run):
    assert words_line(run, 1, 40).plain == "reduce-scatter  each sends 1 chunk to t…"
    assert words_line(run, 0, 40).plain == "reduce-scatter → all-gather"
    assert words_line(run, 6, 80).plain.startswith("all-gather")


def test_one_device_has_one_frame(run_of):
    assert progress_line(run_of("psum", "i=1", (1, 2)), 0, 80).plain == f"round 0 of 0  {'━' * 60}"
