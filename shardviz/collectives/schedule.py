"""A schedule: rounds of sends that carry out a pattern, as one algorithm orders them. No numbers yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from shardviz.collectives.pattern import Pattern
from shardviz.collectives.values import Bools, Ints
from shardviz.errors import QuestionError, plural


@dataclass(frozen=True)
class Sends:
    """The sends of one round, all at the same time: entry k goes from member `src[k]` to `dst[k]`.

    An entry carries the `span` chunks `chunk[k]`, `chunk[k] + 1`, …, counted modulo the schedule's chunks.
    Where `reduce[k]`, the receiver adds them to its own; else it takes them as they are. All that is sent
    was there before the round. Entries with the same (src, dst) travel as one message. Several entries may
    add to the same chunk of a member: they are added in the order of the entries.
    """

    src: Ints
    dst: Ints
    chunk: Ints
    reduce: Bools
    span: int = 1

    def __len__(self) -> int:
        return len(self.src)

    def expanded(self, chunks: int) -> Sends:
        """These sends with one chunk an entry."""
        if self.span == 1:
            return self
        chunk = (self.chunk[:, None] + np.arange(self.span)).reshape(-1) % chunks
        src, dst = np.repeat(self.src, self.span), np.repeat(self.dst, self.span)
        return Sends(src, dst, chunk, np.repeat(self.reduce, self.span))


@dataclass(frozen=True)
class Phase:
    """Consecutive rounds of one kind: `name` is what they do together, as "reduce-scatter".

    `sends` gives the round with a number from 0 to `rounds` - 1. `alike` says that all of them have the same
    `src`, `dst` and `span`, entry by entry: only the chunks change. `along` are the axes of `Pattern.dims`,
    from 0, on which everything moves; none where they play no part.
    """

    name: str
    rounds: int
    sends: Callable[[int], Sends]
    alike: bool = False
    along: tuple[int, ...] = ()


@dataclass(frozen=True)
class Schedule:
    """The rounds of one algorithm for one pattern, whose data is cut into `chunks` chunks."""

    algorithm: str
    pattern: Pattern
    chunks: int
    phases: tuple[Phase, ...]

    @property
    def rounds(self) -> int:
        return sum(phase.rounds for phase in self.phases)

    def phase(self, number: int) -> tuple[Phase, int]:
        """The phase of a round, and the round's number within it; `QuestionError` for a round that is not.

        Rounds count from 1, as people count them: before round 1 nothing has been sent.
        """
        first = 1
        for phase in self.phases:
            if first <= number < first + phase.rounds:
                return phase, number - first
            first += phase.rounds
        problem = f"round {number} does not exist: {self.algorithm} has {plural(self.rounds, 'round')} here"
        hint = f"rounds are 1 to {self.rounds}" if self.rounds else "one device sends nothing"
        raise QuestionError(problem, hint)

    def round(self, number: int) -> Sends:
        """The sends of a round, from 1 to `rounds`. Raises `QuestionError` for another number."""
        phase, within = self.phase(number)
        return phase.sends(within)

    def different_rounds(self) -> Iterator[tuple[Sends, int]]:
        """The sends of each round, of alike rounds those of the first, and how many rounds are alike."""
        for phase in self.phases:
            for within in range(min(1, phase.rounds) if phase.alike else phase.rounds):
                yield phase.sends(within), phase.rounds if phase.alike else 1

    def __iter__(self) -> Iterator[Sends]:
        for phase in self.phases:
            for number in range(phase.rounds):
                yield phase.sends(number)
