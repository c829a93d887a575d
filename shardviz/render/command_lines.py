"""Command lines that are longer than a page is wide: they go on below, and can still be pasted. Help has
them, too, and loads no Rich."""

from __future__ import annotations

import re

CONTINUED = " \\"
"""Ends a command line that goes on below."""
INDENT = 2
"""Columns by which the lines below stand further in."""
_QUOTED = r"""(?:'[^']*'|"[^"]*"|[^\s'"])+"""
_WORD = re.compile(rf"--[\w-]+ (?!-){_QUOTED}|{_QUOTED}")
"""A word of a command line, quotes and all; an option with its value."""


def command_lines(command: str, width: int) -> list[str]:
    """The command in lines of at most `width` columns, all but the last of which end in a backslash. A word
    is never broken, and may be longer than a line; then an option is parted from its value."""
    lines = [""]
    for word in _WORD.findall(command):
        room = width - INDENT - len(CONTINUED)
        for piece in word.split(" ", 1) if word.startswith("--") and len(word) > room else [word]:
            indent = INDENT if len(lines) > 1 else 0
            if lines[-1] and indent + len(lines[-1]) + 1 + len(piece) + len(CONTINUED) > width:
                lines.append(piece)
            else:
                lines[-1] = f"{lines[-1]} {piece}".lstrip()
    last = len(lines) - 1
    return [
        f"{'':{INDENT if number else 0}}{line}{'' if number == last else CONTINUED}"
        for number, line in enumerate(lines)
    ]
