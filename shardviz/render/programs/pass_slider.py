"""The way through a compiler on one line: a dot a stage, and the program at the end."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.text import Text

PAST, NOW, AHEAD = "●", "◉", "○"
PROGRAM = "program"
REWRITE, SEVERAL = "rewrite", "rewrites"


def pass_slider(kinds: Sequence[str], position: int, width: int) -> Text:
    """The stages' kinds, stages of one kind together; `position` is that of a stage, or that of the program.

    Where the words do not fit, the dots alone, where these do not, the position as a number.
    """
    ways = [*kinds, PROGRAM]
    for line in (_worded(ways, position), _dots(ways, position)):
        if line.cell_len <= width:
            return line
    return _numbered(ways, position)


def _worded(ways: Sequence[str], position: int) -> Text:
    text = Text()
    start = 0
    for kind, run in groupby(ways):
        count = len([*run])
        here = start <= position < start + count
        text.append("  " if start else "")
        for number in range(start, start + count):
            text.append_text(_dot(number, position))
        text.append(f" {SEVERAL if count > 1 and kind == REWRITE else kind}", "bold" if here else "dim")
        start += count
    return text


def _dots(ways: Sequence[str], position: int) -> Text:
    dots = Text(" ").join(_dot(number, position) for number in range(len(ways)))
    return _numbered(ways, position).append("  ").append_text(dots)


def _numbered(ways: Sequence[str], position: int) -> Text:
    return Text.assemble((f"{position + 1}/{len(ways)} ", "dim"), (ways[position], "bold"))


def _dot(number: int, position: int) -> Text:
    if number == position:
        return Text(NOW, "bold")
    return Text(PAST) if number < position else Text(AHEAD, "dim")
