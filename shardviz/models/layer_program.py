"""The programs of a decoder for the planner: its embedding, one layer, and its logits with the loss.

Arrays are called as the parameters of the checkpoint are, with the heads apart: ``q_proj[k,g,h,d]`` has k
heads of keys, g queries for each, of size h. Biases, rotations of queries and keys and their norms are left
out: they move next to nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeAlias

from shardviz.errors import QuestionError
from shardviz.models.model import LAYER, Architecture, ArchitectureParameter, Model, described_parameters
from shardviz.models.rule_set import SplitModel, SplitParameter
from shardviz.models.sources import bare_name
from shardviz.planner.problem import Problem
from shardviz.planner.problem.dtypes import Dtypes
from shardviz.planner.problem.reading import program_problem, read_program
from shardviz.planner.problem.sizes import program_sizes
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray
from shardviz.sharding.axis_parts import SubAxis, whole_axis
from shardviz.units import times

LETTERS = {"vocab": "v", "embed": "d", "norm": "d", "mlp": "f", "experts": "e", "router": "e"}
LETTERS |= {"heads": "kgh", "kv_heads": "kh", "qkv": "kh"}
"""The dimensions in a program that a logical axis is made of, the major first."""


@dataclass(frozen=True)
class Tokens:
    """The tokens of a step: `batch` sequences of `sequence` tokens, split by `spec` in these two. A step that
    decodes takes one token of each, and attends to a `cache` of keys, values alike, [b,s,k,h]."""

    batch: int
    sequence: int
    spec: PartitionSpec
    cache: ShardedArray | None = None


@dataclass(frozen=True)
class ModelPart:
    """A part of a model: a problem for the planner, whose `layers` say how often it runs, and all parameters
    of these runs. The table of tied embeddings is the embedding's."""

    name: str
    problem: Problem = field(repr=False)
    parameters: tuple[SplitParameter, ...] = field(repr=False)


def model_parts(split: SplitModel, tokens: Tokens, *, with_loss: bool = False) -> tuple[ModelPart, ...]:
    """The embedding, the layers and the logits of a model, perhaps with the loss of each token. Raises
    `QuestionError` for an unknown architecture, parameters that do not fit it, and layers not split alike."""
    of = architecture_of(split.model)
    known = {bare_name(parameter.parameter.name): parameter for parameter in split.parameters}
    weights: dict[str, tuple[str, PartitionSpec, str]] = {}
    own_of_parts = []
    for group in described_parameters(of):
        alike = [(described, _alike(known, split.model.name, of, described)) for described in group]
        own_of_parts.append(tuple(chain.from_iterable(own for _, own in alike)))
        for described, own in alike:
            roles = [f"c_attn_{part}" for part in "qkv"] if described.role == "c_attn" else [described.role]
            if described.role:
                weights |= dict.fromkeys(roles, _in_program(of, described, own))
    texts = (_gpt2_texts if of.is_gpt2 else _decoder_texts)(of, with_loss, tokens.cache is not None)
    return tuple(
        ModelPart(name, replace(_problem(text, of, weights, split.mesh, tokens), layers=layers), own)
        for (name, text, layers), own in zip(texts, own_of_parts, strict=True)
    )


def layers_text(model: Model, batch: int, sequence: int) -> tuple[str, str]:
    """The program of a model's layers, split in no way, and the sizes of its dimensions, as a search takes
    both. Raises `QuestionError` where no architecture is known."""
    of = architecture_of(model)
    letters = {described.role: described.dims for described in described_parameters(of)[1]}
    if "c_attn" in letters:
        letters |= dict.fromkeys([f"c_attn_{part}" for part in "qkv"], letters["c_attn"])
    written = {
        role: f"{role}[{','.join(''.join(_letters(dim, of) for dim in dims))}]"
        for role, dims in letters.items()
        if role
    }
    texts = (_gpt2_texts if of.is_gpt2 else _decoder_texts)(of, False, False)
    text = next(text for name, text, _ in texts if name == "layer").format_map(written)
    known = _sizes(of, batch, sequence, sequence)
    used = {dim for dims in re.findall(r"\[([^\]]*)\]", text) for dim in dims.split(",")}
    sizes = ",".join(f"{dim}={size}" for dim, size in known.items() if dim in used)
    return f"{text} x {of.layers}", sizes


