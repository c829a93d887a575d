"""Playing a collective: the round that is shown, and its picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.binding import BindingType
from textual.message import Message
from textual.timer import Timer

from shardviz.render.palette import Palette
from shardviz.render.rounds import device_values
from shardviz.render.rounds.player import LOW, PlayerPage
from shardviz.stepping.plan_run import PlanRun
from shardviz.tui.lines_view import LinesView, TextLines

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Rounds a second."""


class PlanPage:
    """A plan of which each step is a picture, numbered as there; before the first are the arguments."""

    lens: int | None = None

    def __init__(self, run: PlanRun, size: tuple[int, int], palette: Palette, verdict: int) -> None:
        self._run, self.palette, self.verdict_lines = run, palette, verdict
        self._width, self._is_low = size[0] - 1, size[1] < LOW

    def head(self, number: int, speed: str) -> list[Text]:
        where = f"step {number} of {len(self._run.steps)}"
        return [Text.assemble((where, "bold"), f"  {speed}"), Text()]

    def foot(self, _number: int, verdict: Sequence[Text]) -> list[Text]:
        """The sizes, and JAX's verdict; on a low page its first line."""
        return (
            [*verdict[:1]] if self._is_low else [*device_values.size_lines(self._run, self._width), *verdict]
        )

    def canvas(self, number: int) -> TextLines:
        """The numbers of every device before and after a step."""
        return TextLines(device_values.step_lines(self._run, number, self._width, self.palette))

    def position_at(self, _number: int, _x: int, _y: int) -> None:
        """No device: an array stands for all that hold it."""


class Rounds(LinesView, inherit_bindings=False):
    """The picture of round `number` of `rounds`; 0 is before any. It plays `speed` rounds a second by itself.
    `page` has the pictures; None where nothing is played.
    Scrolls up and down by keys; arrows to the left and right belong to the rounds."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("up", "scroll_up", "Up"),
        ("down", "scroll_down", "Down"),
        ("pageup", "page_up", "Page up"),
        ("pagedown", "page_down", "Page down"),
    ]

    class RoundChanged(Message):
        """Another round is shown, or playing has begun or ended."""

    def __init__(self) -> None:
        super().__init__()
        self.rounds = self.number = 0
        self.playing, self.speed = False, 1.0
        self.page: PlayerPage | PlanPage | None = None
        self.timer: Timer | None = None

    @property
    def fraction(self) -> float:
        """The part of the way that is done, 0 to 1."""
        return self.number / self.rounds if self.rounds else 0.0

    def load(self, rounds: int, fraction: float = 0.0) -> None:
        self.rounds, self.number = rounds, round(fraction * rounds)
        self.playing = self.playing and self.number < rounds
        self._keep_time()

    def play(self) -> None:
        """Play, from the start where it is at its end; or pause."""
        self.playing = not self.playing and self.rounds > 0
        if self.playing and self.number == self.rounds:
            self.number = 0
        self._keep_time()
        self.post_message(self.RoundChanged())

    def faster(self, steps: int) -> None:
        """Another speed, `steps` doublings away or as far as there is one."""
        index = SPEEDS.index(self.speed) + steps
        self.speed = SPEEDS[min(max(index, 0), len(SPEEDS) - 1)]
        self._keep_time()
        self.post_message(self.RoundChanged())

    def step(self, steps: int) -> None:
        self.go(self.number + steps)

    def to_end(self) -> None:
        self.go(self.rounds)

    def go(self, number: int) -> None:
        self.playing = False
        self._show_round(min(max(number, 0), self.rounds))

    def tick(self) -> None:
        if self.playing and self.display and self.page is not None:
            self.playing = self.number + 1 < self.rounds
            self._show_round(self.number + 1)

    def draw(self) -> None:
        if self.page is not None:
            self.show(self.page.canvas(self.number))

    def _show_round(self, number: int) -> None:
        self.number = number
        if not self.playing:
            self._keep_time()
        self.post_message(self.RoundChanged())

    def _keep_time(self) -> None:
        """A timer at the speed of playing, else none."""
        if self.timer is not None:
            self.timer.stop()
        self.timer = self.set_interval(1 / self.speed, self.tick) if self.playing else None
