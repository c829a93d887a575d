"""A recording for asciinema: a collective round by round, a plan step by step, a problem part by part. The
format is asciicast v2 (https://docs.asciinema.org/manual/asciicast/v2/): a JSON object with the size of the
terminal, then a JSON list for each output, ``[seconds since the start, "o", characters]``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from rich.text import Text

from shardviz.errors import QuestionError
from shardviz.forms.form import one_line
from shardviz.render.exports import Subject
from shardviz.render.exports.sections import WIDTH, film, sections
from shardviz.render.page import recorder
from shardviz.render.palette import TRUECOLOR

HEIGHT = 30
LEAST = (40, 15)
"""Columns and lines of the smallest terminal that is recorded."""
READING_S = 4.0
"""Seconds that a step of a plan or a part of a problem stays; a round stays one."""
END_S = 3.0
"""Seconds that the last frame stays, before a player begins again."""
BEGIN = "\x1b[?25l\x1b[?7l\x1b[2J"
"""No cursor, no wrapping, nothing on screen."""
HOME = "\x1b[H"
CLEAR_REST_OF_LINE = "\x1b[K"
CLEAR_REST = "\x1b[J"
LEAVE = "\x1b[?7h\x1b[?25h"


def cast(subject: Subject, width: int = WIDTH, height: int = HEIGHT, speed: float = 1.0) -> str:
    """One recording of a terminal of `width` columns and `height` lines; `speed` is in rounds a second.

    Every frame is written over the one before it, so nothing flickers. The same subject gives the same
    recording: it has no date. Raises `QuestionError` for a terminal that is too small, for too many rounds,
    and for a speed that is none.
    """
    if width < LEAST[0] or height < LEAST[1]:
        raise QuestionError(
            f"a terminal of {width}x{height} is too small to record",
            f"take at least {LEAST[0]} columns and {LEAST[1]} lines",
        )
    if not 0 < speed < float("inf"):
        raise QuestionError(f"{speed:g} rounds a second is not a speed", "take a number above 0, such as 2")
    header = {
        "version": 2,
        "width": width,
        "height": height,
        "title": one_line(subject.title),
        "env": {"TERM": "xterm-256color"},
    }
    if subject.run is not None:
        frames, stay = film(subject.run, width, height, TRUECOLOR), 1 / speed
    else:
        parts = [part.lines for part in sections(subject, width, TRUECOLOR)]
        frames, stay = [*_screens(parts, height)], READING_S / speed
    events: list[tuple[float, str]] = [(0.0, BEGIN)]
    events += [(stay * number, _drawn(lines, width)) for number, lines in enumerate(frames)]
    events.append((stay * (len(frames) - 1) + max(stay, END_S), LEAVE))
    lines = [json.dumps(header, ensure_ascii=False)]
    lines += [json.dumps([round(time, 3), "o", text], ensure_ascii=False) for time, text in events]
    return "\n".join(lines) + "\n"


def _screens(parts: Iterable[Sequence[Text]], height: int) -> Iterator[list[Text]]:
    """Parts one after another, each below those before it as long as the screen has room for it."""
    screen: list[Text] = []
    for part in parts:
        for place, piece in enumerate(_pieces(part, height)):
            fits = screen and not place and len(screen) + 1 + len(piece) <= height
            screen = [*screen, Text(), *piece] if fits else [*piece]
            yield screen


def _pieces(part: Sequence[Text], height: int) -> Iterator[Sequence[Text]]:
    """A part in pieces of at most `height` lines, broken at blank lines where it has them."""
    while len(part) > height:
        blank = next((place for place in range(height, 0, -1) if not part[place].plain.strip()), None)
        yield part[: blank or height]
        part = part[height if blank is None else blank + 1 :]
    if part:
        yield part


def _drawn(lines: Sequence[Text], width: int) -> str:
    console = recorder(width)
    with console.capture() as captured:
        console.print(Text("\n").join(lines), soft_wrap=True, end="")
    body = captured.get().replace("\n", f"{CLEAR_REST_OF_LINE}\r\n")
    return f"{HOME}{body}{CLEAR_REST_OF_LINE}{CLEAR_REST}"
