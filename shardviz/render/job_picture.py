"""The processes of a job: the host and process that hold each device of a mesh, and the groups that cross
hosts."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shardviz.devices.job import GroupSpan, Job, group_span
from shardviz.errors import plural
from shardviz.render.caption import axes_text, coordinates
from shardviz.render.lines import Cell, columns, sentence, table
from shardviz.render.palette import SIGNS, Palette
from shardviz.sharding import Mesh

MAX_ROWS, MAX_COLUMNS, MAX_PROCESSES, MAX_GROUPS, MAX_NAMED = 16, 16, 8, 4, 8


def job_lines(
    job: Job, mesh: Mesh, axes: Sequence[Sequence[str]], width: int, palette: Palette
) -> list[Text]:
    """The mesh as a grid, each device with its holder, or the processes one by one where that is too wide;
    then a line for each of `axes`. Nothing for a process that is alone, or a mesh that the job refuses."""
    if not job.runs(mesh):
        return []
    hosts = {*job.hosts}
    where = plural(len(hosts), "host") if len(hosts) > 1 else job.hosts[0]
    said = f"{job.processes:,} processes on {where}, {plural(mesh.size, 'device')}"
    lines = sentence(said, width, lead="job  ")
    lines += _grid(job, mesh, width, palette) or _processes(job, width)
    rows = [_span_cells(group_span(job, mesh, each), mesh, palette) for each in axes]
    return [*lines, *table(rows, width, 1), Text()]


def _grid(job: Job, mesh: Mesh, width: int, palette: Palette) -> list[Text] | None:
    """The mesh with its last axis to the right; None where it is too large."""
    across = mesh.axis_sizes[-1]
    if mesh.size // across > MAX_ROWS or across > MAX_COLUMNS:
        return None
    heads = [coordinates(mesh, position, palette, mesh.axis_names[-1:]) for position in range(across)]
    rows = [[Text(), *heads]]
    for first in range(0, mesh.size, across):
        held = [_holder(job, mesh, position) for position in range(first, first + across)]
        rows.append([coordinates(mesh, first, palette, mesh.axis_names[:-1]), *held])
    return columns(rows, width, 1)


def _holder(job: Job, mesh: Mesh, position: int) -> Text:
    process = job.holder(mesh, position)
    host = f"{job.hosts[process]} " if len({*job.hosts}) > 1 else ""
    return Text.assemble((str(mesh.device_id(position)), "bold"), (f" {host}p{process}", "dim"))


def _processes(job: Job, width: int) -> list[Text]:
    rows: list[list[Cell]] = []
    for process in range(min(job.processes, MAX_PROCESSES)):
        devices = job.devices_of(process)
        held = f"{devices[0]:,}–{devices[-1]:,}" if len(devices) > 1 else ", ".join(map(str, devices))
        rows.append([(f"p{process}", "bold"), job.hosts[process], f"devices {held}"])
    more = job.processes - MAX_PROCESSES
    note = sentence(plural(more, "more process", "more processes"), width, 1) if more > 0 else []
    return [*table(rows, width, 1), *note]


def _span_cells(span: GroupSpan, mesh: Mesh, palette: Palette) -> list[Text]:
    """``over X  ≠ 2 of 4 groups cross hosts: {0, 4} node-a, node-b; …``."""
    count = len(span.groups)
    if span.across_hosts:
        crossing = [
            f"{{{', '.join(str(mesh.device_id(position)) for position in group)}}} {', '.join(hosts)}"
            for group, hosts in zip(span.groups, span.hosts, strict=True)
            if hosts and len(group) <= MAX_NAMED
        ]
        listed = "; ".join([*crossing[:MAX_GROUPS], *["…"] * (len(crossing) > MAX_GROUPS)])
        said = f"≠ {_crossing(span.across_hosts, count)} hosts{': ' if listed else ''}{listed}"
    elif span.across_processes:
        said = f"{_crossing(span.across_processes, count)} processes of one host"
    else:
        said = f"{plural(count, 'group')}{', each' if count > 1 else ''} within one process"
    cell = Text(said)
    if span.across_hosts:
        cell.stylize(SIGNS["≠"], 0, 1)
    return [Text.assemble("over ", axes_text(span.axes, mesh, palette)), cell]


def _crossing(some: int, count: int) -> str:
    groups = plural(count, "group") if some == count else f"{some:,} of {plural(count, 'group')}"
    return f"{groups} {'crosses' if some == 1 else 'cross'}"
