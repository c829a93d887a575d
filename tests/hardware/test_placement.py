"""How mesh axes lie on the hardware, against shortest paths found by search on the graph of links."""

from __future__ import annotations

import math
import random
from collections import deque
from itertools import pairwise, product

import pytest

from shardviz.hardware.chips import TPUS
from shardviz.hardware.placement import AxisRun, DeviceCoords, Placement, axis_runs
from shardviz.sharding import Mesh


def on_torus(torus, wrap, ids, cores=1, slices=1):
    """Devices numbered as the TPU compiler does: slice, z, y, x, core, the last the fastest."""
    places = [
        DeviceCoords(tuple(reversed(coords)), core, number)
        for number in range(slices)
        for coords in product(*map(range, reversed(torus)))
        for core in range(cores)
    ]
    return Placement(tuple(ids), tuple(places[id_] for id_ in ids), torus, wrap)


def on_nodes(nodes, gpus):
    places = [DeviceCoords((), gpu, node) for node in range(nodes) for gpu in range(gpus)]
    return Placement(tuple(range(nodes * gpus)), tuple(places), within="gpu", unit="node")


@pytest.mark.parametrize(
    ("placement", "mesh", "runs"),
    [
        # As jax.make_mesh places it on v5e:2x4: Y goes round two by two chips, X leads to the other four.
        (
            on_torus((2, 4), (False, False), (0, 1, 2, 3, 7, 6, 5, 4)),
            Mesh(("X", "Y"), (2, 4)),
            (AxisRun("X", ("y", "x"), 4, False), AxisRun("Y", ("y", "x"), 2, True)),
        ),
        # v2:2x2, and tpu7x:2x2x1: cores next to one another, chips in a ring.
        (
            on_torus((2, 2), (False, False), (0, 1, 2, 3, 6, 7, 4, 5), cores=2),
            Mesh(("X",), (8,)),
            (AxisRun("X", ("y", "x", "core"), 1, True),),
        ),
        # Without wraparound and with it.
        (
            on_torus((16, 16), (True, True), range(256)),
            Mesh(("X", "Y"), (16, 16)),
            (AxisRun("X", ("y",), 1, True), AxisRun("Y", ("x",), 1, True)),
        ),
        (
            on_torus((4, 2), (False, False), range(8)),
            Mesh(("X", "Y"), (2, 4)),
            (AxisRun("X", ("y",), 1, False), AxisRun("Y", ("x",), 1, False)),
        ),
        (
            on_torus((2, 2), (False, False), range(8), slices=2),
            Mesh(("S", "Y"), (2, 4)),
            (AxisRun("S", ("slice",), None, False), AxisRun("Y", ("y", "x"), 2, True)),
        ),
        (
            on_torus((2, 2), (False, False), range(8), slices=2),
            Mesh(("X",), (8,)),
            (AxisRun("X", ("slice", "y", "x"), None, False),),
        ),
        (
            on_nodes(2, 8),
            Mesh(("X", "Y"), (2, 8)),
            (AxisRun("X", ("node",), None, False), AxisRun("Y", ("gpu",), 1, True)),
        ),
        (
            on_nodes(2, 4),
            Mesh(("X", "Y", "Z"), (4, 2, 1)),
            (
                AxisRun("X", ("node", "gpu"), None, False),
                AxisRun("Y", ("gpu",), 1, False),
                AxisRun("Z", (), 0, False),
            ),
        ),
    ],
)
def test_known_placements(placement, mesh, runs):
    assert axis_runs(placement, mesh) == runs


def distances(torus, wrap, start):
    """Links from one chip to every other, by breadth-first search."""
    found, queue = {start: 0}, deque([start])
    while queue:
        chip = queue.popleft()
        for axis, step in product(range(len(torus)), (-1, 1)):
            moved = chip[axis] + step
            if wrap[axis]:
                moved %= torus[axis]
            elif not 0 <= moved < torus[axis]:
                continue
            neighbour = (*chip[:axis], moved, *chip[axis + 1 :])
            if neighbour not in found:
                found[neighbour] = found[chip] + 1
                queue.append(neighbour)
    return found


@pytest.mark.parametrize("torus", [(2, 4), (4, 4), (3, 5), (16, 2), (2, 2, 3), (4, 4, 4), (1, 6)])
def test_hops_are_shortest_paths_for_any_order(torus):
    random_ = random.Random(str(torus))
    count = math.prod(torus)
    for wrap in product((False, True), repeat=len(torus)):
        ids = random_.sample(range(count), count)
        placement = on_torus(torus, wrap, ids)
        far = {place.coords: distances(torus, wrap, place.coords) for place in placement.places}
        for mesh in (Mesh(("X",), (count,)), Mesh(("X", "Y"), (torus[0], count // torus[0]))):
            for run in axis_runs(placement, mesh):
                lines = [[placement.places[i].coords for i in line] for line in mesh.groups((run.axis,))]
                steps = [far[a][b] for line in lines for a, b in pairwise(line)]
                assert run.hops == max(steps, default=0)
                assert run.is_ring == (
                    len(lines[0]) > 2 and all(far[line[-1]][line[0]] <= run.hops for line in lines)
                )
                differing = {
                    i for line in lines for a in line for i in range(len(torus)) if a[i] != line[0][i]
                }
                assert set(run.along) == {"xyz"[i] for i in differing}


@pytest.mark.parametrize(
    ("chip", "torus", "wrap"),
    [
        ("v5e", (16, 8), (True, False)),
        ("v6e", (32, 16), (False, True)),
        ("v3", (32, 16), (True, False)),
        ("v4", (4, 4, 8), (True, True, True)),
        ("v5p", (4, 4, 2), (False, False, False)),
        ("tpu7x", (8, 4, 4), (True, True, True)),
    ],
)
def test_which_axes_close_to_rings(chip, torus, wrap):
    assert TPUS[chip].wrap(torus) == wrap
