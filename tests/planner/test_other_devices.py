"""Arrays that one device holds, and arrays on another order of the devices: plans run on real numbers."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from shardviz.codegen.plan import plan_code
from shardviz.codegen.problem import problem_code
from shardviz.errors import NotationError, QuestionError, TargetError
from shardviz.planner.planner import Planner, plan
from shardviz.planner.pricing.costs import price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import Mesh
from shardviz.targets import check_devices
from tests.conftest import one_in
from tests.planner.executor import PlanError, prove, run, values_for

MESH = Mesh(("X", "Y"), (2, 4))
ORDER = "(5 2 7 0 1 6 3 4)"
MATMUL = "bd,df->bf"
SIZES = "b=8,d=16,f=24"


def planned(specs, text=MATMUL, mesh=MESH, objective="given", sizes=SIZES):
    problem = problem_from_text(text, mesh=mesh, specs=specs, sizes=sizes)
    return plan(problem, objective=objective)


@pytest.mark.parametrize(("order", "objective"), [(None, "given"), ((3, 1, 4, 0, 5, 7, 2, 6), "bytes")])
@pytest.mark.parametrize(
    "first", ["__@3", "__@0", f"XY@{ORDER}", f"_Y@{ORDER}", f"X_{{U_Y}}@{ORDER}", f"__@{ORDER}"]
)
@pytest.mark.parametrize("second", ["_Y", "XY", "__@5", f"YX@{ORDER}"])
@pytest.mark.parametrize("result", one_in(4, ["", "->XY", "->__", "->_X"]))
def test_plans_multiply_what_they_bring(order, objective, first, second, result):
    found = planned(f"{first},{second}{result}", mesh=replace(MESH, device_order=order), objective=objective)
    values = values_for(found.problem)
    assert np.array_equal(run(found, values), np.einsum(MATMUL, values["A"], values["W"]))


def test_one_device_is_a_sum_of_it_and_zeros():
    found = planned("__@3,_Y->XY", sizes="b=1024,d=2048,f=8192")
    first, second, *_ = found.steps
    assert (first.op, first.array, first.axes, first.wire_bytes) == ("mask", "A", ("X", "Y"), 0)
    assert first.from_spec.only_device == 3
    assert first.to_spec.unreduced == ("X", "Y")
    assert first.reason.startswith("Device 3 alone holds A.")
    # The sum is scattered over all devices: each sends 7/8 of 1024 x 2048 numbers of 2 bytes.
    assert (second.op, second.array, second.wire_bytes) == ("psum_scatter", "A", 1024 * 2048 * 2 * 7 // 8)


def test_the_same_costs_as_the_pending_sum():
    """The first step of an array on one device only says what it is: the rest is the pending sum's plan."""
    one, pending = planned("__@3,_Y->XY"), planned("__{U_XY},_Y->XY")
    assert one.steps[1:] == pending.steps


