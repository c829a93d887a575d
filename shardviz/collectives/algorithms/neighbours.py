"""Members that send to their neighbours only: round a ring one way or both ways at once, along a line, and
over a torus one axis after the other.

One way round it is that of Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters
of workstations". Both ways every chunk takes the shorter way, as on a wrapped axis of a TPU torus (Austin
et al. 2025, "How to scale your model", part 3). On a line each passes on what came from the other side the
round before. On a torus (Jain and Sabharwal 2010, "Optimal bucket algorithms for large MPI collectives on
torus interconnects") every ring of an axis works on what the axis before has left. Split, there are as
many parts of the payload as axes: part k is scattered along axis k first, then k + 1, … and gathered the
same way back. All turn to the next axis together; the parts on shorter axes wait."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from shardviz.collectives.schedule import (
    Pattern,
    Phase,
    Rounds,
    Sends,
    Unsuited,
    check_entries,
    each_to,
    in_turn,
    pipeline,
    together,
)
from shardviz.collectives.values import Ints
from shardviz.errors import plural

Chosen = Callable[[int], Ints]
"""The chunks that all members send in a round, not yet counted modulo their number."""


def ring(pattern: Pattern, pieces: int | None) -> Rounds:
    n = pattern.group_size
    if pattern.kind == "broadcast":
        # Piece after piece from the source to the member before it.
        start, pieces = np.arange(n - 1), pieces or n
        src, nothing = (pattern.source + start) % n, np.zeros_like(start)
        return pieces, [pipeline("broadcast", pieces, src, (src + 1) % n, start, nothing, nothing > 0)]
    if pieces is not None:
        raise Unsuited(f"only its broadcast has a pipeline that could use {plural(pieces, 'piece')}")
    if pattern.kind == "all_to_all":
        check_entries(n * (n - 1))
        return n * n, [Phase("all-to-all", n - 1, lambda r: _passing(n, 1, n - 1, r))]
    member, after = np.arange(n), (np.arange(n) + 1) % n

    def around(name: str, reduce: bool) -> Phase:
        # Member i starts with chunk i; or ends with total i, to which each member adds its own.
        first = member - int(reduce)
        return Phase(name, n - 1, lambda r: each_to(after, (first - r) % n, reduce), alike=True)

    return n, in_turn(pattern.kind, [around("reduce-scatter", True)], [around("all-gather", False)])


def _passing(n: int, step: int, reach: int, number: int) -> Sends:
    """Round `number` (from 0) of an all_to_all hop by hop: every member sends on to the one `step` (1 or -1)
    further what it was sent the round before and that has further to go, `reach` hops in all."""
    hops, member = np.arange(number + 1, reach + 1), np.arange(n)
    origin = (member - step * number) % n
    chunk = (origin * n)[:, None] + (origin[:, None] + step * hops) % n
    src = np.repeat(member, len(hops))
    return Sends(src, (src + step) % n, chunk.reshape(-1), np.zeros(chunk.size, dtype=bool))


def bidirectional_ring(pattern: Pattern, pieces: int | None) -> Rounds:
    n, kind = pattern.group_size, pattern.kind
    member, far, near = np.arange(n), n // 2, (n - 1) // 2
    halved = pieces not in (None, 1)
    if halved and (n % 2 or pieces != 2 or kind == "all_to_all"):
        raise Unsuited(f"{plural(n, 'device')} of {kind} have no use for {plural(pieces or 1, 'piece')}")
    if kind == "all_to_all":
        check_entries(n * (n - 1))

        def passing(r: int) -> Sends:
            return together(_passing(n, 1, far, r), _passing(n, -1, near, r))

        return n * n, [Phase("all-to-all", far, passing)]
    phases = _in_halves if halved else _both_ways
    gather = phases(n, "all-gather", lambda r: member - r, lambda r: member + r, False)
    if halved:
        near = far
    scatter = phases(n, "reduce-scatter", lambda r: member + far - r, lambda r: member - near + r, True)
    return (2 * n if halved else n), in_turn(kind, scatter, gather)


def _both_ways(n: int, name: str, right: Chosen, left: Chosen, reduce: bool) -> list[Phase]:
    """Rounds to both sides, then, where n is even, one to the right."""
    after, before, near = (np.arange(n) + 1) % n, (np.arange(n) - 1) % n, (n - 1) // 2

    def sends(r: int) -> Sends:
        return together(each_to(after, right(r) % n, reduce), each_to(before, left(r) % n, reduce))

    last = Phase(name, n // 2 - near, lambda _: each_to(after, right(near) % n, reduce), alike=True)
    return [Phase(name, near, sends, alike=True), last]


def _in_halves(n: int, name: str, right: Chosen, left: Chosen, reduce: bool) -> list[Phase]:
    """Both ways in two pieces: what the member opposite needs goes half to the right and half to the left.
    The first half goes n / 2 to the right and one less to the left, the second the other way round."""
    after, before, near, shift = (np.arange(n) + 1) % n, (np.arange(n) - 1) % n, n // 2 - 1, int(reduce)

    def last(r: int) -> Sends:
        to_left = each_to(before, 2 * (left(r) % n) + 1, reduce)
        return together(each_to(after, 2 * (right(r) % n), reduce), to_left)

    def sends(r: int) -> Sends:
        to_left = each_to(before, 2 * ((left(r) + shift) % n), reduce)
        return together(last(r), to_left, each_to(after, 2 * ((right(r) - shift) % n) + 1, reduce))

    return [Phase(name, near, sends, alike=True), Phase(name, 1, lambda _: last(near), alike=True)]


def line(pattern: Pattern, _pieces: int | None) -> Rounds:
    n = pattern.group_size
    member = np.arange(n)

    def outwards(number: int) -> Sends:
        """Chunks that are so many members away from their own move on by one."""
        right, left = member[number : n - 1], member[1 : n - number]
        takes = np.zeros(len(right), dtype=bool)
        to_right = Sends(right, right + 1, right - number, takes)
        return together(to_right, Sends(left, left - 1, left + number, takes))

    def inwards(number: int) -> Sends:
        """The same backwards: the farthest sums come nearer to their own by one."""
        out = outwards(n - 2 - number)
        return Sends(out.dst, out.src, out.chunk, ~out.reduce)

    gather, scatter = (Phase("all-gather", n - 1, outwards), Phase("reduce-scatter", n - 1, inwards))
    return n, in_turn(pattern.kind, [scatter], [gather])


@dataclass(frozen=True)
class AxisTurn:
    """A turn of all rings along one `axis`, for the part of the payload whose chunks begin at `base`: each
    works on a block of what the axes in `scattered` have left. Nothing is listed before it is asked for:
    twenty axes have as many turns, over a million devices."""

    dims: tuple[int, ...]
    axis: int
    scattered: tuple[int, ...]
    base: int
    reduce: bool

    @property
    def size(self) -> int:
        return self.dims[self.axis]

    @property
    def span(self) -> int:
        return math.prod(self.dims) // math.prod(self.dims[axis] for axis in (*self.scattered, self.axis))

    @property
    def rounds(self) -> int:
        return self.size - 1

    def places(self, axis: int) -> Ints:
        return np.arange(math.prod(self.dims)) // math.prod(self.dims[axis + 1 :]) % self.dims[axis]

    def next(self) -> Ints:
        coords = self.places(self.axis)
        stride = math.prod(self.dims[self.axis + 1 :])
        return np.arange(len(coords)) + ((coords + 1) % self.size - coords) * stride

    def first(self, number: int) -> Ints:
        block = (self.places(self.axis) - number - int(self.reduce)) % self.size
        first = self.base + block * self.span
        span = math.prod(self.dims)
        for axis in self.scattered:
            span //= self.dims[axis]
            first += self.places(axis) * span
        return first


def _axes_of(pattern: Pattern) -> tuple[int, ...]:
    """The axes with more than one device. Raises `Unsuited` for a single one."""
    axes = tuple(axis for axis, size in enumerate(pattern.dims) if size > 1)
    if len(axes) == 1:
        raise Unsuited("a torus needs two axes of two devices or more; with one it is a ring")
    return axes


def _turns(dims: Sequence[int], order: Sequence[int], base: int, reduce: bool) -> list[AxisTurn]:
    """The turns of one part over the axes in `order`: scattered as they come, or gathered backwards."""
    turns = [AxisTurn(tuple(dims), axis, tuple(order[:n]), base, reduce) for n, axis in enumerate(order)]
    return turns if reduce else turns[::-1]


def _side_by_side(name: str, parts: Sequence[Sequence[AxisTurn]]) -> Iterator[Phase]:
    """The rounds of several parts of the payload at once, all of which begin every turn together. A phase
    ends where a part has come to the end of its turn: its rounds are alike."""
    for turns in zip(*parts, strict=True):
        behind = 0
        for rounds in sorted({turn.rounds for turn in turns}):
            yield _together(name, [turn for turn in turns if turn.rounds > behind], behind, rounds)
            behind = rounds


def _together(name: str, turns: Sequence[AxisTurn], start: int, stop: int) -> Phase:
    n = math.prod(turns[0].dims)
    span = math.gcd(*(turn.span for turn in turns))
    runs = {turn: turn.span // span for turn in turns}
    check_entries(n * sum(runs.values()))

    def part(turn: AxisTurn, number: int) -> Sends:
        src, dst = (np.repeat(each, runs[turn]) for each in (np.arange(n), turn.next()))
        chunk = turn.first(number)[:, None] + np.arange(runs[turn]) * span
        return Sends(src, dst, chunk.reshape(-1), np.full(len(src), turn.reduce), span)

    def sends(number: int) -> Sends:
        return together(*(part(turn, start + number) for turn in turns))

    return Phase(name, stop - start, sends, alike=True, along=tuple(sorted({turn.axis for turn in turns})))


def torus(pattern: Pattern, _pieces: int | None) -> Rounds:
    axes = _axes_of(pattern)
    phases: list[Phase] = []
    if axes and pattern.kind != "all_gather":
        phases += _side_by_side("reduce-scatter", [_turns(pattern.dims, axes, 0, reduce=True)])
    if axes and pattern.kind != "reduce_scatter":
        phases += _side_by_side("all-gather", [_turns(pattern.dims, axes, 0, reduce=False)])
    return pattern.group_size, phases


def torus_split(pattern: Pattern, _pieces: int | None) -> Rounds:
    n, axes = pattern.group_size, _axes_of(pattern)
    orders = [axes[part:] + axes[:part] for part in range(len(axes))]
    phases: list[Phase] = []
    for name, reduce in (("reduce-scatter", True), ("all-gather", False)):
        parts = [_turns(pattern.dims, order, part * n, reduce) for part, order in enumerate(orders)]
        phases += _side_by_side(name, parts) if parts else ()
    return max(1, len(axes)) * n, phases
