"""Keys and what they do, in titled sections, in one column or two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
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
    ways = [(_joined(drawn[:cut]), _joined(drawn[cut:])) for cut in range(1, len(drawn) + 1)]
    left, right = min(ways, key=lambda way: max(map(len, way)))
    lines = []
    for one, other in zip_longest(left, right, fillvalue=Text()):
        line = Text.assemble(one, " " * (column + GAP - one.cell_len), other)
        line.rstrip()
        lines.append(line)
    return lines


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
