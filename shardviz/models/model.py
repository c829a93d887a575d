"""A model: its parameters, and the architecture of a decoder, whose sizes make them."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Literal

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


@dataclass(frozen=True)
class LayerKind:
    """The make of a layer. Its `mixer` takes tokens together: attention; with "latent" keys and values
    (DeepSeek's MLA); a state space ("mamba2") or the gated delta rule ("delta"), whose cache is a state. A
    token sees the last `window` tokens, 0 for all. Of the layer's experts a token takes `experts_per_token`;
    0 is one dense MLP. `sizes` are elements by the letters of `decoder`."""

    mixer: Literal["attention", "latent", "mamba2", "delta"]
    sizes: tuple[tuple[str, int], ...]
    window: int = 0
    experts_per_token: int = 0


@dataclass(frozen=True)
class Architecture:
    """A decoder with a layer of each of `kinds`, in this order.

    `width` is that of the residual stream. `positions` is the longest sequence, `norms` are those of a layer.
    Where `tied` the logits are made with the embedding's table. `qkv_bias` and `output_bias` are those of
    attention, whose queries and keys `qk_norm` normalizes. `family` is the `model_type` of Hugging Face.
    GPT-2 differs more: its MLP has two matrices, its norms take the mean away, and everything has a bias."""

    family: str
    vocab: int
    width: int
    kinds: tuple[LayerKind, ...]
    positions: int
    tied: bool = False
    norms: int = 2
    activation: Literal["silu", "gelu"] = "silu"
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    dtype: str = "bf16"

    @property
    def layers(self) -> int:
        return len(self.kinds)


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
