"""A problem, a plan, a layout or the rounds of a collective as one picture, rounds under one another."""

from __future__ import annotations

from zlib import crc32

from rich.text import Text

from shardviz.drafts.form import one_line
from shardviz.errors import QuestionError
from shardviz.render.exports.sections import sections
from shardviz.render.exports.subject import Subject
from shardviz.render.palette import TRUECOLOR
from shardviz.render.svg import recorder
from shardviz.render.svg import svg as recorded_svg

WIDTH = 100
"""Columns of a page, unless another width is asked for."""
MAX_LINES = 4000
"""Lines of a picture that viewers still show."""


def svg(subject: Subject, width: int = WIDTH) -> str:
    """One SVG file, of at most `width` columns, with nothing from anywhere else.

    Its title and its description tell the same as text. Raises `QuestionError` for what is too long.
    """
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
