"""Where each mesh axis lies, against JAX: its `mesh_utils`, on devices described as libtpu does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, product

import pytest

from shardviz.compiler.messages import TargetMesh
from shardviz.errors import QuestionError
from shardviz.hardware.chip_torus import ChipTorus, parts_by_slice
from shardviz.hardware.chips import TPUS
from shardviz.hardware.clusters import parse_cluster
from shardviz.hardware.collective_time import collective_time
from shardviz.hardware.machine import assumed_machine, place_mesh, published_machine
from shardviz.sharding import Mesh
from shardviz.targets import EXTRAS

NAMES = "ABCD"


@dataclass(frozen=True)
class FakeDevice:
    """As much of a `jax.Device` as `mesh_utils` looks at."""

    id: int
    coords: tuple[int, ...]
    core_on_chip: int
    slice_index: int
    device_kind: str
    platform: str = "tpu"


def fake_devices(machine):
    torus = (*machine.family.torus_sizes, *(1,) * (3 - len(machine.family.torus_sizes)))
    chips = [tuple(reversed(coords)) for coords in product(*(range(size) for size in reversed(torus)))]
    places = product(range(machine.family.slices), chips, range(machine.family.devices_per_chip))
    return [
        FakeDevice(id_, coords, core, number, TPUS[machine.chip].device_kind)
        for id_, (number, coords, core) in enumerate(places)
    ]


def placed_by_jax(machine, sizes):
    """The ids by mesh position; None where JAX raises."""
    from jax._src import mesh_utils

    devices = fake_devices(machine)
    split = machine.chip == "v5e"
    try:
        if machine.family.slices == 1:
            found = mesh_utils.create_device_mesh(sizes, devices, allow_split_physical_axes=split)
        else:
            parts = parts_by_slice(sizes, machine.family.slices)
            found = mesh_utils.create_hybrid_device_mesh(*parts, devices, allow_split_physical_axes=split)
    except (NotImplementedError, ValueError, TypeError):
        return None
    return tuple(device.id for device in found.flat)


def meshes(count, rank):
    divisors = [size for size in range(1, count + 1) if count % size == 0]
    for others in product(divisors, repeat=rank - 1):
        if count % math.prod(others) == 0:
            yield (*others, count // math.prod(others))


def clusters(most):
    """Every slice of every generation with so many chips at most, and pairs of the smaller ones."""
    for chip in TPUS.values():
        for chips in range(1, most + 1):
            for torus in chip.tori(chips):
                for each in {torus, torus[::-1]}:
                    yield published_machine(ChipTorus.published(chip, each))
                    if chips <= most // 4:
                        yield published_machine(ChipTorus.published(chip, each, 2))


@pytest.mark.slow
@pytest.mark.parametrize("chip", TPUS)
def test_every_mesh_on_every_small_slice_lies_as_jax_places_it(chip):
    compared = 0
    for machine in clusters(16):
        if machine.chip != chip:
            continue
        for sizes in (each for rank in (1, 2, 3) for each in meshes(machine.devices, rank)):
            theirs = placed_by_jax(machine, sizes)
            assert (machine.family.jax_order(sizes) is None) == (theirs is None), (machine.name, sizes)
            if theirs is not None:
                found = place_mesh(machine, Mesh(tuple(NAMES[: len(sizes)]), sizes))
                assert found.placement.ids == theirs, (machine.name, sizes)
                compared += 1
    assert compared > 30


def level(kind, size, bandwidth, name, hops=1):
    """A level without its latency."""
    return kind, size, bandwidth, name, hops


def levels(name, mesh, axes, order=None):
    machine = parse_cluster(name)
    placed = place_mesh(machine, Mesh(tuple(mesh), tuple(mesh.values()), order))
    return [
        level(each.kind, each.size, each.spec.bandwidth, each.name, each.hops)
        for each in placed.group_levels(axes)
    ]


@pytest.mark.parametrize(
    ("name", "mesh", "axes", "found"),
    [
        ("v5p:4x4x8", {"X": 4, "Y": 32}, ("X",), [level("ring", 4, 9e10, "y")]),
        (
            "v5p:4x4x8",
            {"X": 4, "Y": 32},
            ("Y",),
            [level("ring", 4, 9e10, "x"), level("ring", 8, 9e10, "z")],
        ),
        ("v5e:4x8", {"X": 4, "Y": 8}, ("Y",), [level("line", 8, 4.5e10, "y")]),
        ("v5e:16x16", {"X": 16, "Y": 16}, ("X",), [level("ring", 16, 4.5e10, "y")]),
        # Split: the minor part lies side by side, the major one at every fourth chip; together a ring.
        ("v5e:16x16", {"X": 4, "Y": 4, "Z": 16}, ("X",), [level("ring", 4, 4.5e10, "y", 4)]),
        ("v5e:16x16", {"X": 4, "Y": 4, "Z": 16}, ("Y",), [level("line", 4, 4.5e10, "y")]),
        ("v5e:16x16", {"X": 4, "Y": 4, "Z": 16}, ("X", "Y"), [level("ring", 16, 4.5e10, "y")]),
        # Two by two chips of one tray, in JAX's own order.
        (
            "v5e:2x4",
            {"X": 2, "Y": 4},
            ("Y",),
            [level("line", 2, 4.5e10, "y"), level("line", 2, 4.5e10, "x")],
        ),
        # The cores of a chip share its links, unless a group has both.
        ("tpu7x:4x4x4", {"X": 2, "Y": 4, "Z": 16}, ("Y",), [level("ring", 4, 4.5e10, "z")]),
        (
            "tpu7x:4x4x4",
            {"X": 2, "Y": 4, "Z": 16},
            ("X", "Y"),
            [level("chip", 2, 5.4e11, "core"), level("ring", 4, 9e10, "z")],
        ),
        ("2*v5e:4x4", {"D": 2, "X": 4, "Y": 4}, ("D",), [level("network", 2, 3.125e9, "DCN")]),
        ("h100:2x8", {"X": 2, "Y": 8}, ("Y",), [level("switch", 8, 4.5e11, "NVLink")]),
        (
            "h100:2x8",
            {"X": 4, "Y": 4},
            ("X",),
            [level("network", 2, 5e10, "network"), level("switch", 2, 4.5e11, "NVLink")],
        ),
        (
            "h100:2x8",
            {"X": 4, "Y": 4},
            ("X", "Y"),
            [level("network", 2, 5e10, "network"), level("switch", 8, 4.5e11, "NVLink")],
        ),
    ],
)
def test_the_levels_of_a_group(name, mesh, axes, found):
    assert sorted(levels(name, mesh, axes)) == sorted(found)


ON_LIBTPU = [
    ("v2:2x2", [(8,), (2, 4), (2, 2, 2)]),
    ("v4:2x2x4", [(16,), (4, 4), (2, 8)]),
    ("v5e:4x4", [(16,), (2, 8), (4, 2, 2)]),
    ("v5p:2x2x2", [(8,), (2, 4)]),
    ("tpu7x:2x2x4", [(32,), (4, 8)]),
    ("2*v6e:2x4", [(2, 8), (4, 4)]),
]


@pytest.mark.skipif(not EXTRAS["tpu"].installable, reason="libtpu is for Linux on x86-64")
@pytest.mark.filterwarnings("ignore:The default axis_types:DeprecationWarning")
@pytest.mark.parametrize(("name", "meshes"), ON_LIBTPU)
def test_devices_and_meshes_are_those_of_libtpu(name, meshes, monkeypatch):
    """Its own devices: their ids, places, and where the compilers' process puts a mesh of them."""
    from shardviz.compiler.child import xla
    from shardviz.targets.hardware import topology_request

    for variable in ("TPU_SKIP_MDS_QUERY", "ALLOW_MULTIPLE_LIBTPU_LOAD"):
        monkeypatch.setenv(variable, "1")
    machine = parse_cluster(name)
    for sizes in meshes:
        mesh = Mesh(tuple(NAMES[: len(sizes)]), sizes)
        axes = tuple(zip(mesh.axis_names, sizes, strict=True))
        asked = topology_request(machine)
        _, theirs = xla.described_mesh(TargetMesh(name, mesh, axes, topology=asked), asked)
        assert theirs == place_mesh(machine, mesh).placement


