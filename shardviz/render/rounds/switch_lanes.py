"""The devices of a group on a switch as lanes, a line each: for groups whose boxes do not fit the page."""

from __future__ import annotations

from dataclasses import dataclass

from rich.style import Style
from rich.text import Text

from shardviz.render.canvas import LineBuilder
from shardviz.render.palette import DIM
from shardviz.render.rounds.device_picture import BAR, LINE, SWITCH, GroupBoxes
from shardviz.render.rounds.pieces import FORMS, NAMES, cell_text, sampled
from shardviz.render.rounds.round_traffic import RoundTraffic

BRANCH, LAST = "┣", "┗"
BOLD = Style(bold=True)
GAP = 2
LINKS = (12, 9, 6)
"""Columns for what goes either way between a device and the switch."""
WAITING = len(" │ +99")
"""Columns for how much waits to go on."""


@dataclass(frozen=True)
class LaneShape:
    """Lanes of `width` columns, `rows` of them one below the other: what moves has `link` columns each way, a
    device's name `label`. Every cell has `cell` columns, with room for marks unless `bare`, and the form with
    the number `form` among `FORMS`."""

    rows: int
    width: int
    link: int
    label: int
    cell: int
    form: int = NAMES
    bare: bool = False


class SwitchLanes:
    """Frame `number` of one group as lanes; `part` and `lens` are those of `DevicePicture`."""

    def __init__(
        self,
        boxes: GroupBoxes,
        shape: LaneShape,
        number: int,
        part: float | None = None,
        lens: int | None = None,
    ) -> None:
        self._boxes, self._shape, self._part, self._lens = boxes, shape, part, lens
        run = boxes.run
        self.traffic = RoundTraffic(run, number)
        self._frame, self._rows = boxes.held(number if part is None else number - 1)
        self._size = run.schedule.pattern.group_size
        self._columns = -(-self._size // shape.rows)
        self.width = self._columns * (shape.width + GAP) - GAP
        self.height = 1 + shape.rows

    def line(self, y: int, left: int, right: int) -> Text:
        """Columns `left` to `right` of a line."""
        builder = LineBuilder(left, right)
        pitch = self._shape.width + GAP
        for column in range(self._columns):
            place = column * pitch
            if not y:
                name = f" {SWITCH} " if not column else ""
                rest = self._shape.width + GAP if column + 1 < self._columns else 1 + len(name)
                builder.put(place, f"{'┳' if column else '┏'}{name}".ljust(rest, BAR), DIM)
                continue
            member = column * self._shape.rows + y - 1
            if member < self._size and place < right and place + self._shape.width > left:
                self._put_lane(builder, place, member, y == self._shape.rows)
        found = builder.text()
        found.rstrip()
        return found

    def rows(self, member: int) -> tuple[int, int]:
        """The line of a member's lane, and the one after it."""
        row = 1 + member % self._shape.rows
        return row, row + 1

    def member_at(self, x: int, y: int) -> int | None:
        """The member whose lane is at a column of a line; None where there is none."""
        column = x // (self._shape.width + GAP)
        member = column * self._shape.rows + y - 1
        is_inside = 0 < y <= self._shape.rows and 0 <= column < self._columns and member < self._size
        return member if is_inside else None

    def _put_lane(self, builder: LineBuilder, place: int, member: int, is_last: bool) -> None:
        """Write a lane from a column on, piece by piece: a page has hundreds of them."""
        shape, boxes, part = self._shape, self._boxes, self._part
        is_last = is_last or member == self._size - 1
        builder.put(place, LAST if is_last else BRANCH, DIM)
        place += 1
        # First chunks go up to the switch, then down from it.
        for head, ends, gone in (
            ("←", (member, self._size), None if part is None else 2 * part),
            ("→", (self._size, member), None if part is None else 2 * part - 1),
        ):
            chunks = self.traffic.chunks(*ends)
            if chunks and (gone is None or 0 <= gone <= 1):
                builder.put_text(place, boxes.arrow(chunks, shape.link, head, LINE, gone))
            else:
                builder.put(place, LINE * shape.link, DIM)
            place += shape.link
        name = str(boxes.run.mesh.device_id(boxes.run.groups[boxes.group][member])).rjust(shape.label)
        if member == self._lens:
            builder.put(place, f"▹{name}◃", boxes.palette.lens)
        else:
            builder.put(place + 1, name, BOLD)
        builder.put_text(place + shape.label + 2, self._held(member))

    def _held(self, member: int) -> Text:
        """The cells of a device, or a bar of its chunks; nothing where they are not followed."""
        boxes = self._boxes
        if self._rows is not None:
            row = self._rows.row(boxes.group, member)
            waiting = f" │ +{len(row.passing)}" if row.passing else ""
            form, width, bare = FORMS[self._shape.form], self._shape.cell, self._shape.bare
            cells = (cell_text(cell, width, form, bare) for cell in row.cells)
            return Text("").join(cells).append(waiting, DIM)
        if self._frame is None:
            return Text()
        return boxes.bar(self._frame.needed(member))


def lane_shape(boxes: GroupBoxes) -> LaneShape:
    """The richest lanes that fit the page of the boxes; else those of which the most stand beside one
    another."""
    run = boxes.run
    size = run.schedule.pattern.group_size
    label = len(str(run.mesh.size - 1))
    lines = max(1, boxes.page_height - 1)
    count, more = 1, 0
    cells = [(boxes.shape.inside, NAMES, True)]
    if boxes.columns is not None:
        seen = sampled(run, boxes.group, boxes.columns, boxes.palette)
        count, more = len(boxes.columns), WAITING * seen.passing
        cells = [(longest + 2, form, False) for form, longest in seen.labels()]
        cells.append((seen.longest_name, NAMES, True))
    shapes = []
    for cell, form, bare in cells:
        for link in LINKS:
            width = 1 + 2 * link + label + 2 + cell * count + more
            beside = max(1, min((boxes.page_width + GAP) // (width + GAP), -(-size // lines)))
            shapes.append(LaneShape(-(-size // beside), width, link, label, cell, form, bare))
    fitting = (shape for shape in shapes if shape.rows <= lines and shape.width <= boxes.page_width)
    return next(fitting, None) or min(shapes, key=lambda shape: (shape.width > boxes.page_width, shape.rows))
