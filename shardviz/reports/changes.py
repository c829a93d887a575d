"""A report in short, the same on every run and every machine, as it is kept and compared; what a change of
the program costs, and the limits that it must keep: ``new-collective,bytes+5%,seconds+2ms,memory+1GiB``."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import permutations
from operator import attrgetter
from typing import Literal, get_args

from shardviz.errors import NotationError, did_you_mean, listed, plural, quote
from shardviz.hardware.quantities import SIZE, TIME
from shardviz.reports.arrays import ProgramArray
from shardviz.reports.entries import AlikeEntries, Phase, alike
from shardviz.reports.program_report import ProgramReport
from shardviz.units import human_bytes, seconds as human_seconds

ChangeKind = Literal[
    "added",
    "removed",
    "grown",
    "shrunk",
    "into a loop",
    "out of a loop",
    "more runs",
    "fewer runs",
    "other runs",
    "less overlapped",
    "more overlapped",
]


@dataclass(frozen=True)
class SummaryLine:
    """Collectives of one kind at one `place`: as that of `CollectiveEntry`.

    `shape` is that of a device's operand, ``bf16[64,128]``, and after an arrow the result's where it is
    another. `runs` are those of all of them, None in a loop of unknown length; `bytes` and `wire_bytes` those
    of one run of one. `overlapped` are the runs that something runs beside, a loop of unknown length counted
    as one. `source` is the user's line of the first, which changes with every edit and is not kept."""

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
class ArrayLine:
    """An "argument" or an "output" of a program at a `path`: its `shape` is global, ``bf16[64,128]``, and its
    `spec` as JAX writes it, "" where it is not known."""

    kind: str
    path: str
    shape: str
    spec: str


@dataclass(frozen=True)
class ReportSummary:
    """A program's collectives, and its `seconds` and the bytes of its `memory` on a machine, None where they
    are not known. `mesh` has the axes and their sizes, and `arrays` are its arguments and outputs."""

    mesh: tuple[tuple[str, int], ...]
    machine: str
    lines: tuple[SummaryLine, ...]
    seconds: float | None = None
    memory: int | None = None
    arrays: tuple[ArrayLine, ...] = ()

    @property
    def wire_bytes(self) -> int:
        """Bytes that a device sends at least, without loops of unknown length."""
        return sum(line.all_wire_bytes or 0 for line in self.lines)


def summary(
    report: ProgramReport, memory: int | None = None, arrays: Iterable[ProgramArray] = ()
) -> ReportSummary:
    """The summary of a report; `memory` is the compiler's own account of a device's peak, if there is one."""
    mesh, timeline = report.module.mesh, report.timeline
    if memory is None and timeline is not None and timeline.memory is not None:
        memory = timeline.memory.peak_bytes
    lines = []
    for one in (each for each in arrays if each.kind in ("argument", "output") and each.name):
        sizes = ",".join(map(str, one.part if one.shape is None else one.shape))
        spec = "" if one.spec is None else str(one.spec)
        lines.append(ArrayLine(one.kind, one.name, f"{one.dtype}[{sizes}]", spec))
    return ReportSummary(
        () if mesh is None else tuple(mesh.shape.items()),
        "" if timeline is None else timeline.machine,
        _sorted(map(_line, alike(report.entries, by_schedule=False))),
        None if timeline is None else _three_digits(timeline.seconds),
        memory,
        tuple(lines),
    )


def together(programs: Mapping[str, ReportSummary]) -> ReportSummary:
    """Several programs that run one after the other as one, their names before the places. Seconds add up,
    memory is the most that one takes, and the mesh is that of the most devices."""
    every = programs.values()
    if len(programs) == 1:
        return next(iter(every))
    named = [
        replace(line, place=f"{name}: {line.place}" if line.place else name)
        for name, report in programs.items()
        for line in report.lines
    ]
    seconds = [report.seconds for report in every if report.seconds is not None]
    return ReportSummary(
        max((report.mesh for report in every), key=lambda mesh: math.prod(dict(mesh).values()), default=()),
        next((report.machine for report in every if report.machine), ""),
        _sorted(named),
        _three_digits(math.fsum(seconds)) if seconds else None,
        max((report.memory for report in every if report.memory is not None), default=None),
    )


