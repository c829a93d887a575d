"""Other programs' text on a terminal: nothing in it may move the cursor or change what is shown."""

from __future__ import annotations

from rich.text import Text

STAND_IN = "?"


def printable(text: str) -> str:
    """The text with a stand-in for each character that is none to look at."""
    return text if text.isprintable() else "".join(c if c.isprintable() else STAND_IN for c in text)


def printable_line(line: Text) -> Text:
    """The same for a line with styles, which stay where they are."""
    if not line.plain.isprintable():
        line.plain = printable(line.plain)
    return line
