"""The data that a collective moves and the rounds in which it does, apart from any numbers.

A pattern says which members of a group start and end with which chunk, a piece of data with a number. The
members count from 0 in the order of the group's mesh axes, the major axis first, as `Mesh.groups` lists them.
Of n members:

    all_gather      chunk c starts on member c // pieces; every member ends with all
    reduce_scatter  every member starts with its own addend of every chunk; member c // pieces ends with
                    the total of chunk c
    all_reduce      every member starts with its own addend of every chunk and ends with every total
    all_to_all      chunk s * n + d starts on member s and ends on member d
    permute         chunk s starts on member s and ends on the member to which `perm` sends it
    broadcast       every chunk starts on `source`; every member ends with all

A schedule has the rounds by which one algorithm carries it out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from shardviz.collectives.values import Bools, Ints
from shardviz.errors import QuestionError, plural
from shardviz.lazy_names import LazyImports

with LazyImports("numpy"):
    import numpy as np

KINDS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute", "broadcast")


@dataclass(frozen=True)
class Pattern:
    """One kind of movement within one group, whose mesh axes have the sizes `dims`: `perm` lists (source,
    destination) for a permute, `source` is the member that broadcasts."""

    kind: str
    dims: tuple[int, ...]
    perm: tuple[tuple[int, int], ...] = ()
    source: int = 0

    @property
    def group_size(self) -> int:
        return math.prod(self.dims)

    @property
    def reduces(self) -> bool:
        return self.kind in ("reduce_scatter", "all_reduce")

    @property
    def everyone(self) -> bool:
        return self.kind in ("all_gather", "all_reduce", "broadcast")

    @property
    def base_chunks(self) -> int:
        """The fewest chunks in which the data can move; a schedule has a multiple of them."""
        n = self.group_size
        return {"all_to_all": n * n, "all_reduce": 1, "broadcast": 1}.get(self.kind, n)

    def pieces(self, chunks: int) -> int:
        """Chunks for one of the `base_chunks`."""
        return chunks // self.base_chunks

    def starts(self, chunks: int) -> tuple[Ints, Ints]:
        """(member, chunk) of everything that is there at the start, ordered by member, then chunk."""
        n = self.group_size
        if self.reduces:
            return np.repeat(np.arange(n), chunks), np.tile(np.arange(chunks), n)
        chunk = np.arange(chunks)
        if self.kind == "broadcast":
            return np.full(chunks, self.source), chunk
        return chunk // (chunks // n), chunk

    def ends(self, chunks: int) -> tuple[Ints, Ints]:
        """(member, chunk) of everything that must be there at the end, ordered by member, then chunk."""
        n = self.group_size
        pieces = self.pieces(chunks)
        chunk = np.arange(chunks)
        if self.kind == "reduce_scatter":
            return chunk // pieces, chunk
        if self.kind == "all_to_all":
            member, sender = np.divmod(np.arange(chunks) // pieces, n)
            return member, (sender * n + member) * pieces + chunk % pieces
        if self.kind == "permute":
            pairs = sorted((target, origin) for origin, target in self.perm)
            member = np.repeat(np.array([target for target, _ in pairs], dtype=np.int64), pieces)
            origin = np.repeat(np.array([origin for _, origin in pairs], dtype=np.int64), pieces)
            return member, origin * pieces + np.arange(len(member)) % pieces
        return np.repeat(np.arange(n), chunks), np.tile(chunk, n)


@dataclass(frozen=True)
class LowerBound:
    """The fewest `rounds` where a member sends one message a round (with several at once there may be fewer),
    and the fewest bytes that the member which sends most must send over all of them."""

    rounds: int
    wire_bytes: int


def lower_bound(pattern: Pattern, bytes_: int) -> LowerBound:
    """The bounds for a pattern where the larger of a member's operand and result has `bytes_` bytes: Chan,
    Heimlich, Purkayastha and van de Geijn 2007, "Collective communication: theory, practice, and experience",
    table 1, for members that send one message at a time; of an all-to-all's rounds Bruck and others 1997."""
    n = pattern.group_size
    if pattern.kind == "permute":
        moves = any(origin != target for origin, target in pattern.perm)
        return LowerBound(1, bytes_) if moves else LowerBound(0, 0)
    rounds = (n - 1).bit_length()
    if pattern.kind == "broadcast":
        return LowerBound(rounds, bytes_ if n > 1 else 0)
    times = 2 if pattern.kind == "all_reduce" else 1
    return LowerBound(rounds, -(-times * bytes_ * (n - 1) // n))


@dataclass(frozen=True)
class Sends:
    """The sends of one round, all at the same time: entry k goes from member `src[k]` to `dst[k]` and carries
    the `span` chunks `chunk[k]`, `chunk[k] + 1`, …, counted modulo the schedule's chunks.

    Where `reduce[k]`, the receiver adds them to its own; else it takes them as they are. All that is sent was
    there before the round. Entries with the same (src, dst) travel as one message. Several may add to the
    same chunk of a member, in the order of the entries."""

    src: Ints
    dst: Ints
    chunk: Ints
    reduce: Bools
    span: int = 1

    def __len__(self) -> int:
        return len(self.src)

    def expanded(self, chunks: int) -> Sends:
        if self.span == 1:
            return self
        chunk = (self.chunk[:, None] + np.arange(self.span)).reshape(-1) % chunks
        src, dst = np.repeat(self.src, self.span), np.repeat(self.dst, self.span)
        return Sends(src, dst, chunk, np.repeat(self.reduce, self.span))


def each_to(dst: Ints, chunk: Ints, reduce: bool = False, span: int = 1) -> Sends:
    """The sends of one entry for each member, to `dst`."""
    return Sends(np.arange(len(dst)), dst, chunk, np.full(len(dst), reduce), span)


def together(*parts: Sends) -> Sends:
    """Sends of one span at the same time."""
    columns = zip(*((part.src, part.dst, part.chunk, part.reduce) for part in parts), strict=True)
    src, dst, chunk, reduce = map(np.concatenate, columns)
    return Sends(src, dst, chunk, reduce, parts[0].span)


@dataclass(frozen=True)
class Phase:
    """Consecutive rounds of one kind: `name` is what they do together, as "reduce-scatter". `sends` gives the
    round with a number from 0 to `rounds` - 1. `alike` says that all have the same `src`, `dst` and `span`,
    entry by entry: only the chunks change. `along` are the axes of `Pattern.dims` on which everything moves;
    none where they play no part."""

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
        """The phase of a round, from 1, and its number within it. Raises `QuestionError` for another
        round."""
        first = 1
        for phase in self.phases:
            if first <= number < first + phase.rounds:
                return phase, number - first
            first += phase.rounds
        problem = f"round {number} does not exist: {self.algorithm} has {plural(self.rounds, 'round')} here"
        hint = f"rounds are 1 to {self.rounds}" if self.rounds else "one device sends nothing"
        raise QuestionError(problem, hint)

    def round(self, number: int) -> Sends:
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


MAX_ENTRIES = 1 << 22
"""Entries that one round may have: about 100 MB of arrays. Direct exchanges of 2,048 devices fit."""

Rounds = tuple[int, Iterable[Phase]]
"""The number of chunks into which the data is cut, and the phases, of which some may have no rounds."""


class Unsuited(Exception):
    """The reason why an algorithm cannot do a pattern, as a clause: "8 devices are not a power of two"."""


def doublings(n: int) -> int:
    if n & (n - 1):
        raise Unsuited(f"{n} devices are not a power of two")
    return n.bit_length() - 1


def check_entries(entries: int) -> None:
    if entries > MAX_ENTRIES:
        raise Unsuited(f"one round would list {entries:,} pieces of data, more than {MAX_ENTRIES:,}")


def in_turn(kind: str, reduce: Sequence[Phase], gather: Sequence[Phase]) -> Sequence[Phase]:
    """The phases of a reduce-scatter, of an all-gather, or of an all-reduce, which is both."""
    return {"reduce_scatter": reduce, "all_gather": gather, "all_reduce": (*reduce, *gather)}[kind]


def pipeline(name: str, pieces: int, src: Ints, dst: Ints, start: Ints, first: Ints, reduce: Bools) -> Phase:
    """The rounds in which every edge carries `pieces` chunks one after the other, as soon as it may. Edge k
    leads from member `src[k]` to `dst[k]` and carries `first[k]`, `first[k]` + 1, … from round `start[k]`
    on."""

    def sends(number: int) -> Sends:
        piece = number - start
        busy = (piece >= 0) & (piece < pieces)
        return Sends(src[busy], dst[busy], first[busy] + piece[busy], reduce[busy])

    return Phase(name, int(start.max()) + pieces if len(start) else 0, sends)
