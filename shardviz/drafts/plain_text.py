"""Text that a terminal can show on one line, whatever was typed or pasted."""

from __future__ import annotations

UNSHOWN = "\ufffd"
"""Stands for a character that moves the cursor, turns the writing round, or is none."""


def one_line(text: str) -> str:
    """The text with blanks for line breaks and tabs, and `UNSHOWN` for what cannot be shown.

    A backslash that continues a command line on the next one goes with the line break.
    """
    joined = text.replace("\\\r\n", " ").replace("\\\n", " ").replace("\r\n", " ").strip("\r\n")
    return "".join(char if char.isprintable() else _shown(char) for char in joined)


def _shown(char: str) -> str:
    return " " if char.isspace() else UNSHOWN
