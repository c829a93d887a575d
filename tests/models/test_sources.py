"""Names, configs and headers become parameters; their numbers are those that are published."""

from __future__ import annotations

import json
import math

import pytest

from shardviz.errors import ShardvizError
from shardviz.models.decoder import parts
from shardviz.models.sources import built_in_model, built_in_names, read_model

PUBLISHED = {
    "gpt2": 124_439_808,
    "gpt2-xl": 1_557_611_200,
    "llama-2-7b": 6_738_417_664 - 32 * 64,
    "llama-2-13b": 13_015_866_880 - 40 * 64,
    "llama-2-70b": 68_976_653_312 - 80 * 64,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "llama-3.1-405b": 405_853_388_800,
    "mistral-7b": 7_241_732_096,
    "mixtral-8x7b": 46_702_792_704,
    "gemma-2b": 2_506_172_416,
    "gemma-7b": 8_537_680_896,
    "gemma-2-9b": 9_241_705_984,
    "qwen2-7b": 7_615_616_512,
    "qwen3-8b": 8_190_735_360,
    "qwen3-30b-a3b": 30_532_122_624,
    "gemma-3-1b": 999_885_952,
    # Table 1 of the report: 675, 1,012 and 1,416 million of embeddings; 3,209, 10,759 and 25,600 of others.
    "gemma-3-4b": 3_884 * 10**6,
    "gemma-3-12b": 11_771 * 10**6,
    "gemma-3-27b": 27_016 * 10**6,
    # 109 and 402 billion (llama.com) with the encoder of pictures, of 0.9 billion.
    "llama-4-scout": 107.8e9,
    "llama-4-maverick": 400.8e9,
    # The report: 671 billion, 37 for a token.
    "deepseek-v3": 671.0e9,
    "mamba2-2.7b": 2_702_599_680,
    # "80B in total and 3B activated".
    "qwen3-next-80b-a3b": 79.7e9,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
}
"""Parameters, as Hugging Face counts those of the checkpoints (`safetensors.total` of its API), for Llama 2
without the rotary frequencies of its layers, which it stores; those of Gemma, GPT-2 and Mixtral as Keras'
presets have them."""
SEED = """
model.embed_tokens.weight (32000, 4096)
model.layers.0.self_attn.q_proj.weight (4096, 4096)
model.layers.0.self_attn.k_proj.weight (4096, 4096)
model.layers.0.self_attn.v_proj.weight (4096, 4096)
model.layers.0.self_attn.o_proj.weight (4096, 4096)
model.layers.0.mlp.gate_proj.weight (11008, 4096)
model.layers.0.mlp.up_proj.weight (11008, 4096)
model.layers.0.mlp.down_proj.weight (4096, 11008)
model.layers.0.input_layernorm.weight (4096,)
model.layers.0.post_attention_layernorm.weight (4096,)
""".strip()
"""The first lines that a Llama 2 of 7B prints (R. Hu, "How to run a Hugging Face model in JAX", part 2)."""


@pytest.mark.parametrize("name", built_in_names())
def test_a_model_has_as_many_parameters_as_are_published(name):
    is_rounded = PUBLISHED[name] % 10**5 == 0
    assert built_in_model(name).elements == pytest.approx(PUBLISHED[name], rel=is_rounded * 2e-3, abs=0)


@pytest.mark.parametrize(
    ("name", "active"),
    # Of the reports and model cards; that of gpt-oss leaves out the embedding.
    [("deepseek-v3", 37e9), ("gpt-oss-120b", 5.13e9), ("gpt-oss-20b", 3.61e9), ("llama-4-maverick", 17e9)],
)
def test_a_token_takes_as_many_parameters_as_are_published(name, active):
    model = built_in_model(name)
    used = 0
    for part in parts(model.architecture):
        for each in part.parameters:
            elements = len(part.layers) * math.prod(each.shape(part.sizes))
            if each.dims[0] == "experts":
                elements = elements * part.kind.experts_per_token // part.sizes["e"]
            used += elements * (each.name != "model.embed_tokens.weight" or not name.startswith("gpt-oss"))
    assert used == pytest.approx(active, rel=0.02)


@pytest.mark.parametrize("name", ["meta-llama/Llama-3.1-8B", "meta-llama/llama-3.1-8b", "LLaMA-3.1-8B"])
def test_a_model_is_known_by_its_repository_as_well(name):
    assert read_model(name) == built_in_model("llama-3.1-8b")


def test_llama_3_70b_takes_as_many_bytes_as_is_published():
    assert built_in_model("llama-3-70b").nbytes == pytest.approx(141.1e9, rel=1e-3)