def _three_digits(seconds: float) -> float:
    """Estimates differ in the last bits from machine to machine."""
    return float(f"{seconds:.3g}")


def _line(group: AlikeEntries) -> SummaryLine:
    one = group.first.collective
    operand, result = (",".join(map(str, shape)) for shape in (one.operand_shape, one.result_shape))
    shape = f"{one.dtype}[{operand}]" + (f"→[{result}]" if result != operand else "")
    if one.arrays > 1:
        shape += f" × {one.arrays}"
    overlapped = sum(entry.runs or 1 for entry in group.entries if entry.collective.overlapped)
    in_loop = any(entry.runs != 1 for entry in group.entries)
    figures = group.runs, one.bytes, one.wire_bytes, overlapped, in_loop
    return SummaryLine(one.op, one.axes, group.first.phase, group.name, shape, *figures, one.source)


def _sorted(lines: Iterable[SummaryLine]) -> tuple[SummaryLine, ...]:
    """Lines that differ in how and how often they run as one, all in their order."""
    merged: dict[SummaryLine, SummaryLine] = {}
    for line in lines:
        same = replace(line, runs=0, overlapped=0, in_loop=False)
        before = merged.get(same, same)
        merged[same] = replace(
            before,
            runs=None if before.runs is None or line.runs is None else before.runs + line.runs,
            overlapped=before.overlapped + line.overlapped,
            in_loop=before.in_loop or line.in_loop,
        )

    def order(line: SummaryLine) -> tuple[object, ...]:
        runs = -1 if line.runs is None else line.runs
        return line.op, line.axes, line.phase or "", line.place, line.shape, runs, line.bytes, line.wire_bytes

    return tuple(sorted(merged.values(), key=order))


@dataclass(frozen=True)
class Change:
    """A collective before and after; None where there is none. "grown" and "shrunk" are about one run. "into
    a loop" and "out of a loop" are said where the runs change too; of "other runs" one number is unknown."""

    kind: ChangeKind
    before: SummaryLine | None
    after: SummaryLine | None

    @property
    def wire_bytes(self) -> int:
        """Bytes that a device sends more than before in all runs, without loops of unknown length."""
        before, after = ((line and line.all_wire_bytes) or 0 for line in (self.before, self.after))
        return after - before


@dataclass(frozen=True)
class ReportChanges:
    """All that differs: `changes`, and what both programs take in all."""

    before: ReportSummary
    after: ReportSummary
    changes: tuple[Change, ...]

    @cached_property
    def arrays(self) -> tuple[tuple[ArrayLine, ArrayLine], ...]:
        """The arrays that both have and that are split in another way, before and after; none where one of
        the summaries has no arrays. A path that several have tells nothing."""
        before, after = (
            {(line.kind, line.path): line for line in side.arrays} for side in (self.before, self.after)
        )
        often = Counter((line.kind, line.path) for side in (self.before, self.after) for line in side.arrays)
        pairs = ((old, after[key]) for key, old in before.items() if key in after and often[key] == 2)
        return tuple((old, new) for old, new in pairs if old.spec != new.spec and old.spec and new.spec)

    @property
    def is_same_hardware(self) -> bool:
        """Return whether mesh and machine are the same, so that the figures can be compared."""
        before, after = self.before, self.after
        return (before.mesh, before.machine) == (after.mesh, after.machine)

    @property
    def same(self) -> int:
        """The number of lines that both have; others without a change differ in their place alone."""
        return len({*self.before.lines} & {*self.after.lines})


