"""What stands around the picture of a round."""

from __future__ import annotations

import pytest

from shardviz.hardware.timelines import CumulativeCost
from shardviz.render.palette import PLAIN
from shardviz.render.rounds.player_lines import (
    Account,
    flowed,
    progress_line,
    state_line,
    title_line,
    words_line,
)


@pytest.fixture
def walk(walk_of):
    return walk_of("psum", "i=4", range(16), shard=(4,))


def test_phases_are_marked_on_the_bar(walk):
    assert progress_line(walk, 2, 38).plain == "round 2 of 6  ━━━━━━━━────┼───────────"
    assert progress_line(walk, 6, 38).plain == "round 6 of 6  ━━━━━━━━━━━━┼━━━━━━━━━━━"
    assert progress_line(walk, 2, 38, "4/s").plain.endswith("──  4/s")


def test_words_name_the_phases_then_the_round(walk):
    assert words_line(walk, 0, 80).plain == "reduce-scatter → all-gather"
    assert words_line(walk, 4, 80).plain == "all-gather  each sends 1 chunk to the next, 4 B"
    assert words_line(walk, 4, 20).plain == "all-gather  each se…"


def test_before_after_and_the_final_result(walk):
    before = state_line(walk, walk, 0, 80)
    after = state_line(walk, walk, 6, 80)
    assert before is not None
    assert before.plain == "BEFORE  each device has its own addend, 4"
    assert state_line(walk, walk, 3, 80) is None
    assert after is not None
    assert after.plain == "AFTER  s32[4] a device   FINAL RESULT  s32[4] P()"


def test_the_account_runs_and_never_moves(walk):
    account = Account(walk, CumulativeCost(walk.timeline))
    lines = [[line.plain for line in account.lines(number, 100)] for number in range(7)]
    assert lines[3] == [
        "sent     12 B of 24 B a device, least 24 B   time     3 µs of 6 µs at 45 GB/s a link",
        "ring of 4 assumed   6 rounds, least 2",
    ]
    assert len({tuple(map(len, each)) for each in lines}) == 1
    assert lines[6][0].startswith("sent     24 B of 24 B")
    placed = Account(walk, CumulativeCost(walk.timeline), "v5e:2x4")
    assert placed.lines(3, 100)[1].plain.startswith("ring of 4 on v5e:2x4")
    assert account.lines(3, 40)[0].plain == "sent     12 B of 24 B, least 24 B"


def test_without_sums_the_least_is_told(walk):
    (line,) = Account(walk, None).lines(3, 80)
    assert line.plain == "too many rounds to add up   least 24 B, 2 rounds"


def test_the_title_says_as_much_as_fits(walk, walk_of):
    whole = title_line(walk, 80, PLAIN, "step 2  ").plain
    assert whole == "step 2  psum over i   by ring   A[d0_i]   s32[16], 4 a device"
    assert title_line(walk, 30, PLAIN).plain == "psum over i   by ring"
    # What `a` switches is always said.
    assert title_line(
        walk_of("psum", "i=4", range(16), "double-binary-tree", shard=(4,)), 30, PLAIN
    ).plain == ("psum over i   by double-binar…")
    assert title_line(walk, 8, PLAIN).plain == "psum ov…"


def test_parts_flow_over_lines(walk):
    parts = [walk.mesh.axis_names[0] * count for count in (4, 5, 6)]
    from rich.text import Text

    assert [line.plain for line in flowed([Text(part) for part in parts], 12)] == ["iiii   iiiii", "iiiiii"]
