"""The levels of groups, against the narrowest cuts of the links between their devices' coordinates."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from itertools import chain, combinations, product

import pytest

from shardviz.errors import QuestionError
from shardviz.hardware.chip_torus import ChipTorus
from shardviz.hardware.chips import TPUS, DeviceFigures
from shardviz.hardware.clusters import parse_cluster
from shardviz.hardware.collective_time import collective_time
from shardviz.hardware.family import Family
from shardviz.hardware.links import Dimension, LinkSpec
from shardviz.hardware.machine import Machine, place_mesh, published_machine
from shardviz.sharding import Mesh

NAMES = "ABC"
BYTES = 2**30


def meshes(machine):
    """Every mesh of one axis to three of the machine's size, none of size 1."""
    count = machine.devices
    sizes = [size for size in range(2, count + 1) if count % size == 0]
    for rank in (1, 2, 3):
        for each in product(sizes, repeat=rank):
            if math.prod(each) == count:
                yield each


def axes_of(mesh):
    names = mesh.axis_names
    return chain.from_iterable(combinations(names, count) for count in range(1, len(names) + 1))


def chip_links(machine):
    """Pairs of chips with a link each way."""
    for chip in product(*map(range, machine.family.torus_sizes)):
        for axis, size in enumerate(machine.family.torus_sizes):
            after = chip[axis] + 1
            if after < size or (machine.family.torus[axis].kind == "ring" and size > 2):
                yield chip, (*chip[:axis], after % size, *chip[axis + 1 :])


def cuts(machine, within):
    """Sets of chips, all of a small slice, else its boxes, and the bytes a second that come into each over
    links between the chips `within`."""
    chips = list(product(*map(range, machine.family.torus_sizes)))
    if len(chips) <= 8:
        inside = [set(each) for many in range(1, len(chips)) for each in combinations(chips, many)]
    else:
        spans = [list(combinations(range(size + 1), 2)) for size in machine.family.torus_sizes]
        boxes = (set(product(*(range(*span) for span in box))) for box in product(*spans))
        inside = [box for box in boxes if len(box) < len(chips)]
    links = [ends for ends in chip_links(machine) if within.issuperset(ends)]
    rate = machine.family.usual_link.bandwidth
    for each in inside:
        yield each, rate * sum((one in each) != (other in each) for one, other in links)


def crossing(op, inside, members):
    """Bytes that must come into a set of chips for a group with so many of its members there."""
    if op == "all-gather":
        return BYTES * (members - inside) / members if inside else 0.0
    return BYTES * inside * (members - inside) / members


def least(op, machine, groups):
    """Seconds that the groups' collectives take at least, all at once, over the links of all their chips."""
    within = set().union(*groups)
    return max(
        sum(crossing(op, sum(chip in cut for chip in group), len(group)) for group in groups) / bandwidth
        for cut, bandwidth in cuts(machine, within)
        if bandwidth
    )


def orders(machine, sizes):
    """JAX's order of the devices, that of their ids, and others."""
    random_ = random.Random(f"{machine.name} {sizes}")
    ids = range(machine.devices)
    return [
        *[None] * (machine.family.jax_order(sizes) is not None),
        tuple(ids),
        *(tuple(random_.sample(ids, len(ids))) for _ in "ab"),
    ]


SMALL = [
    published_machine(ChipTorus.published(chip, torus))
    for chip in TPUS.values()
    for chips in (4, 8)
    for each in chip.tori(chips)
    for torus in {each, each[::-1]}
]


@pytest.mark.slow
@pytest.mark.parametrize("cluster", SMALL, ids=lambda each: each.name)
def test_no_collective_is_faster_than_the_narrowest_cut(cluster):
    check(cluster)


@pytest.mark.parametrize("name", ["v5e:4x4", "v4:2x2x4"])
def test_nor_on_larger_slices(name):
    check(parse_cluster(name))


def check(machine):
    compared = tight = 0
    for sizes in meshes(machine):
        for order in orders(machine, sizes):
            mesh = Mesh(tuple(NAMES[: len(sizes)]), sizes, order)
            placed = place_mesh(machine, mesh)
            for axes in axes_of(mesh):
                groups = [
                    [placed.placement.places[each].coords for each in group] for group in mesh.groups(axes)
                ]
                levels = placed.group_levels(axes)
                assert math.prod(level.size for level in levels) == len(groups[0])
                boxes = machine.family.devices_per_chip == 1 and all(map(is_box, groups))
                for op in ("all-gather", "all-to-all"):
                    ours = collective_time(op, BYTES, levels).bandwidth_seconds
                    bound = least(op, machine, groups)
                    assert ours >= bound * (1 - 1e-9), (sizes, order, axes, op, levels)
                    compared += 1
                    if boxes:
                        # Boxes have the links between their chips to themselves.
                        alone = max(least(op, machine, [group]) for group in groups)
                        assert ours == pytest.approx(alone), (sizes, order, axes, op, levels)
                        tight += 1
    assert compared >= tight
    assert tight or machine.family.devices_per_chip > 1


