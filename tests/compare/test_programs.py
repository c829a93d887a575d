"""Programs compared with Shardy and with XLA for CPUs, statement by statement, forward and backward."""

from __future__ import annotations

from collections import Counter

import pytest

from shardviz.compare import AS_PLANNED, differences
from shardviz.compare.moved_arrays import MovedArrays
from shardviz.hlo import Collective
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.training import Optimizer, Training, with_backward
from shardviz.targets import TARGETS
from tests.compare.plans_by_hand import compare

GATED = "H = X[b,d] * W1[d,f]; G = X * W2[d,f]; Y = (silu(H) * G) * W3[f,d]"
SIZES = "b=65536,d=1024,f=2048"
PARALLEL = {
    "data": ("X=4", "X=X_,Y=X_"),
    "fully sharded": ("X=4", "X=X_,W1=X_,W2=X_,W3=_X,Y=X_"),
    "tensor": ("Y=4", "X=__,W1=_Y,W2=_Y,W3=Y_,Y=__"),
    "fully sharded and tensor": ("X=4,Y=2", "X=X_,W1=XY,W2=XY,W3=YX,Y=X_"),
}


def compared(worker, target, text, mesh, specs, sizes, backward, optimizer=None):
    problem = problem_from_text(text, mesh=parse_mesh(mesh), specs=specs, sizes=sizes)
    training = Training(optimizer=optimizer)
    found = plan(with_backward(problem, training) if backward else problem)
    answer = worker.ask(found.problem, TARGETS[target])
    assert (answer.status, answer.error) == ("ok", "")
    return Counter(each.code for each in differences(found, answer)), [
        each.message for each in differences(found, answer)
    ]


@pytest.mark.parametrize("name", PARALLEL)
@pytest.mark.parametrize("target", ["shardy", "cpu"])
def test_the_forward_pass_is_as_planned(worker, name, target):
    codes, messages = compared(worker, target, GATED, *PARALLEL[name], SIZES, backward=False)
    assert set(codes) <= AS_PLANNED | {"promoted_dtype"}, messages


@pytest.mark.parametrize(
    ("name", "target", "expected"),
    [
        ("data", "shardy", {}),
        ("data", "cpu", {"combined_collectives": 1}),
        ("fully sharded", "shardy", {"gathered_again": 3}),
        ("fully sharded", "cpu", {"combined_collectives": 1, "all_reduce_and_slice": 3}),
        ("tensor", "shardy", {"summed_apart": 1}),
        ("tensor", "cpu", {"combined_collectives": 1, "summed_apart": 1}),
        ("fully sharded and tensor", "shardy", {"gathered_again": 3, "summed_apart": 1}),
    ],
)
def test_jax_has_the_collectives_of_the_gradients_but_for_what_has_a_name(worker, name, target, expected):
    """JAX sums each use of an array by itself, and Shardy gathers a weight again for the backward pass; XLA
    then brings together what it can."""
    codes, messages = compared(worker, target, GATED, *PARALLEL[name], SIZES, backward=True)
    del codes["promoted_dtype"]
    assert codes == expected, messages


def test_sentences_about_gradients_name_them(worker):
    _, messages = compared(
        worker, "shardy", GATED, *PARALLEL["fully sharded and tensor"], SIZES, backward=True
    )
    assert (
        "shardy gathers W1 over X again for other statements that take it, sending 1,572,864 bytes more; the "
        "plan keeps the copy." in messages
    )
    assert any(
        each.startswith("shardy adds up the summands of dX each by itself, by 2 times ") for each in messages
    )
    _, messages = compared(worker, "cpu", GATED, *PARALLEL["fully sharded"], SIZES, backward=True)
    assert any(
        each.startswith("cpu does not scatter the sum of dW3: its all-reduce over X") for each in messages
    )


def test_gradients_in_another_dtype_than_their_weights_are_told(worker):
    """JAX adds up gradients in the dtype of their weights, an optimizer's plan in f32."""
    given = (*PARALLEL["data"], SIZES)
    codes, messages = compared(worker, "shardy", GATED, *given, backward=True, optimizer=Optimizer("sgd"))
    assert codes == {"narrowed_dtype": 1}
    assert messages == [
        "shardy moves f32 as bf16: its all-reduce over X carries 4,194,304 bytes instead of 8,388,608 (and 2 "
        "more)."
    ]
    halves = Optimizer("sgd", gradients="bf16")
    codes, _ = compared(worker, "shardy", GATED, *given, backward=True, optimizer=halves)
    assert not codes


def test_tokens_that_the_plan_leaves_where_they_are_move_in_their_own_dtype(worker):
    """Shardy gathers the tokens in the place of the table, which is bf16."""
    text = "Y = take(E[v,d], tokens[b])"
    codes, messages = compared(
        worker, "shardy", text, "X=4", "E=X_,tokens=X", "b=64,v=320,d=8", True, Optimizer("adam")
    )
    assert "promoted_dtype" not in codes, messages
    assert any("it moves tokens by all-gather over X (256 bytes)" in each for each in messages)


