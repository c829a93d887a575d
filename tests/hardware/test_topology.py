"""Rings, lines, tori and switches: their links, and the text that names them."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from shardviz.errors import QuestionError
from shardviz.hardware.topology import Switch, Torus, topology_for

TORI = st.lists(st.tuples(st.integers(1, 5), st.booleans()), min_size=1, max_size=3).map(
    lambda axes: Torus(tuple(size for size, _ in axes), tuple(wrap for _, wrap in axes))
)


@pytest.mark.parametrize(
    ("text", "dims", "topology", "name"),
    [
        (None, (8,), Torus((8,), (True,)), "ring of 8"),
        (None, (2, 4), Torus((2, 4), (True, True)), "torus of 2x4"),
        ("ring", (8,), Torus((8,), (True,)), "ring of 8"),
        ("ring", (2, 4), Torus((8,), (True,)), "ring of 8"),
        ("line", (8,), Torus((8,), (False,)), "line of 8"),
        ("line", (2, 4), Torus((2, 4), (False, False)), "grid of 2x4"),
        ("torus", (4, 4, 4), Torus((4, 4, 4), (True,) * 3), "torus of 4x4x4"),
        ("Switch", (2, 4), Switch(8), "switch with 8"),
        ("4x4", (16,), Torus((4, 4), (True, True)), "torus of 4x4"),
        (" 2×2x4 ", (16,), Torus((2, 2, 4), (True,) * 3), "torus of 2x2x4"),
        ("8x1", (8,), Torus((8, 1), (True, True)), "ring of 8"),
        (None, (), Torus((), ()), "ring of 1"),
    ],
)
def test_names(text: str | None, dims: tuple[int, ...], topology: object, name: str) -> None:
    assert topology_for(text, dims) == topology
    assert str(topology_for(text, dims)) == name


@pytest.mark.parametrize(
    ("text", "dims", "message"),
    [
        ("star", (8,), "'star' is not a topology at character 1 of 'star'"),
        ("", (8,), "there is no topology in an empty text"),
        ("4x", (8,), "'4x' is not a topology at character 1 of '4x'"),
        ("4x4", (8,), "a topology of 4x4 has 16 devices, but the group has 8"),
        ("0x4", (8,), "an axis of '0' devices is not possible at character 1 of '0x4'"),
        ("2x99999999999999999999", (8,), "devices is not possible at character 3"),
        ("x".join("1" * 40), (8,), "more than 16 axes"),
        ("4\n4", (16,), "is not a topology"),
        ("ring", (2**40,), "the links of 1,099,511,627,776 devices are too many to follow"),
        ("switch", (2**40,), "the links of 1,099,511,627,776 devices are too many to follow"),
    ],
)
def test_bad_text(text: str, dims: tuple[int, ...], message: str) -> None:
    with pytest.raises(QuestionError) as caught:
        topology_for(text, dims)
    assert message in caught.value.message
    assert caught.value.hint
    assert "\n" not in caught.value.message


@given(TORI)
def test_every_pair_of_neighbours_has_one_link_each_way(torus: Torus) -> None:
    expected = set()
    for device in range(torus.devices):
        for axis, size in enumerate(torus.dims):
            coordinate = device // torus.stride(axis) % size
            if coordinate + 1 < size or (torus.wrap[axis] and size > 2):
                other = device + ((coordinate + 1) % size - coordinate) * torus.stride(axis)
                expected |= {(device, other), (other, device)}
    found = [torus.ends(link) for link in range(torus.links)]
    assert sorted(found) == sorted(expected)


def test_links_of_a_ring_a_line_and_a_switch() -> None:
    ring, line, switch = Torus((4,), (True,)), Torus((4,), (False,)), Switch(2)
    assert [ring.ends(link) for link in range(8)] == [
        *((0, 1), (1, 2), (2, 3), (3, 0)),
        *((1, 0), (2, 1), (3, 2), (0, 3)),
    ]
    assert [line.ends(link) for link in range(6)] == [(0, 1), (1, 2), (2, 3), (1, 0), (2, 1), (3, 2)]
    assert [switch.ends(link) for link in range(4)] == [(0, 2), (1, 2), (2, 0), (2, 1)]
    with pytest.raises(IndexError):
        ring.ends(8)