def test_an_order_of_ones_own():
    """A ring of ids on a slice that has no such axis: only the places say what it is."""
    found = levels("v5e:2x2", {"X": 4}, ("X",), (0, 1, 3, 2))
    assert sorted(found) == [level("line", 2, 4.5e10, "x"), level("line", 2, 4.5e10, "y")]
    # Pairs of opposite corners are not a block: two hops.
    corners = levels("v5e:2x2", {"X": 2, "Y": 2}, ("Y",), (0, 3, 1, 2))
    assert corners == [level("line", 2, 4.5e10, "y and x", 2)] or corners == [
        level("line", 2, 4.5e10, "x and y", 2)
    ]


@pytest.mark.parametrize(
    ("name", "shape", "axis", "order", "hops", "load"),
    [
        # x before y: the four messages between corners take eight different links.
        ("v5e:2x2", {"X": 2, "Y": 2}, "X", None, 2, 1),
        # Four messages cross the middle of the slice, either way, over two links.
        ("v5e:2x4", {"X": 2, "Y": 4}, "X", None, 4, 2),
        # Two groups, each a ring in both directions: four messages over the two links of the middle.
        ("v6e:2x4", {"X": 4, "Y": 2}, "X", None, 3, 2),
        ("2*v5e:2x4", {"D": 2, "X": 2, "Y": 4}, "X", None, 4, 2),
    ],
)
def test_links_are_shared_by_the_messages_that_pass_them(name, shape, axis, order, hops, load):
    machine = parse_cluster(name)
    placed = place_mesh(machine, Mesh(tuple(shape), tuple(shape.values()), order))
    (found,) = placed.group_levels((axis,))
    assert (found.hops, found.messages) == (hops, load)


