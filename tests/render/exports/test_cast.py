"""Recordings, replayed in a terminal that nobody sees."""

from __future__ import annotations

import json

import pytest

from shardviz.errors import QuestionError
from shardviz.render.exports.recorded import END_S, cast
from shardviz.render.exports.sections import film, sections
from shardviz.render.palette import TRUECOLOR

SIZES = ((40, 15), (100, 30))


def read(recording):
    """The header and the events of a recording."""
    header, *events = map(json.loads, recording.splitlines())
    assert all(kind == "o" for _, kind, _ in events)
    return header, [(time, text) for time, _, text in events]


def replayed(recording):
    """What a terminal shows after each event."""
    pyte = pytest.importorskip("pyte")
    header, events = read(recording)
    screen = pyte.Screen(header["width"], header["height"])
    stream = pyte.Stream(screen)
    seen = []
    for _, text in events:
        stream.feed(text)
        seen.append([line.rstrip() for line in screen.display])
    return seen


def as_screen(lines, height):
    return [*(line.plain.rstrip() for line in lines), *[""] * (height - len(lines))]


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_a_terminal_shows_the_players_frames_and_keeps_the_last(ring, width, height):
    seen = replayed(cast(ring, width, height))
    frames = [as_screen(frame, height) for frame in film(ring.shown, width, height, TRUECOLOR)]
    assert seen == [[""] * height, *frames, frames[-1]]


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("subject", ["problem", "plan", "layout"], indirect=True)
def test_all_of_it_is_seen_and_nothing_scrolls_away(subject, width, height):
    seen = {line for screen in replayed(cast(subject, width, height)) for line in screen}
    lines = {line.plain.rstrip() for part in sections(subject, width, TRUECOLOR) for line in part.lines}
    assert lines - seen == set()


def test_rounds_keep_time_and_the_last_frame_stays(ring):
    header, events = read(cast(ring, speed=2))
    assert [time for time, _ in events] == [0, 0, 0.5, 1, 1.5, 2, 2.5, 3, 3 + END_S]
    assert header == {
        "version": 2,
        "width": 100,
        "height": 30,
        "title": "psum over i",
        "env": {"TERM": "xterm-256color"},
    }
    # Drawn over the frame before, with no empty screen between.
    assert [text.count("\x1b[2J") for _, text in events] == [1, *[0] * 8]


def test_the_title_is_one_line_of_text(subject):
    header, _ = read(cast(subject))
    assert header["title"].isprintable()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"width": 39}, "a terminal of 39x30 is too small"),
        ({"height": 14}, "a terminal of 100x14 is too small"),
        ({"speed": 0}, "0 rounds a second is not a speed"),
        ({"speed": float("nan")}, "nan rounds a second"),
    ],
)
def test_what_cannot_be_recorded_is_said(ring, options, words):
    with pytest.raises(QuestionError, match=words):
        cast(ring, **options)
