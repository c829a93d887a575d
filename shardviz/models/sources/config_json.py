"""Hugging Face's `config.json` → an architecture.

The keys and their meaning are those of the configuration classes of `transformers`
(https://huggingface.co/docs/transformers/model_doc/llama and its neighbours).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shardviz.errors import QuestionError
from shardviz.models.model import Architecture
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


_OF_GPT2 = {
    "hidden_size": "n_embd",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
    "intermediate_size": "n_inner",
    "max_position_embeddings": "n_positions",
}
"""The keys of GPT-2 for those of all others."""


def read_architecture(config: StrictTable) -> Architecture:
    """The architecture of a config.

    Raises the table's error for a `model_type` of another family, a size that is missing, and sizes that do
    not fit one another.
    """
    name = config.choice("model_type", tuple(FAMILIES))
    family, is_gpt2 = FAMILIES[name], name == "gpt2"
    key_of = _OF_GPT2 if is_gpt2 else {}

    def size(key: str, usual: int = 0, most: int = MOST) -> int:
        """A size from 1 to `most`; the usual one where the key is missing, or null."""
        own = key_of.get(key, key)
        if usual and config.values.get(own) is None:
            return usual
        found = config.count(own, most)
        if not found:
            config.fail(own, "it is 0", "sizes are 1 or more")
        return found

    def flag(key: str, usual: bool = False) -> bool:
        return usual if is_gpt2 or config.values.get(key) is None else config.typed(key, bool)

    width, heads = size("hidden_size"), size("num_attention_heads")
    kv_heads = heads if is_gpt2 else size("num_key_value_heads", heads)
    if heads % kv_heads:
        config.fail("num_key_value_heads", f"{heads} heads do not share {kv_heads} keys and values evenly")
    number = next((key for key in EXPERTS if key in config.values), EXPERTS[0]) if family.experts else ""
    is_mixed = config.values.get("decoder_sparse_step") not in (None, 1)
    if number and (config.values.get("mlp_only_layers") or is_mixed):
        hint = "give a model whose layers are alike"
        config.fail("mlp_only_layers", "layers of two kinds are not read", hint)
    is_given = not is_gpt2 and config.values.get("head_dim") is not None
    head_size = size("head_dim") if is_given else family.head_size
    if not head_size and width % heads:
        key = key_of.get("hidden_size", "hidden_size")
        config.fail(key, f"{width} is not a multiple of the {heads} heads", "give head_dim")
    return Architecture(
        family=name,
        vocab=size("vocab_size"),
        width=width,
        hidden=size(family.experts or "intermediate_size", 4 * width if is_gpt2 else 0),
        layers=size("num_hidden_layers", most=MOST_LAYERS),
        heads=heads,
        kv_heads=kv_heads,
        head_size=head_size or width // heads,
        positions=size("max_position_embeddings", 0 if is_gpt2 else 4096),
        experts=size(number) if number else 0,
        experts_per_token=size("num_experts_per_tok") if number else 0,
        tied=flag("tie_word_embeddings", family.tied),
        norms=family.norms,
        activation=family.activation,
        qkv_bias=family.qkv_bias or flag("attention_bias"),
        output_bias=flag("attention_bias"),
        mlp_bias=flag("mlp_bias"),
        qk_norm=family.qk_norm,
        dtype=_dtype(config, "f32" if is_gpt2 else "bf16"),
    )


def _dtype(config: StrictTable, usual: str) -> str:
    """The dtype of the weights: older configs call it `torch_dtype`."""
    for key in ("dtype", "torch_dtype"):
        if config.values.get(key) is not None:
            try:
                return canonical_dtype(config.text(key))
            except QuestionError as error:
                config.fail(key, error.message, error.hint)
    return usual
