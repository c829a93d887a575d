"""The pictures of arrays, side by side or below one another, as one canvas; and one array as a page."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain, product
from typing import NamedTuple

from rich.style import Style
from rich.text import Text

from shardviz.planner.plan import Parts, Plan, decided_parts
from shardviz.render.layouts.array_grid import LEFT, MAX_ROWS, POINTED, ArrayGrid, Fit, Pointer, fits
from shardviz.render.layouts.cells import BlockCells, CellIndex, Cells, DeviceCells
from shardviz.render.lines import LineBuilder
from shardviz.render.palette import Palette
from shardviz.sharding import Layout

SIGN_WIDTH = 5
"""Columns between arrays, with the sign in their middle."""
ROOMY, BRIEF, _, BARE = range(4)
"""Places in what `fits` gives."""

Shelf = list[tuple[ArrayGrid, str]]
Shelves = list[Shelf]
"""Grids beside one another, each with the sign before it, and below one another."""

Fitted = tuple[Cells, tuple[Fit, ...]]
WIDEST = 6
"""Columns that a grown cell has for each of its lines, at most: with two it looks square. It has one at
least."""


class CellCursor(NamedTuple):
    """A cell of one of the canvas's arrays."""

    array: int
    cell: CellIndex


class Placed(NamedTuple):
    """An array's grid, the column and line of its corner, and the sign before its title. Under the title,
    `lead` lines are left empty, so that boxes side by side begin on one line."""

    grid: ArrayGrid
    x: int
    y: int
    lead: int
    sign: str
    shelf: int

    @property
    def bottom(self) -> int:
        return self.y + self.lead + self.grid.height

    @property
    def width(self) -> int:
        return max(self.grid.width, self.grid.title.cell_len + 2 * bool(self.sign and not self.x))


