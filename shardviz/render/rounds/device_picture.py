"""The devices of a group as their links join them, with what they hold and what moves: one round of a walk.

Lines are drawn where they are seen only, so that groups of any size cost the same.
"""

from __future__ import annotations

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.layouts.grid import DIM
from shardviz.render.layouts.pen import Pen
from shardviz.render.palette import Palette
from shardviz.render.rounds.box_shape import BoxShape, page
from shardviz.render.rounds.device_box import BoxTitles, DeviceBoxes
from shardviz.render.rounds.device_map import DeviceMap, Pair, SwitchMap
from shardviz.render.rounds.round_traffic import RoundTraffic
from shardviz.stepping.collective_run import CollectiveRun

SWITCH, BAR = "switch", "━"
LISTED = 3
"""Chunks that are named one by one on a link."""
LINE, AROUND = "─", "┄"
UP_LINE, UP_AROUND = "│", "┆"
"""Links between neighbours, and those that go around the edge of the page."""


class DevicePicture:
    """Frame `number` of one group: a canvas of `width` columns and `height` lines.

    Frames of one page may share the `titles` of their boxes.
    """

    def __init__(
        self,
        walk: CollectiveRun,
        number: int,
        group: int,
        shape: BoxShape,
        arranged: DeviceMap,
        palette: Palette,
        titles: BoxTitles | None = None,
    ) -> None:
        self._shape, self._map = shape, arranged
        self._traffic = RoundTraffic(walk, number)
        titles = titles or BoxTitles(walk, group, shape, palette)
        self._boxes = DeviceBoxes(walk, number, group, shape, self._traffic, palette, titles)
        self._drawn: dict[int, list[Text]] = {}
        self._top = arranged.down(0, 0) is not None
        self._above = shape.above
        self._edge = shape.gap if arranged.across(0, 0) is not None else 0
        self.width, self.height = page(arranged, shape)

    def line(self, y: int, left: int, right: int) -> Text:
        """Columns `left` to `right` of a line."""
        shape = self._shape
        row, offset = divmod(y + (0 if self._top else self._above), shape.height + self._above)
        offset -= self._above
        pitch = shape.width + shape.gap
        first = max(0, (left - self._edge) // pitch)
        last = min(self._map.columns - 1, (right - self._edge) // pitch)
        pen = Pen(left, right)
        for column in range(first, last + 2):
            box = self._edge + column * pitch
            if column or self._edge:
                gap = self._beside(row, column, offset)
                if gap is not None:
                    pen.put_text(box - shape.gap, gap)
            if column <= last:
                pen.put_text(box, self._in_column(row, column, offset))
        found = pen.text()
        found.rstrip()
        return found

    def rows(self, member: int) -> tuple[int, int]:
        """The first line of a member's box, and the one after its last."""
        row, _ = self._map.place(member)
        first = row * (self._shape.height + self._above) + self._above * self._top
        return first, first + self._shape.height

    def _in_column(self, row: int, column: int, offset: int) -> Text:
        """A line of what stands in a column: a link above a box, or a line of the box."""
        width = self._shape.width
        if offset == -1 - self._above // 2 and not isinstance(self._map, SwitchMap):
            return self._link_above(row, column)
        if offset < 0:
            return self._between(row, column, offset)
        member = self._map.member(row, column)
        if member is not None:
            if member not in self._drawn:
                self._drawn[member] = self._boxes.lines(member)
            return self._drawn[member][offset]
        if self._map.corner(row, column) and offset <= self._middle:
            half = width // 2
            turn = f"{LINE * half}┘" if offset == self._middle else f"{' ' * half}{UP_LINE}"
            return Text(turn.ljust(width), DIM)
        return Text(" " * width)

    @property
    def _middle(self) -> int:
        """The line of a box beside which links to the right are drawn."""
        return (self._shape.height - 1) // 2

    def _beside(self, row: int, gap: int, offset: int) -> Text | None:
        """A line of the gap to the left of a column, or after the last one; None for blanks."""
        width = self._shape.gap
        if offset < 0:
            is_bar = isinstance(self._map, SwitchMap) and offset == -2 and 0 < gap < self._map.columns
            return Text(BAR * width, DIM) if is_bar else None
        line = offset - self._middle
        if line not in (0, 1):
            return None
        pair = self._map.across(row, gap)
        if pair is None:
            return None
        there, back = (self._traffic.chunks(*ends) for ends in (pair, pair[::-1]))
        if line:
            return self._arrow(back, width, "←", LINE) if there and back else None
        around = not self._map.corner(row, gap) and pair != (
            self._map.member(row, gap - 1),
            self._map.member(row, gap),
        )
        shaft = AROUND if around else LINE
        if there:
            return self._arrow(there, width, "→", shaft)
        return self._arrow(back, width, "←", shaft) if back else Text(shaft * width, DIM)

    def _arrow(self, chunks: list[int] | int, width: int, head: str, shaft: str) -> Text:
        """``─α→``: as much of what moves as there is room for."""
        words = self._names(chunks, width - 1)
        room = width - 1 - words.cell_len
        before, after = shaft * (room // 2), shaft * (room - room // 2)
        if head == "←":
            return Text.assemble(head, before, words, after)
        return Text.assemble(before, words, after, head)

    def _between(self, row: int, column: int, offset: int) -> Text:
        """The rest of a link above a box; the bar that all devices of a switch hang on."""
        width = self._shape.width
        if isinstance(self._map, SwitchMap):
            if offset == -1:
                return self._link_above(row, column)
            name = f" {SWITCH} " if not column and not row else ""
            return Text(name.center(width, BAR), DIM)
        pair = self._map.down(row, column)
        if pair is None:
            return Text(" " * width)
        shaft = UP_AROUND if self._goes_around(pair, row, column) else UP_LINE
        return Text(f"{' ' * (width // 2)}{shaft}".ljust(width), DIM)

    def _link_above(self, row: int, column: int) -> Text:
        """The link above a box."""
        width = self._shape.width
        pair = self._map.down(row, column)
        if pair is None:
            return Text(" " * width)
        down, up = (self._traffic.chunks(*ends) for ends in (pair, pair[::-1]))
        if not down and not up:
            return self._between(row, column, 0)
        half = width // 2
        room = width - half - 1 if not (down and up) else half - 1
        words = [
            Text.assemble(head, self._names(chunks, room))
            for head, chunks in (("↓", down), ("↑", up))
            if chunks
        ]
        line = Text(" " * (half if len(words) == 1 else max(0, half - 1 - words[0].cell_len)))
        line.append_text(Text(" ").join(words))
        line.truncate(width)
        return line.append(" " * (width - line.cell_len))

    def _goes_around(self, pair: Pair, row: int, column: int) -> bool:
        if isinstance(self._map, SwitchMap) or self._map.corner(row, column):
            return False
        return pair != (self._map.member(row - 1, column), self._map.member(row, column))

    def _names(self, chunks: list[int] | int, room: int) -> Text:
        """The names of chunks in their colours, or how many they are; nothing where there is no room."""
        if isinstance(chunks, int):
            return Text(f"{chunks:,}" if len(f"{chunks:,}") <= room else "")
        ends = [chunks[0], chunks[-1]]
        runs_on = len(chunks) > LISTED - 1 and ends[1] - ends[0] == len(chunks) - 1
        shown = ends if runs_on else chunks[:LISTED]
        names = Text("–" if runs_on else ",").join(
            Text(self._boxes.name(chunk), self._boxes.style(chunk)) for chunk in shown
        )
        if (runs_on or len(chunks) <= LISTED) and names.cell_len <= room:
            return names
        many = plural(len(chunks), "chunk")
        few = f"{len(chunks):,}"
        return Text(many if len(many) <= room else few if len(few) <= room else "")
