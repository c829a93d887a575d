"""Numbers that devices hold, as JAX prints them, each in the colour of its data: before and after a
collective, around each step of a plan, and after each line of a user's program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from rich.style import Style
from rich.text import Text

from shardviz.collectives.values import Values
from shardviz.errors import plural
from shardviz.render.caption import DeviceLabels, array_text
from shardviz.render.lines import GAP, SUMMARY, cut, sentence, shelve, trimmed, visible
from shardviz.render.palette import DIM, PARTIAL, Palette
from shardviz.render.plan_view import phase_heading, step_row
from shardviz.render.rounds.pieces import MAX_ROWS, chunk_style, numbers
from shardviz.render.tables import records
from shardviz.stepping.collective_run import CollectiveRun
from shardviz.stepping.plan_run import HeldCopy, PlanRun
from shardviz.units import shaped, times

if TYPE_CHECKING:
    from shardviz.reports.lowered_module import ProgramValues

SHARD_LINES = 8
"""Lines of one device; a vector has half as many."""

StyleOf = Callable[[int], Style | None]
"""The style of a number by its place in the flattened array; None where no chunk is."""


def array_lines(
    values: Values,
    style: StyleOf,
    width: int,
    digits: int,
    striped: bool = False,
    max_lines: int = SHARD_LINES,
    period: int = 1,
) -> list[Text]:
    """An array, its last dimension along a line, of larger ones the first and last numbers and lines; numbers
    have `digits` columns, equal styles one cell. A vector wraps, by whole periods where they fit."""
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
        whole = fits - (fits % period if period <= fits else 0)
        bounds = [(start, min(start + whole, length)) for start in range(0, length, whole)]
        return [_line(range(*bound), flat, style, digits, striped) for bound in bounds]
    columns = visible(length, fits)
    lines = []
    for row in visible(flat.size // length, max_lines):
        if row is None:
            lines.append(Text("⋮".rjust(digits + 1), DIM))
            continue
        places = [None if column is None else row * length + column for column in columns]
        lines.append(_line(places, flat, style, digits, striped))
    return lines


def digits_of(values: Values, width: int, max_lines: int) -> int:
    """Columns of the widest number that `array_lines` may show."""
    if not values.size:
        return 1
    rows = values.reshape(-1, values.shape[-1] if values.ndim else 1)
    shown = rows[[row for row in visible(len(rows), max_lines) if row is not None]]
    if shown.shape[1] > width // 4 * max_lines:
        shown = shown[:, [column for column in visible(shown.shape[1], SUMMARY) if column is not None]]
    return max(map(len, numbers(shown)))


def _line(
    places: Sequence[int | None], flat: Values, style: StyleOf, digits: int, striped: bool, blank: str = " "
) -> Text:
    cells = []
    side = PARTIAL if striped else " "
    looks = ((index, None if index is None else style(index)) for index in places)
    for (is_gap, colours), cell in groupby(looks, lambda look: (look[0] is None, look[1])):
        words = [numbers(flat[index : index + 1])[0].rjust(digits) for index, _ in cell if index is not None]
        cells.append(Text("…", DIM) if is_gap else Text(f"{side}{' '.join(words)}{side}", colours or ""))
    return Text(blank).join(cells)


def shards_picture(
    run: CollectiveRun, ended: bool, width: int, palette: Palette, max_devices: int = MAX_ROWS
) -> list[Text]:
    """BEFORE (or, `ended`, AFTER): a row a device; shards of several lines stand beside one another."""
    values = run.frames.after if ended else run.frames.before
    assert values is not None
    places = visible(run.mesh.size, max_devices)
    shown = [index for index in places if index is not None]
    named = DeviceLabels(run.mesh, shown, palette, width // 4)
    labels = [named.of(index) for index in shown]
    gutter = named.width + GAP
    room = width - gutter
    digits = max(digits_of(values[index], room, SHARD_LINES) for index in shown)
    striped = not ended and run.schedule.pattern.reduces
    blocks = [
        array_lines(values[index], _styles(run, index, ended, palette), room, digits, striped)
        for index in shown
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
    assert values is not None
    period = max(values.size // len(run.question.final_positions), 1)
    of_device = cache(lambda number: _styles(run, run.question.final_positions[number], True, palette))

    def style(index: int) -> Style | None:
        shard_style: Style | None = of_device(index // period)(index % period)
        return shard_style

    lines = 2 * SHARD_LINES
    return array_lines(values, style, width, digits_of(values, width, lines), False, lines, period)


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


def devices_picture(
    held: Iterable[tuple[int, Values, Style | None]], width: int, striped: bool = False
) -> list[Text]:
    """Arrays in their data's colour below the devices that hold them; `striped` are partial sums."""
    found: dict[object, tuple[list[int], Values, Style | None]] = {}
    for device, values, style in held:
        found.setdefault((values.shape, values.tobytes(), style), ([], values, style))[0].append(device)
    arrays = [*found.values()]
    digits = max(digits_of(values, width, SHARD_LINES) for _, values, _ in arrays)
    blocks = []
    for index in visible(len(arrays), 16):
        if index is None:
            blocks.append([Text("…", DIM)])
            continue
        devices, values, style = arrays[index]
        names = " ".join("…" if place is None else str(devices[place]) for place in visible(len(devices), 6))
        if len(devices) > 2 and devices[-1] - devices[0] == len(devices) - 1:
            names = f"{devices[0]}–{devices[-1]}"
        styles = dict.fromkeys(range(values.size), style)
        lines = array_lines(values, styles.get, width, digits, striped)
        blocks.append([Text(f"{names}:", DIM), *lines, Text()])
    return shelve(blocks, width)[:-1]