def test_another_order_is_permuted_first():
    """The permute sends all of a device's block; behind it the plan is that of the mesh's order."""
    found, home = planned(f"XY@{ORDER},Y_"), planned("XY,Y_")
    first, *rest = found.steps
    assert (first.op, first.axes, first.dim, first.from_spec.dims) == (
        "ppermute",
        ("X", "Y"),
        None,
        first.to_spec.dims,
    )
    assert first.bytes == first.wire_bytes == (8 // 2) * (16 // 4) * 2
    assert first.to_spec.devices == ()
    assert tuple(rest) == home.steps


@pytest.mark.parametrize("specs", [f"__@{ORDER},_Y", "X_@(3 1 2 0 7 6 5 4),_Y", "X_@(0 1 2 3 4 5 6 7),_Y"])
def test_blocks_that_are_where_they_belong_are_not_sent(specs):
    assert "ppermute" not in [step.op for step in planned(specs).steps]


def test_the_problem_keeps_what_is_given():
    found = planned("__@3,_Y")
    assert found.problem.parts[0].operands[0].decided_spec.devices == (3,)
    prove(found)


def test_a_plan_without_the_first_step_is_wrong():
    for specs in ("__@3,_Y->XY", f"XY@{ORDER},Y_->X_"):
        found = planned(specs)
        lame = replace(found, steps=found.steps[1:])
        with pytest.raises(PlanError):
            prove(lame)


def test_programs_and_chains():
    rng = random.Random(7)
    program = "H = X[b,d] * W1[d,f]; G = X * W2[d,f]; Y = (silu(H) * G) * W3[f,d]"
    for _ in range(6):
        devices = [*range(8)]
        rng.shuffle(devices)
        order = f"({' '.join(map(str, devices))})"
        prove(planned(f"X=__@{rng.randrange(8)},W1=_Y,W2=XY@{order},W3=Y_", program))
        prove(
            planned(
                f"X_,__@{rng.randrange(8)}; ,YX@{order}->X_", "bd,df->bf; bf,fg->bg", sizes=f"{SIZES},g=8"
            )
        )


def test_costs_are_of_the_whole_plan():
    cost = price(planned(f"XY@{ORDER},__@2"), Planner(MESH).placed)
    assert not cost.unknown
    assert cost.wire_bytes == sum(step.wire_bytes for step in cost.plan.steps)


@pytest.mark.parametrize(
    "text",
    [
        "{maximal device=3},{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}",
        "SingleDeviceSharding(jax.devices()[3]), NamedSharding(mesh, P(None, 'Y'))",
        "[SingleDeviceSharding(device=CpuDevice(id=3), memory_kind=device), P(None, 'Y')]",
        "A=__@3, W=_Y",
    ],
)
def test_specs_in_other_notations(text):
    assert planned(text).steps == planned("__@3,_Y").steps


def test_a_mesh_that_prints_its_devices():
    mesh = "Mesh(device_ids=array([[5, 2, 7, 0], [1, 6, 3, 4]]), axis_names=('X', 'Y'))"
    assert planned(f"NamedSharding({mesh}, P('X', 'Y')), P('Y')").steps == planned(f"XY@{ORDER},Y_").steps


@pytest.mark.parametrize(
    ("specs", "said", "hint"),
    [
        ("__@8,__", "the mesh has no device 8", "its devices are 0 to 7"),
        ("X_@3,__", "an array that device 3 holds alone is split", "leave its dimensions whole: __@3"),
        ("X_@(1 0),__", "these are not the 8 devices of the mesh, each once", "name one device"),
        ("__@,__", "expected the id of a device", "write the one device"),
        ("{devices=[2,4]0,1,2,3,4,5,6,6},__", "these devices do not follow axes", "a sharding is over axes"),
    ],
)
def test_what_no_devices_can_hold(specs, said, hint):
    with pytest.raises(NotationError) as caught:
        planned(specs)
    assert str(caught.value).startswith(said)
    assert (caught.value.hint or "").startswith(hint)


@pytest.mark.parametrize("specs", ["X_,__->__@0", f"X_,__->X_@{ORDER}"])
def test_a_program_leaves_what_it_makes_on_its_mesh(specs):
    with pytest.raises(
        QuestionError, match=r"Out is wanted on .*, and a program leaves what it makes on its mesh"
    ):
        planned(specs)


@pytest.mark.parametrize("specs", ["__@3,_Y", f"XY@{ORDER},Y_"])
def test_jax_takes_the_arrays_of_one_mesh(specs):
    """JAX says "Received incompatible devices for jitted computation" to these."""
    found = planned(specs)
    with pytest.raises(TargetError, match=r"JAX runs a program on one mesh, and A is P\(.*\) on device"):
        check_devices(found.problem)
    with pytest.raises(TargetError, match="on one mesh"):
        plan_code(found)
    with pytest.raises(TargetError, match="on one mesh"):
        problem_code(found.problem)


@pytest.mark.parametrize("seed", range(12))
def test_any_order_is_permuted_to_what_is_wanted(seed):
    rng = random.Random(seed)
    devices = rng.sample(range(8), 8)
    mesh = Mesh(("X", "Y"), (2, 4), tuple(rng.sample(range(8), 8)))
    given, wanted = rng.choice(["X_", "_X", "Y_", "__"]), rng.choice(["XY", "(YX)_", "_(XY)", "YX", "(XY)_"])
    problem = problem_from_text(
        "ab->ab", mesh=mesh, specs=f"{given}@({' '.join(map(str, devices))})->{wanted}", sizes="a=16,b=24"
    )
    for objective in ("time", "bytes"):
        prove(plan(problem, objective=objective))


@pytest.mark.parametrize("specs", ["__@3,Y_->X_", "X_@(0 1 2 3 4 5 6 7),Y_->X_"])
def test_one_that_takes_no_step_onto_the_mesh_may_say_so(specs):
    """The devices in the mesh's own order are no others."""
    assert planned(specs).optimal is ("@3" not in specs)
