"""A model: its parameters, and the architecture of a decoder, whose sizes make them.

Names and shapes are those of Hugging Face's checkpoints: a weight of a linear layer is [outputs, inputs], of
GPT-2 [inputs, outputs]. The matrices of all experts of a layer are one array, as JAX programs hold them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from shardviz.sharding import PartitionSpec, array_bytes


@dataclass(frozen=True)
class ModelParameter:
    """A parameter as its source names it: the shape in elements, and the dtype as HLO prints it. `dims` are
    the logical axes of its dimensions, such as ``("heads", "embed")``, "" for one without a name; () where
    the source says nothing, as `spec` is None where it says no sharding."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    dims: tuple[str, ...] = ()
    spec: PartitionSpec | None = None

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of one whole copy."""
        return array_bytes(self.shape, self.dtype)


LAYER = "{layer}"
"""Stands for the number of a layer in a parameter's name."""


@dataclass(frozen=True)
class Architecture:
    """A decoder of `layers` alike.

    `width` is that of the residual stream, `hidden` that of an MLP, `head_size` that of one of `heads`, which
    share `kv_heads` keys and values. Of `experts` MLPs a token takes `experts_per_token`; 0 is one dense MLP.
    `positions` is the longest sequence, `norms` are those of a layer. Where `tied` the logits are made with
    the embedding's table. `qkv_bias` and `output_bias` are those of attention, whose queries and keys
    `qk_norm` normalizes. `family` is the `model_type` of Hugging Face. GPT-2 differs more: its MLP has two
    matrices, its norms take the mean away, and everything has a bias."""

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
    def cache_arrays(self) -> int:
        """The arrays of a KV cache: keys and values, for each layer."""
        return 2 * self.layers

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


@dataclass(frozen=True)
class Model:
    """A model: its name, where its parameters are said, and these in order; `architecture` is None where
    nothing says how they are used, so that no step can be planned."""

    name: str
    source: str
    parameters: tuple[ModelParameter, ...]
    architecture: Architecture | None = None

    @property
    def elements(self) -> int:
        """The number of parameters, as models are called after it."""
        return sum(parameter.elements for parameter in self.parameters)

    @property
    def nbytes(self) -> int:
        """Bytes of one whole copy of all parameters."""
        return sum(parameter.nbytes for parameter in self.parameters)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes of the parameters, that of the most bytes first."""
        held = Counter[str]()
        for parameter in self.parameters:
            held[parameter.dtype] += parameter.nbytes
        return tuple(dtype for dtype, _ in held.most_common())


Described = tuple[ArchitectureParameter, ...]


def parameters(architecture: Architecture) -> tuple[ModelParameter, ...]:
    """All parameters, in the order in which they are used."""
    sizes = architecture.sizes
    before, of_layer, after = described_parameters(architecture)
    layers = (
        parameter._replace(name=parameter.name.replace(LAYER, str(layer)))
        for layer in range(architecture.layers)
        for parameter in of_layer
    )
    return tuple(
        ModelParameter(name, tuple(sizes[dim] for dim in dims), architecture.dtype, dims)
        for name, dims, _ in (*before, *layers, *after)
    )


def described_parameters(architecture: Architecture) -> tuple[Described, Described, Described]:
    """The parameters before the layers, those of a layer with `LAYER` in their names, those after them."""
    if architecture.is_gpt2:
        return _gpt2()
    embedding = _described("model.embed_tokens.weight", "vocab", "embed")
    norm, head = _described("model.norm.weight", "norm"), _described("lm_head.weight", "vocab", "embed")
    return (embedding,), tuple(_layer(architecture)), (norm,) if architecture.tied else (norm, head)


def _described(name: str, *dims: str, role: str | None = None) -> ArchitectureParameter:
    """A parameter whose role is the word before ``.weight``, unless another is given."""
    return ArchitectureParameter(name, dims, name.split(".")[-2] if role is None else role)


def _layer(of: Architecture) -> Iterator[ArchitectureParameter]:
    def weight(name: str, *dims: str, role: str | None = None) -> ArchitectureParameter:
        return _described(f"model.layers.{LAYER}.{name}.weight", *dims, role=role)

    def linear(name: str, outputs: str, inputs: str, bias: bool) -> Iterator[ArchitectureParameter]:
        yield weight(name, outputs, inputs)
        if bias:
            dim = "norm" if outputs == "embed" else outputs
            yield _described(f"model.layers.{LAYER}.{name}.bias", dim, role="")

    four, is_mixtral = of.norms == 4, of.family == "mixtral"
    yield weight("input_layernorm", "norm")
    yield from linear("self_attn.q_proj", "heads", "embed", of.qkv_bias)
    yield from linear("self_attn.k_proj", "kv_heads", "embed", of.qkv_bias)
    yield from linear("self_attn.v_proj", "kv_heads", "embed", of.qkv_bias)
    if of.qk_norm:
        yield weight("self_attn.q_norm", "head_size", role="")
        yield weight("self_attn.k_norm", "head_size", role="")
    yield from linear("self_attn.o_proj", "embed", "heads", of.output_bias)
    yield weight("post_attention_layernorm", "norm")
    if four:
        yield weight("pre_feedforward_layernorm", "norm")
    if of.experts:
        block = "block_sparse_moe" if is_mixtral else "mlp"
        gate, up, down = ("w1", "w3", "w2") if is_mixtral else ("gate_proj", "up_proj", "down_proj")
        yield weight(f"{block}.gate", "router", "embed", role="router")
        yield weight(f"{block}.experts.{gate}", "experts", "mlp", "embed")
        yield weight(f"{block}.experts.{up}", "experts", "mlp", "embed")
        yield weight(f"{block}.experts.{down}", "experts", "embed", "mlp")
    else:
        yield from linear("mlp.gate_proj", "mlp", "embed", of.mlp_bias)
        yield from linear("mlp.up_proj", "mlp", "embed", of.mlp_bias)
        yield from linear("mlp.down_proj", "embed", "mlp", of.mlp_bias)
    if four:
        yield weight("post_feedforward_layernorm", "norm")


def _gpt2() -> tuple[Described, Described, Described]:
    """Its matrix of queries, keys and values is one."""

    def pair(name: str, *dims: str, role: str = "") -> Described:
        """A weight and its bias, which is of use in a program where it is that of a norm."""
        role = role or name.rpartition(".")[2]
        bias = "norm" if dims[-1] == "embed" else dims[-1]
        own = _described(f"{name}.weight", *dims, role=role)
        return own, _described(f"{name}.bias", bias, role=f"{role}_bias" * (dims == ("norm",)))

    of_layer = (
        *pair(f"h.{LAYER}.ln_1", "norm"),
        *pair(f"h.{LAYER}.attn.c_attn", "embed", "qkv"),
        *pair(f"h.{LAYER}.attn.c_proj", "heads", "embed"),
        *pair(f"h.{LAYER}.ln_2", "norm"),
        *pair(f"h.{LAYER}.mlp.c_fc", "embed", "mlp"),
        *pair(f"h.{LAYER}.mlp.c_proj", "mlp", "embed", role="mlp_c_proj"),
    )
    words = _described("wte.weight", "vocab", "embed")
    return (words, _described("wpe.weight", "positions", "embed", role="")), of_layer, pair("ln_f", "norm")
