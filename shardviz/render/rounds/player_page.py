"""A page of the player: lines above the picture, the picture of a round, lines below it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.lines import GLUE, sentence
from shardviz.render.palette import Palette
from shardviz.render.rounds.box_shape import BoxShape, box_shape, page
from shardviz.render.rounds.buffer_picture import Shape
from shardviz.render.rounds.buffer_table import BufferTable, TableShape, table_shape
from shardviz.render.rounds.device_box import FULL, NOTHING, SOME, BoxTitles
from shardviz.render.rounds.device_map import DeviceMap
from shardviz.render.rounds.device_picture import DevicePicture
from shardviz.render.rounds.looked_at import LookedAt, drawn_columns
from shardviz.render.rounds.player_lines import Account, progress_line, state_line, title_line, words_line
from shardviz.render.rounds.step_notes import SEPARATOR, marks
from shardviz.stepping.collective_run import PreparedRun

if TYPE_CHECKING:
    from shardviz.render.canvas import Canvas

View = Literal["devices", "table"]
LOW = 18
"""Lines below which a picture that needs them leaves room for nothing but the most important."""
LEAST = 2
"""Lines that the account and the marks have beside a picture that could do with more."""
BARS = f"{FULL * 4} chunks that are there, in order   {SOME} some of them   {NOTHING} none"
COUNTED = 16
"""Devices among which a sum is looked for that the legend can name."""


class Page:
    """A collective on a page of `width` columns and `height` lines; what rounds share is worked out once.

    `links_of` is the target whose links they are. `verdict` are the lines that JAX's verdict needs.
    """

    def __init__(
        self,
        stepped: PreparedRun,
        view: View,
        group: int,
        width: int,
        height: int,
        palette: Palette,
        lead: str,
        links_of: str = "",
        verdict: int = 1,
    ) -> None:
        self._stepped, self._view, self._group = stepped, view, group
        self._width, self._height, self.palette, self._lead = width, height, palette, lead
        self._account = Account(stepped.run, stepped.cost, links_of)
        self.verdict_lines = verdict
        self._low = height < LOW
        self._said: dict[int, Text] = {}
        self._noted: dict[int, list[Text]] = {}

    def head(self, number: int, speed: str) -> list[Text]:
        """What is played, how far it is, what is sent; before and after, what everyone has."""
        walk, drawn, width = self._stepped.run, self._stepped.drawn, self._width
        words = self._words(number)
        state = state_line(walk, drawn, number, width)
        lines = [
            title_line(walk, width, self.palette, self._lead),
            progress_line(walk, number, width, f"{speed}" if speed else ""),
        ]
        if self._low:
            return [*lines, state if state is not None else words]
        return [*lines, words, state if state is not None else Text()]

    def _words(self, number: int) -> Text:
        """`words_line`, found once for rounds that are alike."""
        walk = self._stepped.run
        key = number
        if number and isinstance(walk.chunk_bytes, int):
            phase, within = walk.schedule.phase(number)
            key = number - within if phase.alike else number
        if key not in self._said:
            self._said[key] = words_line(walk, number, self._width)
        return self._said[key]

    def foot(self, number: int, verdict: Sequence[Text]) -> list[Text]:
        """The account, whether JAX agrees, and the marks: at least the beginning of each, and all that there
        is room for under the picture."""
        parts = self._account.lines(number, self._width), verdict, self._notes(number)
        least = self._least(number, len(verdict))
        spare = self._height - len(self.head(number, "")) - self.canvas(number).height - 1 - sum(least)
        lines: list[Text] = []
        for part, kept in zip(parts, least, strict=True):
            more = max(0, min(len(part) - kept, spare))
            spare -= more
            lines += part[: kept + more]
        return lines

    def _least(self, number: int, verdict: int) -> tuple[int, int, int]:
        """The lines of the account, the verdict and the marks that stand there in any case."""
        if self._low:
            return 1, 0, 0
        account = len(self._account.lines(number, self._width))
        return min(account, LEAST), verdict, min(len(self._notes(number)), LEAST)

    def canvas(self, number: int) -> Canvas:
        """The picture of a round."""
        drawn = self._stepped.drawn
        if self._view == "table":
            return BufferTable(drawn, number, self._group, self._table, self.palette)
        shape, arranged = self._boxes
        return DevicePicture(drawn, number, self._group, shape, arranged, self.palette, self._titles)

    @cached_property
    def _room(self) -> int:
        """Lines that are left for the picture: a blank one stands under it where there is room."""
        beside = len(self.head(0, "")) + sum(self._least(0, self.verdict_lines)) + (not self._low)
        return self._height - beside

    @cached_property
    def _boxes(self) -> tuple[BoxShape, DeviceMap]:
        drawn, width, room = self._stepped.drawn, self._width, self._room
        found = box_shape(drawn, self._group, width, room, self.palette)
        if page(found[1], found[0])[1] <= room:
            return found
        # A column is the scrollbar's.
        return box_shape(drawn, self._group, width - 1, room, self.palette)

    @cached_property
    def _titles(self) -> BoxTitles:
        return BoxTitles(self._stepped.drawn, self._group, self._boxes[0], self.palette)

    @cached_property
    def _table(self) -> TableShape:
        return table_shape(self._stepped.drawn, self._group, self._width, self.palette)

    def _notes(self, number: int) -> list[Text]:
        """The marks of all frames, with a sum that is seen in this one, and what other groups do."""
        count = self._count(number)
        if count not in self._noted:
            parts = [self._marks(count), self._others]
            words = SEPARATOR.join(filter(None, parts))
            self._noted[count] = sentence(words, self._width, style="dim")
        return self._noted[count]

    def _marks(self, count: int) -> str:
        drawn = self._stepped.drawn
        if self._look is None:
            return BARS if drawn.followed else "too many chunks to follow who holds which"
        form = max((form for form, _ in self._look.labels()), default=0)
        return marks(drawn, [(self._look, Shape(form, 0, None))], count)

    @cached_property
    def _look(self) -> LookedAt | None:
        """What decides the marks; None where there are no cells."""
        columns = drawn_columns(self._stepped.drawn)
        if columns is None:
            return None
        return LookedAt(self._stepped.drawn, self._group, columns, self.palette)

    def _count(self, number: int) -> int:
        """Of how many addends a sum is that a round shows; the smallest one where it shows none."""
        drawn = self._stepped.drawn
        size = drawn.schedule.pattern.group_size
        if self._look is None or not drawn.schedule.pattern.reduces:
            return 0
        frame = drawn.frames[number]
        added = frame.sends is not None and bool(frame.sends.reduce.any())
        pieces = (piece for member in range(min(size, COUNTED)) for piece in frame.pieces(member))
        counts = {piece.count for piece in pieces if piece.count < size or (added and piece.arrived)} - {1}
        return min(counts, default=2)

    @cached_property
    def _others(self) -> str:
        others = len(self._stepped.run.groups) - 1
        if not others:
            return ""
        what = f"group {self._group + 1} of {others + 1}: {plural(others, 'other')} "
        return f"{what}{'does' if others == 1 else 'do'} the same".replace(" ", GLUE)
