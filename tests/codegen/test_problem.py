"""The JAX code runs as it is, in a process of its own, and prints what shardviz says."""

from __future__ import annotations

import re

import numpy as np
import pytest

from shardviz.codegen.code_literals import names_code
from shardviz.codegen.collective import collective_code
from shardviz.codegen.problem import problem_code
from shardviz.collectives.frames import Frames
from shardviz.errors import QuestionError
from shardviz.forms.examples import examples
from shardviz.forms.form import CollectiveFields, ProblemForm
from shardviz.forms.options import form_from_options
from shardviz.forms.resolve import resolve
from shardviz.planner.problem.jax_code import dtype_code
from shardviz.planner.problem.reading import problem_from_text
from shardviz.render.lines import highlighted
from shardviz.sharding import Mesh
from shardviz.sharding.array import BITS
from shardviz.stepping.plan_step import question_of_step
from shardviz.targets import parse_targets

SMALL = resolve(form_from_options("bd,df->bf", specs="XY,Y_->X_", sizes="b=8,d=16,f=4"))
CHAIN = resolve(
    form_from_options("bd,df->bf; bf,df->bd", mesh="X=4,Y=2", specs="X_,__; XY,__", sizes="b=16,d=32,f=64")
)
EXPLICIT = resolve(
    form_from_options(
        "bd,df->bf", specs="XY,Y_->X_", sizes="b=8,d=16,f=4", axis_types="explicit", dtype="s64"
    )
)
LARGE = resolve(form_from_options("bd,df->bf", mesh="X=64,Y=64", specs="XY,Y_->X_"))
UNEVEN = resolve(
    ProblemForm(
        mesh="Y=2,X=3",
        specs=("__", "__", "__"),
        device_order="5,4,3,2,1,0",
        collective=CollectiveFields(
            "ragged_all_to_all", axis="X", parameters=(("send_sizes", "1,2,0;0,1,1;2,0,1"),)
        ),
    )
).collective
SUM = question_of_step(SMALL.plan, 2)
UNREDUCED = resolve(
    form_from_options("bd,df->bf", specs="XY,Y_->X_{U_Y}", sizes="b=8,d=16,f=4", dtype="s4"),
)
CACHE = resolve(
    form_from_options(
        "K2 = update(K[b,s,h], X[b,t,d] * W[d,h], s); Y = X + (X * W) * U[h,d]",
        specs="X=X__, K=X_Y, W=_Y, U=Y_, Y=X__",
        sizes="b=4,t=1,s=8,d=16,h=8",
        dtype="f32,K=s8",
        backward="yes",
    )
)
PROGRAMS = {
    "cache": problem_code(CACHE.problem),
    "chain": problem_code(CHAIN.problem),
    "explicit": problem_code(EXPLICIT.problem),
    "unreduced": problem_code(UNREDUCED.problem),
    "large": problem_code(LARGE.problem),
    "uneven": collective_code(UNEVEN),
    "sum": collective_code(SUM),
}


@pytest.fixture(scope="module")
def printed(printed_by):
    """What each program prints."""
    return printed_by(PROGRAMS)


def collectives_in(text):
    return re.findall(
        r" (all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute)(?:-start)?\(", text
    )


def test_a_chain_with_a_constraint_prints_its_collectives_and_who_holds_what(printed):
    assert "with_sharding_constraint(H1" in PROGRAMS["chain"]
    assert collectives_in(printed["chain"]) == ["all-reduce"]
    assert printed["chain"].count("holds (4, 32) from") == 8


def test_a_cache_of_whole_numbers_is_returned_by_a_train_step_without_a_gradient(printed):
    assert "return Y, K2" in PROGRAMS["cache"]
    assert len(collectives_in(printed["cache"])) >= 2


def test_explicit_axes_print_types(printed):
    assert "Out: int64[8@X,4]" in printed["explicit"]
    assert collectives_in(printed["explicit"]) == ["all-reduce"]