def report_changes(before: ReportSummary, after: ReportSummary) -> ReportChanges:
    """The changes from one summary to another, the most bytes first. Collectives are the same where
    operation, axes, phase and place are, else where shape and runs are: other names make no difference."""
    kept = {*before.lines} & {*after.lines}
    gone, new = ([line for line in side.lines if line not in kept] for side in (before, after))
    pairs = (pair for old_key, new_key in _KEYS for pair in _taken_pairs(gone, new, old_key, new_key))
    changes = [change for old, line in pairs for change in _changes_of(old, line)]
    changes += [Change("removed", line, None) for line in gone]
    changes += [Change("added", None, line) for line in new]
    return ReportChanges(before, after, tuple(sorted(changes, key=lambda change: -abs(change.wire_bytes))))


_Key = Callable[[SummaryLine], object]


def _nameless(line: SummaryLine) -> object:
    """Without a place, collectives of other sizes are the same ones only where all else is alike."""
    rank = re.sub(r"[^,\[\]→×]", "", line.shape)
    return None if line.place else (line.op, line.axes, line.phase, rank, line.runs, line.in_loop)


_SAME_SHAPE: _Key = attrgetter("op", "axes", "phase", "shape")
_BOTH: tuple[_Key, ...] = (
    attrgetter("op", "axes", "phase", "place", "shape"),
    lambda line: (line.op, line.axes, line.phase, line.place) if line.place else None,
    attrgetter("op", "axes", "phase", "shape", "runs"),
    attrgetter("op", "axes", "shape", "runs"),
    _nameless,
)
_ONE: tuple[_Key, ...] = (
    lambda line: _SAME_SHAPE(line) if line.place and not line.in_loop else None,
    # In a loop what the loop hands on has no place.
    lambda line: _SAME_SHAPE(line) if line.in_loop and not line.place else None,
)
_KEYS = (*((key, key) for key in _BOTH), *permutations(_ONE))
"""By what an old line and a new one are the same collective, the surest first."""


def _taken_pairs(
    gone: list[SummaryLine], new: list[SummaryLine], old_key: _Key, new_key: _Key
) -> list[tuple[SummaryLine, SummaryLine]]:
    """Take pairs with one key out of both lists, of several the nearest in size; no key is None."""
    known: dict[object, list[SummaryLine]] = defaultdict(list)
    for old in gone:
        known[old_key(old)].append(old)
    known.pop(None, None)
    pairs = []
    for line in new:
        if those := known.get(new_key(line)):
            old = min(those, key=lambda candidate: abs(candidate.bytes - line.bytes))
            those.remove(old)
            pairs.append((old, line))
    taken = {id(line) for pair in pairs for line in pair}
    for lines in (gone, new):
        lines[:] = [line for line in lines if id(line) not in taken]
    return pairs


def _changes_of(old: SummaryLine, line: SummaryLine) -> list[Change]:
    kinds: list[ChangeKind] = []
    size, old_size = (line.wire_bytes, line.bytes), (old.wire_bytes, old.bytes)
    if line.runs != old.runs and line.in_loop != old.in_loop:
        kinds.append("into a loop" if line.in_loop else "out of a loop")
    elif size != old_size:
        kinds.append("grown" if size > old_size else "shrunk")
    elif line.runs != old.runs and (line.runs is None or old.runs is None):
        kinds.append("other runs")
    elif line.runs is not None and old.runs is not None and line.runs != old.runs:
        kinds.append("more runs" if line.runs > old.runs else "fewer runs")
    share, old_share = line.overlapped_share, old.overlapped_share
    if (line.runs is None) == (old.runs is None) and share != old_share:
        kinds.append("more overlapped" if share > old_share else "less overlapped")
    return [Change(kind, old, line) for kind in kinds]


Quantity = Literal["new-collective", "resharded", "bytes", "seconds", "memory"]
QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)
WITHOUT_AMOUNT = ("new-collective", "resharded")
HINT = "write limits with commas between them: new-collective, resharded, bytes+5%, seconds+2ms, memory+1GiB"

MOST_SHARE = 3
"""A ratio above which it is told as a factor."""


@dataclass(frozen=True)
class Limit:
    """At most `amount` more of a quantity than before: bytes, seconds, or with `is_share` a part of what was
    there. Those `WITHOUT_AMOUNT` have none. `text` is what was typed."""

    quantity: Quantity
    text: str
    amount: float = 0.0
    is_share: bool = False


