"""The limits that a change to a program must keep: ``new-collective,bytes+5%,seconds+2ms,memory+1GiB``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from shardviz.errors import NotationError, did_you_mean, plural, quote
from shardviz.hardware.quantities import SIZE, TIME
from shardviz.reports.changes import ChangeKind, ReportChanges
from shardviz.reports.summary import ReportSummary, SummaryLine
from shardviz.units import estimated_seconds, human_bytes

Quantity = Literal["new-collective", "bytes", "seconds", "memory"]
QUANTITIES: tuple[Quantity, ...] = ("new-collective", "bytes", "seconds", "memory")
HINT = "write limits with commas between them: new-collective, bytes+5%, seconds+2ms, memory+1GiB"

_LIMIT = re.compile(r"([a-z-]*[a-z])(?:\s*\+\s*(\d+(?:\.\d+)?)\s*(%|[A-Za-zµ]+))?")
_SUBJECTS = {"bytes": "bytes rise", "seconds": "seconds rise", "memory": "memory rises"}
RISING: tuple[ChangeKind, ...] = ("added", "grown", "into a loop", "other runs")
"""The changes by which a collective of an unknown number of runs may send more."""
MOST_SHARE = 3
"""A ratio above which it is told as a factor."""
ROUNDING = 1 + 1e-9
"""A limit that is met to the last digit is kept."""


@dataclass(frozen=True)
class Limit:
    """At most `amount` more of a quantity than before: bytes, seconds, or with `is_share` a part of what was
    there. A "new-collective" has no amount. `text` is what was typed."""

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
    found, start = [], 0
    for piece in text.split(","):
        found.append(_limit(piece, text, start))
        start += len(piece) + 1
    return tuple(found)


def _limit(piece: str, text: str, start: int) -> Limit:
    stripped = piece.strip()
    start += len(piece) - len(piece.lstrip())
    stop = start + len(stripped)
    match = _LIMIT.fullmatch(stripped)
    name = match[1] if match else stripped.partition("+")[0].strip()
    quantity = next((each for each in QUANTITIES if each == name), None)
    if quantity is None:
        hint = did_you_mean(name, QUANTITIES) + HINT
        raise NotationError(
            f"there is no limit {quote(name)}" if name else "a limit is missing", text, start, stop, hint
        )
    if match is None or (match[2] is None) != (quantity == "new-collective"):
        problem = "takes no amount" if quantity == "new-collective" else "needs an amount, such as +5%"
        raise NotationError(f"{quantity} {problem}", text, start, stop, HINT)
    if quantity == "new-collective":
        return Limit(quantity, stripped)
    units = (TIME if quantity == "seconds" else SIZE).units
    if match[3] == "%":
        return Limit(quantity, stripped, float(match[2]) / 100, True)
    if match[3] not in units:
        hint = f"use % or one of {', '.join(units)}"
        raise NotationError(f"{quote(match[3])} is not a unit of {quantity}", text, start, stop, hint)
    return Limit(quantity, stripped, float(match[2]) * units[match[3]])


def broken_limits(limits: tuple[Limit, ...], found: ReportChanges) -> tuple[BrokenLimit, ...]:
    """The limits that the changes do not keep. What only one of the programs tells breaks its limit."""
    broken = []
    for limit in limits:
        message = _new_collectives(found) if limit.quantity == "new-collective" else _more(limit, found)
        if message:
            broken.append(BrokenLimit(limit, message))
    return tuple(broken)


def _new_collectives(found: ReportChanges) -> str:
    new = [each.after for each in found.changes if each.kind == "added" and each.after is not None]
    if not new:
        return ""
    first = new[0]
    others = f" and {plural(len(new) - 1, 'other')}" if len(new) > 1 else ""
    verb = "is" if len(new) == 1 else "are"
    return f"{_named(first)}{others} {verb} new"


def _named(line: SummaryLine) -> str:
    return f"{line.op} over {', '.join(line.axes)}" if line.axes else line.op


def _without_number(found: ReportChanges) -> SummaryLine | None:
    """A collective that may cost more than before: nobody knows how often it runs."""
    unknown = (each.after for each in found.changes if each.kind in RISING)
    return next((line for line in unknown if line is not None and line.runs is None), None)


def _more(limit: Limit, found: ReportChanges) -> str:
    before, after = (_quantity(limit.quantity, each) for each in (found.before, found.after))
    if before is None and after is None:
        return ""
    if before is None or after is None:
        return f"{limit.quantity}: one of the two programs has no figure for it"
    if limit.quantity == "bytes" and (line := _without_number(found)):
        return f"bytes: {_named(line)} is in a loop of unknown length"
    allowed = before * limit.amount if limit.is_share else limit.amount
    if after - before <= allowed * ROUNDING:
        return ""
    written = estimated_seconds if limit.quantity == "seconds" else lambda count: human_bytes(round(count))
    rise = f"from {written(before)} to {written(after)}"
    if before:
        ratio = after / before
        rise += f", ×{ratio:,.3g}" if ratio > MOST_SHARE else f", {(ratio - 1) * 100:.1f} % more"
    return f"{_SUBJECTS[limit.quantity]} {rise}: the limit is {limit.text}"


def _quantity(quantity: Quantity, summary: ReportSummary) -> float | None:
    if quantity == "seconds":
        return summary.seconds
    return summary.memory if quantity == "memory" else summary.wire_bytes
