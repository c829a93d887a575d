"""Playing a collective: the round that is shown, and its picture."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from shardviz.tui.lines_view import LinesView

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Rounds a second."""
SLIDE = (0.15, 0.5, 0.85)
"""How far the chunks of a round have gone in each picture of their way."""
SLIDE_S = 0.07
"""Seconds from one of these pictures to the next."""
FASTEST_SLIDE = 4.0
"""Rounds a second beyond which there are no such pictures."""


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
        index = SPEEDS.index(self.speed) + steps
        self.speed = SPEEDS[min(max(index, 0), len(SPEEDS) - 1)]


class StepLines(LinesView, can_focus=False, inherit_bindings=False):
    """Lines above or below the picture, as high as they are many."""

    DEFAULT_CSS = """
    StepLines { height: 0; overflow: hidden; }
    """


class RoundView(LinesView, inherit_bindings=False):
    """Scrolls up and down by keys; arrows to the left and right belong to the rounds."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("up", "scroll_up", "Up"),
        ("down", "scroll_down", "Down"),
        ("pageup", "page_up", "Page up"),
        ("pagedown", "page_down", "Page down"),
    ]
