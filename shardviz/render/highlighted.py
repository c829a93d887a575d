"""Python code in colours, as lines of text."""

from __future__ import annotations

from rich.style import Style
from rich.syntax import Syntax
from rich.text import Span, Text


def highlighted(code: str, theme: str) -> list[Text]:
    """The lines of Python code, coloured by one of Pygments' styles; "" leaves them plain."""
    if not theme:
        return [Text(line) for line in code.splitlines()]
    text = Syntax("", "python", theme=theme).highlight(code)
    text.rstrip()
    text.style = ""
    text.spans = [Span(start, end, _without_background(style)) for start, end, style in text.spans]
    return list(text.split("\n", allow_blank=True))


def _without_background(style: str | Style) -> Style:
    """The style without the background that Pygments gives it."""
    full = style if isinstance(style, Style) else Style.parse(style)
    return Style(color=full.color, bold=full.bold, italic=full.italic, underline=full.underline)
