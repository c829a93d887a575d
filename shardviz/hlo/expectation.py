"""Expectations of a test: how often each kind of collective should run, and how often it does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardviz.hlo import Collective


OTHERS = "others"
"""All the operations that an expectation does not name."""


@dataclass(frozen=True)
class Tally:
    """The collectives of one operation, by HLO's name, or of all `OTHERS`.

    `expected` is how often they should run in all, None where nobody says. `found` counts runs through
    loops and calls; `uncounted` is how many of the collectives stand in loops of unknown length.
    """

    op: str
    expected: int | None
    collectives: tuple[Collective, ...]

    @property
    def found(self) -> int:
        return sum(each.count for each in self.collectives if each.count is not None)

    @property
    def uncounted(self) -> int:
        return sum(each.count is None for each in self.collectives)

    @property
    def is_met(self) -> bool:
        """Whether all is as expected. Nobody can say so of a loop of unknown length."""
        return self.expected is None or (self.found == self.expected and not self.uncounted)


def tallies(
    collectives: Iterable[Collective], expected: Mapping[str, int | None], others: int | None
) -> tuple[Tally, ...]:
    """One tally for each operation that is expected, or that runs.

    `expected` has HLO's names; None there exempts an operation from `others`, the runs of all that
    `expected` does not name (None: not checked). Local slices, which move nothing, and transfers to and from
    the host are left out.
    """
    found: dict[str, list[Collective]] = {op: [] for op in expected}
    for each in collectives:
        if each.op != "slice" and not each.is_host_transfer:
            found.setdefault(each.op, []).append(each)
    if others is None:
        return tuple(Tally(op, expected.get(op), tuple(those)) for op, those in found.items())
    named = [Tally(op, expected[op], tuple(found[op])) for op in expected]
    rest = [each for op, those in found.items() if op not in expected for each in those]
    return (*named, Tally(OTHERS, others, tuple(rest)))


def unmet(tallied: Sequence[Tally]) -> tuple[Tally, ...]:
    """Those that are not as expected."""
    return tuple(tally for tally in tallied if not tally.is_met)
