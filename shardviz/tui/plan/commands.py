"""The commands of the plan."""

from __future__ import annotations

from shardviz.tui.command import Command

PLAN: tuple[Command, ...] = (
    Command("plan", "next_step", ("down", "j"), "Next step", "The step after; below, scroll.", "step", "↑↓"),
    Command(
        "plan", "previous_step", ("up", "k"), "Previous step", "The step before; above, scroll.", "", "↑"
    ),
    Command("plan", "open_step", ("enter",), "Play", "Step through this collective, round by round.", "play"),
    Command("plan", "ask_now", ("r",), "Ask now", "Ask all targets now, also again.", "ask now"),
)
