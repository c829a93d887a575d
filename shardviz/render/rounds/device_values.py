"""Numbers that every device holds: before and after each step of a plan, and after each line of a user's
program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.style import Style
from rich.text import Text

from shardviz.collectives.values import Values
from shardviz.errors import plural
from shardviz.render.caption import array_text
from shardviz.render.lines import cut, records, sentence, shelve, trimmed, visible
from shardviz.render.palette import DIM, Palette
from shardviz.render.plan_view import phase_heading, step_row
from shardviz.render.rounds.array_lines import SHARD_LINES, array_lines, digits_of
from shardviz.stepping.plan_run import HeldCopy, PlanRun
from shardviz.units import shaped, times

if TYPE_CHECKING:
    from shardviz.reports.lowered_module import ProgramValues


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
    sizes = ", ".join(f"{dim}={size}" for dim, size in run.sizes.items())
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
