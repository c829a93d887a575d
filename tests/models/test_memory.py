"""Memory of a device, against published numbers: bytes a parameter, keys and values of a token."""

from __future__ import annotations

import pytest

from shardviz.models.answer import model_memory, planned_step

PARAMETERS = 8_030_261_248
"""Of Llama 3 8B."""


@pytest.mark.parametrize(
    ("optimizer", "bytes_each"),
    [
        # Megatron-LM, "Distributed optimizer": bytes a parameter with gradients in f32.
        ("adam", 18),
        ("adam,over=data", 6 + 12 / 4),
        ("adam,gradients=bf16", 16),
        ("adam,master=none", 2 + 4 + 8),
        ("sgd", 10),
    ],
)
def test_bytes_a_parameter(asked, optimizer, bytes_each):
    memory = model_memory(asked("llama-3-8b", "data", "data=4", training=("none", optimizer)))
    held = memory.parameters + memory.gradients + memory.optimizer
    assert held == pytest.approx(PARAMETERS * bytes_each, rel=1e-6)
    assert memory.training == held


@pytest.mark.parametrize(
    ("source", "bytes_a_token"),
    # 2 · layers · heads of keys · their size · 2 bytes: 512 KiB of Llama 2 7B, 320 KiB of Llama 3 70B.
    # DeepSeek-V3's latent vectors take 70 KB ("Insights into DeepSeek-V3", table 1: 70.272 KB).
    [
        ("llama-2-7b", 512 * 1024),
        ("llama-3-70b", 320 * 1024),
        ("mistral-7b", 128 * 1024),
        ("deepseek-v3", 70272),
    ],
)
def test_keys_and_values_of_a_token(asked, source, bytes_a_token):
    whole = model_memory(asked(source, "data", "data=1", batch=1, sequence=1000))
    assert whole.keys_and_values == 1000 * bytes_a_token


@pytest.mark.parametrize(
    ("source", "cached", "bytes_a_token"),
    [
        # 52 of 62 layers see 1,024 tokens, 18 of 36 see 128, and all of Mistral's 4,096.
        ("gemma-3-27b", 52 * 1024 + 10 * 8192, 2 * 16 * 128 * 2),
        ("gpt-oss-120b", 18 * 128 + 18 * 8192, 2 * 8 * 64 * 2),
        ("mistral-7b", 32 * 4096, 2 * 8 * 128 * 2),
    ],
)
def test_layers_with_a_window_keep_no_more_of_keys_and_values(asked, source, cached, bytes_a_token):
    whole = model_memory(asked(source, "data", "data=1", batch=1, sequence=8192))
    assert whole.keys_and_values == cached * bytes_a_token


@pytest.mark.parametrize(
    ("rules", "mesh", "batch", "parts"),
    [
        ("tensor", "tensor=8", 16, 8),
        ("tensor", "tensor=16", 16, 16),
        ("tensor", "tensor=16", 5, 8),
        ("fsdp+tensor", "data=4,tensor=4", 16, 16),
    ],
)
def test_keys_and_values_are_split_as_heads_and_tokens_are(asked, rules, mesh, batch, parts):
    """Llama 3 70B has 8 heads of keys: 16 devices hold those of half of the sequences each, or all twice."""
    whole = model_memory(asked("llama-3-70b", "data", "data=1", batch=batch, sequence=64)).keys_and_values
    own = model_memory(asked("llama-3-70b", rules, mesh, batch=batch, sequence=64)).keys_and_values
    assert own == whole / parts


def test_405b_does_not_fit_128_h100_fully_sharded_and_does_with_tensors(asked):
    """With tensor parallelism of 8 it does, where the sequence between the matrices is split as well
    (Korthikanti and others, 2022)."""
    h100 = {"machine": "h100:16x8", "sequence": 8192}
    fsdp = asked("llama-3.1-405b", "fsdp", "data=128", **h100)
    both = asked("llama-3.1-405b", "fsdp+tensor", "data=16,tensor=8", inputs="data tensor", **h100)
    memories = [model_memory(each, planned_step(each)) for each in (fsdp, both)]
    assert memories[0].over(memories[0].training) > 0
    assert memories[1].over(memories[1].training) == 0


def test_a_step_holds_at_least_what_stays(asked):
    question = asked("llama-2-7b", "fsdp", "data=8", "v5p:2x2x2")
    memory = model_memory(question, planned_step(question))
    assert memory.working >= memory.activations
    # A layer's input in bf16 for each of 32 layers is all that is kept where a layer is computed again.
    assert memory.activations == pytest.approx(32 * 4096 * 4096 * 2, rel=0.01)
    assert memory.training == memory.parameters + memory.optimizer + max(memory.working, memory.gradients)
