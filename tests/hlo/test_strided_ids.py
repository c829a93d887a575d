"""Nests of loops against NumPy's reshape and transpose."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardviz.hlo.groups.replica_groups import cut, ids, length, merge, nest_of, pieces, row_major

sizes = st.lists(st.integers(1, 4), min_size=1, max_size=5)


@given(sizes, st.randoms())
def test_a_transposed_nest_is_numpys_transpose(dims, random):
    order = list(range(len(dims)))
    random.shuffle(order)
    nest = [row_major(dims)[i] for i in order]
    expected = np.arange(math.prod(dims)).reshape(dims).transpose(order).reshape(-1).tolist()
    assert ids(nest) == expected
    assert ids(merge(nest)) == expected
    assert length(nest) == math.prod(dims)
    found = nest_of(expected)
    assert found is not None
    assert ids(found) == expected


@given(sizes, st.data())
def test_cutting_a_nest_keeps_its_ids(dims, data):
    total = math.prod(dims)
    count = data.draw(st.sampled_from([n for n in range(1, total + 1) if total % n == 0]))
    halves = cut(row_major(dims), count)
    assert halves is not None
    outer, inner = halves
    assert length(outer) == count
    assert [a + b for a in ids(outer) for b in ids(inner)] == list(range(total))


def test_a_cut_through_an_odd_loop_is_refused():
    assert cut([(2, 1), (6, 2)], 3) is None


@pytest.mark.parametrize("offsets", [[0, 1, 3], [0, 0], [0, -1], [0, 2, 1, 4], [0, 1, 2, 4]])
def test_irregular_offsets_are_no_nest(offsets):
    assert nest_of(offsets) is None


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ((4, 1), [(1, 1, 4)]),
        ((2, 4), [(0, 1, 2)]),
        ((8, 1), [(0, 1, 2), (1, 1, 4)]),
        ((2, 1), [(1, 2, 2)]),
        ((2, 2), [(1, 1, 2)]),
        ((4, 2), [(0, 1, 2), (1, 1, 2)]),
        ((3, 1), None),
        ((2, 3), None),
        ((16, 1), None),
    ],
)
def test_pieces_of_digits(loop, expected):
    assert pieces(loop, (2, 4)) == expected
