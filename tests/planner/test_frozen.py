"""Train steps some of whose arguments have no gradient."""

from __future__ import annotations

import numpy as np
import pytest

from shardviz.errors import QuestionError
from shardviz.hardware.machine_file import named_machine
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.problem.training import Optimizer, Training
from shardviz.planner.search.question import question_from_text
from shardviz.planner.search.rules import parse_axes
from shardviz.planner.training import with_backward
from shardviz.sharding import Mesh
from shardviz.targets.hardware import placed_for
from tests.planner.executor import prove, reference, values_for

LORA = "Y = X[b,d] * W[d,f] + (X * A[d,r]) * B[r,f]"
MESH = Mesh(("X", "Y"), (2, 2))
SIZES = "b=8,d=16,f=32,r=4"


def step(text=LORA, dtype="bf16", sizes=SIZES, **training):
    forward = problem_from_text(text, mesh=MESH, specs="X=X_,W=_Y,Y=XY", sizes=sizes, dtype=dtype)
    return with_backward(forward, Training(**training))


def test_the_gradients_beside_a_frozen_weight_are_those_of_jax():
    import jax

    frozen = step(frozen=("W",))
    prove(plan(frozen))
    values = {name: value.astype(float) for name, value in values_for(frozen).items()}
    made = reference(frozen, values)

    def forward(x, a, b):
        return x @ values["W"] + (x @ a) @ b

    with jax.enable_x64(True):
        gradients = jax.vjp(forward, values["X"], values["A"], values["B"])[1](values["dY"])
    for name, gradient in zip(("dX", "dA", "dB"), gradients, strict=True):
        assert np.allclose(made[name], gradient)
    assert not {"dW", "W_new"} & made.keys()


@pytest.mark.parametrize(("dtype", "frozen"), [("bf16", ("W",)), ("bf16,W=int8", ())])
def test_a_frozen_weight_has_neither_gradient_nor_state_and_nothing_is_kept_for_it(dtype, frozen):
    sizes = "b=65536,d=1024,f=2048,r=16"
    asked = step(dtype=dtype, sizes=sizes, frozen=frozen, optimizer=Optimizer("adam"))
    memory = price(plan(asked), placed_for("v5e:2x2", (), MESH)).training_memory
    width = 1 if "int8" in dtype else 2
    # A and B are whole on every device, W is split over Y.
    assert memory.parameters == 2 * (1024 * 16 + 16 * 2048) + width * 1024 * 2048 // 2
    assert memory.optimizer == 12 * (1024 * 16 + 16 * 2048)
    # X for A's gradient, and X * A for B's.
    assert memory.activations == 2 * 32768 * (1024 + 16)


def test_the_input_that_only_a_frozen_weight_needs_is_not_kept():
    asked = step("H = X[b,d] * W[d,f]; Y[b,f] = H * V[f]", sizes="b=8", frozen=("W", "X"))
    taken = {operand.name for part in asked.parts if part.phase != "forward" for operand in part.operands}
    assert taken == {"H", "dY"}


def test_a_search_sums_no_gradient_of_it():
    training = Training(optimizer=Optimizer("adam"), frozen=("W",))
    question = question_from_text(
        LORA, named_machine("v5e:2x2"), parse_axes("data,tensor"), sizes=SIZES, training=training
    )
    assert [new for _, new in question.step.updates if new.endswith("_new")]
    assert not any(part.source == "W" for part in question.step.parts)


def test_what_passes_through_the_layers_has_a_gradient():
    text = "Y = X[b,d] + (X * W[d,r]) * B[r,d]"
    assert step(text, sizes="b=8,d=16,r=4", frozen=("X", "W")).gradients
    with pytest.raises(QuestionError, match="X passes through the layers, which need its gradient"):
        step(f"{text} x 4", sizes="b=8,d=16,r=4", frozen=("X", "W"))


def test_a_result_of_whole_numbers_has_no_gradient_as_in_jax():
    with pytest.raises(QuestionError, match="depends on an argument of floating point"):
        step("Y = X[b,d] * W[d,f]", "bf16,Y=s8", sizes="b=8,d=16,f=32")


@pytest.mark.parametrize(
    ("frozen", "message"),
    [
        (("V",), "'V' is frozen, but is not an argument"),
        (("X", "W", "A", "B"), "depends on an argument that is not frozen"),
    ],
)
def test_errors(frozen, message):
    with pytest.raises(QuestionError, match=message):
        step(frozen=frozen)
