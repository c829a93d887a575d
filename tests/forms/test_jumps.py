"""What one goes to by its name."""

from __future__ import annotations

import pytest

from shardviz.errors import QuestionError
from shardviz.forms.jumps import MOST_NAMES, DeviceJump, device_at, instruction_names
from shardviz.notation.mesh import parse_mesh
from shardviz.sharding import Mesh

MESH = parse_mesh("X=2,Y=4")
LONG = parse_mesh("data=2,data2=3,model=4")


@pytest.mark.parametrize(
    ("text", "mesh", "position"),
    [
        ("5", MESH, 5),
        (" device 5 ", MESH, 5),
        ("X=1,Y=2", MESH, 6),
        ("X1 Y2", MESH, 6),
        ("y2", MESH, None),
        ("Y=3", MESH, 3),
        ("Y = 3, X = 1", MESH, 7),
        ("data2 1 model3", LONG, 7),
        ("data=1,data2=2", LONG, 20),
        ("psum", MESH, None),
        ("", MESH, None),
        ("5", Mesh(("X",), (8,), (0, 1, 2, 3, 7, 6, 5, 4)), 6),
        ("X", MESH, None),
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


PROGRAM = """\
HloModule jit_f, entry_computation_layout={()->f32[]}

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum.1 = f32[] add(%a, %b)
}

ENTRY main {
  all-reduce-start = f32[8] all-reduce-start(f32[8] %x), to_apply=%add
  ROOT all-reduce-done = f32[8] all-reduce-done(all-reduce-start)
}
"""


def test_instructions_in_the_order_of_the_text():
    assert tuple(instruction_names(PROGRAM)) == ("a", "b", "sum.1", "all-reduce-start", "all-reduce-done")


def test_an_instruction_that_has_but_a_number_is_called_by_its_operation_too():
    text = "    %0 = stablehlo.dot_general %arg0, %arg1\n    %1 = sdy.all_reduce {} %0\n"
    assert instruction_names(text) == {"0": "%0  stablehlo.dot_general", "1": "%1  sdy.all_reduce"}


def test_of_a_long_program_the_first_instructions():
    text = "".join(f"  %add.{number} = f32[] add(%a, %b)\n" for number in range(MOST_NAMES + 5))
    assert len(instruction_names(text)) == MOST_NAMES
