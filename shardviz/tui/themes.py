"""The widgets' styles; themes, and the colours of the pictures on each: dark, light, one for a projector, the
terminal's own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from textual.app import App
from textual.theme import BUILTIN_THEMES, Theme

from shardviz.render import palette as palettes
from shardviz.render.palette import PLAIN, Palette
from shardviz.text_tables import rows_beside

_SHEET = Path(__file__).with_name("styles.tcss").read_text(encoding="utf-8")
STYLES = dict(re.findall(r"/\* (\w+) \*/\n(.+?)(?=\n\n|\n\Z)", _SHEET, re.DOTALL))
"""Each widget's own style sheet, by its class."""
_NAMES, *_ROWS = rows_beside(__file__, "themes.txt")


def _theme(name: str, *cells: str) -> Theme:
    """A theme from a row of the table; keys have the accent's colour."""
    *colours, scrollbar, track = cells
    named: dict[str, Any] = dict(zip(_NAMES[1:], colours, strict=False))
    is_ansi = name == "terminal"
    variables = BUILTIN_THEMES["ansi-dark"].variables if is_ansi else {}
    variables = variables | dict.fromkeys(("footer-key-foreground", "scrollbar-active"), named["accent"])
    variables |= {"block-cursor-text-style": "none"}
    variables |= dict.fromkeys(("scrollbar", "scrollbar-hover"), scrollbar)
    variables |= {f"scrollbar-background{state}": track for state in ("", "-hover", "-active")}
    variables |= {"scrollbar-corner-color": track}
    named |= {"ansi": True, "boost": "ansi_default"} if is_ansi else {"dark": name == "dark"}
    return Theme(f"shardviz-{name}", **named, variables=variables)


_TABLE = {name: cells for name, *cells in _ROWS if len(cells) > 2}
THEMES = DARK, LIGHT, PROJECTOR, TERMINAL = tuple(_theme(name, *row[:-2]) for name, row in _TABLE.items())
"""The last is for terminals of 16 colours, whose shades are their user's choice, and for none at all."""
PROJECTOR.text_alpha = 1.0
TERMINAL.variables.update({cells[1]: cells[2] for cells in _ROWS if len(cells) == 3})
_PALETTES = {f"shardviz-{name}": getattr(palettes, row[-2]) for name, row in _TABLE.items()}
_CODE = {f"shardviz-{name}": row[-1] for name, row in _TABLE.items()}


def set_up_themes(app: App[None]) -> None:
    """Make the themes known to an application, and choose the one that its terminal can show."""
    for theme in THEMES:
        app.register_theme(theme)
    if app.no_color or app.console.color_system in (None, "standard", "windows"):
        app.theme = TERMINAL.name
        return
    # An assignment would have the style sheets parsed twice.
    app.set_reactive(App.theme, DARK.name)
    app.stylesheet.set_variables(app.get_css_variables())


def palette_of(app: App[None]) -> Palette:
    return PLAIN if app.no_color else _PALETTES.get(app.theme, palettes.TRUECOLOR)


def code_style_of(app: App[None]) -> str:
    """The Pygments style of code under the application's theme; "" where there are no colours."""
    return "" if app.no_color else _CODE.get(app.theme, "one-dark")


class Styled:
    """A widget with the styles under its class's name, which Textual reads when the first is shown: the whole
    sheet would hold up the first frame."""

    def __init_subclass__(cls, **more: Any) -> None:
        if cls.__name__ in STYLES:
            cls.DEFAULT_CSS = STYLES[cls.__name__]  # type: ignore[attr-defined]
        super().__init_subclass__(**more)

    @property
    def palette(self) -> Palette:
        return palette_of(self.app)  # type: ignore[attr-defined]
