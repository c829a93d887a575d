"""A compiled program in program order: collectives marked, starts and dones joined by lines at the left. Of
Shardy's MLIR the text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace
from operator import attrgetter

from rich.style import Style
from rich.text import Text

from shardviz.hlo import Collective
from shardviz.hlo.listing import ListedLine, Listing, Span, list_hlo
from shardviz.render.caption import axes_text
from shardviz.render.lines import cut, printable, printable_line
from shardviz.render.palette import Palette
from shardviz.render.programs.collective_rows import way_out
from shardviz.reports.target_result import TargetResult
from shardviz.sharding import Mesh
from shardviz.units import human_bytes, shaped

MARK = "▸"
"""Stands before a line that is a collective, or begins one."""
ARRAY = re.compile(r"[a-z][a-z0-9]*+\[[^\]]*+\]")
TELLING = frozenset(("convolution", "dot", "while", "conditional", "call"))
"""Opcodes in bold: matrices are multiplied, or other lines run."""
SILENT = frozenset(("parameter", "constant", "get-tuple-element", "tuple", "bitcast"))
"""Opcodes in dim letters: nothing is computed or moved."""

NO_AXES = Mesh(("devices",), (1,))
"""In place of a mesh that nobody knows: its axes are asked for no colour."""


def hlo_picture(listing: Listing, width: int, palette: Palette) -> list[Text]:
    """All lines of a listing, each at most `width` columns wide."""
    picture = HloPicture(listing, width, palette)
    return [picture.line(number) for number in range(len(listing.lines))]


class HloPicture:
    """A listing on a page; `line` draws one line alone, at a cost that does not grow with the listing."""

    def __init__(self, listing: Listing, width: int, palette: Palette) -> None:
        self.listing, self._width, self._palette = listing, width, palette
        self._mesh = listing.module.mesh or NO_AXES
        self._columns = _columns(listing.spans)

    def line(self, number: int) -> Text:
        """Line `number` of the listing: what is under way, the mark, and the instruction."""
        line = self.listing.lines[number]
        text = self._under_way(number)
        if line.collective is not None:
            text.append(MARK, collective_style(line.collective, self._mesh, self._palette))
        else:
            text.append(" ")
        text.append(" " * (1 + 2 * min(line.depth // 2, 8)))
        if line.is_head:  # ``ENTRY main``, ``body of while.12: region_0``
            head = Text.assemble((f"{line.opcode} ", "dim"), (line.name, "bold"))
            if line.operands:
                head = Text.assemble((f"{line.opcode} of {line.operands}", "bold"), (f": {line.name}", "dim"))
            return cut(text.append_text(printable_line(head)), self._width)
        text.append_text(printable_line(_instruction(line)))
        tail = Text()
        begun = None if line.ends is None else self.listing.lines[line.ends]
        if line.collective is not None:
            tail = facts(line.collective, self._mesh, self._palette)
        elif begun is not None and begun.collective is not None and begun.name not in line.operand_names:
            style = collective_style(begun.collective, self._mesh, self._palette)
            tail = Text.assemble("  ends ", (printable(begun.name), style))
        room = max(self._width - tail.cell_len, self._width // 2)
        return cut(cut(text, room).append_text(tail), self._width)

    def _under_way(self, number: int) -> Text:
        text = Text()
        for column in self._columns:
            index = bisect_right(column, number, key=attrgetter("start")) - 1
            span = column[index] if index >= 0 else None
            if span is None or number > span.stop:
                text.append(" ")
            else:
                glyph = "┌" if number == span.start else "└" if number == span.stop else "│"
                text.append(glyph, collective_style(span.collective, self._mesh, self._palette))
        return text


def facts(collective: Collective, mesh: Mesh, palette: Palette) -> Text:
    """The end of a collective's line: ``  over X  2 MiB  ×2``."""
    text = Text()
    if collective.axes:
        text.append("  over ").append_text(axes_text(collective.axes, mesh, palette))
    if beyond := way_out(collective):
        text.append(f" {beyond}")
    text.append(f"  {human_bytes(collective.bytes)}")
    if collective.count != 1:
        text.append("  in a loop" if collective.count is None else f"  ×{collective.count:,}", "bold")
    return text


def collective_style(collective: Collective, mesh: Mesh, palette: Palette) -> Style:
    """The colour of a collective: that of the first of its axes."""
    return palette.axis(mesh, collective.axes[0]) if collective.axes else Style(bold=True)


def _instruction(line: ListedLine) -> Text:
    """``name = shape opcode(operands) attributes``; of a fusion what it does: ``fusion: convolution(…)``."""
    if line.repeats > 1:
        elements = f"{line.name} and {line.repeats - 1:,} more = {line.opcode}({line.operands})"
        return Text(elements, "dim")
    collective = line.collective
    holds = line.holds if line.ends is None else ()
    # What the lines themselves show.
    left_out: tuple[str, ...] = ("kind=", "condition=", "body=")
    shape, arrays = line.shape, ARRAY.findall(line.shape)
    if shape.startswith("(") and len(arrays) > 1:
        shape = f"({arrays[0]}, +{len(arrays) - 1})"
    if collective is not None:
        holds = () if collective.op in line.opcode else (collective.op,)
        left_out += ("to_apply=", *(("replica_groups=", "source_target_pairs=") if collective.axes else ()))
        if collective.arrays == 1:
            shape = shaped(collective.dtype, collective.result_shape)
    opcode = f"{line.opcode}: {', '.join(holds)}" if holds else line.opcode
    attributes = ", ".join(attribute for attribute in line.attributes if not attribute.startswith(left_out))
    text = Text.assemble(
        f"{line.name} = ",
        (f"{shape} ", "dim"),
        (opcode, "" if collective is None and TELLING.isdisjoint((line.opcode, *holds)) else "bold"),
        f"({line.operands})",
        (f" {attributes}" if attributes else "", "dim"),
    )
    if line.opcode in SILENT:
        text.stylize("dim")
    return text


def _columns(spans: Iterable[Span]) -> list[list[Span]]:
    """The spans of each column, none overlapping another; those for which no column is left have none."""
    columns: list[list[Span]] = []
    for span in spans:
        free = next((column for column in columns if column[-1].stop < span.start), None)
        if free is not None:
            free.append(span)
        elif len(columns) < 4:
            columns.append([span])
    return columns


def program_view(compiled: TargetResult, mesh: Mesh, width: int, palette: Palette) -> list[Text]:
    """A blank line, a heading and the program; lines of MLIR are cut at the page's edge."""
    if compiled.target == "shardy":
        heading = "Shardy's program, all devices at once: MLIR, not HLO"
        lines = (line.rstrip().expandtabs(2) for line in compiled.text.splitlines() if line.strip())
        program = [cut(Text(line), width) for line in lines]
    else:
        heading = f"{compiled.target}'s program on each device"
        if compiled.placement is not None:
            mesh = replace(mesh, device_order=compiled.placement.ids)
        program = hlo_picture(list_hlo(compiled.text, mesh), width, palette)
    return [Text(), cut(Text(heading, "bold"), width), *program]
