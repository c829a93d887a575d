# ruff: noqa: E501 - a reason is one line
"""Every step has its reason: one sentence, true, with the numbers of the case."""

from __future__ import annotations

import re

import pytest

from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import Planner, plan
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import Mesh

MESH = Mesh(("X", "Y"), (2, 4))
SIZES = "b=8,d=2048,f=8192"


def steps(specs, text="bd,df->bf", mesh=MESH, sizes=SIZES):
    # By bytes plans are the same at all sizes, and of every kind.
    planner = Planner(mesh, objective="bytes", anywhere=False)
    found = planner.plan(problem_from_text(text, mesh=mesh, specs=specs, sizes=sizes))
    return {f"{step.op} {step.array}": step for step in found.steps}


def reasons(specs, text="bd,df->bf", mesh=MESH, sizes=SIZES):
    return {name: step.reason for name, step in steps(specs, text, mesh, sizes).items()}


@pytest.mark.slow
def test_one_sentence_over_all_combinations(matmul_specs):
    planner = Planner(MESH)
    seen = set()
    for specs in matmul_specs:
        for step in planner.plan(problem_from_text("bd,df->bf", mesh=MESH, specs=specs, sizes=SIZES)).steps:
            reason = step.reason
            seen.add(step.op)
            assert reason.endswith("."), reason
            assert not re.search(r"\.\s|  |\n|\.\.", reason), reason
            assert reason[0].isupper(), reason
            assert len(reason) < 300, reason
            if step.wire_bytes:
                assert f"{step.wire_bytes:,}" in reason, reason
                assert step.array in reason, reason
            elif step.op in ("slice", "einsum"):
                assert "nothing is sent" in reason or " locally; " in reason, reason
    assert seen == {"einsum", "slice", "all_gather", "all_to_all", "ppermute", "psum", "psum_scatter"}


@pytest.mark.slow
def test_what_a_split_is_wanted_for_is_true_over_all_combinations(matmul_specs):
    """A step says that a split is wanted only where the result, or another operand, really has it."""
    planner = Planner(MESH)
    claims = 0
    for specs in matmul_specs:
        problem = problem_from_text("bd,df->bf", mesh=MESH, specs=specs, sizes=SIZES)
        found = planner.plan(problem)
        arrays = {array.name: array for array in (*problem.arguments, problem.result)}
        for step in found.steps:
            for name, dim, axes in re.findall(r"(\w+)'s sharding of (\w) over (\w+)", step.reason):
                array = arrays[name]
                claims += 1
                assert set(axes) <= set(array.spec.dims[array.dims.index(dim)]), (specs, step.reason)
            for dim, axes in re.findall(r"(\w) is wanted split over (\w+)", step.reason):
                claims += 1
                result = found.result_spec.dims[problem.result.dims.index(dim)]
                assert set(axes) <= set(result), (specs, step.reason)
            for name, dim, axes in re.findall(r"only (\w+) is split along it over (\w)(\w*)", step.reason):
                claims += 1
                assert {dim, *axes} <= set(arrays[name].spec.axes), (specs, step.reason)
    assert claims > 500


SENTENCES = [
    (
        "XY,Y_->X_",
        "einsum Out",
        "Every device multiplies its A[4×512] by its W[512×8192] locally; each covers 1/4 of d, so the "
        "result is a partial sum over Y.",
    ),
    (
        "XY,Y_->X_",
        "psum Out",
        "Each of the 4 devices along Y holds a partial sum of Out: they are added, and every device gets the "
        "total; each sends 2×3/4 of 65,536 bytes = 98,304.",
    ),
    (
        "XY,Y_->XY",
        "psum_scatter Out",
        "Each of the 4 devices along Y holds a partial sum of Out, and f must be sharded over Y: they are added, and each device keeps its 1/4 of the total; each sends 3/4 of 65,536 bytes = 49,152, half of "
        "a psum.",
    ),
    (
        "XY,_Y->XY",
        "all_gather A",
        "Both A (along d) and W (along f) use Y, but the product can keep only one: gather its 4 shards of "
        "512 into 2,048; each device sends 3/4 of 16,384 bytes = 12,288.",
    ),
    (
        "X_,_X",
        "all_gather A",
        "Both A (along b) and W (along f) use X, but the product can keep only one: gather its 2 shards of "
        "4 into 8; each device sends 1/2 of 32,768 bytes = 16,384.",
    ),
    (
        "_Y,__->__",
        "all_gather A",
        "The product contracts d, but only A is sharded along it over Y (512 of 2,048 per device): gather its 4 shards of 512 into 2,048; each device sends 3/4 of 32,768 bytes = 24,576.",
    ),
    (
        "__,Y_->__",
        "slice A",
        "To match W's sharding of d over Y, each device keeps its own 1/4 of d (512); it already holds it, so "
        "nothing is sent.",
    ),
    (
        "__,_Y->__",
        "all_gather Out",
        "Every device along Y needs all of Out's f: gather its 4 shards of 2,048 into 8,192; each "
        "device sends 3/4 of 131,072 bytes = 98,304.",
    ),
    (
        "X_,_X->X_",
        "all_to_all Out",
        "Because a sharding along b is needed, Out moves its sharding from f over X to b: each device keeps 1/2"
        " of what it holds and sends the other pieces to their new owners; each device sends 1/2 of 65,536 "
        "bytes = 32,768.",
    ),
    (
        "(XY)_,__->(YX)_",
        "ppermute A",
        "The blocks of A are on the wrong devices (b over XY, not b over YX): each device whose block belongs elsewhere sends all 4,096 bytes of it to one other device.",
    ),
]


