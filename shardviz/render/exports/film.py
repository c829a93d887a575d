"""The rounds of a collective as pictures of one page, for a film, a player or a strip of pictures."""

from __future__ import annotations

from rich.text import Text

from shardviz.errors import QuestionError
from shardviz.render.lines import trimmed
from shardviz.render.palette import Palette
from shardviz.render.rounds.player import LOW, PlayedTable, PlayerPage
from shardviz.stepping.collective_run import CollectiveRun, prepare_run

MAX_ROUNDS = 256
"""Rounds of which anybody looks at pictures."""


def film(walk: CollectiveRun, width: int, height: int, palette: Palette) -> list[list[Text]]:
    """A frame before any round and one after each, of at most `height` lines of `width` columns.

    The devices stand where their links put them; where the page has no room for that, each has a line of a
    table. Raises `QuestionError` for more than `MAX_ROUNDS` rounds.
    """
    rounds = walk.schedule.rounds
    if rounds > MAX_ROUNDS:
        raise QuestionError(
            f"{walk.schedule.algorithm} has {rounds:,} rounds here, and {MAX_ROUNDS} can be drawn at most",
            "take a smaller mesh, or an algorithm with fewer rounds",
        )
    frames = _devices(walk, width, height, palette)
    if frames is None:
        stage = PlayedTable(walk, width, height, palette, "")
        frames = [stage.lines(number) for number in range(rounds + 1)]
    return frames


def frame_names(rounds: int) -> list[str]:
    """What each frame shows: "before any round", "round 1 of 3", …."""
    return ["before any round", *(f"round {number} of {rounds}" for number in range(1, rounds + 1))]


def _devices(walk: CollectiveRun, width: int, height: int, palette: Palette) -> list[list[Text]] | None:
    """The frames with a box for every device; None where one does not fit."""
    page = PlayerPage(
        prepare_run(walk.question, walk.links), "devices", 0, width, height, palette, "", verdict=0
    )
    frames = []
    for number in range(walk.schedule.rounds + 1):
        drawn = page.canvas(number)
        head, foot = page.head(number, ""), page.foot(number, ())
        blank = [Text()] * (height >= LOW)
        if drawn.width > width or sum(map(len, (head, blank, foot))) + drawn.height > height:
            return None
        picture = [drawn.line(y, 0, drawn.width) for y in range(drawn.height)]
        frames.append([trimmed(line, palette) for line in [*head, *picture, *blank, *foot]])
    return frames
