"""All cells of one array as grids, of which any line is drawn at the cost of what is seen of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from rich.style import Style
from rich.text import Text

from shardviz.errors import plural
from shardviz.render.caption import array_text
from shardviz.render.layouts.cells import ROOMY, CellIndex, Cells, Edge
from shardviz.render.lines import LineBuilder, visible
from shardviz.render.palette import DIM
from shardviz.units import times

GAP = 3
"""Columns between the grids of an array."""
ELISION = 3
"""Columns of the place that stands for columns left out."""
MAX_ROWS, MAX_GRIDS = 16, 6
"""Rows and grids of an array beyond which a usual summary leaves some out; of several grids, half as many
rows."""
CURSOR = ("▸", "◂")
SAME = ("›", "‹")
DEVICE = ("▹", "◃")
"""Marks left and right in the cell under the cursor, in those that hold the same data, and in those of
the same device."""
POINTED = Style(bold=True, reverse=True)
LEFT = Style(bold=True)
"""The cursor while keys go to it, and while they go elsewhere."""


class Fit(NamedTuple):
    """The columns and lines of a cell; `glyphs`: its glyph is among them."""

    inner: int
    glyphs: bool
    lines: int = 1

    @property
    def middle(self) -> int:
        """The line of a cell that has its label and its marks."""
        return (self.lines - 1) // 2


class Pointer(NamedTuple):
    """The cell under the cursor, None where it is in another array, its data, and how it is drawn. `device`
    is the cell of the marked device, or else of the cursor's where the cells of another array are devices."""

    cell: CellIndex | None
    data: tuple[int, int]
    style: Style
    device: CellIndex | None = None
    device_style: Style = LEFT


