"""The torus, one axis after the other: every ring of an axis works on what the axis before has left.

Reduce-scatter along the first axis, then the second, …; all-gather back from the last to the first. On
X × Y devices an all_reduce takes 2 (X - 1) + 2 (Y - 1) rounds instead of 2 (XY - 1) and sends V/X, then
V/(XY), then V/X a round: the fewest bytes, over neighbours only, one way round (Jain and Sabharwal 2010,
"Optimal bucket algorithms for large MPI collectives on torus interconnects").

The chunks are numbered as the members, the first axis major: a ring along an axis then passes on chunks
that lie next to each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz.collectives.algorithms.algorithm import Algorithm, Unsuited, check_entries, schedule_of
from shardviz.collectives.pattern import Pattern
from shardviz.collectives.schedule import Phase, Schedule, Sends

if TYPE_CHECKING:
    from shardviz.collectives.schedule import Ints


@dataclass(frozen=True)
class Stage:
    """A turn of all rings along one `axis`, for the part of the payload whose chunks begin at `base`.

    `scattered` are the axes over which the part is scattered already: each ring works on a block of it.
    Members pass on `span` chunks at a time. Nothing is listed before it is asked for: twenty axes have as
    many stages, over a million devices.
    """

    dims: tuple[int, ...]
    axis: int
    scattered: tuple[int, ...]
    base: int
    reduce: bool

    @property
    def size(self) -> int:
        """Members of a ring."""
        return self.dims[self.axis]

    @property
    def span(self) -> int:
        members = math.prod(self.dims)
        return members // math.prod(self.dims[axis] for axis in (*self.scattered, self.axis))

    @property
    def rounds(self) -> int:
        return self.size - 1

    def places(self, axis: int) -> Ints:
        """The coordinate of every member on an axis."""
        import numpy as np

        return np.arange(math.prod(self.dims)) // math.prod(self.dims[axis + 1 :]) % self.dims[axis]

    def next(self) -> Ints:
        """To whom every member sends."""
        import numpy as np

        place = self.places(self.axis)
        stride = math.prod(self.dims[self.axis + 1 :])
        return np.arange(len(place)) + ((place + 1) % self.size - place) * stride

    def first(self, number: int) -> Ints:
        """The first chunk that each member sends in round `number`, from 0."""
        block = (self.places(self.axis) - number - int(self.reduce)) % self.size
        first = self.base + block * self.span
        span = math.prod(self.dims)
        for axis in self.scattered:
            span //= self.dims[axis]
            first += self.places(axis) * span
        return first


def axes_of(pattern: Pattern) -> tuple[int, ...]:
    """The axes with more than one device. Raises `Unsuited` for a single one."""
    axes = tuple(axis for axis, size in enumerate(pattern.dims) if size > 1)
    if len(axes) == 1:
        raise Unsuited("a torus has two axes of two devices or more, and here is one: that is a ring")
    return axes


def stages_along(dims: Sequence[int], order: Sequence[int], base: int, reduce: bool) -> list[Stage]:
    """The stages of one part, whose chunks begin at `base`, over the axes in `order`.

    They scatter over the axes as they come where `reduce`; else they gather over them backwards.
    """
    found = [Stage(tuple(dims), axis, tuple(order[:turn]), base, reduce) for turn, axis in enumerate(order)]
    return found if reduce else found[::-1]


def side_by_side(name: str, parts: Sequence[Sequence[Stage]]) -> Iterator[Phase]:
    """The rounds of several parts of the payload at once, all of which begin every stage together.

    A phase ends where a part has come to the end of its stage: its rounds are alike. Raises `Unsuited` where
    the parts pass on such different numbers of chunks that a round cannot be listed.
    """
    for stages in zip(*parts, strict=True):
        behind = 0
        for rounds in sorted({stage.rounds for stage in stages}):
            yield _together(name, [s for s in stages if s.rounds > behind], behind, rounds)
            behind = rounds


def _together(name: str, stages: Sequence[Stage], start: int, stop: int) -> Phase:
    """The rounds from `start` to `stop` of one stage a part."""
    import numpy as np

    n = math.prod(stages[0].dims)
    span = math.gcd(*(stage.span for stage in stages))
    runs = [stage.span // span for stage in stages]
    check_entries(n * sum(runs))

    def sends(number: int) -> Sends:
        src = np.concatenate([np.repeat(np.arange(n), run) for run in runs])
        dst = np.concatenate([np.repeat(stage.next(), run) for stage, run in zip(stages, runs, strict=True)])
        chunks = [
            (stage.first(start + number)[:, None] + np.arange(run) * span).reshape(-1)
            for stage, run in zip(stages, runs, strict=True)
        ]
        adds = np.full(len(src), stages[0].reduce)
        return Sends(src, dst, np.concatenate(chunks), adds, span)

    along = tuple(sorted({stage.axis for stage in stages}))
    return Phase(name, stop - start, sends, alike=True, along=along)


def build(pattern: Pattern, _pieces: int | None) -> Schedule:
    n, axes = pattern.group_size, axes_of(pattern)
    phases: list[Phase] = []
    if axes and pattern.kind != "all_gather":
        phases += side_by_side("reduce-scatter", [stages_along(pattern.dims, axes, 0, reduce=True)])
    if axes and pattern.kind != "reduce_scatter":
        phases += side_by_side("all-gather", [stages_along(pattern.dims, axes, 0, reduce=False)])
    return schedule_of("torus", pattern, n, *phases)


TORUS = Algorithm(
    "torus",
    "rings along one axis of the torus after the other",
    ("all_gather", "reduce_scatter", "all_reduce"),
    build,
)