def test_what_is_left_unreduced_makes_the_axes_explicit_and_every_device_hold_an_addend(printed):
    assert "# JAX keeps partial sums under Explicit axes only" in PROGRAMS["unreduced"]
    assert "Out: int4[8@X,4]{U:Y}" in printed["unreduced"]
    assert printed["unreduced"].count("holds a partial sum of (4, 4)") == 8


@pytest.mark.parametrize(
    ("target", "lines"),
    [
        ("v5e:2x4", ['"v5e:2x4", platform="tpu")', "devices=devices)"]),
        ("2*v4:2x2x1", ['num_slices=2, chip_config_name="megacore")', "(1, 4), (2, 1), devices"]),
        ("h100:8", ['topology="1x1x8", target_config=GPU', 'device_description_str: "NVIDIA H100']),
        ("shardy", ["mesh = AbstractMesh((2, 4)", "sdy-propagation-pipeline"]),
    ],
)
def test_a_target_has_its_own_mesh(target, lines):
    code = problem_code(SMALL.problem, *parse_targets(target))
    compile(code, target, "exec")
    for line in lines:
        assert line in code
    assert "jax_num_cpu_devices" not in code


def test_a_mesh_too_large_to_simulate_asks_shardy(printed):
    assert '= sdy.all_reduce {"Y"}' in printed["large"]
    assert printed["large"].count("= sdy.") == 1


@pytest.mark.parametrize(("name", "question"), [("uneven", UNEVEN), ("sum", SUM)], ids=["uneven", "sum"])
def test_a_collective_leaves_what_the_simulator_says(printed, name, question):
    frames = Frames(question.schedule, question.operation, question.layout.mesh, question.shards)
    after = frames.after
    found = np.concatenate([after[position] for position in question.final_positions])
    assert printed[name].splitlines()[-1] == f"final result: {found.tolist()}"


def test_the_sum_has_other_addends_on_every_device():
    assert 'in_specs=P("Y", "X", None)' in PROGRAMS["sum"]
    assert 'jax.lax.psum(shard[0], "Y")' in PROGRAMS["sum"]


@pytest.mark.parametrize("example", examples()[::6], ids=lambda example: example.title)
def test_the_code_of_an_example_is_python(example):
    scene = resolve(example.draft)
    code = collective_code(scene.collective) if scene.collective else problem_code(scene.problem)
    compile(code, example.title, "exec")


def test_large_arrays_are_compiled_but_not_made():
    code = problem_code(
        resolve(form_from_options("ij,jk->ik", specs="X_,_Y", sizes="i=65536,j=65536,k=65536")).problem
    )
    assert "ShapeDtypeStruct" in code
    assert "device_put(jnp" not in code
    assert "compiled(" not in code


def test_a_device_order_is_kept():
    problem = problem_from_text("ij->ij", mesh=Mesh(("X",), (2,), (1, 0)), specs="X_")
    assert "np.array(jax.devices())[order]" in problem_code(problem)


def test_a_collective_too_large_to_simulate_says_so():
    question = resolve(ProblemForm(mesh="X=64,Y=64", collective=CollectiveFields("psum"))).collective
    with pytest.raises(QuestionError, match=r"4,096 devices with .* are too much to simulate"):
        collective_code(question)


def test_arrays_keep_their_names_where_python_can_say_them():
    named = names_code(["A", "P", "in", "W'", "jax", "W_"])
    assert named == {"A": "A", "P": "P_", "in": "in_", "W'": "W_", "jax": "jax_", "W_": "W__"}


def test_every_dtype_has_a_name_in_jax():
    import ml_dtypes

    for dtype in BITS:
        if dtype not in ("token", "opaque"):
            name = dtype_code(dtype).removeprefix("jnp.")
            assert hasattr(np, name) or hasattr(ml_dtypes, name), dtype


def test_colours_change_no_letter_of_the_code():
    code = PROGRAMS["chain"]
    for theme in ("one-dark", "ansi_dark", ""):
        lines = highlighted(code, theme)
        assert "\n".join(line.plain for line in lines) == code.rstrip("\n")
    assert any(line.spans for line in highlighted(code, "one-dark"))
