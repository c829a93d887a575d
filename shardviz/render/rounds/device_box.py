"""One device in the picture of a round: a box with its number, what it holds, and what it has just sent."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

from rich.style import Style
from rich.text import Text

from shardviz.collectives import Frame
from shardviz.errors import plural
from shardviz.render.layouts.grid import DIM
from shardviz.render.palette import Palette
from shardviz.render.rounds.box_shape import BoxShape
from shardviz.render.rounds.buffer_rows import BufferRow, BufferRows
from shardviz.render.rounds.chunk_names import chunk_name, chunk_style
from shardviz.render.rounds.device_label import coordinates
from shardviz.render.rounds.looked_at import drawn_columns
from shardviz.render.rounds.piece_label import ARRIVED, FORMS, Cell
from shardviz.render.rounds.round_traffic import Moves, RoundTraffic
from shardviz.stepping.collective_run import CollectiveRun

NOTHING = "·"
FULL, SOME = "█", "▒"
"""Parts of a bar of which all chunks are there, or some."""
PART = 2
"""Columns of a part."""
LISTED = 3
REMEMBERED = 1000
"""Bars that are kept."""


class BoxTitles:
    """What boxes of a group have in common in all rounds: the upper borders, and bars."""

    def __init__(self, walk: CollectiveRun, group: int, shape: BoxShape, palette: Palette) -> None:
        self._walk, self._group, self._inside, self._palette = walk, group, shape.inside, palette
        self._drawn: dict[int, Text] = {}
        self.bars: dict[bytes, Text] = {}
        """Bars by how many chunks their parts have: most rounds have the same ones."""

    def of(self, member: int) -> Text:
        """The border with the device's number and, where there is room, its place in the mesh."""
        if member not in self._drawn:
            self._drawn[member] = self._draw(member)
        return self._drawn[member]

    def _draw(self, member: int) -> Text:
        mesh, inside = self._walk.mesh, self._inside
        position = self._walk.groups[self._group][member]
        title = Text.assemble((str(mesh.device_id(position)), "bold"))
        place = coordinates(mesh, position, self._palette)
        if title.cell_len + 2 + place.cell_len + 2 <= inside:
            title = Text.assemble(title, "  ", place)
        rest = inside - title.cell_len - 2
        return Text.assemble(("┌ ", DIM), title, (f" {'─' * rest}┐", DIM))


