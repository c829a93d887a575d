"""The view of a layout's canvas, which follows its cursor and draws only what a move changes."""

from __future__ import annotations

from rich.text import Text
from textual.geometry import Region

from shardviz.render.layouts.cells import DeviceCells
from shardviz.render.layouts.layout_canvas import CellCursor, LayoutCanvas, PointedLayout
from shardviz.tui.lines_view import LinesView


class CellsView(LinesView, inherit_bindings=False):
    """Shows the canvas of a layout; the view follows the cursor."""

    def point(self, layout: LayoutCanvas, cursor: CellCursor, lens: int | None) -> None:
        """Show a layout with the cursor at a cell, bring that into view, and mark a device."""
        before = self.canvas
        canvas = PointedLayout(layout, cursor, focused=self.has_focus, lens=lens)
        if isinstance(before, PointedLayout) and before.canvas is layout and before.lens == lens:
            self.canvas = canvas
            self._redraw(before, canvas)
        else:
            self.show(canvas)
        self._follow()

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
        self._follow()

    def _follow(self) -> None:
        if not isinstance(self.canvas, PointedLayout):
            return
        around = Region(*self.canvas.canvas.around(self.canvas.cursor))
        self.scroll_to_region(around, animate=False, force=True)

    def _redraw(self, before: PointedLayout, after: PointedLayout) -> None:
        """Draw the lines again that differ: the cursor's, and all seen ones where other cells are marked."""
        layout = before.canvas
        old, new = before.cursor, after.cursor
        is_by_device = isinstance(layout.cells(new), DeviceCells)
        is_one_of_many = is_by_device and len(layout.arrays) > 1 and after.lens is None
        same_data = layout.cells(old).data(old.cell) == layout.cells(new).data(new.cell)
        if not is_one_of_many and (same_data or not (layout.repeats(old) or layout.repeats(new))):
            self.refresh_lines(layout.place_of(old)[1])
            self.refresh_lines(layout.place_of(new)[1])
        else:
            self.refresh()