SHORT = [
    "each covers 1/4 of d: partial sums over Y",
    "adds partial sums of Out over Y",
    "adds partial sums of Out, shards f over Y",
    "Y can shard only one: W's f, not A's d",
    "X can shard only one: W's f, not A's b",
    "only A shards the contracted dimension d",
    "matches W's sharding of d over Y",
    "Out must be replicated over Y",
    "Out must be sharded along b, not f",
    "the blocks of A are on the wrong devices",
]


@pytest.mark.parametrize(
    ("specs", "step", "sentence", "short"),
    [(*case, short) for case, short in zip(SENTENCES, SHORT, strict=True)],
)
def test_sentence_and_its_short_form(specs, step, sentence, short):
    found = steps(specs)[step]
    assert (found.reason, found.short_reason) == (sentence, short)


ALIKE = (
    "A and W are both sharded along d over Y, but no cheaper plan adds partial sums, so every device multiplies "
    "4 times as much: gather its 4 shards of 2 into 8; each device sends 3/4 of 128 bytes = 96."
)
LEAVING = (
    "No cheaper plan was found that keeps A sharded along b over Y: gather its 4 shards of 2 into 8; each "
    "device sends 3/4 of {} bytes = {}."
)


@pytest.mark.parametrize(
    ("text", "specs", "sizes", "sentence"),
    [
        ("bd,df->bf", "_Y,Y_->__", "b=8,d=8,f=64", ALIKE),
        ("bd,df->bf", "Y_,__->__", "b=8,d=8,f=64", LEAVING.format(128, 96)),
        ("b,f->bf", "Y,Y->__", "b=8,f=64", LEAVING.format(16, 12)),
    ],
)
def test_sentence_where_it_is_cheaper_to_gather_first(text, specs, sizes, sentence):
    assert reasons(specs, text, MESH, sizes)["all_gather A"] == sentence


@pytest.mark.parametrize(
    ("specs", "step", "start"),
    [
        ("X_,_Y->_Y;_Y,Y_->X_", "all_gather H1", "Every device along X needs all of H1's b, as H1 is given sharded along f over Y: "),
        ("X_,__->X_;__,_Y->_Y", "all_gather H1", "Every device along X needs all of H1's b, as the next einsum is given H1 replicated: "),
        ("_X,__->__;__,__->__", "all_gather A", "The product contracts d, but only A is sharded along it over X (1,024 of 2,048 per device): "),
        ("_X,X_->_X;_X,X_->X_", "psum_scatter H1", "Each of the 2 devices along X holds a partial sum of H1, and f must be sharded over X, as H1 is given sharded along f over X: "),
        ("X_,_Y->XY;YX,X_->__", "all_to_all H1", "Because a sharding along f is needed, as the next einsum is given H1 sharded along b over Y and f over X, H1 moves "),
        ("X_,_X->X_;_X,X_->__", "all_to_all H1", "Because a sharding along f is needed, as the next einsum is given H1 sharded along f over X, H1 moves "),
        ("X_,__->X_;X_,__->__", "all_gather Out", "Every device along X needs all of Out's b: "),
    ],
)  # fmt: skip
def test_where_an_intermediate_is_given_to_be_so_is_why_it_moves(specs, step, start):
    assert reasons(specs, "bd,df->bf;bf,fe->be", sizes=f"{SIZES},e=128")[step].startswith(start)


def test_names_of_axes_and_arrays_keep_their_case():
    mesh = Mesh(("axis",), (4,))
    found = reasons("axis _, axis _", "bi,ij->bj", mesh, "b=16,i=16,j=16")
    assert found["all_gather W"].startswith("Both W (along i) and A (along b) use axis")


def test_a_part_of_the_wanted_axis_is_wanted():
    """The result is wanted over X; the sums are added over a part of it."""
    problem = problem_from_text("bd,df->bf", mesh=parse_mesh("X=8"), specs="X:(1)2 _,X:(2)4 _->X_")
    last = plan(problem).steps[-1]
    assert (last.op, last.axes) == ("psum_scatter", ("X:(2)4",))
    assert "and b must be sharded over X:(2)4" in last.reason


def test_what_a_function_takes_whole_is_gathered_for_it():
    found = reasons("X=XY,Y=XY", "Y = top_k(X[b,d], d, 2)", sizes="b=8,d=2048")
    assert found["all_gather X"].startswith("Each device needs all of X's d for top_k: gather its 4 shards")


def test_the_largest_of_all_parts_is_found_where_a_softmax_is_split():
    found = reasons("X=XY,Y=XY", "Y = softmax(X[b,d], d)", sizes="b=8,d=2048")
    assert [name for name in found if not name.startswith("apply")] == ["pmax Y_1", "psum Y_2"]
    assert found["apply Y_1"].endswith(
        "locally; each covers 1/4 of d, so the result is a partial maximum over Y."
    )
    assert found["pmax Y_1"].startswith("Each of the 4 devices along Y holds the maximum of its shard")