def test_names_and_shapes_are_those_of_a_checkpoint():
    named = {each.name: each.shape for each in built_in_model("llama-2-7b").parameters}
    for line in SEED.splitlines():
        name, _, shape = line.partition(" ")
        assert named[name] == tuple(map(int, shape.strip("()").rstrip(",").split(", ")))


def test_a_config_says_what_the_name_says(config):
    built_in = built_in_model("qwen2-7b")
    path = config(
        model_type="qwen2",
        vocab_size=152064,
        hidden_size=3584,
        intermediate_size=18944,
        num_hidden_layers=28,
        num_attention_heads=28,
        num_key_value_heads=4,
        torch_dtype="bfloat16",
        rope_theta=1e6,
    )
    assert read_model(path).parameters == built_in.parameters


@pytest.mark.parametrize(
    ("changes", "elements"),
    [
        # By hand: V·D twice + D + L·(2·D·H·h + 2·D·K·h + 3·D·F + 2·D).
        ({}, 2 * 64 * 32 + 32 + 3 * (2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 96 + 64)),
        ({"tie_word_embeddings": True}, 64 * 32 + 32 + 3 * (2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 96 + 64)),
        ({"head_dim": 8}, 2 * 64 * 32 + 32 + 3 * (2 * 32 * 64 + 2 * 32 * 32 + 3 * 32 * 96 + 64)),
        # Its own head size counts, also where the heads do not divide the width.
        (
            {"hidden_size": 30, "head_dim": 4},
            2 * 64 * 30 + 30 + 3 * (2 * 30 * 32 + 2 * 30 * 16 + 3 * 30 * 96 + 60),
        ),
        (
            {"attention_bias": True},
            2 * 64 * 32 + 32 + 3 * (2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 96 + 64 + 32 + 2 * 16 + 32),
        ),
        (
            {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2},
            2 * 64 * 32 + 32 + 3 * (2 * 32 * 32 + 2 * 32 * 16 + 4 * 3 * 32 * 96 + 4 * 32 + 64),
        ),
        *(
            # transformers 4 writes num_experts, 5 num_local_experts.
            (
                {
                    "model_type": "qwen3_moe",
                    "head_dim": 4,
                    "moe_intermediate_size": 96,
                    "num_experts_per_tok": 2,
                    number: 4,
                },
                2 * 64 * 32 + 32 + 3 * (2 * 32 * 32 + 2 * 32 * 16 + 4 * 3 * 32 * 96 + 4 * 32 + 64 + 2 * 4),
            )
            for number in ("num_experts", "num_local_experts")
        ),
        (
            {"model_type": "qwen3", "head_dim": 4},
            2 * 64 * 32 + 32 + 3 * (2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 96 + 64 + 2 * 4),
        ),
        (
            {"model_type": "gemma2", "head_dim": 4},
            64 * 32 + 32 + 3 * (2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 96 + 4 * 32),
        ),
    ],
)
def test_the_parameters_of_a_config(config, changes, elements):
    assert read_model(config(**changes)).elements == elements


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"model_type": "bert"}, "model_type: 'bert' is none of llama, mistral,"),
        ({"hidden_size": None}, "hidden_size: it is null, not a number"),
        ({"hidden_size": 0}, "hidden_size: it is 0"),
        ({"hidden_size": "32"}, "hidden_size: it is a text, not a number"),
        ({"hidden_size": 30}, "hidden_size: 30 is not a multiple of the 8 heads"),
        ({"num_key_value_heads": 3}, "num_key_value_heads: 8 heads do not share 3 keys and values evenly"),
        ({"torch_dtype": "float99"}, "torch_dtype: unknown dtype 'float99'"),
        ({"num_hidden_layers": 100_000}, "num_hidden_layers: 100,000 is outside the range 0 to 2,000"),
        (
            {"model_type": "gpt2", "n_embd": 8, "n_head": 2, "n_layer": 10**9},
            "n_layer: 1,000,000,000 is outside the range 0 to",
        ),
        ({"tie_word_embeddings": 1}, "tie_word_embeddings: it is a number, not a truth value"),
    ],
)
def test_a_config_that_cannot_be_read_names_the_key(config, changes, error):
    path = config(**changes)
    with pytest.raises(ShardvizError) as raised:
        read_model(path)
    assert raised.value.message.startswith(f"'{path}': {error}")


def test_a_config_that_is_not_json(tmp_path):
    path = tmp_path / "config.json"
    path.write_text("{")
    with pytest.raises(ShardvizError, match="it is not JSON: Expecting property name"):
        read_model(str(path))
    path.write_text("[1]")
    with pytest.raises(ShardvizError, match="it is a list, not a table"):
        read_model(str(path))


