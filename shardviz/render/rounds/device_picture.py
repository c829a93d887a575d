"""The devices of a group as their links join them, with what they hold and what moves: one round of a run.
Lines are drawn where they are seen only, so that groups of any size cost the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import pairwise

import numpy as np
from rich.style import Style
from rich.text import Text

from shardviz.errors import plural
from shardviz.hardware.topology import Switch
from shardviz.render.caption import coordinates
from shardviz.render.lines import LineBuilder
from shardviz.render.palette import DIM, Palette
from shardviz.render.rounds.device_map import DeviceMap, LineMap, Pair, SwitchMap, device_map
from shardviz.render.rounds.pieces import (
    ARRIVED,
    FORMS,
    NAMES,
    NOTHING,
    BufferRow,
    BufferRows,
    FrameStats,
    cell_text,
    chunk_names,
    chunk_style,
    drawn_columns,
    sampled,
    sent_words,
)
from shardviz.render.rounds.round_traffic import RoundTraffic
from shardviz.stepping.collective_run import CollectiveRun

SWITCH, BAR = "switch", "━"
LINE, AROUND = "─", "┄"
UP_LINE, UP_AROUND = "│", "┆"
"""Links between neighbours, and those that go around the edge of the page."""
FULL, SOME = "█", "▒"
"""Parts of a bar of which all chunks are there, or some."""
GROWTH = (
    ("cell", 9),
    ("gap", 9),
    ("above", 3),
    ("tall", 3),
    ("cell", 24),
    ("gap", 17),
    ("tall", 5),
    ("above", 5),
    ("cell", 30),
    ("gap", 25),
    ("tall", 9),
)
"""What boxes get of the room that a page has left, one after the other: up to so many columns between boxes,
lines between rows of boxes, lines and columns of a cell."""
BOLD = Style(bold=True)
SIDES = 2


class DevicePicture:
    """Frame `number` of one group: a canvas of `width` columns and `height` lines. `lens` is a
    member that is marked."""

    def __init__(self, boxes: GroupBoxes, number: int, lens: int | None = None) -> None:
        self._boxes, self._shape, self._map = boxes, boxes.shape, boxes.map
        self._lens = lens
        self.traffic = RoundTraffic(boxes.run, number)
        self._frame = boxes.run.frames[number] if boxes.run.followed else None
        self._rows = None
        if self._frame is not None and boxes.columns is not None:
            self._rows = BufferRows(boxes.run, self._frame, boxes.columns, boxes.palette, bool(number))
        self._drawn: dict[int, list[Text]] = {}
        self._top = self._map.down(0, 0) is not None
        self._above = self._shape.above
        # The line of a box beside which links to the right are drawn.
        self._middle = (self._shape.height - 1) // 2
        self._edge = self._shape.gap if self._map.across(0, 0) is not None else 0
        self.width, self.height = boxes.width, boxes.height

    def line(self, y: int, left: int, right: int) -> Text:
        shape = self._shape
        row, offset = divmod(y + (0 if self._top else self._above), shape.height + self._above)
        offset -= self._above
        pitch = shape.width + shape.gap
        first = max(0, (left - self._edge) // pitch)
        last = min(self._map.columns - 1, (right - self._edge) // pitch)
        builder = LineBuilder(left, right)
        # Most lines have nothing between boxes.
        has_gaps = offset in (self._middle, self._middle + 1, -self._above)
        for column in range(first, last + 2):
            box = self._edge + column * pitch
            if has_gaps and (column or self._edge):
                gap = self._beside(row, column, offset)
                if gap is not None:
                    builder.put_text(box - shape.gap, gap)
            if column <= last:
                text = self._above_box(row, column, offset) if offset < 0 else None
                if offset >= 0 and (member := self._map.member(row, column)) is not None:
                    if member not in self._drawn:
                        self._drawn[member] = self._box(member)
                    text = self._drawn[member][offset]
                if text is not None:
                    builder.put_text(box, text)
        line = builder.text()
        line.rstrip()
        return line

    def member_at(self, x: int, y: int) -> int | None:
        """The member whose box is at a column of a line; None where there is none."""
        row, offset = divmod(y + (0 if self._top else self._above), self._shape.height + self._above)
        column, within = divmod(x - self._edge, self._shape.width + self._shape.gap)
        is_inside = offset >= self._above and within < self._shape.width
        return self._map.member(row, column) if is_inside else None

    def _beside(self, row: int, gap: int, offset: int) -> Text | None:
        """A line of the gap to the left of a column, or after the last one; None for blanks."""
        width = self._shape.gap
        if offset < 0:
            is_bar = isinstance(self._map, SwitchMap) and offset == -self._above
            is_bar = is_bar and 0 < gap < self._map.columns
            return Text(BAR * width, DIM) if is_bar else None
        line = offset - self._middle
        if line not in (0, 1):
            return None
        pair = self._map.across(row, gap)
        if pair is None:
            return None
        ways = self._going("→←", pair)
        if line:
            return self._boxes.arrow(ways[1][1], width, "←", LINE) if len(ways) == 2 else None
        neighbours = self._map.member(row, gap - 1), self._map.member(row, gap)
        shaft = LINE if pair == neighbours else AROUND
        if not ways:
            return Text(shaft * width, DIM)
        head, chunks = ways[0]
        return self._boxes.arrow(chunks, width, head, shaft)

    def _above_box(self, row: int, column: int, offset: int) -> Text | None:
        """A line of a link above a box, or of the bar that a switch's devices hang on; None for blanks."""
        width = self._shape.width
        if isinstance(self._map, SwitchMap) and offset == -self._above:
            name = f" {SWITCH} " if not column and not row else ""
            return Text(name.center(width, BAR), DIM)
        pair = self._map.down(row, column)
        if pair is None:
            return None
        half, rows = width // 2, self._above - isinstance(self._map, SwitchMap)
        going = self._going("↓↑", pair) if offset == -1 - rows // 2 else []
        if not going:
            neighbours = self._map.member(row - 1, column), self._map.member(row, column)
            is_beside = isinstance(self._map, SwitchMap) or pair == neighbours
            shaft = UP_LINE if is_beside else UP_AROUND
            return Text(f"{' ' * half}{shaft}".ljust(width), DIM)
        room = width - half - 1 if len(going) == 1 else half - 1
        words = [Text.assemble(head, self._boxes.names(chunks, room)) for head, chunks in going]
        line = Text(" " * (half if len(words) == 1 else max(0, half - 1 - len(words[0]))))
        line.append_text(Text(" ").join(words)).truncate(width)
        return line

    def _going(self, heads: str, pair: Pair) -> list[tuple[str, list[int]]]:
        """The heads of arrows over a link, to its second member and to its first, with what goes there."""
        ways = (
            (head, self.traffic.chunks(*ends)) for head, ends in zip(heads, (pair, pair[::-1]), strict=True)
        )
        return [(head, chunks) for head, chunks in ways if chunks]

    def _box(self, member: int) -> list[Text]:
        run, group, inside = self._boxes.run, self._boxes.group, self._shape.inside
        sent = sent_words(run, group, self.traffic.sent(member))
        if self._rows is not None:
            row = self._rows.row(group, member)
            body = self._cells(row, member)
        else:
            came = sent_words(run, group, self.traffic.received(member), "←")
            bar = []
            if self._frame is not None:
                parts, chunks = self._boxes.bar_parts, self._frame.needed(member)
                places = chunks * len(parts) // run.schedule.chunks
                bar = [self._boxes.bar(tuple(np.bincount(places, minlength=len(parts)).tolist()))]
            body = [*bar * self._shape.tall, Text(f"{ARRIVED}{came}" if came else "")]
        is_marked = member == self._lens
        edge = BOLD if is_marked else DIM
        lines = [self._boxes.border(member, is_marked)]
        for line in body[: self._shape.lines]:
            line = line.copy()
            line.truncate(inside, overflow="ellipsis", pad=True)
            lines.append(Text.assemble(("│", edge), line, ("│", edge)))
        if not sent or len(sent) + 2 > inside:
            return [*lines, Text(f"└{'─' * inside}┘", edge)]
        rest = "─" * (inside - len(sent) - 2)
        return [*lines, Text.assemble(("└ ", edge), sent, (f" {rest}┘", edge))]

    def _cells(self, row: BufferRow, member: int) -> list[Text]:
        shape = self._shape
        assert self._boxes.columns is not None
        is_all_to_all = self._boxes.run.schedule.pattern.kind == "all_to_all"
        leaving = set() if is_all_to_all else set(self.traffic.sent(member).listed)
        texts = []
        for column, cell in zip(self._boxes.columns, row.cells, strict=True):
            text = cell_text(cell, shape.cell, FORMS[shape.form], shape.bare)
            if column in leaving and cell is not None and not shape.bare:
                text = Text.assemble(text[:-1], Text(ARRIVED, cell.style if cell.needed else DIM))
            texts.append(text)
        blank, above = Text(" " * shape.blank), (shape.tall - 1) // 2
        lines = []
        for start in range(0, len(texts), shape.per_line):
            part = slice(start, start + shape.per_line)
            padding = []
            if shape.tall > 1:
                empty = Text(" " * shape.cell)
                sides = (empty if cell is None else cell.padding(shape.cell) for cell in row.cells[part])
                padding = [blank.join(sides)]
            lines += [*padding * above, blank.join(texts[part]), *padding * (shape.tall - 1 - above)]
        if shape.passing:
            line = Text()
            for number, cell in enumerate(row.passing):
                text = Text.assemble(cell.text(len(cell.name) + 2, FORMS[-1]))
                rest = f" +{len(row.passing) - number}"
                more = len(rest) if number + 1 < len(row.passing) else 0
                if line.cell_len + text.cell_len + more > shape.inside:
                    line.append(rest, DIM)
                    break
                line.append_text(text)
            lines.append(line)
        return lines


