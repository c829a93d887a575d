"""A subject as one SVG picture, as a console records it, which loads no font or style from anywhere else, or
as a recording for asciinema, a collective round by round, a plan step by step, a problem part by part.

The recording is asciicast v2 (https://docs.asciinema.org/manual/asciicast/v2/): a JSON object with the size
of the terminal, then a JSON list for each output, ``[seconds since the start, "o", characters]``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from zlib import crc32

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from shardviz.errors import QuestionError
from shardviz.forms.form import one_line
from shardviz.render.exports import Subject
from shardviz.render.exports.sections import WIDTH, film, sections
from shardviz.render.page import recorder
from shardviz.render.palette import TRUECOLOR

MAX_LINES = 4000
"""Lines of a picture that viewers still show."""


def svg(subject: Subject, width: int = WIDTH) -> str:
    """One SVG file, of at most `width` columns, with nothing from anywhere else. Its title and its
    description tell the same as text. Raises `QuestionError` for what is too long."""
    lines: list[Text] = []
    for section in sections(subject, width, TRUECOLOR):
        lines += [*[Text()] * bool(lines), *section.lines]
    if len(lines) > MAX_LINES:
        raise QuestionError(
            f"the picture would have {len(lines):,} lines, and viewers show up to {MAX_LINES:,}",
            "take a smaller mesh, or write it as html or cast",
        )
    words = "\n".join(one_line(line.plain) for line in lines)
    console = recorder(max(line.cell_len for line in lines) + 1)
    console.print(Text("\n").join(lines), soft_wrap=True)
    return recorded_svg(console, f"{crc32(words.encode()):08x}", one_line(subject.title), words)


ASPECT = 0.602
"""Width of a character over its height in DejaVu Sans Mono; others are within a hundredth of it."""

THEME = TerminalTheme(
    (17, 18, 26),
    (214, 218, 232),
    [
        (54, 58, 79),
        (237, 135, 150),
        (166, 218, 149),
        (238, 212, 159),
        (138, 173, 244),
        (198, 160, 246),
        (139, 213, 202),
        (184, 192, 224),
    ],
)
"""Colours for what has none of its own: background, foreground, and the eight of a terminal."""

_PAGE = """\
<svg class="{unique_id}" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg"%s
<style>
.{unique_id}-matrix {{
    font-family: "Fira Code", "JetBrains Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace;
    font-size: {char_height}px;
    line-height: {line_height}px;
}}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix" xml:space="preserve">
{matrix}
</g>
</g>
</svg>
"""
"""Rich's own page without the fonts that it loads from elsewhere."""


def recorded_svg(console: Console, name: str, title: str = "", words: str = "") -> str:
    """The SVG of what a `recorder` has printed; `name` sets its styles apart from other pictures'. `title`
    and `words` are read out to those who do not see it: its name and all of its text."""
    return console.export_svg(
        title="",
        theme=THEME,
        code_format=_PAGE % _described(title, words, f"shardviz-{name}"),
        font_aspect_ratio=ASPECT,
        unique_id=f"shardviz-{name}",
    )


def _described(title: str, words: str, name: str) -> str:
    """The end of the first tag with a title and a description after it; nothing without a title."""
    if not title:
        return ">"
    parts = {"title": title, "desc": words}
    told = "\n".join(f'<{part} id="{name}-{part}">{escape(text)}</{part}>' for part, text in parts.items())
    labels = " ".join(f"{name}-{part}" for part in parts)
    return f' role="img" aria-labelledby="{labels}">\n{told}'.replace("{", "{{").replace("}", "}}")


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
