"""Arrays that one device holds, and arrays on another order of the devices: no program takes them."""

from __future__ import annotations

import pytest

from shardviz.errors import NotationError, QuestionError
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import Mesh

MESH = Mesh(("X", "Y"), (2, 4))
ORDER = "(5 2 7 0 1 6 3 4)"
DEVICES = "Mesh(device_ids=array([[5, 2, 7, 0], [1, 6, 3, 4]]), axis_names=('X', 'Y'))"


def problem(specs, text="bd,df->bf"):
    return problem_from_text(text, mesh=MESH, specs=specs, sizes="b=8,d=16,f=24")


@pytest.mark.parametrize(
    ("specs", "said", "hint"),
    [
        ("__@8,__", "the mesh has no device 8", "its devices are 0 to 7"),
        ("X_@3,__", "an array that device 3 holds alone is split", "leave its dimensions whole: __@3"),
        ("X_@(1 0),__", "these are not the 8 devices of the mesh, each once", "name one device"),
        ("__@,__", "expected the id of a device", "write the one device"),
        (
            "{devices=[2,4]0,1,2,3,4,5,6,6},__",
            "these devices do not follow axes",
            "give the mesh of the program",
        ),
    ],
)
def test_what_no_devices_can_hold(specs, said, hint):
    with pytest.raises(NotationError) as caught:
        problem(specs)
    assert str(caught.value).startswith(said)
    assert (caught.value.hint or "").startswith(hint)


@pytest.mark.parametrize(
    "specs",
    [
        "__@3,_Y",
        f"XY@{ORDER},Y_",
        "A=__@3, W=_Y",
        "{maximal device=3},{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}",
        "SingleDeviceSharding(jax.devices()[3]), NamedSharding(mesh, P(None, 'Y'))",
        "[SingleDeviceSharding(device=CpuDevice(id=3), memory_kind=device), P(None, 'Y')]",
        f"NamedSharding({DEVICES}, P('X')), _Y",
    ],
)
def test_jax_takes_the_arrays_of_one_mesh(specs):
    """JAX says "Received incompatible devices for jitted computation" to these."""
    with pytest.raises(
        QuestionError, match=r"JAX runs a program on one mesh, and A is P\(.*\) on device"
    ) as caught:
        problem(specs)
    assert (caught.value.hint or "").startswith("move it first, by jax.device_put(A, NamedSharding(mesh, P(")


@pytest.mark.parametrize("specs", ["X_,__->__@0", f"X_,__->X_@{ORDER}"])
def test_a_program_leaves_what_it_makes_on_its_mesh(specs):
    with pytest.raises(QuestionError, match=r"JAX runs a program on one mesh, and Out is P"):
        problem(specs)