def parameter_specs(model: Model, specs: Mapping[str, PartitionSpec], mesh: Mesh) -> dict[str, PartitionSpec]:
    """The specs of parameters, by words in their names, from those of a layer's program. All axes of the
    layers split the vocabulary of the tables, if they divide it."""
    of, by_name = architecture_of(model), dict[str, PartitionSpec]()
    before, of_layer, after = described_parameters(of)
    for described in of_layer:
        spec = specs.get("c_attn_q" if described.role == "c_attn" else described.role)
        if spec is not None:
            axes = iter(spec.dims)
            parts = ([next(axes) for _ in _letters(dim, of)] for dim in described.dims)
            fused = tuple(tuple(chain.from_iterable(several)) for several in parts)
            by_name[described.name.rpartition(f"{LAYER}.")[2]] = PartitionSpec(fused)
    used = tuple(dict.fromkeys(axis for spec in by_name.values() for axis in spec.axes))
    used = () if of.vocab % mesh.group_size(used) else used
    tables = (described.name for described in (*before, *after) if described.dims[0] == "vocab")
    return by_name | {bare_name(name): PartitionSpec((used, ())) for name in tables}


def _sizes(of: Architecture, batch: int, tokens: int, keys: int) -> dict[str, int]:
    sizes = {"b": batch, "t": tokens, "s": keys}
    sizes |= {"v": of.vocab, "d": of.width, "f": of.hidden, "e": of.experts}
    return sizes | _head_sizes(of)


def architecture_of(model: Model) -> Architecture:
    """The architecture. Raises `QuestionError` where none is known."""
    if model.architecture is None:
        problem = f"{model.name} has no config, so the use of its parameters is unknown"
        raise QuestionError(problem, "put its config.json beside it")
    return model.architecture


Weights: TypeAlias = Mapping[str, tuple[str, PartitionSpec, str]]
"""By their names in programs the letters of the dimensions of weights, their specs and dtypes."""


def _problem(text: str, of: Architecture, weights: Weights, mesh: Mesh, tokens: Tokens) -> Problem:
    """The problem of a text in which ``{q_proj}`` stands for a weight with its dimensions."""
    written = {name: f"{name}[{','.join(letters)}]" for name, (letters, *_) in weights.items()}
    lowered = read_program(text.format_map(written), {})
    keys = tokens.cache.shape[1] if tokens.cache else tokens.sequence
    known = _sizes(of, tokens.batch, tokens.sequence, keys)
    size = program_sizes(lowered, {dim: known[dim] for dim in lowered.dims if dim in known}, "")
    stream = PartitionSpec((*tokens.spec.dims, ()))
    specs = {"x": stream, "y": stream} | dict.fromkeys(("tokens", "labels", "loss"), tokens.spec)
    # A layer converts its weights to the dtype of the activations.
    dtypes = {statement.result.name: of.dtype for statement in lowered.statements}
    dtypes |= {name: dtype for name, (_, _, dtype) in weights.items() if name in lowered.arguments}
    if cache := tokens.cache:
        kept = ("keys", "values", "new_keys", "new_values")
        specs |= dict.fromkeys(kept, cache.decided_spec)
        dtypes |= {name: cache.dtype for name in kept if name in {use.name for use in lowered.uses}}
    if "loss" not in lowered.named:
        # The logits are split as the tokens, and over the axes of the vocabulary that these leave free.
        _, table, _ = next(weights[name] for name in ("lm_head", "embed_tokens", "wte") if name in weights)
        used = {whole_axis(axis) for axis in tokens.spec.axes}
        free = tuple(axis for axis in table.dims[0] if whole_axis(axis) not in used)
        specs["logits"] = PartitionSpec((*tokens.spec.dims, free))
    specs |= {name: spec for name, (_, spec, _) in weights.items()}
    return program_problem(lowered, mesh, specs, size, Dtypes(of.dtype, dtypes), "auto")


