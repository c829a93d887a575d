"""The answer of a search: meshes ranked by the seconds of a step, and how the best splits every array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from rich.text import Text

from shardviz.errors import plural
from shardviz.planner.problem import dropped_words
from shardviz.planner.search.mesh_choices import HOST, MeshSharding
from shardviz.planner.search.mesh_ranking import MeshRanking
from shardviz.planner.search.meshes import without_ones
from shardviz.render.caption import axes_text, spec_text
from shardviz.render.command_lines import command_lines
from shardviz.render.cost_view import matmul_words, overtaking_words, own_words
from shardviz.render.lines import sentence
from shardviz.render.palette import Palette
from shardviz.render.plan_view import AT_LEAST, time_words
from shardviz.render.tables import Cell, columns, giving_way, records, table
from shardviz.sharding import Mesh
from shardviz.units import human_bytes, seconds

if TYPE_CHECKING:
    from shardviz.models.serving import ServedMesh
    from shardviz.reports.trials import CompiledSharding

HEADINGS = (">", "mesh", ">step", ">compute", ">exposed", ">memory", "bound", ">MFU", "communication")
OVERLAP_WORDS = {
    "none": "a step is the sum of its work and its communication",
    "parameters": "only parameter and gradient communication is assumed to overlap",
    "all": "a pass is the longer of its work and its communication",
}
STOPS = (9, 8, 7, 6, 5, 3)
"""Columns of tables on narrower and narrower pages."""
MAY_FIT = "? "
"""Marks memory that fits only where the compiler allocates little more."""


def search_view(
    answer: MeshRanking,
    width: int,
    palette: Palette,
    limit: int,
    opened: str = "",
    verbose: bool = False,
    served: Sequence[ServedMesh] = (),
) -> list[Text]:
    """A table of the best meshes, or of those `served` with their tokens, how the first splits every array,
    and what was looked at; when `verbose`, all that was assumed. `opened` is the command line that explains
    the first."""
    question = answer.question
    step = ", a train step" if question.training else ""
    lines = sentence(f"{question.name or question.problem.text}{step}", width, style="bold")
    if served:
        lines += [Text(), *_served_lines(served, width, palette)]
        groups = [(one.found, *one.copies) for one in served]
        lines += [*_left_out_lines(answer, groups, width), Text()]
        if not served[0].answer.question.split.rules.name:
            lines += sharding_lines(answer, served[0].found, width, palette)
        lines += [*_command_lines(opened, width), Text()]
    else:
        lines += [Text(), *(_found_lines(answer, width, palette, limit, opened) if answer.found else [])]
    return [
        *lines,
        *sentence(infeasible_words(answer), width, style="dim" if answer.found else ""),
        *sentence(larger_machine_words(answer) if answer.infeasible else "", width),
        *sentence(" ".join(_space_sentences(answer, verbose, served)), width, style="dim"),
    ]


def compiled_view(
    answer: MeshRanking, rows: Sequence[CompiledSharding], width: int, palette: Palette
) -> list[Text]:
    """The rows that were compiled, by the compiler's schedule, and where the estimates were wrong."""
    cells: list[list[Cell]] = []
    for row in rows:
        sharding, number = row.found, _row_of(answer, row.found)
        told = (row.seconds, sharding.seconds, row.work, row.exposed)
        times = ("–" if time is None else seconds(time) for time in told)
        cells.append([(str(number), "dim"), _mesh_text(sharding.mesh, palette), *times])
    head = (">", "mesh", ">compiled", ">estimate", ">compute", ">exposed")
    lines = [Text(), *table(cells, width, 0, head)]
    for row in rows:
        said = [f"{name} is {seconds(real)}, not {seconds(ours)}" for name, ours, real in row.differences]
        lead = f"{_row_of(answer, row.found)} " if row.error or said else ""
        lines += sentence(row.error or "; ".join(said), width, 3, lead)
    chip = answer.question.machine.name
    words = f"One layer of each, compiled for {chip}, ranked by the compiler's schedule."
    if all(row.seconds is None for row in rows):
        words = f"None compiled for {chip}."
    return [*lines, *sentence(words, width, style="dim")]


