"""Themes: what is told by colour can be told apart, and read, on every one of them."""

from __future__ import annotations

import pytest
from rich.color import Color as RichColor, ColorSystem
from textual.app import App
from textual.color import Color

from shardviz.render.palette import ANSI, ON_LIGHT, PLAIN, TRUECOLOR
from shardviz.tui.dialogs.export import strips_of
from shardviz.tui.themes import (
    DARK,
    LIGHT,
    PROJECTOR,
    TERMINAL,
    palette_of,
    set_up_themes,
)
from tests.tui.conftest import drive, until


def contrast(first, second):
    """The contrast ratio of two colours (WCAG 2)."""
    light = []
    for color in (first, second):
        parts = (value / 255 for value in Color.parse(color).rgb)
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        light.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(light) + 0.05) / (min(light) + 0.05)


def app_on(color_system, no_color=False):
    """An application on a terminal with those colours."""
    app = App(ansi_color=no_color or None)
    app.no_color = no_color
    app.console._color_system = None if color_system is None else ColorSystem[color_system]
    set_up_themes(app)
    return app


@pytest.mark.parametrize(
    ("color_system", "theme"),
    [("TRUECOLOR", DARK), ("EIGHT_BIT", DARK), ("STANDARD", TERMINAL), (None, TERMINAL)],
)
def test_a_terminal_gets_a_theme_that_it_can_show(color_system, theme):
    assert app_on(color_system).theme == theme.name


def test_without_colours_pictures_and_theme_have_none():
    app = app_on("TRUECOLOR", no_color=True)
    assert app.theme == TERMINAL.name
    assert palette_of(app) == PLAIN


def test_sixteen_colours_are_the_terminals_own():
    assert palette_of(app_on("STANDARD")) == ANSI
    assert all(
        color.startswith("ansi_") for color in (TERMINAL.primary, TERMINAL.foreground, TERMINAL.background)
    )


@pytest.mark.parametrize(
    ("theme", "least"), [(DARK, 4.5), (LIGHT, 4.5), (PROJECTOR, 7)], ids=["dark", "light", "projector"]
)
def test_axes_and_words_read_on_their_background(theme, least):
    app = app_on("TRUECOLOR")
    app.theme = theme.name
    words = [theme.foreground, theme.primary, theme.accent, theme.error, theme.warning, theme.success]
    for color in (*palette_of(app).axes, *words):
        assert contrast(color, theme.background) >= least


@pytest.mark.parametrize("theme", [DARK, LIGHT, PROJECTOR], ids=lambda theme: theme.name)
@pytest.mark.parametrize(
    "system", [ColorSystem.TRUECOLOR, ColorSystem.EIGHT_BIT], ids=lambda system: system.name
)
def test_axes_and_shards_have_a_colour_each(theme, system):
    app = app_on("TRUECOLOR")
    app.theme = theme.name
    palette = palette_of(app)
    for colors in (palette.axes, palette.shards):
        assert len({RichColor.parse(color).downgrade(system) for color in colors}) == len(colors)


@pytest.mark.slow
def test_t_draws_every_screen_in_the_colours_of_the_theme():
    dark = {RichColor.parse(color).triplet for color in (*TRUECOLOR.axes, *TRUECOLOR.shards)}
    light = {RichColor.parse(color).triplet for color in (*ON_LIGHT.axes, *ON_LIGHT.shards)}

    def colors_of(app):
        strips = strips_of(app.screen)
        styles = [segment.style for strip in strips for segment in strip if segment.style]
        return {color.triplet for style in styles for color in (style.color, style.bgcolor) if color}

    async def script(pilot):
        for key in "1234":
            await pilot.press(key)
            if key == "3":
                await until(pilot, lambda: pilot.app.pane.page.prepared)
            await pilot.pause()
            assert colors_of(pilot.app) & (dark - light)
            first = pilot.app.theme
            while pilot.app.theme != LIGHT.name:
                await pilot.press("t")
            await pilot.pause()
            assert not colors_of(pilot.app) & (dark - light), key
            while pilot.app.theme != first:
                await pilot.press("t")

    drive(script)
