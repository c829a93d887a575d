"""The parts of a decoder: its embedding, the layers of each kind, its logits; and the parameters of each.

Names and shapes are those of Hugging Face's checkpoints: a weight of a linear layer is [outputs, inputs], of
GPT-2 [inputs, outputs]. The matrices of all experts of a layer are one array, as JAX programs hold them.

A dimension of a parameter has a logical axis, and is made of dimensions of programs, a letter each, the
major first: heads of queries are ``kgh``, k heads of keys with g queries for each, of size h. A dimension of
several matrices in one is made of the rows of each, ``kn+kr``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shardviz.models.model import Architecture, LayerKind, ModelParameter

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
    before, after = _gpt2_ends() if of.family == "gpt2" else _ends(of)
    kinds = dict.fromkeys(of.kinds)
    layers = []
    for kind in kinds:
        own = sizes | dict(kind.sizes)
        rows = _gpt2_layer() if of.family == "gpt2" else _layer(of, kind)
        numbers = tuple(layer for layer, other in enumerate(of.kinds) if other == kind)
        layers.append(DecoderPart(_kind_name(kind, [*kinds]), tuple(rows), own, kind, numbers))
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


def _described(name: str, dims: str, roles: str | None = None) -> DecoderParameter:
    """A parameter whose dimensions are written ``heads:kn+kr embed``, and whose role is the word before
    ``.weight``, unless others are given."""
    axes, letters = [], []
    for dim in dims.split():
        axis, _, own = dim.partition(":")
        axes.append(axis)
        letters.append(tuple((own or LETTERS[axis]).split("+")))
    named = name.split(".")[-2] if roles is None else roles
    return DecoderParameter(name, tuple(axes), tuple(letters), tuple(named.split()))


def _ends(of: Architecture) -> tuple[tuple[DecoderParameter, ...], tuple[DecoderParameter, ...]]:
    is_mamba = of.family == "mamba2"
    table, last = ("embeddings", "norm_f") if is_mamba else ("embed_tokens", "norm")
    base = "backbone" if is_mamba else "model"
    embedding = _described(f"{base}.{table}.weight", "vocab embed", "embed_tokens")
    norm, head = (
        _described(f"{base}.{last}.weight", "norm", "norm"),
        _described("lm_head.weight", "vocab embed"),
    )
    return (embedding,), (norm,) if of.tied else (norm, head)


def _layer(of: Architecture, kind: LayerKind) -> Iterator[DecoderParameter]:
    """The norms around the mixer and the MLP, and what these have; of Mamba 2 the norm before it alone."""
    if kind.mixer == "mamba2":
        yield _weight("norm", "norm")
        yield from _mamba2()
        return
    four = of.norms == 4
    yield _weight("input_layernorm", "norm")
    if kind.mixer == "latent":
        yield from _latent_attention(of, has_query_vector=dict(kind.sizes)["q"] > 0)
    else:
        yield from _delta() if kind.mixer == "delta" else _attention(of)
    yield _weight("post_attention_layernorm", "norm")
    if four:
        yield _weight("pre_feedforward_layernorm", "norm")
    yield from _experts(of, kind) if kind.experts_per_token else _mlp(_block(of), "f", of.mlp_bias)
    if four:
        yield _weight("post_feedforward_layernorm", "norm")


def _weight(name: str, dims: str, roles: str | None = None, end: str = ".weight") -> DecoderParameter:
    return _described(f"model.layers.{LAYER}.{name}{end}", dims, roles)


def _linear(
    name: str, outputs: str, inputs: str, bias: bool, roles: str | None = None
) -> Iterator[DecoderParameter]:
    yield _weight(name, f"{outputs} {inputs}", roles)
    if bias:
        yield _weight(name, "norm" if outputs == "embed" else outputs, "", ".bias")


def _attention(of: Architecture) -> Iterator[DecoderParameter]:
    is_gated = of.family == "qwen3_next"
    queries = ("heads:kgh+kgh", "q_proj q_gate") if is_gated else ("heads", "q_proj")
    yield from _linear("self_attn.q_proj", queries[0], "embed", of.qkv_bias, queries[1])
    yield from _linear("self_attn.k_proj", "kv_heads", "embed", of.qkv_bias)
    yield from _linear("self_attn.v_proj", "kv_heads", "embed", of.qkv_bias)
    if of.qk_norm:
        yield _weight("self_attn.q_norm", "head_size", "")
        yield _weight("self_attn.k_norm", "head_size", "")
    yield from _linear("self_attn.o_proj", "embed", "heads", of.output_bias)
    if of.family == "gpt_oss":
        yield _weight("self_attn.sinks", "heads:kg", "", "")


def _latent_attention(of: Architecture, has_query_vector: bool) -> Iterator[DecoderParameter]:
    """Keys and values of all heads are made of one latent vector, whose rotated part is a key of its own
    (DeepSeek-V2, https://arxiv.org/abs/2405.04434)."""
    roles = "q_nope q_rope"
    if has_query_vector:
        yield from _linear("self_attn.q_a_proj", "q_lora", "embed", of.qkv_bias)
        yield _weight("self_attn.q_a_layernorm", "q_lora")
        yield _weight("self_attn.q_b_proj", "heads:kn+kr q_lora", roles)
    else:
        yield _weight("self_attn.q_proj", "heads:kn+kr embed", roles)
    yield from _linear("self_attn.kv_a_proj_with_mqa", "kv_lora:l+r", "embed", of.qkv_bias, "kv_a k_rope")
    yield _weight("self_attn.kv_a_layernorm", "kv_lora")
    yield _weight("self_attn.kv_b_proj", "kv_heads:kn+kh kv_lora", "k_b v_b")
    yield from _linear("self_attn.o_proj", "embed", "heads:kh", of.output_bias)


def _mamba2() -> Iterator[DecoderParameter]:
    """The gate, the input, B, C and the step are rows of one matrix (Dao and Gu 2024, section 7)."""
    convolved = "mlp:gkh+gn+gn"

    def own(name: str, dims: str, roles: str, end: str = ".weight") -> DecoderParameter:
        return _described(f"backbone.layers.{LAYER}.mixer.{name}{end}", dims, roles)

    yield own("dt_bias", "heads:gk", "dt_bias", "")
    yield own("A_log", "heads:gk", "A_log", "")
    yield own("D", "heads:gk", "D", "")
    yield own("conv1d", f"{convolved} conv:i conv:w", "conv_x conv_B conv_C")
    yield own("conv1d", convolved, "", ".bias")
    yield own("in_proj", "heads:gkh+gkh+gn+gn+gk embed", "in_z in_x in_B in_C in_dt")
    yield own("norm", "heads:gkh", "mixer_norm")
    yield own("out_proj", "embed heads:gkh", "out_proj")


def _delta() -> Iterator[DecoderParameter]:
    """The gated delta rule (https://arxiv.org/abs/2412.06464): g heads of queries and keys of size n, each
    with k of values of size h; their gates, and the rates at which a state is written and forgotten."""
    yield _weight("linear_attn.dt_bias", "heads:gk", "dt_bias", "")
    yield _weight("linear_attn.A_log", "heads:gk", "A_log", "")
    yield _weight("linear_attn.conv1d", "heads:gn+gn+gkh conv:i conv:w", "conv_q conv_k conv_v")
    yield _weight("linear_attn.in_proj_qkvz", "heads:gn+gn+gkh+gkh embed", "in_q in_k in_v in_z")
    yield _weight("linear_attn.in_proj_ba", "heads:gk+gk embed", "in_beta in_alpha")
    yield _weight("linear_attn.norm", "head_size", "mixer_norm")
    yield _weight("linear_attn.out_proj", "embed heads:gkh", "out_proj")


def _block(of: Architecture) -> str:
    return {"mixtral": "block_sparse_moe", "llama4_text": "feed_forward"}.get(of.family, "mlp")


def _mlp(name: str, hidden: str, bias: bool, before: str = "") -> Iterator[DecoderParameter]:
    for matrix in ("gate_proj", "up_proj"):
        yield from _linear(f"{name}.{matrix}", f"mlp:{hidden}", "embed", bias, before + matrix)
    yield from _linear(f"{name}.down_proj", "embed", f"mlp:{hidden}", bias, f"{before}down_proj")


def _experts(of: Architecture, kind: LayerKind) -> Iterator[DecoderParameter]:
    block, is_gpt_oss = _block(of), of.family == "gpt_oss"
    router = "router" if of.family in ("gpt_oss", "llama4_text") else "gate"
    yield from _linear(f"{block}.{router}", "router", "embed", is_gpt_oss, "router")
    if of.family == "deepseek_v3":
        yield _weight(f"{block}.gate.e_score_correction_bias", "router", "", "")
    if router == "router":
        biases = [("gate_up_proj_bias", "experts mlp:f+f"), ("down_proj_bias", "experts norm")] * is_gpt_oss
        matrices = [("gate_up_proj", "experts embed mlp:f+f"), ("down_proj", "experts mlp embed")]
        for name, dims in (*matrices, *biases):
            roles = {"gate_up_proj": "gate_proj up_proj", "down_proj": name}.get(name, "")
            yield _weight(f"{block}.experts.{name}", dims, roles, "")
    else:
        for name, dims in zip(expert_roles(of), ("mlp embed", "mlp embed", "embed mlp"), strict=True):
            yield _weight(f"{block}.experts.{name}", f"experts {dims}")
    if "u" in dict(kind.sizes):
        shared = "shared_experts" if of.family == "deepseek_v3" else "shared_expert"
        yield from _mlp(f"{block}.{shared}", "u", False, "shared_")
        if of.family == "qwen3_next":
            yield _weight(f"{block}.shared_expert_gate", "router:i embed", "shared_gate")


def expert_roles(of: Architecture) -> tuple[str, str, str]:
    """The gate, the matrix beside it and the one behind both."""
    return ("w1", "w3", "w2") if of.family == "mixtral" else ("gate_proj", "up_proj", "down_proj")


def _gpt2_pair(name: str, dims: str, roles: str | None = None) -> tuple[DecoderParameter, ...]:
    """A weight and its bias, which is of use in a program where it is that of a norm."""
    role, last = roles or name.rpartition(".")[2], dims.split()[-1]
    bias = f"{role}_bias" if dims == "norm" else ""
    own = _described(f"{name}.weight", dims, role)
    return own, _described(f"{name}.bias", "norm" if last == "embed" else last, bias)


def _gpt2_layer() -> Iterator[DecoderParameter]:
    """Its matrix of queries, keys and values is one."""
    yield from _gpt2_pair(f"h.{LAYER}.ln_1", "norm")
    yield from _gpt2_pair(f"h.{LAYER}.attn.c_attn", "embed qkv", "c_attn_q c_attn_k c_attn_v")
    yield from _gpt2_pair(f"h.{LAYER}.attn.c_proj", "heads embed")
    yield from _gpt2_pair(f"h.{LAYER}.ln_2", "norm")
    yield from _gpt2_pair(f"h.{LAYER}.mlp.c_fc", "embed mlp")
    yield from _gpt2_pair(f"h.{LAYER}.mlp.c_proj", "mlp embed", "mlp_c_proj")


def _gpt2_ends() -> tuple[tuple[DecoderParameter, ...], tuple[DecoderParameter, ...]]:
    words = _described("wte.weight", "vocab embed")
    return (words, _described("wpe.weight", "positions embed", "")), _gpt2_pair("ln_f", "norm")