def _alike(
    known: Mapping[str, SplitParameter], model: str, of: Architecture, described: ArchitectureParameter
) -> list[SplitParameter]:
    """A parameter in all layers. Raises `QuestionError` for one that is missing or has another shape."""
    shape = tuple(of.sizes[dim] for dim in described.dims)
    parameters = []
    for layer in range(of.layers if LAYER in described.name else 1):
        name = bare_name(described.name.replace(LAYER, str(layer)))
        own = known.get(name)
        if own is None or own.parameter.shape != shape:
            has = "no parameter" if own is None else f"the shape {times(own.parameter.shape)} for"
            problem = f"{model} has {has} {name}, where its config says {times(shape)}"
            raise QuestionError(problem, "give the weights and the config.json of one model")
        parameters.append(own)
    return parameters


def _in_program(
    of: Architecture, described: ArchitectureParameter, own: Sequence[SplitParameter]
) -> tuple[str, PartitionSpec, str]:
    """The letters, the spec and the dtype of a weight. Raises `QuestionError` where layers differ in it."""
    first = own[0]
    for parameter in own:
        if parameter.spec != first.spec:
            problem = f"{parameter.parameter.name} and {first.parameter.name} are sharded differently"
            raise QuestionError(problem, "shard all layers alike to plan a step")
    letters = [_letters(dim, of) for dim in described.dims]
    dims: list[tuple[str, ...]] = []
    for axes, several in zip(first.spec.dims, letters, strict=True):
        sizes = [_head_sizes(of)[letter] for letter in several if len(several) > 1]
        dims += spread(axes, sizes, first.mesh) if sizes else [axes]
    return "".join(letters), PartitionSpec(tuple(dims)), first.parameter.dtype


# The texts: the name, the text and the runs of each part.


def _decoder_texts(of: Architecture, with_loss: bool, decodes: bool) -> Iterator[tuple[str, str, int]]:
    yield "embedding", "x[b,t,d] = take({embed_tokens}, tokens[b,t])", 1
    attention, mlp, norm = "attention_out", "mlp_out", "post_attention_layernorm"
    if of.norms == 4:
        attention = f"rms_norm(attention_out, d, {{{norm}}})"
        mlp, norm = "rms_norm(mlp_out, d, {post_feedforward_layernorm})", "pre_feedforward_layernorm"
    dense = [
        "gate = norm2 * {gate_proj}",
        "up = norm2 * {up_proj}",
        f"mlp_out[b,t,d] = ({of.activation}(gate) * up) * {{down_proj}}",
    ]
    layer = [
        "norm1 = rms_norm(x[b,t,d], d, {input_layernorm})",
        *_heads(of, "{q_proj}", "{k_proj}", "{v_proj}", decodes),
        "attention_out[b,t,d] = heads * {o_proj}",
        f"middle = x + {attention}",
        f"norm2 = rms_norm(middle, d, {{{norm}}})",
        *(_experts(of, "b" if decodes else "t") if of.experts else dense),
        f"y = middle + {mlp}",
    ]
    yield "layer", "; ".join(layer), of.layers
    table = "{embed_tokens}" if of.tied else "{lm_head}"
    yield _logits("rms_norm(x[b,t,d], d, {norm})", table, with_loss)


def _heads(of: Architecture, query: str, key: str, value: str, decodes: bool) -> list[str]:
    dims = ",".join(_letters("heads", of))
    made = [
        f"keys[b,s,k,h] = norm1[b,s,d] * {key}",
        f"values[b,s,k,h] = norm1[b,s,d] * {value}",
        f"heads[b,t,{dims}] = causal_attention(queries, keys, values)",
    ]
    if decodes:
        made = [
            f"new_keys[b,t,k,h] = norm1 * {key}",
            f"new_values[b,t,k,h] = norm1 * {value}",
            f"heads[b,t,{dims}] = attention(queries, keys[b,s,k,h], values[b,s,k,h])",
        ]
    return [f"queries[b,t,{dims}] = norm1 * {query}", *made]


