"""The words for an optimizer, and what is wrong with others."""

from __future__ import annotations

import pytest

from shardviz.errors import NotationError, QuestionError
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.problem.training import Optimizer, Training, parse_optimizer, parse_training

MESH = parse_mesh("data=2,model=4")


@pytest.mark.parametrize(
    ("text", "optimizer", "written"),
    [
        ("adam", Optimizer("adam"), "adam"),
        (" sgd ", Optimizer("sgd"), "sgd"),
        ("adam, moments=bfloat16", Optimizer("adam", moments="bf16"), "adam,moments=bf16"),
        ("sgd,master=none", Optimizer("sgd", master=""), "sgd,master=none"),
        ("adam,over=data", Optimizer("adam", over=("data",)), "adam,over=data"),
        (
            "adam,over=model,gradients=bf16,over=data",
            Optimizer("adam", gradients="bf16", over=("model", "data")),
            "adam,gradients=bf16,over=model,over=data",
        ),
    ],
)
def test_optimizers(text, optimizer, written):
    assert parse_optimizer(text, MESH) == optimizer
    assert str(optimizer) == written
    assert parse_optimizer(written, MESH) == optimizer


def test_no_optimizer():
    assert parse_training(True, "dots", "none", MESH) == Training("dots")
    assert parse_optimizer("", MESH) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("adagrad", "'adagrad' is not an optimizer, at character 1"),
        ("adam,data", "'data' does not apply to adam, at character 6"),
        ("adam,moments=", "'moments=' does not apply to adam"),
        ("adam,moments=f32,moments=bf16", "'moments=bf16' does not apply to adam"),
        ("sgd,moments=bf16", "'moments=bf16' does not apply to sgd"),
        ("adam,over=X", "'X' is not an axis of the mesh"),
        ("adam,over=data,over=data", "'data' is named twice"),
        ("adam,moments=f33", "unknown dtype 'f33'"),
        (",", "'' is not an optimizer"),
    ],
)
def test_errors(text, message):
    with pytest.raises(NotationError) as error:
        parse_optimizer(text, MESH)
    assert message in error.value.message
    assert error.value.hint


def test_remat():
    with pytest.raises(QuestionError, match="'all' is not a remat policy"):
        parse_training(True, "all", "none", MESH)


def test_a_forward_pass_alone():
    assert parse_training(False, "none", "none", MESH) is None
    with pytest.raises(QuestionError, match="--remat needs a train step"):
        parse_training(False, "layer", "none", MESH)
    with pytest.raises(QuestionError, match="--optimizer needs a train step"):
        parse_training(False, "none", "adam", MESH)
