"""All cells of one array as grids, of which any line is drawn at the cost of what is seen of it."""

from __future__ import annotations

from typing import NamedTuple

from rich.style import Style
from rich.text import Text

from shardviz.render.caption import array_text
from shardviz.render.layouts.cells import Cells, Spot
from shardviz.render.layouts.grid import DIM, ROOMY, Edge, cell_text
from shardviz.render.layouts.pen import Pen
from shardviz.render.units import times

GAP = 3
"""Columns between the grids of an array."""
REMEMBERED = 5000
"""Cells of which the text is kept."""
CURSOR = ("▸", "◂")
SAME = ("›", "‹")
DEVICE = ("▹", "◃")
"""What stands left and right in the cell under the cursor, in those that hold the same data, and in those of
the same device."""
POINTED = Style(bold=True, reverse=True)
LEFT = Style(bold=True)
"""The cursor while keys go to it, and while they go elsewhere."""
MATCHED = Style(bold=True, underline=True)


class Fit(NamedTuple):
    """How many columns a cell has, and whether its glyph is among them."""

    inner: int
    glyphs: bool


class Drawn(NamedTuple):
    """A cell as it stands on screen, and its data as `Cells.data` tells them apart."""

    text: str
    style: Style
    data: tuple[int, int]


class Pointer(NamedTuple):
    """The cell under the cursor, None where it is in another array, its data, and how it is drawn.

    `device` is the cell of the cursor's device where the cells of another array are devices.
    """

    spot: Spot | None
    data: tuple[int, int]
    style: Style
    device: Spot | None = None


def fits(cells: Cells) -> tuple[Fit, ...]:
    """Ways to draw an array's cells, the roomiest first: with long labels, short ones, without glyphs.

    All cells are as wide as the widest needs; the first and the last ones are looked at.
    """
    last = cells.last
    ends = {Spot(0, row, column) for row in (0, last.row) for column in (0, last.column)} | {last}
    corners = [cells.cell(spot, ROOMY) for spot in ends]
    widest_glyph = max(len(corner.glyph) for corner in corners)
    partial = 2 * corners[0].partial
    heading = max((_widest(cells.columns, 0) + 1, _title_width(cells.columns)))
    roomy = max(len(corner.fitting(ROOMY)) for corner in corners) + widest_glyph + 3 + partial
    brief = max(len(corner.brief) for corner in corners) + widest_glyph + 3
    bare = max(len(corner.labels[-1]) for corner in corners) + 2
    return Fit(max(roomy, heading), True), Fit(brief, True), Fit(bare, False)


