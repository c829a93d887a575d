"""A report in short, as it is kept and compared: the same on every run and every machine.

Instructions' names and device ids are left out, and lines of files are not kept: they change with every edit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from shardviz.reports.entries import AlikeEntries, Phase, alike
from shardviz.reports.program_report import ProgramReport


@dataclass(frozen=True)
class SummaryLine:
    """Collectives of one kind at one `place`: as that of `CollectiveEntry`.

    `shape` is that of a device's operand, ``bf16[64,128]``, and after an arrow the result's where it is
    another. `runs` are those of all of them, None in a loop of unknown length; `bytes` and `wire_bytes` those
    of one run of one. `overlapped` are the runs that something runs beside, a loop of unknown length counted
    as one; `in_loop` tells that one of them is in a loop. `source` is the user's line of the first, which is
    neither compared nor kept.
    """

    op: str
    axes: tuple[str, ...]
    phase: Phase | None
    place: str
    shape: str
    runs: int | None
    bytes: int
    wire_bytes: int
    overlapped: int
    in_loop: bool = False
    source: str = field(default="", compare=False)

    @property
    def all_wire_bytes(self) -> int | None:
        """Bytes that a device sends at least, in all runs; None in a loop of unknown length."""
        return None if self.runs is None else self.runs * self.wire_bytes

    @property
    def overlapped_share(self) -> float:
        """The part of the runs that something runs beside; of unknown ones their number."""
        return self.overlapped / self.runs if self.runs else float(self.overlapped)


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
        return sum(each.all_wire_bytes or 0 for each in self.lines)


def summary(report: ProgramReport, memory: int | None = None) -> ReportSummary:
    """The summary of a report, its lines in an order that depends on them alone.

    `memory` is the compiler's own account of a device's bytes at the peak, where there is one.
    """
    mesh, timeline = report.module.mesh, report.timeline
    if memory is None and timeline is not None and timeline.memory is not None:
        memory = timeline.memory.peak_bytes
    return ReportSummary(
        () if mesh is None else tuple(mesh.shape.items()),
        "" if timeline is None else timeline.machine,
        _sorted(map(_line, alike(report.entries, by_schedule=False))),
        None if timeline is None else _three_digits(timeline.seconds),
        memory,
    )


def together(programs: Mapping[str, ReportSummary]) -> ReportSummary:
    """Several programs that run one after the other as one, their names before the places.

    Seconds add up, memory is the most that one takes, and the mesh is that of the most devices.
    """
    if len(programs) == 1:
        return next(iter(programs.values()))
    named = [
        replace(line, place=f"{name}: {line.place}" if line.place else name)
        for name, each in programs.items()
        for line in each.lines
    ]
    seconds = [each.seconds for each in programs.values() if each.seconds is not None]
    memory = [each.memory for each in programs.values() if each.memory is not None]
    return ReportSummary(
        max((each.mesh for each in programs.values()), key=_devices, default=()),
        next((each.machine for each in programs.values() if each.machine), ""),
        _sorted(named),
        _three_digits(math.fsum(seconds)) if seconds else None,
        max(memory, default=None),
    )


def _devices(mesh: tuple[tuple[str, int], ...]) -> int:
    return math.prod(size for _, size in mesh)


def _three_digits(seconds: float) -> float:
    """Estimates differ in the last bits from machine to machine."""
    return float(f"{seconds:.3g}")


def _line(group: AlikeEntries) -> SummaryLine:
    one = group.first.collective
    operand, result = (",".join(map(str, shape)) for shape in (one.operand_shape, one.result_shape))
    shape = f"{one.dtype}[{operand}]" + (f"→[{result}]" if result != operand else "")
    if one.arrays > 1:
        shape += f" × {one.arrays}"
    overlapped = sum(each.runs or 1 for each in group.entries if each.collective.overlapped)
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
        any(each.runs != 1 for each in group.entries),
        one.source,
    )


def _sorted(lines: Iterable[SummaryLine]) -> tuple[SummaryLine, ...]:
    """Lines that differ in how and how often they run as one, all in their order."""
    found: dict[SummaryLine, list[SummaryLine]] = {}
    for line in lines:
        found.setdefault(replace(line, runs=0, overlapped=0, in_loop=False), []).append(line)
    return tuple(sorted(map(_merged, found.values()), key=_order))


def _merged(lines: Sequence[SummaryLine]) -> SummaryLine:
    runs = [line.runs for line in lines]
    return replace(
        lines[0],
        runs=None if None in runs else sum(each or 0 for each in runs),
        overlapped=sum(line.overlapped for line in lines),
        in_loop=any(line.in_loop for line in lines),
    )


def _order(line: SummaryLine) -> tuple[object, ...]:
    runs = -1 if line.runs is None else line.runs
    return line.op, line.axes, line.phase or "", line.place, line.shape, runs, line.bytes, line.wire_bytes
