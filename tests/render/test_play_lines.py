"""Frames for playing: every one as high as the next, and nothing moves that does not change."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shardviz.render.palette import PLAIN, TRUECOLOR
from shardviz.render.rounds.buffer_picture import common_shape
from shardviz.render.rounds.play_lines import Stage
from shardviz.stepping.collective_run import CollectiveRun

WalkOf = Callable[..., CollectiveRun]

PLAYED = [
    ("all_gather", "i=4", (3, 9, 5, 2), "ring"),
    ("psum", "X=2,Y=4", tuple(range(64)), "torus"),
    ("all_to_all", "i=5", tuple(range(25)), "bruck"),
    ("all_gather", "i=64", 64, "ring"),
]


@pytest.mark.parametrize("question", PLAYED, ids=[" ".join(map(str, each[:2])) for each in PLAYED])
@pytest.mark.parametrize(("width", "height"), [(40, 15), (80, 24), (120, 36), (200, 60), (40, 3)])
def test_every_frame_fits_the_screen(
    walk_of: WalkOf, question: tuple[object, ...], width: int, height: int
) -> None:
    walk = walk_of(*question)
    for palette in (PLAIN, TRUECOLOR):
        stage = Stage(walk, width, height, palette)
        for number in range(len(walk.frames)):
            lines = stage.lines(number)
            assert len(lines) == height
            assert max(line.cell_len for line in lines) <= width


def test_devices_stay_where_they_are(walk_of: WalkOf, tutorial: tuple[int, ...]) -> None:
    walk = walk_of("psum", "i=4", tutorial)
    frames = [
        [line.plain for line in Stage(walk, 80, 12, PLAIN).lines(number)]
        for number in range(len(walk.frames))
    ]
    assert {tuple(frame[:1]) for frame in frames} == {tuple(frames[0][:1])}
    assert {frame[5] for frame in frames} == {frames[0][5]}
    assert [[line[:5] for line in frame[6:10]] for frame in frames] == [
        ["0  i0", "1  i1", "2  i2", "3  i3"] for _ in frames
    ]


def test_what_is_said_over_a_frame(walk_of: WalkOf, tutorial: tuple[int, ...]) -> None:
    walk = walk_of("psum", "i=4", tutorial)
    first, third, last = (
        [line.plain for line in Stage(walk, 80, 12, PLAIN).lines(number)] for number in (0, 3, 6)
    )
    assert first[2].startswith("round 0 of 6  ─")
    assert first[3] == "before"
    assert third[2] == f"round 3 of 6  {'━' * 20}{'─' * 20}"
    assert third[3] == "reduce-scatter  each sends 1 chunk to the next, 4 B"
    assert "▸5+5+9+3=22" in third[6]
    assert last[2].endswith("━" * 40)
    assert last[3].startswith("all-gather")


def test_one_device_has_one_frame(walk_of: WalkOf) -> None:
    lines = Stage(walk_of("psum", "i=1", (1, 2)), 80, 10, PLAIN).lines(0)
    assert lines[2].plain == f"round 0 of 0  {'━' * 40}"


def test_marks_are_explained_and_how_it_is_stopped(walk_of: WalkOf, tutorial: tuple[int, ...]) -> None:
    walk = walk_of("psum", "i=4", tutorial)
    for number in range(len(walk.frames)):
        lines = [line.plain for line in Stage(walk, 100, 16, PLAIN).lines(number)]
        assert lines[-1].startswith("▸ has just arrived   ╱ partial sum   ( ) no longer needed   ")
        assert lines[-1].endswith("any key stops")
    assert Stage(walk, 40, 12, PLAIN).lines(1)[-1].plain.endswith("any key stops")


def test_what_is_cut_off_is_marked(walk_of: WalkOf, tutorial: tuple[int, ...]) -> None:
    said = Stage(walk_of("psum", "i=4", tutorial), 40, 12, PLAIN).lines(1)[4].plain
    assert said == "reduce-scatter  each sends 1 chunk to t…"


def test_frames_are_compared_once_for_each_size(walk_of: WalkOf, monkeypatch: pytest.MonkeyPatch) -> None:
    import shardviz.render.rounds.play_lines as module

    calls = []
    monkeypatch.setattr(module, "common_shape", lambda drawn: calls.append(1) or common_shape(drawn))
    walk = walk_of("psum", "i=4", tuple(range(16)))
    stages = {size: Stage(walk, size, 20, PLAIN) for size in (80, 100)}
    for size in (80, 80, 100):
        for number in range(len(walk.frames)):
            stages[size].lines(number)
    assert len(calls) == 2
