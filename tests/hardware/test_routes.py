"""Ways over tori: shortest, axis by axis, even both ways around a ring; and what links then carry."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from shardviz.hardware.routes import link_loads, links_in_order, route_segments
from shardviz.hardware.topology import Switch, Torus
from tests.conftest import examples

TORI = (
    st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=1, max_size=3)
    .map(lambda axes: Torus(tuple(size for size, _ in axes), tuple(wrap for _, wrap in axes)))
    .filter(lambda torus: torus.devices <= 36)
)


def pairs(torus: Torus) -> tuple[np.ndarray, np.ndarray]:
    src, dst = np.divmod(np.arange(torus.devices**2), torus.devices)
    return src[src != dst], dst[src != dst]


@examples(60)
@given(TORI)
def test_ways_are_shortest_and_as_written_out(plainly: SimpleNamespace, torus: Torus) -> None:
    src, dst = pairs(torus)
    if not len(src):
        return
    hops, route = links_in_order(torus, route_segments(torus, src, dst))
    ways = np.split(route, hops.cumsum()[:-1])
    found = [[torus.ends(int(link)) for link in links] for links in ways]
    far = {begin: plainly.distances(torus, begin) for begin in range(torus.devices)}
    for begin, end, links in zip(src.tolist(), dst.tolist(), found, strict=True):
        assert links == plainly.way(torus, begin, end)
        assert len(links) == far[begin][end]


@examples(60)
@given(TORI, st.data())
def test_loads_are_those_of_the_ways(plainly: SimpleNamespace, torus: Torus, data: st.DataObject) -> None:
    src, dst = pairs(torus)
    sizes = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 9, len(src))
    loads = link_loads(torus, src, dst, sizes)
    expected = plainly.link_bytes(torus, list(zip(src.tolist(), dst.tolist(), sizes.tolist(), strict=True)))
    assert {torus.ends(link): int(load) for link, load in enumerate(loads) if load} == +expected


@pytest.mark.parametrize("n", [4, 8, 12, 64])
def test_all_to_all_on_a_ring_loads_all_links_alike(n: int) -> None:
    # V / (4 W) of the scaling book: n * n / 8 blocks on every link, where n is a multiple of 4.
    src, dst = pairs(Torus((n,), (True,)))
    loads = link_loads(Torus((n,), (True,)), src, dst, np.ones_like(src))
    assert set(loads.tolist()) == {n * n // 8}


def test_to_the_device_opposite_half_go_each_way() -> None:
    ring = Torus((8,), (True,))
    device = np.arange(8)
    (part,) = route_segments(ring, device, (device + 4) % 8)
    assert part.hops.tolist() == [4, -4] * 4
    assert link_loads(ring, device, (device + 4) % 8, np.ones_like(device)).tolist() == [2] * 16


def test_a_corner_to_corner_message_makes_six_hops_on_a_grid_of_4x4() -> None:
    # The scaling book's first byte after 6 µs, from (0, 0) to (3, 3) of a v5e 4x4.
    segments = route_segments(Torus((4, 4), (False, False)), np.array([0]), np.array([15]))
    assert sum(int(part.hops[0]) for part in segments) == 6


def test_a_switch_loads_links_up_and_down() -> None:
    src, dst = np.array(list(product(range(3), repeat=2))).T
    sizes = np.arange(9)
    assert link_loads(Switch(3), src, dst, sizes).tolist() == [3, 12, 21, 9, 12, 15]


def test_65536_devices_are_cheap_in_memory() -> None:
    ring = Torus((65536,), (True,))
    device = np.arange(65536)
    loads = link_loads(ring, device, (device + 30000) % 65536, np.full(65536, 7))
    assert set(loads[:65536].tolist()) == {7 * 30000}
    assert not loads[65536:].any()
