"""What is said of an answer on its way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.render.programs.target_status import TargetTab, spinner
from shardviz.render.units import seconds
from shardviz.tui.target_answers import wait_of

if TYPE_CHECKING:
    from shardviz.tui.target_answers import ShownAnswer, ShownPasses

TURNS_S = 0.1
"""How long the sign of something under way stands still."""


def tab(answer: ShownAnswer, moving: bool) -> TargetTab:
    """A target with its state, for the strip."""
    name, compiled = answer.target.name, answer.compiled
    if compiled is not None:
        if compiled.status != "ok":
            return TargetTab(name, "✗")
        return TargetTab(name, "✓", seconds(compiled.elapsed_s) if compiled.elapsed_s else "")
    wait = wait_of(answer)
    if wait.seconds is not None:
        return TargetTab(name, spinner(wait.seconds, moving), f"{wait.seconds:.1f} s")
    return TargetTab(name, "·", "cancelled" if answer.state == "cancelled" else "waits")


def state_words(answer: ShownAnswer | ShownPasses) -> str:
    """``compiling, 3.2 s``, ``cancelled; r asks again``; empty where the answer is there."""
    if answer.state in ("answered", "failed"):
        return ""
    wait = wait_of(answer)
    return wait.stage if wait.seconds is None else f"{wait.stage}, {wait.seconds:.1f} s"
