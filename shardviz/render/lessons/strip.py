"""What stands above the sandbox: the goal, what is still different, and a hint."""

from __future__ import annotations

from rich.text import Text

from shardviz.lessons.attempt import Attempt
from shardviz.render.lessons.guide_lines import RIGHT, WRONG, Inks
from shardviz.render.lines import sentence

MET = "The goal is met. n goes on."
MET_ONCE = "n goes on: the goal was met."
LEAST = 2
"""Lines that a difference has at least, if it needs them."""


def strip_lines(
    attempt: Attempt, difference: str | None, hint: int, is_asked: bool, width: int, most: int, inks: Inks
) -> list[Text]:
    """At most `most` lines of `width` columns: the goal, the hint that is looked at, and the difference.

    `difference` is the first one between the sandbox and the goal, None where there is none. `hint` is the
    number of a hint, from 1, or 0. Where not all of it fits, a hint that has just been asked for comes first,
    in a sandbox that stands as it was the goal, and after an edit the difference.
    """
    goal = sentence(attempt.lesson.goal.text, width, lead="Goal  ")
    count = len(attempt.lesson.hints)
    shown = sentence(attempt.lesson.hints[hint - 1], width, lead=f"Hint {hint} of {count}  ") if hint else []
    last = _standing(attempt, difference, width, inks)
    if len(goal) + len(shown) + len(last) <= most:
        return [*goal, *shown, *last]
    if is_asked:
        return [*_cut(shown, most, width), *_cut(last, most - len(shown), width)]
    if attempt.draft == attempt.lesson.setup:
        goal = _cut(goal, most - min(len(last), LEAST), width)
        return [*goal, *_cut(last, most - len(goal), width)]
    last = _cut(last, most - 1, width)
    return [*_cut(goal, most - len(last), width), *last]


def _standing(attempt: Attempt, difference: str | None, width: int, inks: Inks) -> list[Text]:
    """How far the sandbox is from the goal."""
    if difference is None:
        return sentence(MET, width, lead=f"{RIGHT} ", style=inks.right)
    lines = sentence(difference, width, lead=f"{WRONG} ")
    return [*lines, *sentence(MET_ONCE, width, style="dim")] if attempt.is_solved else lines


def _cut(lines: list[Text], most: int, width: int) -> list[Text]:
    """At most so many of the lines; the last says that there were more."""
    if len(lines) <= most:
        return lines
    if most <= 0:
        return []
    kept = [*lines[: most - 1], lines[most - 1].copy()]
    kept[-1].append(" …")
    kept[-1].truncate(width, overflow="ellipsis")
    return kept
