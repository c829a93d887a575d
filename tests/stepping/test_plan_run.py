"""A plan on small numbers: every step as JAX has it on simulated devices, the result that of one device."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import shardviz
from shardviz.answers.plans import problem_of
from shardviz.errors import QuestionError
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.stepping.plan_run import PlanRun, small_run
from shardviz.targets import TARGETS
from tests.conftest import MATRIX_SPECS, one_in

LAYERS = Path(shardviz.__file__).parent / "forms/examples/layers.toml"
EXAMPLES = {each["name"]: each for each in tomllib.loads(LAYERS.read_text())["example"]}


def run_of(einsum: str, specs: str, mesh: str = "X=2,Y=4", sizes: str = "", **words: object) -> PlanRun:
    problem = problem_of(
        einsum, parse_mesh(mesh), specs=specs, sizes=sizes, dtype="bf16", axis_types="auto", **words
    )
    return small_run(plan(problem))


def asked(run: PlanRun, worker: shardviz.compiler.worker.Worker) -> tuple[str, str]:
    result = run.compared(worker.run_plan(*run.for_jax(), TARGETS["cpu"]).result()).verification
    return result.verdict, result.note


def test_all_plans_of_a_matmul_end_in_jaxs_product() -> None:
    ops = set()
    product = None
    for left in MATRIX_SPECS:
        for right in MATRIX_SPECS:
            run = run_of("bd,df->bf", f"{left},{right}->_(YX)", "X=2,Y=2", "b=4,d=4,f=4")
            if product is None:
                product = jnp.einsum("bd,df->bf", *(each[0] for each in run.whole_arguments))
            assert np.array_equal(run.results[0], product), (left, right)
            ops |= {step.step.op for step in run.steps}
    assert {"einsum", "all_gather"} <= ops


CASES = [
    ("bd->bd", "XY->_Y{U_X}", {"mesh": "X=2,Y=2", "sizes": "b=4,d=4"}),
    ("bd,df->bf", "XY,Y_->X_", {}),
    ("bd,df->bf", "__,__->__{U_Y}", {}),
    ("bd,df->bf", "XY,Y_->X_", {"backward": True, "optimizer": "adam"}),
    ("bd,df->bf; bf,fd->bd", "XY,_Y;,Y_->XY", {"backward": True}),
]


@pytest.mark.parametrize(("einsum", "specs", "words"), CASES)
def test_jax_holds_the_same_after_every_step(einsum, specs, words, worker) -> None:
    run = run_of(einsum, specs, **words)
    verdict, note = asked(run, worker)
    assert (verdict, "is that of the program on one device" in note) == ("equal", True)
    assert f"after each of {len(run.steps)} step" in note


@pytest.mark.parametrize(
    "name", one_in(3, ["experts", "ulysses", "lora", "recurrence", "cache", "attention"])
)
def test_layers_and_their_gradients(name: str, worker) -> None:
    layer = EXAMPLES[name]
    run = run_of(layer["einsum"], layer["specs"], layer["mesh"], layer.get("sizes", ""), backward=True)
    assert asked(run, worker)[0] == "equal"
    # Of whole numbers products and sums are exact; other functions need fractions.
    assert run.is_whole == (name == "lora")


def test_a_wrong_value_is_found(worker) -> None:
    run = run_of("bd,df->bf", "XY,Y_->X_")
    ran = worker.run_plan(*run.for_jax(), TARGETS["cpu"]).result()
    wrong = ran.steps[0].copy()
    wrong[3, 0, 1] += 1
    found = run.compared(replace(ran, steps=(wrong, ran.steps[1]))).verification
    assert (found.verdict, found.note[:12]) == ("different", "after step 1")
    found = run.compared(replace(ran, on_one_device=(ran.on_one_device[0] + 1,))).verification
    assert (found.verdict, "is not that of the program" in found.note) == ("different", True)


def sizes_of(text, specs, **given):
    return run_of(text, specs, **given).plan.problem.sizes


def test_sizes_are_as_small_as_the_axes_divide_and_small_ones_stay() -> None:
    assert sizes_of("bd,df->bf", "XY,Y_->X_", sizes="b=8,d=2048,f=8192") == {"b": 2, "d": 4, "f": 2}
    assert sizes_of("bd,df->bf", "XY,Y_->X_", sizes="b=4,d=8,f=6") == {"b": 4, "d": 8, "f": 6}
    merged = run_of("Y = reshape(A[b,n,h], q=nh)", "A=_X_", sizes="b=64,n=64,h=64")
    assert merged.plan.problem.sizes == {"b": 2, "n": 2, "h": 2, "q": 4}


def test_a_large_mesh_is_not_played() -> None:
    with pytest.raises(QuestionError, match="up to 512 devices"):
        run_of("bd,df->bf", "XY,Y_->X_", "X=64,Y=64")
