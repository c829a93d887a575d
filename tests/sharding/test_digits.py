import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from shardviz.sharding import Mesh
from shardviz.sharding.digits import (
    Digit,
    axes_of_digits,
    cut,
    digits_of_blocks,
    length,
    merged,
    nest_of,
    numbers,
    pieces,
    row_major,
    shortest_iota,
    through,
    transposed,
    value,
)

MESH = Mesh(("X", "one", "Y", "Z"), (2, 1, 3, 4))


def test_digits_count_in_row_major_order():
    digits = row_major((2, 3, 4))
    assert digits == (Digit(2, 12), Digit(3, 4), Digit(4, 1))
    coords = np.stack(np.unravel_index(np.arange(24), (2, 3, 4)), axis=1)
    assert [[value([digit], n) for digit in digits] for n in range(24)] == coords.tolist()


@pytest.mark.parametrize(
    ("parts", "reshape", "perm"),
    [
        ((4, 2), (2, 4), (1, 0)),
        ((2, 2, 2), (2, 4), (1, 0)),
        ((6, 4), (2, 3, 4), (1, 0, 2)),
        ((12, 2), (2, 3, 4), (2, 1, 0)),
        ((2, 3, 2, 2), (4, 6), (1, 0)),
        ((24,), (2, 3, 4), (2, 0, 1)),
    ],
)
def test_digits_go_through_a_transpose(parts, reshape, perm):
    devices = np.arange(24 if 3 in reshape or 6 in reshape else 8).reshape(reshape).transpose(perm).flatten()
    for digit in row_major(parts):
        found = through([digit], transposed(reshape, perm))
        assert found is not None
        assert [value(found, device) for device in devices] == [
            value([digit], p) for p in range(len(devices))
        ]


@pytest.mark.parametrize(
    ("parts", "reshape", "perm"),
    [((2, 3), (3, 2), (0, 1)), ((3, 4), (3, 4), (1, 0)), ((4, 6), (6, 4), (0, 1))],
)
def test_digits_that_do_not_line_up(parts, reshape, perm):
    assert None in [through([digit], transposed(reshape, perm)) for digit in row_major(parts)]


@pytest.mark.parametrize(
    ("digits", "ordered", "axes"),
    [
        ([Digit(2, 12)], True, ("X",)),
        ([Digit(3, 4)], True, ("Y",)),
        ([Digit(6, 4)], True, ("X", "Y")),
        ([Digit(4, 1), Digit(2, 12)], True, ("Z", "X")),
        ([Digit(4, 1), Digit(2, 12)], False, ("X", "Z")),
        ([Digit(2, 2), Digit(2, 1)], True, ("Z",)),
        ([Digit(2, 1), Digit(2, 2)], False, ("Z",)),
        ([Digit(1, 5)], True, ()),
        ([], True, ()),
        ([Digit(2, 1)], True, ("Z:(2)2",)),
        ([Digit(2, 2)], True, ("Z:(1)2",)),
        ([Digit(2, 1), Digit(2, 2)], True, ("Z:(2)2", "Z:(1)2")),
        ([Digit(6, 2)], True, ("Y", "Z:(1)2")),
        ([Digit(4, 3)], True, None),
        ([Digit(4, 2)], True, None),
        ([Digit(2, 24)], True, None),
    ],
)
def test_axes_of_digits(digits, ordered, axes):
    digits = digits if ordered else sorted(digits, key=lambda digit: -digit.stride)
    assert axes_of_digits(digits, MESH.shape) == axes


def test_axis_digit():
    assert [MESH.digit(name) for name in ("X", "Y", "Z")] == [Digit(2, 12), Digit(3, 4), Digit(4, 1)]
    assert [MESH.digit(name) for name in ("Z:(1)2", "Z:(2)2")] == [Digit(2, 2), Digit(2, 1)]


def test_digits_of_blocks():
    blocks = [(n % 4, n // 12) for n in range(24)]
    assert digits_of_blocks((4, 2), blocks) == ((Digit(4, 1),), (Digit(2, 12),))
    assert digits_of_blocks((1, 2), [(0, n // 12) for n in range(24)]) == ((), (Digit(2, 12),))
    assert digits_of_blocks((), [()] * 24) == ()
    swapped = [blocks[1], blocks[0], *blocks[2:]]
    assert digits_of_blocks((4, 2), swapped) is None
    assert digits_of_blocks((4, 2), [(n % 4, n % 2) for n in range(24)]) is None
    assert digits_of_blocks((2,), [(1,), (0,)]) is None


@pytest.mark.parametrize(
    ("reshape", "perm", "shortest"),
    [
        ((2, 4), (0, 1), ([8], [0])),
        ((2, 4), (1, 0), ([2, 4], [1, 0])),
        ((2, 1, 4), (2, 1, 0), ([2, 4], [1, 0])),
        ((2, 3, 4), (2, 0, 1), ([6, 4], [1, 0])),
        ((2, 3, 4), (1, 2, 0), ([2, 12], [1, 0])),
        ((2, 3, 4), (2, 1, 0), ([2, 3, 4], [2, 1, 0])),
        ((1, 1), (1, 0), ([1], [0])),
    ],
)
def test_shortest_iota(reshape, perm, shortest):
    sizes, order = shortest_iota(reshape, perm)
    assert (sizes, order) == shortest
    count = int(np.prod(reshape))
    same = np.arange(count).reshape(reshape).transpose(perm).flatten()
    assert (np.arange(count).reshape(sizes).transpose(order).flatten() == same).all()


sizes = st.lists(st.integers(1, 4), min_size=1, max_size=5)


@given(sizes, st.randoms())
def test_a_transposed_nest_is_numpys_transpose(dims, random):
    order = list(range(len(dims)))
    random.shuffle(order)
    nest = transposed(dims, order)
    expected = np.arange(math.prod(dims)).reshape(dims).transpose(order).reshape(-1).tolist()
    assert numbers(nest) == expected
    assert numbers(merged(nest)) == expected
    assert length(nest) == math.prod(dims)
    found = nest_of(expected)
    assert found is not None
    assert numbers(found) == expected


@given(sizes, st.data())
def test_cutting_a_nest_keeps_its_numbers(dims, data):
    total = math.prod(dims)
    count = data.draw(st.sampled_from([n for n in range(1, total + 1) if total % n == 0]))
    halves = cut(row_major(dims), count)
    assert halves is not None
    outer, inner = halves
    assert length(outer) == count
    assert [a + b for a in numbers(outer) for b in numbers(inner)] == list(range(total))


def test_a_cut_through_an_odd_loop_is_refused():
    assert cut([Digit(2, 1), Digit(6, 2)], 3) is None


@pytest.mark.parametrize("offsets", [[0, 1, 3], [0, 0], [0, -1], [0, 2, 1, 4], [0, 1, 2, 4]])
def test_irregular_offsets_are_no_nest(offsets):
    assert nest_of(offsets) is None


@pytest.mark.parametrize(
    ("digit", "expected"),
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
def test_pieces_of_digits(digit, expected):
    assert pieces(Digit(*digit), (2, 4)) == expected
