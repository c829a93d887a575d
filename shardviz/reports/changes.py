"""The differences between two reports of one program: what a change to it has cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from shardviz.reports.summary import ReportSummary, SummaryLine

ChangeKind = Literal[
    "added",
    "removed",
    "grown",
    "shrunk",
    "into a loop",
    "out of a loop",
    "more runs",
    "fewer runs",
    "not overlapped",
    "overlapped",
]


@dataclass(frozen=True)
class Change:
    """A collective before and after; None where there is none.

    "into a loop" and "out of a loop" are said where the runs change with it: the same runs without a loop, as
    of one that is unrolled, cost the same.
    """

    kind: ChangeKind
    before: SummaryLine | None
    after: SummaryLine | None

    @property
    def wire_bytes(self) -> int:
        """Bytes that a device sends more than before in all runs, without loops of unknown length."""
        return _sent(self.after) - _sent(self.before)


@dataclass(frozen=True)
class ReportChanges:
    """All that differs: `changes`, and what both programs take in all."""

    before: ReportSummary
    after: ReportSummary
    changes: tuple[Change, ...]

    @property
    def is_same_hardware(self) -> bool:
        """Return whether mesh and machine are the same, so that the figures can be compared."""
        before, after = self.before, self.after
        return (before.mesh, before.machine) == (after.mesh, after.machine)


def report_changes(before: ReportSummary, after: ReportSummary) -> ReportChanges:
    """The changes from one summary to another, the most bytes first.

    Collectives are the same ones where they have the operation, axes, phase and place; else where they have
    the shape in place of the place, so that other names make no difference.
    """
    gone = [line for line in before.lines if line not in after.lines]
    new = [line for line in after.lines if line not in before.lines]
    changes: list[Change] = []
    for key in (_known_by_place, _known_by_shape, _known_by_axes, _known_but_for_runs):
        for old, line in _taken_pairs(gone, new, key):
            changes += _changes_of(old, line)
    changes += [Change("removed", line, None) for line in gone]
    changes += [Change("added", None, line) for line in new]
    return ReportChanges(before, after, tuple(sorted(changes, key=lambda each: -abs(each.wire_bytes))))


def _known_by_place(line: SummaryLine) -> object:
    return line.op, line.axes, line.phase, line.place


def _known_by_shape(line: SummaryLine) -> object:
    return line.op, line.axes, line.phase, line.shape, line.runs


def _known_by_axes(line: SummaryLine) -> object:
    return line.op, line.axes, line.shape, line.runs


def _known_but_for_runs(line: SummaryLine) -> object:
    """A collective that moves into a loop has another place there."""
    return line.op, line.axes, line.phase, line.shape


def _taken_pairs(
    gone: list[SummaryLine], new: list[SummaryLine], key: Callable[[SummaryLine], object]
) -> list[tuple[SummaryLine, SummaryLine]]:
    """Take pairs with one key out of both lists: those of one shape first, then those of nearest size."""
    pairs = []
    for same_shape in (True, False):
        for line in list(new):
            known = [old for old in gone if key(old) == key(line)]
            known = [old for old in known if old.shape == line.shape or not same_shape]
            if known:
                old = min(known, key=lambda each: abs(each.bytes - line.bytes))
                gone.remove(old)
                new.remove(line)
                pairs.append((old, line))
    return pairs


def _changes_of(old: SummaryLine, line: SummaryLine) -> list[Change]:
    found: list[Change] = []
    if line.bytes != old.bytes:
        found.append(Change("grown" if line.bytes > old.bytes else "shrunk", old, line))
    elif line.runs != old.runs:
        more = line.runs is None or (old.runs is not None and line.runs > old.runs)
        if line.in_loop != old.in_loop:
            kind: ChangeKind = "into a loop" if line.in_loop else "out of a loop"
        else:
            kind = "more runs" if more else "fewer runs"
        found.append(Change(kind, old, line))
    is_told = (line.runs is None) == (old.runs is None)
    if is_told and line.overlapped_share != old.overlapped_share:
        is_better = line.overlapped_share > old.overlapped_share
        found.append(Change("overlapped" if is_better else "not overlapped", old, line))
    return found


def _sent(line: SummaryLine | None) -> int:
    return 0 if line is None else line.all_wire_bytes or 0
