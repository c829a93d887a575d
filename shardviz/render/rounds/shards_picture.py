"""Whole arrays of numbers: every device's shard as JAX prints it, each number in the colour of its chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import groupby

import numpy as np
from rich.style import Style
from rich.text import Text

from shardviz.collectives.values import Values
from shardviz.render.canvas import SUMMARY, visible
from shardviz.render.caption import DeviceLabels
from shardviz.render.lines import shelve
from shardviz.render.palette import DIM, PARTIAL, Palette
from shardviz.render.rounds.pieces import chunk_style, numbers
from shardviz.stepping.collective_run import CollectiveRun

MAX_LINES = 8
"""Lines of one device; a vector has half as many."""
MAX_DEVICES = 16
LEAST = 4
"""Columns that the narrowest number takes with its blanks."""
GAP = 2


StyleOf = Callable[[int], Style | None]
"""The style of a number by its place in the flattened array; None where no chunk is."""


def shards_picture(
    run: CollectiveRun, ended: bool, width: int, palette: Palette, max_devices: int = MAX_DEVICES
) -> list[Text]:
    """BEFORE (or, `ended`, AFTER): a row a device; shards of several lines stand beside one another."""
    values = run.frames.after if ended else run.frames.before
    if values is None:
        raise ValueError("frames without numbers have no shards to show")
    places = visible(run.mesh.size, max_devices)
    shown = [place for place in places if place is not None]
    named = DeviceLabels(run.mesh, shown, palette, width // 4)
    labels = [named.of(place) for place in shown]
    gutter = named.width + GAP
    room = width - gutter
    digits = max(_digits(values[place], room, MAX_LINES) for place in shown)
    striped = not ended and run.schedule.pattern.reduces
    blocks = [
        array_lines(values[place], _styles(run, place, ended, palette), room, digits, striped)
        for place in shown
    ]
    if values.ndim < 3 or all(len(block) == 1 for block in blocks):
        lines = [
            Text.assemble(label if not number else " " * label.cell_len, " " * GAP, row)
            for label, block in zip(labels, blocks, strict=True)
            for number, row in enumerate(block)
        ]
        if None in places:
            first = sum(map(len, blocks[: places.index(None)]))
            lines.insert(first, Text("⋮".rjust(gutter - GAP), DIM))
        return lines
    stacks = [[label, *block, Text()] for label, block in zip(labels, blocks, strict=True)]
    if None in places:
        stacks.insert(places.index(None), [Text("…", DIM)])
    return shelve(stacks, width)[:-1]


def final_picture(run: CollectiveRun, width: int, palette: Palette) -> list[Text]:
    """The result of `shard_map`, put together from those of `run.question.final_positions`."""
    values = run.final
    if values is None:
        raise ValueError("frames without numbers have no result to show")
    period = max(values.size // len(run.question.final_positions), 1)

    @cache
    def of_device(number: int) -> StyleOf:
        return _styles(run, run.question.final_positions[number], True, palette)

    def style(place: int) -> Style | None:
        number, within = divmod(place, period)
        return of_device(number)(within)

    lines = 2 * MAX_LINES
    return array_lines(values, style, width, _digits(values, width, lines), False, lines, period)


def array_lines(
    values: Values,
    style: StyleOf,
    width: int,
    digits: int,
    striped: bool = False,
    max_lines: int = MAX_LINES,
    period: int = 1,
) -> list[Text]:
    """An array, the last dimension along a line; neighbours of one style stand in one cell. A vector goes on
    over several lines, each with whole periods, or an equal part of one. Of larger arrays the first and last
    numbers and lines are shown. Numbers take `digits` columns."""
    length = values.shape[-1] if values.ndim else 1
    if not values.size:
        return [Text("[]", DIM)]
    flat = values.reshape(-1)
    fits = max(width // (digits + 3), 3)
    if values.ndim < 2 and fits < length <= width:
        for gap in (" ", ""):
            line = _line(range(length), flat, style, digits, striped, gap)
            if line.cell_len <= width:
                return [line]
    if values.ndim < 2 and fits < length <= max_lines // 2 * fits:
        whole = _whole(fits, period)
        bounds = [(start, min(start + whole, length)) for start in range(0, length, whole)]
        return [_line(range(*each), flat, style, digits, striped) for each in bounds]
    columns = visible(length, fits)
    lines = []
    for row in visible(flat.size // length, max_lines):
        if row is None:
            lines.append(Text("⋮".rjust(digits + 1), DIM))
            continue
        places = [None if column is None else row * length + column for column in columns]
        lines.append(_line(places, flat, style, digits, striped))
    return lines


def _whole(fits: int, period: int) -> int:
    """The numbers in a line of at most `fits`: whole periods, or an equal part of one."""
    if period <= fits:
        return fits - fits % period
    return next((part for part in range(fits, fits // 2, -1) if period % part == 0), fits)


def _digits(values: Values, width: int, max_lines: int) -> int:
    """Columns of the widest number that `array_lines` may show."""
    if not values.size:
        return 1
    rows = values.reshape(-1, values.shape[-1] if values.ndim else 1)
    shown = rows[[row for row in visible(len(rows), max_lines) if row is not None]]
    if shown.shape[1] > width // LEAST * max_lines:
        shown = shown[:, [column for column in visible(shown.shape[1], SUMMARY) if column is not None]]
    return max(map(len, numbers(shown)))


def _line(
    places: Sequence[int | None], flat: Values, style: StyleOf, digits: int, striped: bool, blank: str = " "
) -> Text:
    def look(place: int | None) -> tuple[bool, Style | None]:
        return (True, None) if place is None else (False, style(place))

    cells = []
    for (gap, colours), cell in groupby(places, look):
        if gap:
            cells.append(Text("…", DIM))
            continue
        words = [numbers(flat[place : place + 1])[0].rjust(digits) for place in cell if place is not None]
        side = PARTIAL if striped else " "
        cells.append(Text(f"{side}{' '.join(words)}{side}", colours or ""))
    return Text(blank).join(cells)


def _styles(run: CollectiveRun, place: int, ended: bool, palette: Palette) -> StyleOf:
    cuts = run.frames.cuts
    values = run.frames.after if ended else run.frames.before
    assert cuts is not None
    assert values is not None
    group, member = run.places[place]
    chunks = run.held_chunks(member, ended)
    index = (cuts.end if ended else cuts.start)[chunks]
    owner = np.full(values[place].size, -1)
    used = index >= 0
    owner[index[used]] = np.broadcast_to(chunks[:, None], index.shape)[used]

    def style(number: int) -> Style | None:
        chunk = int(owner[number])
        return None if chunk < 0 else chunk_style(palette, run, chunk, group)

    return style
