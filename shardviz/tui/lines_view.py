"""A scrolled view of lines that are drawn only where they are seen: the cost does not grow with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.geometry import Offset, Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from shardviz.render.lines import Canvas
from shardviz.tui.themes import Styled


class TextLines:
    """Lines that are there already."""

    def __init__(self, lines: Sequence[Text]) -> None:
        self._lines = lines
        self.width = max((line.cell_len for line in lines), default=0)
        self.height = len(lines)

    def line(self, y: int, left: int, right: int) -> Text:
        line = self._lines[y]
        return line if not left and line.cell_len <= right else line[left:right]


class LinesView(Styled, ScrollView, can_focus=True):
    """Shows a canvas; `show` replaces it and keeps the place. Only lines that changed are put on screen."""

    @dataclass
    class Clicked(Message):
        """The mouse was clicked on a column of a line of the canvas."""

        view: LinesView
        column: int
        line: int
        is_double: bool

    def __init__(self, canvas: Canvas | None = None, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.canvas: Canvas = canvas or TextLines(())
        self.virtual_size = Size(self.canvas.width, self.canvas.height)
        self._ground: Ground | None = None
        """The widget's own style, which takes as long to find as a line to draw."""
        self._on_screen: dict[int, Text | None] = {}
        """The lines that were drawn last; None for one below the canvas."""
        self._ahead: tuple[Canvas, tuple[Offset, int], dict[int, Text | None]]
        self._ahead = self.canvas, (Offset(), 0), {}
        """Lines of a canvas, scrolled to a place of a width, that were drawn and are not yet on screen."""

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._ground = None
        self._ahead[2].clear()

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is not None:
            self.post_message(self.Clicked(self, *(self.scroll_offset + offset), event.chain > 1))

    def show(self, canvas: Canvas) -> None:
        """Show another canvas in place of this one, or one that looks different now."""
        self.canvas = canvas
        size = Size(canvas.width, canvas.height)
        if self._bars(size) != (self.show_horizontal_scrollbar, self.show_vertical_scrollbar):
            self.virtual_size = size
            self.refresh()
            return
        if size != self.virtual_size:  # with the same scrollbars: nothing else on screen moves
            self.set_reactive(LinesView.virtual_size, size)
            if self.show_horizontal_scrollbar:
                self.horizontal_scrollbar.window_virtual_size = size.width
            if self.show_vertical_scrollbar:
                self.vertical_scrollbar.window_virtual_size = size.height
            self.scroll_x = min(self.scroll_x, self.max_scroll_x)
            self.scroll_y = min(self.scroll_y, self.max_scroll_y)
        width, height = self.size
        lines = {y: self._draw(y) for y in range(height)}
        changed = [y for y, line in lines.items() if y not in self._on_screen or line != self._on_screen[y]]
        self._ahead = canvas, self._window, {y: lines[y] for y in changed}
        if changed:
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    @property
    def _window(self) -> tuple[Offset, int]:
        return self.scroll_offset, self.size.width

    def _bars(self, size: Size) -> tuple[bool, bool]:
        """True for each of the horizontal and the vertical scrollbar that a canvas of a size needs."""
        width, height = self.container_size
        hides = self.styles.overflow_x == "hidden"
        across, down = not hides and size.width > width, size.height > height
        return across or (down and not hides and size.width >= width), down or (
            across and size.height >= height
        )

    def render_line(self, y: int) -> Strip:
        if self._ground is None:
            self._ground = Ground(self.rich_style)
        width = self.size.width
        canvas, window, ahead = self._ahead
        is_valid = canvas is self.canvas and window == self._window and y in ahead
        text = self._on_screen[y] = ahead.pop(y) if is_valid else self._draw(y)
        if text is None:
            return Strip.blank(width, self._ground.style)
        return self._ground.strip(text, width, self.app.console)

    def _draw(self, y: int) -> Text | None:
        """Line `y` of what is seen; None below the canvas."""
        left, top = self.scroll_offset
        row = top + y
        return self.draw_line(row, left, left + self.size.width) if row < self.canvas.height else None

    def draw_line(self, row: int, left: int, right: int) -> Text:
        return self.canvas.line(row, left, right)


class Ground:
    """A widget's own style, on which texts are put; the styles over it are found once."""

    def __init__(self, style: Style) -> None:
        self.style = style
        self._over: dict[str | Style, Style] = {}

    def strip(self, text: Text, width: int, console: Console) -> Strip:
        """A line of so many columns that begins with a text."""
        length = text.cell_len
        strip = Strip(self._segments(text, width - length, console), max(width, length))
        return strip if length <= width else strip.crop(0, width)

    def _segments(self, text: Text, blanks: int, console: Console) -> Iterable[Segment]:
        """A text with blanks behind it in as few pieces as it has styles beside one another; where none
        overlap, many times faster than Rich and Textual do it step by step."""
        ground, last = self.style, len(text.plain)
        plain = text.plain + " " * blanks
        if text.style and not text.spans:
            # Rich gives such a text no style.
            return [Segment(plain[:last], self._styled(text.style)), Segment(plain[last:], ground)]
        pieces: list[Segment] = []
        begin, end, style = 0, 0, ground
        for start, stop, said in text.spans:
            if start < end or text.style:
                return Segment.apply_style([*text.render(console), Segment(" " * blanks)], ground)
            if end < start and style is not ground:
                pieces.append(Segment(plain[begin:end], style))
                begin, style = end, ground
            following = self._styled(said)
            if following is not style:
                if begin < start:
                    pieces.append(Segment(plain[begin:start], style))
                begin, style = start, following
            end = min(stop, last)
        if style is not ground:
            pieces.append(Segment(plain[begin:end], style))
            begin = end
        return [*pieces, Segment(plain[begin:], ground)]

    def _styled(self, style: str | Style) -> Style:
        """A style over that of the ground: the same object each time."""
        if style not in self._over:
            combined = self.style + (style if isinstance(style, Style) else Style.parse(style))
            self._over[style] = self.style if combined == self.style else combined
        return self._over[style]
