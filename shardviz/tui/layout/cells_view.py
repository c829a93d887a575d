"""The picture of all arrays, and the cursor in it."""

from __future__ import annotations

from rich.text import Text
from textual import events
from textual.geometry import Region
from textual.message import Message

from shardviz.render.layouts.cells import DeviceCells
from shardviz.render.layouts.layout_canvas import CellCursor, LayoutCanvas, PointedLayout
from shardviz.tui.lines_view import LinesView


class CellsView(LinesView, inherit_bindings=False):
    """Shows the canvas of a layout; the view follows the cursor."""

    class Pointed(Message):
        """A cell was pointed at with the mouse."""

        def __init__(self, cursor: CellCursor) -> None:
            super().__init__()
            self.cursor = cursor

    def point(self, layout: LayoutCanvas, cursor: CellCursor) -> None:
        """Show a layout with the cursor at a cell, and bring that into view."""
        before = self.canvas
        canvas = PointedLayout(layout, cursor, focused=self.has_focus)
        if isinstance(before, PointedLayout) and before.canvas is layout:
            self.canvas = canvas
            self._redraw(before, canvas)
        else:
            self.show(canvas)
        self._follow()

    def watch_has_focus(self, has_focus: bool) -> None:
        """The cursor stands out while keys move it."""
        super().watch_has_focus(has_focus)
        if isinstance(self.canvas, PointedLayout):
            self.canvas = PointedLayout(self.canvas.canvas, self.canvas.cursor, focused=has_focus)
            self.refresh_lines(self.canvas.canvas.place_of(self.canvas.cursor)[1])

    def draw_line(self, row: int, left: int, right: int) -> Text:
        """The first line that is seen names the columns, where those above it are out of sight."""
        if row == self.scroll_offset.y and isinstance(self.canvas, PointedLayout):
            heading = self.canvas.canvas.heading(row, left, right)
            if heading is not None:
                return heading
        return super().draw_line(row, left, right)

    def on_resize(self) -> None:
        """Less may be seen now: not less than the cursor."""
        self._follow()

    def _follow(self) -> None:
        if not isinstance(self.canvas, PointedLayout):
            return
        around = Region(*self.canvas.canvas.around(self.canvas.cursor))
        self.scroll_to_region(around, animate=False, force=True)

    def on_click(self, event: events.Click) -> None:
        """Point at the cell under the mouse."""
        if isinstance(self.canvas, PointedLayout):
            left, top = self.scroll_offset
            self.post_message(self.Pointed(self.canvas.canvas.cursor_at(event.x + left, event.y + top)))

    def _redraw(self, before: PointedLayout, after: PointedLayout) -> None:
        """Draw the lines again that differ: the cursor's, and all seen ones where other cells are marked."""
        layout = before.canvas
        old, new = before.cursor, after.cursor
        is_one_of_many = isinstance(layout.cells(new), DeviceCells) and len(layout.arrays) > 1
        same_data = layout.cells(old).data(old.cell) == layout.cells(new).data(new.cell)
        if not is_one_of_many and (same_data or not (layout.repeats(old) or layout.repeats(new))):
            self.refresh_lines(layout.place_of(old)[1])
            self.refresh_lines(layout.place_of(new)[1])
        else:
            self.refresh()
