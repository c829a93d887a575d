"""The widgets' styles; themes, and the colours of the pictures on each: dark, light, one for a projector, the
terminal's own."""

from __future__ import annotations

import re
from pathlib import Path

from textual.app import App
from textual.theme import BUILTIN_THEMES, Theme

from shardviz.render.palette import ANSI, ON_LIGHT, ON_WHITE, PLAIN, TRUECOLOR, Palette

_SHEET = Path(__file__).with_name("styles.tcss").read_text(encoding="utf-8")
STYLES = dict(re.findall(r"/\* (\w+) \*/\n(.+?)(?=\n\n|\n\Z)", _SHEET, re.DOTALL))
"""Each widget's own style sheet, by its class: read one by one, when the widget is first shown."""
NAMES = ("primary", "secondary", "accent", "warning", "error", "success")
GROUNDS = ("foreground", "background", "surface", "panel")


def _variables(key: str, scrollbar: str, track: str) -> dict[str, str]:
    thumbs = dict.fromkeys(("scrollbar", "scrollbar-hover"), scrollbar)
    backs = ("", "-hover", "-active")
    tracks = {f"scrollbar-background{state}": track for state in backs} | {"scrollbar-corner-color": track}
    keys = {"footer-key-foreground": key, "scrollbar-active": key, "block-cursor-text-style": "none"}
    return {**keys, **thumbs, **tracks}


def _theme(name: str, colours: str, grounds: str, scrollbar: str, track: str) -> Theme:
    """A theme of colours by `NAMES` and `GROUNDS`; keys have the accent's."""
    named = dict(zip((*NAMES, *GROUNDS), (colours + " " + grounds).split(), strict=True))
    variables = _variables(named["accent"], scrollbar, track)
    return Theme(f"shardviz-{name}", **named, dark=name == "dark", variables=variables)  # type: ignore[arg-type]


DARK = _theme(
    "dark",
    "#6fb2f5 #8aa0b8 #f0a868 #e8b04a #f0777b #6cc781",
    "#e4e6ea #111318 #171a20 #20242c",
    "#3d4756",
    "#171a20",
)
LIGHT = _theme(
    "light",
    "#0b62a8 #55606e #9a4a06 #8a5a00 #b3283a #1b7a37",
    "#1c2026 #fbfaf7 #f3f1ec #e8e5de",
    "#b9b3a6",
    "#efece5",
)
PROJECTOR = _theme(
    "projector",
    "#004a8f #333333 #7a2f00 #6b4300 #9b0018 #005c1f",
    "#000000 #ffffff #ffffff #e4e4e4",
    "#6a6a6a",
    "#e4e4e4",
)
PROJECTOR.text_alpha = 1.0
TERMINAL = Theme(
    name="shardviz-terminal",
    ansi=True,
    primary="ansi_blue",
    secondary="ansi_cyan",
    accent="ansi_magenta",
    warning="ansi_yellow",
    error="ansi_red",
    success="ansi_green",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    variables={
        **BUILTIN_THEMES["ansi-dark"].variables,
        **_variables("ansi_magenta", "ansi_blue", "ansi_default"),
        "ansi-background": "ansi_default",
        "ansi-foreground": "ansi_default",
        # Component styles lose "reverse" in Textual 8; the line is left where there are no colours.
        "block-cursor-foreground": "ansi_bright_white",
        "block-cursor-background": "ansi_blue",
        "block-cursor-text-style": "bold underline",
        "block-cursor-blurred-foreground": "ansi_bright_white",
        "block-cursor-blurred-background": "ansi_blue",
        "block-cursor-blurred-text-style": "bold underline",
        "input-selection-background": "ansi_blue",
        "input-selection-foreground": "ansi_white",
        "screen-selection-background": "ansi_blue",
        "screen-selection-foreground": "ansi_white",
    },
)
"""For terminals of 16 colours, whose shades are their user's choice, and for none at all."""

THEMES = (DARK, LIGHT, PROJECTOR, TERMINAL)
_PALETTES = {DARK.name: TRUECOLOR, LIGHT.name: ON_LIGHT, PROJECTOR.name: ON_WHITE, TERMINAL.name: ANSI}
_CODE = {DARK.name: "one-dark", LIGHT.name: "default", PROJECTOR.name: "default", TERMINAL.name: "ansi_dark"}


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
    return PLAIN if app.no_color else _PALETTES.get(app.theme, TRUECOLOR)


def code_style_of(app: App[None]) -> str:
    """The Pygments style of code under the application's theme; "" where there are no colours."""
    return "" if app.no_color else _CODE.get(app.theme, "one-dark")
