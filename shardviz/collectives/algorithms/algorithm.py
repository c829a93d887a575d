"""An algorithm: a name, the patterns it can carry out, and the function that makes its phases; pipelines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from shardviz.collectives.pattern import Pattern
from shardviz.collectives.schedule import Phase, Schedule, Sends
from shardviz.collectives.values import Bools, Ints

MAX_ENTRIES = 1 << 22
"""Entries that one round may have: about 100 MB of arrays. Direct exchanges of 2,048 devices fit."""

Rounds = tuple[int, Iterable[Phase]]
"""The number of chunks into which the data is cut, and the phases, of which some may have no rounds."""


class Unsuited(Exception):
    """The reason why an algorithm cannot do a pattern, as a clause: "8 devices are not a power of two"."""


@dataclass(frozen=True)
class Algorithm:
    """`build` takes a pattern and the number of pieces a pipeline is to use, None for its own choice.

    `kinds` are the kinds of pattern it knows; within them `build` raises `Unsuited` for what it cannot do
    (a group whose size is not a power of two). `summary` says in a few words what it does. `pipelined`: it
    has a use for pieces.
    """

    name: str
    summary: str
    kinds: tuple[str, ...]
    build: Callable[[Pattern, int | None], Rounds]
    pipelined: bool = False

    def schedule(self, pattern: Pattern, pieces: int | None = None) -> Schedule:
        """The schedule for a pattern of one of its kinds; a group of one device has no rounds."""
        chunks, phases = self.build(pattern, pieces)
        return Schedule(self.name, pattern, chunks, tuple(phase for phase in phases if phase.rounds))


def doublings(n: int) -> int:
    """The k with n = 2 ** k. Raises `Unsuited` where there is none."""
    if n & (n - 1):
        raise Unsuited(f"{n} devices are not a power of two")
    return n.bit_length() - 1


def check_entries(entries: int) -> None:
    """Raise `Unsuited` where the largest round would list more entries than fit in memory."""
    if entries > MAX_ENTRIES:
        raise Unsuited(f"one round would list {entries:,} pieces of data, more than {MAX_ENTRIES:,}")


def in_turn(kind: str, reduce: Sequence[Phase], gather: Sequence[Phase]) -> Sequence[Phase]:
    """The phases of a reduce-scatter, of an all-gather, or of an all-reduce, which is both."""
    return {"reduce_scatter": reduce, "all_gather": gather, "all_reduce": (*reduce, *gather)}[kind]


def pipeline(name: str, pieces: int, src: Ints, dst: Ints, start: Ints, first: Ints, reduce: Bools) -> Phase:
    """The rounds in which every edge carries `pieces` chunks one after the other, as soon as it may.

    Edge k leads from member `src[k]` to `dst[k]` and carries `first[k]`, `first[k]` + 1, … from round
    `start[k]` on. Where `reduce[k]`, the receiver adds.
    """

    def sends(number: int) -> Sends:
        piece = number - start
        busy = (piece >= 0) & (piece < pieces)
        return Sends(src[busy], dst[busy], first[busy] + piece[busy], reduce[busy])

    return Phase(name, int(start.max()) + pieces if len(start) else 0, sends)
