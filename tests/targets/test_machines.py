"""The machine that prices an answer: named, else the first hardware target, else assumed."""

from __future__ import annotations

import pytest

from shardviz.errors import QuestionError
from shardviz.hardware.machine import assumed_machine
from shardviz.hardware.machine_file import named_machine
from shardviz.sharding import Mesh
from shardviz.targets import parse_targets
from shardviz.targets.hardware import machine_for, placed_for

EIGHT = Mesh(("X", "Y"), (2, 4))


@pytest.mark.parametrize(
    ("named", "targets", "machine"),
    [
        ("h100:8", "v5e:2x4", "h100:8"),
        (" ", "shardy,cpu,v6e:2x4,v5e:2x4", "v6e:2x4"),
        (None, "v5p:2x2x1,v5e:2x4", "v5e:2x4"),  # The first has another size.
        (None, "2*v5e:2x2", "2*v5e:2x2"),
        (named_machine("v4:2x2x2"), "h100:8", "v4:2x2x2"),
    ],
)
def test_the_rule(named, targets, machine):
    assert machine_for(named, parse_targets(targets), EIGHT).name == machine
    assert placed_for(named, parse_targets(targets), EIGHT).machine.name == machine


def test_without_hardware_each_axis_is_a_ring_of_v5e():
    placed = placed_for(None, parse_targets("shardy,cpu"), EIGHT)
    assert placed.machine == assumed_machine()
    levels = [level for axis in "XY" for level in placed.group_levels((axis,))]
    assert [(level.name, level.kind, level.size, level.spec.bandwidth) for level in levels] == [
        ("X", "ring", 2, 4.5e10),
        ("Y", "ring", 4, 4.5e10),
    ]


def test_a_target_that_takes_no_such_mesh_is_not_the_machine():
    mesh = Mesh(("X", "Y"), (2, 32))
    targets = parse_targets("v4:4x4x4")
    assert placed_for(None, targets, mesh).machine.assumed
    with pytest.raises(QuestionError, match="does not place a mesh of 2x32 on v4:4x4x4"):
        placed_for("v4:4x4x4", targets, mesh)


def test_a_named_machine_of_another_size():
    with pytest.raises(QuestionError) as error:
        placed_for("tpu7x:2x2x2", (), EIGHT)
    assert error.value.message == (
        "tpu7x:2x2x2 has 16 devices (8 chips of 2 devices), but the mesh X=2,Y=4 has 8"
    )
    assert error.value.hint == "use --machine tpu7x:2x2x1 or tpu7x:4x1x1, or --mesh X=4,Y=4"
