"""A target's program, read once, and its pages: folded for people, or as the compiler wrote it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz.hlo.listing import Listing, list_hlo
from shardviz.hlo.module import is_hlo
from shardviz.render.listings.hlo_page import HloPage
from shardviz.render.listings.line_index import LineIndex
from shardviz.render.listings.mlir_page import MlirLines, MlirPage
from shardviz.render.listings.raw_page import RawLines, RawPage

if TYPE_CHECKING:
    from shardviz.compiler import Compiled
    from shardviz.hlo import Collective
    from shardviz.render.listings.page import Page
    from shardviz.render.palette import Palette
    from shardviz.sharding import Mesh


@dataclass(frozen=True)
class Program:
    """An answer's program on a mesh, whose devices are in the order in which the target has them.

    `lines` are what a person reads of it: a listing of HLO, or the lines of Shardy's MLIR; `collectives` are
    the numbers of those that have one.
    """

    compiled: Compiled
    mesh: Mesh
    lines: Listing | MlirLines
    collectives: tuple[int, ...]
    raw: RawLines

    def page(self, folded: bool, width: int, palette: Palette) -> Page:
        """The program on a page of that width; not `folded`, all of its text, however wide."""
        if not folded:
            return RawPage(self.raw, self.mesh, palette)
        if isinstance(self.lines, Listing):
            return HloPage(self.lines, self.collectives, self.raw, width, palette)
        return MlirPage(self.lines, self.mesh, width, palette)

    def record(self, collective: Collective) -> Collective:
        """What the answer says of a collective of the text, which is more than the text alone tells."""
        named = (each for each in self.compiled.collectives if each.name == collective.name)
        return next((each for each in named if each.op == collective.op), collective)


def read_program(compiled: Compiled, mesh: Mesh) -> Program:
    """The program of an answer that has one; takes a while for a long one. Raises what `list_hlo` raises."""
    index = LineIndex(compiled.text)
    placement = compiled.placement
    placed = mesh if placement is None else placement.on(mesh)
    lines: Listing | MlirLines
    if is_hlo(compiled.text):
        slices = None if placement is None else placement.slices
        lines = list_hlo(compiled.text, placed, slices=slices)
        collectives = lines.module.collectives
        marked = tuple(number for number, line in enumerate(lines.lines) if line.collective is not None)
    else:
        lines = MlirLines(index, compiled.collectives)
        collectives = compiled.collectives
        marked = (*lines.collectives,)
    return Program(compiled, placed, lines, marked, RawLines(index, collectives))
