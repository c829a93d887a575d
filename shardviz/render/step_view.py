"""A collective from BEFORE over its rounds to AFTER, what it costs, and what JAX says of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.text import Text

from shardviz.collectives import ALGORITHMS
from shardviz.collectives.trace import MAX_PIECES
from shardviz.errors import plural
from shardviz.render.buffer_picture import BufferPicture
from shardviz.render.caption import axes_text
from shardviz.render.cost_lines import cost_lines, duration
from shardviz.render.lines import sentence, table, trimmed
from shardviz.render.palette import PARTIAL, Palette
from shardviz.render.picture import repetition, shelve
from shardviz.render.piece_label import ARRIVED
from shardviz.render.question_view import mesh_text
from shardviz.render.round_table import round_table
from shardviz.render.sends_line import sends_line
from shardviz.render.shards_picture import final_picture, shards_picture
from shardviz.render.units import human_bytes, times
from shardviz.stepping.walk import Walk

MAX_ROWS = 16
"""Devices of a round that is drawn."""
MAX_LINES = 200
"""Lines that the rounds may take one under another; what takes more is summarised."""
LEAST_WORDS = 36
"""Columns for a sentence over a narrow picture."""
SUMMARY_ROWS = 6
"""Devices in a summary: the first four, a gap, the last."""


def step_view(walk: Walk, width: int, palette: Palette, number: int | None = None) -> list[Text]:
    """BEFORE, every round, AFTER and the final result where they fit a screen or two, else a summary.

    `number` shows one round alone (0: before any); `QuestionError` for a round that does not exist.
    """
    lines = [*headline(walk, width, palette), *_algorithm(walk, width), Text()]
    if number is not None:
        lines += one_round(walk, number, width, palette)
    elif _is_small(walk, width, palette):
        lines += [*_before(walk, width, palette, MAX_ROWS), Text(), *_rounds(walk, width, palette)]
        lines += _after(walk, width, palette, MAX_ROWS)
    else:
        lines += _summary(walk, width, palette)
    lines += [Text(), *cost_lines(walk, width)]
    return [trimmed(line, palette) for line in lines]


def headline(walk: Walk, width: int, palette: Palette) -> list[Text]:
    """``all_gather over i  by ring  mesh i=4, 4 devices  s32[4] as P('i'), 1 a device``."""
    operation, layout = walk.operation, walk.question.layout
    what = Text.assemble((operation.name, "bold"), " over ", axes_text(operation.axes, walk.mesh, palette))
    shape = ",".join(map(str, layout.array.shape))
    cells = [
        what,
        Text(walk.schedule.algorithm, "bold"),
        Text.assemble("mesh ", mesh_text(walk.mesh, palette)),
        Text(f"{layout.array.dtype}[{shape}] {walk.question.spec} → {times(layout.shard_shape)} a device"),
    ]
    return table([cells], width)


def _algorithm(walk: Walk, width: int) -> list[Text]:
    """What the algorithm does."""
    algorithm = ALGORITHMS[walk.schedule.algorithm]
    return sentence(f"{algorithm.name}: {algorithm.summary}", width, style="dim")


def one_round(walk: Walk, number: int, width: int, palette: Palette) -> list[Text]:
    """One frame with what is sent in it."""
    if number:
        phase, _ = walk.schedule.phase(number)
        lines = sentence(walk.phase_name(phase), width, lead=f"round {number} of {walk.schedule.rounds}  ")
        lines += sentence(_round_words(walk, number), width, 2)
        lines += sentence(_load_words(walk, number), width, 2, style="dim")
    else:
        lines = [Text("before any round", "bold")]
    groups = shown_groups(walk)
    drawn = BufferPicture(walk, walk.frames[number], groups, width, palette, MAX_ROWS)
    lines += drawn.lines(drawn.cell_width)
    return [*lines, *_other_groups(walk, groups, width), *legend(walk, [drawn], width, palette)]


def legend(walk: Walk, drawn: Sequence[BufferPicture], width: int, palette: Palette) -> list[Text]:
    """The marks that pictures have, and whether colours repeat."""
    marks = set().union(*(picture.marks for picture in drawn))
    said = [
        words
        for mark, words in (
            ("arrived", f"{ARRIVED} has just arrived"),
            ("partial", f"{PARTIAL} partial"),
            ("counted", "Σ4 the sum of 4"),
            ("unneeded", "( ) no longer needed"),
            ("passing", "│ waiting to go on"),
        )
        if mark in marks
    ]
    lines = sentence("   ".join(said), width, style="dim") if said else []
    for note in repetition(len(shown_groups(walk)) * walk.schedule.chunks, palette):
        lines += sentence(note.plain, width, style="dim")
    return lines


def _summary(walk: Walk, width: int, palette: Palette) -> list[Text]:
    """The rounds in a table, between some of the devices before and after them."""
    if walk.question.shards is None and not walk.followed:
        pieces = f"there are more than {MAX_PIECES:,} pieces: who holds which is not followed"
        return [*round_table(walk, width), *sentence(pieces, width, style="dim")]
    lines = [*_before(walk, width, palette, SUMMARY_ROWS), Text(), *round_table(walk, width), Text()]
    lines += _after(walk, width, palette, SUMMARY_ROWS)
    return [*lines, *sentence("--round N shows one round, --json all of them", width, style="dim")]


def _before(walk: Walk, width: int, palette: Palette, rows: int) -> list[Text]:
    title = Text("BEFORE", "bold")
    if walk.frames.before is not None:
        return [title, *shards_picture(walk, False, width, palette, rows)]
    return [title, *_chunks(walk, 0, width, palette, rows)]


def _after(walk: Walk, width: int, palette: Palette, rows: int) -> list[Text]:
    title = Text("AFTER", "bold")
    if walk.frames.after is None:
        return [title, *_chunks(walk, walk.schedule.rounds, width, palette, rows)]
    lines = [title, *shards_picture(walk, True, width, palette, rows)]
    if walk.final is not None:
        shape = f"{walk.result_dtype}[{','.join(map(str, walk.final.shape))}]"
        heading = [Text("FINAL RESULT", "bold"), Text(shape), Text(walk.question.final_spec)]
        lines += [Text(), *table([heading], width)]
        lines += final_picture(walk, width, palette)
    return lines


def _chunks(walk: Walk, number: int, width: int, palette: Palette, rows: int) -> list[Text]:
    """A frame of the first group, for walks without numbers and ends of summaries."""
    drawn = BufferPicture(walk, walk.frames[number], [0], width, palette, rows, moving=False)
    return drawn.lines(drawn.cell_width)


def _rounds(walk: Walk, width: int, palette: Palette) -> list[Text]:
    """Every phase with a heading, its rounds beside one another as far as they fit."""
    lines: list[Text] = []
    groups = shown_groups(walk)
    every = []
    first = 1
    for name, phases in groupby(walk.schedule.phases, key=walk.phase_name):
        numbers = range(first, first + sum(phase.rounds for phase in phases))
        first = numbers.stop
        if not numbers:
            continue
        words = [_round_words(walk, number) for number in numbers]
        alike = len(set(words)) == 1
        heading = plural(len(numbers), "round") + (f"; {words[0]}" if alike else "")
        lines += sentence(heading, width, lead=f"{name}  ")
        drawn = [
            BufferPicture(walk, walk.frames[number], groups, width, palette, MAX_ROWS) for number in numbers
        ]
        bodies = [picture.lines(picture.cell_width) for picture in drawn]
        under: list[list[Text]] = [[] for _ in numbers]
        if not alike:
            wide = max(line.cell_len for body in bodies for line in body)
            under = [sentence(said, max(wide, LEAST_WORDS)) for said in words]
        # Pictures beside one another stand at one height.
        deep = max(map(len, under))
        blocks = [
            [Text(f"round {number}", "bold"), *said, *[Text()] * (deep - len(said)), *body, Text()]
            for number, said, body in zip(numbers, under, bodies, strict=True)
        ]
        lines += shelve(blocks, width)
        every += drawn
    notes = [*_other_groups(walk, groups, width), *legend(walk, every, width, palette)]
    return [*lines, *notes, Text()] if notes else lines


def _round_words(walk: Walk, number: int) -> str:
    """``each sends 1 chunk to the next, 4 B``: the bytes are the most that one device sends."""
    sends = walk.schedule.round(number)
    load = walk.timeline[number - 1]
    said = sends_line(sends, walk.schedule.pattern, walk.operation.axes)
    return f"{said}, {human_bytes(load.device_bytes)}"


def _load_words(walk: Walk, number: int) -> str:
    """What a round puts on the links of a group, and how long it takes."""
    load = walk.timeline[number - 1]
    said = f"{human_bytes(load.bytes)} in all"
    if load.busiest_link is not None:
        ends = "→".join(node_name(walk, node) for node in load.busiest_link)
        said += f", {human_bytes(load.busiest_bytes)} on the busiest link ({ends})"
    if load.waiting:
        said += f", {plural(load.waiting, 'message')} must wait for a link"
    return f"{said}; {duration(load.seconds, load.waiting)}"


def node_name(walk: Walk, node: int) -> str:
    """A member of the first group by its device's id, or the switch in the middle."""
    group = walk.groups[0]
    return str(walk.mesh.device_id(group[node])) if node < len(group) else "switch"


def shown_groups(walk: Walk) -> range:
    """The groups that are drawn: all if they fit, else the first."""
    size = walk.schedule.pattern.group_size
    count = len(walk.groups) if walk.frames.before is not None else 1
    return range(count if count * size <= MAX_ROWS else 1)


def _other_groups(walk: Walk, groups: range, width: int) -> list[Text]:
    more = len(walk.groups) - len(groups)
    if not more:
        return []
    said = f"{plural(more, 'other group')} of {walk.schedule.pattern.group_size} devices do the same"
    return sentence(f"{said} at the same time", width, style="dim")


def _is_small(walk: Walk, width: int, palette: Palette) -> bool:
    """Whether every round can be drawn with all its devices and chunks."""
    size = walk.schedule.pattern.group_size
    groups = len(shown_groups(walk))
    if size > MAX_ROWS or walk.schedule.rounds * groups * (size + 2) > MAX_LINES:
        return False
    return not BufferPicture(walk, walk.frames[0], [0], width, palette, MAX_ROWS).summarised
