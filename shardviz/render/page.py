"""Pictures in lines as a whole page: plain text, HTML for notebooks, a console that records; and code."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Span, Text

from shardviz.render.lines import printable
from shardviz.render.palette import PLAIN, TRUECOLOR, Palette

Lines = Callable[[int, Palette], Sequence[Text]]
"""A picture: its lines, of at most so many columns, in the colours of a palette."""

_GREY = (128, 128, 128)
_PAGE = (
    '<pre style="white-space:pre;overflow-x:auto;line-height:1.2;color:inherit;background:transparent;'
    "font-family:Menlo,'DejaVu Sans Mono',Consolas,monospace\">{code}</pre>"
)


def plain_text(lines: Lines, width: int) -> str:
    """The picture as text without colours, and without a line end after the last line."""
    return "\n".join(printable(line.plain) for line in lines(width, PLAIN))


def html(lines: Lines, width: int) -> str:
    """The picture as one ``<pre>`` with its styles inline; text and page keep the colours around them."""
    console = recorder(width)
    console.print(Text("\n").join(lines(width, TRUECOLOR)), soft_wrap=True, end="")
    # Dim text mixes with grey, which can be read on a light page and on a dark one.
    theme = TerminalTheme(_GREY, _GREY, [_GREY] * 8)
    return console.export_html(theme=theme, code_format=_PAGE, inline_styles=True)


def recorder(width: int) -> Console:
    """A console of so many columns that prints nowhere and keeps what is printed, in all colours."""
    return Console(
        width=width,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        # In a notebook a console displays what it prints, which the notebook does with the page itself.
        force_jupyter=False,
        record=True,
        legacy_windows=False,
        _environ={},
    )


def highlighted(code: str, theme: str) -> list[Text]:
    """The lines of Python code, coloured by one of Pygments' styles; "" leaves them plain."""
    if not theme:
        return [Text(line) for line in code.splitlines()]
    from rich.syntax import Syntax

    text = Syntax("", "python", theme=theme).highlight(code)
    text.rstrip()
    text.style = ""
    for index, (start, end, style) in enumerate(text.spans):
        full = style if isinstance(style, Style) else Style.parse(style)
        # Without its background.
        bare = Style(color=full.color, bold=full.bold, italic=full.italic, underline=full.underline)
        text.spans[index] = Span(start, end, bare)
    return list(text.split("\n", allow_blank=True))