def progress_words(answer: MeshRanking) -> str:
    """``12 of 36 meshes, best 1.2 s with data=4,fsdp=8``."""
    words = f"{answer.looked_at:,} of {answer.meshes:,} meshes"
    if answer.found:
        words += f", best {seconds(answer.found[0].seconds)} with {without_ones(answer.found[0].mesh)}"
    return words


def _found_lines(answer: MeshRanking, width: int, palette: Palette, limit: int, opened: str) -> list[Text]:
    alike = answer.alike[:limit]
    shown = [first for first, *_ in alike]
    rows, columns_shown = found_rows(shown, width, palette)
    lines = [line for row in rows for line in row.split("\n")]
    lines += _left_out_lines(answer, alike, width)
    if any(map(_may_fit, shown)):
        most = f"{100 * answer.question.machine.allocated:.0f} %"
        words = f"may not fit: compilers were seen to allocate up to {most} more than an estimate."
        lines += sentence(words, width, lead=MAY_FIT)
    first, usual = shown[0], shown[0].published_seconds
    if usual is not None:
        words = f"Scaled to published {answer.question.machine.chip} runs, which overlap communication, "
        words += f"row 1 takes {seconds(usual)}"
        if first.utilisation is not None:
            words += f", {first.utilisation * first.seconds / usual:.0%} MFU"
        least, row = min((entry.published_seconds or usual, number) for number, entry in enumerate(shown, 1))
        words += f"; row {row} is faster, {seconds(least)}" if least < usual * 0.99 else ""
        lines += sentence(f"{words}.", width)
    lines += sentence(overtaking_words([(entry.seconds, entry.overlapped_seconds) for entry in shown]), width)
    lines += [Text(), *sharding_lines(answer, answer.found[0], width, palette, columns_shown)]
    lines += _command_lines(opened, width)
    if opened:
        stage = first.stage
        taken = ["computes all layers on every device"] * (stage is not None and stage.stages > 1)
        taken += ["takes the batch at once, not in microbatches"] * (stage is not None)
        taken += ["gathers keys and values, and passes them round no ring"] * bool(first.ring)
        taken += ["keeps the optimizer's state on the devices"] * first.is_offloaded
        lines += sentence(f"This command {' and '.join(taken)}." if taken else "", width, 3, style="dim")
    return [*lines, Text()]


def _row_of(answer: MeshRanking, sharding: MeshSharding) -> int:
    """The number of a row, from 1."""
    return next(number for number, group in enumerate(answer.alike, 1) if sharding in group)


def same_words(group: Sequence[MeshSharding]) -> str:
    """``X=4, Y=2 or Y=8, and 2 more``: the meshes with the same figures as the first of a group."""
    names = [str(without_ones(row.mesh)).replace(",", ", ") for row in group[1:]]
    return " or ".join(names[:3]) + f", and {len(names) - 3:,} more" * (len(names) > 3)


def _left_out_lines(answer: MeshRanking, shown: Sequence[Sequence[MeshSharding]], width: int) -> list[Text]:
    """The meshes with the figures of one that is shown, and how many others there are."""
    same = [f"row {row} as {same_words(group)}" for row, group in enumerate(shown, 1) if len(group) > 1]
    more, every = len(answer.found) - sum(map(len, shown)), len(answer.found)
    words = f"{plural(more, 'more mesh', 'more meshes')}: --limit {every} shows all." if more else ""
    lines = sentence("; ".join(same), width, lead="the same: " if same else "")
    return lines + sentence(words, width, style="dim")


def _command_lines(opened: str, width: int) -> list[Text]:
    """The command that explains the first row, where the page is wide enough for it."""
    said = [Text(f"   {line}", "dim") for line in command_lines(opened, width - 3)] if opened else []
    return said if all(line.cell_len <= width for line in said) else []


def _served_lines(served: Sequence[ServedMesh], width: int, palette: Palette) -> list[Text]:
    """A row for each mesh: a token, a prompt, and what a device holds, of the whole model."""
    rows: list[Sequence[Cell]] = []
    for number, (found, answer, _) in enumerate(served, 1):
        decode, speed = answer.decode, answer.decode.tokens_per_s_per_device
        took = (time_words(step.seconds, not step.is_partial) for step in (decode.step, answer.prefill))
        rate = "?" if speed is None else f"{speed:,.0f}"
        figures = (*took, rate, human_bytes(decode.memory), decode.bound)
        rows.append([(str(number), "dim"), _mesh_text(found.mesh, palette), *figures])
    heads = (">", "mesh", ">decode step", ">prefill", ">tokens/s per device", ">memory", "bound")
    return table(rows, width, 0, heads, giving_way("bound", "prefill", "memory"))


