"""The pictures of all arrays of a plan, side by side or below one another, as one large picture."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from rich.style import Style
from rich.text import Text

from shardviz.render.layouts.cells import Cells, DeviceCells, Spot
from shardviz.render.layouts.pen import Pen
from shardviz.render.layouts.plate import LEFT, POINTED, Fit, Plate, Pointer, fits

SIGN_WIDTH = 5
"""Columns between arrays, with the sign in their middle."""
ROOMY, BRIEF = range(2)
"""The first places in what `fits` gives, from which a narrower one may be taken."""

Shelves = list[list[tuple[Plate, str]]]
"""Plates beside one another, each with the sign before it, and below one another."""

Fitted = tuple[Cells, tuple[Fit, ...]]


class Cursor(NamedTuple):
    """A cell of one of the sheet's arrays."""

    array: int
    spot: Spot


class Placed(NamedTuple):
    """An array's plate, the column and line of its corner, and the sign before its title.

    Under the title, `lead` lines are left empty, so that boxes side by side begin on one line.
    """

    plate: Plate
    x: int
    y: int
    lead: int
    sign: str
    shelf: int

    @property
    def bottom(self) -> int:
        return self.y + self.lead + self.plate.height


class Sheet:
    """Arrays at their places. `line` costs as much as it shows, whatever the size of the mesh."""

    def __init__(self, shelves: Shelves, gap: int) -> None:
        self.arrays: list[Placed] = []
        self._tops: list[int] = []
        self._shelves: list[list[Placed]] = []
        bottom = 0
        for number, shelf in enumerate(shelves):
            top = max(plate.top for plate, _ in shelf)
            placed, x = [], 0
            self._tops.append(bottom)
            for plate, sign in shelf:
                placed.append(Placed(plate, x, bottom, top - plate.top, sign, number))
                x += plate.width + SIGN_WIDTH
            self._shelves.append(placed)
            self.arrays += placed
            bottom = max(each.bottom for each in placed) + gap
        self.height = bottom - gap if shelves else 0
        self.width = max((each.x + _title_width(each) for each in self.arrays), default=0)

    def line(
        self, y: int, left: int, right: int, cursor: Cursor | None = None, style: Style = POINTED
    ) -> Text:
        """Columns `left` to `right` of a line, with the cursor, and all cells with the same data marked; by
        device, also those of the same device."""
        pen = Pen(left, right)
        data = None if cursor is None else self.cells(cursor).data(cursor.spot)
        for place, each in enumerate(self._shelves[bisect_right(self._tops, y) - 1]):
            x, row = each.x, y - each.y
            if each.sign and row == 0:
                x = x - 3 if place else x
                pen.put(x, each.sign, "bold")
                x += 3 if place else 2
            if 0 < row <= each.lead or row >= each.lead + each.plate.height:
                continue
            pointer = None
            if cursor is not None and data is not None:
                here = self.arrays[cursor.array] is each
                device = None if here else self._device_in(each.plate.cells, cursor)
                pointer = Pointer(cursor.spot if here else None, data, style, device)
            each.plate.draw(pen, x, row - each.lead if row else 0, pointer)
        return pen.text()

    def heading(self, y: int, left: int, right: int) -> Text | None:
        """The labels of the columns seen on a line, for the top of a window; None if no box goes on there."""
        pen = Pen(left, right)
        for each in self._shelves[bisect_right(self._tops, y) - 1]:
            line = each.plate.heading_of(y - each.y - each.lead)
            if line is not None:
                each.plate.draw(pen, each.x, line, None)
        return pen.text() or None

    def cells(self, cursor: Cursor) -> Cells:
        """Those of the array that the cursor is in."""
        return self.arrays[cursor.array].plate.cells

    @property
    def all_cells(self) -> list[Cells]:
        """Those of every array."""
        return [each.plate.cells for each in self.arrays]

    def repeats(self, cursor: Cursor) -> bool:
        """Whether other cells may show the same data as the cursor's: other devices, or a second picture."""
        here = self.cells(cursor)
        if len(self.arrays) > len({cells.first for cells in self.all_cells}):
            return True
        return isinstance(here, DeviceCells) and math.prod(here.layout.parts) < here.layout.mesh.size

    def _device_in(self, cells: Cells, cursor: Cursor) -> Spot | None:
        """The cell of the cursor's device in another array; None where cells are blocks."""
        if not isinstance(cells, DeviceCells):
            return None
        return cells.spot(self.cells(cursor).position(cursor.spot))

    def place_of(self, cursor: Cursor) -> tuple[int, int, int]:
        """First column, line, and columns of the cursor's cell."""
        each = self.arrays[cursor.array]
        x, y = each.plate.place_of(cursor.spot)
        return each.x + x, each.y + each.lead + y, each.plate.fit.inner

    def around(self, cursor: Cursor) -> tuple[int, int, int, int]:
        """First column, line, columns and lines of what should be seen where the cursor is."""
        each = self.arrays[cursor.array]
        x, y, width, height = each.plate.around(cursor.spot)
        top = each.y if y == 0 else each.y + each.lead + y
        return each.x + x, top, width, each.y + each.lead + y + height - top

    def cursor_at(self, x: int, y: int) -> Cursor:
        """The cell at a column and a line, or one near it."""
        shelf = self._shelves[max(0, bisect_right(self._tops, y) - 1)]
        return self._nearest(shelf, x, y)

    def moved(self, cursor: Cursor, right: int, down: int) -> Cursor:
        """The cursor one cell on: in the array, and at its edge in the next array there, if there is one."""
        each = self.arrays[cursor.array]
        spot = each.plate.beside(cursor.spot, right, down)
        if spot is not None:
            return Cursor(cursor.array, spot)
        x, y, width = self.place_of(cursor)
        if right:
            other = cursor.array + right
            if not 0 <= other < len(self.arrays) or self.arrays[other].shelf != each.shelf:
                return cursor
            next_ = self.arrays[other]
            column = 0 if right > 0 else next_.plate.width
            return Cursor(other, next_.plate.spot_at(column, y - next_.y - next_.lead))
        number = each.shelf + down
        if not 0 <= number < len(self._shelves):
            return cursor
        shelf = self._shelves[number]
        return self._nearest(shelf, x + width // 2, shelf[0].y if down > 0 else each.y)

    def _nearest(self, shelf: Sequence[Placed], x: int, y: int) -> Cursor:
        found = min(shelf, key=lambda each: max(each.x - x, x - each.x - each.plate.width + 1, 0))
        spot = found.plate.spot_at(x - found.x, y - found.y - found.lead)
        return Cursor(self.arrays.index(found), spot)


class PointedSheet:
    """A sheet with a cursor in a window: the canvas that is shown."""

    def __init__(self, sheet: Sheet, cursor: Cursor, *, focused: bool = True) -> None:
        self.sheet = sheet
        self.cursor = cursor
        self._style = POINTED if focused else LEFT
        self.width = sheet.width
        self.height = sheet.height

    def line(self, y: int, left: int, right: int) -> Text:
        return self.sheet.line(y, left, right, self.cursor, self._style)


def arrange(parts: Sequence[Sequence[Cells]], width: int, height: int) -> Sheet:
    """The arrays of every part of a chain, as fits a window best.

    Side by side where `width` allows it, else on as few lines as can be; without lines between the rows of
    cells where all would not be seen within `height`. If they are not even then, a column is left for the
    scrollbar.
    """
    fitted = [[(cells, fits(cells)) for cells in part] for part in parts]
    for columns, rules in ((width, True), (width, False), (width - 1, False)):
        sheet = _sheet(fitted, columns, rules=rules)
        if sheet.height <= height:
            break
    return sheet


def _sheet(parts: Sequence[Sequence[Fitted]], width: int, *, rules: bool) -> Sheet:
    gap = int(rules)
    shelves: Shelves = []
    for part in parts:
        ways: list[Shelves] = [
            _shelved([_plate(fitted, level, width, across, rules) for fitted in part], width)
            for level in (ROOMY, BRIEF)
            for across in ((0, 1) if any(cells.grids > 1 for cells, _ in part) else (0,))
        ]
        shelves += min(ways, key=partial(_height, gap=gap))
    return Sheet(shelves, gap)


def _plate(fitted: Fitted, level: int, width: int, across: int, rules: bool) -> Plate:
    """At that level if it fits the window, else at the next narrower one that does, else scrolled."""
    cells, ways = fitted
    for fit in ways[level:]:
        plate = Plate(cells, fit, width, rules=rules, across=across)
        if plate.width <= width:
            return plate
    return Plate(cells, ways[BRIEF], width, rules=rules, across=across)


def _shelved(plates: Sequence[Plate], width: int) -> Shelves:
    """Plates with the sign before each, as many beside one another as fit."""
    signs = ["", *["·"] * (len(plates) - 2), *["→"] * (len(plates) > 1)]
    shelves: Shelves = []
    used = 0
    for plate, sign in zip(plates, signs, strict=True):
        if not shelves or used + SIGN_WIDTH + plate.width > width:
            shelves.append([])
            used = -SIGN_WIDTH
        shelves[-1].append((plate, sign))
        used += SIGN_WIDTH + plate.width
    return shelves


def _height(shelves: Shelves, gap: int) -> int:
    return Sheet(shelves, gap).height


def _title_width(each: Placed) -> int:
    """The columns of a plate, or of its title with a sign before it."""
    return max(each.plate.width, each.plate.title.cell_len + 2 * bool(each.sign and not each.x))