class GroupBoxes:
    """The boxes of a group as all rounds share them on a page: shape, places, names, borders and bars. Of the
    shapes with which the whole picture fits it has the richest, else one with which its width does."""

    def __init__(self, run: CollectiveRun, group: int, width: int, height: int, palette: Palette) -> None:
        self.run, self.group, self.palette = run, group, palette
        self.shape, self.map = box_shape(run, group, width, height, palette)
        self.width, self.height = page(self.shape, self.map)
        self.columns = drawn_columns(run)
        self.border = cache(self._border)
        self.bar = lru_cache(1000)(self._bar)

    def names(self, chunks: list[int], room: int) -> Text:
        """The names of chunks, or how many they are; nothing where there is no room."""
        ways = (chunk_names(self.run, chunks, self.group, self.palette), plural(len(chunks), "chunk"))
        words = next((way for way in (*ways, f"{len(chunks):,}") if len(way) <= room), "")
        return Text.assemble(words)

    def arrow(self, chunks: list[int], width: int, head: str, shaft: str) -> Text:
        """``─α→``: as much of what moves as there is room for, in the middle."""
        words = self.names(chunks, width - 1)
        room = width - 1 - len(words)
        line = Text.assemble(shaft * (room // 2), words, shaft * (room - room // 2))
        return Text.assemble(line, head) if head == "→" else Text.assemble(head, line)

    def _border(self, member: int, is_marked: bool) -> Text:
        mesh, inside = self.run.mesh, self.shape.inside
        position = self.run.groups[self.group][member]
        edge = BOLD if is_marked else DIM
        name = str(mesh.device_id(position))
        if is_marked and len(name) + 4 <= inside:
            name = f"▹{name}◃"
        text = coordinates(mesh, position, self.palette)
        title = Text.assemble((name, self.palette.lens if is_marked else "bold"))
        if len(name) + 2 + text.cell_len + 2 <= inside:
            title.append("  ").append_text(text)
        rest = "─" * (inside - title.cell_len - 2)
        return Text.assemble(("┌ ", edge), title, (f" {rest}┐", edge))

    def _bar(self, parts: tuple[int, ...]) -> Text:
        """A bar by the number of chunks that are there in each of its parts; most rounds share its text."""
        bar = Text()
        for part, (size, style) in zip(parts, self.bar_parts, strict=True):
            bar.append(2 * (FULL if part == size else SOME if part else NOTHING), style if part else DIM)
        return bar

    @cached_property
    def bar_parts(self) -> list[tuple[int, Style]]:
        """The number of chunks of every part of a bar, and the colour of the first of them."""
        count, parts = self.run.schedule.chunks, self.shape.inside // 2
        bounds = [-(-index * count // parts) for index in range(parts + 1)]
        styles = [chunk_style(self.palette, self.run, start, self.group) for start in bounds[:-1]]
        sizes = (stop - start for start, stop in pairwise(bounds))
        return [(size, Style(color=style.bgcolor)) for size, style in zip(sizes, styles, strict=True)]


@dataclass(frozen=True)
class BoxShape:
    """Boxes with `lines` lines of `inside` columns, and gaps between them. `form` is the number of a form
    among `FORMS`; a line has `per_line` cells of `cell` columns with `blank` columns between; `bare` cells
    have no room for marks. No `cell` is a bar in place of cells. `passing`: a line more for what waits to go
    on. `above` are the lines between rows of boxes, `tall` those of a cell."""

    inside: int
    lines: int
    gap: int
    form: int = NAMES
    cell: int = 0
    per_line: int = 0
    blank: int = 0
    bare: bool = False
    passing: bool = False
    above: int = 1
    tall: int = 1

    @property
    def width(self) -> int:
        return self.inside + SIDES

    @property
    def height(self) -> int:
        return self.lines + SIDES


def _with_size(shape: BoxShape, name: str, size: int) -> BoxShape:
    """A shape with other gaps, or with larger cells: as many lines and columns more as these need."""
    changes = {name: size}
    if name == "tall":
        rows = (shape.lines - shape.passing) // shape.tall if shape.cell else min(1, shape.lines - 1)
        changes["lines"] = shape.lines + rows * (size - shape.tall)
    elif name == "cell" and shape.cell:
        changes["cell"] = shape.cell if shape.bare else size
        inside = shape.per_line * (changes["cell"] + shape.blank) - shape.blank
        changes["inside"] = max(shape.inside, inside)
    elif name == "cell":
        changes = {"inside": max(shape.inside, 2 * size)}
    return replace(shape, **changes)  # type: ignore[arg-type]


def box_shape(
    run: CollectiveRun, group: int, width: int, height: int, palette: Palette
) -> tuple[BoxShape, DeviceMap]:
    """The richest boxes with which the whole picture fits a page, else boxes with which its width does. A
    ring that closes, and a line or a switch in one row, come before richer boxes. Where sums are made, names
    without marks are worse than a picture that scrolls. What is left of the page makes them larger."""
    above = 2 if isinstance(run.links.topology.flat, Switch) else 1
    shapes = (replace(shape, above=above) for shape in _shapes(run, group, palette))
    pairs: list[tuple[BoxShape, DeviceMap]] = []
    for shape in shapes:
        pitch = shape.width + shape.gap
        arranged = device_map(run.links.topology, (width + shape.gap) // pitch)
        if arranged.across(0, 0) is not None:
            # What goes around needs room at both edges.
            arranged = device_map(run.links.topology, (width - shape.gap) // pitch)
        pairs.append((shape, arranged))
    fitting = [pair for pair in pairs if _fits(page(*pair), width, height)]
    natural = (pair for pair in fitting if not isinstance(pair[1], LineMap | SwitchMap) or pair[1].rows == 1)
    if fitting and not (fitting[0][0].bare and run.schedule.pattern.reduces):
        shape, arranged = next(natural, fitting[0])
        return _grown(shape, arranged, width, height), arranged
    # Otherwise it is higher than the page, or broader as well.
    names = [pair for pair in pairs if pair[0].form == NAMES and not pair[0].bare]
    wide_enough = [pair for pair in names if page(*pair)[0] <= width]
    if names[0][0].cell:
        shape, arranged = min(wide_enough, key=lambda pair: page(*pair)[1], default=pairs[-1])
    else:
        # A picture of bars scrolls far anyway: its links rather have room for names.
        shape, arranged = next(iter(wide_enough), names[0])
    return _grown(shape, arranged, width, page(shape, arranged)[1]), arranged


def page(shape: BoxShape, arranged: DeviceMap) -> tuple[int, int]:
    edges = shape.gap * (2 if arranged.across(0, 0) else 0)
    wide = edges + arranged.columns * (shape.width + shape.gap) - shape.gap
    top, bottom = (arranged.down(gap, 0) is not None for gap in (0, arranged.rows))
    above = shape.above
    return wide, arranged.rows * (shape.height + above) + above * (top + bottom - 1)


def _fits(size: tuple[int, int], width: int, height: int) -> bool:
    return size[0] <= width and size[1] <= height


def _grown(shape: BoxShape, arranged: DeviceMap, width: int, height: int) -> BoxShape:
    for name, most in GROWTH:
        # The text of a cell stands in its middle line.
        sizes = range(most, getattr(shape, name), -2 if name == "tall" else -1)
        larger = (_with_size(shape, name, size) for size in sizes)
        shape = next((shape for shape in larger if _fits(page(shape, arranged), width, height)), shape)
    return shape


def _shapes(run: CollectiveRun, group: int, palette: Palette) -> Iterator[BoxShape]:
    columns = drawn_columns(run)
    least, gaps = max(4, len(str(run.mesh.size - 1)) + 2), (7, 5, 3, 1)
    if columns is None:
        for gap in gaps:
            for inside in (16, 12):
                yield BoxShape(max(inside, least), 1 + run.followed, gap)
        return
    seen = sampled(run, group, columns, palette)
    lengths: set[tuple[int, int]] = set()
    for form, longest in seen.labels():
        if (longest, FORMS[form].rank) in lengths:
            continue
        lengths.add((longest, FORMS[form].rank))
        for gap in gaps if form == NAMES else gaps[:2]:
            for blank in (1, 0) if form == NAMES else (1,):
                yield from _with_cells(seen, form, longest + 2, blank, gap, least)
    longest_name = max((len(cell.name) for cell in seen.cells), default=1)
    for gap in gaps:
        yield from _with_cells(seen, NAMES, longest_name, 0, gap, least, bare=True)


def _with_cells(
    seen: FrameStats, form: int, cell: int, blank: int, gap: int, least: int, bare: bool = False
) -> Iterator[BoxShape]:
    count = max(1, len(seen.rows[0].cells))
    for per_line in dict.fromkeys(-(-count // lines) for lines in range(1, min(count, 8) + 1)):
        inside = max(per_line * (cell + blank) - blank, least)
        lines = -(-count // per_line) + seen.passing
        yield BoxShape(inside, lines, gap, form, cell, per_line, blank, bare, seen.passing)
