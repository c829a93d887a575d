"""The differences between two reports of one program: what a change to it has cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from shardviz.reports.summary import ReportSummary, SummaryLine

ChangeKind = Literal[
    "added", "removed", "grown", "shrunk", "more runs", "fewer runs", "not overlapped", "overlapped"
]


@dataclass(frozen=True)
class Change:
    """A collective before and after; None where there is none.

    A collective that a loop runs more often, or that came into one, has "more runs".
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


def report_changes(before: ReportSummary, after: ReportSummary) -> ReportChanges:
    """The changes from one summary to another, the most bytes first.

    Collectives are the same ones where they have the operation, axes, phase and place; those that only have
    another place, as after a change of names, have not changed.
    """
    gone, new = _without_equal(before.lines, after.lines)
    changes: list[Change] = []
    for alike in (_known_by_place, _known_by_shape, _known_by_axes):
        gone, new, pairs = _paired(gone, new, alike)
        changes += [change for old, line in pairs for change in _changes_of(old, line)]
    changes += [Change("removed", line, None) for line in gone]
    changes += [Change("added", None, line) for line in new]
    return ReportChanges(before, after, tuple(sorted(changes, key=lambda each: -abs(each.wire_bytes))))


def _without_equal(
    before: Iterable[SummaryLine], after: Iterable[SummaryLine]
) -> tuple[list[SummaryLine], list[SummaryLine]]:
    old, new = dict.fromkeys(before), dict.fromkeys(after)
    return [line for line in old if line not in new], [line for line in new if line not in old]


def _known_by_place(line: SummaryLine) -> object:
    return line.op, line.axes, line.phase, line.place


def _known_by_shape(line: SummaryLine) -> object:
    return line.op, line.axes, line.phase, line.shape, line.runs


def _known_by_axes(line: SummaryLine) -> object:
    return line.op, line.axes, line.shape, line.runs


def _paired(
    gone: list[SummaryLine], new: list[SummaryLine], key: Callable[[SummaryLine], object]
) -> tuple[list[SummaryLine], list[SummaryLine], list[tuple[SummaryLine, SummaryLine]]]:
    """Lines with one key together, those of one shape first; and what is left of both."""
    waiting: defaultdict[object, list[SummaryLine]] = defaultdict(list)
    for line in gone:
        waiting[key(line)].append(line)
    pairs: list[tuple[SummaryLine, SummaryLine]] = []
    for same_shape in (True, False):
        for line in new:
            if any(line is each for _, each in pairs):
                continue
            found = waiting[key(line)]
            old = next((each for each in found if not same_shape or each.shape == line.shape), None)
            if old is not None:
                found.remove(old)
                pairs.append((old, line))
    left = [line for those in waiting.values() for line in those]
    taken = {id(line) for _, line in pairs}
    return left, [line for line in new if id(line) not in taken], pairs


def _changes_of(old: SummaryLine, line: SummaryLine) -> list[Change]:
    found: list[Change] = []
    if line.bytes != old.bytes:
        found.append(Change("grown" if line.bytes > old.bytes else "shrunk", old, line))
    elif line.runs != old.runs:
        more = line.runs is None or (old.runs is not None and line.runs > old.runs)
        found.append(Change("more runs" if more else "fewer runs", old, line))
    if line.is_overlapped != old.is_overlapped:
        found.append(Change("overlapped" if line.is_overlapped else "not overlapped", old, line))
    return found


def _sent(line: SummaryLine | None) -> int:
    return 0 if line is None or line.runs is None else line.runs * line.wire_bytes
