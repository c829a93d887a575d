"""Playing a collective: the round that is shown, its picture, and the progress bar that answers the mouse."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import events
from textual.binding import BindingType
from textual.geometry import Region
from textual.message import Message
from textual.widgets import Static

from shardviz.render.palette import DONE, NEXT_PHASE, TO_DO
from shardviz.tui.lines_view import LinesView

if TYPE_CHECKING:
    from shardviz.render.canvas import Canvas

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Rounds a second."""
BAR = re.compile(f"[{DONE}{TO_DO}{NEXT_PHASE}]+")
BAR_LINE = 1


class Player:
    """A place among the rounds 0 (before any) to `rounds`; nothing here waits or draws."""

    def __init__(self) -> None:
        self.rounds = 0
        self.number = 0
        self.playing = False
        self.speed = 1.0

    def load(self, rounds: int, fraction: float = 0.0) -> None:
        """Other rounds, at a part of their way."""
        self.rounds = rounds
        self.number = round(fraction * rounds)
        self.playing = self.playing and self.number < rounds

    @property
    def fraction(self) -> float:
        """The part of the way that is done, 0 to 1."""
        return self.number / self.rounds if self.rounds else 0.0

    def go(self, number: int) -> None:
        """To a round, or the end that is nearer; playing stops."""
        self.playing = False
        self.number = min(max(number, 0), self.rounds)

    def toggle(self) -> None:
        """Play, from the start where it is at its end; or pause."""
        self.playing = not self.playing and self.rounds > 0
        if self.playing and self.number == self.rounds:
            self.number = 0

    def tick(self) -> None:
        """One round on; playing stops at the last."""
        if self.playing:
            self.number += 1
            self.playing = self.number < self.rounds

    def faster(self, steps: int) -> None:
        """Another speed, `steps` doublings away or as far as there is one."""
        place = SPEEDS.index(self.speed) + steps
        self.speed = SPEEDS[min(max(place, 0), len(SPEEDS) - 1)]


class StepHead(Static):
    """The lines above the picture: what is played, and how far it is."""

    class BarClicked(Message):
        """The progress bar was clicked at a part of its length, 0 to 1."""

        def __init__(self, part: float) -> None:
            super().__init__()
            self.part = part

    def on_click(self, event: events.Click) -> None:
        lines = str(self.content).splitlines()
        bar = BAR.search(lines[BAR_LINE]) if event.y == BAR_LINE < len(lines) else None
        if bar is not None and bar.start() <= event.x < bar.end():
            last = max(1, bar.end() - bar.start() - 1)
            self.post_message(self.BarClicked((event.x - bar.start()) / last))


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
