"""The runs of each kind of collective, in all and against what a test expects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

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
    for each in collectives:
        if each.op == "slice":
            continue
        key = each.op, each.between_slices, each.is_host_transfer
        total = found.get(key) or Total(*key)
        if each.count is None:
            found[key] = replace(total, unknown=total.unknown + 1)
        else:
            found[key] = replace(
                total,
                count=total.count + each.count,
                bytes=total.bytes + each.count * each.bytes,
                wire_bytes=total.wire_bytes + each.count * each.wire_bytes,
            )
    return tuple(found.values())


@dataclass(frozen=True)
class Tally:
    """The collectives of one operation, by HLO's name, or of all `OTHERS`.

    `expected` is how often they should run in all, None where nothing is expected. `found` counts runs
    through loops and calls; `uncounted` is how many of the collectives are in loops of unknown length.
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
        """Return whether all is as expected, which is never said of a loop of unknown length."""
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
