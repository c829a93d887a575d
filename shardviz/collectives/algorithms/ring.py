"""The ring and the line: members send to their neighbours only, round the ring one way or both ways at once.

One way it is that of Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of
workstations". Both ways every chunk takes the shorter way, as on a wrapped axis of a TPU torus (Austin et al.
2025, "How to scale your model", part 3). On a line each passes on what came from the other side the round
before."""

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
