"""The parts of a decoder: its embedding, the layers of each kind, its logits; and the parameters of each.

Names and shapes are those of Hugging Face's checkpoints: a weight of a linear layer is [outputs, inputs], of
GPT-2 [inputs, outputs]. The matrices of all experts of a layer are one array, as JAX programs hold them.

A dimension of a parameter has a logical axis, and is made of dimensions of programs, a letter each, the
major first: heads of queries are ``kgh``, k heads of keys with g queries for each, of size h. A dimension of
several matrices in one is made of the rows of each, ``kn+kr``."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from string import Template

from shardviz.models.model import Architecture, LayerKind, ModelParameter
from shardviz.text_tables import rows_of, sections_beside

LAYER = "{layer}"
"""Stands for the number of a layer in a parameter's name."""
LETTERS = {"vocab": "v", "embed": "d", "norm": "d", "mlp": "f", "experts": "e", "router": "e"}
LETTERS |= {"heads": "kgh", "kv_heads": "kh", "qkv": "kgh+kh+kh", "head_size": "h", "positions": "p"}
LETTERS |= {"q_lora": "q", "kv_lora": "l"}
"""The letters of a logical axis, where a parameter says no others."""


@dataclass(frozen=True)
class DecoderParameter:
    """A parameter with the logical axes `dims`, and of each dimension the letters of the matrices in it, of
    which it is the rows. `roles` are their names in programs, none where they have none."""

    name: str
    dims: tuple[str, ...]
    letters: tuple[tuple[str, ...], ...]
    roles: tuple[str, ...]

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(
            sum(math.prod(sizes[letter] for letter in own) for own in several) for several in self.letters
        )

    def letters_of(self, role: str, sizes: Mapping[str, int]) -> tuple[str, ...]:
        """The letters of each dimension of one of its matrices, without groups or inputs that are one."""
        index = self.roles.index(role)
        own = (several[index] if len(several) > 1 else several[0] for several in self.letters)
        return tuple("".join(each for each in word if each not in "gi" or sizes[each] > 1) for word in own)


@dataclass(frozen=True)
class DecoderPart:
    """A part of a decoder: its parameters, with `LAYER` in the names of those of `layers`, which are of one
    `kind` (None: not of layers), and the elements of its dimensions by letter."""

    name: str
    parameters: tuple[DecoderParameter, ...]
    sizes: dict[str, int]
    kind: LayerKind | None = None
    layers: tuple[int, ...] = (0,)


def parts(of: Architecture) -> tuple[DecoderPart, ...]:
    """The embedding, the layers of each kind in the order of the first of each, and the logits."""
    sizes = {"v": of.vocab, "d": of.width, "p": of.positions}
    kinds = dict.fromkeys(of.kinds)
    layers = []
    for kind in kinds:
        own = sizes | dict(kind.sizes)
        section = of.family if of.family in ("gpt2", "mamba2") else "layer"
        numbers = tuple(layer for layer, other in enumerate(of.kinds) if other == kind)
        layers.append(
            DecoderPart(_kind_name(kind, [*kinds]), _parameters(section, of, kind), own, kind, numbers)
        )
    before, after = (_parameters(section, of) for section in ("before", "after"))
    return DecoderPart("embedding", before, sizes), *layers, DecoderPart("logits", after, sizes)


def _kind_name(kind: LayerKind, kinds: list[LayerKind]) -> str:
    """``layer``, and before it the words in which kinds differ: ``local dense layer``."""
    of_tokens = {(other.mixer, other.window) for other in kinds}
    place = ("local" if kind.window else "global") if kind.mixer in ("attention", "latent") else "linear"
    words = [place] if len(of_tokens) > 1 else []
    if len({other.experts_per_token for other in kinds}) > 1:
        words.append("expert" if kind.experts_per_token else "dense")
    return " ".join([*words, "layer"])


def parameters(of: Architecture) -> tuple[ModelParameter, ...]:
    """All parameters, in the order in which they are used."""
    before, *layers, after = parts(of)
    by_layer = sorted((number, index) for index, part in enumerate(layers) for number in part.layers)
    ordered = [(before, 0), *((layers[index], number) for number, index in by_layer), (after, 0)]
    return tuple(
        ModelParameter(each.name.replace(LAYER, str(number)), each.shape(part.sizes), of.dtype, each.dims)
        for part, number in ordered
        for each in part.parameters
    )


def rows(section: str, words: Container[str], values: Mapping[str, object]) -> Iterator[list[str]]:
    """The cells of the rows of a section of `decoders.txt` that are there for a model with these words, with
    `values` in the places of ``$name``."""
    for needed, *cells in rows_of(sections_beside(__file__, "decoders.txt")[section]):
        if all((word.lstrip("!") in words) == (word[0] != "!") for word in needed.split()):
            yield [Template(cell).substitute(values) for cell in cells]


def words_of(of: Architecture, kind: LayerKind | None = None) -> set[str]:
    """The words that a model, and of it the layers of a kind, has in `decoders.txt`."""
    told = {name: getattr(of, name) for name in ("tied", "qkv_bias", "output_bias", "mlp_bias", "qk_norm")}
    told |= {"four_norms": of.norms == 4, "one_matrix": of.family in ("gpt_oss", "llama4_text")}
    if kind is not None:
        sizes = dict(kind.sizes)
        told |= {"experts": kind.experts_per_token, "shared": "u" in sizes, "queries": sizes.get("q")}
        told |= {kind.mixer: True, "window": kind.window, "groups": sizes.get("g", 1) > 1}
    return {of.family, *(word for word, holds in told.items() if holds)}


def _parameters(
    section: str, of: Architecture, kind: LayerKind | None = None
) -> tuple[DecoderParameter, ...]:
    """Those of a section, whose dimensions are written ``heads:kn+kr embed``."""
    layer = f"model.layers.{LAYER}"
    block = {"mixtral": "block_sparse_moe", "llama4_text": "feed_forward"}.get(of.family, "mlp")
    values = {"layer": layer, "block": f"{layer}.{block}"} | expert_roles(of)
    values["shared"] = "shared_experts" if of.family == "deepseek_v3" else "shared_expert"
    found = []
    for name, dims, *others in rows(section, words_of(of, kind), values):
        axes = [dim.partition(":")[::2] for dim in dims.split()]
        letters = tuple(tuple((own or LETTERS[axis]).split("+")) for axis, own in axes)
        roles = others[0].strip("-").split() if others else re.findall(r"(\w+)\.weight$", name)
        found.append(DecoderParameter(name, tuple(axis for axis, _ in axes), letters, tuple(roles)))
    return tuple(found)


def expert_roles(of: Architecture) -> dict[str, str]:
    """The names of the gate, of the matrix beside it and of the one behind both."""
    names = ("w1", "w3", "w2") if of.family == "mixtral" else ("gate_proj", "up_proj", "down_proj")
    return dict(zip(("gate", "up", "down"), names, strict=True))
