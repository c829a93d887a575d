"""What a program's collectives come to: how often each kind runs, and how many bytes that is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from shardviz.hlo.collective import Collective


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
    """A total for each kind, in the order in which the kinds first come. Local slices are no collectives."""
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
