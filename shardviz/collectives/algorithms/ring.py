"""The ring and the line: members send to their neighbours only, round the ring one way or both ways at once.

One way it is that of Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of
workstations". Both ways every chunk takes the shorter way, in half the rounds: right-hand neighbours are
reached over n // 2 hops, left-hand ones over (n - 1) // 2. That is why a wrapped axis of a TPU torus gathers
in V / (2 · bandwidth of a link one way) and does its all-to-all in a quarter of that (Austin et al. 2025,
"How to scale your model", part 3). On a line each passes on, both ways, what came from the other side the
round before, its own chunk first; a reduce_scatter is the same backwards.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shardviz.collectives.schedule import (
    Pattern,
    Phase,
    Rounds,
    Sends,
    Unsuited,
    check_entries,
    in_turn,
    pipeline,
)
from shardviz.collectives.values import Ints
from shardviz.errors import plural

Chosen = Callable[[int], Ints]


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
    member = np.arange(n)

    def around(name: str, reduce: bool) -> Phase:
        # Member i starts with chunk i; or ends with total i, to which each member adds its own.
        dst, first, adds = (member + 1) % n, member - int(reduce), np.full(n, reduce)
        return Phase(name, n - 1, lambda r: Sends(member, dst, (first - r) % n, adds), alike=True)

    return n, in_turn(pattern.kind, [around("reduce-scatter", True)], [around("all-gather", False)])


def _passing(n: int, step: int, reach: int, number: int) -> Sends:
    """Round `number` (from 0) of an all_to_all hop by hop, for the blocks that go 1 to `reach` hops: every
    member sends to the one `step` (1 or -1) further all that it was sent the round before and that has
    further to go."""
    hops = np.arange(number + 1, reach + 1)
    member = np.arange(n)
    origin = (member - step * number) % n
    chunk = (origin * n)[:, None] + (origin[:, None] + step * hops) % n
    src = np.repeat(member, len(hops))
    return Sends(src, (src + step) % n, chunk.reshape(-1), np.zeros(chunk.size, dtype=bool))


def bidirectional_ring(pattern: Pattern, pieces: int | None) -> Rounds:
    n = pattern.group_size
    if pieces not in (None, 1):
        return _in_halves(pattern, pieces)
    if pattern.kind == "all_to_all":
        check_entries(n * (n - 1))
        return n * n, [Phase("all-to-all", n // 2, lambda r: _passing_both_ways(n, r))]
    member, far, near = np.arange(n), n // 2, (n - 1) // 2
    gather = _both_ways(n, "all-gather", lambda r: (member - r) % n, lambda r: (member + r) % n, reduce=False)
    reduce = _both_ways(
        n, "reduce-scatter", lambda r: (member + far - r) % n, lambda r: (member - near + r) % n, reduce=True
    )
    return n, in_turn(pattern.kind, reduce, gather)


def _both_ways(n: int, name: str, right: Chosen, left: Chosen, reduce: bool) -> list[Phase]:
    """Rounds to both sides, then, where n is even, one to the right; `right` and `left` give the chunks."""
    member, adds = np.arange(n), np.full(2 * n, reduce)
    src = np.concatenate([member, member])
    dst = np.concatenate([member + 1, member - 1]) % n
    near = (n - 1) // 2
    return [
        Phase(name, near, lambda r: Sends(src, dst, np.concatenate([right(r), left(r)]), adds), alike=True),
        Phase(name, n // 2 - near, lambda _: Sends(member, dst[:n], right(near), adds[:n]), alike=True),
    ]


def _in_halves(pattern: Pattern, pieces: int) -> Rounds:
    """Both ways in two pieces: what the member opposite needs goes half to the right and half to the left."""
    n, kind = pattern.group_size, pattern.kind
    if n % 2 or pieces != 2 or kind == "all_to_all":
        raise Unsuited(f"{plural(n, 'device')} of {kind} have no use for {plural(pieces, 'piece')}")
    member, far, near = np.arange(n), n // 2, n // 2 - 1
    to_right, to_left = (member + 1) % n, (member - 1) % n

    def sends(right: Chosen, left: Chosen, r: int, last: bool, reduce: bool) -> Sends:
        """The first half goes `far` to the right and `near` to the left, the second the other way round."""
        chunks = [2 * (right(r) % n), 2 * (left(r) % n) + 1]
        dst = [to_right, to_left]
        if not last:
            shift = 1 if reduce else 0
            chunks += [2 * ((left(r) + shift) % n), 2 * ((right(r) - shift) % n) + 1]
            dst += [to_left, to_right]
        src, everything = np.tile(member, len(dst)), np.concatenate(dst)
        return Sends(src, everything, np.concatenate(chunks), np.full(len(src), reduce))

    def phases(name: str, right: Chosen, left: Chosen, reduce: bool) -> list[Phase]:
        return [
            Phase(name, near, lambda r: sends(right, left, r, False, reduce), alike=True),
            Phase(name, 1, lambda _: sends(right, left, near, True, reduce), alike=True),
        ]

    gather = phases("all-gather", lambda r: member - r, lambda r: member + r, reduce=False)
    scatter = phases("reduce-scatter", lambda r: member + far - r, lambda r: member - far + r, reduce=True)
    return 2 * n, in_turn(kind, scatter, gather)


def _passing_both_ways(n: int, number: int) -> Sends:
    right, left = _passing(n, 1, n // 2, number), _passing(n, -1, (n - 1) // 2, number)
    src, dst, chunk = (
        np.concatenate(both)
        for both in ((right.src, left.src), (right.dst, left.dst), (right.chunk, left.chunk))
    )
    return Sends(src, dst, chunk, np.zeros(len(src), dtype=bool))


def line(pattern: Pattern, _pieces: int | None) -> Rounds:
    n = pattern.group_size
    gather = Phase("all-gather", n - 1, lambda r: _outwards(n, r))

    def inwards(number: int) -> Sends:
        """The same backwards: the farthest sums come nearer to their own by one."""
        out = _outwards(n, n - 2 - number)
        return Sends(out.dst, out.src, out.chunk, ~out.reduce)

    return n, in_turn(pattern.kind, [Phase("reduce-scatter", n - 1, inwards)], [gather])


def _outwards(n: int, number: int) -> Sends:
    """Round `number`, from 0: chunks that are so many members away from their own move on by one."""
    member = np.arange(n)
    right, left = member[number : n - 1], member[1 : n - number]
    src = np.concatenate([right, left])
    dst = np.concatenate([right + 1, left - 1])
    chunk = np.concatenate([right - number, left + number])
    return Sends(src, dst, chunk, np.zeros(len(src), dtype=bool))
