"""The architecture of a decoder: its sizes, and the parameters that these make.

Names and shapes are those of Hugging Face's checkpoints: a weight of a linear layer is [outputs, inputs], of
GPT-2 [inputs, outputs]. The matrices of all experts of a layer are one array, as JAX programs hold them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from shardviz.models.parameter import ModelParameter

LAYER = "{layer}"
"""Stands for the number of a layer in a parameter's name."""


@dataclass(frozen=True)
class Architecture:
    """A decoder of `layers` alike.

    `width` is that of the residual stream, `hidden` that of an MLP, `head_size` that of one of `heads`, which
    share `kv_heads` keys and values. Of `experts` MLPs a token takes `experts_per_token`; 0 is one dense MLP.
    `positions` is the longest sequence, `norms` are those of a layer. The logits are made with the
    embedding's table where they are `tied`. `qkv_bias` and `output_bias` are those of attention, and with
    `qk_norm` its queries and keys are normalized. `family` is the `model_type` of Hugging Face. GPT-2 differs
    more: its MLP has two matrices, its norms take the mean away, and everything has a bias.
    """

    family: str
    vocab: int
    width: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    positions: int
    experts: int = 0
    experts_per_token: int = 0
    tied: bool = False
    norms: int = 2
    activation: Literal["silu", "gelu"] = "silu"
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    dtype: str = "bf16"

    @property
    def is_gpt2(self) -> bool:
        return self.family == "gpt2"

    @property
    def sizes(self) -> dict[str, int]:
        """Elements of every logical axis of a parameter."""
        return {
            "vocab": self.vocab,
            "embed": self.width,
            "norm": self.width,
            "heads": self.heads * self.head_size,
            "kv_heads": self.kv_heads * self.head_size,
            "qkv": (self.heads + 2 * self.kv_heads) * self.head_size,
            "head_size": self.head_size,
            "mlp": self.hidden,
            "experts": self.experts,
            "router": self.experts,
            "positions": self.positions,
        }


class ArchitectureParameter(NamedTuple):
    """A parameter of an architecture; `role` is its name in the program of a layer, "" where it has none."""

    name: str
    dims: tuple[str, ...]
    role: str


def parameters(architecture: Architecture) -> tuple[ModelParameter, ...]:
    """All parameters, in the order in which they are used."""
    sizes, found = architecture.sizes, []

    def add(each: ArchitectureParameter, layer: int = 0) -> None:
        shape = tuple(sizes[dim] for dim in each.dims)
        name = each.name.replace(LAYER, str(layer))
        found.append(ModelParameter(name, shape, architecture.dtype, each.dims))

    before, of_layer, after = described_parameters(architecture)
    for each in before:
        add(each)
    for layer in range(architecture.layers):
        for each in of_layer:
            add(each, layer)
    for each in after:
        add(each)
    return tuple(found)


Described = tuple[ArchitectureParameter, ...]


def described_parameters(architecture: Architecture) -> tuple[Described, Described, Described]:
    """The parameters before the layers, those of a layer with `LAYER` in their names, those after them."""
    if architecture.is_gpt2:
        return _gpt2()
    embedding = ArchitectureParameter("model.embed_tokens.weight", ("vocab", "embed"), "embed_tokens")
    after = [ArchitectureParameter("model.norm.weight", ("norm",), "norm")]
    if not architecture.tied:
        after.append(ArchitectureParameter("lm_head.weight", ("vocab", "embed"), "lm_head"))
    of_layer = tuple(each._replace(name=f"model.layers.{LAYER}.{each.name}") for each in _layer(architecture))
    return (embedding,), of_layer, tuple(after)


def _layer(architecture: Architecture) -> Iterator[ArchitectureParameter]:
    four = architecture.norms == 4
    yield ArchitectureParameter("input_layernorm.weight", ("norm",), "input_layernorm")
    for name, dim in (("q_proj", "heads"), ("k_proj", "kv_heads"), ("v_proj", "kv_heads")):
        yield ArchitectureParameter(f"self_attn.{name}.weight", (dim, "embed"), name)
        if architecture.qkv_bias:
            yield ArchitectureParameter(f"self_attn.{name}.bias", (dim,), "")
    if architecture.qk_norm:
        yield ArchitectureParameter("self_attn.q_norm.weight", ("head_size",), "")
        yield ArchitectureParameter("self_attn.k_norm.weight", ("head_size",), "")
    yield ArchitectureParameter("self_attn.o_proj.weight", ("embed", "heads"), "o_proj")
    if architecture.output_bias:
        yield ArchitectureParameter("self_attn.o_proj.bias", ("norm",), "")
    yield ArchitectureParameter("post_attention_layernorm.weight", ("norm",), "post_attention_layernorm")
    if four:
        yield ArchitectureParameter(
            "pre_feedforward_layernorm.weight", ("norm",), "pre_feedforward_layernorm"
        )
    yield from _mlp(architecture)
    if four:
        yield ArchitectureParameter(
            "post_feedforward_layernorm.weight", ("norm",), "post_feedforward_layernorm"
        )


def _mlp(architecture: Architecture) -> Iterator[ArchitectureParameter]:
    gate, up, down = ("mlp", "embed"), ("mlp", "embed"), ("embed", "mlp")
    if not architecture.experts:
        for name, dims in (("gate_proj", gate), ("up_proj", up), ("down_proj", down)):
            yield ArchitectureParameter(f"mlp.{name}.weight", dims, name)
            if architecture.mlp_bias:
                yield ArchitectureParameter(f"mlp.{name}.bias", ("norm",) if dims == down else ("mlp",), "")
        return
    is_mixtral = architecture.family == "mixtral"
    block = "block_sparse_moe" if is_mixtral else "mlp"
    words = ("w1", "w3", "w2") if is_mixtral else ("gate_proj", "up_proj", "down_proj")
    yield ArchitectureParameter(f"{block}.gate.weight", ("router", "embed"), "router")
    for name, dims in zip(words, (gate, up, down), strict=True):
        yield ArchitectureParameter(f"{block}.experts.{name}.weight", ("experts", *dims), name)


def _gpt2() -> tuple[Described, Described, Described]:
    """Its matrix of queries, keys and values is one."""
    matrices = (
        ("ln_1", ("norm",)),
        ("attn.c_attn", ("embed", "qkv")),
        ("attn.c_proj", ("heads", "embed")),
        ("ln_2", ("norm",)),
        ("mlp.c_fc", ("embed", "mlp")),
        ("mlp.c_proj", ("mlp", "embed")),
    )
    roles = {"attn.c_proj": "c_proj", "mlp.c_proj": "mlp_c_proj"}
    of_layer = []
    for name, dims in matrices:
        own = f"h.{LAYER}.{name}"
        role = roles.get(name, name.rpartition(".")[2])
        of_layer.append(ArchitectureParameter(f"{own}.weight", dims, role))
        bias = "norm" if dims[-1] == "embed" else dims[-1]
        of_layer.append(ArchitectureParameter(f"{own}.bias", (bias,), f"{role}_bias" * (dims == ("norm",))))
    tables = (
        ArchitectureParameter("wte.weight", ("vocab", "embed"), "wte"),
        ArchitectureParameter("wpe.weight", ("positions", "embed"), ""),
    )
    after = (
        ArchitectureParameter("ln_f.weight", ("norm",), "ln_f"),
        ArchitectureParameter("ln_f.bias", ("norm",), "ln_f_bias"),
    )
    return tables, tuple(of_layer), after
