"""Groups of ids → the user's axes, for every mesh, every order of axes and every text form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardviz.hlo.groups.axes import axis_groups, device_ids, group_axes, pair_axes
from shardviz.hlo.groups.group_text import parse_replica_groups
from shardviz.hlo.groups.replica_groups import ReplicaGroups
from shardviz.hlo.mlir.tensor_sharding import AxisRef
from shardviz.sharding import Mesh

XY = Mesh(("X", "Y"), (2, 4))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.randoms(), st.booleans())
def test_axes_are_found_in_the_order_of_the_ids(sizes, random, listed):
    mesh = Mesh(tuple("ABCD"[: len(sizes)]), tuple(sizes))
    axes = tuple(random.sample(mesh.axis_names, random.randint(0, len(sizes))))
    groups = axis_groups([AxisRef(name, 1, mesh.axis_size(name), True) for name in axes], mesh.shape)
    lists = mesh.replica_groups(axes)
    assert set(groups.expand()) == set(lists)
    found = group_axes(ReplicaGroups(lists=lists) if listed else groups, mesh)
    assert found == tuple(name for name in axes if mesh.axis_size(name) > 1)


@pytest.mark.parametrize(
    ("text", "axes"),
    [
        ("{{0,1,2,3},{4,5,6,7}}", ("Y",)),
        ("{{4,5,6,7},{0,1,2,3}}", ("Y",)),
        ("{{0,4},{1,5},{2,6},{3,7}}", ("X",)),
        ("{{0,1,2,3,4,5,6,7}}", ("X", "Y")),
        ("{{0,4,1,5,2,6,3,7}}", ("Y", "X")),
        ("{{0,1},{2,3},{4,5},{6,7}}", ("Y:(2)2",)),
        ("{{0,2},{1,3},{4,6},{5,7}}", ("Y:(1)2",)),
        ("{{0,2,4,6},{1,3,5,7}}", ("X", "Y:(1)2")),
        ("{{0,1,3,2},{4,5,7,6}}", ("Y",)),
        ("{{0},{1},{2},{3},{4},{5},{6},{7}}", ()),
        ("{{0,1,2},{3,4,5},{6,7}}", ()),
        ("{{0,3},{1,2},{4,7},{5,6}}", ()),
        ("{{0,1},{2,3}}", ()),
        ("{{0,1,2,3},{4,5,6,8}}", ()),
        ("[2,4]<=[8]", ("Y",)),
        ("mesh['Y'=2,'X'=4] {'X'}", ("Y",)),
        ("mesh['axis_0'=1,'axis_1'=2,'axis_2'=4] {'axis_1'}", ("X",)),
    ],
)
def test_text_to_axes(text, axes):
    assert group_axes(parse_replica_groups(text, 8), XY) == axes


def test_axes_of_size_one_do_not_show():
    mesh = Mesh(("A", "one", "B"), (2, 1, 4))
    assert group_axes(parse_replica_groups("[1,8]<=[8]", 8), mesh) == ("A", "B")


def test_sizes_that_cross_axes_follow_none():
    assert group_axes(parse_replica_groups("[6,2]<=[12]", 12), Mesh(("A", "B"), (4, 3))) == ()


@pytest.mark.parametrize(
    ("pairs", "axes"),
    [
        (((0, 1), (1, 2), (2, 3), (3, 0)), ("Y",)),
        (((0, 4), (4, 0)), ("X",)),
        (((0, 5), (1, 1)), ("X", "Y")),
        (((0, 0), (3, 3)), ()),
        (((0, 8),), ()),
        ((), ()),
    ],
)
def test_pairs_to_axes(pairs, axes):
    assert pair_axes(pairs, XY) == axes


def test_positions_become_device_ids():
    mesh = Mesh(("X",), (4,), (2, 0, 3, 1))
    assert device_ids(((0, 1), (2, 3)), mesh) == ((2, 0), (3, 1))
    assert device_ids(((0, 1), (2, 3)), None) == ((0, 1), (2, 3))
