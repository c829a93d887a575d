"""The chain of operations that makes a program as long as it is, and what would shorten it most."""

from __future__ import annotations

from collections.abc import Sequence

from shardviz.timeline.program_timeline import Lane, Saving, TimedOp
from shardviz.units import estimated_seconds

MAX_SAVINGS = 5
"""The savings that are told."""
WORTH = 0.001
"""A saving below this part of the total is not told, unless all of them together are `MUCH` of it."""
MUCH = 0.01
SLOW = 1.5
"""Compute is told that takes so many times as long as its roofline."""


def critical_path(causes: Sequence[int], last: int) -> tuple[int, ...]:
    """The operations from the last one back through the one whose end let each begin, first to last."""
    path: list[int] = []
    number, seen = last, set()
    while number >= 0 and number not in seen:
        seen.add(number)
        path.append(number)
        number = causes[number]
    return tuple(reversed(path))


def savings(
    ops: Sequence[TimedOp], lanes: Sequence[Lane], least: Sequence[float | None], total: float
) -> tuple[Saving, ...]:
    """The most that could be saved, alike operations of one source line together.

    `least` has the time of the roofline for each operation.
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, op in enumerate(ops):
        if _saved(op, lanes[op.lane], least[number]) > 0:
            groups.setdefault((op.op, op.lane, op.source or op.name), []).append(number)
    found: list[tuple[float, int, list[int]]] = []
    for members in groups.values():
        each = [_saved(ops[number], lanes[ops[number].lane], least[number]) for number in members]
        first = max(zip(members, each, strict=True), key=lambda pair: pair[1])[0]
        found.append((sum(each), first, members))
    found.sort(key=lambda saving: -saving[0])
    told = [saving for saving in found if saving[0] >= WORTH * total]
    if not told and sum(seconds for seconds, _, _ in found) >= MUCH * total:
        # Of very many lines none may be worth it alone.
        told = found
    return tuple(
        Saving(seconds, _message(ops, lanes, members, first, seconds), first)
        for seconds, first, members in told[:MAX_SAVINGS]
    )


def _runs(op: TimedOp) -> int:
    return 1 if op.runs is None else op.runs


def _saved(op: TimedOp, lane: Lane, least: float | None) -> float:
    """Seconds of all runs: what the device waits for, or what compute takes beyond its roofline.

    Where an operation waits for others on its links, no more than its own time: those would still be there.
    """
    waited = min(op.exposed, op.seconds or 0.0) * _runs(op)
    if lane.kind != "compute" or op.exposed or op.seconds is None or not least or op.seconds < SLOW * least:
        return waited
    return (op.seconds - least) * _runs(op)


def _message(
    ops: Sequence[TimedOp], lanes: Sequence[Lane], members: list[int], first: int, seconds: float
) -> str:
    op, lane = ops[first], lanes[ops[first].lane]
    runs = sum(_runs(ops[number]) for number in members)
    who = op.name if op.op in op.name else f"{op.op} {op.name}"
    if len(members) > 1:
        who += f" and {len(members) - 1:,} alike"
    if lane.kind in ("axis", "network"):
        who += f" along {lane.name}"
    if op.source:
        who += f" ({op.source})"
    amount = estimated_seconds(seconds) + (f" in {runs:,} runs" if runs > 1 else "")
    several = len(members) > 1
    if lane.kind == "compute" and not op.exposed:
        return f"{who} {'take' if several else 'takes'} {amount} more than {op.bound or 'HBM'} allows"
    if not op.is_async:
        return f"{who} {'block' if several else 'blocks'} the device for {amount}"
    return f"{who} {'are' if several else 'is'} exposed for {amount}"