def plan_steps_view(run: PlanRun, width: int, palette: Palette, number: int = 0) -> list[Text]:
    """The arguments and what each step makes; or step `number` alone, from 1, with what it takes."""
    lines = [*size_lines(run, width), Text(), *step_lines(run, number, width, palette)]
    for step in () if number else run.steps:
        heading = phase_heading(run.plan, step.number)
        lines += [Text(), *[Text(heading, "bold")] * bool(heading)]
        lines += [*title_lines(run, step.number, width, palette), *held_lines(step.after, width, palette)]
    return [trimmed(line, palette) for line in lines]


def step_lines(run: PlanRun, number: int, width: int, palette: Palette) -> list[Text]:
    """A step, from 1, with what it takes and what it makes; 0 has the arguments."""

    def below(heading: str, every: Sequence[HeldCopy]) -> list[Text]:
        return [Text(heading, "bold"), *(line for held in every for line in held_lines(held, width, palette))]

    if not number:
        return below("GIVEN", run.given)
    step = run.steps[number - 1]
    title = title_lines(run, number, width, palette)
    return [*title, *below("BEFORE", step.before), Text(), *below("AFTER", [step.after])]


def title_lines(run: PlanRun, number: int, width: int, palette: Palette) -> list[Text]:
    """``2  psum Out over Y → Out[b_X, f]``, and the reason in ten words."""
    row = step_row(run.plan, number, palette)
    return [*records([row.cells[:3]], width), *sentence(row.step.short_reason, width, 4, style="dim")]


def size_lines(run: PlanRun, width: int) -> list[Text]:
    """The sizes of the arrays that are played."""
    sizes = ", ".join(f"{dim}={size}" for dim, size in run.plan.problem.sizes.items())
    said = f"small arrays, {sizes}{'; whole numbers, so sums are exact' * run.is_whole}"
    return sentence(f"{said}. Devices named together hold the same.", width, style="dim")


def held_lines(held: HeldCopy, width: int, palette: Palette) -> list[Text]:
    """An array with its shape per device, and the numbers of every device."""
    layout, values = held
    mesh, striped = layout.mesh, bool(layout.spec.unreduced)
    name = array_text(layout.array, mesh, palette)
    part = f"  {times(layout.shard_shape) or 'one number'} per device{', partial sums' * striped}"
    name.append(part, "dim")
    name.truncate(width, overflow="ellipsis")
    shards = layout.shards().tolist()
    own = ((mesh.device_id(index), values[index], palette.shard(shards[index])) for index in range(mesh.size))
    return [name, *devices_picture(own, width, striped)]


def values_view(values: ProgramValues, width: int, palette: Palette) -> list[Text]:
    """A line of source, what it makes, and below that an array for all devices that hold the same."""
    page: list[Text] = []
    before, mesh = ("", 0), values.mesh
    for value in values.lines:
        if before != (value.file, value.line):
            source = Text(f"{value.line:>4}  {value.text}", "bold")
            page += [Text(), cut(source, width)]
        before = value.file, value.line
        said = [f"{value.name}:" * bool(value.name), shaped(value.dtype, value.shape), value.spec, value.note]
        if value.is_cut:
            said.append(f"the first numbers of {shaped(value.dtype, value.shard_shape)} per device")
        page += sentence("  ".join(filter(None, said)), width, 6, style=DIM)
        held = ((mesh.device_id(position), part, None) for position, part in value.devices)
        page += [Text.assemble(" " * 6, line) for line in devices_picture(held, width - 6)]
    ran = f"run by JAX {values.jax_version} on {plural(mesh.size, 'simulated CPU device')}, as one program"
    page += [Text(), *sentence(f"{ran} that also returns the value of each line", width, style=DIM)]
    return [trimmed(line, palette) for line in page[1:]]
