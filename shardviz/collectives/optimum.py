"""What no algorithm can go below: the rounds and the bytes that a collective needs at least.

The bounds of Chan, Heimlich, Purkayastha and van de Geijn 2007, "Collective communication: theory, practice,
and experience", table 1, for members that send one message at a time; that an all-to-all takes no fewer
rounds: Bruck, Ho, Kipnis, Upfal and Weathersby 1997.
"""

from __future__ import annotations

from dataclasses import dataclass

from shardviz.collectives.pattern import Pattern


@dataclass(frozen=True)
class LowerBound:
    """The fewest `rounds` where a member sends one message a round, and the fewest bytes on the wire.

    `wire_bytes` are the bytes that the member which sends most must send over all rounds: on any member for
    a gather, a scatter, a reduction and an all-to-all, on the source for a broadcast, on a member that sends
    at all for a permute. An algorithm that sends several messages at once may take fewer rounds.
    """

    rounds: int
    wire_bytes: int


def lower_bound(pattern: Pattern, bytes_: int) -> LowerBound:
    """The bounds for a pattern where the larger of a member's operand and result has `bytes_` bytes.

    (n - 1) / n of them for a gather, a scatter and an all-to-all, twice that for an all_reduce, all of
    them for a broadcast and a permute; rounded up, as a plan's `wire_bytes` are. One member alone, and a
    permute that moves nothing, needs neither rounds nor bytes.
    """
    n = pattern.group_size
    if pattern.kind == "permute":
        moves = any(origin != target for origin, target in pattern.perm)
        return LowerBound(1, bytes_) if moves else LowerBound(0, 0)
    rounds = (n - 1).bit_length()
    if pattern.kind == "broadcast":
        return LowerBound(rounds, bytes_ if n > 1 else 0)
    times = 2 if pattern.kind == "all_reduce" else 1
    return LowerBound(rounds, -(-times * bytes_ * (n - 1) // n))
