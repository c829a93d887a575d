"""The memory of train steps against published rules."""

from __future__ import annotations

import pytest

from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import PlanCost, price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.problem.training import parse_training
from shardviz.planner.training import with_backward

MESH = parse_mesh("data=4")
MATMUL = "Y = X[b,d] * W[d,f]"
SIZES = "b=1024,d=256,f=512"
PARAMETERS = 256 * 512
MLP = "H = X[b,d] * W1[d,f]; A = silu(H); Y = A * W2[f,d]"


def priced(
    text: str, specs: str, optimizer: str = "adam", remat: str = "none", sizes: str = SIZES
) -> PlanCost:
    problem = problem_from_text(text, mesh=MESH, specs=specs, sizes=sizes)
    step = with_backward(problem, parse_training(True, remat, optimizer, MESH))
    placed = place_mesh(assumed_machine(), MESH)
    return price(plan(step, placed), placed)


def bytes_each(cost: PlanCost, parameters: int = PARAMETERS) -> float:
    """The bytes of parameters, gradients and optimizer on a device, for each parameter."""
    memory = cost.training_memory
    return (memory.parameters + memory.gradients + memory.optimizer) / parameters


@pytest.mark.parametrize(
    ("optimizer", "expected"),
    [
        # The documentation of Megatron-LM's distributed optimizer: bf16 parameters and f32 gradients take 18
        # bytes a parameter, or 6 + 12 / data.
        ("adam", 18),
        ("adam,over=data", 6 + 12 / 4),
        ("adam,moments=bf16", 2 + 4 + 4 + 2 * 2),
        ("sgd", 2 + 4 + 4),
        ("sgd,master=none,gradients=bf16", 2 + 2),
        ("none", 2 + 2),
    ],
)
def test_bytes_of_a_parameter_in_data_parallel_training(optimizer, expected):
    assert bytes_each(priced(MATMUL, "X=data _,Y=data _", optimizer)) == expected


def test_f32_parameters_have_no_second_copy():
    """Megatron-LM's documentation: f32 parameters and gradients take 16 bytes, or 8 + 8 / data."""
    problem = problem_from_text(MATMUL, mesh=MESH, specs="X=data _,Y=data _", sizes=SIZES, dtype="f32")
    for optimizer, expected in (("adam", 16), ("adam,over=data", 8 + 8 / 4)):
        step = with_backward(problem, parse_training(True, "none", optimizer, MESH))
        placed = place_mesh(assumed_machine(), MESH)
        assert bytes_each(price(plan(step, placed), placed)) == expected


def test_fully_sharded_training_divides_all_but_the_gradient_as_it_is_made():
    memory = priced(MATMUL, "X=data _,W=data _,Y=data _").training_memory
    assert memory.parameters == 2 * PARAMETERS / 4
    assert memory.optimizer == 12 * PARAMETERS / 4
    assert memory.gradients == 4 * PARAMETERS
    layers = priced(f"{MLP} x 10", "X=data _,W1=data _,W2=data _,Y=data _").training_memory
    # W2's gradient is scattered before that of W1 is made.
    assert layers.gradients == (4 + 1) * PARAMETERS + 9 * 2 * 4 * PARAMETERS / 4
    assert layers.optimizer == 10 * 2 * 12 * PARAMETERS / 4


def test_the_update_takes_the_place_of_what_it_updates():
    few = priced(MATMUL, "X=data _,Y=data _", sizes="b=4,d=256,f=512")
    assert 18 * PARAMETERS < few.peak_bytes < 18.1 * PARAMETERS


def test_what_is_computed_again_is_not_kept():
    specs = "X=data _,Y=data _"
    x, h = (2 * 1024 * size // 4 for size in (256, 512))
    kept = {
        remat: priced(f"{MLP} x 8", specs, remat=remat).training_memory.activations
        for remat in ("none", "dots", "layer")
    }
    assert kept == {"none": 8 * (x + 2 * h), "dots": 8 * (x + h), "layer": 8 * x}


def test_the_most_that_is_held_in_all_layers():
    """All layers' parameters, states and gradients at the update; with small ones, all activations at the
    turn."""
    specs = "X=data _,Y=data _"
    one, many = (priced(f"{MLP} x {layers}", specs).training_memory for layers in (1, 16))
    assert many.peak == one.peak + 15 * 2 * (18 * PARAMETERS)
    wide = {layers: priced(f"{MLP} x {layers}", specs, sizes="b=65536,d=256,f=512") for layers in (1, 16)}
    kept = wide[1].training_memory.activations
    assert wide[16].training_memory.peak == wide[1].training_memory.peak + 15 * (2 * 14 * PARAMETERS + kept)


def test_a_forward_pass_has_no_such_memory():
    problem = problem_from_text(MATMUL, mesh=MESH, specs="X=data _,Y=data _", sizes=SIZES)
    placed = place_mesh(assumed_machine(), MESH)
    assert price(plan(problem, placed), placed).training_memory is None


def test_a_table_alone_is_trained_though_neither_pass_takes_from_the_other():
    """The gradient of a table takes the places of its rows, and nothing that the forward pass makes."""
    cost = priced("Y = take(E[v,d], T[b,t])", "T=data _", sizes="v=512,d=256,b=8,t=16")
    assert "dE" in {step.array for step in cost.plan.steps}
    assert bytes_each(cost) == 18
