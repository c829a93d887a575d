"""The data that a collective moves, apart from any numbers: which device starts and ends with which chunk.

The members of a group count from 0 in the order of its mesh axes, the major axis first, as
`Mesh.groups` lists them. A chunk is a piece of data with a number. Of n members:

    all_gather      chunk c starts on member c // pieces; every member ends with all
    reduce_scatter  every member starts with its own addend of every chunk; member c // pieces ends with
                    the total of chunk c
    all_reduce      every member starts with its own addend of every chunk and ends with every total
    all_to_all      chunk s * n + d starts on member s and ends on member d
    permute         chunk s starts on member s and ends on the member to which `perm` sends it
    broadcast       every chunk starts on `source`; every member ends with all

No algorithm can go below the rounds and bytes of `lower_bound`: Chan, Heimlich, Purkayastha and van de Geijn
2007, "Collective communication: theory, practice, and experience", table 1, for members that send one message
at a time; that an all-to-all takes no fewer rounds: Bruck, Ho, Kipnis, Upfal and Weathersby 1997.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from shardviz.collectives.values import Ints
from shardviz.errors import QuestionError
from shardviz.lazy_names import LazyImports

with LazyImports("numpy"):
    import numpy as np

KINDS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute", "broadcast")


@dataclass(frozen=True)
class Pattern:
    """One kind of movement within one group, whose mesh axes have the sizes `dims`.

    `perm` lists (source, destination) for a permute, `source` is the member that broadcasts.
    """

    kind: str
    dims: tuple[int, ...]
    perm: tuple[tuple[int, int], ...] = ()
    source: int = 0

    @property
    def group_size(self) -> int:
        """Members of the group."""
        return math.prod(self.dims)

    @property
    def reduces(self) -> bool:
        """Members add up what they receive."""
        return self.kind in ("reduce_scatter", "all_reduce")

    @property
    def everyone(self) -> bool:
        """Every member ends with every chunk."""
        return self.kind in ("all_gather", "all_reduce", "broadcast")

    @property
    def base_chunks(self) -> int:
        """The fewest chunks in which the data can move; a schedule has a multiple of them."""
        n = self.group_size
        return {"all_to_all": n * n, "all_reduce": 1, "broadcast": 1}.get(self.kind, n)

    def pieces(self, chunks: int) -> int:
        """Chunks for one of the `base_chunks`. Raises `QuestionError` where they do not divide."""
        pieces, rest = divmod(chunks, self.base_chunks)
        if rest or not pieces:
            problem = f"{chunks} chunks are not a multiple of the {self.base_chunks} that {self.kind} needs"
            raise QuestionError(problem, f"use a multiple of {self.base_chunks}")
        return pieces

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
    """The bounds for a pattern where the larger of a member's operand and result has `bytes_` bytes.

    (n - 1) / n of them for a gather, a scatter and an all-to-all, twice that for an all_reduce, all of
    them for a broadcast and a permute; rounded up, as a plan's `wire_bytes` are.
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