@dataclass(frozen=True)
class BrokenLimit:
    """A limit that a change does not keep, and a sentence with the figures."""

    limit: Limit
    message: str


def parse_limits(text: str) -> tuple[Limit, ...]:
    """Read limits with commas between them. Raises `NotationError`."""
    return tuple(_limit(piece, text, start) for piece, start in listed(text))


def _limit(piece: str, text: str, start: int) -> Limit:
    stop = start + len(piece)
    match = re.fullmatch(r"([a-z-]*[a-z])(?:\s*\+\s*(\d+(?:\.\d+)?)\s*(%|[A-Za-zµ]+))?", piece)
    name = match[1] if match else piece.partition("+")[0].strip()
    quantity = next((known for known in QUANTITIES if known == name), None)
    if quantity is None:
        hint = did_you_mean(name, QUANTITIES) + HINT
        raise NotationError(
            f"there is no limit {quote(name)}" if name else "a limit is missing", text, start, stop, hint
        )
    if match is None or (match[2] is None) != (quantity in WITHOUT_AMOUNT):
        problem = "takes no amount" if quantity in WITHOUT_AMOUNT else "needs an amount, such as +5%"
        raise NotationError(f"{quantity} {problem}", text, start, stop, HINT)
    if quantity in WITHOUT_AMOUNT:
        return Limit(quantity, piece)
    units = (TIME if quantity == "seconds" else SIZE).units
    if match[3] == "%":
        return Limit(quantity, piece, float(match[2]) / 100, True)
    if match[3] not in units:
        hint = f"use % or one of {', '.join(units)}"
        raise NotationError(f"{quote(match[3])} is not a unit of {quantity}", text, start, stop, hint)
    return Limit(quantity, piece, float(match[2]) * units[match[3]])


def broken_limits(limits: tuple[Limit, ...], changes: ReportChanges) -> tuple[BrokenLimit, ...]:
    """The limits that the changes do not keep. What only one of the programs tells breaks its limit."""
    return tuple(BrokenLimit(limit, message) for limit in limits if (message := _broken(limit, changes)))


def _named(line: SummaryLine) -> str:
    return f"{line.op} over {', '.join(line.axes)}" if line.axes else line.op


def _broken(limit: Limit, changes: ReportChanges) -> str:
    quantity = limit.quantity
    if quantity in WITHOUT_AMOUNT:
        found = [f"{new.path} ({old.spec} to {new.spec})" for old, new in changes.arrays]
        how = "split in another way"
        if quantity == "new-collective":
            added = (change.after for change in changes.changes if change.kind == "added")
            found, how = [_named(line) for line in added if line is not None], "new"
        others = f" and {plural(len(found) - 1, 'other')} are" if len(found) > 1 else " is"
        return f"{found[0]}{others} {how}" if found else ""
    figure = attrgetter("wire_bytes" if quantity == "bytes" else quantity)
    before, after = figure(changes.before), figure(changes.after)
    if before is None and after is None:
        return ""
    if before is None or after is None:
        return f"{quantity}: one of the two programs has no figure for it"
    # A collective may cost more than before of which nobody knows how often it runs.
    rising = ("added", "grown", "into a loop", "other runs")
    for change in changes.changes if quantity == "bytes" else ():
        if change.kind in rising and change.after is not None and change.after.runs is None:
            return f"bytes: {_named(change.after)} is in a loop of unknown length"
    allowed = before * limit.amount if limit.is_share else limit.amount
    if after - before <= allowed * (1 + 1e-9):  # one that is met to the last digit is kept
        return ""
    written = human_seconds if quantity == "seconds" else lambda count: human_bytes(round(count))
    rise = f"from {written(before)} to {written(after)}"
    if before:
        ratio = after / before
        rise += f", ×{ratio:,.3g}" if ratio > MOST_SHARE else f", {(ratio - 1) * 100:.1f} % more"
    return f"{quantity} {'rises' if quantity == 'memory' else 'rise'} {rise}: the limit is {limit.text}"
