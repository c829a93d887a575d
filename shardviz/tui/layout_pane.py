"""The layout screen: the arrays as grids of cells, and the cell under the cursor in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.text import Text
from textual.app import ComposeResult
from textual.geometry import Region

from shardviz.errors import ShardvizError
from shardviz.forms.wording import as_sentence
from shardviz.planner.plan import decided_parts, einsum_parts
from shardviz.render.layouts.cells import BlockCells, CellIndex, Cells, DeviceCells
from shardviz.render.layouts.layout_canvas import (
    CellCursor,
    LayoutCanvas,
    Numbered,
    PointedLayout,
    arrange,
    numbered_parts,
)
from shardviz.render.layouts.layout_view import DevicePlacement, cell_details, device_lines, device_placements
from shardviz.render.lines import sentence
from shardviz.tui.lines_view import LinesView, TextLines
from shardviz.tui.pane import Pane
from shardviz.tui.registry import LAYOUT, bindings

if TYPE_CHECKING:
    from shardviz.lessons.measures import AnswerLocation
    from shardviz.tui.state import EditorState


BESIDE = 140
"""From so many columns the words stand beside the picture, where they have this many."""
WORDS_WIDTH = 44


class LayoutView(NamedTuple):
    """The array and the device's position under the cursor; no array where nothing is shown."""

    array: str = ""
    position: int = 0
    by_device: bool = False
    at_einsum: bool = False


