"""Keys and what they do, in titled sections, in one column or two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from rich.text import Text

GAP = 3
TWO_COLUMNS = 96
"""Columns from which on the sections stand in two columns."""


@dataclass(frozen=True)
class Keys:
    """One section: `rows` are a key, the command's title, and a sentence about it."""

    title: str
    rows: tuple[tuple[str, str, str], ...]


def key_list(sections: Sequence[Keys], width: int) -> list[Text]:
    """The sections below one another, or, on a wide page, in two columns of about the same height."""
    if width < TWO_COLUMNS:
        return _joined([_section(section, width) for section in sections])
    column = (width - GAP) // 2
    drawn = [_section(section, column) for section in sections]
    cut = min(range(1, len(drawn) + 1), key=lambda number: _height(drawn, number))
    left, right = _joined(drawn[:cut]), _joined(drawn[cut:])
    lines = []
    for place in range(max(len(left), len(right))):
        line = left[place].copy() if place < len(left) else Text()
        if place < len(right):
            line.append(" " * (column + GAP - line.cell_len)).append_text(right[place])
        lines.append(line)
    return lines


def _height(drawn: Sequence[Sequence[Text]], cut: int) -> int:
    """The height of the page with the first `cut` sections in the left column."""
    return max(sum(len(each) + 1 for each in part) for part in (drawn[:cut], drawn[cut:]))


def _joined(drawn: Sequence[Sequence[Text]]) -> list[Text]:
    lines: list[Text] = []
    for section in drawn:
        lines += [Text(), *section] if lines else section
    return lines


def _section(section: Keys, width: int) -> list[Text]:
    keys = max((len(key) for key, _, _ in section.rows), default=0)
    titles = max((len(title) for _, title, _ in section.rows), default=0)
    lines = [Text.assemble((section.title, "bold"))]
    indent = keys + titles + 4
    room = width - indent
    for key, title, help in section.rows:
        line = Text.assemble(" " * (keys - len(key)), (f"{key}  ", "bold"), title)
        if room < 20:
            lines.append(line)
            lines += [Text.assemble(" " * (keys + 2), (part, "dim")) for part in wrap(help, width - keys - 2)]
            continue
        first, *rest = wrap(help, room) or [""]
        line.append(" " * (indent - line.cell_len)).append(first, "dim")
        lines.append(line)
        lines += [Text.assemble(" " * indent, (part, "dim")) for part in rest]
    return lines
