"""Where devices stand: everyone once, and every link between neighbours or around the page."""

from __future__ import annotations

from shardviz.hardware.topology import Switch, Topology, topology_for
from shardviz.render.rounds.device_map import DeviceMap, device_map

TOPOLOGIES = [
    *((None, (size,)) for size in range(1, 18)),
    *(("line", (size,)) for size in range(1, 12)),
    *(("switch", (size,)) for size in (1, 2, 5, 8)),
    *((None, dims) for dims in ((2, 4), (3, 3), (4, 2), (1, 5), (2, 3, 4))),
    *(("line", dims) for dims in ((2, 4), (3, 3))),
]
COLUMNS = (1, 3, 9)


def drawn(text: str | None, dims: tuple[int, ...], columns: int) -> tuple[Topology, DeviceMap]:
    topology = topology_for(text, dims)
    return topology, device_map(topology, columns)


def pairs(found: DeviceMap) -> set[tuple[int, int]]:
    """Every link that is drawn anywhere, in both directions."""
    gaps = [found.across(row, gap) for row in range(found.rows) for gap in range(found.columns + 1)]
    gaps += [found.down(gap, column) for gap in range(found.rows + 1) for column in range(found.columns)]
    return {ends for pair in gaps if pair for ends in (pair, pair[::-1])}


def test_everyone_stands_somewhere_once():
    for text, dims in TOPOLOGIES:
        for columns in COLUMNS:
            topology, found = drawn(text, dims, columns)
            places = {
                (row, column): found.member(row, column)
                for row in range(found.rows)
                for column in range(found.columns)
            }
            there = [member for member in places.values() if member is not None]
            assert sorted(there) == [*range(topology.devices)]
            assert all(places[found.place(member)] == member for member in there)


def test_every_link_is_drawn_and_no_other():
    for text, dims in TOPOLOGIES:
        for columns in COLUMNS:
            topology, found = drawn(text, dims, columns)
            links = {topology.ends(link) for link in range(topology.links)}
            far = {ends for ends in links if len(dims) > 2 and abs(ends[0] - ends[1]) >= dims[-1] * dims[-2]}
            assert pairs(found) == links - far


def test_a_ring_is_a_loop_of_two_rows_if_they_fit():
    _, found = drawn(None, (8,), 4)
    rows = [[found.member(row, column) for column in range(4)] for row in range(2)]
    assert rows == [[0, 1, 2, 3], [7, 6, 5, 4]]


def test_a_long_or_odd_ring_winds_and_closes_around_the_page():
    _, found = drawn(None, (7,), 4)
    rows = [[found.member(row, column) for column in range(4)] for row in range(2)]
    assert rows == [[0, 1, 2, 3], [None, 6, 5, 4]]
    assert found.across(0, 0) == (6, 0)


def test_the_links_of_a_switch_lead_up():
    topology, found = drawn("switch", (5,), 3)
    assert isinstance(topology, Switch)
    assert found.down(1, 1) == (5, 4)
    assert found.across(0, 1) is None
