"""The runs of each kind of collective, in all and against what a test expects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from shardviz.hlo.collective import Collective

OTHERS = "others"
"""All the operations that an expectation does not name."""


@dataclass(frozen=True)
class Total:
    """All collectives of one kind, those between TPU slices and transfers to and from the host apart.

    `count` is how often they run, loops included; `bytes` and `wire_bytes` are the sums of what a run has,
    on one device. Those in a loop of unknown length are in none of the three: `unknown` counts them.
    """

    op: str
    between_slices: bool = False
    is_host_transfer: bool = False
    count: int = 0
    bytes: int = 0
    wire_bytes: int = 0
    unknown: int = 0


def totals(collectives: Iterable[Collective]) -> tuple[Total, ...]:
    """A total for each kind, in the order in which the kinds first come. Local slices are not collectives."""
    found: dict[tuple[str, bool, bool], Total] = {}
    for one in collectives:
        kind = one.op, one.between_slices, one.is_host_transfer
        if one.op != "slice":
            total, count = found.get(kind, Total(*kind)), one.count or 0
            found[kind] = Total(
                *kind,
                total.count + count,
                total.bytes + count * one.bytes,
                total.wire_bytes + count * one.wire_bytes,
                total.unknown + (one.count is None),
            )
    return tuple(found.values())


Expected = int | Mapping[tuple[str, ...], int | None] | None
"""Runs in all, or those over each group of mesh axes, whose order does not matter; None is any number."""


@dataclass(frozen=True)
class Tally:
    """The collectives of one operation, by HLO's name, or of all `OTHERS`.

    `expected` is how often they should run in all, None where nothing is expected. `found` counts runs
    through loops and calls; `uncounted` is how many of the collectives are in loops of unknown length. With
    `axes` they are those over these mesh axes alone, and without any, those over axes that are not named.
    """

    op: str
    expected: int | None
    collectives: tuple[Collective, ...]
    axes: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """``all-gather``, ``all-gather over model``."""
        if self.axes is None:
            return self.op
        return f"{self.op} over {', '.join(self.axes) or 'other axes'}"

    @property
    def found(self) -> int:
        return sum(collective.count for collective in self.collectives if collective.count is not None)

    @property
    def uncounted(self) -> int:
        return sum(collective.count is None for collective in self.collectives)

    @property
    def is_met(self) -> bool:
        """Return whether all is as expected, which is never said of a loop of unknown length."""
        return self.expected is None or (self.found == self.expected and not self.uncounted)


def tallies(
    collectives: Iterable[Collective], expected: Mapping[str, Expected], others: int | None
) -> tuple[Tally, ...]:
    """One tally for each operation that is expected, for each of its axes, or that runs.

    `expected` has HLO's names; None there exempts an operation from `others`, the runs of all that
    `expected` does not name (None: not checked). Where the axes of an operation are named, it is not to run
    over others. Local slices, which move nothing, and transfers to and from the host are left out.
    """
    found: dict[str, list[Collective]] = {op: [] for op in expected}
    for collective in collectives:
        if collective.op != "slice" and not collective.is_host_transfer:
            found.setdefault(collective.op, []).append(collective)
    named = [tally for op, wanted in expected.items() for tally in _tallies(op, wanted, found[op])]
    rest = {op: those for op, those in found.items() if op not in expected}
    if others is None:
        return (*named, *(Tally(op, None, tuple(those)) for op, those in rest.items()))
    return (*named, Tally(OTHERS, others, tuple(chain.from_iterable(rest.values()))))


def _tallies(op: str, wanted: Expected, collectives: Sequence[Collective]) -> list[Tally]:
    if not isinstance(wanted, Mapping):
        return [Tally(op, wanted, tuple(collectives))]
    keys = {frozenset(axes): axes for axes in wanted}
    by_axes: dict[tuple[str, ...], list[Collective]] = {axes: [] for axes in wanted}
    for collective in collectives:
        by_axes.setdefault(keys.get(frozenset(collective.axes), ()), []).append(collective)
    return [Tally(op, wanted.get(axes, 0), tuple(those), axes) for axes, those in by_axes.items()]
