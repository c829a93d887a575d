"""A plan on small numbers: what every device holds before and after each step."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shardviz.render.caption import array_text
from shardviz.render.lines import records, sentence, trimmed
from shardviz.render.palette import Palette
from shardviz.render.plan_view import phase_heading, step_row
from shardviz.render.rounds.array_lines import devices_picture
from shardviz.stepping.plan_run import HeldCopy, PlanRun
from shardviz.units import times

INDENT = 4


def plan_steps_view(run: PlanRun, width: int, palette: Palette, number: int = 0) -> list[Text]:
    """The arguments and what each step makes; or step `number` alone, from 1, with what it takes."""
    lines = [*size_lines(run, width), Text()]
    if number:
        lines += step_lines(run, number, width, palette)
        return [trimmed(line, palette) for line in lines]
    lines += step_lines(run, 0, width, palette)
    for step in run.steps:
        heading = phase_heading(run.plan, step.number)
        lines += [Text(), *[Text(heading, "bold")] * bool(heading)]
        lines += [*title_lines(run, step.number, width, palette), *held_lines(step.after, width, palette)]
    return [trimmed(line, palette) for line in lines]


def step_lines(run: PlanRun, number: int, width: int, palette: Palette) -> list[Text]:
    """A step, from 1, with what it takes and what it makes; 0 has the arguments."""
    if not number:
        return _below("GIVEN", run.given, width, palette)
    step = run.steps[number - 1]
    before = _below("BEFORE", step.before, width, palette)
    return [
        *title_lines(run, number, width, palette),
        *before,
        Text(),
        *_below("AFTER", [step.after], width, palette),
    ]


def _below(heading: str, every: Sequence[HeldCopy], width: int, palette: Palette) -> list[Text]:
    return [Text(heading, "bold"), *(line for held in every for line in held_lines(held, width, palette))]


def title_lines(run: PlanRun, number: int, width: int, palette: Palette) -> list[Text]:
    """``2  psum Out over Y → Out[b_X, f]``, and the reason in ten words."""
    row = step_row(run.plan, number, palette)
    return [*records([row.cells[:3]], width), *sentence(row.step.short_reason, width, INDENT, style="dim")]


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
    name.append(
        f"  {times(layout.shard_shape) or 'one number'} per device{', partial sums' * striped}", "dim"
    )
    name.truncate(width, overflow="ellipsis")
    shards = layout.shards().tolist()
    own = ((mesh.device_id(place), values[place], palette.shard(shards[place])) for place in range(mesh.size))
    return [name, *devices_picture(own, width, striped)]
