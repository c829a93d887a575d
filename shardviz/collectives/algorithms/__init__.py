"""The algorithms, one a file, and the choice among them."""

from __future__ import annotations

from shardviz.collectives.algorithms.algorithm import MAX_ENTRIES, Algorithm, Unsuited
from shardviz.collectives.algorithms.bidirectional_ring import BIDIRECTIONAL_RING
from shardviz.collectives.algorithms.binomial_tree import BINOMIAL_TREE
from shardviz.collectives.algorithms.bruck import BRUCK
from shardviz.collectives.algorithms.direct import DIRECT
from shardviz.collectives.algorithms.double_binary_tree import DOUBLE_BINARY_TREE
from shardviz.collectives.algorithms.halving_doubling import HALVING_DOUBLING
from shardviz.collectives.algorithms.pairwise import PAIRWISE
from shardviz.collectives.algorithms.recursive_doubling import RECURSIVE_DOUBLING
from shardviz.collectives.algorithms.recursive_halving import RECURSIVE_HALVING
from shardviz.collectives.algorithms.ring import RING
from shardviz.collectives.algorithms.torus import TORUS
from shardviz.collectives.algorithms.torus_split import TORUS_SPLIT
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.schedule import Schedule
from shardviz.errors import QuestionError, quote

LONGEST_PIPELINE = 65_536
"""Pieces that may follow one another: each is a round of its own."""

ALGORITHMS = {
    algorithm.name: algorithm
    for algorithm in (
        RING,
        BIDIRECTIONAL_RING,
        RECURSIVE_DOUBLING,
        RECURSIVE_HALVING,
        HALVING_DOUBLING,
        BRUCK,
        PAIRWISE,
        DIRECT,
        BINOMIAL_TREE,
        DOUBLE_BINARY_TREE,
        TORUS,
        TORUS_SPLIT,
    )
}
"""Every algorithm by name, in the order in which tables show them."""


def schedule_for(name: str, pattern: Pattern, pieces: int | None = None) -> Schedule:
    """The schedule of a named algorithm.

    Raises `QuestionError`, with the reason and the algorithms that can, for a name that is unknown and for
    what the algorithm cannot do; for a group of more than `MAX_ENTRIES` devices, as `schedules_for` does.
    """
    _check_size(pattern)
    algorithm = ALGORITHMS.get(name)
    if algorithm is None:
        raise QuestionError(f"there is no algorithm {quote(name)}", _able(pattern))
    if pattern.kind not in algorithm.kinds:
        raise QuestionError(f"{name} does not do {pattern.kind}", _able(pattern))
    if pieces is not None and not algorithm.pipelined:
        raise QuestionError(f"{name} has no pipeline that could use {pieces} pieces", "leave them out")
    if pieces is not None and not 1 <= pieces <= LONGEST_PIPELINE:
        raise QuestionError(
            f"the payload cannot be cut into {pieces} pieces", f"use 1 to {LONGEST_PIPELINE:,}"
        )
    try:
        return algorithm.build(pattern, pieces)
    except Unsuited as reason:
        raise QuestionError(f"{name} cannot do this: {reason}", _able(pattern)) from None


def schedules_for(pattern: Pattern) -> tuple[Schedule, ...]:
    """A schedule of every algorithm that can carry out the pattern, in the order of `ALGORITHMS`."""
    _check_size(pattern)
    found = []
    for algorithm in ALGORITHMS.values():
        if pattern.kind in algorithm.kinds:
            try:
                found.append(algorithm.build(pattern, None))
            except Unsuited:
                continue
    return tuple(found)


def _check_size(pattern: Pattern) -> None:
    if pattern.group_size > MAX_ENTRIES:
        raise QuestionError(
            f"a group of {pattern.group_size:,} devices is too large to list what each sends",
            f"step through groups of up to {MAX_ENTRIES:,} devices",
        )


def _able(pattern: Pattern) -> str:
    able = ", ".join(schedule.algorithm for schedule in schedules_for(pattern))
    return f"for {pattern.kind} over {pattern.group_size} devices there are {able}"


__all__ = ["ALGORITHMS", "LONGEST_PIPELINE", "Algorithm", "Unsuited", "schedule_for", "schedules_for"]
