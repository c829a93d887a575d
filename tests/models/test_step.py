"""A step of a model: the collectives that are published for its sharding."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import shardviz
from shardviz.models.answer import planned_step

SEED = str(Path(shardviz.__file__).parent.parent / "docs" / "rules" / "llama.toml")


def collectives(question, phase="forward", part="layer"):
    step = planned_step(question)
    found = next(each for each in step.parts if each.part.name == part)
    return [
        (each.step.op, each.step.array, each.step.axes) for own, each in found.collectives() if own == phase
    ]


def test_tensor_parallelism_needs_one_all_reduce_for_a_pair_of_matrices(asked):
    """R. Hu, "How to run a Hugging Face model in JAX", part 2, with the rules that are shown there."""
    question = asked("llama-2-7b", SEED, "axis=8", training=None, batch=1, sequence=256)
    assert collectives(question) == [("psum", "attention_out", ("axis",)), ("psum", "mlp_out", ("axis",))]
    assert [str(each.spec) for each in question.split.parameters[2:9]] == [
        *("P('axis', None)",) * 3,
        *("P(None, 'axis')", "P(None)", "P('axis', None)", "P('axis', None)"),
    ]


def test_megatron_all_reduces_twice_forward_and_twice_backward(asked):
    """Shoeybi and others, 2019: two all-reduces in the forward pass of a layer, two in its backward pass."""
    question = asked("llama-3-8b", "tensor", "tensor=8", "v5p:2x2x2", batch=8, training=("none", "adam"))
    step = planned_step(question)
    found = Counter(
        (phase, each.step.op) for phase, each in step.layer.collectives() if each.step.bytes > 2**20
    )
    assert found == {("forward", "psum"): 2, ("backward", "psum"): 2}


def test_the_loss_of_logits_split_over_the_vocabulary_moves_a_number_for_each_token(asked):
    """Shoeybi and others, 2019, section 3: the cross entropy is fused with the parallel logits, which moves
    batch × sequence numbers in place of batch × sequence × vocabulary."""
    question = asked("llama-3-8b", "tensor", "tensor=8", "v5p:2x2x2", batch=8, sequence=1024)
    step = planned_step(question)
    loss = step.parts[-1]
    forward = [(each.step.op, each.step.bytes) for phase, each in loss.collectives() if phase == "forward"]
    assert forward == [("pmax", 8 * 1024 * 2), ("psum", 8 * 1024 * 2), ("psum", 8 * 1024 * 2)]
    backward = [(each.step.op, each.step.array) for phase, each in loss.collectives() if phase == "backward"]
    assert backward == [("psum", "dfinal")]


def test_fully_sharded_data_parallelism_gathers_weights_twice_and_scatters_gradients(asked):
    """Rajbhandari and others, 2020: ZeRO's third stage moves three times the parameters."""
    training = ("none", "adam,gradients=bf16")
    question = asked("llama-3-8b", "fsdp", "data=8", "v5p:2x2x2", batch=64, training=training)
    step = planned_step(question)
    large = [(phase, each) for phase, each in step.layer.collectives() if each.step.bytes > 2**20]
    assert Counter((phase, each.step.op) for phase, each in large) == {
        ("forward", "all_gather"): 7,
        ("backward", "all_gather"): 7,
        ("backward", "psum_scatter"): 7,
    }
    of = question.model.architecture
    layer = 2 * (2 * of.width**2 + 2 * of.width * 1024 + 3 * of.width * 14336)
    assert sum(each.step.bytes for _, each in large) == 3 * layer


def test_data_parallelism_adds_up_gradients(asked):
    question = asked("gpt2", "data", "data=8", batch=64, sequence=1024, training=("none", "adam"))
    step = planned_step(question)
    assert {(phase, each.step.op) for phase, each in step.layer.collectives()} == {("backward", "psum")}


def test_experts_on_devices_of_their_own_exchange_tokens(asked):
    """Lepikhin and others, 2020 (GShard): an all-to-all before the experts and one behind them."""
    question = asked("mixtral-8x7b", "expert", "expert=8", "v5p:2x2x2", batch=8, sequence=2048, training=None)
    assert [op for op, _, _ in collectives(question)].count("all_to_all") >= 2


def test_totals_are_those_of_all_runs(asked):
    question = asked("llama-2-7b", "fsdp", "data=8", "v5p:2x2x2", batch=8, sequence=256)
    step = planned_step(question)
    layer, ends = step.layer.cost, [each.cost for each in step.parts if each is not step.layer]
    assert step.seconds == pytest.approx(
        32 * layer.serial_seconds + sum(each.serial_seconds for each in ends)
    )
    assert sum(step.seconds_by_phase.values()) == pytest.approx(step.seconds)
    assert step.communication_seconds < step.seconds


def test_a_step_is_told_by_its_parts(asked):
    """In a notebook; all of its plans are megabytes."""
    step = planned_step(asked("gpt2", "data", "data=2", training=None))
    assert repr(step).count("ModelPart(name=") == 3
    assert len(repr(step)) < 300


def test_a_model_as_published_runs_go_is_the_sum_of_its_parts(asked):
    step = planned_step(asked("llama-3-8b", "fsdp", "data=8", "v5e:2x4"))
    usual = sum(part.cost.layers * part.cost.published_seconds for part in step.parts)
    assert step.published_seconds == pytest.approx(usual)
    forward = planned_step(asked("llama-3-8b", "fsdp", "data=8", "v5e:2x4", training=None))
    assert forward.published_seconds is None