def is_box(chips):
    """A group has every chip between its first and its last along each axis."""
    spans = [range(min(each), max(each) + 1) for each in zip(*chips, strict=True)]
    return set(chips) == set(product(*spans))


def levels(name, mesh, axes, order=None):
    placed = place_mesh(parse_cluster(name), Mesh(tuple(mesh), tuple(mesh.values()), order))
    return [(level.kind, level.size, level.name, level.hops) for level in placed.group_levels(axes)]


@pytest.mark.parametrize(
    ("name", "mesh", "axes", "found"),
    [
        # JAX goes round the chips; all of them are the slice, the slower axis first.
        ("v5e:2x4", {"X": 2, "Y": 4}, "XY", [("line", 4, "y", 1), ("line", 2, "x", 1)]),
        ("v6e:2x4", {"X": 4, "Y": 2}, "XY", [("line", 4, "y", 1), ("line", 2, "x", 1)]),
        ("2*v6e:2x4", {"D": 2, "X": 2, "Y": 4}, "DXY",
         [("network", 2, "DCN", 1), ("line", 4, "y", 1), ("line", 2, "x", 1)]),
        ("v2:2x2", {"X": 2, "Y": 4}, "XY",
         [("line", 2, "y", 1), ("line", 2, "x", 1), ("chip", 2, "core", 1)]),
        ("h100:2x6", {"X": 3, "Y": 4}, "XY", [("network", 2, "network", 1), ("switch", 6, "NVLink", 1)]),
        # 0, 2, 7, 5 fill no box.
        ("v6e:2x4", {"X": 4, "Y": 2}, "X", [("ring", 4, "x and y", 3)]),
        ("v6e:2x4", {"X": 2, "Y": 2, "Z": 2}, "XY", [("line", 4, "y and x", 4)]),
        # Pairs of neighbours, three steps from pair to pair.
        ("v5e:1x8", {"X": 2, "Y": 2, "Z": 2}, "XZ", [("line", 4, "y", 3)]),
        ("v5e:16x16", {"X": 4, "Y": 4, "Z": 16}, "XZ", [("ring", 4, "y", 4), ("ring", 16, "x", 1)]),
    ],
)  # fmt: skip
def test_levels_of_groups_along_several_axes(name, mesh, axes, found):
    order = range(8) if name == "v5e:1x8" else None
    assert levels(name, mesh, tuple(axes), order and tuple(order)) == found


def test_a_run_across_the_seam_of_a_ring():
    order = (3, 0, 1, 2, *range(4, 64))
    assert levels("v4:4x4x4", {"X": 16, "Y": 4}, ("Y",), order) == [("ring", 4, "x", 1)]
    seam = (0, 3, 1, 2, *(4 * row + place for row in range(1, 16) for place in (0, 3, 1, 2)))
    assert levels("v4:4x4x4", {"X": 32, "Y": 2}, ("Y",), seam) == [("line", 2, "x", 1)]


def test_of_blocks_of_several_shapes_the_slowest_counts():
    """A square of four chips, and a line of four: all-gathers are faster on the square."""
    order = (0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
    assert levels("v5e:4x4", {"X": 4, "Y": 4}, ("Y",), order) == [("line", 4, "x", 1)]


@dataclass(frozen=True)
class PairsOnRings(Family):
    """Rings of four switches with two devices each, joined by a network: a family that no file knows."""

    def size_words(self):
        return "16 devices"

    def jax_order(self, sizes):
        return self.parts_by_id(sizes)


def test_a_new_family_is_a_class_of_its_own():
    dimensions = (
        Dimension("x", 4, 2, "ring", LinkSpec(1e-6, 5e10), "x"),
        Dimension("gpu", 2, 1, "switch", LinkSpec(1e-6, 1e11), "the switch"),
        Dimension("pod", 2, 8, "network", LinkSpec(1e-5, 1e10), "Ethernet"),
    )
    machine = Machine("ours", DeviceFigures(()), PairsOnRings("g1", dimensions))
    placed = place_mesh(machine, Mesh(("D", "X", "Y"), (2, 4, 2)))
    kinds = {axis: [(level.kind, level.size) for level in placed.group_levels((axis,))] for axis in "DXY"}
    assert kinds == {"D": [("network", 2)], "X": [("ring", 4)], "Y": [("switch", 2)]}
    assert [level.name for level in placed.group_levels(("D", "Y"))] == ["Ethernet", "the switch"]
    assert placed.placement.dimensions == ("x", "gpu", "pod")
    time = placed.collective_time("all-gather", 2**30, ("X",))
    assert time.bandwidth_seconds == pytest.approx(3 / 4 * 2**30 / (2 * 5e10))
    with pytest.raises(QuestionError, match="ours has 16 devices"):
        place_mesh(machine, Mesh(("X",), (8,)))