def fits(cells: Cells) -> tuple[Fit, ...]:
    """Ways to draw an array's cells, the roomiest first: long labels, short ones, short ones without glyphs,
    counts of devices. All cells are as wide as the widest of the first and the last ones."""
    last = cells.last
    ends = {CellIndex(0, row, column) for row in (0, last.row) for column in (0, last.column)} | {last}
    corners = [cells.cell(index, ROOMY) for index in ends]
    widest_glyph = max(len(corner.glyph) for corner in corners)
    fill = 2 * bool(corners[0].fill)
    edge = cells.columns
    heading = max(_widest(edge, 0) + 1, -(-(edge.title.cell_len + 1) // edge.count) - 1)
    roomy = max(len(corner.fitting(ROOMY)) for corner in corners) + widest_glyph + 3 + fill
    brief = max(len(corner.brief) for corner in corners) + 2
    bare = max(len(corner.labels[-1]) for corner in corners) + 2
    return (
        Fit(max(roomy, heading), True),
        Fit(brief + widest_glyph + 1, True),
        Fit(brief, False),
        Fit(bare, False),
    )


def _widest(edge: Edge, labeling: int) -> int:
    return edge.labelings[labeling](edge.count - 1).cell_len if edge.labelings else 0


class ArrayGrid:
    """An array's title and, under it, its grids, `across` of them beside one another, on a `page` so wide.
    With `rules`, cells are parted by lines and dimensions stand at the edges; without, rows follow one
    another, and the shape may stand in the title. A `summary` has so many rows and grids, the first and the
    last, and of columns those that fit, of fewer rows than `MAX_ROWS` no more than rows."""

    def __init__(
        self, cells: Cells, fit: Fit, page: int, *, rules: bool, across: int = 0, summary: int = 0
    ) -> None:
        self.cells, self.fit, self.rules, self._page = cells, fit, rules, page
        self._cell = lru_cache(maxsize=5000)(self._drawn)
        self._grids: Sequence[int]
        self._rows: Sequence[int]
        layout, rows, columns = cells.layout, cells.rows.count, cells.columns.count
        self._slices = fit.lines > 2 and len(cells.slice_text(cells.last)) <= fit.inner - 2
        most = summary if cells.grids == 1 else summary // 2
        grids, lines = visible(cells.grids, MAX_GRIDS), visible(rows, most)
        self._grids = [each for each in grids if each is not None] if summary else range(cells.grids)
        self._rows = [row for row in lines if row is not None] if summary else range(rows)
        self._fold = len(self._rows) - 1 if len(self._rows) < rows else 0
        self.title = array_text(layout.array, layout.mesh, cells.palette)
        self.title.truncate(page, overflow="ellipsis")
        self._row_title = cells.rows.title.copy() if rules else Text()
        self._column_title = cells.columns.title.copy() if rules else Text()
        self._row_labeling, self._column_labeling = (
            next((number for number in range(len(edge.labelings)) if _widest(edge, number) <= room), None)
            for edge, room in ((cells.rows, max(page // 4, 6)), (cells.columns, fit.inner))
        )
        labels = 0 if self._row_labeling is None else _widest(cells.rows, self._row_labeling)
        self._row_title.truncate(max(page // 4, labels), overflow="ellipsis")
        gutter = max(labels, self._row_title.cell_len)
        self._gutter = gutter + 1 if gutter else 0
        self._columns: Sequence[int | None] = range(columns)
        room = page - self._gutter - 1
        fitting = columns
        if summary and columns * (fit.inner + 1) > room:
            fitting = min((room - ELISION - 1) // (fit.inner + 1) + 1, columns - 1)
        if 0 < summary < MAX_ROWS:
            fitting = min(fitting, summary)
        if fitting < columns > 2:
            self._columns = visible(columns, fitting)
        self._gap = len(self._columns) - 2 if None in self._columns[-2:-1] else len(self._columns)
        self._header = sum(
            (cells.grids > 1, self._column_title.cell_len > 0, self._column_labeling is not None)
        )
        self._pitch = fit.lines + rules
        last = self._pitch * len(self._rows) + 1 + (not rules)
        self._grid_height = self._header + last
        self._band_height = self._grid_height + (rules and cells.grids > 1)
        self._column_title.truncate(max(page - self._gutter - 1, 1), overflow="ellipsis")
        boxes = self._gutter + self._left_of(len(self._columns)) + 1
        heads = [self._gutter + 1 + self._column_title.cell_len]
        if cells.grids > 1:
            heads.append(cells.title(cells.grids - 1).cell_len)
        self._grid_width = max(boxes, *heads)
        beside = max(1, (page + GAP) // (self._grid_width + GAP))
        self._across = min(across or beside, len(self._grids))
        shape = f"  {times(layout.array.shape)}"
        if not rules and self.title.cell_len + len(shape) <= self._across * (self._grid_width + GAP) - GAP:
            self.title.append(shape, DIM)
        self.width = max(self.title.cell_len, self._across * (self._grid_width + GAP) - GAP)
        bands = -(-len(self._grids) // self._across)
        self.height = 1 + bands * self._band_height - (self._band_height - self._grid_height)
        self._remark = ""
        if left_out := cells.grids - len(self._grids):
            self._remark = f"{plural(left_out, 'slice')} before the last not shown"
        elif summary == MAX_ROWS and cells.grids == 1 and (self._fold or len(self._columns) < columns):
            self._remark = f"some of {times(layout.parts)} blocks"
        if self._remark:
            self.width = max(self.width, len(self._remark))
            self.height += 1

    def grown(self, inner: int, lines: int) -> ArrayGrid:
        fit = self.fit._replace(inner=inner, lines=lines)
        return ArrayGrid(self.cells, fit, self._page, rules=self.rules, across=self._across)

    @property
    def across(self) -> int:
        return self._across * len(self._columns)

    @property
    def down(self) -> int:
        return -(-len(self._grids) // self._across) * len(self._rows)

    @property
    def merit(self) -> tuple[bool, bool, int]:
        """The order of summaries: all columns, glyphs, more columns."""
        return None not in self._columns, self.fit.glyphs, len(self._columns)

    @property
    def top(self) -> int:
        """The line of the first box's upper border."""
        return 1 + self._header

    def draw(self, builder: LineBuilder, left: int, y: int, pointer: Pointer | None) -> None:
        """Draw line `y` of the grid, whose corner is at column `left` of the builder's line."""
        if y == 0:
            shown_from = min(max(left, builder.left), left + self.width - self.title.cell_len)
            builder.put_text(shown_from, self.title)
            return
        if self._remark and y == self.height - 1:
            builder.put(left, self._remark, DIM)
            return
        band, line = divmod(y - 1, self._band_height)
        if line >= self._grid_height:
            return
        step = self._grid_width + GAP
        for index in range(max(0, (builder.left - left) // step), self._across):
            corner, number = left + index * step, band * self._across + index
            if corner >= builder.right or number >= len(self._grids):
                break
            grid = self._grids[number]
            if line < self._header:
                self._draw_header(builder, corner, grid, line)
            else:
                self._draw_box(builder, corner, grid, line - self._header, pointer)

    def index_at(self, x: int, y: int) -> CellIndex:
        """The cell at a column and a line, or the one next to it."""
        cells = self.cells
        band = max(0, y - 1) // self._band_height
        index = min(max(0, x) // (self._grid_width + GAP), self._across - 1)
        grid = min(band * self._across + index, cells.grids - 1)
        band, index = divmod(grid, self._across)
        row = (y - 1 - band * self._band_height - self._header - 1) // self._pitch
        column = (x - index * (self._grid_width + GAP) - self._gutter - 1) // (self.fit.inner + 1)
        return CellIndex(grid, min(max(row, 0), cells.last.row), min(max(column, 0), cells.last.column))

    def place_of(self, index: CellIndex) -> tuple[int, int]:
        """The first column of a cell and the line of its label."""
        band, position = divmod(index.grid, self._across)
        x = position * (self._grid_width + GAP) + self._gutter + 1 + index.column * (self.fit.inner + 1)
        return x, 1 + band * self._band_height + self._header + 1 + index.row * self._pitch + self.fit.middle

    def around(self, index: CellIndex) -> tuple[int, int, int, int]:
        """First column, line, columns and lines of a cell and of the edges and titles that it is next to."""
        x, y = self.place_of(index)
        left = x - self._gutter - 1
        border = y - self.fit.middle - 1
        top = border
        if index.row == 0:
            top = 0 if index.grid < self._across else border - self._header
        return left, top, x + self.fit.inner + 1 - left, border + self.fit.lines + 2 - top

    def heading_of(self, y: int) -> int | None:
        """The line of the columns' labels for a line between a box's borders; None if they have none."""
        band, line = divmod(y - 1, self._band_height)
        has_labels = self._column_labeling is not None and self._header < line < self._grid_height - 1
        return band * self._band_height + self._header if has_labels else None

    def beside(self, index: CellIndex, right: int, down: int) -> CellIndex | None:
        """The next cell in a direction, over the edges of grids; None where the array ends."""
        cells = self.cells
        grid, row, column = index.grid, index.row + down, index.column + right
        if not 0 <= column < cells.columns.count:
            if not 0 <= grid % self._across + right < self._across:
                return None
            grid, column = grid + right, 0 if right > 0 else cells.columns.count - 1
        if not 0 <= row < cells.rows.count:
            grid, row = grid + down * self._across, 0 if down > 0 else cells.rows.count - 1
        return CellIndex(grid, row, column) if 0 <= grid < cells.grids else None

    def _draw_header(self, builder: LineBuilder, corner: int, grid: int, line: int) -> None:
        if self.cells.grids > 1:
            if line == 0:
                builder.put_text(corner, self.cells.title(grid))
                return
            line -= 1
        if self._column_title.cell_len and line == 0:
            builder.put_text(corner + self._gutter + 1, self._column_title)
            return
        assert self._column_labeling is not None
        label_of = self.cells.columns.labelings[self._column_labeling]
        for index in self._seen(builder, corner):
            column, width = self._columns[index], self._width_of(index)
            label = Text("…", DIM) if column is None else label_of(column)
            left = self._left_of(index) + (width - label.cell_len) // 2
            builder.put_text(corner + self._gutter + 1 + left, label)

    def _draw_box(
        self, builder: LineBuilder, corner: int, grid: int, line: int, pointer: Pointer | None
    ) -> None:
        """A line of a box and its label on the left; line 0 is the upper border."""
        number, rest = divmod(line - 1, self._pitch)
        box, seen = corner + self._gutter, self._seen(builder, corner)
        if line == 0 or number >= len(self._rows) or rest == self.fit.lines:
            if line == 0:
                self._put_left(builder, corner, self._row_title)
            ends = "┌┬┐" if line == 0 else "├┼┤" if number < len(self._rows) - 1 else "└┴┘"
            fills = ["─" * self._width_of(slot) for slot in seen]
            if line and number == self._fold - 1:  # in place of the rows that are left out
                self._put_left(builder, corner, Text("⋮", DIM))
                ends = "│││"
                signs = ("…" if self._columns[slot] is None else "⋮" for slot in seen)
                fills = [sign.center(self._width_of(slot)) for sign, slot in zip(signs, seen, strict=True)]
            left = ends[seen.start > 0]
            right = ends[2 if seen.stop == len(self._columns) else 1]
            builder.put(box + self._left_of(seen.start), left + ends[1].join(fills) + right, DIM)
            return
        row, is_label = self._rows[number], rest == self.fit.middle
        if self._row_labeling is not None and is_label:
            label_of = self.cells.rows.labelings[self._row_labeling]
            self._put_left(builder, corner, label_of(row))
        for number in seen:
            x, column = box + self._left_of(number), self._columns[number]
            builder.put(x, "│", DIM)
            if column is None:
                builder.put(x + 1, "…".center(self._width_of(number)), DIM)
                continue
            index = CellIndex(grid, row, column)
            lines, style, data = self._cell(index)
            text, marks = lines[rest], None
            if pointer and index == pointer.device:
                marks, style = DEVICE, style + pointer.device_style
            if pointer and is_label and index == pointer.cell:
                marks, style = CURSOR, style + pointer.style
            elif pointer and is_label and not marks and data == pointer.data:
                marks, style = SAME, style + Style(bold=True, underline=True)
            if marks and is_label:
                text = marks[0] + text[1:-1] + marks[1]
            builder.put(x + 1, text, style)
        builder.put(box + self._left_of(seen.stop), "│", DIM)

    def _put_left(self, builder: LineBuilder, corner: int, text: Text) -> None:
        """Write left of a box; the text stays in sight while the left side is not."""
        if self._gutter:
            corner = min(max(corner, builder.left), corner + self._grid_width - self._gutter)
            builder.put(corner, " " * (self._gutter - 1 - text.cell_len))
            builder.put_text(corner + self._gutter - 1 - text.cell_len, text)
            builder.put(corner + self._gutter - 1, " ")

    def _seen(self, builder: LineBuilder, corner: int) -> range:
        """Places of columns of which something is seen; on the left only whole ones, beside the labels."""
        step, box, count = self.fit.inner + 1, corner + self._gutter, len(self._columns)
        first = min(max(0, -(-(builder.left - corner) // step)), count - 1)
        return range(first, max(first + 1, min(count, (builder.right - box) // step + 2)))

    def _left_of(self, index: int) -> int:
        return index * (self.fit.inner + 1) - (self.fit.inner - ELISION) * (index > self._gap)

    def _width_of(self, index: int) -> int:
        return ELISION if index == self._gap else self.fit.inner

    def _drawn(self, index: CellIndex) -> tuple[Sequence[str], Style, tuple[int, int]]:
        """The lines and the style of a cell, and its data as `Cells.data` tells them apart."""
        cell = self.cells.cell(index, self.fit.inner)
        lines = [cell.filled("", self.fit.inner)] * self.fit.lines
        lines[self.fit.middle] = cell.text(self.fit.inner, self.fit.glyphs)
        if self._slices:
            lines[self.fit.middle + 1] = cell.filled(self.cells.slice_text(index), self.fit.inner)
        return lines, cell.style, self.cells.data(index)