def _may_fit(sharding: MeshSharding) -> bool:
    limit = sharding.placed.machine.device.limit_bytes
    return limit is not None and sharding.allocated_bytes > limit


def found_rows(shardings: Sequence[MeshSharding], width: int, palette: Palette) -> tuple[list[Text], int]:
    """A text of headings, and one for each mesh: without its last columns, and of several lines, where they
    do not fit otherwise. Then the number of columns."""
    rows = [_cells(number, sharding, palette) for number, sharding in enumerate(shardings, 1)]
    for stop in STOPS:
        lines = columns([row[:stop] for row in rows], width, 0, HEADINGS[:stop])
        if lines is not None:
            return lines, stop
    head = [Text(heading.removeprefix(">"), "bold") for heading in HEADINGS[:stop]]
    return [Text("\n").join(records([row[:stop]], width)) for row in (head, *rows)], stop


def _cells(number: int, sharding: MeshSharding, palette: Palette) -> list[Text]:
    time, is_partial = sharding.time, sharding.lacks_links
    # Without a peak the arithmetic takes an unknown time more.
    more = AT_LEAST * (sharding.utilisation is None and time.seconds > 0)
    reached = None if is_partial else sharding.utilisation

    def told(communication: float) -> str:
        return "?" if is_partial else seconds(communication)

    chosen, optimizer = [f"; {words}" for words in sharding.chosen], sharding.optimizer
    chosen += [f"; optimizer over {', '.join(optimizer.over)}"] if optimizer and optimizer.over else []
    chosen += ["; offload optimizer"] * sharding.is_offloaded
    if across := sharding.across:
        chosen.append(f"; {', '.join(across)} across {sharding.placed.machine.family.dimensions[-1].name}s")
    chosen += [f"; ring over {', '.join(sharding.ring)}"] * bool(sharding.ring)
    chosen += [] if sharding.stage is None else [f"; {sharding.stage.words}"]
    sent = Text(", ").join(
        Text.assemble(axes_text(axes, sharding.mesh, palette, "·") if axes else HOST, f" {told(duration)}")
        for axes, duration in time.communication
    )
    return [
        Text(str(number), "dim"),
        _mesh_text(sharding.mesh, palette).append("".join(chosen), "dim"),
        Text(f"{AT_LEAST if is_partial else more}{seconds(time.seconds)}", "bold"),
        Text(f"{more}{seconds(time.work)}"),
        Text(told(time.exposed)),
        Text(f"{MAY_FIT * _may_fit(sharding)}{human_bytes(sharding.memory_bytes)}"),
        Text(sharding.bound),
        Text("" if reached is None else f"{reached:.0%}"),
        sent if time.communication else Text("none", "dim"),
    ]


def _mesh_text(mesh: Mesh, palette: Palette) -> Text:
    """Axes and sizes, without those of size 1; an axis has the colour that it has in all meshes."""
    shape = without_ones(mesh).shape
    axes = (Text.assemble((axis, palette.axis(mesh, axis)), f"={size}") for axis, size in shape.items())
    return Text(", ").join(axes)