class LayoutCanvas:
    """Arrays at their places. The cost of `line` is that of what it shows, on a mesh of any size."""

    def __init__(self, shelves: Shelves, gap: int) -> None:
        self.arrays: list[Placed] = []
        self._gap = gap
        self._tops: list[int] = []
        self._shelves: list[list[Placed]] = []
        bottom = 0
        for number, shelf in enumerate(shelves):
            top = max(grid.top for grid, _ in shelf)
            placed, x = [], 0
            self._tops.append(bottom)
            for grid, sign in shelf:
                placed.append(Placed(grid, x, bottom, top - grid.top, sign, number))
                x += grid.width + SIGN_WIDTH
            self._shelves.append(placed)
            self.arrays += placed
            bottom = max(placed.bottom for placed in placed) + gap
        self.height = bottom - gap if shelves else 0
        self.width = max((array.x + array.width for array in self.arrays), default=0)

    def grown(self, width: int, height: int) -> LayoutCanvas:
        """The same arrays with cells that use a room of so many columns and lines, boxes of one size for one
        shape if there is room; side by side or below one another, as they fill more of it."""
        now = [[(placed.grid, placed.sign) for placed in shelf] for shelf in self._shelves]
        ways = [now]
        if len(self.arrays) <= 4:  # every way to place them is tried
            broken = map(list, product(*map(_breaks, now)))
            ways = [[shelf for shelves in way for shelf in shelves] for way in broken]
        grown = [_Grown(way, self._gap, width, height) for way in ways]
        fitting = sorted((way for way in grown if way.fits), key=lambda way: -way.filled)
        for way in fitting:
            alike = LayoutCanvas(way.shelves(alike=True), self._gap)
            if alike.width <= width and alike.height <= height:
                return alike
        return LayoutCanvas(fitting[0].shelves(), self._gap) if fitting else self

    def line(
        self,
        y: int,
        left: int,
        right: int,
        cursor: CellCursor | None = None,
        style: Style = POINTED,
        lens: int | None = None,
    ) -> Text:
        """Columns `left` to `right` of a line, with the cursor, and cells with the same data marked; so are
        those of the device at position `lens`, else, where cells are devices, of the cursor's device."""
        builder = LineBuilder(left, right)
        data = None if cursor is None else self.cells(cursor).data(cursor.cell)
        for index, placed in enumerate(self._shelves[bisect_right(self._tops, y) - 1]):
            x, row = placed.x, y - placed.y
            if placed.sign and row == 0:
                x = x - 3 if index else x
                builder.put(x, placed.sign, "bold")
                x += 3 if index else 2
            if 0 < row <= placed.lead or row >= placed.lead + placed.grid.height:
                continue
            pointer = None
            if cursor is not None and data is not None:
                here = self.arrays[cursor.array] is placed
                pointer = Pointer(cursor.cell if here else None, data, style)
                if lens is not None:
                    cells = placed.grid.cells
                    held = cells.index_of(lens) if cells.layout.holds_data(lens) else None
                    pointer = pointer._replace(device=held, device_style=cells.palette.lens)
                elif not here and isinstance(placed.grid.cells, DeviceCells):
                    position = self.cells(cursor).position(cursor.cell)
                    pointer = pointer._replace(device=placed.grid.cells.index_of(position))
            placed.grid.draw(builder, x, row - placed.lead if row else 0, pointer)
        return builder.text()

    def heading(self, y: int, left: int, right: int) -> Text | None:
        """The labels of the columns seen on a line, for the top of a window; None if no box goes on there."""
        builder = LineBuilder(left, right)
        for placed in self._shelves[bisect_right(self._tops, y) - 1]:
            line = placed.grid.heading_of(y - placed.y - placed.lead)
            if line is not None:
                placed.grid.draw(builder, placed.x, line, None)
        return builder.text() or None

    def cells(self, cursor: CellCursor) -> Cells:
        return self.arrays[cursor.array].grid.cells

    @property
    def all_cells(self) -> list[Cells]:
        return [array.grid.cells for array in self.arrays]

    def repeats(self, cursor: CellCursor) -> bool:
        """True if other cells may show the same data as the cursor's: other devices, or a second picture."""
        here = self.cells(cursor)
        if len(self.arrays) > len({cells.first for cells in self.all_cells}):
            return True
        return isinstance(here, DeviceCells) and math.prod(here.layout.parts) < here.layout.mesh.size

    def place_of(self, cursor: CellCursor) -> tuple[int, int, int]:
        """First column, line, and columns of the cursor's cell."""
        placed = self.arrays[cursor.array]
        x, y = placed.grid.place_of(cursor.cell)
        return placed.x + x, placed.y + placed.lead + y, placed.grid.fit.inner

    def around(self, cursor: CellCursor) -> tuple[int, int, int, int]:
        """First column, line, columns and lines of what should be seen where the cursor is."""
        placed = self.arrays[cursor.array]
        x, y, width, height = placed.grid.around(cursor.cell)
        top = placed.y if y == 0 else placed.y + placed.lead + y
        return placed.x + x, top, width, placed.y + placed.lead + y + height - top

    def cursor_at(self, x: int, y: int) -> CellCursor:
        """The cell at a column and a line, or one near it."""
        return self._nearest(self._shelves[max(0, bisect_right(self._tops, y) - 1)], x, y)

    def moved(self, cursor: CellCursor, right: int, down: int) -> CellCursor:
        """The cursor one cell on: in the array, and at its edge in the next array there, if there is one."""
        placed = self.arrays[cursor.array]
        index = placed.grid.beside(cursor.cell, right, down)
        if index is not None:
            return CellCursor(cursor.array, index)
        x, y, width = self.place_of(cursor)
        if right:
            other = cursor.array + right
            if not 0 <= other < len(self.arrays) or self.arrays[other].shelf != placed.shelf:
                return cursor
            next_ = self.arrays[other]
            column = 0 if right > 0 else next_.grid.width
            return CellCursor(other, next_.grid.index_at(column, y - next_.y - next_.lead))
        number = placed.shelf + down
        if not 0 <= number < len(self._shelves):
            return cursor
        shelf = self._shelves[number]
        return self._nearest(shelf, x + width // 2, shelf[0].y if down > 0 else placed.y)

    def _nearest(self, shelf: Sequence[Placed], x: int, y: int) -> CellCursor:
        placed = min(shelf, key=lambda placed: max(placed.x - x, x - placed.x - placed.grid.width + 1, 0))
        index = placed.grid.index_at(x - placed.x, y - placed.y - placed.lead)
        return CellCursor(self.arrays.index(placed), index)


class PointedLayout:
    """A canvas with a cursor in a window: the canvas that is shown."""

    def __init__(
        self, canvas: LayoutCanvas, cursor: CellCursor, *, focused: bool = True, lens: int | None = None
    ) -> None:
        self.canvas, self.cursor, self.lens = canvas, cursor, lens
        self._style = POINTED if focused else LEFT
        self.width, self.height = canvas.width, canvas.height

    def line(self, y: int, left: int, right: int) -> Text:
        return self.canvas.line(y, left, right, self.cursor, self._style, self.lens)


Numbered = tuple[Layout, int]
"""A layout and the number of its first block."""


def numbered_parts(plan: Plan, parts_of: Callable[[Plan], Parts] = decided_parts) -> list[list[Numbered]]:
    """For every part of the chain its layouts, `parts_of` the problem or of the einsum (`einsum_parts`), each
    with its first number. An intermediate keeps its numbers where the next part uses it; the partial sums of
    a block share its number."""
    first = 0
    seen: dict[str, int] = {}
    parts = []
    for operands, result in parts_of(plan):
        part = []
        for array in (*operands, result):
            layout = Layout(array, plan.problem.mesh)
            key = f"{array.name} {layout.spec}"
            if key not in seen:
                seen[key] = first
                first += layout.num_shards // plan.problem.mesh.group_size(layout.spec.unreduced)
            part.append((layout, seen[key]))
        parts.append(part)
    return parts


def count_of(parts: Iterable[Sequence[Numbered]]) -> int:
    return max(first + math.prod(layout.parts) for part in parts for layout, first in part)


def array_lines(
    parts: Sequence[Sequence[Numbered]], width: int, palette: Palette, most: int | None = None
) -> list[Text]:
    """The arrays of every part of a chain as they are printed, `most` bounds rows and columns of cells."""
    cells = [[BlockCells(layout, palette, first) for layout, first in part] for part in parts]
    fitted = [[(block, fits(block)) for block in part] for part in cells]
    canvas = _canvas(fitted, width, summary=most or MAX_ROWS)
    lines = [canvas.line(y, 0, width) for y in range(canvas.height)]
    for line in lines:
        line.rstrip()
    return lines


def arrange(parts: Sequence[Sequence[Cells]], width: int, height: int) -> LayoutCanvas:
    """The arrays of every part of a chain: side by side where `width` allows it, else on few lines; without
    lines between the rows of cells where not all fits `height`, and then with a column for the scrollbar."""
    fitted = [[(cells, fits(cells)) for cells in part] for part in parts]
    for columns, rules in ((width, True), (width, False), (width - 1, False)):
        canvas = _canvas(fitted, columns, rules=rules)
        if canvas.height <= height:
            break
    return canvas


def _canvas(
    parts: Sequence[Sequence[Fitted]], width: int, *, rules: bool = True, summary: int = 0
) -> LayoutCanvas:
    gap = int(rules)
    shelves: Shelves = []
    for part in parts:
        ways: list[Shelves] = [
            _shelved([_grid(fitted, level, width, across, rules, summary) for fitted in part], width)
            for level in (ROOMY, BRIEF)
            for across in ((0, 1) if any(cells.grids > 1 for cells, _ in part) else (0,))
        ]
        lowest = min(ways, key=lambda way: LayoutCanvas(way, gap).height)
        if shelves and not summary:
            # The result that ends one shelf begins the next one, if both have room beside one another.
            before, after = shelves[-1], lowest[0]
            result, operand = before[-1][0].cells, after[0][0].cells
            used = sum(grid.width + SIGN_WIDTH for grid, _ in (*before, *after[1:])) - SIGN_WIDTH
            if used <= width and (result.layout, result.first) == (operand.layout, operand.first):
                before += lowest.pop(0)[1:]
        shelves += lowest
    return LayoutCanvas(shelves, gap)


def _grid(fitted: Fitted, level: int, width: int, across: int, rules: bool, summary: int) -> ArrayGrid:
    """At that level if it fits the window, else at the next narrower one that does, else scrolled. A
    `summary`, of at most so many rows, leaves columns out before it gives up the names of devices."""
    cells, ways = fitted
    make = partial(_made, cells, page=width, rules=rules, across=across, summary=summary)
    if summary:
        fitting = [grid for grid in map(make, ways[level:BARE]) if grid.width <= width]
        return max(fitting, key=lambda grid: grid.merit) if fitting else make(ways[BARE])
    return next((grid for grid in map(make, ways[level:]) if grid.width <= width), None) or make(ways[BRIEF])


_made = lru_cache(maxsize=32)(ArrayGrid)
"""A grid, made once: ways that are tried one after the other have many in common."""


def _shelved(grids: Sequence[ArrayGrid], width: int) -> Shelves:
    signs = ["", *["·"] * (len(grids) - 2), *["→"] * (len(grids) > 1)]
    shelves: Shelves = []
    used = 0
    for grid, sign in zip(grids, signs, strict=True):
        if not shelves or used + SIGN_WIDTH + grid.width > width:
            shelves.append([])
            used = -SIGN_WIDTH
        shelves[-1].append((grid, sign))
        used += SIGN_WIDTH + grid.width
    return shelves


class _Grown:
    """The size of cells that use a room. Cells are so many lines taller everywhere; boxes of fewer rows end
    where those beside them do. Spare columns are shared alike by the arrays beside one another."""

    def __init__(self, shelves: Shelves, gap: int, width: int, height: int) -> None:
        self._before = shelves
        bottoms = [max(grid.height - grid.top for grid, _ in shelf) for shelf in shelves]
        used = sum(bottoms) + sum(max(grid.top for grid, _ in shelf) for shelf in shelves)
        left = height - used - gap * (len(shelves) - 1)
        most: dict[tuple[int, ...], int] = {}
        for grid, _ in chain.from_iterable(shelves):
            shape = grid.cells.layout.array.shape
            most[shape] = max(most.get(shape, 1), grid.down)
        rows = [max(most[grid.cells.layout.array.shape] for grid, _ in shelf) for shelf in shelves]
        self.fits = left >= 0
        taller = left // max(sum(rows), 1)
        self._cells = []
        for shelf, bottom, down in zip(shelves, bottoms, rows, strict=True):
            spare = width - sum(grid.width for grid, _ in shelf) - SIGN_WIDTH * (len(shelf) - 1)
            share = max(0, spare) // len(shelf)
            self._cells.append([self._cell(grid, bottom + down * taller, share) for grid, _ in shelf])

    @property
    def filled(self) -> int:
        grids = (grid for shelf in self._before for grid, _ in shelf)
        cells = (cell for shelf in self._cells for cell in shelf)
        return sum(
            grid.across * inner * grid.down * lines for grid, (inner, lines) in zip(grids, cells, strict=True)
        )

    def shelves(self, alike: bool = False) -> Shelves:
        """The arrays with cells of that size; `alike`: one size of box for a shape, which may not fit."""
        grids = [grid for grid, _ in chain.from_iterable(self._before)]
        sizes, groups = [*chain.from_iterable(self._cells)], defaultdict[tuple[int, ...], list[int]](list)
        for index, grid in enumerate(grids if alike else ()):
            if grid.cells.grids == 1:
                groups[grid.cells.layout.array.shape].append(index)
        for places in groups.values():
            of = [(grids[index], *sizes[index]) for index in places]
            inner = _of_equal_boxes([(grid.across, grid.fit.inner, inner, 1) for grid, inner, _ in of])
            lines = _of_equal_boxes([(grid.down, 1, lines, int(grid.rules)) for grid, _, lines in of])
            for index, *size in zip(places, inner, lines, strict=True):
                sizes[index] = size[0], size[1]
        cells = iter(sizes)
        return [[(grid.grown(*next(cells)), sign) for grid, sign in shelf] for shelf in self._before]

    def _cell(self, grid: ArrayGrid, bottom: int, share: int) -> tuple[int, int]:
        """Columns and lines of an array's cells, with a label as far from the left as from the right."""
        own = grid.fit.inner
        lines = 1 + (bottom - grid.height + grid.top) // grid.down
        wider = max(0, min(share // grid.across, WIDEST * lines - own)) // 2 * 2
        return own + wider, min(lines, own + wider)


def _of_equal_boxes(boxes: Sequence[tuple[int, int, int, int]]) -> list[int]:
    """The size of the cells of boxes to be equally long, from (cells, least size, present size, border)."""
    step = math.lcm(*(count for count, *_ in boxes))
    least = max(count * (least + border) for count, least, _, border in boxes)
    now = min(count * (size + border) for count, _, size, border in boxes)
    length = max(now // step, -(-least // step)) * step
    return [length // count - border for count, _, _, border in boxes]


def _breaks(shelf: Shelf) -> Iterator[Shelves]:
    yield [shelf]
    for first in range(1, len(shelf)):
        yield from ([shelf[:first], *rest] for rest in _breaks(shelf[first:]))
