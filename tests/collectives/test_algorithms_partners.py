"""Who sends to whom, where another choice of partners would be as fast but not the algorithm of that name."""

from __future__ import annotations

import numpy as np
import pytest

from shardviz.collectives import Pattern, Phase, Schedule, Sends, schedule_for, trace_of
from shardviz.collectives.algorithms.trees import trees
from shardviz.collectives.trace import ScheduleError


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
        trace_of(rounds_of("broadcast", [(0, 1), (1, 2)]))


def test_what_comes_a_second_time_has_been_there_since_the_first() -> None:
    trace = trace_of(rounds_of("broadcast", [(0, 1)], [(1, 2)], [(2, 1)]))
    assert trace.held(1).member.tolist() == [0, 1]
    assert not trace.held(3).arrived.any()
