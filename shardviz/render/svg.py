"""A recorded console as one SVG file, with no font or style from anywhere else."""

from __future__ import annotations

from rich.console import Console
from rich.terminal_theme import TerminalTheme

ASPECT = 0.602
"""Width of a character over its height in DejaVu Sans Mono; others are within a hundredth of it."""

THEME = TerminalTheme(
    (17, 18, 26),
    (214, 218, 232),
    [
        (54, 58, 79),
        (237, 135, 150),
        (166, 218, 149),
        (238, 212, 159),
        (138, 173, 244),
        (198, 160, 246),
        (139, 213, 202),
        (184, 192, 224),
    ],
)
"""Colours for what has none of its own: background, foreground, and the eight of a terminal."""

_PAGE = """\
<svg class="{unique_id}" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
    font-family: "Fira Code", "JetBrains Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace;
    font-size: {char_height}px;
    line-height: {line_height}px;
}}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix" xml:space="preserve">
{matrix}
</g>
</g>
</svg>
"""
"""Rich's own page without the fonts that it loads from elsewhere."""


def svg(console: Console, name: str) -> str:
    """What a console with `record=True` has printed; `name` sets its styles apart from other pictures'."""
    return console.export_svg(
        title="", theme=THEME, code_format=_PAGE, font_aspect_ratio=ASPECT, unique_id=f"shardviz-{name}"
    )
