"""One frame of a collective as a picture of fixed height, for playing them one after another."""

from __future__ import annotations

from rich.text import Text

from shardviz.render.buffer_picture import BufferPicture
from shardviz.render.lines import trimmed
from shardviz.render.palette import Palette
from shardviz.render.sends_line import sends_line
from shardviz.render.step_view import MAX_ROWS, headline, shown_groups
from shardviz.render.units import human_bytes
from shardviz.stepping.walk import Walk

LOOKED_AT = 16
"""Frames that decide how wide cells are."""
DONE, TO_DO = "━", "─"


def play_lines(walk: Walk, number: int, width: int, height: int, palette: Palette) -> list[Text]:
    """Exactly `height` lines for frame `number` (0: before any round; `len(walk.frames) - 1`: after all)."""
    top = [*headline(walk, width, palette), Text(), *_progress(walk, number, width)]
    room = height - len(top) - 1
    groups = shown_groups(walk)
    if len(groups) * (walk.schedule.pattern.group_size + 1) > room:
        groups = range(1)
    rows = max(min(MAX_ROWS, room - 1), 1)
    rounds = walk.schedule.rounds
    step = max(rounds // LOOKED_AT, 1)
    seen = {0, number, rounds, *range(0, rounds, step)}
    drawn = {
        each: BufferPicture(walk, walk.frames[each], groups, width, palette, rows) for each in sorted(seen)
    }
    cell = max(picture.cell_width for picture in drawn.values())
    lines = [*top, Text(), *drawn[number].lines(cell)]
    lines = [trimmed(line, palette) for line in lines[:height]]
    return lines + [Text() for _ in range(height - len(lines))]


def _progress(walk: Walk, number: int, width: int) -> list[Text]:
    """How far it is, and what has just been sent: two lines in every frame."""
    rounds = walk.schedule.rounds
    room = min(width - len(f"round {rounds} of {rounds}  "), 40)
    done = room * number // rounds if rounds else room
    where = f"round {number} of {rounds}".ljust(len(f"round {rounds} of {rounds}"))
    bar = Text.assemble((where, "bold"), "  ", (DONE * done, "bold"), (TO_DO * (room - done), "dim"))
    said = Text("before")
    if number:
        phase, _ = walk.schedule.phase(number)
        sends = sends_line(walk.schedule.round(number), walk.schedule.pattern, walk.operation.axes)
        sent = human_bytes(walk.timeline[number - 1].device_bytes)
        said = Text.assemble((walk.phase_name(phase), "bold"), f"  {sends}, {sent}")
    said.truncate(width, overflow="ellipsis")
    return [bar, said]