def _experts(of: Architecture, along: str) -> list[str]:
    """Each of the tokens `along` a dimension goes to the places of its experts."""
    other = "t" if along == "b" else "b"
    names = ("w1", "w3", "w2") if of.family == "mixtral" else ("gate_proj", "up_proj", "down_proj")
    gate, up, down = (f"{{{name}}}" for name in names)
    return [
        f"chosen = top_k(softmax(norm2 * {{router}}, e), e, {of.experts_per_token})",
        f"places = slots(chosen, {along}, c)",
        f"sent[e,{other},c,d] = places * norm2",
        f"gate[e,{other},c,f] = sent * {gate}",
        f"up[e,{other},c,f] = sent * {up}",
        f"made[e,{other},c,d] = ({of.activation}(gate) * up) * {down}",
        "shares[b,t,e,c] = places * chosen",
        "mlp_out[b,t,d] = made * shares",
    ]


def _logits(final: str, table: str, with_loss: bool) -> tuple[str, str, int]:
    text = f"final = {final}; logits[b,t,v] = final * {table}"
    if with_loss:
        # The cross entropy, in whose parts the collectives are told apart.
        rows = (
            "largest = max(logits, v); sums = sum_exp(logits, largest, v); own = pick(logits, labels[b,t], v)"
        )
        return "logits and loss", f"{text}; {rows}; loss[b,t] = add_log(largest, sums) - own", 1
    return "logits", text, 1


def _gpt2_texts(of: Architecture, with_loss: bool, decodes: bool) -> Iterator[tuple[str, str, int]]:
    """The matrix of queries, keys and values is planned as three, each split as it is."""
    yield "embedding", "x[b,t,d] = take({wte}, tokens[b,t])", 1
    layer = [
        "norm1 = layer_norm(x[b,t,d], d, {ln_1}, {ln_1_bias})",
        *_heads(of, "{c_attn_q}", "{c_attn_k}", "{c_attn_v}", decodes),
        "attention_out[b,t,d] = heads * {c_proj}",
        "middle = x + attention_out",
        "norm2 = layer_norm(middle, d, {ln_2}, {ln_2_bias})",
        "up = norm2 * {c_fc}",
        "mlp_out[b,t,d] = gelu(up) * {mlp_c_proj}",
        "y = middle + mlp_out",
    ]
    yield "layer", "; ".join(layer), of.layers
    yield _logits("layer_norm(x[b,t,d], d, {ln_f}, {ln_f_bias})", "{wte}", with_loss)


# The dimensions of weights.


def _letters(dim: str, architecture: Architecture) -> str:
    """The letters of a logical axis; without g where every head of keys has one of queries."""
    letters = LETTERS[dim]
    return letters.replace("g", "") if architecture.heads == architecture.kv_heads else letters


def _head_sizes(of: Architecture) -> dict[str, int]:
    return {"k": of.kv_heads, "g": of.heads // of.kv_heads, "h": of.head_size}


def spread(axes: Sequence[str], sizes: Sequence[int], mesh: Mesh) -> list[tuple[str, ...]]:
    """The axes of a dimension on those that it is made of: as much of each axis on the first of them as
    divides it, the rest on the next. What divides none stays on the first, which is padded. Of 8 heads of 128
    over tensor=16 the heads have ``tensor:(1)8`` and their size ``tensor:(8)2``."""
    entries: list[list[str]] = [[] for _ in sizes]
    left, index = list(sizes), 0
    for axis in axes:
        size, before = mesh.axis_size(axis), 1
        while before < size:
            part = math.gcd(size // before, left[index])
            if part > 1:
                entries[index].append(axis if part == size else str(SubAxis(axis, before, part)))
                left[index] //= part
                before *= part
            elif index + 1 < len(left):
                index += 1
            else:
                entries[0].append(axis if before == 1 else str(SubAxis(axis, before, size // before)))
                break
    return [tuple(entry) for entry in entries]
