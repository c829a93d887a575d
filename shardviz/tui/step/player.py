"""Which round is shown, whether it plays, and how fast."""

from __future__ import annotations

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Rounds a second."""


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
        """How much of the way is done, 0 to 1."""
        return self.number / self.rounds if self.rounds else 0.0

    def go(self, number: int) -> None:
        """To a round, or the end that is nearer; who steps does not play."""
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
