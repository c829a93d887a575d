"""The view of the fields, which has the focus, and the cursor among their cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.message import Message

from shardviz.render.problem_picture import FieldCell, FieldPlace, FieldRow, FieldsPicture
from shardviz.tui.lines_view import LinesView


class FieldsAndFigures:
    """A canvas of the fields, and below them of lines that no cursor goes to."""

    def __init__(self, fields: FieldsPicture, figures: Sequence[Text]) -> None:
        self._fields, self._figures = fields, figures
        self.width = fields.width
        self.height = fields.height + len(figures)

    def line(self, y: int, left: int, right: int) -> Text:
        if y < self._fields.height:
            return self._fields.line(y, left, right)
        return self._figures[y - self._fields.height][left:right]


class FieldsView(LinesView, inherit_bindings=False):
    """The view of `FieldsAndFigures`."""

    class Clicked(Message):
        """The mouse was pressed on line `y`, column `x` of the picture."""

        def __init__(self, x: int, y: int, is_double: bool) -> None:
            super().__init__()
            self.x, self.y, self.is_double = x, y, is_double

    def on_click(self, event: events.Click) -> None:
        left, top = self.scroll_offset
        self.post_message(self.Clicked(event.x + left, event.y + top, event.chain > 1))


@dataclass(frozen=True)
class Cursor:
    """FieldCell `index` of the row of `field`; what stands there may change, the cursor stays."""

    field: str = "mesh"
    index: int = 0


def cell_at(rows: Sequence[FieldRow], cursor: Cursor) -> FieldCell:
    """The cell under the cursor, or, where that is gone, the nearest before it."""
    row = next((row for row in rows if row.field == cursor.field), None)
    if row is None:
        row = [row for row in rows if row.is_array or not cursor.field.startswith("specs.")][-1]
    return row.cells[min(cursor.index, len(row.cells) - 1)]


def cursor_on(rows: Sequence[FieldRow], cell: FieldCell) -> Cursor:
    """The cursor that stands on a cell of the rows."""
    row = next(row for row in rows if row.field == cell.field)
    return Cursor(cell.field, row.cells.index(cell))


def moved(places: Sequence[FieldPlace], cell: FieldCell, direction: str) -> FieldCell:
    """The cell next to another: "up" and "down" the nearest on another line, "left" and "right" in its field.

    At the edge it is the same cell.
    """
    if direction in ("left", "right"):
        cells = list(dict.fromkeys(place.cell for place in places if place.cell.field == cell.field))
        number = cells.index(cell) + (1 if direction == "right" else -1)
        return cells[number] if 0 <= number < len(cells) else cell
    own = [place for place in places if place.cell == cell]
    start, is_up = own[0 if direction == "up" else -1], direction == "up"
    beyond = [place for place in places if (place.y < start.y if is_up else place.y > start.y)]
    if not beyond:
        return cell
    nearest = max(place.y for place in beyond) if is_up else min(place.y for place in beyond)
    line = [place for place in beyond if place.y == nearest]
    return min(line, key=lambda place: _distance(place, start)).cell


def _distance(place: FieldPlace, start: FieldPlace) -> int:
    """Columns between where two cells begin; none if the first is above or below the other."""
    if place.left <= start.left < place.right:
        return 0
    return abs(place.left - start.left)


def place_at(places: Sequence[FieldPlace], x: int, y: int) -> FieldPlace | None:
    """The cell in a column of a line, or the nearest on that line."""
    line = [place for place in places if place.y == y]
    return min(line, key=lambda place: max(place.left - x, x - place.right + 1, 0), default=None)
