"""Unions of stretches, against sets of whole numbers."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, strategies as st

from shardviz.profiles.device_operations import Covered, total, union

STRETCHES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=12)


def points(stretches: list[tuple[int, int]]) -> set[int]:
    return {point for start, end in stretches for point in range(start, end)}


@given(STRETCHES)
def test_a_union_covers_each_point_once_and_in_order(stretches: list[tuple[int, int]]) -> None:
    found = union(stretches)
    assert points(found) == points(stretches)
    assert total(found) == len(points(stretches))
    assert all(start < end for start, end in found)
    assert all(one[1] < other[0] for one, other in pairwise(found))


@given(STRETCHES, st.integers(0, 45), st.integers(0, 45))
def test_a_part_of_it_is_known_between_any_times(
    stretches: list[tuple[int, int]], start: int, end: int
) -> None:
    start, end = sorted((start, end))
    expected = points(stretches) & set(range(start, end))
    assert Covered(union(stretches)).within(start, end) == len(expected)
