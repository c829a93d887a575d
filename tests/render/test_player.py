"""Pages of a collective that is played: their lines, and frames of one height in which nothing jumps."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shardviz.hardware import timelines
from shardviz.render.palette import PLAIN, TRUECOLOR
from shardviz.render.rounds.buffer_table import table_shape
from shardviz.render.rounds.player import (
    CostSummary,
    PlayedTable,
    flowed,
    progress_line,
    state_line,
    title_line,
    words_line,
)
from shardviz.stepping.collective_run import CollectiveRun


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
    assert before.plain == "BEFORE  each device has its own addend, 4"
    assert state_line(run, run, 3, 80) is None
    assert after is not None
    assert after.plain == "AFTER  s32[4] a device   FINAL RESULT  s32[4] P()"


def test_the_account_runs_and_never_moves(run):
    account = CostSummary(run)
    lines = [[line.plain for line in account.lines(number, 100)] for number in range(7)]
    assert lines[3] == [
        "sent     12 B of 24 B a device, least 24 B   time     3 µs of 6 µs at 45 GB/s a link",
        "4 µs by formula, bound by latency   ring of 4 as given   6 rounds, least 2",
    ]
    assert len({tuple(map(len, each)) for each in lines}) == 1
    assert lines[6][0].startswith("sent     24 B of 24 B")
    placed = CostSummary(run, "v5e:2x4")
    assert placed.lines(3, 100)[1].plain.endswith("ring of 4 on v5e:2x4   6 rounds, least 2")
    assert account.lines(3, 40)[0].plain == "sent     12 B of 24 B, least 24 B"


def test_without_sums_the_least_is_told(run_of, monkeypatch):
    monkeypatch.setattr(timelines, "MAX_NUMBERS", 0)
    (line,) = CostSummary(run_of("psum", "i=4", range(16), shard=(4,))).lines(3, 80)
    assert line.plain == "too many rounds to add up   least 24 B, 2 rounds"


def test_the_title_says_as_much_as_fits(run, run_of):
    whole = title_line(run, 80, PLAIN, "step 2  ").plain
    assert whole == "step 2  psum over i   by ring   A[d0_i]   s32[16], 4 a device"
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


RunOf = Callable[..., CollectiveRun]

PLAYED = [
    ("all_gather", "i=4", (3, 9, 5, 2), "ring"),
    ("psum", "X=2,Y=4", tuple(range(64)), "torus"),
    ("all_to_all", "i=5", tuple(range(25)), "bruck"),
    ("all_gather", "i=64", 64, "ring"),
]


@pytest.mark.parametrize("question", PLAYED, ids=[" ".join(map(str, each[:2])) for each in PLAYED])
@pytest.mark.parametrize(("width", "height"), [(40, 15), (80, 24), (120, 36), (200, 60), (40, 3)])
def test_every_frame_fits_the_screen(
    run_of: RunOf, question: tuple[object, ...], width: int, height: int
) -> None:
    run = run_of(*question)
    for palette in (PLAIN, TRUECOLOR):
        stage = PlayedTable(run, width, height, palette)
        for number in range(len(run.frames)):
            lines = stage.lines(number)
            assert len(lines) == height
            assert max(line.cell_len for line in lines) <= width


def test_devices_stay_where_they_are(run_of: RunOf, tutorial: tuple[int, ...]) -> None:
    run = run_of("psum", "i=4", tutorial)
    frames = [
        [line.plain for line in PlayedTable(run, 80, 12, PLAIN).lines(number)]
        for number in range(len(run.frames))
    ]
    assert {tuple(frame[:1]) for frame in frames} == {tuple(frames[0][:1])}
    assert {frame[5] for frame in frames} == {frames[0][5]}
    assert [[line[:5] for line in frame[6:10]] for frame in frames] == [
        ["0  i0", "1  i1", "2  i2", "3  i3"] for _ in frames
    ]


def test_what_is_said_over_a_frame(run_of: RunOf, tutorial: tuple[int, ...]) -> None:
    run = run_of("psum", "i=4", tutorial)
    first, third, last = (
        [line.plain for line in PlayedTable(run, 80, 12, PLAIN).lines(number)] for number in (0, 3, 6)
    )
    assert first[2].startswith("round 0 of 6  ─")
    assert first[3] == "reduce-scatter → all-gather"
    assert third[2] == f"round 3 of 6  {'━' * 30}┼{'─' * 29}"
    assert third[3] == "reduce-scatter  each sends 1 chunk to the next, 4 B"
    assert "▸5+5+9+3=22" in third[6]
    assert last[2].endswith("━" * 29)
    assert last[3].startswith("all-gather")


def test_one_device_has_one_frame(run_of: RunOf) -> None:
    lines = PlayedTable(run_of("psum", "i=1", (1, 2)), 80, 10, PLAIN).lines(0)
    assert lines[2].plain == f"round 0 of 0  {'━' * 60}"


def test_marks_are_explained_and_how_it_is_stopped(run_of: RunOf, tutorial: tuple[int, ...]) -> None:
    run = run_of("psum", "i=4", tutorial)
    for number in range(len(run.frames)):
        lines = [line.plain for line in PlayedTable(run, 100, 16, PLAIN).lines(number)]
        assert lines[-1].startswith("▸ has just arrived   ╱ partial sum   ( ) no longer needed   ")
        assert lines[-1].endswith("any key stops")
    assert PlayedTable(run, 40, 12, PLAIN).lines(1)[-1].plain.endswith("any key stops")


def test_what_is_cut_off_is_marked(run_of: RunOf, tutorial: tuple[int, ...]) -> None:
    said = PlayedTable(run_of("psum", "i=4", tutorial), 40, 12, PLAIN).lines(1)[4].plain
    assert said == "reduce-scatter  each sends 1 chunk to t…"


def test_frames_are_compared_once_for_each_size(run_of: RunOf, monkeypatch: pytest.MonkeyPatch) -> None:
    import shardviz.render.rounds.player as module

    calls = []
    monkeypatch.setattr(module, "table_shape", lambda *drawn: calls.append(1) or table_shape(*drawn))
    run = run_of("psum", "i=4", tuple(range(16)))
    stages = {size: PlayedTable(run, size, 20, PLAIN) for size in (80, 100)}
    for size in (80, 80, 100):
        for number in range(len(run.frames)):
            stages[size].lines(number)
    assert len(calls) == 2