def test_a_name_that_is_almost_known():
    with pytest.raises(ShardvizError) as raised:
        read_model("llama-3-7b")
    assert raised.value.message == "there is no model 'llama-3-7b'"
    assert raised.value.hint.startswith("did you mean llama-3-70b? known are gpt2,")


# Headers.


def test_a_header_says_names_shapes_and_dtypes(weights):
    path = weights({"b.10": ("BF16", [4, 8]), "b.9": ("F8_E4M3", [2]), "a": ("I64", [])})
    found = [(each.name, each.shape, each.dtype) for each in read_model(path).parameters]
    assert found == [("a", (), "s64"), ("b.9", (2,), "f8e4m3fn"), ("b.10", (4, 8), "bf16")]


def test_the_library_writes_what_is_read(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    import numpy as np

    path = tmp_path / "model.safetensors"
    numpy.save_file({"w": np.zeros((3, 5), np.float16), "x": np.zeros(7, np.int8)}, path)
    found = [(each.name, each.shape, each.dtype) for each in read_model(str(path)).parameters]
    assert found == [("w", (3, 5), "f16"), ("x", (7,), "s8")]


def test_an_index_names_many_files(weights, tmp_path):
    weights({"a": ("F32", [2]), "unused": ("F32", [9])}, "one.safetensors")
    weights({"b": ("F32", [3])}, "two.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}))
    assert [(each.name, each.shape) for each in read_model(str(index)).parameters] == [
        ("a", (2,)),
        ("b", (3,)),
    ]
    assert read_model(str(tmp_path)).name == tmp_path.name
    index.write_text(json.dumps({"weight_map": {"c": "one.safetensors"}}))
    with pytest.raises(ShardvizError, match=r"weight_map.c: 'one.safetensors' has no such tensor"):
        read_model(str(index))
    for name in ("../one.safetensors", "", ".", "/", "a/"):
        index.write_text(json.dumps({"weight_map": {"c": name}}))
        with pytest.raises(ShardvizError, match=r"weight_map.c: .* is not a file beside the index"):
            read_model(str(index))
    for name in ("..", "gone", "~", "~x", "a" * 255):
        index.write_text(json.dumps({"weight_map": {"c": name}}))
        with pytest.raises(ShardvizError):
            read_model(str(index))


def test_a_config_beside_the_weights_says_what_they_are_for(weights, config):
    own = read_model(config())
    found = read_model(weights({each.name: ("BF16", list(each.shape)) for each in own.parameters}))
    assert found.architecture == own.architecture
    assert {each.name: each.dims for each in found.parameters} == {
        each.name: each.dims for each in own.parameters
    }


def test_experts_of_a_layer_are_one_array(weights):
    name = "model.layers.0.block_sparse_moe.experts.{}.w1.weight"
    found = read_model(weights({name.format(number): ("BF16", [6, 4]) for number in range(12)}))
    (only,) = found.parameters
    assert only.name == "model.layers.0.block_sparse_moe.experts.w1.weight"
    assert only.shape == (12, 6, 4)
    odd = read_model(weights({name.format(0): ("BF16", [6, 4]), name.format(1): ("BF16", [5, 4])}))
    assert len(odd.parameters) == 2


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", "it does not begin with the length of a header"),
        (b"\xff" * 40, "it does not begin with the length of a header"),
        (b"\x40" + bytes(7) + b"{}", "its header ends after 2 bytes of 64"),
        (b"\x02" + bytes(7) + b"[]", "it is a list, not a table"),
        (b"\x08" + bytes(7) + b'{"a": 1}', "a: it is a number, not a table"),
        (b"\x0f" + bytes(7) + b'{"a": {"x": 1}}', "a.dtype: it is missing"),
    ],
)
def test_a_file_of_another_format(tmp_path, content, error):
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(ShardvizError) as raised:
        read_model(str(path))
    assert error in raised.value.message


@pytest.mark.parametrize("name", ["nothing/config.json", "nothing.safetensors", "/dev/null.safetensors"])
def test_a_file_that_is_not_there(name):
    with pytest.raises(ShardvizError, match=r"the file does not exist|cannot be read"):
        read_model(name)


def test_a_folder_without_a_model(tmp_path):
    with pytest.raises(ShardvizError, match=r"it has no config.json and no .safetensors file"):
        read_model(str(tmp_path))


def test_a_repository_that_is_not_built_in_says_what_to_fetch():
    with pytest.raises(ShardvizError) as raised:
        read_model("meta-llama/Llama-9-1B")
    assert raised.value.hint.endswith("hf download meta-llama/Llama-9-1B config.json")