class LayoutPane(Pane):
    """The arrays by their blocks, or by the devices of the mesh."""

    area = "layout"
    BINDINGS = bindings(LAYOUT)

    def __init__(self, state: EditorState) -> None:
        super().__init__(state)
        self._parts: list[list[Numbered]] = []
        self._placements: Sequence[DevicePlacement] = ()
        self._by_device = False
        self._at_einsum = False
        self._begins_at: AnswerLocation | None = None
        """The place of the cursor as soon as the screen has a size."""
        self.canvas = LayoutCanvas([], 0)
        self.cursor = CellCursor(0, CellIndex(0, 0, 0))

    def compose(self) -> ComposeResult:
        yield CellsView(id="cells")
        yield LinesView(id="words")

    def show_problem(self) -> None:
        resolved = self.state.resolved
        try:
            self._parts = numbered_parts(resolved.plan, einsum_parts if self._at_einsum else decided_parts)
        except ShardvizError as error:
            self._parts, self.canvas, width = [], LayoutCanvas([], 0), max(self.size.width, 20)
            said = sentence(as_sentence(error.message), width)
            self._view.styles.height = "1fr"
            self._view.show(TextLines([*said, *sentence(as_sentence(error.hint), width, style="dim")]))
            self.query_one("#words", LinesView).show(TextLines(()))
            return
        self._placements = device_placements(resolved)
        self._arrange()

    def begin(self, location: AnswerLocation) -> None:
        self._begins_at = location
        self._by_device = self._at_einsum = False
        self.show_problem()

    def on_resize(self) -> None:
        self._arrange()

    def show_lens(self) -> None:
        """Put the cursor on what the marked device holds."""
        if not self.canvas.arrays:
            return
        lens, cells = self.state.lens, self._cells
        if lens is not None and cells.layout.holds_data(lens):
            self.cursor = CellCursor(self.cursor.array, cells.index_of(lens))
        self._point(self.cursor)

    def show_step(self) -> None:
        """Put the cursor in the array that the step makes; it stays with its device."""
        array = self.state.resolved.plan.steps[self.state.step_number - 1].array
        if self.canvas.arrays:
            self._point_at(array, self._position)

    @property
    def view(self) -> LayoutView:
        if not self.canvas.arrays:
            return LayoutView()
        return LayoutView(self._cells.layout.array.name, self._position, self._by_device, self._at_einsum)

    def show_view(self, view: LayoutView) -> None:
        """Show the arrays as in another window, with the cursor where it is there."""
        if (self._by_device, self._at_einsum) != (view.by_device, view.at_einsum):
            self._by_device, self._at_einsum = view.by_device, view.at_einsum
            self.show_problem()
        self._point_at(view.array, view.position)

    def _point_at(self, array: str, position: int) -> None:
        """Put the cursor on what a device holds of an array, if that is shown."""
        names = [cells.layout.array.name for cells in self.canvas.all_cells]
        if array in names and position < self.state.resolved.problem.mesh.size:
            index = names.index(array)
            self._point(CellCursor(index, self.canvas.all_cells[index].index_of(position)))

    def action_mark(self) -> None:
        if self.canvas.arrays:
            index, lens = self.cursor.cell, self.state.lens
            is_marked = lens is not None and self._cells.index_of(lens) == index
            self.state.set_lens(None if is_marked else self._cells.position(index))

    def on_lines_view_clicked(self, message: LinesView.Clicked) -> None:
        if message.view is self._view and self.canvas.arrays:
            self._point(self.canvas.cursor_at(message.column, message.line))

    def action_view(self) -> None:
        if not self.canvas.arrays:
            return
        position = self._position
        self._by_device = not self._by_device
        self._arrange()
        self._point(CellCursor(self.cursor.array, self._cells.index_of(position)))

    def action_moment(self) -> None:
        self._at_einsum = not self._at_einsum
        self.show_problem()

    def action_next_array(self, step: int) -> None:
        if self.canvas.arrays:
            array = (self.cursor.array + step) % len(self.canvas.arrays)
            self._point(CellCursor(array, CellIndex(0, 0, 0)))

    def action_move(self, right: int, down: int) -> None:
        if self.canvas.arrays:
            self._point(self.canvas.moved(self.cursor, right, down))

    def action_row_end(self, side: int) -> None:
        if self.canvas.arrays:
            column = 0 if side < 0 else self._cells.last.column
            self._point(CellCursor(self.cursor.array, self.cursor.cell._replace(column=column)))

    def action_page(self, side: int) -> None:
        if self.canvas.arrays:
            x, y, width = self.canvas.place_of(self.cursor)
            target = y + side * max(1, self._view.size.height - 2)
            self._point(self.canvas.cursor_at(x + width // 2, min(max(target, 0), self.canvas.height - 1)))

    @property
    def _view(self) -> CellsView:
        return self.query_one(CellsView)

    @property
    def _cells(self) -> Cells:
        return self.canvas.cells(self.cursor)

    @property
    def _position(self) -> int:
        """The device of the cursor's cell: of several the marked one, else the first."""
        cells, lens = self._cells, self.state.lens
        if lens is not None and cells.layout.holds_data(lens) and cells.index_of(lens) == self.cursor.cell:
            return lens
        return cells.position(self.cursor.cell)

    def _arrange(self) -> None:
        """Lay all arrays out for the size that the screen has."""
        width, height = self.size
        if not self._parts or not width:
            return
        beside = width >= BESIDE
        self.set_class(beside, "beside")
        kind = DeviceCells if self._by_device else BlockCells
        parts = [[kind(layout, self.palette, first) for layout, first in part] for part in self._parts]
        words = 5 if height <= 16 else 6 if height <= 26 else 8  # lines under the picture
        room = (width - WORDS_WIDTH, height) if beside else (width, height - words)
        self.canvas = arrange(parts, *room)
        if self._begins_at is not None:
            begin, self._begins_at, cells = self._begins_at, None, self.canvas.all_cells
            names = [cell.layout.array.name for cell in cells]
            array = names.index(begin.array) if begin.array in names else 0
            self.cursor = CellCursor(array, cells[array].index_of(begin.position))
        else:
            array = min(self.cursor.array, len(self.canvas.arrays) - 1)
            last = self.canvas.arrays[array].grid.cells.last
            self.cursor = CellCursor(array, CellIndex(*map(min, self.cursor.cell, last)))
        if not beside:  # the picture does not grow over words
            room = (width, height - max(words, len(self._said(width))))
        self.canvas = self.canvas.grown(*room)
        self._point(self.cursor)

    def _point(self, cursor: CellCursor) -> None:
        """Put the cursor on a cell. The picture has what the words below leave it, at least a half."""
        self.cursor = cursor
        width, height = self.size
        room = height
        if self.has_class("beside"):
            width = WORDS_WIDTH - 2
            self._view.styles.height = "100%"
        else:
            lines = self.canvas.height + (self.canvas.width > width)
            picture = min(lines, max(height - 1 - len(self._of_cell(width)), height // 2))
            self._view.styles.height = picture
            room -= picture
        self._view.point(self.canvas, cursor, self.state.lens)
        said = self._said(width)
        if len(said) > room:  # a column is the scrollbar's
            said = self._said(width - 1)
        self.query_one("#words", LinesView).show(TextLines(said))

    def _said(self, width: int) -> list[Text]:
        """The way of showing, ``by array, at the einsum ───── v by device``; the cursor's cell; by device,
        also what the cursor's holds of the other arrays."""
        now, other = ("by device", "by array") if self._by_device else ("by array", "by device")
        now += ", at the einsum" * self._at_einsum
        key = f"{' m as given ' * self._at_einsum} v {other}"
        heading = Text.assemble((f"{now} ", "bold"), ("─" * (width - len(now) - 1 - len(key)) + key, "dim"))
        lines = [heading, *self._of_cell(width)]
        if self._by_device:
            here = self._cells
            others = {str(cells.layout): cells for cells in self.canvas.all_cells}
            others.pop(str(here.layout))
            if held := device_lines([*others.values()], here.position(self.cursor.cell), width):
                lines += [Text(), Text("and of the other arrays", "dim"), *held]
        return lines

    def _of_cell(self, width: int) -> list[Text]:
        # The fields of the problem have the bytes of each array.
        has_bytes = self._at_einsum or not self.is_beside("ProblemPanel")
        return cell_details(self._cells, self.cursor.cell, width, self._placements, has_bytes)


class CellsView(LinesView, inherit_bindings=False):
    """Shows the canvas of a layout; the view follows the cursor."""

    def point(self, layout: LayoutCanvas, cursor: CellCursor, lens: int | None) -> None:
        """Show a layout with the cursor at a cell, bring that into view, and mark a device. Where only the
        cursor has moved, its lines are drawn again, and all where it marks other cells."""
        before = self.canvas
        after = PointedLayout(layout, cursor, focused=self.has_focus, lens=lens)
        if isinstance(before, PointedLayout) and before.canvas is layout and before.lens == lens:
            self.canvas, old = after, before.cursor
            is_by_device = isinstance(layout.cells(cursor), DeviceCells)
            is_one_of_many = is_by_device and len(layout.arrays) > 1 and lens is None
            same_data = layout.cells(old).data(old.cell) == layout.cells(cursor).data(cursor.cell)
            if not is_one_of_many and (same_data or not (layout.repeats(old) or layout.repeats(cursor))):
                self.refresh_lines(layout.place_of(old)[1])
                self.refresh_lines(layout.place_of(cursor)[1])
            else:
                self.refresh()
        else:
            self.show(after)
        self.on_resize()

    def watch_has_focus(self, has_focus: bool) -> None:
        """The cursor stands out while keys move it."""
        super().watch_has_focus(has_focus)
        if isinstance(self.canvas, PointedLayout):
            layout, cursor, lens = self.canvas.canvas, self.canvas.cursor, self.canvas.lens
            self.canvas = PointedLayout(layout, cursor, focused=has_focus, lens=lens)
            self.refresh_lines(layout.place_of(cursor)[1])

    def draw_line(self, row: int, left: int, right: int) -> Text:
        """The first line that is seen names the columns, where those above it are out of sight."""
        if row == self.scroll_offset.y and isinstance(self.canvas, PointedLayout):
            heading = self.canvas.canvas.heading(row, left, right)
            if heading is not None:
                return heading
        return super().draw_line(row, left, right)

    def on_resize(self) -> None:
        if isinstance(self.canvas, PointedLayout):
            around = Region(*self.canvas.canvas.around(self.canvas.cursor))
            self.scroll_to_region(around, animate=False, force=True)
