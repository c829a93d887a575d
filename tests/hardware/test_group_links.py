"""The links of a group on a machine: a chip's, given ones, or those of a chip that is assumed."""

from __future__ import annotations

import numpy as np
import pytest

from shardviz.collectives.algorithms import schedule_for
from shardviz.collectives.schedule import Pattern
from shardviz.hardware.group_links import group_links
from shardviz.hardware.links import LinkSpec
from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.hardware.timelines import timeline
from shardviz.hardware.topology import Hierarchy, LinkedLevel, Switch, Torus
from shardviz.notation.mesh import parse_mesh
from shardviz.targets import parse_targets
from shardviz.targets.hardware import placed_for

EIGHT = parse_mesh("X=2,Y=4")


def links_on(machine, mesh, axes, **given):
    made = parse_mesh(mesh)
    dims = tuple(map(made.axis_size, axes))
    return group_links(placed_for(machine, (), made), axes, dims, **given)


@pytest.mark.parametrize(
    ("targets", "chip"),
    [
        ("v5p:2x2x2", "v5p"),
        ("shardy,cpu,v6e:2x4,v5e:2x4", "v6e"),
        ("h100:8", "h100"),
        ("v5p:2x2x1,v5e:2x4", "v5e"),  # The first has another size.
        ("2*v5e:2x2", "v5e"),
        ("shardy,cpu", "v5e"),
    ],
)
def test_the_first_target_of_the_meshs_size_has_the_links(targets, chip):
    placed = placed_for(None, parse_targets(targets), EIGHT)
    assert group_links(placed, ("Y",), (4,)).machine.chip == chip


@pytest.mark.parametrize(
    ("latency", "bandwidth", "figures", "each", "assumed"),
    [
        (None, None, (1e-6, 4.5e10), "v5e link", True),
        (None, "90GB/s", (1e-6, 9e10), "link", False),
        ("2us", None, (2e-6, 4.5e10), "link", False),
    ],
)
def test_a_chip_is_assumed_only_where_nothing_is_given(latency, bandwidth, figures, each, assumed):
    links = links_on(None, "X=8", ("X",), latency=latency, bandwidth=bandwidth)
    assert (links.spec.latency, links.spec.bandwidth) == figures
    assert (links.each, links.assumed) == (each, assumed)


@pytest.mark.parametrize(
    ("machine", "mesh", "axes", "topology", "bandwidth", "each"),
    [
        ("v4:4x4x4", "X=4,Y=4,Z=4", ("X",), "ring of 4", 4.5e10, "v4 link"),
        ("v4:4x4x4", "X=4,Y=4,Z=4", ("X", "Y"), "torus of 4x4", 4.5e10, "v4 link"),
        ("v5e:4x8", "X=8,Y=4", ("Y",), "line of 4", 4.5e10, "v5e link"),
        # Two lines of two are a ring of four for one axis; two axes are a grid.
        ("v4:2x2x1", "X=4", ("X",), "ring of 4", 4.5e10, "v4 link"),
        ("v4:2x2x1", "X=2,Y=2", ("X", "Y"), "grid of 2x2", 4.5e10, "v4 link"),
        # Every second chip of a line: two links one after the other, which two groups share.
        ("v5e:4x4", "X=2,Y=8", ("X",), "line of 2", 2.25e10, "v5e link"),
        ("h100:8", "X=8", ("X",), "switch with 8", 4.5e11, "h100 link"),
        ("h100:2x8", "X=2,Y=8", ("X",), "switch with 2", 5e10, "device over network"),
        ("h100:2x8", "X=16", ("X",), "network of 2 × switch with 8", 5e10, "device over network"),
        ("2*v5e:4x4", "X=2,Y=16", ("X", "Y"), "DCN of 2 × grid of 4x4", 3.125e9, "device over DCN"),
        ("v2:2x2", "X=2,Y=4", ("Y",), "line of 2 × 2 cores", 6e10, "v2 link"),
        ("v4:4x4x4", "X=4,Y=4,Z=4", (), "ring of 1", 4.5e10, "v4 link"),
    ],
)  # fmt: skip
def test_a_group_has_the_links_on_which_it_lies(machine, mesh, axes, topology, bandwidth, each):
    links = links_on(machine, mesh, axes)
    assert (str(links.topology), links.spec.bandwidth, links.each) == (topology, bandwidth, each)


