"""One palette for everything that is drawn: axes are bold foreground colours, shards backgrounds under dark
ink. Nothing is shown by colour alone: an axis has its name, a shard its glyph and its devices' numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache

from rich.style import Style

from shardviz.sharding import Mesh
from shardviz.sharding.axis_parts import whole_axis

GLYPHS = "αβγδεζηθικλμνξοπρστυφχψω"
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
DONE, TO_DO, NEXT_PHASE = "━", "─", "┼"
"""Of a bar that tells how far something is."""
BEST = "★"
"""Marks the cheapest of several."""
DIM = Style(dim=True)
SIGNS = {
    "=": Style(color="green", bold=True),
    "✓": Style(color="green", bold=True),
    "≠": Style(color="yellow", bold=True),
    "✗": Style(color="red", bold=True),
}
"""The same, agreed; different; failed: in the terminal's or the theme's own shades."""
PARTIAL = "╱"
"""Fills a cell whose numbers are partial sums."""
PADDING = "░"
"""Fills the part of a cell that lies beyond the array's edge."""
UNCOLOURED_LENS = Style(bold=True, reverse=True)


@dataclass(frozen=True)
class Palette:
    """Colours by their use; `shards` are backgrounds, the others foregrounds, all as Rich names them. `lanes`
    are those of a timeline's operations that are not on a mesh axis, by what they do; bars have them and
    `axes` as backgrounds, under words in `bar_ink`. `shown` is False where the page has no colours."""

    axes: tuple[str, ...]
    shards: tuple[str, ...]
    ink: str
    lanes: Mapping[str, str] = field(hash=False)
    bar_ink: str
    shown: bool = True
    lit: str = "#ffffff"
    """The ground of the device that is marked everywhere, under `bar_ink`."""

    def axis(self, mesh: Mesh, name: str) -> Style:
        """The style of a mesh axis; a sub-axis as ``"Y:(2)2"`` has its axis's."""
        name = whole_axis(name)
        if name not in mesh.axis_names:
            return Style(bold=True)
        return _style(self.axis_colour(mesh.axis_names, name), bold=True)

    def axis_colour(self, names: tuple[str, ...], name: str) -> str:
        return self.axes[_places(names, len(self.axes))[name]]

    @property
    def lens(self) -> Style:
        """The style of all that belongs to the device that is marked everywhere."""
        return Style(color=self.bar_ink, bgcolor=self.lit, bold=True) if self.shown else UNCOLOURED_LENS

    def shard(self, number: int) -> Style:
        """The style of a shard's cell. The step after each full turn keeps a shard and the one below it apart
        for grids of any width that is a power of two or as wide as the palette."""
        turn = len(self.shards)
        return _style(self.ink, self.shards[(number + number // turn) % turn])


@lru_cache(maxsize=64)
def _places(names: tuple[str, ...], count: int) -> dict[str, int]:
    """The number of each axis's colour among `count`: by its name, so that it does not depend on the others.
    Where two names want one colour, the later in the alphabet has the next that is free."""
    places: dict[str, int] = {}
    for name in sorted(names):
        wanted = (sum(name.upper().encode()) - ord("X")) % count
        free = ((wanted + step) % count for step in range(count))
        places[name] = next((index for index in free if index not in places.values()), wanted)
    return places


@cache
def _style(colour: str, ground: str | None = None, bold: bool | None = None) -> Style:
    # Making a style takes as long as drawing a cell with it.
    return Style(color=colour, bgcolor=ground, bold=bold)


LANES = ("matmul", "compute", "copy", "network", "host", "memory")


def _lanes(colours: str) -> dict[str, str]:
    return dict(zip(LANES, colours.split(), strict=True))


SHADES = (
    "#e8b364 #3dc2b3 #f39fcf #81bd78 #cbacfc #beab4f #4ed3e2 #e88b9f #72d5a8 #ce92d5 #b5c971 #9ca3f2 "
    "#aa8310 #009697 #c3678c #3b9559 #a371bf #878511 #009aba #bf5e65 #00a183 #ac629f #6f9841 #8171c5"
)
"""OKLCH hues that keep away from those of the axes X and Y, blue (250°) and orange (50°), by 24° and more, in
steps of five twelfths of what is left, so that neighbours differ: twelve light ones (lightness 0.80 and 0.74,
chroma 0.115), then twelve darker ones between their hues (0.63 and 0.60, 0.125)."""
ANSI_SHADES = (
    "bright_cyan yellow bright_green magenta cyan bright_yellow green bright_magenta white "
    "bright_blue bright_red"
)
"""The hues of X and Y come last: with 16 colours there are too few to do without."""

TRUECOLOR = Palette(
    # OKLCH lightness 0.68, chroma 0.16: at least 2.6:1 against black and against white.
    axes=("#3b9cf6", "#e4762c", "#4db155", "#ce70c7", "#b79500", "#00b4bf", "#ea696e", "#a181ef"),
    shards=tuple(SHADES.split()),
    ink="#0b0b10",
    bar_ink="#0b0b10",
    # Grey for the device's own work, so that what moves stands out; sand for copies, rose for the network.
    lanes=_lanes("#b9c0d0 #7d8598 #a58e6f #d9788f #8f9f8f #7fae9b"),
)
"""For terminals with 24-bit colour; Rich takes the nearest of 256 where there are only those."""

ON_LIGHT = replace(
    TRUECOLOR,
    bar_ink="#ffffff",
    lit="#0b0b10",
    # The same hues at lightness 0.53: at least 4.5:1 against #fbfaf7.
    axes=("#026ebe", "#a94e00", "#048322", "#9f3e9a", "#81690b", "#017b82", "#ba3441", "#7650c1"),
    lanes=_lanes("#454d60 #7b8294 #7d6747 #a53d59 #5c6b5c #3f7a66"),
)
"""For pages that are known to be light."""

ON_WHITE = replace(
    ON_LIGHT,
    # At lightness 0.45: at least 7:1 against white.
    axes=("#055797", "#883c00", "#036819", "#852381", "#675305", "#066167", "#9e122b", "#6037a7"),
)
"""For a projector in a bright room."""

ANSI = Palette(
    axes=("blue", "red", "green", "magenta", "cyan", "yellow"),
    shards=tuple(ANSI_SHADES.split()),
    ink="black",
    bar_ink="black",
    lit="bright_white",
    lanes=_lanes("white bright_black yellow bright_red bright_green cyan"),
)
"""For terminals with 16 colours, whose exact shades the user's theme decides."""


PLAIN = replace(TRUECOLOR, shown=False)


def palette_for(color_system: str | None) -> Palette:
    """The palette for a Rich colour system ("standard", "256", "truecolor", …, or None for no colour)."""
    if color_system is None:
        return PLAIN
    return ANSI if color_system == "standard" else TRUECOLOR


def glyph(number: int) -> str:
    """A short name for a shard: α … ω, then α₁ … ω₁, and so on."""
    turn, letter = divmod(number, len(GLYPHS))
    return GLYPHS[letter] + (str(turn).translate(SUBSCRIPTS) if turn else "")
