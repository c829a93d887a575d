"""The lines above and below the picture of a round: what is played, how far it is, what it has cost."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text

from shardviz.errors import plural
from shardviz.hardware.timelines import CumulativeCost
from shardviz.render.caption import array_text, axes_text
from shardviz.render.lines import GAP
from shardviz.render.palette import Palette
from shardviz.render.rounds.cost_lines import duration
from shardviz.render.rounds.round_words import round_words
from shardviz.render.rounds.step_notes import after_words
from shardviz.render.units import human_bytes, rate, shaped, times
from shardviz.stepping.collective_run import CollectiveRun

DONE, TO_DO = "━", "─"
NEXT_PHASE = "┼"
MAX_BAR = 60
LONGEST = len("1.33 MiB")
"""Columns of a number that changes from round to round."""
READABLE = 44
"""Columns from which on there is room for more words."""
SHORTEST = len("by ring…")
"""Columns of the name of an algorithm that is cut short."""


def title_line(walk: CollectiveRun, width: int, palette: Palette, lead: str = "") -> Text:
    """``psum_scatter over Y   ring   bf16[1024,8192] X_{U_Y}``: as much of it as there is room for.

    `lead` is what the collective belongs to.
    """
    layout = walk.question.layout
    array = layout.array
    parts = [
        Text.assemble(
            (lead, "dim"),
            (walk.operation.name, "bold"),
            " over ",
            axes_text(walk.operation.axes, walk.mesh, palette),
        ),
        Text(f"by {walk.schedule.algorithm}"),
        array_text(array, layout.mesh, palette),
        Text(f"{shaped(array.dtype, array.shape)}, {times(layout.shard_shape)} a device", "dim"),
    ]
    room = width - parts[0].cell_len - GAP - 1
    if SHORTEST <= room < parts[1].cell_len:
        # Who goes from one algorithm to the next has to see which it is.
        parts[1].truncate(room, overflow="ellipsis")
    return _fitting(parts, width)


def progress_line(walk: CollectiveRun, number: int, width: int, playing: str = "") -> Text:
    """How far it is, with the place where each phase begins; `playing` says how fast it goes on."""
    rounds = walk.schedule.rounds
    width -= len(playing) + GAP if playing else 0
    where = f"round {number:,} of {rounds:,}".ljust(len(f"round {rounds:,} of {rounds:,}"))
    room = max(4, min(width - len(where) - GAP, MAX_BAR))
    done = room * number // rounds if rounds else room
    marks = [TO_DO] * room
    marks[:done] = [DONE] * done
    first = 0
    for phase in walk.schedule.phases[:-1]:
        first += phase.rounds
        marks[min(room - 1, room * first // rounds)] = NEXT_PHASE
    bar = Text("".join(marks), "dim")
    bar.stylize("not dim bold", 0, done)
    line = Text.assemble((where, "bold"), " " * GAP, bar)
    return line.append(f"{' ' * GAP}{playing}") if playing else line


def words_line(walk: CollectiveRun, number: int, width: int) -> Text:
    """The phase, with all of them before the first round, and what is sent in the round."""
    if not walk.schedule.rounds:
        return Text("one device alone: nothing to send")
    if number:
        phase, _ = walk.schedule.phase(number)
        line = Text.assemble((walk.phase_name(phase), "bold"), f"  {round_words(walk, number)}")
    else:
        phases = dict.fromkeys(map(walk.phase_name, walk.schedule.phases))
        line = Text(" → ".join(phases), "bold")
    line.truncate(width, overflow="ellipsis")
    return line


def state_line(walk: CollectiveRun, drawn: CollectiveRun, number: int, width: int) -> Text | None:
    """What every device has before the first round and after the last, and the final result; None between.

    `drawn` is the walk whose numbers are shown.
    """
    pattern = walk.schedule.pattern
    if not number:
        has = "each device has its own addend" if pattern.reduces else "each device has its own part"
        if pattern.kind == "broadcast":
            has = "one device has what all are to have"
        line = Text.assemble(("BEFORE", "bold"), f"  {has}")
        shape = f", {times(walk.question.layout.shard_shape)}"
        if line.cell_len + len(shape) <= width:
            line.append(shape)
        return _fitting([line, *_smaller(walk, drawn)], width)
    if number < walk.schedule.rounds:
        return None
    after = drawn.frames.after
    if after is None:
        return Text.assemble(("AFTER", "bold"), "  every device has its result")
    dtype = drawn.result_dtype
    parts = [Text.assemble(("AFTER", "bold"), f"  {shaped(dtype, after.shape[1:])} a device")]
    parts += [Text(words) for words in after_words(drawn)]
    if drawn.final is not None:
        result = f"  {shaped(dtype, drawn.final.shape)} {drawn.question.final_spec}"
        parts.append(Text.assemble(("FINAL RESULT", "bold"), result))
    return _fitting([*parts, *_smaller(walk, drawn)], width)


def _smaller(walk: CollectiveRun, drawn: CollectiveRun) -> list[Text]:
    """That the numbers are those of a smaller array, where they are."""
    if drawn.question.layout == walk.question.layout:
        return []
    return [Text(f"shown with a smaller array, {times(drawn.question.layout.array.shape)} in all", "dim")]


@dataclass(frozen=True)
class Account:
    """What has been spent up to a round, beside what all rounds and the least possible take."""

    walk: CollectiveRun
    course: CumulativeCost | None
    links_of: str = ""
    """The target whose links they are; empty where they are assumed."""

    def lines(self, number: int, width: int) -> list[Text]:
        """``sent 12 KiB of 24 KiB by each device, least 24 KiB``, rounds and time."""
        bound, rounds = self.walk.bound, self.walk.schedule.rounds
        if self.course is None:
            return [_fitting([Text("too many rounds to add up", "dim"), self._least()], width)]
        spent, total = self.course.after(number), self.course.after(rounds)
        waiting = self.walk.timeline.waiting
        sent = Text.assemble(
            ("sent ", "dim"),
            (human_bytes(spent.bytes).rjust(LONGEST), "bold"),
            f" of {human_bytes(total.bytes)}{' a device' if width >= READABLE else ''}",
            (f", least {human_bytes(bound.wire_bytes)}", "dim"),
        )
        took = Text.assemble(
            ("time ", "dim"),
            (duration(spent.seconds, 0).rjust(LONGEST), "bold"),
            f" of {duration(total.seconds, waiting)}",
        )
        least = Text(f"{plural(rounds, 'round')}, least {bound.rounds:,}", "dim")
        speed = f" at {rate(self.walk.links.wire.bandwidth)} {self.walk.links.each}"
        if took.cell_len + len(speed) <= width:
            took.append(speed, "dim")
        return flowed([sent, took, self._links, least], width)

    @property
    def _links(self) -> Text:
        """What joins the devices, and how that is known."""
        where = f"on {self.links_of}" if self.links_of else "assumed"
        return Text(f"{self.walk.links.topology} {where}", "dim")

    def _least(self) -> Text:
        bound = self.walk.bound
        return Text(f"least {human_bytes(bound.wire_bytes)}, {plural(bound.rounds, 'round')}", "dim")


def flowed(parts: list[Text], width: int) -> list[Text]:
    """All parts, as many to a line as fit."""
    lines: list[Text] = []
    for part in parts:
        if lines and lines[-1].cell_len + GAP + 1 + part.cell_len <= width:
            lines[-1].append(" " * (GAP + 1)).append_text(part)
        else:
            lines.append(_fitting([part], width))
    return lines


def _fitting(parts: list[Text], width: int) -> Text:
    """The first parts of a line, as many as fit; the first is cut where it must be."""
    line = parts[0].copy()
    if line.cell_len > width:
        line.truncate(width, overflow="ellipsis")
        return line
    for part in parts[1:]:
        if line.cell_len + GAP + 1 + part.cell_len > width:
            break
        line.append(" " * (GAP + 1)).append_text(part)
    return line