def test_a_group_that_fills_a_block_has_the_links_of_the_block():
    """X alone joins chips four hops apart; X and Y together are the whole slice, with two links to a chip."""
    assert sorted(levels("v5e:2x4", {"X": 2, "Y": 4}, ("X", "Y"))) == [
        level("line", 2, 4.5e10, "x"),
        level("line", 4, 4.5e10, "y"),
    ]
    placed = place_mesh(parse_cluster("v5e:2x4"), Mesh(("X", "Y"), (2, 4)))
    assert [each.hops for each in placed.group_levels(("X", "Y"), in_order=True)] == [4, 1, 1]
    # X and Y are no block: in the first group (0,0), (0,1), (1,3) and (1,2). X uses the links of Y.
    found = levels("v5e:2x4", {"X": 2, "Y": 2, "Z": 2}, ("X", "Y"))
    assert found == [level("line", 4, 4.5e10, "y and x", 4)]


@pytest.mark.parametrize("name", ["v5e:2x2", "v5e:2x4", "v5e:4x8", "v6e:4x4", "v4:2x2x2", "v2:2x2"])
def test_no_gather_is_faster_than_the_links_around_any_part_of_the_slice(name):
    """Into a slab of the torus come all shards that lie outside it, for each group with members inside."""
    machine = parse_cluster(name)
    divisors = [size for size in range(2, machine.devices + 1) if machine.devices % size == 0]
    shapes = [each for rank in (1, 2, 3) for each in product(divisors, repeat=rank)]
    for sizes in shapes:
        names = tuple(NAMES[: len(sizes)])
        if math.prod(sizes) != machine.devices or machine.family.jax_order(sizes) is None:
            continue
        placed = place_mesh(machine, Mesh(names, sizes))
        for count in range(1, len(names) + 1):
            for axes in combinations(names, count):
                groups = {}
                for position, place in zip(product(*map(range, sizes)), placed.placement.places, strict=True):
                    others = tuple(at for at, axis in zip(position, names, strict=True) if axis not in axes)
                    groups.setdefault(others, []).append(place.coords)
                time = collective_time("all-gather", 10**9, placed.group_levels(axes)).bandwidth_seconds
                assert time >= 0.999 * max(_slabs(machine, groups.values(), 10**9)), (sizes, axes)


