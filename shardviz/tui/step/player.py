"""Playing a collective: the round that is shown, its picture, and the progress bar that answers the mouse."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from shardviz.render.palette import DONE, NEXT_PHASE, TO_DO
from shardviz.tui.lines_view import Ground, LinesView

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Rounds a second."""
SLIDE = (0.15, 0.5, 0.85)
"""How far the chunks of a round have gone in each picture of their way."""
SLIDE_S = 0.07
SHORTEST_S = 0.03
"""Seconds from one of these pictures to the next: as a rule, and below which there are none."""
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


class Slide:
    """The chunks of a round on their way: `part` is how far they are, 0 to 1; None while nothing moves."""

    def __init__(self) -> None:
        self._left: Sequence[float] = ()

    @property
    def part(self) -> float | None:
        return self._left[0] if self._left else None

    def begin(self) -> None:
        self._left = SLIDE

    def tick(self) -> None:
        """One picture on; after the last they have arrived."""
        self._left = self._left[1:]

    def stop(self) -> None:
        self._left = ()


def slide_seconds(speed: float | None) -> float:
    """Seconds between two pictures of a slide; 0 where rounds follow one another too fast for one.

    `speed` is in rounds a second; None where nothing plays.
    """
    if speed is None:
        return SLIDE_S
    seconds = 1 / (speed * (len(SLIDE) + 2))
    return min(SLIDE_S, seconds) if seconds >= SHORTEST_S else 0.0


class StepLines(Widget):
    """Lines above or below the picture; only those that changed are put on screen."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.lines: Sequence[Text] = ()
        self._ground: Ground | None = None

    def put(self, lines: Sequence[Text], layout: bool) -> None:
        """Show other lines; with `layout` the screen is laid out again."""
        before, self.lines = self.lines, lines
        if layout or len(before) != len(lines):
            self.refresh(layout=layout)
            return
        changed = [y for y, (old, new) in enumerate(zip(before, lines, strict=True)) if old != new]
        if changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._ground = None

    def render(self) -> Text:
        return Text("\n").join(self.lines)

    def render_line(self, y: int) -> Strip:
        if self.text_selection is not None or y >= len(self.lines):
            return super().render_line(y)
        if self._ground is None:
            self._ground = Ground(self.rich_style)
        return self._ground.strip(self.lines[y], self.size.width, self.app.console)


class StepHead(StepLines):
    """The lines above the picture: what is played, and how far it is."""

    class Scrubbed(Message):
        """The mouse is held down on the progress bar, at a part of its length, 0 to 1."""

        def __init__(self, part: float) -> None:
            super().__init__()
            self.part = part

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._held = False

    def on_mouse_down(self, event: events.MouseDown) -> None:
        bar = self._bar if event.y == BAR_LINE else None
        if bar is not None and bar.start() <= event.x < bar.end():
            self._held = True
            self.capture_mouse()
            self._scrub(event.x)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._held:
            self._scrub(event.x)

    def on_mouse_up(self) -> None:
        self._held = False
        self.release_mouse()

    @property
    def _bar(self) -> re.Match[str] | None:
        return BAR.search(self.lines[BAR_LINE].plain) if len(self.lines) > BAR_LINE else None

    def _scrub(self, x: int) -> None:
        """Beyond the ends of the bar is the end that is nearer."""
        if (bar := self._bar) is not None:
            last = max(1, bar.end() - bar.start() - 1)
            self.post_message(self.Scrubbed(min(max(0, x - bar.start()), last) / last))


class RoundView(LinesView, inherit_bindings=False):
    """Scrolls up and down by keys; arrows to the left and right belong to the rounds."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("up", "scroll_up", "Up"),
        ("down", "scroll_down", "Down"),
        ("pageup", "page_up", "Page up"),
        ("pagedown", "page_down", "Page down"),
    ]