class DeviceBoxes:
    """The boxes of one group after one round, each drawn when it is asked for."""

    def __init__(
        self,
        walk: CollectiveRun,
        number: int,
        group: int,
        shape: BoxShape,
        traffic: RoundTraffic,
        palette: Palette,
        titles: BoxTitles,
    ) -> None:
        self._walk, self._group, self._shape, self._palette = walk, group, shape, palette
        self._traffic, self._titles = traffic, titles
        self._columns = drawn_columns(walk)
        self._frame: Frame | None = walk.frames[number] if walk.followed else None
        self._rows: BufferRows | None = None
        if self._frame is not None and self._columns is not None:
            self._rows = BufferRows(walk, self._frame, self._columns, palette, bool(number), False)
        self._slots = walk.schedule.pattern.kind == "all_to_all"

    def lines(self, member: int) -> list[Text]:
        """A member's box: `shape.height` lines of `shape.width` columns."""
        inside = self._shape.inside
        if self._rows is not None:
            row = self._rows.row(self._group, member)
            body, sent = self._cells(row, member), row.sent
        else:
            body = [*self._bar(member), self._arrived(member)]
            sent = self._words(self._traffic.sent(member), "→")
        lines = [self._titles.of(member)]
        for line in body[: self._shape.lines]:
            line.truncate(inside)
            lines.append(Text.assemble(("│", DIM), line, " " * (inside - line.cell_len), ("│", DIM)))
        return [*lines, self._bottom(sent)]

    def name(self, chunk: int) -> str:
        """What a chunk is called."""
        schedule = self._walk.schedule
        return chunk_name(schedule.pattern, schedule.chunks, chunk, self._group)

    def style(self, chunk: int) -> Style:
        """The colour of a chunk."""
        return chunk_style(self._palette, self._walk.schedule.chunks, chunk, self._group)

    def _bottom(self, sent: str) -> Text:
        """The border with what has been sent."""
        inside = self._shape.inside
        if not sent or len(sent) + 2 > inside:
            return Text(f"└{'─' * inside}┘", DIM)
        return Text.assemble(("└ ", DIM), sent, (f" {'─' * (inside - len(sent) - 2)}┘", DIM))

    def _cells(self, row: BufferRow, member: int) -> list[Text]:
        shape = self._shape
        assert self._columns is not None
        leaving = set() if self._slots else self._leaving(member)
        texts = []
        for column, cell in zip(self._columns, row.cells, strict=True):
            text = self._cell(cell)
            if column in leaving and cell is not None and not shape.bare:
                text = Text.assemble(text[:-1], Text(ARRIVED, cell.style if cell.needed else DIM))
            texts.append(text)
        blank = Text(" " * shape.blank)
        lines = [
            blank.join(texts[start : start + shape.per_line])
            for start in range(0, len(texts), shape.per_line)
        ]
        if shape.passing:
            lines.append(self._passing(row))
        return lines

    def _cell(self, cell: Cell | None) -> Text:
        shape = self._shape
        if cell is None:
            return Text(NOTHING.center(shape.cell), DIM)
        if not shape.bare:
            return cell.text(shape.cell, FORMS[shape.form])
        style = cell.style if cell.needed else DIM
        return Text(cell.name[: shape.cell].ljust(shape.cell), style)

    def _passing(self, row: BufferRow) -> Text:
        """What waits to go on."""
        line = Text()
        for number, cell in enumerate(row.passing):
            text = Text.assemble(cell.text(len(cell.name) + 2, FORMS[-1]))
            rest = f" +{len(row.passing) - number}"
            if line.cell_len + text.cell_len + (len(rest) if number + 1 < len(row.passing) else 0) > (
                self._shape.inside
            ):
                return line.append(rest, DIM)
            line.append_text(text)
        return line

    def _leaving(self, member: int) -> set[int]:
        return set(self._traffic.sent(member).listed)

    @cached_property
    def _bar_parts(self) -> list[tuple[int, Style]]:
        """How many chunks every part of a bar stands for, and the colour of the first of them."""
        count, parts = self._walk.schedule.chunks, self._shape.inside // PART
        bounds = [-(-place * count // parts) for place in range(parts + 1)]
        return [(stop - start, Style(color=self.style(start).bgcolor)) for start, stop in pairwise(bounds)]

    def _bar(self, member: int) -> list[Text]:
        """Which chunks the member has, in a bar in their colours; nothing where that is not followed."""
        import numpy as np

        if self._frame is None:
            return []
        held = self._frame.held_by(member)
        needed = held.chunk[held.needed]
        places = needed * len(self._bar_parts) // self._walk.schedule.chunks
        parts = np.bincount(places, minlength=len(self._bar_parts))
        key = parts.tobytes()
        if key not in self._titles.bars:
            bar = Text()
            for part, (size, style) in zip(parts.tolist(), self._bar_parts, strict=True):
                word = FULL if part == size else SOME if part else NOTHING
                bar.append(PART * word, style if part else DIM)
            if len(self._titles.bars) > REMEMBERED:
                self._titles.bars.clear()
            self._titles.bars[key] = bar
        return [self._titles.bars[key].copy()]

    def _arrived(self, member: int) -> Text:
        words = self._words(self._traffic.received(member), "←")
        return Text(f"{ARRIVED}{words}") if words else Text()

    def _words(self, moves: Moves, arrow: str) -> str:
        """``α→1``, ``α–ω→1``, ``12 chunks→3 devices``."""
        if not len(moves):
            return ""
        others = list(dict.fromkeys(moves.others.tolist()))
        group = self._walk.groups[self._group]
        chunks = len(moves) * moves.span
        if len(moves) > 1 or len(others) > 1:
            ids = ",".join(str(self._walk.mesh.device_id(group[other])) for other in others[:LISTED])
            to = ids if len(others) <= LISTED else f"{len(others):,} devices"
            return f"{plural(chunks, 'chunk')}{arrow}{to}"
        first = int(moves.first[0])
        last = (first + moves.span - 1) % self._walk.schedule.chunks
        names = self.name(first) + (f"–{self.name(last)}" if moves.span > 1 else "")
        return f"{names}{arrow}{self._walk.mesh.device_id(group[others[0]])}"