def _slabs(machine, groups, size):
    """Seconds in which the bytes come into each slab of a torus without rings."""
    for axis, (length, link) in enumerate(
        zip(machine.family.torus_sizes, machine.family.links.values(), strict=False)
    ):
        for start, stop in combinations(range(length + 1), 2):
            sides = (start > 0) + (stop < length)
            inside = [sum(start <= coords[axis] < stop for coords in group) / len(group) for group in groups]
            if sides:
                links = sides * math.prod(machine.family.torus_sizes) // length
                yield size * sum(1 - part for part in inside if part) / (links * link.bandwidth)


def test_groups_that_straddle_nodes_go_over_the_network():
    assert levels("h100:2x6", {"X": 3, "Y": 4}, ("Y",)) == [level("network", 4, 5e10, "network")]


def test_without_a_machine_each_axis_is_a_ring():
    placed = place_mesh(assumed_machine(), Mesh(("X", "Y"), (2**20, 2**20)))
    assert [each.kind for each in placed.group_levels(("Y", "X"))] == ["ring", "ring"]
    assert placed.placement is None


@pytest.mark.parametrize(
    ("name", "sizes", "message", "hint"),
    [
        ("v5p:4x4x8", (2, 4), "v5p:4x4x8 has 128 devices, but the mesh A=2,B=4 has 8", "v5p:2x2x2"),
        ("h100:2x8", (4,), "h100:2x8 has 16 devices, but the mesh A=4 has 4", "h100:4, or --mesh A=16"),
        ("v4:4x4x4", (8, 8), "jax.make_mesh does not place a mesh of 8x8 on v4:4x4x4", "A=4,B=16"),
    ],
)  # fmt: skip
def test_meshes_that_are_not_placed(name, sizes, message, hint):
    with pytest.raises(QuestionError) as error:
        place_mesh(parse_cluster(name), Mesh(tuple(NAMES[: len(sizes)]), sizes))
    assert error.value.message.startswith(message)
    assert hint in error.value.hint


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("v3:32x16", (8, 2, 64)),
        ("v5e:8x16", (4, 2, 16)),
        ("v5p:4x4x8", (8, 16)),
        ("tpu7x:4x4x4", (2, 4, 16)),
        ("2*v6e:4x4", (2, 4, 4)),
        ("4*v4:2x2x4", (2, 8, 4)),
        ("h100:4x8", (2, 4, 4)),
        ("h100:4x8", (16, 2)),
    ],
)
def test_the_levels_are_those_that_the_places_show(name, sizes):
    """What JAX's algorithm gives each axis, and what a search in the coordinates finds."""
    machine, mesh = parse_cluster(name), Mesh(tuple(NAMES[: len(sizes)]), sizes)
    placed = place_mesh(machine, mesh)
    searched = place_mesh(machine, mesh, placed.placement)
    for axis in mesh.axis_names:
        assert {*placed.group_levels((axis,))} == {*searched.group_levels((axis,))}, axis


@pytest.mark.parametrize("order", [None, tuple(range(24))])
def test_a_part_of_an_axis_has_the_links_between_its_own_devices(order):
    """Devices 0 and 12 are on the nodes 0 and 1; 0, 1 and 2 on one node."""
    assert levels("h100:3x8", {"X": 24}, ("X:(1)2",), order) == [level("network", 2, 5e10, "network")]
    assert levels("h100:3x8", {"X": 24}, ("X:(12)2",), order) == [level("switch", 2, 4.5e11, "NVLink")]
    # The first six devices share a node, the next six do not.
    assert levels("h100:3x8", {"X": 24}, ("X:(4)6",), order) == [level("network", 6, 5e10, "network")]


def test_a_group_has_the_same_links_in_whatever_order_its_parts_are_named():
    mesh = Mesh(("X", "Y"), (4, 2))
    placed = place_mesh(assumed_machine(), mesh)
    assert placed.group_levels(("X:(2)2", "Y", "X:(1)2")) == placed.group_levels(("X", "Y"))
    assert len(placed.group_levels(("X:(2)2", "Y"))) == 2
