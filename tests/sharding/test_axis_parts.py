"""Parts of mesh axes: as axes of their own size in a mesh that has them, which JAX lays out."""

import jax
import numpy as np
import pytest
from jax.sharding import Mesh as JaxMesh, NamedSharding, PartitionSpec as P

from shardviz.errors import QuestionError
from shardviz.sharding import Layout, Mesh, PartitionSpec, ShardedArray
from shardviz.sharding.axis_parts import are_apart, axis_part, finest_parts, in_parts, joined_parts

MESH = Mesh(("X", "Y"), (2, 4))
SIZES = {"X": 2, "Y": 8, "Z": 12}


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ("X", "Y", True),
        ("X", "X", False),
        ("Y", "Y:(1)2", False),
        ("Y:(1)2", "Y:(2)4", True),
        ("Y:(2)4", "Y:(1)2", True),
        ("Y:(1)4", "Y:(2)2", False),
        ("Z:(1)4", "Z:(6)2", False),
        ("Z:(1)2", "Z:(6)2", True),
        ("Y:(1)2", "Z:(1)2", True),
    ],
)
def test_are_apart(one, other, apart):
    assert are_apart(one, other) is apart
    if axis_part(one) and axis_part(other) and not apart:
        with pytest.raises(QuestionError, match="overlap"):
            PartitionSpec(((one,), (other,)))


@pytest.mark.parametrize(
    ("axes", "joined"),
    [
        (("Y:(1)2", "Y:(2)4"), ("Y",)),
        (("Y:(1)2", "Y:(2)2"), ("Y:(1)4",)),
        (("Y:(2)4", "Y:(1)2"), ("Y:(2)4", "Y:(1)2")),
        (("Y:(1)2", "X", "Y:(2)4"), ("Y:(1)2", "X", "Y:(2)4")),
        (("Y:(1)2", "Y:(2)2", "Y:(4)2"), ("Y",)),
        (("Y:(1)8",), ("Y",)),
        (("W:(1)2", "W:(2)2"), ("W:(1)4",)),
    ],
)
def test_joined_parts(axes, joined):
    assert joined_parts(axes, SIZES) == joined


def test_axes_in_the_finest_parts():
    finest = finest_parts({**SIZES, "W": 1}, ("Y:(2)2", "Z:(1)3"))
    assert finest == ("X", "Y:(1)2", "Y:(2)2", "Y:(4)2", "Z:(1)3", "Z:(3)4", "W")
    assert in_parts(["Y"], finest) == ("Y:(1)2", "Y:(2)2", "Y:(4)2")
    assert in_parts(["Y:(2)4"], finest) == ("Y:(2)2", "Y:(4)2")
    assert in_parts(["Z:(3)4", "X"], finest) == ("Z:(3)4", "X")


@pytest.mark.parametrize(
    ("spec", "jax_spec"),
    [
        ((("Y:(1)2",), ("X",)), P("a", "X")),
        ((("Y:(2)2",), ()), P("b", None)),
        ((("Y:(2)2", "X"), ("Y:(1)2",)), P(("b", "X"), "a")),
        (((), ("X", "Y:(2)2")), P(None, ("X", "b"))),
    ],
)
def test_layout_is_that_of_a_mesh_with_an_axis_for_each_part(spec, jax_spec):
    layout = Layout(ShardedArray("A", ("i", "j"), (8, 8), "f32", PartitionSpec(spec)), MESH)
    devices = np.array(jax.devices()[:8]).reshape(2, 2, 2)
    expected = NamedSharding(JaxMesh(devices, ("X", "a", "b")), jax_spec).devices_indices_map((8, 8))
    held = {
        device.id: tuple(slice(*each.indices(8)[:2]) for each in slices)
        for device, slices in expected.items()
    }
    assert {device.id: tuple(slice(*bounds) for bounds in device.slices) for device in layout} == held
    assert [tuple(map(tuple, bounds)) for bounds in layout.bounds()] == [
        tuple((each.start, each.stop) for each in held[position]) for position in range(8)
    ]
