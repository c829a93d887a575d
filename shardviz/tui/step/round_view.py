"""The picture of a round on screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import BindingType
from textual.geometry import Region

from shardviz.tui.lines_view import LinesView

if TYPE_CHECKING:
    from shardviz.render.canvas import Canvas


class RoundView(LinesView, inherit_bindings=False):
    """Scrolls up and down by keys; arrows to the left and right belong to the rounds.

    From round to round only the lines that change are put on screen again.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        ("up", "scroll_up", "Up"),
        ("down", "scroll_down", "Down"),
        ("pageup", "page_up", "Page up"),
        ("pagedown", "page_down", "Page down"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._drawn: dict[tuple[int, int, int], Text] = {}

    def show(self, canvas: Canvas) -> None:
        before, self._drawn = self._drawn, {}
        if (canvas.width, canvas.height) != (self.canvas.width, self.canvas.height):
            super().show(canvas)
            return
        self.canvas = canvas
        left, top = self.scroll_offset
        rows = range(top, min(top + self.size.height, canvas.height))
        places = [(row, left, left + self.size.width) for row in rows]
        changed = [place[0] - top for place in places if before.get(place) != self.draw_line(*place)]
        if changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def draw_line(self, row: int, left: int, right: int) -> Text:
        place = (row, left, right)
        if place not in self._drawn:
            self._drawn[place] = super().draw_line(*place)
        return self._drawn[place]

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._drawn.clear()
