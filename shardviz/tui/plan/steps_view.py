"""The view that the plan is shown in: its keys up and down belong to the steps."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from shardviz.tui.lines_view import LinesView


class StepsView(LinesView, inherit_bindings=False):
    """Lines that scroll by the page; the pane chooses steps with the arrows."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("pageup", "page_up", "Page up"),
        ("pagedown", "page_down", "Page down"),
        ("home", "scroll_home", "Top"),
        ("end", "scroll_end", "Bottom"),
    ]

    def bring_in(self, lines: range) -> None:
        """Scroll as little as shows these lines, the first of them at any rate; at the top, all above too."""
        height = self.size.height
        top = int(self.scroll_offset.y)
        if lines.stop > top + height:
            top = lines.stop - height
        top = min(top, lines.start)
        self.scroll_to(y=top if lines.stop > height else 0, animate=False)
