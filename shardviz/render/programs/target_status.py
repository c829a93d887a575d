"""The targets: which there are and how to install them, and the state of those that were asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from shardviz.render.lines import GAP, GLUE, Cell, sentence, table
from shardviz.render.machine_view import figures_table
from shardviz.render.palette import SIGNS
from shardviz.targets.hardware import TargetGroup

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
    rows: list[list[Cell]] = []
    for wait in waits:
        sign = "·" if wait.seconds is None else spinner(wait.seconds, moving)
        time = "" if wait.seconds is None else f"{wait.seconds:.1f} s"
        rows.append([Text.assemble(f"{sign} ", (wait.target, "bold")), (wait.stage, "dim"), (time, "dim")])
    return table(rows, width, right={2})


CHOSEN = "❯"


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
    """The target at a column of the strip; empty where there is none."""
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
    text.append(" ").append(tab.sign, SIGNS.get(tab.sign, "" if is_chosen else "dim"))
    if with_words and tab.words:
        text.append(f" {tab.words}", "dim")
    return text


def info_view(versions: Sequence[tuple[str, str]], warning: str, width: int) -> list[Text]:
    """`versions` are (name, version); `warning` says what is wrong with them, or is empty."""
    cure = "pip install -U 'shardviz[tpu]' installs the version that it needs."
    warned = [Text(), *sentence(f"{warning}. {cure}", width, style="bold")] if warning else []
    elsewhere = "shardviz targets lists the targets, and how to install those that are missing."
    return [*table(versions, width), *warned, Text(), *sentence(elsewhere, width, style="dim")]


def targets_view(groups: Sequence[TargetGroup], width: int) -> list[Text]:
    """A heading for every group, its targets as a table, and the names that it takes."""
    lines: list[Text] = []
    for group in groups:
        lines += [Text()] * bool(lines) + _heading(group, width)
        lines += table([[each.name, each.what] for each in group.choices], width, 2)
        lines += sentence(group.takes, width, 2, style="dim")
        if machines := [each.machine for each in group.choices if each.machine is not None]:
            lines += [Text(), *figures_table(machines, width)]
    return lines


def _heading(group: TargetGroup, width: int) -> list[Text]:
    if not group.missing:
        versions = ", ".join(f"{name} {version}" for name, version in group.versions)
        return sentence(f"ready  {versions}".rstrip(), width, 0, f"{group.title}  ")
    command = f": {group.command.replace(' ', GLUE)}" if group.command else ""
    return sentence(f"{group.missing}{command}", width, 0, f"{group.title}  ")
