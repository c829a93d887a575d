"""The exhaustive search finds the textbook's plans where they are the best, and others where they are not."""

import math

import pytest

from shardviz.hardware.collective_time import collective_time
from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.planner.planner import Planner
from shardviz.planner.pricing.costs import price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import Mesh
from tests.conftest import one_in
from tests.planner.exhaustive import BYTES, TIME, UNLIMITED, Space, least_cost
from tests.planner.exhaustive_programs import least_program_cost

MESH = Mesh(("X", "Y"), (2, 4))
MACHINE = place_mesh(assumed_machine(), MESH)


def best(text, specs, sizes, objective=TIME):
    problem = problem_from_text(text, mesh=MESH, specs=specs, sizes=sizes)
    return least_cost(problem, MACHINE, objective)


@pytest.mark.parametrize(
    ("specs", "sizes", "steps"),
    [
        ("X_,_Y->XY", "b=512,d=512,f=512", ["bd,df->bf [X, _], [_, Y] -> [X, Y]"]),
        # Case 2 with a small W; case 3; case 4 with a small A.
        (
            "_X,__->__",
            "b=64,d=512,f=65536",
            ["all_gather ('X',) [_, _]", "bd,df->bf [_, _], [_, _] -> [_, _]"],
        ),
        (
            "XY,Y_->X_",
            "b=512,d=8192,f=512",
            ["bd,df->bf [X, Y:(1)2 Y:(2)2], [Y:(1)2 Y:(2)2, _] -> [X, _] + Y", "psum ('Y',) [X, _]"],
        ),
    ],
)
def test_the_textbooks_plan_where_it_is_the_best(specs, sizes, steps):
    found = best("bd,df->bf", specs, sizes)
    said = [step.replace("Y:(1)2 Y:(2)2", "Y") for step in found.steps()]
    assert said == [step.replace("Y:(1)2 Y:(2)2", "Y") for step in steps]


def test_a_sum_over_a_dimension_that_only_one_operand_has_comes_first():
    said = best("bda,d->d", "X__,X->X", "b=64,d=512,a=512").steps()
    assert said[0].startswith("sum")
    assert said[-1] == "d,bda->d [X], [X] -> [X]".replace("d,bda", "bda,d")


def test_fewest_bytes_is_another_plan_than_the_fastest():
    """Megatron's layer: to gather the weights sends less than to add partial sums, but every device would
    multiply all of them."""
    text, specs, sizes = "bd,df->bf; bf,fd->bd", "__,_Y->?; ?,Y_->__", "b=65536,d=1024,f=4096"
    fast, lean = best(text, specs, sizes), best(text, specs, sizes, BYTES)
    assert lean.cost[0] < fast.cost[1]
    assert fast.cost[0] < lean.cost[2]


def test_the_seconds_are_those_of_the_steps():
    found = best("bd,df->bf", "XY,Y_->X_", "b=512,d=8192,f=512")
    device = MACHINE.machine.device
    flops = 2 * 256 * 2048 * 512 / dict(device.peak)["bf16"]
    moved = 2 * (256 * 2048 + 2048 * 512 + 256 * 512) / device.hbm_bandwidth
    reduced = collective_time("all-reduce", 2 * 256 * 512, MACHINE.group_levels(("Y",))).seconds
    seconds = max(flops, moved) + reduced
    assert found.cost == pytest.approx((1e9 * seconds, 2 * 3 / 4 * 2 * 256 * 512, 1), abs=2)


@pytest.mark.parametrize("specs", one_in(3, ["X_,_Y->?; Y_", "XY,Y_->?; X_", "_X,XY->?; _Y->YX"]))
def test_both_searches_agree_on_chains(specs):
    first, _, second = specs.partition("; ")
    problem = problem_from_text(
        "bd,df->bf; bf,fd->bd", mesh=MESH, specs=f"{first}; ?,{second}", sizes="b=64,d=128,f=256"
    )
    chain = least_cost(problem, MACHINE)
    program = least_program_cost(problem, MACHINE, TIME, UNLIMITED)
    assert chain.cost == program.cost


FUNCTIONS = {
    "H = cumsum(X[t,d] * W[d,f], t); Y = H * V[f,d]": "X=X_,W=_Y,V=Y_,Y=X_",
    "H = conv(X[t,d], W[k,d], t); Y = H * V[d,f]": "X=XY,W=_Y,V=Y_,Y=X_",
    "A = sigmoid(X[t,d]); H = scan(A, X, t); Y = H * V[d,f]": "X=X_,V=Y_,Y=X_",
    "H = rotary(X[t,d] * W[d,f], t); Y = H * V[f,d]": "X=X_,W=YX,V=Y_,Y=X_",
    "S = X[t,d] * K[d,s]; P = where(M[t,s], S, -9); Y = P * V[s,d]": "X=X_,M=X_,K=_Y,V=Y_,Y=X_",
    "H = dropout(X[t,d] * W[d,f], M[t,f], 0.1); Y = H * V[f,d]": "X=XY,W=Y_,M=__,V=__,Y=X_",
    "A = X[t,d] * W[d,f]; B = X * V[d,f]; Y = where(M[t,f], A, B)": "X=_Y,W=Y_,V=Y_,M=__,Y=XY",
}


@pytest.mark.parametrize("text", FUNCTIONS)
def test_programs_of_other_functions_have_the_best_of_all_plans(text):
    mesh = Mesh(("X", "Y"), (2, 2))
    placed, known = place_mesh(assumed_machine(), mesh), {"t": 4096, "d": 1024, "f": 512, "s": 2048, "k": 4}
    sizes = ",".join(f"{dim}={size}" for dim, size in known.items() if f"[{dim}" in text or f",{dim}" in text)
    problem = problem_from_text(text, mesh=mesh, specs=FUNCTIONS[text], sizes=sizes)
    found = Planner(mesh, placed, "time", anywhere=True).plan(problem)
    assert found.optimal
    cost = least_program_cost(problem, placed, TIME, UNLIMITED).cost[0]
    assert price(found, placed).serial_seconds * 1e9 == pytest.approx(cost, rel=1e-3)


def test_a_state_of_every_kind_is_reached():
    space = Space(MACHINE, MESH)
    states = space.reach((16, 16), "bf16", {(((), ()), ()): best("ab->ab", "__->__", "a=16,b=16")}, UNLIMITED)
    parts = len(space.atoms)
    # Each part idle, pending, or in a place of one of the two dimensions.
    expected = sum(
        math.comb(parts, placed) * math.factorial(placed) * (placed + 1) * 2 ** (parts - placed)
        for placed in range(parts + 1)
    )
    assert len(states) == expected