def test_runs_of_a_program_are_counted(worker):
    text = f"{GATED} x 3"
    codes, messages = compared(worker, "cpu", text, *PARALLEL["tensor"], "b=512,d=256,f=512", backward=False)
    assert set(codes) <= {"promoted_dtype"}, messages


def test_a_gradient_that_is_made_transposed_is_not_taken_for_another_of_its_statement(worker):
    """A piece of dY_2 could have the shape of dW2 transposed; what W2's spec says settles it."""
    text = "H = X[b,d] * W1[d,f]; G = X * W3[d,f]; Y = (silu(H) * G) * W2[f,d]"
    specs = "X=X_,W1=_Y,W3=_Y,W2=Y_,Y=X_"
    sizes = "b=16384,d=4096,f=14336"
    codes, messages = compared(worker, "shardy", text, "X=2,Y=4", specs, sizes, backward=True)
    assert codes == {"summed_apart": 1}, messages


def test_a_sum_of_transposed_activations_is_not_taken_for_one_of_folded_weights():
    """A TPU adds up dN as [t,b,d], which has as many elements as dW1 of the same statement."""
    text = "N = rms_norm(X[b,t,d], d, g[d]); Y = X + gelu(N * W1[d,f]) * W2[f,d]"
    specs = "X=X__,g=_,W1=_Y,W2=Y_,Y=X__"
    problem = problem_from_text(
        text, mesh=parse_mesh("X=2,Y=4"), specs=specs, sizes="b=8,t=4096,d=4096,f=16384"
    )
    moved = MovedArrays(with_backward(problem, Training()))
    shape = (4096, 4, 4096)
    source = "jit(program)/transpose(jvp(Y_1))/btd,df->btf/dot_general"
    given = ("all-reduce", "c", ("Y",), None, shape, shape, "bf16", 2**27, 3 * 2**26)
    one = Collective(*given, source=source)
    assert moved.of(one) == ("dN",)


@pytest.mark.since_jax("0.10", "its XLA combines nothing in loops")
def test_what_is_combined_in_a_loop_is_compared_piece_by_piece(worker):
    """XLA writes the names of what it combines as one, with what they share in front."""
    text = "H = X[b,d] * W1[d,f]; G = X * W2[d,f]; F = X * W4[d,f]; Y = ((silu(H) * G) * F) * W3[f,d] x 3"
    specs = "X=__,W1=_Y,W2=_Y,W4=_Y,W3=Y_,Y=__"
    codes, messages = compared(worker, "cpu", text, "Y=4", specs, SIZES, backward=True)
    del codes["promoted_dtype"]
    assert codes == {"combined_collectives": 1, "summed_apart": 1}, messages


def test_a_sum_that_has_only_the_name_of_a_summand_is_the_plan_s():
    mesh, specs = PARALLEL["tensor"]
    problem = problem_from_text(GATED, mesh=parse_mesh(mesh), specs=specs, sizes=SIZES)
    found = plan(with_backward(problem, Training()))

    def all_reduce(name: str, source: str) -> Collective:
        shape, sent = (65536, 1024), 65536 * 1024 * 2
        groups = ((0, 1, 2, 3),)
        given = ("all-reduce", name, ("Y",), groups, shape, shape, "bf16", sent, 3 * sent // 2)
        return Collective(*given, source=source)

    sums = [
        all_reduce("forward", "jit(program)/jvp()/Y/bf,fd->bd/dot_general"),
        all_reduce("backward", "jit(program)/transpose(jvp())/H/bd,df->bf/dot_general"),
    ]
    assert compare(found, "v5e:2x2", sums, None) == ()


VOCABULARY = {
    "softmax": ("P = softmax(X[b,v], v)", "X=X Y,P=X Y", "b=4096,v=8192", ["pmax P_1", "psum P_2"]),
    "log-sum-exp": ("Z = log_sum_exp(X[b,v], v)", "X=_(XY),Z=_", "b=4096,v=8192", ["pmax Z_1", "psum Z_2"]),
    "cross entropy": (
        "L = X[b,d] * W[d,v]; Y = cross_entropy(L, T[b], v)",
        "X=X _,W=_ Y,T=X,Y=X",
        "b=65536,d=256,v=8192",
        ["pmax Y_1", "psum Y_2", "psum Y_4"],
    ),
}


@pytest.mark.parametrize(
    ("backward", "name"), [(False, "softmax"), (True, "log-sum-exp"), (True, "cross entropy")]
)
def test_logits_stay_split_over_the_vocabulary(worker, name, backward):
    """The rows' largest elements and their sums are all that moves, as where the compilers decide."""
    text, specs, sizes, moves = VOCABULARY[name]
    mesh = "X=2,Y=4"
    found = plan(problem_from_text(text, mesh=parse_mesh(mesh), specs=specs, sizes=sizes))
    assert [f"{step.op} {step.array}" for step in found.collectives] == moves
    for target in ("shardy", "cpu"):
        codes, messages = compared(worker, target, text, mesh, specs, sizes, backward)
        assert set(codes) <= AS_PLANNED | {"promoted_dtype"}, messages
