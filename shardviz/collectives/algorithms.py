"""The algorithms, and the choice among them.

Of those that send to neighbours only, one way round a ring is that of Patarasuk and Yuan 2009, "Bandwidth
optimal all-reduce algorithms for clusters of workstations". Both ways every chunk takes the shorter way, as
on a wrapped axis of a TPU torus (Austin et al. 2025, "How to scale your model", part 3). On a line each
passes on what came from the other side the round before. On a torus (Jain and Sabharwal 2010, "Optimal
bucket algorithms for large MPI collectives on torus interconnects") every ring of an axis works on what the
axis before has left. Split, there are as many parts of the payload as axes: part k is scattered along axis k
first, then k + 1, … and gathered the same way back. All turn to the next axis together; the parts on shorter
axes wait.

Of the others, doubling, halving, pairwise and the binomial tree are those of Thakur, Rabenseifner and Gropp
2005, "Optimization of collective communication operations in MPICH"; halving, then doubling is an all-reduce
with the fewest bytes (Rabenseifner 2004, "Optimization of collective reduction operations"). Bruck's take
⌈log2 n⌉ rounds for any n (Bruck, Ho, Kipnis, Upfal and Weathersby 1997, "Efficient algorithms for all-to-all
communications in multiport message-passing systems"). The double binary tree is that of Sanders, Speck and
Träff 2009, "Two-tree algorithms for full bandwidth broadcast, reduction and scan"; as an all-reduce whose two
directions overlap: Jeaugey 2019, "Massively scale your deep learning training with NCCL 2.4"."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shardviz.collectives.schedule import (
    MAX_ENTRIES,
    Pattern,
    Phase,
    Rounds,
    Schedule,
    Sends,
    Unsuited,
    check_entries,
    doublings,
    each_to,
    in_turn,
    pipeline,
    together,
)
from shardviz.collectives.values import Ints
from shardviz.errors import QuestionError, most_like, plural, quote

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


# Partners other than neighbours: every message straight to where it belongs, or in log2 n rounds.


def direct(pattern: Pattern, _pieces: int | None) -> Rounds:
    n, kind = pattern.group_size, pattern.kind
    if kind == "permute":
        pairs = np.array([pair for pair in pattern.perm if pair[0] != pair[1]], dtype=np.int64).reshape(-1, 2)
        return n, [_at_once("permute", pairs[:, 0], pairs[:, 1], pairs[:, 0])]
    if kind == "broadcast":
        dst = np.delete(np.arange(n), pattern.source)
        return 1, [_at_once("broadcast", np.full(n - 1, pattern.source), dst, np.zeros_like(dst))]
    check_entries(n * (n - 1))
    src = np.repeat(np.arange(n), n - 1)
    dst = (src + np.tile(np.arange(1, n), n)) % n
    if kind == "all_to_all":
        return n * n, [_at_once("all-to-all", src, dst, src * n + dst)]
    reduce = _at_once("reduce-scatter", src, dst, dst, reduce=True)
    return n, in_turn(kind, [reduce], [_at_once("all-gather", src, dst, src)])


def _at_once(name: str, src: Ints, dst: Ints, chunk: Ints, reduce: bool = False) -> Phase:
    adds = np.full(len(src), reduce)
    return Phase(name, min(1, len(src)), lambda _: Sends(src, dst, chunk, adds), alike=True)


def pairwise(pattern: Pattern, _pieces: int | None) -> Rounds:
    # Between members whose numbers differ by the binary digits of the round where n is a power of two.
    n = pattern.group_size
    member, paired = np.arange(n), n & (n - 1) == 0

    def sends(number: int) -> Sends:
        dst = member ^ (number + 1) if paired else (member + number + 1) % n
        return each_to(dst, member * n + dst)

    return n * n, [Phase("all-to-all", n - 1, sends)]


def recursive_doubling(pattern: Pattern, _pieces: int | None) -> Rounds:
    n = pattern.group_size
    if pattern.kind == "all_gather":
        return n, [_doubling(n)]
    member, whole = np.arange(n), np.zeros(n, dtype=np.int64)
    return 1, [Phase("all-reduce", doublings(n), lambda r: each_to(member ^ (1 << r), whole, reduce=True))]


def halving(pattern: Pattern, _pieces: int | None) -> Rounds:
    n = pattern.group_size

    def sends(number: int) -> Sends:
        """Member i ends with total i: each keeps the half on its own side and sends the other."""
        half = n >> (number + 1)
        partner = np.arange(n) ^ half
        return each_to(partner, partner & -half, True, half)

    return n, in_turn(pattern.kind, [Phase("reduce-scatter", doublings(n), sends)], [_doubling(n)])


def _doubling(n: int) -> Phase:
    """An all-gather; member i starts with chunk i. Raises `Unsuited` where n is not a power of two."""
    member = np.arange(n)

    def sends(number: int) -> Sends:
        held = 1 << number
        return each_to(member ^ held, member & -held, span=held)

    return Phase("all-gather", doublings(n), sends)


def bruck(pattern: Pattern, _pieces: int | None) -> Rounds:
    n = pattern.group_size
    rounds, member = (n - 1).bit_length(), np.arange(n)

    def collecting(number: int) -> Sends:
        held = 1 << number
        return each_to((member - held) % n, member, span=min(held, n - held))

    def hopping(number: int) -> Sends:
        """Block s * n + d goes from member s to member d."""
        hop, distance = 1 << number, np.arange(1, n)
        distance = distance[distance & hop > 0]
        origin = (member[:, None] - distance % hop) % n
        chunk = (origin * n + (origin + distance) % n).reshape(-1)
        src = np.repeat(member, len(distance))
        return Sends(src, (src + hop) % n, chunk, np.zeros(len(chunk), dtype=bool))

    if pattern.kind == "all_to_all":
        check_entries(n * (n // 2))
        return n * n, [Phase("all-to-all", rounds, hopping)]
    return n, [Phase("all-gather", rounds, collecting)]


def binomial_tree(pattern: Pattern, _pieces: int | None) -> Rounds:
    n = pattern.group_size
    rounds = (n - 1).bit_length()
    root = pattern.source if pattern.kind == "broadcast" else 0
    spread = Phase("broadcast", rounds, lambda r: _edges(n, root, 1 << (rounds - 1 - r), up=False))
    collect = Phase("reduce", rounds, lambda r: _edges(n, root, 1 << r, up=True))
    return 1, [spread] if pattern.kind == "broadcast" else [collect, spread]


def _edges(n: int, root: int, apart: int, up: bool) -> Sends:
    """The edges of the tree between members that are so far apart, counted from the root."""
    near = np.arange(0, n - apart, 2 * apart)
    parent, child = (near + root) % n, (near + apart + root) % n
    src, dst = (child, parent) if up else (parent, child)
    return Sends(src, dst, np.zeros_like(src), np.full(len(src), up))


def double_binary_tree(pattern: Pattern, pieces: int | None) -> Rounds:
    n = pattern.group_size
    height = n.bit_length() - 1
    pieces = pieces or max(1, 2 * height)
    edges = []
    for number, tree in enumerate(trees(n)):
        first = np.full(len(tree.child), number * pieces)
        up = np.ones_like(first, dtype=bool)
        edges.append((tree.child, tree.parent, height - tree.depth, first, up))
        edges.append((tree.parent, tree.child, height + tree.depth - 1, first, ~up))
    both = (np.concatenate(arrays) for arrays in zip(*edges, strict=True))
    return 2 * pieces, [pipeline("reduce and broadcast", pieces, *both)]


class Tree(NamedTuple):
    """The edges of a tree: `child[k]` hangs on `parent[k]`, `depth[k]` edges below the root."""

    parent: Ints
    child: Ints
    depth: Ints


def trees(n: int) -> tuple[Tree, Tree]:
    """Two binary trees over n members, of height ⌊log2 n⌋, in which no member has children twice. Numbered
    from 1, the nodes of the first with children are the even ones. The second is its mirror image where n is
    even; else it is shifted by one."""
    up, depth = _in_order(n)
    node = np.flatnonzero(up)
    nodes = np.arange(n + 1)
    first, second = (
        Tree(member[up[node]], member[node], depth[node])
        for member in (nodes - 1, (n - nodes) % n if n % 2 == 0 else (nodes - 2) % n)
    )
    return first, second


def _in_order(n: int) -> tuple[Ints, Ints]:
    """The parent of each of the nodes 0 to n (0 for the root and for 0, which is not a node), and the
    depth."""
    node = np.arange(n + 1)
    lowest = node & -node
    up = (node ^ lowest) | (lowest << 1)
    up = np.where(up > n, node ^ lowest, up)
    depth = np.zeros_like(node)
    above = up
    while above.any():
        depth += above > 0
        above = up[above]
    return up, depth


# The choice.

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
                  (*_SUMS, "all_to_all", "broadcast"), ring, pipelined=True),
        Algorithm("bidirectional-ring", "to both neighbours at once, by the shorter way",
                  (*_SUMS, "all_to_all"), bidirectional_ring, pipelined=True),
        Algorithm("line", "to both neighbours at once, never from the last to the first",
                  _SUMS, line),
        Algorithm("recursive-doubling", "partners 1, 2, 4, … away exchange all they have",
                  ("all_gather", "all_reduce"), recursive_doubling),
        Algorithm("recursive-halving", "partners n/2, n/4, … away each keep one half and send the other",
                  ("reduce_scatter",), halving),
        Algorithm("halving-doubling", "reduce-scatter by halving, then all-gather by doubling",
                  ("all_reduce",), halving),
        Algorithm("bruck", "members 1, 2, 4, … away, for any number of devices",
                  ("all_gather", "all_to_all"), bruck),
        Algorithm("pairwise", "one partner per round, a block each way", ("all_to_all",), pairwise),
        Algorithm("direct", "every message straight to where it belongs, all at once",
                  (*_SUMS, "all_to_all", "permute", "broadcast"), direct),
        Algorithm("binomial-tree", "all that have the payload pass it on, so that their number doubles",
                  ("broadcast", "all_reduce"), binomial_tree),
        Algorithm("double-binary-tree", "half of the payload up and down each of two trees, in pieces",
                  ("all_reduce",), double_binary_tree, pipelined=True),
        Algorithm("torus", "rings along one axis of the torus after the other", _SUMS, torus),
        Algorithm("torus-split", "the payload in parts, one starting along each axis of the torus",
                  ("all_reduce",), torus_split),
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
