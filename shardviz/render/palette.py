"""One palette for everything that is drawn: a colour for each mesh axis, a colour and a glyph for each shard.

Axes are bold foreground colours, shards are backgrounds under dark ink, so the two are never taken for one
another and both read on dark and on light terminals. Nothing is told by colour alone: an axis has its name,
a shard its glyph and the numbers of its devices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rich.style import Style

from shardviz.sharding import Mesh

GLYPHS = "αβγδεζηθικλμνξοπρστυφχψω"
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
PARTIAL = "╱"
"""Fills a cell whose numbers are partial sums."""
PADDING = "░"
"""Fills the part of a cell that lies beyond the array's edge."""


@dataclass(frozen=True)
class Palette:
    """Colours by their use; `shards` are backgrounds, the others foregrounds, all as Rich names them.

    `shown` is False where the page has no colours.
    """

    axes: tuple[str, ...]
    shards: tuple[str, ...]
    ink: str
    shown: bool = True

    def axis(self, mesh: Mesh, name: str) -> Style:
        """The style of a mesh axis; a sub-axis as ``"Y:(2)2"`` has its axis's."""
        name = name.partition(":")[0]
        if name not in mesh.axis_names:
            return Style(bold=True)
        return Style(color=self.axes[mesh.axis_names.index(name) % len(self.axes)], bold=True)

    def shard(self, number: int) -> Style:
        """The style of a shard's cell.

        The step after each full turn keeps a shard and the one below it apart for grids of any width
        that is a power of two or as wide as the palette.
        """
        turn = len(self.shards)
        return Style(color=self.ink, bgcolor=self.shards[(number + number // turn) % turn])


TRUECOLOR = Palette(
    # OKLCH lightness 0.68, chroma 0.16: at least 2.6:1 against black and against white.
    axes=("#3b9cf6", "#e4762c", "#4db155", "#ce70c7", "#b79500", "#00b4bf", "#ea696e", "#a181ef"),
    # OKLCH in hue steps of 150°, so that neighbours differ most: twelve light ones (lightness 0.80 and 0.74,
    # chroma 0.115), then twelve darker ones between their hues (0.63 and 0.60, 0.125).
    shards=(
        "#74c7ff",
        "#ea8e7f",
        "#5ad6c0",
        "#d490cd",
        "#b4c972",
        "#8fa7f4",
        "#f4ac6f",
        "#37bed3",
        "#fb9ebb",
        "#73bf84",
        "#c9adfd",
        "#c7a74d",
        "#528bd3",
        "#bc653b",
        "#00a0a0",
        "#b45f91",
        "#679a48",
        "#7974c7",
        "#b57c1a",
        "#008eb8",
        "#c96771",
        "#06976d",
        "#a570bd",
        "#8c8309",
    ),
    ink="#0b0b10",
)
"""For terminals with 24-bit colour; Rich takes the nearest of 256 where there are only those."""

ANSI = Palette(
    axes=("blue", "red", "green", "magenta", "cyan", "yellow"),
    shards=(
        "bright_blue",
        "yellow",
        "bright_cyan",
        "magenta",
        "bright_green",
        "red",
        "cyan",
        "bright_yellow",
        "blue",
        "bright_red",
        "green",
        "bright_magenta",
    ),
    ink="black",
)
"""For terminals with 16 colours, whose exact shades the user's theme decides."""


PLAIN = replace(TRUECOLOR, shown=False)
"""For pages without colour."""


def palette_for(color_system: str | None) -> Palette:
    """The palette for a Rich colour system ("standard", "256", "truecolor", …, or None for no colour)."""
    if color_system is None:
        return PLAIN
    return ANSI if color_system == "standard" else TRUECOLOR


def glyph(number: int) -> str:
    """A short name for a shard: α … ω, then α₁ … ω₁, and so on."""
    turn, letter = divmod(number, len(GLYPHS))
    return GLYPHS[letter] + (str(turn).translate(SUBSCRIPTS) if turn else "")
