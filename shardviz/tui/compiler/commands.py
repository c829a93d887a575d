"""The commands of the compiler."""

from __future__ import annotations

from shardviz.tui.command import Command


def _command(name: str, keys: str, title: str, help: str, footer: str = "", shown: str = "") -> Command:
    return Command("compiler", name, tuple(keys.split()), title, help, footer, shown)


COMPILER: tuple[Command, ...] = (
    _command("next_target", "n", "Next target", "The next target's answer.", "target"),
    _command("previous_target", "N", "Previous target", "The answer of the target before."),
    _command(
        "earlier",
        "left",
        "Earlier pass",
        "One stage back: from the program to what the compiler's passes made of it, down to Shardy's.",
        "passes",
        "←→",
    ),
    _command("later", "right", "Later pass", "One stage on, up to the program.", "", "→"),
    _command("diff", "d", "Diff", "What the stage changed in the program's text, or not."),
    _command("next_collective", "j", "Next collective", "To the next collective.", "next"),
    _command("previous_collective", "k", "Previous collective", "To the collective before."),
    _command("search", "slash", "Search", "Find text in the program, while you type.", "search", "/"),
    _command("fold", "f", "All of the text", "The text as the compiler wrote it, or folded."),
    _command("table", "w", "Side by side", "All targets in one table, with reasons, or one.", "table"),
    _command("ask", "r", "Ask now", "Ask this target now, also where it was cancelled."),
    _command("move(-1)", "up", "Line up", "To the line above.", "", "↑"),
    _command("move(1)", "down", "Line down", "To the line below.", "", "↓"),
    _command("page(-1)", "pageup", "Page up", "A page up."),
    _command("page(1)", "pagedown", "Page down", "A page down."),
    _command("first_line", "home", "First line", "To the first line."),
    _command("last_line", "end", "Last line", "To the last line."),
    _command("sideways(-1)", "less_than_sign", "To the left", "Scroll long lines to the left.", "", "<"),
    _command("sideways(1)", "greater_than_sign", "To the right", "Scroll long lines to the right.", "", ">"),
)
SEARCHING: tuple[Command, ...] = (
    _command("next(1)", "enter down", "Next match", "To the next line that has it.", "next"),
    _command("next(-1)", "up shift+enter", "Match before", "To the match before.", "previous", "↑"),
    _command("leave", "escape", "Close", "End the search where it is.", "close", "esc"),
)
"""What works while text is searched, when every other key is text."""
