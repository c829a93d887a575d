"""What moves over every link, against the timeline's own count of bytes."""

from __future__ import annotations

import pytest

from shardviz.collectives import schedules_for
from shardviz.collectives.pattern import Pattern
from shardviz.hardware import topology_for
from shardviz.notation import parse_mesh
from shardviz.render.rounds import round_traffic
from shardviz.render.rounds.round_traffic import RoundTraffic

CASES = [
    (name, mesh, topology)
    for name in ("all_gather", "psum", "all_to_all")
    for mesh, topology in (("i=4", None), ("i=5", "line"), ("X=2,Y=4", None), ("i=6", "switch"))
]


@pytest.mark.parametrize(("name", "mesh", "topology"), CASES)
def test_links_carry_what_the_timeline_counts(walk_of, name, mesh, topology):
    dims = parse_mesh(mesh).axis_sizes
    size = parse_mesh(mesh).size
    pattern = Pattern({"psum": "all_reduce"}.get(name, name), dims)
    links = topology_for(topology, dims)
    for schedule in schedules_for(pattern):
        walk = walk_of(name, mesh, size * size * schedule.chunks, schedule.algorithm, topology=topology)
        chunk = walk.chunk_bytes
        assert isinstance(chunk, int)
        for number in (1, schedule.rounds):
            traffic = RoundTraffic(walk, number)
            counted = walk.timeline.link_bytes(number)
            sends = schedule.round(number).expanded(schedule.chunks)
            different = len(set(sends.chunk.tolist())) == len(sends)
            for link in range(links.links):
                chunks = traffic.chunks(*links.ends(link))
                assert bool(chunks) == bool(counted[link])
                if different:
                    assert len(chunks) * chunk == counted[link]


def test_nothing_moves_before_the_first_round(walk_of):
    traffic = RoundTraffic(walk_of("psum", "i=4", 16), 0)
    assert traffic.chunks(0, 1) == []
    assert len(traffic.sent(0)) == len(traffic.received(0)) == 0


def test_members_know_what_they_send_and_receive(walk_of):
    traffic = RoundTraffic(walk_of("all_gather", "i=4", 4), 2)
    assert traffic.sent(0).listed == traffic.received(1).listed == traffic.chunks(0, 1) == [3]
    assert traffic.sent(0).others.tolist() == [1]


@pytest.mark.parametrize(("name", "mesh", "topology"), CASES)
def test_too_many_messages_are_counted(walk_of, monkeypatch, name, mesh, topology):
    monkeypatch.setattr(round_traffic, "MAX_FOLLOWED", 0)
    size = 8 if "X" in mesh else int(mesh[2:])
    algorithm = "torus" if "X" in mesh and name != "all_to_all" else "direct"
    walk = walk_of(name, mesh, size**3, algorithm, topology=topology)
    traffic, counted = RoundTraffic(walk, 1), walk.timeline.link_bytes(1)
    links = walk.links.topology
    for link in range(links.links):
        assert bool(traffic.chunks(*links.ends(link))) == bool(counted[link])
