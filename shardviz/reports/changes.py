"""The differences between two reports of one program: what a change to it has cost."""

from __future__ import annotations

import re
from collections import defaultdict
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
    "other runs",
    "less overlapped",
    "more overlapped",
]
_RANK = re.compile(r"[^,\[\]→×]")
"""All of a shape but its dimensions' number."""


@dataclass(frozen=True)
class Change:
    """A collective before and after; None where there is none.

    "grown" and "shrunk" are about one run. "into a loop" and "out of a loop" are said where the runs change
    with it: the same runs without a loop, as of one that is unrolled, cost the same. "other runs" are those
    of which one number is not known.
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

    @property
    def same(self) -> int:
        """The number of lines that both have; others without a change differ in their place alone."""
        return len({*self.before.lines} & {*self.after.lines})


def report_changes(before: ReportSummary, after: ReportSummary) -> ReportChanges:
    """The changes from one summary to another, the most bytes first.

    Collectives are the same ones where they have the operation, axes, phase and place; else where they have
    the shape and the runs in place of the place, so that other names make no difference.
    """
    kept = {*before.lines} & {*after.lines}
    gone = [line for line in before.lines if line not in kept]
    new = [line for line in after.lines if line not in kept]
    changes: list[Change] = []
    for old_key, new_key in _KEYS:
        for old, line in _taken_pairs(gone, new, old_key, new_key):
            changes += _changes_of(old, line)
    changes += [Change("removed", line, None) for line in gone]
    changes += [Change("added", None, line) for line in new]
    return ReportChanges(before, after, tuple(sorted(changes, key=lambda each: -abs(each.wire_bytes))))


def _place_and_shape(line: SummaryLine) -> object:
    return line.op, line.axes, line.phase, line.place, line.shape


def _named_place(line: SummaryLine) -> object:
    return (line.op, line.axes, line.phase, line.place) if line.place else None


def _shape_and_runs(line: SummaryLine) -> object:
    return line.op, line.axes, line.phase, line.shape, line.runs


def _shape_of_any_phase(line: SummaryLine) -> object:
    return line.op, line.axes, line.shape, line.runs


def _nameless(line: SummaryLine) -> object:
    """Without a place, collectives of other sizes are the same ones only where all else is alike."""
    if line.place:
        return None
    return line.op, line.axes, line.phase, _RANK.sub("", line.shape), line.runs, line.in_loop


def _carried(line: SummaryLine) -> object:
    """The key of one in a loop that moves what the loop hands on, which has no place."""
    return (line.op, line.axes, line.phase, line.shape) if line.in_loop and not line.place else None


def _outside(line: SummaryLine) -> object:
    return (line.op, line.axes, line.phase, line.shape) if line.place and not line.in_loop else None


_Key = Callable[[SummaryLine], object]
_BOTH: tuple[_Key, ...] = (_place_and_shape, _named_place, _shape_and_runs, _shape_of_any_phase, _nameless)
_KEYS = (*((key, key) for key in _BOTH), (_outside, _carried), (_carried, _outside))
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
            old = min(those, key=lambda each: abs(each.bytes - line.bytes))
            those.remove(old)
            pairs.append((old, line))
    taken = {id(line) for pair in pairs for line in pair}
    for lines in (gone, new):
        lines[:] = [line for line in lines if id(line) not in taken]
    return pairs


def _changes_of(old: SummaryLine, line: SummaryLine) -> list[Change]:
    found: list[Change] = []
    size, old_size = (line.wire_bytes, line.bytes), (old.wire_bytes, old.bytes)
    if line.runs != old.runs and line.in_loop != old.in_loop:
        found.append(Change("into a loop" if line.in_loop else "out of a loop", old, line))
    elif size != old_size:
        found.append(Change("grown" if size > old_size else "shrunk", old, line))
    elif line.runs != old.runs:
        found.append(Change(_other_runs(old, line), old, line))
    is_told = (line.runs is None) == (old.runs is None)
    if is_told and line.overlapped_share != old.overlapped_share:
        is_better = line.overlapped_share > old.overlapped_share
        found.append(Change("more overlapped" if is_better else "less overlapped", old, line))
    return found


def _other_runs(old: SummaryLine, line: SummaryLine) -> ChangeKind:
    if old.runs is None or line.runs is None:
        return "other runs"
    return "more runs" if line.runs > old.runs else "fewer runs"


def _sent(line: SummaryLine | None) -> int:
    return 0 if line is None else line.all_wire_bytes or 0
