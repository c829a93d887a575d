"""Every schedule carries out its pattern: played here with plain sets of contributions, nothing shared."""

from __future__ import annotations

import dataclasses
import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st

from shardviz.collectives.algorithms import ALGORITHMS, Unsuited, schedule_for, schedules_for, trees
from shardviz.collectives.schedule import KINDS, Pattern, Phase, Schedule, Sends
from shardviz.collectives.trace import ScheduleError, Trace
from shardviz.errors import QuestionError
from tests.conftest import examples

TORI = ((2, 2), (2, 4), (4, 2), (3, 5), (1, 3, 2), (2, 3, 4), (4, 4, 4), (3, 1, 3), (2, 2, 2, 2), (5, 2, 3))
POWERS_ONLY = ("recursive-doubling", "recursive-halving", "halving-doubling")
PIPELINED = (("ring", "broadcast"), ("double-binary-tree", "all_reduce"))
PAIRS = [(name, kind) for name, algorithm in ALGORITHMS.items() for kind in algorithm.kinds]


class BrokenSchedule(AssertionError):
    pass


def beginnings(pattern, chunks):
    """(member, chunk) -> whose contributions it holds, before anything is sent."""
    n, kind = pattern.group_size, pattern.kind
    if kind in ("reduce_scatter", "all_reduce"):
        return {(m, c): frozenset([m]) for m in range(n) for c in range(chunks)}
    if kind == "broadcast":
        return {(pattern.source, c): frozenset([pattern.source]) for c in range(chunks)}
    return {(c * n // chunks, c): frozenset([c * n // chunks]) for c in range(chunks)}


def endings(pattern, chunks):
    """(member, chunk) -> whose contributions it must hold when all is done."""
    n, kind = pattern.group_size, pattern.kind
    everyone = frozenset(range(n))
    if kind == "all_gather":
        return {(m, c): frozenset([c * n // chunks]) for m in range(n) for c in range(chunks)}
    if kind == "reduce_scatter":
        return {(c * n // chunks, c): everyone for c in range(chunks)}
    if kind == "all_reduce":
        return {(m, c): everyone for m in range(n) for c in range(chunks)}
    if kind == "all_to_all":
        assert chunks == n * n
        return {(d, s * n + d): frozenset([s]) for s in range(n) for d in range(n)}
    if kind == "permute":
        assert chunks == n
        return {(target, origin): frozenset([origin]) for origin, target in pattern.perm}
    return {(m, c): frozenset([pattern.source]) for m in range(n) for c in range(chunks)}


def messages(sends, chunks):
    """(src, dst, chunk, reduce) of every chunk that is sent in a round."""
    for src, dst, first, reduce in zip(
        *(a.tolist() for a in (sends.src, sends.dst, sends.chunk, sends.reduce)), strict=True
    ):
        for step in range(sends.span):
            yield src, dst, (first + step) % chunks, reduce


def play(schedule):
    """Raise `BrokenSchedule` where a round sends what is not there, sends for nothing or adds up twice."""
    pattern, chunks, n = schedule.pattern, schedule.chunks, schedule.pattern.group_size
    held = beginnings(pattern, chunks)
    for number, sends in enumerate(schedule, 1):
        arrivals = []
        for src, dst, chunk, reduce in messages(sends, chunks):
            if src == dst or not (0 <= src < n and 0 <= dst < n):
                raise BrokenSchedule(f"round {number} sends from {src} to {dst}")
            if (src, chunk) not in held:
                raise BrokenSchedule(f"round {number}: {src} does not hold chunk {chunk}")
            arrivals.append((dst, chunk, reduce, held[src, chunk]))
        if not arrivals:
            raise BrokenSchedule(f"round {number} is empty")
        taken = set()
        for dst, chunk, reduce, what in arrivals:
            before = held.get((dst, chunk), frozenset())
            if (dst, chunk) in taken or (not reduce and before == what):
                raise BrokenSchedule(f"round {number}: {dst} is sent chunk {chunk} twice")
            if reduce and (not before or before & what):
                raise BrokenSchedule(f"round {number}: {dst} cannot add {set(what)} to {set(before)}")
            if not reduce:
                taken.add((dst, chunk))
            held[dst, chunk] = before | what if reduce else what
    wrong = {
        place: held.get(place) for place, who in endings(pattern, chunks).items() if held.get(place) != who
    }
    if wrong:
        raise BrokenSchedule(f"at the end {wrong}")


def groups(kind):
    """Patterns of one kind over 1 to 16, 32 and 33 members, some with several sources or permutations."""
    for n in (*range(1, 17), 32, 33):
        if kind == "broadcast":
            yield from (Pattern(kind, (n,), source=source) for source in {0, 1 % n, n // 2, n - 1})
        elif kind == "permute":
            yield Pattern(kind, (n,), perm=tuple((m, (m + 1) % n) for m in range(n)))
            yield Pattern(kind, (n,), perm=tuple((m, m - 1) for m in range(1, n)))
            yield Pattern(kind, (n,), perm=tuple((m, n - 1 - m) for m in range(n)))
        else:
            yield Pattern(kind, (n,))


def suits(name, pattern):
    if name.startswith("torus"):
        return sum(size > 1 for size in pattern.dims) != 1
    return name not in POWERS_ONLY or pattern.group_size.bit_count() == 1


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_every_group_ends_with_every_contribution_once(name, kind):
    for pattern in groups(kind):
        if suits(name, pattern):
            schedule = schedule_for(name, pattern)
            assert (schedule.algorithm, schedule.pattern) == (name, pattern)
            play(schedule)
        else:
            with pytest.raises(QuestionError):
                schedule_for(name, pattern)


@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter", "all_reduce"])
def test_a_ring_in_halves_ends_with_every_contribution_once(kind):
    for n in range(2, 34, 2):
        play(schedule_for("bidirectional-ring", Pattern(kind, (n,)), 2))


@pytest.mark.parametrize("dims", TORI)
def test_every_algorithm_works_over_several_axes(dims):
    for kind in ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast"):
        pattern = Pattern(kind, dims)
        names = {schedule.algorithm for schedule in schedules_for(pattern)}
        assert names == {name for name, of in PAIRS if of == kind and suits(name, pattern)}
        for schedule in schedules_for(pattern):
            play(schedule)


@pytest.mark.parametrize(("name", "kind"), PIPELINED)
@examples(60)
@given(n=st.integers(1, 60), pieces=st.integers(1, 20), source=st.integers(0, 59))
def test_pipelines_with_any_number_of_pieces(name, kind, n, pieces, source):
    play(schedule_for(name, Pattern(kind, (n,), source=source % n), pieces))


@examples(40)
@given(n=st.integers(34, 130), pair=st.sampled_from([pair for pair in PAIRS if pair[1] != "all_to_all"]))
def test_larger_groups(n, pair):
    name, kind = pair
    n = 1 << n.bit_length() - 1 if name in POWERS_ONLY else n
    dims = (n,) if not name.startswith("torus") else (n // 6, 3, 2)
    perm = tuple((m, (m * 5 + 3) % n) for m in range(n)) if n % 5 else ()
    play(schedule_for(name, Pattern(kind, dims, perm=perm, source=n // 3)))


@examples(30)
@given(
    dims=st.lists(st.integers(1, 7), min_size=2, max_size=5)
    .map(tuple)
    .filter(lambda dims: math.prod(dims) <= 120)
)
def test_any_torus(dims):
    for name, kind in PAIRS:
        if name.startswith("torus") and suits(name, Pattern(kind, dims)):
            play(schedule_for(name, Pattern(kind, dims)))


@examples(60)
@given(st.data())
def test_any_permutation_even_a_partial_one(data):
    n = data.draw(st.integers(1, 40))
    targets = data.draw(st.permutations(range(n)))
    senders = data.draw(st.sets(st.integers(0, n - 1)))
    pattern = Pattern("permute", (n,), perm=tuple((m, targets[m]) for m in sorted(senders)))
    schedule = schedule_for("direct", pattern)
    play(schedule)
    assert schedule.rounds == any(m != targets[m] for m in senders)


def test_one_device_alone_sends_nothing():
    for kind, dims in product(KINDS, [(), (1,), (1, 1)]):
        pattern = Pattern(kind, dims, perm=((0, 0),))
        schedules = schedules_for(pattern)
        assert {schedule.algorithm for schedule in schedules} == {name for name, of in PAIRS if of == kind}
        assert {(schedule.rounds, schedule.phases) for schedule in schedules} == {(0, ())}
        assert all(pattern.pieces(schedule.chunks) for schedule in schedules)


def test_the_proof_can_fail():
    for name, kind in PAIRS:
        dims = (2, 4) if name.startswith("torus") else (8,)
        schedule = schedule_for(name, Pattern(kind, dims, perm=((0, 1), (1, 2), (2, 0)), source=3))
        for broken in range(len(schedule.phases)):
            phases = list(schedule.phases)
            sound = phases[broken].sends

            def lacking(number, sound=sound):
                sends = sound(number)
                keep = np.arange(len(sends)) != len(sends) // 2
                arrays = (sends.src[keep], sends.dst[keep], sends.chunk[keep], sends.reduce[keep])
                return dataclasses.replace(
                    sends, **dict(zip(("src", "dst", "chunk", "reduce"), arrays, strict=True))
                )

            phases[broken] = dataclasses.replace(phases[broken], sends=lacking)
            with pytest.raises(BrokenSchedule):
                play(dataclasses.replace(schedule, phases=tuple(phases)))


def test_rounds_are_the_same_however_often_and_in_whichever_order_they_are_asked_for():
    for name, kind in PAIRS:
        dims = (3, 4) if name.startswith("torus") else (8,)
        schedule = schedule_for(name, Pattern(kind, dims, perm=((0, 5), (5, 1))))
        forward = list(schedule)
        for number in range(schedule.rounds, 0, -1):
            again, before = schedule.round(number), forward[number - 1]
            assert again.span == before.span
            for field, dtype in (
                ("src", np.int64),
                ("dst", np.int64),
                ("chunk", np.int64),
                ("reduce", np.bool_),
            ):
                np.testing.assert_array_equal(getattr(again, field), getattr(before, field))
                assert getattr(again, field).dtype == dtype
                assert getattr(again, field).shape == (len(again),)


def test_phases_that_say_so_are_alike():
    for (name, kind), dims in product(PAIRS, [(7,), (2, 4), (3, 4, 2)]):
        try:
            schedule = ALGORITHMS[name].schedule(Pattern(kind, dims, perm=((0, 5), (5, 1))))
        except Unsuited:
            continue
        for phase in schedule.phases:
            rounds = [phase.sends(number) for number in range(phase.rounds)]
            shapes = {(sends.src.tobytes(), sends.dst.tobytes(), sends.span) for sends in rounds}
            if phase.alike:
                assert len(shapes) == 1
            elif kind != "all_to_all":
                assert len(shapes) > 1 or len(rounds) == 1


@pytest.mark.parametrize("n", [2, 8, 16, 64])
def test_pairs_of_a_power_of_two_swap(n: int) -> None:
    rounds = list(schedule_for("pairwise", Pattern("all_to_all", (n,))))
    for number, sends in enumerate(rounds, 1):
        assert sends.dst.tolist() == [member ^ number for member in sends.src.tolist()]


@pytest.mark.parametrize("n", [3, 5, 6, 12])
def test_other_groups_shift(n: int) -> None:
    for number, sends in enumerate(schedule_for("pairwise", Pattern("all_to_all", (n,))), 1):
        assert sends.dst.tolist() == [(member + number) % n for member in sends.src.tolist()]


@pytest.mark.parametrize("kind", ["all_gather", "all_reduce"])
def test_doubling_begins_with_the_nearest(kind: str) -> None:
    rounds = schedule_for("recursive-doubling", Pattern(kind, (16,)))
    apart = [set((sends.src ^ sends.dst).tolist()) for sends in rounds]
    assert apart == [{1}, {2}, {4}, {8}]


def test_halving_begins_with_the_farthest() -> None:
    rounds = schedule_for("recursive-halving", Pattern("reduce_scatter", (16,)))
    assert [set((sends.src ^ sends.dst).tolist()) for sends in rounds] == [{8}, {4}, {2}, {1}]


@pytest.mark.parametrize("n", [4, 6, 10, 16])
def test_the_second_tree_of_an_even_group_is_the_mirror_image(n: int) -> None:
    first, second = trees(n)
    mirrored = {
        (n - 1 - parent, n - 1 - child) for parent, child in zip(first.parent, first.child, strict=True)
    }
    assert mirrored == set(zip(second.parent.tolist(), second.child.tolist(), strict=True))


@pytest.mark.parametrize("n", [5, 7, 11])
def test_the_second_tree_of_an_odd_group_is_shifted_by_one(n: int) -> None:
    first, second = trees(n)
    shifted = {
        ((parent - 1) % n, (child - 1) % n) for parent, child in zip(first.parent, first.child, strict=True)
    }
    assert shifted == set(zip(second.parent.tolist(), second.child.tolist(), strict=True))


def rounds_of(kind: str, *rounds: list[tuple[int, int]]) -> Schedule:
    """Three members, the single chunk along pairs of (src, dst), round after round."""

    def at(number: int) -> Sends:
        src, dst = np.array(rounds[number]).T
        return Sends(src, dst, np.zeros(len(src), int), np.zeros(len(src), bool))

    return Schedule("by hand", Pattern(kind, (3,)), 1, (Phase("all", len(rounds), at),))


def test_what_arrives_in_a_round_cannot_be_sent_on_in_it() -> None:
    with pytest.raises(ScheduleError, match="sends what a member does not hold"):
        Trace(rounds_of("broadcast", [(0, 1), (1, 2)]))


def test_what_comes_a_second_time_has_been_there_since_the_first() -> None:
    trace = Trace(rounds_of("broadcast", [(0, 1)], [(1, 2)], [(2, 1)]))
    assert trace.buffer(1).member.tolist() == [0, 1]
    assert not trace.buffer(3).arrived.any()
