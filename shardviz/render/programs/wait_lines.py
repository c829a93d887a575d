"""Targets that have not answered yet, in a line each."""

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
    """Who is at what, and for how long: ``⠹ cpu  compiling  1.2 s``."""
    rows = []
    for wait in waits:
        sign = "·" if wait.seconds is None else spinner(wait.seconds, moving)
        time = "" if wait.seconds is None else f"{wait.seconds:.1f} s"
        rows.append(
            [Text.assemble(f"{sign} ", (wait.target, "bold")), Text(wait.stage, "dim"), Text(time, "dim")]
        )
    return table(rows, width, right=frozenset({2}))
