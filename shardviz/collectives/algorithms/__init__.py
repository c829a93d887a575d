"""The algorithms, one family a file, and the choice among them."""

from __future__ import annotations

from contextlib import suppress

from shardviz.collectives.algorithms.algorithm import MAX_ENTRIES, Algorithm, Unsuited
from shardviz.collectives.algorithms.direct import DIRECT, PAIRWISE
from shardviz.collectives.algorithms.doubling import (
    BRUCK,
    HALVING_DOUBLING,
    RECURSIVE_DOUBLING,
    RECURSIVE_HALVING,
)
from shardviz.collectives.algorithms.ring import BIDIRECTIONAL_RING, LINE, RING
from shardviz.collectives.algorithms.torus import TORUS, TORUS_SPLIT
from shardviz.collectives.algorithms.trees import BINOMIAL_TREE, DOUBLE_BINARY_TREE
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.schedule import Schedule
from shardviz.errors import QuestionError, plural, quote

LONGEST_PIPELINE = 65_536
"""Pieces that may follow one another: each is a round of its own."""

ALGORITHMS = {
    algorithm.name: algorithm
    for algorithm in (
        RING,
        BIDIRECTIONAL_RING,
        LINE,
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


def schedule_for(
    name: str, pattern: Pattern, pieces: int | None = None, called: str | None = None
) -> Schedule:
    """The schedule of a named algorithm.

    `called` is what messages call the pattern, by default its kind. Raises `QuestionError`, with the reason
    and the algorithms that can, for a name that is unknown and for what the algorithm cannot do; for a group
    of more than `MAX_ENTRIES` devices, as `schedules_for` does.
    """
    _check_size(pattern)
    called = called or pattern.kind
    algorithm = ALGORITHMS.get(name)
    if algorithm is None:
        from difflib import get_close_matches

        known = [each.name for each in ALGORITHMS.values() if pattern.kind in each.kinds]
        close = get_close_matches(name[:40].lower().replace("_", "-"), known, 1)
        hint = f"did you mean {close[0]}?" if close else _able(pattern, called)
        raise QuestionError(f"unknown algorithm {quote(name)}", hint)
    if pattern.kind not in algorithm.kinds:
        raise QuestionError(f"{name} does not do {called}", _able(pattern, called))
    if pieces is not None and not algorithm.pipelined:
        raise QuestionError(
            f"{name} has no pipeline that could use {plural(pieces, 'piece')}", _pipelines(pattern)
        )
    if pieces is not None and not 1 <= pieces <= LONGEST_PIPELINE:
        raise QuestionError(
            f"the payload cannot be cut into {pieces} pieces", f"use 1 to {LONGEST_PIPELINE:,}"
        )
    try:
        return algorithm.schedule(pattern, pieces)
    except Unsuited as reason:
        hint = _able(pattern, called) if pieces is None else _pipelines(pattern)
        raise QuestionError(f"{name} cannot do this: {reason}", hint) from None


def schedules_for(pattern: Pattern) -> tuple[Schedule, ...]:
    """A schedule of every algorithm that can carry out the pattern, in the order of `ALGORITHMS`."""
    _check_size(pattern)
    return tuple(found for found in candidates(pattern).values() if isinstance(found, Schedule))


def candidates(pattern: Pattern) -> dict[str, Schedule | str]:
    """The schedule of every algorithm that knows the pattern's kind, or why it cannot carry it out."""
    found: dict[str, Schedule | str] = {}
    for name, algorithm in ALGORITHMS.items():
        if pattern.kind in algorithm.kinds:
            try:
                found[name] = algorithm.schedule(pattern)
            except Unsuited as reason:
                found[name] = str(reason)
    return found


def _check_size(pattern: Pattern) -> None:
    if pattern.group_size > MAX_ENTRIES:
        raise QuestionError(
            f"a group of {pattern.group_size:,} devices is too large to list what each sends",
            f"step through groups of up to {MAX_ENTRIES:,} devices",
        )


def _able(pattern: Pattern, called: str) -> str:
    able = [schedule.algorithm for schedule in schedules_for(pattern)]
    there = "there is" if len(able) == 1 else "there are"
    return f"for {called} over {plural(pattern.group_size, 'device')} {there} {', '.join(able)}"


def _pipelines(pattern: Pattern) -> str:
    """A hint that names the algorithms with a use for pieces."""
    able = []
    for algorithm in ALGORITHMS.values():
        if algorithm.pipelined and pattern.kind in algorithm.kinds:
            with suppress(Unsuited):
                able.append(algorithm.schedule(pattern, 1).algorithm)
    return f"leave out the pieces, or choose {' or '.join(able)}" if able else "leave out the pieces"


__all__ = [
    "ALGORITHMS",
    "LONGEST_PIPELINE",
    "Algorithm",
    "Unsuited",
    "candidates",
    "schedule_for",
    "schedules_for",
]
