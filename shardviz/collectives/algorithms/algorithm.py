"""An algorithm: a name, the patterns it can carry out, and the function that makes its schedule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shardviz.collectives.pattern import Pattern
from shardviz.collectives.schedule import Phase, Schedule

MAX_ENTRIES = 1 << 22
"""Entries that one round may have: about 100 MB of arrays. Direct exchanges of 2,048 devices fit."""


class Unsuited(Exception):
    """Why an algorithm cannot carry out a pattern, as a clause: "8 devices are not a power of two"."""


@dataclass(frozen=True)
class Algorithm:
    """`build` takes a pattern and the number of pieces a pipeline is to use, None for its own choice.

    `kinds` are the kinds of pattern it knows; within them `build` raises `Unsuited` for what it cannot do
    (a group whose size is not a power of two, pieces where there is no pipeline). `summary` says in a few
    words what it does. `pipelined`: it has a use for pieces.
    """

    name: str
    summary: str
    kinds: tuple[str, ...]
    build: Callable[[Pattern, int | None], Schedule]
    pipelined: bool = False


def schedule_of(name: str, pattern: Pattern, chunks: int, *phases: Phase) -> Schedule:
    """The schedule made of those phases that have any rounds; a group of one device has none."""
    return Schedule(name, pattern, chunks, tuple(phase for phase in phases if phase.rounds))


def doublings(n: int) -> int:
    """The k with n = 2 ** k. Raises `Unsuited` where there is none."""
    if n & (n - 1):
        raise Unsuited(f"{n} devices are not a power of two")
    return n.bit_length() - 1


def check_entries(entries: int) -> None:
    """Raise `Unsuited` where the largest round would list more entries than fit in memory."""
    if entries > MAX_ENTRIES:
        raise Unsuited(f"one round would list {entries:,} pieces of data, more than {MAX_ENTRIES:,}")
