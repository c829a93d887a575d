"""Meshes: what they refuse, coordinates, and groups, judged by `jax.sharding.Mesh`."""

from __future__ import annotations

import random

import numpy as np
import pytest

from shardviz.errors import QuestionError
from shardviz.sharding import Mesh
from shardviz.sharding.mesh import MAX_DEVICES, is_axis_name

REFUSED = [
    ((("X",), (2, 4)), "1 axis name but 2 sizes", "X=2,Y=4"),
    ((("X", "2Y"), (2, 4)), "'2Y' is not an axis name", "starting with a letter"),
    ((("",), (2,)), "'' is not an axis name", "starting with a letter"),
    ((("_x",), (2,)), "'_x' is not an axis name", "starting with a letter"),
    ((("é",), (2,)), "'é' is not an axis name", "letters, digits"),
    ((("X\n",), (2,)), r"'X\n' is not an axis name", "letters, digits"),
    ((("X", "Y"), (2, 0)), "mesh axis Y=0 has no devices", "1 or more"),
    ((("X",), (-3,)), "mesh axis X=-3 has no devices", "1 or more"),
    ((("X", "Y", "X"), (2, 2, 2)), "mesh axis X is named twice", "its own name"),
    (
        (("X",), (MAX_DEVICES + 1,)),
        "a mesh of more than 1,099,511,627,776 devices is too large",
        "smaller axes",
    ),
    ((("X",), (10**5000,)), "a mesh of more than 1,099,511,627,776 devices", "smaller axes"),
    ((("X", "Y"), (2, 2), (0, 1, 2, 2)), "not a permutation of the 4 devices", "from 0 to 3 once"),
    ((("X", "Y"), (2, 2), (0, 1, 2)), "not a permutation of the 4 devices", "from 0 to 3 once"),
    ((("X", "Y"), (2, 2), (1, 2, 3, 4)), "not a permutation of the 4 devices", "from 0 to 3 once"),
]


@pytest.mark.parametrize(("arguments", "message", "hint"), REFUSED)
def test_a_mesh_says_what_is_wrong(arguments, message, hint):
    with pytest.raises(QuestionError) as caught:
        Mesh(*arguments)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_an_unknown_axis_is_named_beside_the_known_ones():
    with pytest.raises(QuestionError) as caught:
        Mesh(("X", "Y"), (2, 4)).axis_size("Z")
    assert caught.value.message == "unknown mesh axis 'Z'"
    assert caught.value.hint == "this mesh has the axes X, Y"


def test_a_mesh_without_axes_is_one_device():
    mesh = Mesh((), ())
    assert (mesh.size, mesh.coords(0), mesh.groups(())) == (1, (), ((0,),))
    with pytest.raises(QuestionError, match="unknown mesh axis") as caught:
        mesh.group_size(("X",))
    assert caught.value.hint == "this mesh has no axes"


def test_sizes_by_name_in_order():
    mesh = Mesh(("data", "model"), (16, 4))
    assert mesh.shape == {"data": 16, "model": 4}
    assert (mesh.size, mesh.axis_size("model"), mesh.group_size(("model", "data"))) == (64, 4, 64)
    assert str(mesh) == "data=16,model=4"


@pytest.mark.parametrize("name", ["X", "data", "a1", "a_b", "Z9_"])
def test_axis_names(name):
    assert is_axis_name(name)


def test_coords_count_in_row_major_order():
    mesh = Mesh(("a", "b", "c"), (2, 3, 4))
    assert [mesh.coords(position) for position in range(mesh.size)] == list(np.ndindex(2, 3, 4))
    assert mesh.coords(23) == (1, 2, 3)


def test_a_device_order_names_devices_by_position():
    mesh = Mesh(("X", "Y"), (2, 2), (3, 1, 0, 2))
    assert [mesh.device_id(position) for position in range(4)] == [3, 1, 0, 2]
    assert mesh.groups(("Y",)) == ((0, 1), (2, 3))
    assert mesh.replica_groups(("Y",)) == ((3, 1), (0, 2))
    assert mesh.replica_groups(("X",)) == ((3, 0), (1, 2))


def test_the_order_of_axes_orders_the_members_of_a_group():
    mesh = Mesh(("X", "Y"), (2, 3))
    assert mesh.groups(("X", "Y")) == ((0, 1, 2, 3, 4, 5),)
    assert mesh.groups(("Y", "X")) == ((0, 3, 1, 4, 2, 5),)
    assert mesh.groups(()) == ((0,), (1,), (2,), (3,), (4,), (5,))


def test_replica_groups_are_those_of_a_jax_mesh():
    """JAX's device array, its other axes first and the group's last, has the groups as its rows."""
    import jax
    import numpy as np

    draw = random.Random(1)
    for sizes in ((8,), (2, 4), (4, 2), (2, 2, 2), (2, 1, 4), (1, 2, 2, 2)):
        names = tuple("XYZW"[: len(sizes)])
        order = draw.sample(range(8), 8)
        devices = np.array(jax.devices())[order].reshape(sizes)
        judge = jax.sharding.Mesh(devices, names)
        mesh = Mesh(names, sizes, tuple(order))
        assert mesh.shape == dict(judge.shape)
        ids = np.vectorize(lambda device: device.id)(judge.devices)
        for axes in (names, names[::-1], names[:1], names[1:], draw.sample(names, len(names) // 2)):
            others = [name for name in names if name not in axes]
            turned = ids.transpose([names.index(name) for name in (*others, *axes)])
            rows = turned.reshape(-1, mesh.group_size(axes))
            assert mesh.replica_groups(tuple(axes)) == tuple(map(tuple, rows.tolist())), (sizes, axes)


@pytest.mark.parametrize("axes", [("X",), ("Y",), ("X", "Y"), ("Y", "X"), ("Y:(2)2",), ("Y:(1)2", "X"), ()])
def test_the_group_of_a_position_is_that_of_all_groups(axes):
    mesh = Mesh(("X", "Y", "Z"), (2, 4, 3))
    groups = mesh.groups(axes)
    for position in range(mesh.size):
        assert mesh.group_of(position, axes) in groups
        assert position in mesh.group_of(position, axes)
