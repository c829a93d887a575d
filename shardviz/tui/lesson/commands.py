"""The commands of a lesson."""

from __future__ import annotations

from shardviz.tui.command import Command


def _command(what: str, key: str, title: str, help: str, footer: str = "", shown: str = "") -> Command:
    return Command("lesson", f"lesson('{what}')", (key,), title, help, footer, shown)


LESSON: tuple[Command, ...] = (
    _command("answer", "enter", "Answer", "Predict what the cursor is on, and see the answer.", "answer"),
    _command("down", "down", "Choose", "To the next choice; “I don't know” is the last.", "choose", "↑↓"),
    _command("up", "up", "Choose", "To the choice before.", "", "↑"),
    _command("reveal", "space", "Reveal", "The answer, where the lesson is shown to a class.", "reveal"),
    _command("next", "n", "Next", "On to what comes next; after the code, to the next lesson.", "next"),
    _command("hint", "h", "Hint", "The next hint; after the last, the goal alone.", "hint"),
    _command("reset", "R", "Reset", "The sandbox as it was in the beginning; undo takes it back.", "reset"),
    _command("back", "B", "Back", "To what came before.", "back"),
    _command("leave", "Q", "Leave the lesson", "Back to the problem of your own, as it was.", "leave"),
)
"""In the order of the footer, which shows those that do something now."""
