"""A plan as a program: JAX runs it, finds the same result, and compiles the same collectives."""

from __future__ import annotations

import re

import pytest

from shardviz.codegen.plan import plan_code
from shardviz.errors import QuestionError
from shardviz.notation import parse_mesh
from shardviz.planner import plan, problem_from_text

HLO = {
    "all_gather": "all-gather",
    "psum": "all-reduce",
    "psum_scatter": "reduce-scatter",
    "all_to_all": "all-to-all",
    "ppermute": "collective-permute",
}
SIZES = "b=16,d=32,f=64"
DEVICES = re.compile(r'jax\.config\.update\("jax_(platforms|num_cpu_devices)", .*\)\n')
"""What the tests have set up already."""


def planned(einsum, specs, mesh="X=2,Y=4", sizes=SIZES, dtype="f32"):
    problem = problem_from_text(einsum, mesh=parse_mesh(mesh), specs=specs, sizes=sizes, dtype=dtype)
    return plan(problem, objective="bytes")


def expected(plan):
    """Kind and groups of a plan's collectives, sorted; a ppermute's groups stand for its pairs."""
    return sorted((HLO[step.op], plan.problem.mesh.groups(step.axes)) for step in plan.collectives)


def run(code, capsys):
    exec(compile(DEVICES.sub("", code), "program", "exec"), {})
    return capsys.readouterr().out


CHOSEN = (
    ("bd,df->bf", "XY,_Y->Y_"),
    ("bd,df->bf; bf,fd->bd", "X_,__->?; ?,Y_->X_"),
    ("bd,df->bf; bf,fd->bd", "XY,Y_->XY; YX,X_->X_"),
)
"""Together they have every kind of step."""


def test_programs_by_hand_have_the_plans_collectives_and_the_result_of_one_device(capsys, collectives_in):
    seen = set()
    for einsum, specs in CHOSEN:
        found = planned(einsum, specs)
        said = run(plan_code(found), capsys)
        assert said.endswith("the result is the same as on one device\n"), specs
        kinds = [kind for kind, _ in expected(found)]
        assert [kind for kind, _ in collectives_in(said)] == kinds, specs
        if "collective-permute" not in kinds:
            assert collectives_in(said) == expected(found), specs
        seen |= {step.op for step in found.steps}
    assert seen == {*HLO, "einsum", "slice"}


def test_a_wrong_step_is_found(capsys):
    code = plan_code(planned("bd,df->bf", "XY,Y_->X_"))
    wrong = code.replace('jax.lax.psum(Out, "Y")', "Out")
    assert wrong != code
    with pytest.raises(AssertionError):
        run(wrong, capsys)


def test_pending_sums_stand_in_front(capsys):
    code = plan_code(planned("bd,df->bf", "X_{U_Y},__->X_{U_Y}"))
    assert "A = ones((4, 16, 32), 1 / 2, jnp.float32)" in code
    assert 'in_specs=(P("Y", "X", None), P(None, None)), out_specs=P("Y", "X", None)' in " ".join(
        code.split()
    )
    assert run(code, capsys).endswith("the result is the same as on one device\n")


def test_every_step_has_its_reason():
    found = planned("bd,df->bf", "XY,_Y->Y_")
    text = " ".join(plan_code(found).replace("    # ", "").split())
    for number, step in enumerate(found.steps, 1):
        assert f"{number}. {step.reason}" in text


def test_large_arrays_are_compiled_but_not_made():
    code = plan_code(planned("bd,df->bf", "X_,_Y->XY", sizes="b=65536,d=65536,f=65536"))
    assert "ShapeDtypeStruct" in code
    assert "compiled(" not in code


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"mesh": "X=64,Y=64"}, "a plan for 4,096 devices cannot run on simulated ones"),
        ({"dtype": "f8e4m3fn"}, "XLA for CPU may not multiply f8e4m3fn"),
    ],
)
def test_what_cannot_run_here_is_refused(question, message):
    with pytest.raises(QuestionError, match=message):
        plan_code(planned("bd,df->bf", "X_,__", **{"sizes": "b=64,d=64,f=64", **question}))
