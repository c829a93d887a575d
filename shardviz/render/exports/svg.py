"""A subject as one SVG picture, as a console records it, which loads no font or style from anywhere else."""

from __future__ import annotations

from html import escape
from zlib import crc32

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from shardviz.errors import QuestionError
from shardviz.forms.form import one_line
from shardviz.render.exports import Subject, template
from shardviz.render.exports.sections import WIDTH, sections
from shardviz.render.page import recorder
from shardviz.render.palette import TRUECOLOR

MAX_LINES = 4000
"""Lines of a picture that viewers still show."""


def svg(subject: Subject, width: int = WIDTH) -> str:
    """One SVG file of at most `width` columns, described by its text. `QuestionError` if it is too long."""
    lines: list[Text] = []
    for section in sections(subject, width, TRUECOLOR):
        lines += [*[Text()] * bool(lines), *section.lines, *section.more]
    if len(lines) > MAX_LINES:
        problem = f"the picture would have {len(lines):,} lines; viewers show up to {MAX_LINES:,}"
        raise QuestionError(problem, "use a smaller mesh, or export html")
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


def recorded_svg(console: Console, name: str, title: str = "", words: str = "") -> str:
    """The SVG of a `recorder`'s output, its styles set apart by `name`; `title` and `words` describe it."""
    parts = {"title": title, "desc": words}
    told = "\n".join(
        f'<{part} id="shardviz-{name}-{part}">{escape(text)}</{part}>' for part, text in parts.items()
    )
    labels = f' role="img" aria-labelledby="shardviz-{name}-title shardviz-{name}-desc"'
    begin = f"{labels}>\n{told}".replace("{", "{{").replace("}", "}}") if title else ">"
    return console.export_svg(
        title="",
        theme=THEME,
        code_format=template("picture.svg") % begin,
        font_aspect_ratio=ASPECT,
        unique_id=f"shardviz-{name}",
    )
