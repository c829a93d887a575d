"""A scrolled view of lines that are drawn only where they are seen: the cost does not grow with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

if TYPE_CHECKING:
    from shardviz.render.canvas import Canvas


class TextLines:
    """Lines that are there already."""

    def __init__(self, lines: Sequence[Text]) -> None:
        self._lines = lines
        self.width = max((line.cell_len for line in lines), default=0)
        self.height = len(lines)

    def line(self, y: int, left: int, right: int) -> Text:
        line = self._lines[y]
        return line if not left and line.cell_len <= right else line[left:right]


class LinesView(ScrollView, can_focus=True):
    """Shows a canvas; `show` replaces it and keeps the place."""

    DEFAULT_CSS = """
    LinesView { height: 1fr; width: 1fr; scrollbar-size: 1 1; }
    """

    def __init__(self, canvas: Canvas | None = None, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.canvas: Canvas = canvas or TextLines(())
        self.virtual_size = Size(self.canvas.width, self.canvas.height)
        self._ground: Style | None = None
        """The widget's own style, which takes as long to find as a line to draw."""

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._ground = None

    def show(self, canvas: Canvas) -> None:
        """Show another canvas in place of this one."""
        self.canvas = canvas
        self.virtual_size = Size(canvas.width, canvas.height)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        left, top = self.scroll_offset
        if self._ground is None:
            self._ground = self.rich_style
        width, row, style = self.size.width, top + y, self._ground
        if row >= self.canvas.height:
            return Strip.blank(width, style)
        text = self.draw_line(row, left, left + width)
        strip = Strip(self._segments(text), text.cell_len)
        return strip.crop_extend(0, width, style).apply_style(style)

    def draw_line(self, row: int, left: int, right: int) -> Text:
        """Columns `left` to `right` of a line of the canvas."""
        return self.canvas.line(row, left, right)

    def _segments(self, text: Text) -> Iterable[Segment]:
        """The text in pieces of one style; where no styles overlap, five times faster than Rich does it."""
        if text.style and not text.spans:
            # Rich gives such a text no style.
            return [Segment(text.plain, _style(text.style))]
        pieces, plain, end = [], text.plain, 0
        for span in text.spans:
            if span.start < end or text.style:
                return text.render(self.app.console)
            if span.start > end:
                pieces.append(Segment(plain[end : span.start]))
            pieces.append(Segment(plain[span.start : span.end], _style(span.style)))
            end = span.end
        return [*pieces, Segment(plain[end:])]


def _style(style: str | Style) -> Style:
    return style if isinstance(style, Style) else Style.parse(style)
