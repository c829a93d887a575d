"""The torus, one axis after the other: every ring of an axis works on what the axis before has left.

Jain and Sabharwal 2010, "Optimal bucket algorithms for large MPI collectives on torus interconnects". Split,
there are as many parts of the payload as axes: part k is scattered along axis k first, then k + 1, … and
gathered the same way back. All turn to the next axis together; the parts on shorter axes wait."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from shardviz.collectives.schedule import Pattern, Phase, Rounds, Sends, Unsuited, check_entries, together
from shardviz.collectives.values import Ints


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
