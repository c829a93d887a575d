"""A report in short, as it is kept and compared: the same on every run and every machine.

Instructions' names, lines of files and device ids are left out: they change with every edit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from shardviz.reports.alike import AlikeEntries, alike
from shardviz.reports.entries import Phase
from shardviz.reports.program_report import ProgramReport


@dataclass(frozen=True, order=True)
class SummaryLine:
    """Collectives of one kind at one `place`: the argument that they move, else the scopes they stand in.

    `shape` is that of a device's operand, ``bf16[64,128]``, and after an arrow the result's where it is
    another. `runs` are those of all of them, None in a loop of unknown length; `bytes` and `wire_bytes` those
    of one run of one. `is_overlapped` tells that something runs beside each of them.
    """

    op: str
    axes: tuple[str, ...]
    phase: Phase
    place: str
    shape: str
    runs: int | None
    bytes: int
    wire_bytes: int
    is_overlapped: bool


@dataclass(frozen=True)
class ReportSummary:
    """A program's collectives, and its `seconds` and the bytes of its `memory` on a machine, None where they
    are not known. `mesh` has the axes and their sizes."""

    mesh: tuple[tuple[str, int], ...]
    machine: str
    lines: tuple[SummaryLine, ...]
    seconds: float | None = None
    memory: int | None = None

    @property
    def wire_bytes(self) -> int:
        """Bytes that a device sends at least, without loops of unknown length."""
        return sum(each.wire_bytes * each.runs for each in self.lines if each.runs is not None)


def summary(report: ProgramReport) -> ReportSummary:
    """The summary of a report, its lines in an order that depends on them alone."""
    mesh, timeline = report.module.mesh, report.timeline
    return ReportSummary(
        () if mesh is None else tuple(mesh.shape.items()),
        "" if timeline is None else timeline.machine,
        tuple(sorted(_merged(map(_line, alike(report.entries))), key=_order)),
        None if timeline is None else timeline.seconds,
        None if timeline is None or timeline.memory is None else timeline.memory.peak_bytes,
    )


def _line(group: AlikeEntries) -> SummaryLine:
    one = group.first.collective
    operand, result = (",".join(map(str, shape)) for shape in (one.operand_shape, one.result_shape))
    shape = f"{one.dtype}[{operand}]" + (f"→[{result}]" if result != operand else "")
    if one.arrays > 1:
        shape += f" × {one.arrays}"
    overlapped = all(each.collective.overlapped for each in group.entries)
    return SummaryLine(
        one.op,
        one.axes,
        group.first.phase,
        group.name,
        shape,
        group.runs,
        one.bytes,
        one.wire_bytes,
        overlapped,
    )


def _merged(lines: Iterable[SummaryLine]) -> list[SummaryLine]:
    """Lines that differ in their runs alone, as one."""
    found: dict[SummaryLine, list[int | None]] = {}
    for line in lines:
        found.setdefault(replace(line, runs=0), []).append(line.runs)
    return [
        replace(line, runs=None if None in runs else sum(each or 0 for each in runs))
        for line, runs in found.items()
    ]


def _order(line: SummaryLine) -> tuple[object, ...]:
    return (line.op, line.axes, line.phase, line.place, line.shape, line.is_overlapped, line.runs or 0)
