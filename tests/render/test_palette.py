"""Colours: apart where they must be, readable on dark and on light, and never the only sign."""

from __future__ import annotations

import pytest

from shardviz.render.palette import ANSI, PLAIN, TRUECOLOR, Palette, glyph, palette_for
from shardviz.sharding import Mesh

PALETTES = [TRUECOLOR, ANSI]


@pytest.mark.parametrize("palette", PALETTES)
def test_neighbouring_shards_differ(palette: Palette) -> None:
    for columns in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64):
        for number in range(4 * columns):
            assert palette.shard(number).bgcolor != palette.shard(number + 1).bgcolor
            assert palette.shard(number).bgcolor != palette.shard(number + columns).bgcolor


@pytest.mark.parametrize("palette", PALETTES)
def test_colours_differ_within_a_palette(palette: Palette) -> None:
    assert len(set(palette.shards)) == len(palette.shards)
    assert len(set(palette.axes)) == len(palette.axes)


def luminance(color: str) -> float:
    """Relative luminance of ``#rrggbb``: https://www.w3.org/TR/WCAG21/#dfn-relative-luminance."""
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    """Contrast ratio: https://www.w3.org/TR/WCAG21/#dfn-contrast-ratio."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_ink_is_readable_on_every_shard() -> None:
    assert min(contrast(TRUECOLOR.ink, shard) for shard in TRUECOLOR.shards) >= 4.5


@pytest.mark.parametrize("background", ["#000000", "#ffffff"])
def test_axes_are_readable_on_dark_and_on_light(background: str) -> None:
    assert min(contrast(background, axis) for axis in TRUECOLOR.axes) >= 2.4


def test_an_axis_keeps_its_colour_when_others_come_go_or_move() -> None:
    alone = {name: TRUECOLOR.axis(Mesh((name,), (2,)), name) for name in ("X", "Y", "Z", "i", "j")}
    for names in (("X", "Y"), ("Y", "X"), ("Z", "X", "Y"), ("j", "i")):
        mesh = Mesh(names, (2,) * len(names))
        assert {name: TRUECOLOR.axis(mesh, name) for name in names} == {name: alone[name] for name in names}
    many = Mesh(tuple("ABCDEFGH"), (2,) * 8)
    assert len({TRUECOLOR.axis(many, name).color for name in many.axis_names}) == 8


def test_an_axis_has_one_colour_everywhere() -> None:
    mesh = Mesh(("X", "Y"), (2, 4))
    assert TRUECOLOR.axis(mesh, "Y:(2)2") == TRUECOLOR.axis(mesh, "Y")
    assert TRUECOLOR.axis(mesh, "X") != TRUECOLOR.axis(mesh, "Y")
    assert TRUECOLOR.axis(mesh, "unknown").color is None


@pytest.mark.parametrize(
    ("system", "palette"),
    [("standard", ANSI), ("256", TRUECOLOR), ("truecolor", TRUECOLOR), (None, PLAIN)],
)
def test_palette_for(system: str | None, palette: Palette) -> None:
    assert palette_for(system) is palette


def test_glyphs() -> None:
    assert [glyph(number) for number in (0, 23, 24, 47, 48, 24 * 12)] == ["α", "ω", "α₁", "ω₁", "α₂", "α₁₂"]
    assert len({glyph(number) for number in range(5000)}) == 5000
