"""What stands in place of everything in a window too small for anything."""

from __future__ import annotations

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Static

LEAST = (40, 10)
"""Columns and lines that the application needs."""


def is_too_small(width: int, height: int) -> bool:
    """Whether nothing useful fits."""
    return width < LEAST[0] or height < LEAST[1]


class TooSmall(Screen[None]):
    """Says how large the window has to be, and goes when it is."""

    DEFAULT_CSS = """
    TooSmall { align: center middle; }
    TooSmall Static { width: 100%; text-align: center; }
    TooSmall ToastRack { display: none; }
    """

    def compose(self) -> ComposeResult:
        yield Static(markup=False)

    def on_resize(self, event: events.Resize) -> None:
        self._judge(*event.size)

    def on_screen_resume(self) -> None:
        """A dialog that was just about to open has stood above."""
        self._judge(*self.app.size)

    def _judge(self, width: int, height: int) -> None:
        if is_too_small(width, height):
            needed, given = ("×".join(map(str, size)) for size in (LEAST, (width, height)))
            self.query_one(Static).update(Text(f"shardviz needs {needed}; this window is {given}"))
        elif self.is_active:
            self.dismiss()

    def on_key(self, event: events.Key) -> None:
        """Only leaving works where nothing can be seen."""
        if event.key != "q":
            event.stop()
            event.prevent_default()
