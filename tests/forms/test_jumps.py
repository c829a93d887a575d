"""What one goes to by its name."""

from __future__ import annotations

import pytest

from shardviz.errors import QuestionError
from shardviz.forms.jumps import DeviceJump, device_at
from shardviz.notation.mesh import parse_mesh
from shardviz.sharding import Mesh

MESH = parse_mesh("X=2,Y=4")
LONG = parse_mesh("data=2,data2=3,model=4")


@pytest.mark.parametrize(
    ("text", "mesh", "position"),
    [
        ("5", MESH, 5),
        ("X=1,Y=2", MESH, 6),
        ("X1 Y2", MESH, 6),
        ("y2", MESH, None),
        ("Y = 3, X = 1", MESH, 7),
        ("data2 1 model3", LONG, 7),
        ("data=1,data2=2", LONG, 20),
        ("psum", MESH, None),
        ("5", Mesh(("X",), (8,), (0, 1, 2, 3, 7, 6, 5, 4)), 6),
        ("X=1,Z=2", MESH, None),
    ],
)
def test_a_device_by_its_number_or_its_coordinates(text, mesh, position):
    found = device_at(text, mesh)
    assert found == (None if position is None else DeviceJump(position))
    if position is not None and "=" in text:
        coords = mesh.coords(position)
        for pair in text.replace(" ", "").split(","):
            axis, at = pair.split("=")
            assert mesh.coordinate(coords, axis) == int(at)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("8", "device '8' does not exist", "the mesh has 8 devices, 0 to 7"),
        ("X=1,Y=4", "Y=4 is not on the mesh", "Y has the coordinates 0 to 3"),
    ],
)
def test_a_device_that_the_mesh_does_not_have(text, message, hint):
    with pytest.raises(QuestionError) as raised:
        device_at(text, MESH)
    assert (raised.value.message, raised.value.hint) == (message, hint)