def test_a_topology_that_is_given_stands_for_the_machines():
    links = links_on("v5e:4x8", "X=8,Y=4", ("Y",), topology="ring")
    assert str(links.topology) == "ring of 4"
    assert [(level.kind, level.name) for level in links.levels] == [("ring", "Y")]
    assert links_on("h100:8", "X=2,Y=4", ("X", "Y"), topology="torus").topology == Torus((2, 4), (True,) * 2)


NODES = Hierarchy(
    (
        LinkedLevel(Switch(8), LinkSpec(1e-5, 1e9), block=4),
        LinkedLevel(Switch(8), LinkSpec(1e-6, 1e10), block=1),
    ),
    "two nodes of 4",
    Switch(8),
)
CHIPS = Hierarchy(
    (
        LinkedLevel(Torus((1, 4), (False, False)), LinkSpec(1e-6, 1e9), block=2, shared=2),
        LinkedLevel(Switch(8), LinkSpec(0.0, 1e11), block=1),
    ),
    "a line of 4 chips",
    Torus((1, 4, 2), (False,) * 3),
)


def test_a_ring_through_two_nodes_waits_for_the_network_in_every_round():
    rounds = timeline(schedule_for("ring", Pattern("all_gather", (8,))), 1000, NODES, LinkSpec())
    assert rounds.seconds == pytest.approx(7 * (1e-5 + 1000 / 1e9))
    within = timeline(
        schedule_for("direct", Pattern("permute", (8,), perm=((0, 1), (5, 6)))), 1000, NODES, LinkSpec()
    )
    assert within.seconds == pytest.approx(1e-6 + 1000 / 1e10)


def test_devices_of_a_chip_share_its_links():
    # Both devices of each of the first two chips send to the next chip: two messages over one link.
    perm = ((0, 2), (1, 3))
    rounds = timeline(schedule_for("direct", Pattern("permute", (8,), perm=perm)), 1000, CHIPS, LinkSpec())
    assert rounds.seconds == pytest.approx(1e-6 + 2 * 1000 / 1e9)
    assert rounds.busiest_bytes == 2000
    assert rounds[0].busiest_link == (0, 2)


@pytest.mark.parametrize("topology", [NODES, CHIPS], ids=str)
@pytest.mark.parametrize("algorithm", ["ring", "bidirectional-ring", "direct", "bruck"])
def test_every_byte_is_on_the_level_of_its_ends(topology, algorithm):
    schedule = schedule_for(algorithm, Pattern("all_gather", (8,)))
    rounds = timeline(schedule, 100, topology, LinkSpec())
    outer, _ = topology.levels
    for number in range(1, schedule.rounds + 1):
        loads = rounds.link_bytes(number)
        assert len(loads) == topology.links
        sends = schedule.round(number)
        apart = sends.src // outer.block != sends.dst // outer.block
        on_outer, on_inner = np.split(loads, [outer.topology.links])
        crossing = int(100 * sends.span * apart.sum())
        # A switch counts each message twice, on the way to it and from it.
        assert on_inner.sum() == 2 * 100 * sends.span * int((~apart).sum())
        assert on_outer.sum() >= crossing * (2 if isinstance(outer.topology, Switch) else 1)
        assert bool(on_outer.sum()) == bool(crossing)
    ends = {topology.ends(link) for link in range(topology.links)}
    assert all(0 <= end <= 8 for pair in ends for end in pair)


def test_a_part_of_an_assumed_ring_is_a_line():
    placed = place_mesh(assumed_machine(), parse_mesh("X=8"))
    assert str(group_links(placed, ("X",), (8,)).topology) == "ring of 8"
    assert str(group_links(placed, ("X:(2)4",), (4,)).topology) == "line of 4"


def test_rounds_use_the_links_to_all_others_as_one_to_a_switch():
    links = links_on("mi300x:8", "X=2,Y=4", ("Y",))
    assert (links.topology, links.spec.bandwidth) == (Switch(4), 3 * 4.8e10)
    assert links.each == "mi300x, over 3 links,"