def _title_width(edge: Edge) -> int:
    """What each column gives for the title above them all."""
    return -(-(edge.title.cell_len + 1) // edge.count) - 1


def _widest(edge: Edge, labeling: int) -> int:
    """The width of the widest of an edge's labels: the last has the most digits everywhere."""
    return edge.labelings[labeling](edge.count - 1).cell_len if edge.labelings else 0


class Plate:
    """An array's title and, under it, its grids, `across` of them beside one another.

    With `rules`, cells are parted by lines and dimensions stand at the edges; without, rows follow one
    another, and the shape stands in the title if it has room. Columns and lines count from the plate's own
    corner.
    """

    def __init__(self, cells: Cells, fit: Fit, page: int, *, rules: bool, across: int = 0) -> None:
        self.cells = cells
        self.fit = fit
        self.rules = rules
        self._drawn: dict[Spot, Drawn] = {}
        layout = cells.layout
        self.title = array_text(layout.array, layout.mesh, cells.palette)
        self._row_title = cells.rows.title if rules else Text()
        self._column_title = cells.columns.title if rules else Text()
        self._row_labeling = self._labeling(cells.rows, max(page // 4, 6))
        self._column_labeling = self._labeling(cells.columns, fit.inner)
        labels = 0 if self._row_labeling is None else _widest(cells.rows, self._row_labeling)
        gutter = max(labels, self._row_title.cell_len)
        self._gutter = gutter + 1 if gutter else 0
        self._header = sum(
            (cells.grids > 1, self._column_title.cell_len > 0, self._column_labeling is not None)
        )
        self._pitch = 2 if rules else 1
        last = self._pitch * cells.rows.count + 1 + (not rules)
        self._grid_height = self._header + last
        self._band_height = self._grid_height + (rules and cells.grids > 1)
        boxes = self._gutter + cells.columns.count * (fit.inner + 1) + 1
        heads = [self._gutter + 1 + self._column_title.cell_len]
        if cells.grids > 1:
            heads.append(cells.title(cells.grids - 1).cell_len)
        self._grid_width = max(boxes, *heads)
        beside = max(1, (page + GAP) // (self._grid_width + GAP))
        self._across = min(across or beside, cells.grids)
        shape = f"  {times(layout.array.shape)}"
        if not rules and self.title.cell_len + len(shape) <= self._across * (self._grid_width + GAP) - GAP:
            self.title.append(shape, DIM)
        self.width = max(self.title.cell_len, self._across * (self._grid_width + GAP) - GAP)
        bands = -(-cells.grids // self._across)
        self.height = 1 + bands * self._band_height - (self._band_height - self._grid_height)

    @property
    def top(self) -> int:
        """The line of the first box's upper border."""
        return 1 + self._header

    def draw(self, pen: Pen, left: int, y: int, pointer: Pointer | None) -> None:
        """Draw line `y` of the plate, whose corner is at column `left` of the pen's line."""
        if y == 0:
            pen.put_text(min(max(left, pen.left), left + self.width - self.title.cell_len), self.title)
            return
        band, line = divmod(y - 1, self._band_height)
        if line >= self._grid_height:
            return
        step = self._grid_width + GAP
        for place in range(max(0, (pen.left - left) // step), self._across):
            corner, grid = left + place * step, band * self._across + place
            if corner >= pen.right or grid >= self.cells.grids:
                break
            if line < self._header:
                self._draw_header(pen, corner, grid, line)
            else:
                self._draw_box(pen, corner, grid, line - self._header, pointer)

    def spot_at(self, x: int, y: int) -> Spot:
        """The cell at a column and a line, or the one next to it."""
        cells = self.cells
        band = max(0, y - 1) // self._band_height
        place = min(max(0, x) // (self._grid_width + GAP), self._across - 1)
        grid = min(band * self._across + place, cells.grids - 1)
        band, place = divmod(grid, self._across)
        row = (y - 1 - band * self._band_height - self._header - 1) // self._pitch
        column = (x - place * (self._grid_width + GAP) - self._gutter - 1) // (self.fit.inner + 1)
        return Spot(
            grid, min(max(row, 0), cells.rows.count - 1), min(max(column, 0), cells.columns.count - 1)
        )

    def place_of(self, spot: Spot) -> tuple[int, int]:
        """The first column and the line of a cell."""
        band, place = divmod(spot.grid, self._across)
        x = place * (self._grid_width + GAP) + self._gutter + 1 + spot.column * (self.fit.inner + 1)
        return x, 1 + band * self._band_height + self._header + 1 + spot.row * self._pitch

    def around(self, spot: Spot) -> tuple[int, int, int, int]:
        """First column, line, columns and lines of a cell and of the edges and titles that it is next to."""
        x, y = self.place_of(spot)
        left = x - self._gutter - 1
        top = y - 1
        if spot.row == 0:
            top = 0 if spot.grid < self._across else y - 1 - self._header
        return left, top, x + self.fit.inner + 1 - left, y + 2 - top

    def heading_of(self, y: int) -> int | None:
        """The line of the columns' labels for a line between a box's borders; None if they have none."""
        band, line = divmod(y - 1, self._band_height)
        inside = self._header < line < self._grid_height - 1
        return (
            band * self._band_height + self._header if inside and self._column_labeling is not None else None
        )

    def beside(self, spot: Spot, right: int, down: int) -> Spot | None:
        """The next cell in a direction, over the edges of grids; None where the array ends."""
        cells = self.cells
        grid, row, column = spot.grid, spot.row + down, spot.column + right
        if not 0 <= column < cells.columns.count:
            if not 0 <= grid % self._across + right < self._across:
                return None
            grid, column = grid + right, 0 if right > 0 else cells.columns.count - 1
        if not 0 <= row < cells.rows.count:
            grid, row = grid + down * self._across, 0 if down > 0 else cells.rows.count - 1
        return Spot(grid, row, column) if 0 <= grid < cells.grids else None

    def _labeling(self, edge: Edge, room: int) -> int | None:
        """Which of an edge's labelings fits."""
        for number in range(len(edge.labelings)):
            if _widest(edge, number) <= room:
                return number
        return None

    def _draw_header(self, pen: Pen, corner: int, grid: int, line: int) -> None:
        """One of the lines above a box: the slice, the dimension across, the columns' labels."""
        if self.cells.grids > 1:
            if line == 0:
                pen.put_text(corner, self.cells.title(grid))
                return
            line -= 1
        if self._column_title.cell_len and line == 0:
            pen.put_text(corner + self._gutter + 1, self._column_title)
            return
        assert self._column_labeling is not None
        label_of, inner = self.cells.columns.labelings[self._column_labeling], self.fit.inner
        for column in self._columns(pen, corner):
            label = label_of(column)
            x = corner + self._gutter + 1 + column * (inner + 1)
            pen.put_text(x + (inner - label.cell_len) // 2, label)

    def _draw_box(self, pen: Pen, corner: int, grid: int, line: int, pointer: Pointer | None) -> None:
        """A line of a box with what stands left of it; line 0 is the upper border."""
        rows = self.cells.rows
        row, rest = divmod(line - 1, self._pitch)
        box, columns = corner + self._gutter, self._columns(pen, corner)
        if line == 0 or row >= rows.count or rest:
            if line == 0:
                self._put_left(pen, corner, self._row_title)
            ends = "┌┬┐" if line == 0 else "├┼┤" if row < rows.count - 1 else "└┴┘"
            self._draw_border(pen, box, columns, ends)
            return
        if self._row_labeling is not None:
            self._put_left(pen, corner, rows.labelings[self._row_labeling](row))
        for column in columns:
            x = box + column * (self.fit.inner + 1)
            spot = Spot(grid, row, column)
            drawn = self._cell(spot)
            text, style = drawn.text, drawn.style
            if pointer and spot == pointer.spot:
                text, style = CURSOR[0] + text[1:-1] + CURSOR[1], style + pointer.style
            elif pointer and spot == pointer.device:
                text, style = DEVICE[0] + text[1:-1] + DEVICE[1], style + LEFT
            elif pointer and drawn.data == pointer.data:
                text, style = SAME[0] + text[1:-1] + SAME[1], style + MATCHED
            pen.put(x, "│", DIM)
            pen.put(x + 1, text, style)
        pen.put(box + columns.stop * (self.fit.inner + 1), "│", DIM)

    def _draw_border(self, pen: Pen, box: int, columns: range, ends: str) -> None:
        first, last = columns.start, columns.stop
        left = ends[0] if first == 0 else ends[1]
        right = ends[2] if last == self.cells.columns.count else ends[1]
        line = left + ends[1].join(["─" * self.fit.inner] * len(columns)) + right
        pen.put(box + first * (self.fit.inner + 1), line, DIM)

    def _put_left(self, pen: Pen, corner: int, text: Text) -> None:
        """What stands left of a box, and stays in sight while its left side is not."""
        if self._gutter:
            corner = min(max(corner, pen.left), corner + self._grid_width - self._gutter)
            pen.put(corner, " " * (self._gutter - 1 - text.cell_len))
            pen.put_text(corner + self._gutter - 1 - text.cell_len, text)
            pen.put(corner + self._gutter - 1, " ")

    def _columns(self, pen: Pen, corner: int) -> range:
        """The columns of which something is seen; on the left only whole ones, beside the rows' labels."""
        step, box = self.fit.inner + 1, corner + self._gutter
        first = min(max(0, -(-(pen.left - corner) // step)), self.cells.columns.count - 1)
        return range(first, max(first + 1, min(self.cells.columns.count, (pen.right - box) // step + 1)))

    def _cell(self, spot: Spot) -> Drawn:
        drawn = self._drawn.get(spot)
        if drawn is None:
            if len(self._drawn) >= REMEMBERED:
                self._drawn.clear()
            cell = self.cells.cell(spot, self.fit.inner)
            text = cell_text(cell, self.fit.inner, self.fit.glyphs)
            drawn = self._drawn[spot] = Drawn(text, cell.style, self.cells.data(spot))
        return drawn
