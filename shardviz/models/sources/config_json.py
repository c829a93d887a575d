"""Hugging Face's `config.json` → an architecture.

The keys and their meaning are those of the configuration classes of `transformers`
(https://huggingface.co/docs/transformers/model_doc/llama and its neighbours).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shardviz.errors import QuestionError
from shardviz.models.architecture import Architecture
from shardviz.sharding import canonical_dtype
from shardviz.strict_table import StrictTable

MOST = 10**9
"""The largest size that is read."""
MOST_LAYERS = 2000
"""Each layer has parameters of its own; twice the depth of the deepest transformer that was trained
(https://arxiv.org/abs/2203.00555)."""


@dataclass(frozen=True)
class ModelFamily:
    """The architecture of a `model_type`, so far as its config does not say it; `head_size` is the usual one,
    0 where the width is divided among the heads."""

    activation: Literal["silu", "gelu"] = "silu"
    norms: int = 2
    tied: bool = False
    qkv_bias: bool = False
    qk_norm: bool = False
    head_size: int = 0
    experts: str = ""


FAMILIES = {
    "llama": ModelFamily(),
    "mistral": ModelFamily(),
    "mixtral": ModelFamily(experts="intermediate_size"),
    "qwen2": ModelFamily(qkv_bias=True),
    "qwen3": ModelFamily(qk_norm=True, head_size=128),
    "qwen3_moe": ModelFamily(qk_norm=True, head_size=128, experts="moe_intermediate_size"),
    "gemma": ModelFamily("gelu", tied=True, head_size=256),
    "gemma2": ModelFamily("gelu", norms=4, tied=True, head_size=256),
    "gemma3_text": ModelFamily("gelu", norms=4, tied=True, qk_norm=True, head_size=256),
    "gpt2": ModelFamily("gelu", tied=True),
}
"""By `model_type`; `experts` is the key of the width of each, where there are some."""
EXPERTS = ("num_local_experts", "num_experts")
"""The keys of their number: the second until transformers 4 for some families, the first since 5 for all."""


def read_architecture(config: StrictTable) -> Architecture:
    """The architecture of a config.

    Raises the table's error for a `model_type` of another family, a size that is missing, and sizes that do
    not fit one another.
    """
    name = config.choice("model_type", tuple(FAMILIES))
    return _gpt2(config) if name == "gpt2" else _decoder(config, name, FAMILIES[name])


def _decoder(config: StrictTable, name: str, family: ModelFamily) -> Architecture:
    width, heads = _size(config, "hidden_size"), _size(config, "num_attention_heads")
    kv_heads = _size(config, "num_key_value_heads", heads)
    if heads % kv_heads:
        config.fail("num_key_value_heads", f"{heads} heads do not share {kv_heads} keys and values evenly")
    number = next((key for key in EXPERTS if key in config.values), EXPERTS[0]) if family.experts else ""
    if number and (config.values.get("mlp_only_layers") or _other_step(config)):
        config.fail(
            "mlp_only_layers", "layers of two kinds are not read", "give a model whose layers are alike"
        )
    attention_bias = _flag(config, "attention_bias", False)
    return Architecture(
        family=name,
        vocab=_size(config, "vocab_size"),
        width=width,
        hidden=_size(config, family.experts or "intermediate_size"),
        layers=_size(config, "num_hidden_layers", most=MOST_LAYERS),
        heads=heads,
        kv_heads=kv_heads,
        head_size=_size(config, "head_dim", family.head_size or _divided(config, width, heads)),
        positions=_size(config, "max_position_embeddings", 4096),
        experts=_size(config, number) if number else 0,
        experts_per_token=_size(config, "num_experts_per_tok") if number else 0,
        tied=_flag(config, "tie_word_embeddings", family.tied),
        norms=family.norms,
        activation=family.activation,
        qkv_bias=family.qkv_bias or attention_bias,
        output_bias=attention_bias,
        mlp_bias=_flag(config, "mlp_bias", False),
        qk_norm=family.qk_norm,
        dtype=_dtype(config, "bf16"),
    )


def _gpt2(config: StrictTable) -> Architecture:
    width, heads = _size(config, "n_embd"), _size(config, "n_head")
    return Architecture(
        family="gpt2",
        vocab=_size(config, "vocab_size"),
        width=width,
        hidden=_size(config, "n_inner", 4 * width),
        layers=_size(config, "n_layer", most=MOST_LAYERS),
        heads=heads,
        kv_heads=heads,
        head_size=_divided(config, width, heads, "n_embd"),
        positions=_size(config, "n_positions"),
        tied=True,
        activation="gelu",
        dtype=_dtype(config, "f32"),
    )


def _size(config: StrictTable, key: str, usual: int = 0, most: int = MOST) -> int:
    """A size from 1 to `most`; the usual one where the key is missing, or null."""
    if usual and config.values.get(key) is None:
        return usual
    size = config.count(key, most)
    if not size:
        config.fail(key, "it is 0", "sizes are 1 or more")
    return size


def _divided(config: StrictTable, width: int, heads: int, key: str = "hidden_size") -> int:
    if width % heads:
        config.fail(key, f"{width} is not a multiple of the {heads} heads", "give head_dim")
    return width // heads


def _flag(config: StrictTable, key: str, usual: bool) -> bool:
    return usual if config.values.get(key) is None else config.typed(key, bool)


def _other_step(config: StrictTable) -> bool:
    return config.values.get("decoder_sparse_step") not in (None, 1)


def _dtype(config: StrictTable, usual: str) -> str:
    """The dtype of the weights: older configs call it `torch_dtype`."""
    for key in ("dtype", "torch_dtype"):
        if config.values.get(key) is not None:
            try:
                return canonical_dtype(config.text(key))
            except QuestionError as error:
                config.fail(key, error.message, error.hint)
    return usual
