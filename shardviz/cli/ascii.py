"""ASCII characters for those that a terminal's encoding lacks, one for one, so that columns still line up."""

from __future__ import annotations

GREEK = "αβγδεζηθικλμνξοπρστυφχψω"
"""The letters of shards (`shardviz.render.palette.GLYPHS`), in their order: a for the first."""

STAND_INS = {
    **dict(zip(GREEK, "abcdefghijklmnopqrstuvwx", strict=True)),
    **dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True)),
    **dict.fromkeys("┌┬┐├┼┤└┴┘", "+"),
    "─": "-",
    "│": "|",
    "╱": "/",
    "░": ":",
    "⋮": ":",
    "…": "~",
    "→": ">",
    "×": "x",
    "÷": "/",
    "\xa0": " ",
    "·": ".",
    "–": "-",
    "−": "-",
    "≠": "!",
    "≤": "<",
    "≥": ">",
    **dict.fromkeys("▸▹", "*"),
    "━": "=",
    "µ": "u",
    "✗": "x",
    "✓": "v",
    "←": "<",
    "↑": "^",
    "↓": "v",
    "⌫": "<",
    **dict.fromkeys("❯›", ">"),
    **dict.fromkeys("‹◂◃", "<"),
    "•": "*",
    "○": "o",
    "◉": "@",
    "◐": "%",
    "●": "O",
    "▌": "|",
    "┆": ":",
    "┄": "-",
    "▒": "%",
    "█": "#",
    **dict.fromkeys("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "*"),
    "★": "#",
    "Σ": "S",
    "⋅": ".",
    **dict.fromkeys("‘’", "'"),
    **dict.fromkeys("“”", '"'),
    "�": "?",
}
"""What stands for each character of the pictures."""


def replaced(error: UnicodeError) -> tuple[str, int]:
    """An error handler for encoders: a stand-in for each character that is lacking, ``?`` for others."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(STAND_INS.get(character, "?") for character in lacking), error.end
