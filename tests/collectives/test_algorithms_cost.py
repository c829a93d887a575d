"""Rounds, bytes and ports of every algorithm, against the published formulas."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from math import ceil, floor, log2

import numpy as np
import pytest

from shardviz.collectives.algorithms import ALGORITHMS, schedule_for, schedules_for, trees
from shardviz.collectives.schedule import Pattern, lower_bound

GATHERS = ("all_gather", "reduce_scatter")
PAIRS = [(name, kind) for name, algorithm in ALGORITHMS.items() for kind in algorithm.kinds]


def whole(pattern):
    """The payload V in base chunks; for an all_to_all and a permute it is what one member holds."""
    return {"all_to_all": pattern.group_size, "permute": 1}.get(pattern.kind, pattern.base_chunks)


def totals(schedule):
    """The chunks that each member sends over all rounds."""
    sent = np.zeros(schedule.pattern.group_size, dtype=np.int64)
    for sends in schedule:
        np.add.at(sent, sends.src, sends.span)
    return sent


def shares(schedule):
    """For every round, what the member that sends most sends, as a share of the payload V."""
    unit = Fraction(schedule.pattern.base_chunks, schedule.chunks * whole(schedule.pattern))
    return [int(np.bincount(sends.src).max()) * sends.span * unit for sends in schedule]


def ring_table(kind, n):
    if kind == "broadcast":
        return [Fraction(1, n)] * (2 * n - 2 if n > 1 else 0)
    if kind == "all_to_all":
        return [Fraction(left, n) for left in range(n - 1, 0, -1)]
    return [Fraction(1, n)] * ((n - 1) * (1 if kind in GATHERS else 2))


def bidirectional_table(kind, n):
    if kind == "all_to_all":
        return [Fraction(n // 2 - r + max(0, (n - 1) // 2 - r), n) for r in range(n // 2)]
    rounds = [Fraction(2, n)] * (n // 2)
    if n % 2 == 0:
        rounds[-1] = Fraction(1, n)
    return rounds * (1 if kind in GATHERS else 2)


def halving(n):
    return [Fraction(1, 2 << number) for number in range(n.bit_length() - 1)]


def bruck_table(kind, n):
    known = {
        ("all_gather", 5): (1, 2, 1),
        ("all_gather", 7): (1, 2, 3),
        ("all_gather", 8): (1, 2, 4),
        ("all_to_all", 8): (4, 4, 4),
        ("all_to_all", 5): (2, 2, 1),
        ("all_to_all", 2): (1,),
        ("all_gather", 2): (1,),
        ("all_to_all", 16): (8, 8, 8, 8),
        ("all_gather", 12): (1, 2, 4, 4),
        ("all_to_all", 7): (3, 3, 3),
        ("all_gather", 16): (1, 2, 4, 8),
        ("all_to_all", 12): (6, 6, 4, 4),
    }
    return [Fraction(blocks, n) for blocks in known[kind, n]]


def direct_table(kind, n):
    if kind == "broadcast":
        return [n - 1]
    if kind == "permute":
        return [1]
    return [Fraction(n - 1, n)] * (2 if kind == "all_reduce" else 1)


TABLE = {
    "ring": ring_table,
    "bidirectional-ring": bidirectional_table,
    "recursive-doubling": lambda kind, n: halving(n)[::-1] if kind == "all_gather" else [1] * int(log2(n)),
    "recursive-halving": lambda _kind, n: halving(n),
    "halving-doubling": lambda _kind, n: halving(n) + halving(n)[::-1],
    "bruck": bruck_table,
    "pairwise": lambda _kind, n: [Fraction(1, n)] * (n - 1),
    "direct": direct_table,
    "binomial-tree": lambda kind, n: [1] * ceil(log2(n)) * (2 if kind == "all_reduce" else 1),
}


@pytest.mark.parametrize("n", [2, 5, 7, 8, 12, 16])
def test_rounds_and_bytes_a_round_are_those_of_the_textbook(n):
    for name, kind in (pair for pair in PAIRS if pair[0] in TABLE):
        pattern = Pattern(kind, (n,), perm=((0, 1), (1, 0)), source=1)
        if pattern in {schedule.pattern for schedule in schedules_for(pattern) if schedule.algorithm == name}:
            assert shares(schedule_for(name, pattern)) == TABLE[name](kind, n)
        else:
            assert n.bit_count() > 1


def test_the_bidirectional_ring_takes_4_rounds_where_the_ring_takes_7():
    pattern = Pattern("all_gather", (8,))
    rings = {name: schedule_for(name, pattern) for name in ("ring", "bidirectional-ring")}
    assert {name: schedule.rounds for name, schedule in rings.items()} == {"ring": 7, "bidirectional-ring": 4}
    assert [len(sends) for sends in rings["bidirectional-ring"]] == [16, 16, 16, 8]
    assert [len(sends) for sends in rings["ring"]] == [8] * 7


@pytest.mark.parametrize("n", [64, 65])
def test_an_exchange_over_a_bidirectional_ring_takes_a_quarter_of_a_gather(n):
    """Of an array that lies on n devices, V bytes in all, a device passes on V/4 against V."""
    gathered = sum(shares(schedule_for("bidirectional-ring", Pattern("all_gather", (n,)))))
    exchanged = sum(shares(schedule_for("bidirectional-ring", Pattern("all_to_all", (n,))))) / n
    assert float(exchanged / gathered) == pytest.approx(1 / 4, rel=0.02)


@pytest.mark.parametrize(
    ("dims", "expected"),
    [
        ((2, 4), [(1, Fraction(1, 2)), (3, Fraction(1, 8)), (3, Fraction(1, 8)), (1, Fraction(1, 2))]),
        ((3, 5), [(2, Fraction(1, 3)), (4, Fraction(1, 15)), (4, Fraction(1, 15)), (2, Fraction(1, 3))]),
        (
            (2, 3, 4),
            [
                (1, Fraction(1, 2)),
                (2, Fraction(1, 6)),
                (3, Fraction(1, 24)),
                (3, Fraction(1, 24)),
                (2, Fraction(1, 6)),
                (1, Fraction(1, 2)),
            ],
        ),
    ],
)
def test_a_torus_scatters_along_one_axis_after_the_other_and_gathers_back(dims, expected):
    schedule = schedule_for("torus", Pattern("all_reduce", dims))
    assert shares(schedule) == [share for rounds, share in expected for _ in range(rounds)]
    assert [phase.rounds for phase in schedule.phases] == [rounds for rounds, _ in expected]
    halves = [schedule_for("torus", Pattern(kind, dims)) for kind in ("reduce_scatter", "all_gather")]
    assert shares(halves[0]) + shares(halves[1]) == shares(schedule)


def test_phases_of_a_torus_tell_their_axes():
    named = {
        name: [
            (phase.name, phase.along) for phase in schedule_for(name, Pattern("all_reduce", (2, 1, 3))).phases
        ]
        for name in ("torus", "torus-split")
    }
    assert named == {
        "torus": [
            ("reduce-scatter", (0,)),
            ("reduce-scatter", (2,)),
            ("all-gather", (2,)),
            ("all-gather", (0,)),
        ],
        "torus-split": [
            ("reduce-scatter", (0, 2)),
            ("reduce-scatter", (2,)),
            ("reduce-scatter", (0, 2)),
            ("reduce-scatter", (2,)),
            ("all-gather", (0, 2)),
            ("all-gather", (2,)),
            ("all-gather", (0, 2)),
            ("all-gather", (2,)),
        ],
    }


@pytest.mark.parametrize("dims", [(2, 2), (4, 4), (5, 5), (3, 3, 3), (2, 2, 2, 2), (4, 1, 4)])
def test_a_split_torus_works_on_every_axis_in_every_round(dims):
    """Equal axes: each carries one d-th of what the torus sends in turn."""
    pattern = Pattern("all_reduce", dims)
    split, turns = schedule_for("torus-split", pattern), schedule_for("torus", pattern)
    assert shares(split) == shares(turns)
    axes = [axis for axis, size in enumerate(dims) if size > 1]
    for sends in split:
        by_axis = Counter(
            axis_of(dims, *edge) for edge in zip(sends.src.tolist(), sends.dst.tolist(), strict=True)
        )
        assert set(by_axis) == set(axes)
        assert len(set(by_axis.values())) == 1


@pytest.mark.parametrize("dims", [(2, 4), (3, 5), (4, 2, 3), (2, 16)])
def test_parts_of_a_split_torus_of_any_axes_never_share_one(dims):
    n = math.prod(dims)
    schedule = schedule_for("torus-split", Pattern("all_reduce", dims))
    assert schedule.rounds == 2 * len(dims) * (max(dims) - 1)
    assert totals(schedule).tolist() == [2 * (n - 1) * len(dims)] * n
    for sends in schedule:
        on = {}
        for src, dst, part in zip(
            sends.src.tolist(), sends.dst.tolist(), (sends.chunk // n).tolist(), strict=True
        ):
            on.setdefault(axis_of(dims, src, dst), set()).add(part)
        assert {len(parts) for parts in on.values()} == {1}


def axis_of(dims, src, dst):
    """The one axis along which two members are neighbours; `dst` is the next one on it."""
    before, after = np.unravel_index([src, dst], dims), dims
    steps = [(int(at[1]) - int(at[0])) % size for at, size in zip(before, after, strict=True)]
    (axis,) = (axis for axis, step in enumerate(steps) if step)
    assert steps[axis] == 1
    return axis


@pytest.mark.parametrize("dims", [(2, 4), (3, 5), (2, 3, 4), (4, 4), (1, 4, 3)])
@pytest.mark.parametrize(("name", "kind"), [pair for pair in PAIRS if pair[0].startswith("torus")])
def test_a_torus_sends_to_neighbours_only(name, kind, dims):
    for sends in schedule_for(name, Pattern(kind, dims)):
        for src, dst in {*zip(sends.src.tolist(), sends.dst.tolist(), strict=True)}:
            axis_of(dims, src, dst)


@pytest.mark.parametrize(("name", "kind"), [pair for pair in PAIRS if pair[0].endswith("ring")])
@pytest.mark.parametrize("n", [2, 3, 8, 11])
def test_a_ring_sends_to_neighbours_only(name, kind, n):
    allowed = {1} if name == "ring" else {1, n - 1}
    for sends in schedule_for(name, Pattern(kind, (n,))):
        assert {*((sends.dst - sends.src) % n).tolist()} <= allowed


@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter", "all_reduce"])
@pytest.mark.parametrize("n", [2, 3, 8, 11])
def test_a_line_sends_a_chunk_each_way_to_its_neighbours(kind, n):
    schedule = schedule_for("line", Pattern(kind, (n,)))
    assert (schedule.chunks, schedule.rounds) == (n, (n - 1) * (2 if kind == "all_reduce" else 1))
    for sends in schedule:
        assert {*abs(sends.dst - sends.src).tolist()} == {1}
        pairs = [*zip(sends.src.tolist(), sends.dst.tolist(), strict=True)]
        assert len({*pairs}) == len(pairs)


@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter", "all_reduce"])
def test_in_halves_both_ways_carry_the_same(kind):
    for n in (2, 4, 6, 16):
        schedule = schedule_for("bidirectional-ring", Pattern(kind, (n,)), 2)
        whole, halves = schedule_for("bidirectional-ring", Pattern(kind, (n,))), Counter()
        assert (schedule.rounds, schedule.chunks) == (whole.rounds, 2 * n)
        for sends in schedule:
            # With two devices, both ways lead to the same one.
            halves.update(((sends.dst - sends.src) % n).tolist())
        times = 2 if kind == "all_reduce" else 1
        assert halves == ({1: times * n * (n - 1), n - 1: times * n * (n - 1)} if n > 2 else {1: times * 4})


PORTS = {
    "ring": 1,
    "bidirectional-ring": 2,
    "recursive-doubling": 1,
    "recursive-halving": 1,
    "halving-doubling": 1,
    "bruck": 1,
    "pairwise": 1,
    "binomial-tree": 1,
    "double-binary-tree": 4,
    "torus": 1,
}
"""Messages that a member sends at most in one round, and receives at most."""


def test_messages_of_one_member_in_one_round():
    for name, kind in (pair for pair in PAIRS if pair[0] in PORTS):
        most = 0
        for dims in [(n,) for n in (2, 3, 7, 8, 16, 33)] + [(2, 4), (3, 5), (2, 3, 4)]:
            pattern = Pattern(kind, dims, source=1)
            for schedule in schedules_for(pattern):
                if schedule.algorithm == name:
                    for sends in schedule:
                        edges = {*zip(sends.src.tolist(), sends.dst.tolist(), strict=True)}
                        for side in (0, 1):
                            most = max(most, *Counter(edge[side] for edge in edges).values())
        assert most == PORTS[name]


def test_double_binary_trees():
    for n in (*range(1, 34), 63, 64, 65, 1000):
        parents = []
        for tree in trees(n):
            assert sorted({*range(n)} - {*tree.child.tolist()}) == [root_of(tree, n)]
            assert len(tree.child) == n - 1
            assert max(Counter(tree.parent.tolist()).values(), default=0) <= 2
            above = dict(zip(tree.child.tolist(), tree.parent.tolist(), strict=True))
            for child, depth in zip(tree.child.tolist(), tree.depth.tolist(), strict=True):
                for _ in range(depth):
                    child = above[child]
                assert child == root_of(tree, n)
            assert max(tree.depth.tolist(), default=0) == floor(log2(n))
            parents.append({*tree.parent.tolist()})
        assert not parents[0] & parents[1]


def root_of(tree, n):
    (root,) = {*range(n)} - {*tree.child.tolist()}
    return root


@pytest.mark.parametrize("pieces", [None, 1, 5])
def test_double_binary_tree_rounds_and_bytes(pieces):
    for n in (*range(2, 18), 33, 100, 1024):
        schedule = schedule_for("double-binary-tree", Pattern("all_reduce", (n,)), pieces)
        cut = pieces or 2 * floor(log2(n))
        assert schedule.rounds == 2 * floor(log2(n)) + cut - 1
        assert schedule.chunks == 2 * cut
        sent = Counter()
        for sends in schedule:
            sent.update(sends.src.tolist())
            ways = Counter(
                zip(sends.src.tolist(), sends.dst.tolist(), (sends.chunk // cut).tolist(), strict=True)
            )
            assert set(ways.values()) == {1}
        assert Fraction(2 * (n - 1), n) <= Fraction(max(sent.values()), schedule.chunks) <= 2


@pytest.mark.parametrize("n", [2, 3, 8, 13])
@pytest.mark.parametrize("pieces", [1, 4, 9])
def test_a_chain_is_full_after_as_many_rounds_as_it_has_links(n, pieces):
    schedule = schedule_for("ring", Pattern("broadcast", (n,), source=n - 1), pieces)
    assert schedule.rounds == n - 2 + pieces
    busy = [len(sends) for sends in schedule]
    assert busy == [min(r + 1, n - 1, pieces, n - 2 + pieces - r) for r in range(schedule.rounds)]


@pytest.mark.parametrize(
    "kind", ["all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute", "broadcast"]
)
def test_no_algorithm_sends_less_than_the_lower_bound(kind):
    for dims in ((2,), (8,), (13,), (3, 5), (2, 3, 4)):
        pattern = Pattern(kind, dims, perm=((0, 1), (1, 0)))
        for schedule in schedules_for(pattern):
            payload = schedule.chunks * whole(pattern) // pattern.base_chunks
            bound = lower_bound(pattern, payload)
            assert totals(schedule).max() >= bound.wire_bytes
            if PORTS.get(schedule.algorithm) == 1:
                assert schedule.rounds >= bound.rounds


FEWEST_BYTES = {
    "all_gather": {"ring", "bidirectional-ring", "recursive-doubling", "bruck", "direct", "torus"},
    "reduce_scatter": {"ring", "bidirectional-ring", "line", "recursive-halving", "direct", "torus"},
    "all_reduce": {"ring", "bidirectional-ring", "halving-doubling", "direct", "torus", "torus-split"},
    "all_to_all": {"pairwise", "direct"},
    "broadcast": {"ring"},
}


@pytest.mark.parametrize("kind", FEWEST_BYTES)
def test_which_algorithms_reach_the_lower_bound(kind):
    found = set()
    for schedule in schedules_for(Pattern(kind, (4, 4))):
        payload = schedule.chunks * whole(schedule.pattern) // schedule.pattern.base_chunks
        bound = lower_bound(schedule.pattern, payload * 16).wire_bytes
        if totals(schedule).max() * 16 == bound:
            found.add(schedule.algorithm)
    assert found == FEWEST_BYTES[kind]


@pytest.mark.parametrize("dims", [(65536,), (256, 256), (64, 32, 32)])
def test_rounds_of_a_large_group_list_messages_not_chunks(dims):
    most = {"double-binary-tree": 4, "bidirectional-ring": 2, "line": 2, "torus-split": 8}
    for kind in ("all_gather", "reduce_scatter", "all_reduce", "broadcast", "permute"):
        for schedule in schedules_for(Pattern(kind, dims, perm=((0, 1),))):
            numbers = {1, schedule.rounds // 3 + 1, schedule.rounds // 2 + 1, schedule.rounds}
            entries = max(len(schedule.round(number)) for number in numbers)
            assert entries <= 65536 * most.get(schedule.algorithm, 1)
    assert len(schedule_for("pairwise", Pattern("all_to_all", dims)).round(40_000)) == 65536
