"""A schedule run without numbers: which datum every member holds after every round.

A datum is one value of one chunk: what a member starts with (a leaf), or the sum of two data. The state
after any round is found without playing the rounds before it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError, ShardvizError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shardviz.collectives.adding import Adding
    from shardviz.collectives.moving import Moving
    from shardviz.collectives.schedule import Schedule

    Ints = NDArray[np.int64]
    Small = NDArray[np.int32]
    Bools = NDArray[np.bool_]

MAX_PIECES = 2**24
"""Pieces that are there at the start or arrive later; each takes about 20 bytes."""
MAX_SLOTS = 2**26
"""Members times chunks, of which many may stay empty; each takes up to 8 bytes."""


class ScheduleError(ShardvizError):
    """A schedule that does not carry out its pattern: always a bug of the algorithm."""

    exit_code = 1


@dataclass(frozen=True)
class Held:
    """What all members hold at one time, ordered by member, then chunk. Arrays of one length.

    `arrived`: it came in the last round, alone or added to what was there. `needed`: it is part of the
    result, or will be sent or added to.
    """

    member: Ints
    chunk: Ints
    datum: Small
    arrived: Bools
    needed: Bools


class Trace:
    """The whole course of a schedule. The leaves are the first data, in the order of `Pattern.starts`.

    Raises `QuestionError` when there are too many pieces to keep, `ScheduleError` when a member sends what
    it does not hold.
    """

    def __init__(self, schedule: Schedule) -> None:
        from shardviz.collectives.adding import Adding
        from shardviz.collectives.moving import Moving

        if not can_be_kept(schedule):
            raise QuestionError(
                f"{schedule.algorithm} over {schedule.pattern.group_size:,} devices moves more than "
                f"{MAX_PIECES:,} pieces, too many to keep every step",
                "take a smaller mesh, or leave out --data and --round: a summary follows no pieces",
            )
        self.schedule = schedule
        self.leaf_member, self.leaf_chunk = schedule.pattern.starts(schedule.chunks)
        """Member and chunk of every leaf."""
        self._course: Adding | Moving = (Adding if schedule.pattern.reduces else Moving)(schedule)

    @property
    def data(self) -> int:
        """How many data there are: leaves first, then sums in the order in which they came to be."""
        return len(self.leaf_member) + sum(len(own) for own, _ in self.sums)

    @property
    def sums(self) -> list[tuple[Small, Small]]:
        """The sums in batches: (member's own, received) data of each. A batch needs only those before it."""
        return self._course.sums

    def held(self, number: int, member: int | None = None) -> Held:
        """What all members hold after a round, or one of them; 0 is before the first."""
        return self._course.held(number, member)

    def final(self, member: Ints, chunk: Ints) -> Small:
        """The data at the end; `ScheduleError` where there is none."""
        datum = self._course.final(member, chunk)
        if (datum < 0).any():
            raise ScheduleError(f"{self.schedule.algorithm} leaves a member without a chunk")
        return datum

    def shared(self) -> Small | None:
        """The data at the end by chunk, where all members end with the same ones of all chunks; else None."""
        return self._course.shared()

    def addends(self, datum: int) -> tuple[int, ...]:
        """The leaves that a datum is the sum of, in the order of the additions: itself, if it is a leaf."""
        return self._course.addends(datum)

    def count(self, datum: int) -> int:
        """Of how many leaves a datum is the sum: 1, if it is a leaf."""
        return self._course.count(datum)

    def contributions(self, datum: int) -> tuple[int, ...]:
        """The members whose addends a datum contains, in the order of the additions."""
        return tuple(int(self.leaf_member[leaf]) for leaf in self.addends(datum))

    def check(self) -> None:
        """Prove that the ends are reached, every total with each member's addend exactly once.

        Raises `ScheduleError`. Totals are told by 64-bit fingerprints of their addends' members.
        """
        import numpy as np

        pattern = self.schedule.pattern
        final = self.final(*pattern.ends(self.schedule.chunks))
        if not pattern.reduces:
            return
        names = np.random.default_rng(0).integers(2**63, size=pattern.group_size, dtype=np.uint64)
        done = len(self.leaf_member)
        prints = np.zeros((self.data, 2), dtype=np.uint64)
        prints[:done] = np.stack([names[self.leaf_member], np.ones(done, dtype=np.uint64)], axis=1)
        for own, received in self.sums:
            prints[done : done + len(own)] = prints[own] + prints[received]
            done += len(own)
        everyone = np.array([names.sum(dtype=np.uint64), pattern.group_size], dtype=np.uint64)
        if (prints[final] != everyone).any():
            raise ScheduleError(f"{self.schedule.algorithm} adds up a total that is not everyone's")


def can_be_kept(schedule: Schedule) -> bool:
    """Whether there are few enough pieces for a trace."""
    pattern, chunks = schedule.pattern, schedule.chunks
    slots = pattern.group_size * chunks
    starts = slots if pattern.reduces else chunks
    return slots <= MAX_SLOTS and starts + arrivals(schedule) <= MAX_PIECES


def arrivals(schedule: Schedule) -> int:
    """Chunks that arrive in all rounds together; counting stops where they are too many."""
    count = 0
    for phase in schedule.phases:
        for number in range(1 if phase.alike else phase.rounds):
            sends = phase.sends(number)
            count += len(sends) * sends.span * (phase.rounds if phase.alike else 1)
            if count > MAX_PIECES:
                return count
    return count
