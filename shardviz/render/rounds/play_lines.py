"""One frame of a collective as a picture of fixed height, for playing them one after another."""

from __future__ import annotations

from functools import cached_property

from rich.text import Text

from shardviz.render.lines import sentence, trimmed
from shardviz.render.palette import Palette
from shardviz.render.rounds.buffer_picture import BufferPicture, Shape, common_shape
from shardviz.render.rounds.round_words import round_words
from shardviz.render.rounds.step_notes import legend
from shardviz.render.rounds.step_view import MAX_ROWS, headline, shown_groups
from shardviz.stepping.collective_run import CollectiveRun

LOOKED_AT = 16
"""Frames that decide how wide cells are, and which marks are explained."""
DONE, TO_DO = "━", "─"
STOP = "any key stops"


class Stage:
    """All frames of a walk on one page: what they have in common is worked out once.

    `ending` says how the show is ended; empty where nothing ends it.
    """

    def __init__(
        self, walk: CollectiveRun, width: int, height: int, palette: Palette, ending: str = STOP
    ) -> None:
        self._ending = ending
        self.walk, self.width, self.height, self.palette = walk, width, height, palette
        self._top = headline(walk, width, palette)
        # A blank line, two of progress, another blank line; the columns' names.
        room = height - len(self._top) - 4
        groups = shown_groups(walk)
        if len(groups) * (walk.schedule.pattern.group_size + 1) > room - 1:
            groups = range(1)
        self._groups = groups
        self._rows = max(min(MAX_ROWS, room - 2), 1)

    def lines(self, number: int) -> list[Text]:
        """Exactly `height` lines for frame `number`; 0 is before any round."""
        shape, notes = self._common
        lines = [*self._top, Text(), *_progress(self.walk, number, self.width), Text()]
        lines += self._picture(number).lines(shape)
        room = self.height - len(lines)
        notes = notes if room > len(notes) else notes[-1:]
        lines += [Text() for _ in range(room - len(notes))]
        lines += notes
        return [trimmed(line, self.palette) for line in lines[: self.height]]

    @cached_property
    def _common(self) -> tuple[Shape, list[Text]]:
        rounds = self.walk.schedule.rounds
        seen = sorted({0, rounds, *range(0, rounds, max(rounds // LOOKED_AT, 1))})
        drawn = [self._picture(number) for number in seen]
        shape = common_shape(drawn)
        words = legend(self.walk, drawn, shape)
        said = "   ".join(filter(None, (words, self._ending)))
        return shape, sentence(said, self.width, style="dim")

    def _picture(self, number: int) -> BufferPicture:
        frame = self.walk.frames[number]
        return BufferPicture(self.walk, frame, self._groups, self.width, self.palette, self._rows)


def _progress(walk: CollectiveRun, number: int, width: int) -> list[Text]:
    """How far it is, and what has just been sent: two lines in every frame."""
    rounds = walk.schedule.rounds
    room = min(width - len(f"round {rounds} of {rounds}  "), 40)
    done = room * number // rounds if rounds else room
    where = f"round {number} of {rounds}".ljust(len(f"round {rounds} of {rounds}"))
    bar = Text.assemble((where, "bold"), "  ", (DONE * done, "bold"), (TO_DO * (room - done), "dim"))
    said = Text("before")
    if number:
        phase, _ = walk.schedule.phase(number)
        said = Text.assemble((walk.phase_name(phase), "bold"), f"  {round_words(walk, number)}")
    if said.cell_len > width:
        said = Text.assemble(said[: width - 1], "…")
    return [bar, said]
