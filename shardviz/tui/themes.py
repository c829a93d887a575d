"""Themes, and the colours of the pictures on each: dark, light, one for a projector, the terminal's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.theme import BUILTIN_THEMES, Theme

from shardviz.render.palette import ANSI, ON_LIGHT, ON_WHITE, PLAIN, TRUECOLOR, Palette

if TYPE_CHECKING:
    from textual.app import App


def _variables(key: str, scrollbar: str, track: str) -> dict[str, str]:
    return {
        "footer-key-foreground": key,
        "block-cursor-text-style": "none",
        "scrollbar": scrollbar,
        "scrollbar-hover": scrollbar,
        "scrollbar-active": key,
        "scrollbar-background": track,
        "scrollbar-background-hover": track,
        "scrollbar-background-active": track,
        "scrollbar-corner-color": track,
    }


DARK = Theme(
    name="shardviz-dark",
    primary="#6fb2f5",
    secondary="#8aa0b8",
    accent="#f0a868",
    warning="#e8b04a",
    error="#f0777b",
    success="#6cc781",
    foreground="#e4e6ea",
    background="#111318",
    surface="#171a20",
    panel="#20242c",
    dark=True,
    variables=_variables("#f0a868", "#3d4756", "#171a20"),
)
LIGHT = Theme(
    name="shardviz-light",
    primary="#0b62a8",
    secondary="#55606e",
    accent="#9a4a06",
    warning="#8a5a00",
    error="#b3283a",
    success="#1b7a37",
    foreground="#1c2026",
    background="#fbfaf7",
    surface="#f3f1ec",
    panel="#e8e5de",
    dark=False,
    variables=_variables("#9a4a06", "#b9b3a6", "#efece5"),
)
PROJECTOR = Theme(
    name="shardviz-projector",
    primary="#004a8f",
    secondary="#333333",
    accent="#7a2f00",
    warning="#6b4300",
    error="#9b0018",
    success="#005c1f",
    foreground="#000000",
    background="#ffffff",
    surface="#ffffff",
    panel="#e4e4e4",
    dark=False,
    text_alpha=1.0,
    variables=_variables("#7a2f00", "#6a6a6a", "#e4e4e4"),
)
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
    few = app.console.color_system in (None, "standard", "windows")
    app.theme = TERMINAL.name if few or app.no_color else DARK.name


def palette_of(app: App[None]) -> Palette:
    """The colours of pictures under the application's theme."""
    return PLAIN if app.no_color else _PALETTES.get(app.theme, TRUECOLOR)


def code_style_of(app: App[None]) -> str:
    """The Pygments style of code under the application's theme; "" where there are no colours."""
    return "" if app.no_color else _CODE.get(app.theme, "one-dark")
