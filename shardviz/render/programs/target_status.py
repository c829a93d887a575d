"""The state of the targets: on one line, and in a line each for those that have not answered yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from shardviz.render.lines import table

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
"""Takes a turn ten times a second."""
STILL = "…"
"""In its place where nothing may move."""


@dataclass(frozen=True)
class Wait:
    """A target that has not answered: asked `seconds` ago, and at `stage`; or, without seconds, not asked,
    and `stage` says why."""

    target: str
    stage: str
    seconds: float | None = None


def spinner(seconds: float, moving: bool) -> str:
    """The sign of something that has been under way for so long."""
    return SPINNER[int(seconds * 10) % len(SPINNER)] if moving else STILL


def wait_lines(waits: Sequence[Wait], width: int, moving: bool) -> list[Text]:
    """Each target, its stage and its seconds: ``⠹ cpu  compiling  1.2 s``."""
    rows = []
    for wait in waits:
        sign = "·" if wait.seconds is None else spinner(wait.seconds, moving)
        time = "" if wait.seconds is None else f"{wait.seconds:.1f} s"
        rows.append(
            [Text.assemble(f"{sign} ", (wait.target, "bold")), Text(wait.stage, "dim"), Text(time, "dim")]
        )
    return table(rows, width, right=frozenset({2}))


CHOSEN = "❯"
GAP = 2


@dataclass(frozen=True)
class TargetTab:
    """A target on the strip: its `sign` ("✓", "✗", "·" or one that turns), and `words` of its state."""

    name: str
    sign: str
    words: str = ""


def target_strip(tabs: Sequence[TargetTab], chosen: int, width: int) -> Text:
    """All targets, with as many words as fit; where the names do not, the chosen one and its number."""
    for worded in (range(len(tabs)), (chosen,), ()):
        text = Text()
        for number, tab in enumerate(tabs):
            text.append(" " * (GAP if number else 0))
            text.append_text(_tab(tab, number == chosen, number in worded))
        if text.cell_len <= width:
            return text
    text = Text.assemble((f"{chosen + 1}/{len(tabs)} ", "dim")).append_text(_tab(tabs[chosen], True, True))
    text.truncate(width, overflow="ellipsis")
    return text


def target_at(strip: str, names: Sequence[str], column: int) -> str:
    """The target that stands at a column of the strip; empty where none does."""
    found, place = "", 0
    for name in names:
        start = strip.find(f" {name} ", place)
        if start < 0:
            break
        if column > start:
            found = name
        place = start + len(name)
    return found


def _tab(tab: TargetTab, is_chosen: bool, with_words: bool) -> Text:
    text = Text.assemble((f"{CHOSEN} " if is_chosen else "  ", "bold"))
    text.append(tab.name, "bold" if is_chosen else "")
    text.append(f" {tab.sign}", "" if is_chosen else "dim")
    if with_words and tab.words:
        text.append(f" {tab.words}", "dim")
    return text
