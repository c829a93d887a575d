"""Inference: the figures of "How to Scale Your Model", parts 7 and 8, and FLOPs and bytes by JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

import shardviz
from shardviz.errors import QuestionError
from shardviz.models.answer import in_dtype
from shardviz.models.sources import read_model

BOOK = {"rules": "tensor", "machine": "v5e:2x4", "mesh": "tensor=8", "batch": 32, "sequence": 8192}
INT8 = {"dtype": "int8", "cache": "int8"}


def served(model="llama-3-70b", **options):
    return shardviz.serving(model, **{**BOOK, **options})


def test_a_token_of_llama_on_eight_chips():
    """Part 8: 70 GB of weights and 41.9 GB of cache at 8 · 8.1e11 B/s are 17 ms; 235 tokens/s a chip."""
    answer = served(**INT8)
    whole = answer.question.model.nbytes + 32 * answer.cache_bytes
    assert answer.cache_bytes == 160 * 1024 * 8192
    assert whole == pytest.approx(112e9, rel=0.02)
    assert 8 * answer.decode.memory == pytest.approx(whole, rel=0.01)
    least = 8 * answer.decode.memory / (8 * 820e9)
    assert least == pytest.approx(17e-3, rel=0.02)
    # Norms, residuals and softmax pass through HBM as well.
    assert least < answer.decode.step.overlapped_seconds < 1.1 * least
    assert answer.decode.bound == "HBM"
    assert (answer.fewest_devices, answer.smallest_machine) == (7, "v5e:2x4")
    # The book counts with 16e9 bytes and finds 43; a v5e has 15.75 GiB for programs.
    assert answer.largest_batch == 48
    assert answer.decode in answer.batches
    assert [each.batch for each in answer.batches] == [1, 2, 4, 8, 16, 32, 48]


def test_a_cache_of_fewer_heads_than_devices_is_split_by_sequences():
    """Part 8: with 8 heads of keys on 16 chips the cache is split over the batch, and a step takes half as
    long as on 8; without that each device would read the same heads as another."""
    eight, sixteen = served(**INT8), served(mesh="tensor=16", machine="v5e:4x4", **INT8)
    kept = [each.decode.memory - each.question.split.bytes_per_device for each in (eight, sixteen)]
    assert kept[0] == 2 * kept[1]
    times = [each.decode.step.overlapped_seconds for each in (eight, sixteen)]
    assert times[1] == pytest.approx(times[0] / 2, rel=0.1)


def test_a_cache_along_a_sequence_axis_stays_where_it_is():
    """Flash decoding: each of 4 devices reads its quarter of the cache, and sends three quarters of 4 sums in
    f32, of 4 sequences, 2 heads of keys and 4 queries of each. Those of the values are added up behind the
    output's weight, with its own over the heads: once 4 × 4,096 in bf16 over all 16."""
    whole, split = (
        served("llama-3-8b", machine="v5e:4x4", mesh="seq=4,tensor=4", batch=4, inputs=inputs)
        for inputs in ("", "_ seq")
    )
    kept = [each.decode.memory - each.question.split.bytes_per_device for each in (whole, split)]
    assert kept[0] == 4 * kept[1]
    layer = next(part.cost for part in split.decode.step.parts if part.part.kind)
    over = [one.step for one in layer.steps if one.is_collective and "seq" in one.step.axes]
    assert [(step.op, step.array, step.wire_bytes) for step in over] == [
        ("all_gather", "heads", 3 * 4 * 2 * 4 * 4),
        ("psum", "attention_out", 2 * 15 * 4 * 4096 * 2 // 16),
    ]


def test_the_largest_batch_fits():
    """Four devices share the sequences of a head of keys, so a batch that 4 does not divide is replicated."""
    answer = served(mesh="tensor=32", machine="v5e:4x8", **INT8)
    assert answer.largest_batch % 4 == 0
    held = {each.batch: each.memory for each in answer.batches}
    limit, weights = answer.memory.limit, answer.memory.parameters
    assert limit - 4 * answer.cache_bytes / 32 < held[answer.largest_batch] <= limit
    assert held[32] - weights == 32 * answer.cache_bytes / 32


@pytest.mark.parametrize(
    ("dtypes", "batch"),
    [({}, 240), (INT8, 120), ({**INT8, "activations": "int8"}, 240)],
    ids=["bf16", "int8 weights", "all int8"],
)
def test_the_batch_from_which_matmuls_are_bound_by_compute(dtypes, batch):
    """Part 7, "critical batch size"."""
    assert served(**dtypes).critical_batch == pytest.approx(batch, rel=0.01)


@pytest.mark.parametrize(("dtype", "chips"), [("bf16", "v5e:4x4"), ("int8", "v5e:2x4"), ("int4", "v5e:2x2")])
def test_the_fewest_chips_that_hold_the_weights(dtype, chips):
    """Part 8: the smallest slices in bf16, int8 and int4."""
    assert served(dtype=dtype, cache="int8", batch=1, sequence=128).smallest_machine == chips


def test_prefill_takes_the_flops_of_the_parameters():
    """Part 8: 2 · 70e9 · 8192 FLOPs, beside which attention's are some."""
    answer = served(**INT8)
    assert 8 * answer.prefill.flops == pytest.approx(2 * 70e9 * 8192, rel=0.1)


def test_the_flops_of_a_decode_step_are_those_of_xla(config):
    """One device, so that nothing is split; XLA also counts softmax, norms and residuals."""
    answer = shardviz.serving(
        config(hidden_size=512, intermediate_size=1536, max_position_embeddings=4096),
        rules="tensor",
        mesh="tensor=1",
        batch=16,
        sequence=1024,
    )
    shapes = {
        "x": (16, 512),
        "q": (512, 4, 2, 64),
        "k": (512, 4, 64),
        "o": (4, 2, 64, 512),
        "up": (512, 1536),
    }
    shapes |= {"v": shapes["k"], "gate": shapes["up"], "down": (1536, 512)}
    shapes |= dict.fromkeys(("keys", "values"), (16, 1024, 4, 64))

    def layer(a):
        query = jnp.einsum("bd,dkgh->bkgh", a["x"], a["q"])
        new = [jnp.einsum("bd,dkh->bkh", a["x"], a[name]) for name in "kv"]
        weights = jax.nn.softmax(jnp.einsum("bkgh,bskh->bkgs", query, a["keys"]))
        x = a["x"] + jnp.einsum("bkgs,bskh,kghd->bd", weights, a["values"], a["o"])
        return x + (jax.nn.silu(x @ a["gate"]) * (x @ a["up"])) @ a["down"], new

    given = {name: jax.ShapeDtypeStruct(shape, "float32") for name, shape in shapes.items()}
    counted = jax.jit(layer).lower(given).compile().cost_analysis()
    own = answer.decode.step.layer.cost
    assert own.flops == pytest.approx(counted["flops"], rel=0.05)
    read = sum(step.hbm_bytes for step in own.steps if step.step.op in ("einsum", "apply"))
    assert read > 2 * 16 * 1024 * 4 * 64 * 2


def test_experts_are_all_read_and_few_are_computed():
    """Each of Mixtral's tokens takes 2 of 8 experts: the batch that hides their weights is near 4 times a
    dense model's."""
    answer = served("mixtral-8x7b", machine="h100:8")
    dense = served("llama-3-8b", machine="h100:8")
    assert 3.2 < answer.critical_batch / dense.critical_batch < 4
    assert answer.decode.step.overlapped_seconds > answer.decode.memory / 3.35e12


@pytest.mark.parametrize("batch", [1, 7])
def test_the_critical_batch_does_not_depend_on_the_batch(batch):
    """Of Qwen3-30B-A3B each token takes 8 of 128 experts: 623e6 weights of a layer are read, 56.9e6 used. A
    batch of 7 in 2 replicas is padded to 8."""
    one = served("qwen3-30b-a3b", rules="tensor", mesh="tensor=1", machine="h100:1", batch=batch, sequence=64)
    attention, expert = 2 * 2048 * (4096 + 512) + 2048 * 128, 3 * 2048 * 768
    weights = (attention + 128 * expert) / (attention + 8 * expert)
    assert one.critical_batch == pytest.approx(989e12 / 3.35e12 * weights, rel=0.01)
    for model in ("mixtral-8x7b", "llama-3-8b"):
        two = served(model, rules="data+tensor", mesh="data=2,tensor=4", batch=batch, sequence=64)
    assert two.critical_batch == pytest.approx(2 * 197e12 / 820e9, rel=0.01)


def test_without_a_figure_of_the_machine_no_speed_is_known():
    """NeuronLink's bandwidth is not published: a step may take longer than its work."""
    answer = served("llama-3-8b", mesh="tensor=4", machine="trn2:4", batch=1, sequence=64)
    assert {(each.tokens_per_s, each.bound) for each in answer.batches} == {(None, "unknown")}
    assert "≥" in str(answer)
    assert " 1 needs at least 1 trn2" in str(answer)
    assert answer.document()["decode"]["tokens_per_s_per_device"] is None


def test_weights_keep_the_dtypes_of_their_source():
    """A file may hold weights in another dtype than that of its config."""
    answer = served(
        in_dtype(read_model("gpt2"), "bf16", "f32"), mesh="tensor=1", machine="v5e:1x1", sequence=64
    )
    assert answer.question.model.dtypes == ("bf16",)
    assert answer.cache_dtype == "f32"


def test_replicas_decode_sequences_of_their_own():
    one = served("llama-3-8b", mesh="tensor=4", machine="v5e:2x2", batch=16)
    two = served("llama-3-8b", rules="data+tensor", mesh="data=2,tensor=4", batch=32)
    assert two.prompts == 2
    assert two.decode.memory == one.decode.memory
    assert two.critical_batch == pytest.approx(2 * one.critical_batch)
    assert two.largest_batch == 2 * one.largest_batch


def test_a_device_reads_all_its_weights_however_few_its_sequences():
    """No compiler splits the work of a matmul over an axis of which each device has the whole weight."""
    answer = served("llama-3-8b", mesh="data=4,tensor=2", batch=8, sequence=1024)
    model = answer.question.model
    looked_up = next(one.nbytes for one in model.parameters if "embed_tokens" in one.name)
    assert answer.decode.step.overlapped_seconds > (model.nbytes - looked_up) / 2 / 820e9


@pytest.mark.parametrize("model", ["gpt2", "gemma-2-9b", "qwen3-30b-a3b", "mistral-7b"])
def test_other_families(model):
    answer = served(model, sequence=512)
    assert answer.decode.step.seconds > 0
    assert answer.decode.step.seconds < answer.prefill.seconds * 32


def test_what_is_refused():
    with pytest.raises(QuestionError, match="takes 8,192 tokens, a context has 8,193"):
        served(sequence=8193)
    with pytest.raises(QuestionError, match="has no config"):
        served({"w": jax.ShapeDtypeStruct((4, 4), "float32")})
