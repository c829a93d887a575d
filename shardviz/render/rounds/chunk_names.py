"""Names and colours of chunks: α, β, γ, …, the same for the same data wherever it is drawn.

A chunk of an all-to-all is named for where it comes from and where it goes: α₂ starts on the first member and
ends on member 2.
"""

from __future__ import annotations

from rich.style import Style

from shardviz.collectives import Pattern
from shardviz.render.palette import GLYPHS, SUBSCRIPTS, Palette, glyph


def chunk_name(pattern: Pattern, chunks: int, chunk: int, group: int = 0) -> str:
    """The name of a chunk of a group; groups that run at the same time have names of their own."""
    n = pattern.group_size
    if pattern.kind == "all_to_all" and chunks == n * n and (group + 1) * n <= len(GLYPHS):
        origin, target = divmod(chunk, n)
        return glyph(group * n + origin) + str(target).translate(SUBSCRIPTS)
    return glyph(group * chunks + chunk)


def chunk_style(palette: Palette, chunks: int, chunk: int, group: int = 0) -> Style:
    """The colour of a chunk of a group."""
    return palette.shard(group * chunks + chunk)
