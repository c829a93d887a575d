"""The lines above the picture of a round, in which the progress bar answers the mouse."""

from __future__ import annotations

import re

from textual import events
from textual.message import Message
from textual.widgets import Static

from shardviz.render.palette import DONE, NEXT_PHASE, TO_DO

BAR = re.compile(f"[{DONE}{TO_DO}{NEXT_PHASE}]+")
BAR_LINE = 1


class StepHead(Static):
    """What is played, and how far it is."""

    class Picked(Message):
        """The bar was clicked at a part of its length, 0 to 1."""

        def __init__(self, part: float) -> None:
            super().__init__()
            self.part = part

    def on_click(self, event: events.Click) -> None:
        lines = str(self.content).splitlines()
        bar = BAR.search(lines[BAR_LINE]) if event.y == BAR_LINE < len(lines) else None
        if bar is not None and bar.start() <= event.x < bar.end():
            last = max(1, bar.end() - bar.start() - 1)
            self.post_message(self.Picked((event.x - bar.start()) / last))
