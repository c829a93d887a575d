"""The algorithms, and the choice among them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from shardviz.collectives.algorithms import neighbours, partners
from shardviz.collectives.schedule import MAX_ENTRIES, Pattern, Rounds, Schedule, Unsuited
from shardviz.errors import QuestionError, most_like, plural, quote

LONGEST_PIPELINE = 65_536
"""Pieces that may follow one another: each is a round of its own."""


@dataclass(frozen=True)
class Algorithm:
    """`build` takes a pattern of one of its `kinds` and the number of pieces a pipeline is to use, None for
    its own choice; it raises `Unsuited` for what it cannot do. `pipelined`: it has a use for pieces."""

    name: str
    summary: str
    kinds: tuple[str, ...]
    build: Callable[[Pattern, int | None], Rounds]
    pipelined: bool = False

    def schedule(self, pattern: Pattern, pieces: int | None = None) -> Schedule:
        chunks, phases = self.build(pattern, pieces)
        return Schedule(self.name, pattern, chunks, tuple(phase for phase in phases if phase.rounds))


_SUMS = ("all_gather", "reduce_scatter", "all_reduce")

# fmt: off
ALGORITHMS = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("ring", "always to the next neighbour",
                  (*_SUMS, "all_to_all", "broadcast"), neighbours.ring, pipelined=True),
        Algorithm("bidirectional-ring", "to both neighbours at once, by the shorter way",
                  (*_SUMS, "all_to_all"), neighbours.bidirectional_ring, pipelined=True),
        Algorithm("line", "to both neighbours at once, never from the last to the first",
                  _SUMS, neighbours.line),
        Algorithm("recursive-doubling", "partners 1, 2, 4, … away exchange all they have",
                  ("all_gather", "all_reduce"), partners.recursive_doubling),
        Algorithm("recursive-halving", "partners n/2, n/4, … away each keep one half and send the other",
                  ("reduce_scatter",), partners.halving),
        Algorithm("halving-doubling", "reduce-scatter by halving, then all-gather by doubling",
                  ("all_reduce",), partners.halving),
        Algorithm("bruck", "members 1, 2, 4, … away, for any number of devices",
                  ("all_gather", "all_to_all"), partners.bruck),
        Algorithm("pairwise", "one partner per round, a block each way", ("all_to_all",), partners.pairwise),
        Algorithm("direct", "every message straight to where it belongs, all at once",
                  (*_SUMS, "all_to_all", "permute", "broadcast"), partners.direct),
        Algorithm("binomial-tree", "all that have the payload pass it on, so that their number doubles",
                  ("broadcast", "all_reduce"), partners.binomial_tree),
        Algorithm("double-binary-tree", "half of the payload up and down each of two trees, in pieces",
                  ("all_reduce",), partners.double_binary_tree, pipelined=True),
        Algorithm("torus", "rings along one axis of the torus after the other", _SUMS, neighbours.torus),
        Algorithm("torus-split", "the payload in parts, one starting along each axis of the torus",
                  ("all_reduce",), neighbours.torus_split),
    )
}
# fmt: on


def schedule_for(
    name: str, pattern: Pattern, pieces: int | None = None, called: str | None = None
) -> Schedule:
    """The schedule of a named algorithm; `called` is what messages call the pattern, by default its kind.
    Raises `QuestionError` for a name that is unknown, for what the algorithm cannot do, and for a group that
    is too large."""
    _check_size(pattern)
    called = called or pattern.kind
    algorithm = ALGORITHMS.get(name)
    if algorithm is None:
        known = [algorithm.name for algorithm in ALGORITHMS.values() if pattern.kind in algorithm.kinds]
        close = most_like(name.lower().replace("_", "-"), known)
        hint = f"did you mean {close}?" if close else _able(pattern, called)
        raise QuestionError(f"unknown algorithm {quote(name)}", hint)
    if pattern.kind not in algorithm.kinds:
        raise QuestionError(f"{name} does not do {called}", _able(pattern, called))
    if pieces is not None and not algorithm.pipelined:
        problem = f"{name} has no pipeline that could use {plural(pieces, 'piece')}"
        raise QuestionError(problem, _pipelines(pattern))
    if pieces is not None and not 1 <= pieces <= LONGEST_PIPELINE:
        problem = f"the payload cannot be cut into {pieces} pieces"
        raise QuestionError(problem, f"use 1 to {LONGEST_PIPELINE:,}")
    try:
        return algorithm.schedule(pattern, pieces)
    except Unsuited as reason:
        hint = _able(pattern, called) if pieces is None else _pipelines(pattern)
        raise QuestionError(f"{name} cannot do this: {reason}", hint) from None


def schedules_for(pattern: Pattern) -> tuple[Schedule, ...]:
    """A schedule of every algorithm that can carry out the pattern, in the order of `ALGORITHMS`."""
    _check_size(pattern)
    return tuple(candidate for candidate in candidates(pattern).values() if isinstance(candidate, Schedule))


def candidates(pattern: Pattern) -> dict[str, Schedule | str]:
    """The schedule of every algorithm that knows the pattern's kind, or why it cannot carry it out."""
    by_algorithm: dict[str, Schedule | str] = {}
    for name, algorithm in ALGORITHMS.items():
        if pattern.kind in algorithm.kinds:
            try:
                by_algorithm[name] = algorithm.schedule(pattern)
            except Unsuited as reason:
                by_algorithm[name] = str(reason)
    return by_algorithm


def _check_size(pattern: Pattern) -> None:
    if pattern.group_size > MAX_ENTRIES:
        problem = f"a group of {pattern.group_size:,} devices is too large to list what each sends"
        raise QuestionError(problem, f"step through groups of up to {MAX_ENTRIES:,} devices")


def _able(pattern: Pattern, called: str) -> str:
    able = [schedule.algorithm for schedule in schedules_for(pattern)]
    there = "there is" if len(able) == 1 else "there are"
    return f"for {called} over {plural(pattern.group_size, 'device')} {there} {', '.join(able)}"


def _pipelines(pattern: Pattern) -> str:
    able = []
    for algorithm in ALGORITHMS.values():
        if algorithm.pipelined and pattern.kind in algorithm.kinds:
            with suppress(Unsuited):
                able.append(algorithm.schedule(pattern, 1).algorithm)
    return f"leave out the pieces, or choose {' or '.join(able)}" if able else "leave out the pieces"
