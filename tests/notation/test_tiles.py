import numpy as np
import pytest

from shardviz.notation.tiles import (
    Digit,
    axes_of_digits,
    axis_digit,
    digits_of_blocks,
    digits_of_sizes,
    shortest_iota,
    through_transpose,
    value,
)
from shardviz.sharding import Mesh

MESH = Mesh(("X", "one", "Y", "Z"), (2, 1, 3, 4))


def test_digits_count_in_row_major_order():
    digits = digits_of_sizes((2, 3, 4))
    assert digits == [Digit(2, 12), Digit(3, 4), Digit(4, 1)]
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
    for digit in digits_of_sizes(parts):
        found = through_transpose(digit, reshape, perm)
        assert found is not None
        assert [value(found, device) for device in devices] == [
            value([digit], p) for p in range(len(devices))
        ]


@pytest.mark.parametrize(
    ("parts", "reshape", "perm"),
    [((2, 3), (3, 2), (0, 1)), ((3, 4), (3, 4), (1, 0)), ((4, 6), (6, 4), (0, 1))],
)
def test_digits_that_do_not_line_up(parts, reshape, perm):
    assert None in [through_transpose(digit, reshape, perm) for digit in digits_of_sizes(parts)]


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
    assert axes_of_digits(digits, MESH, ordered) == axes


def test_axis_digit():
    assert [axis_digit(name, MESH) for name in ("X", "Y", "Z")] == [Digit(2, 12), Digit(3, 4), Digit(4, 1)]
    assert [axis_digit(name, MESH) for name in ("Z:(1)2", "Z:(2)2")] == [Digit(2, 2), Digit(2, 1)]


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