def sharding_lines(
    answer: MeshRanking, sharding: MeshSharding, width: int, palette: Palette, shown: int | None = None
) -> list[Text]:
    """A row's number, its mesh, figures beyond its first `shown` columns, and the sharding of every array; of
    a step that decodes, of parameters alone."""
    problem, mesh = answer.question.problem, sharding.mesh
    others = [part.problem for part in (*answer.question.kinds, answer.question.ends) if part]
    dims = {array.name: array.dims for each in (*others, problem) for array in each.arrays}
    arguments = {argument.name for each in (problem, *others) for argument in each.arguments}
    number, is_served = _row_of(answer, sharding), bool(answer.question.cached)
    lines = [Text.assemble((f"{number}  ", "dim"), _mesh_text(mesh, palette))]
    figures = [*zip(HEADINGS, _cells(number, sharding, palette), strict=True)]
    hidden = figures[len(figures) if shown is None else shown :]
    if is_served:
        arguments &= answer.question.roles.parameters
    named = [Text.assemble((heading.removeprefix(">"), "dim"), " ", cell) for heading, cell in hidden if cell]
    lines += records([named] * bool(named), width, 3)
    for lead, is_argument in (("arguments", True), ("results", False))[: 2 - is_served]:
        specs = [(name, spec) for name, spec in sharding.specs if (name in arguments) == is_argument]
        cells = [spec_text(name, dims[name], spec, mesh, palette) for name, spec in specs]
        lines += records([[Text(lead, "dim"), *cells]] * bool(cells), width, 3)
    return lines


def infeasible_words(answer: MeshRanking) -> str:
    """Why meshes are left out: the first without a sharding, and the first with too many shardings."""
    said = [f"{without_ones(mesh.mesh)}: {mesh.reason}" for mesh in answer.infeasible if not mesh.is_skipped]
    skipped = [str(without_ones(mesh.mesh)) for mesh in answer.infeasible if mesh.is_skipped]
    words, large = [], "too many shardings to search"
    fewer = " Axes with a kind have fewer: --axes X=fsdp,Y=tensor."
    for names, one, many, hint in (
        (said, "mesh is ruled out", "meshes are ruled out", ""),
        (skipped, f"mesh has {large}", f"meshes have {large}", fewer),
    ):
        more = f"; and {len(names) - 3:,} more" * (len(names) > 3)
        words += [f"{plural(len(names), one, many)}: {'; '.join(names[:3])}{more}.{hint}"] * bool(names)
    return " ".join(words)


def larger_machine_words(answer: MeshRanking) -> str:
    """Which machine of the same chips would do where this one is too small, or that none would."""
    options = answer.fitting_options
    words = f"With {options} it fits on {answer.question.machine.name}. " if options else ""
    if answer.smallest_machine:
        lead = "As asked, the" if options else "The"
        words += f"{lead} smallest machine that fits is {answer.smallest_machine}."
    elif answer.largest_machine_tried:
        lead = "As asked, no" if options else "No"
        words += f"{lead} larger machine fits either, up to {answer.largest_machine_tried}."
    return words


def _space_sentences(answer: MeshRanking, verbose: bool, served: Sequence[ServedMesh]) -> Iterator[str]:
    """The meshes looked at, the machine, and what is not counted; when `verbose`, all that was assumed."""
    question = answer.question
    if answer.is_complete:
        skipped = sum(mesh.is_skipped for mesh in answer.infeasible)
        meshes = plural(answer.meshes - skipped, "mesh", "meshes")
        count = answer.shardings
        many = f"{count:,}" if count < 10**12 else f"10^{len(str(count)) - 1}"
        shardings = "1 sharding" if count == 1 else f"{many} shardings"
        every = f"All {meshes}" if answer.meshes > 1 else meshes
        yield f"{f'{meshes} of {answer.meshes:,}' if skipped else every} and {shardings} looked at."
    else:
        yield f"Not complete: {answer.looked_at:,} of {answer.meshes:,} meshes."
    searched = (dropped_words(each.problem) for each in (question, *question.kinds))
    dropped = served[0].answer.dropped if served else dict.fromkeys(chain.from_iterable(searched))
    yield from (f"{words}." for words in dropped)
    machine = question.machine
    where = f"On {machine.name}, {matmul_words(machine, question.problem.result.dtype)}"
    if verbose and (own := own_words(question.problem)):
        yield f"Memory: {own}."
    if verbose and question.training is not None:
        yield "Gradients are sharded like their arrays, optimizer state like its parameters."
    if verbose and not served:
        yield f"{where}; {OVERLAP_WORDS[question.overlap]}."
        yield question.assumes
    else:
        yield f"{where}."
        if served:
            yield "Times are those of shardviz model --serve, without overlap."
        elif answer.found:
            yield "Rows keep to their axes' rules; explain may plan their shardings in less time or memory."
    if question.lacking:
        yield f"The time of {question.uncounted} is not counted: {question.lacking}."
