"""The pictures in screenshots/ are what the application shows."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

FOLDER = Path(__file__).parents[2] / "screenshots"
sys.path.insert(0, str(FOLDER))
screens, recording = pytest.importorskip("screens"), pytest.importorskip("recording")

SVG = "{http://www.w3.org/2000/svg}"
TEXT = f"{SVG}text"
LAYOUT_LINES = 16
"""Of the recording, from the top."""
TIME = re.compile(r"\d[\d.,]*\s?(?:µs|ms|s)\b")
VERSION = re.compile(r"\b\d+\.\d+\.\d+(?:\.\d+)?\b")


def lines_of(svg: str) -> list[str]:
    """The text of a picture, row by row: times and versions are those of one machine, and left out."""
    rows: dict[float, list[tuple[float, str]]] = {}
    for element in ElementTree.fromstring(svg).iter(TEXT):
        row = rows.setdefault(float(element.get("y", 0)), [])
        row.append((float(element.get("x", 0)), (element.text or "").replace("\xa0", " ")))
    lines = [" ".join(text for _, text in sorted(row)) for _, row in sorted(rows.items())]
    return [" ".join(VERSION.sub("…", TIME.sub("…", line)).split()) for line in lines]


DRAWN = [name for name in screens.SCREENS if name != "dashboard"]
"""Of the dashboard the compiler's part alone would be new here, and that takes half a minute."""


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_is_what_the_application_shows(name, worker):
    kept = lines_of((FOLDER / f"{name}.svg").read_text(encoding="utf-8"))
    drawn = lines_of(screens.draw(name, worker))
    assert len(kept) > 10
    if screens.SCREENS[name].from_compiler:
        # Other releases of the compilers write other programs; headline, tabs and keys stay.
        kept, drawn = [*kept[:2], kept[-1]], [*drawn[:2], drawn[-1]]
    assert drawn == kept


def words_of(text: str) -> str:
    return "".join(char for char in text if not char.isspace() and char not in recording.BARS)


def test_the_recording_is_what_the_application_shows(worker):
    film = ElementTree.parse(FOLDER / "tour.svg").getroot()
    lines = {
        each.get("id"): words_of("".join(each.itertext())) for each in film.iterfind(f".//{SVG}defs/{SVG}g")
    }
    first = recording.ACTS[0]
    frames = film.iterfind(f".//{SVG}g[@id='film']/{SVG}g")
    opened = next(frame for frame in frames if frame.findtext(TEXT) == first.caption)
    kept = {
        int(use.get("y")) // recording.PITCH: lines[use.get("href")[1:]] for use in opened.iter(f"{SVG}use")
    }
    drawn = recording.record(worker, [first], awaited=())[-1].lines
    # Below are the plan and the times, which tell of the compilers as well.
    for row in (*range(LAYOUT_LINES), recording.HEIGHT - 1):
        assert words_of("".join(segment.text for segment in drawn[row])) == kept.get(row, "")


def test_the_recording_takes_forty_seconds():
    head, *events = map(json.loads, (FOLDER / "tour.cast").read_text(encoding="utf-8").splitlines())
    assert (head["version"], head["width"], head["height"]) == (2, recording.WIDTH, recording.HEIGHT)
    times = [time for time, *_ in events]
    assert times == sorted(times)
    assert 35 < times[-1] < 45
    assert [words for _, kind, words in events if kind == "m"] == [
        f"{act.label}  {act.caption}".strip() for act in recording.ACTS
    ]
    assert (FOLDER / "tour.cast").stat().st_size < 400_000
    assert (FOLDER / "tour.svg").stat().st_size < 1_000_000
