"""Where the fields are drawn: it has the focus, and the keys go to the panel around it."""

from __future__ import annotations

from textual import events
from textual.message import Message

from shardviz.tui.lines_view import LinesView


class FieldsView(LinesView, inherit_bindings=False):
    """The view of a `FieldsPicture`."""

    class Picked(Message):
        """The mouse was pressed on line `y`, column `x` of the picture."""

        def __init__(self, x: int, y: int, is_double: bool) -> None:
            super().__init__()
            self.x, self.y, self.is_double = x, y, is_double

    def on_click(self, event: events.Click) -> None:
        left, top = self.scroll_offset
        self.post_message(self.Picked(event.x + left, event.y + top, event.chain > 1))
