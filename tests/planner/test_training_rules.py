"""Train steps against published rules: operations, and bytes sent by each kind of parallelism."""

from __future__ import annotations

from collections import Counter

import pytest

from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import PlanCost, price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.problem.training import parse_training
from shardviz.planner.training import with_backward

MLP = "H = X[b,d] * W1[d,f]; Y = silu(H) * W2[f,d]"
SIZES = {"b": 262_144, "d": 1024, "f": 4096}
WEIGHTS = 2 * SIZES["d"] * SIZES["f"]
"""Parameters of the two products."""
LAYER = """
Q[b,t,n,h] = X[b,t,d] * WQ[d,n,h]
K = X[b,s,d] * WK[d,n,h]
V = X[b,s,d] * WV[d,n,h]
A = X + causal_attention(Q, K, V) * WO[n,h,d]
H = A * W1[d,f]
Y[b,t,d] = A + silu(H) * W2[f,d]
"""


def priced(text: str, mesh: str, specs: str, sizes: dict[str, int] = SIZES, **options: str) -> PlanCost:
    given = ",".join(f"{dim}={size}" for dim, size in sizes.items())
    forward = problem_from_text(text, mesh=parse_mesh(mesh), specs=specs, sizes=given)
    asked = {"remat": "none", "optimizer": "none", "mesh": forward.mesh} | options
    problem = with_backward(forward, parse_training(True, **asked))
    placed = place_mesh(assumed_machine(), problem.mesh)
    return price(plan(problem, placed), placed)


def matmul_flops(cost: PlanCost) -> int:
    """Operations of the matrix products, which are einsums here."""
    return sum(
        each.flops
        for each in cost.steps
        if each.step.einsum is not None and each.step.einsum.contracted and len(each.step.operands) == 2
    )


@pytest.mark.parametrize(
    ("remat", "times"),
    # Kaplan and others 2020: 6 a parameter and token; computing all again adds 2. The last product of a layer
    # is not computed again, since nothing takes its result.
    [("none", 6), ("dots", 6), ("layer", 6 + 2 / 2)],
)
def test_operations_a_parameter_and_token(remat, times):
    cost = priced(MLP, "data=4", "X=data _,Y=data _", remat=remat)
    assert matmul_flops(cost) == times * WEIGHTS * SIZES["b"] // 4


def test_data_parallelism_sends_twice_the_gradients():
    """Rajbhandari and others 2020, section 7.1: an all-reduce moves 2Ψ, here of 2 bytes, × (N - 1) / N."""
    cost = priced(MLP, "data=4", "X=data _,Y=data _")
    assert cost.wire_bytes == 2 * 2 * WEIGHTS * 3 // 4


@pytest.mark.parametrize("remat", ["none", "layer"])
def test_fully_sharded_training_sends_three_times_the_parameters(remat):
    """The same, section 7.2.2: the parameters are gathered in both passes and the gradients scattered, 3Ψ."""
    cost = priced(f"{MLP} x 8", "data=4", "X=data _,W1=data _,W2=_ data,Y=data _", remat=remat)
    assert cost.wire_bytes == 3 * 2 * WEIGHTS * 3 // 4
    assert Counter(step.op for step in cost.plan.collectives) == {"all_gather": 4, "psum_scatter": 2}


def test_a_sharded_optimizer_sends_what_data_parallelism_sends():
    """The same, section 7.2.1: gradients are scattered and new parameters gathered; here the gradients are in
    f32, of 4 bytes, and the parameters in bf16, of 2."""
    cost = priced(MLP, "data=4", "X=data _,Y=data _", optimizer="adam,over=data")
    assert cost.wire_bytes == (4 + 2) * WEIGHTS * 3 // 4
    assert Counter(step.op for step in cost.plan.collectives) == {"psum_scatter": 2, "all_gather": 2}


def test_tensor_parallelism_has_two_all_reduces_a_layer_in_each_pass():
    """Shoeybi and others 2019, figure 4: four in a layer, of the activations."""
    sizes = {"b": 8, "t": 2048, "s": 2048, "d": 4096, "n": 32, "h": 128, "f": 16384}
    specs = "X=___,WQ=_T_,WK=_T_,WV=_T_,WO=T__,W1=_T,W2=T_,Y=___"
    cost = priced(LAYER, "T=4", specs, sizes)
    phases = [cost.plan.problem.parts[step.part].phase for step in cost.plan.collectives]
    assert [step.op for step in cost.plan.collectives] == ["psum"] * 4
    assert phases == ["forward"] * 2 + ["backward"] * 2
    activations = 2 * sizes["b"] * sizes["t"] * sizes["d"]
    assert {step.bytes for step in cost.plan.collectives} == {activations}
