"""The table of keys in docs/application.md."""

from __future__ import annotations

from shardviz.tui.registry import AREAS, COMMANDS


def key_table() -> str:
    """All commands as Markdown, one table for each part of the application."""
    lines = []
    for area, name in AREAS.items():
        rows = [command for command in COMMANDS if command.area == area]
        if rows:
            lines += ["", f"| {name} | | |", "|---|---|---|"]
        for command in rows:
            key = f"`{command.key_text}`" if command.key_text else ""
            lines.append(f"| {_cell(key)} | {_cell(command.title)} | {_cell(command.help)} |")
    return "\n".join(lines[1:]) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
