"""The programs of a decoder for the planner: its embedding, a layer of each kind, and its logits and loss.

Arrays are called as the parameters of the checkpoint are, with the heads apart: ``q_proj[k,g,h,d]`` has k
heads of keys, g queries for each, of size h. Biases, rotations of queries and keys and their norms are left
out: they move next to nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeAlias

from shardviz.errors import QuestionError, listed, quote
from shardviz.models.decoder import LAYER, DecoderParameter, DecoderPart, expert_roles, parts, rows, words_of
from shardviz.models.model import Architecture, LayerKind, Model
from shardviz.models.rule_set import SplitModel, SplitParameter
from shardviz.models.sources import bare_name
from shardviz.planner.problem import Problem
from shardviz.planner.problem.dtypes import Dtypes
from shardviz.planner.problem.reading import program_problem, read_program
from shardviz.planner.problem.sizes import program_sizes
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray
from shardviz.sharding.axis_parts import SubAxis, whole_axis
from shardviz.units import times

CACHES = {
    "attention": {"keys": "bskh", "values": "bskh"},
    "latent": {"latents": "bsl", "ropes": "bsr"},
    "mamba2": {"state": "btgkhn", "past_x": "btwgkh", "past_B": "btwgn", "past_C": "btwgn"},
    "delta": {"state": "btgknh", "past_q": "btwgn", "past_k": "btwgn", "past_v": "btwgkh"},
}
"""The arrays of the cache of a layer, with the letters of their dimensions."""


@dataclass(frozen=True)
class Tokens:
    """The tokens of a step: `batch` sequences of `sequence` tokens, split by `spec` in these two. A step that
    `decodes` takes one token of each, whose other tokens are in a cache of `cache_dtype`. `load` is how many
    times as often as the mean the fullest expert is chosen, and the factor of its capacity, if said."""

    batch: int
    sequence: int
    spec: PartitionSpec
    decodes: bool = False
    cache_dtype: str = ""
    load: tuple[float, ...] = ()

    @property
    def length(self) -> int:
        """The tokens of a sequence in one step."""
        return 1 if self.decodes else self.sequence

    @property
    def step_spec(self) -> PartitionSpec:
        """The spec of the tokens of one step; if it decodes, axes of the sequence split caches alone."""
        return PartitionSpec((self.spec.dims[0], ())) if self.decodes else self.spec


@dataclass(frozen=True)
class ModelPart:
    """A part of a model: a problem for the planner, whose `layers` say how often it runs, all parameters of
    these runs, and the `kind` of layer, None for others. The table of tied embeddings is the embedding's."""

    name: str
    problem: Problem = field(repr=False)
    parameters: tuple[SplitParameter, ...] = field(repr=False)
    kind: LayerKind | None = None


def model_parts(split: SplitModel, tokens: Tokens, *, with_loss: bool = False) -> tuple[ModelPart, ...]:
    """The embedding, the layers and the logits of a model, perhaps with the loss of each token. Raises
    `QuestionError` for an unknown architecture, parameters that do not fit it, and layers not split alike."""
    of = architecture_of(split.model)
    known = {bare_name(parameter.parameter.name): parameter for parameter in split.parameters}
    weights: dict[str, tuple[str, PartitionSpec, str]] = {}
    found = []
    for part in parts(of):
        alike = [(each, _alike(known, split.model.name, part, each)) for each in part.parameters]
        for described, own in alike:
            weights |= _in_program(part, described, own)
        every = tuple(chain.from_iterable(own for _, own in alike))
        problem = replace(_problem(part, of, weights, split, tokens, with_loss), layers=len(part.layers))
        name = f"{part.name} and loss" if with_loss and part.name == "logits" else part.name
        found.append(ModelPart(name, problem, every, part.kind))
    return tuple(found)


def most_layers(of: Architecture) -> DecoderPart:
    """The layers of the kind of which there are the most."""
    return max(parts(of)[1:-1], key=lambda part: len(part.layers))


def read_load(given: str | float, model: Model) -> tuple[float, ...]:
    """1.5, or ``1.5,1.25`` with a capacity factor. Raises `QuestionError` for other words, a load that no
    routing has, and a model without experts."""
    kinds = () if model.architecture is None else model.architecture.kinds
    taken = ((kind.experts_per_token, dict(kind.sizes)) for kind in kinds)
    most = min((sizes["e"] / count for count, sizes in taken if count), default=0.0)
    text = str(given)
    if not text.strip():
        return ()
    if not most:
        raise QuestionError(f"{model.name} has no experts", "leave out the load")
    try:
        load = tuple(float(word) for word, _ in listed(text))
    except ValueError:
        load = (0.0,)
    if len(load) > 2 or not 1 <= load[0] <= most or not 0 < load[-1] < math.inf:
        hint = f"write that of the fullest expert, 1 to {most:.4g}, and perhaps a capacity factor: 1.5,1.25"
        raise QuestionError(f"{quote(text)} is not a load of experts", hint)
    return load


def part_texts(
    model: Model,
    batch: int,
    sequence: int,
    *,
    decodes: bool = False,
    with_loss: bool = False,
    load: str | float = "",
) -> list[tuple[str, str]]:
    """The programs of a model's layers, split in no way, and the sizes of their dimensions, as a search takes
    both, of a step of all tokens or one that `decodes` one more of each sequence: that of `most_layers`,
    those of other kinds, and last one of the embedding, the logits and perhaps the loss. Raises
    `QuestionError` where no architecture is known, and as `read_load` does."""
    of, split = architecture_of(model), PartitionSpec(((), ()))
    tokens = Tokens(batch, sequence, split, decodes, load=read_load(load, model))
    before, *layers, after = parts(of)
    layers.sort(key=lambda part: -len(part.layers))
    texts = []
    for own in (*((part,) for part in layers), (before, after)):
        sizes, kind = own[0].sizes, own[0].kind
        written = {
            role: f"{role}[{','.join(''.join(described.letters_of(role, sizes)))}]"
            for part in own
            for described in part.parameters
            for role in described.roles
        }
        text = "; ".join(_text(part, of, tokens, with_loss) for part in own).format_map(written)
        known = sizes | {"b": batch, "t": tokens.length, "s": sequence, "m": 1}
        if decodes and kind is not None:
            known["s"] = min(sequence, kind.window or sequence)
        used = {dim for dims in re.findall(r"\[([^\]]*)\]", text) for dim in dims.split(",")}
        named = ",".join(f"{dim}={size}" for dim, size in known.items() if dim in used)
        texts.append((f"{text} x {len(own[0].layers)}" if kind else text, named))
    return texts


def parameter_specs(model: Model, specs: Mapping[str, PartitionSpec]) -> dict[str, PartitionSpec]:
    """The specs of parameters, by words in their names, from those of the programs of `part_texts`."""
    by_name, of = dict[str, PartitionSpec](), architecture_of(model)
    main = most_layers(of)
    letters = {
        role: "".join(described.letters_of(role, main.sizes))
        for described in main.parameters
        for role in described.roles
    }
    for part in parts(of):
        for described in part.parameters:
            role = next((role for role in described.roles if role in specs), "")
            # Of ends the tables alone: a layer may have a norm that is called as the last one.
            if role and (part.kind is not None or len(described.dims) > 1):
                words = described.letters_of(role, part.sizes)
                # Dense layers beside those of experts have a matrix of this name, too, without experts, whose
                # dimensions have another order: it is split alike, and experts as the rows of their router.
                axes = dict(zip(letters.get(role, "".join(words)), specs[role].dims, strict=True))
                if "e" not in axes and "router" in specs:
                    rows = specs["router"].dims[0]
                    axes["e"] = tuple(axis for axis in rows if axis not in specs[role].axes)
                several = ((axes.get(letter, ()) for letter in word) for word in words)
                fused = tuple(tuple(chain.from_iterable(own)) for own in several)
                by_name[bare_name(described.name.rpartition(f"{LAYER}.")[2])] = PartitionSpec(fused)
    return by_name


def logical_axes(model: Model) -> dict[str, tuple[str, ...]]:
    """The logical axes of a model's parameters, by the words of `parameter_specs`."""
    described = (each for part in parts(architecture_of(model)) for each in part.parameters)
    return {bare_name(each.name.rpartition(f"{LAYER}.")[2]): each.dims for each in described}


def cache_arrays(part: DecoderPart, split: SplitModel, tokens: Tokens) -> tuple[ShardedArray, ...]:
    """The cache of a layer, of all tokens or those in its window. Heads are split as the weight that makes
    them, and over as much of its axes as there are too few heads for, sequences, where these divide; a latent
    vector is one for all heads, and each device has it."""
    of, kind = architecture_of(split.model), part.kind
    assert kind is not None
    sizes = part.sizes | {"b": tokens.batch, "t": 1}
    sizes["s"] = min(tokens.sequence, kind.window or tokens.sequence)
    axes = (
        parameter.spec.dims[index]
        for parameter in split.parameters
        for index, dim in enumerate(parameter.parameter.dims)
        if dim in ("kv_heads", "qkv") or (dim == "heads" and "in_proj" in parameter.parameter.name)
    )
    used = {whole_axis(axis) for axis in tokens.spec.axes}
    own = tuple(axis for axis in next(axes, ()) if whole_axis(axis) not in used)
    batch, sequence = tokens.spec.dims
    arrays = []
    for name, written in CACHES[kind.mixer].items():
        letters = tuple(letter for letter in written if letter != "g" or sizes["g"] > 1)
        heads = [letter for letter in letters if letter in "gk"]
        *split_axes, left = spread(own, [*(sizes[letter] for letter in heads), sizes["h"]], split.mesh)
        specs = dict(zip(heads, split_axes, strict=True)) | {"s": sequence, "b": batch}
        if heads and tokens.batch % split.mesh.group_size((*batch, *left)) == 0:
            specs["b"] = (*batch, *left)
        spec = PartitionSpec(tuple(specs.get(letter, ()) for letter in letters))
        shape = tuple(sizes[letter] for letter in letters)
        arrays.append(ShardedArray(name, letters, shape, tokens.cache_dtype or of.dtype, spec))
    return tuple(arrays)


def cache_bytes(split: SplitModel, tokens: Tokens, *, per_device: bool) -> int:
    """Bytes of the caches of all layers, on a device or whole."""
    return sum(
        len(part.layers) * (array.bytes_per_device(split.mesh) if per_device else array.nbytes)
        for part in parts(architecture_of(split.model))[1:-1]
        for array in cache_arrays(part, split, tokens)
    )


def architecture_of(model: Model) -> Architecture:
    """The architecture. Raises `QuestionError` where none is known."""
    if model.architecture is None:
        problem = f"{model.name} has no config, so the use of its parameters is unknown"
        raise QuestionError(problem, "put its config.json beside it")
    return model.architecture


Weights: TypeAlias = Mapping[str, tuple[str, PartitionSpec, str]]
"""By their names in programs the letters of the dimensions of weights, their specs and dtypes."""


def _problem(
    part: DecoderPart, of: Architecture, weights: Weights, split: SplitModel, tokens: Tokens, with_loss: bool
) -> Problem:
    """The problem of a part, in whose text ``{q_proj}`` stands for a weight with its dimensions."""
    text = _text(part, of, tokens, with_loss)
    written = {name: f"{name}[{','.join(letters)}]" for name, (letters, *_) in weights.items()}
    lowered = read_program(text.format_map(written), {})
    known = part.sizes | {"b": tokens.batch, "t": tokens.length, "s": tokens.sequence}
    known["m"] = split.mesh.group_size(tokens.spec.dims[0])
    stream = PartitionSpec((*tokens.step_spec.dims, ()))
    specs = {"x": stream, "y": stream} | dict.fromkeys(("tokens", "labels", "loss"), tokens.step_spec)
    # A layer converts its weights to the dtype of the activations.
    dtypes = {statement.result.name: of.dtype for statement in lowered.statements}
    dtypes |= {name: dtype for name, (_, _, dtype) in weights.items() if name in lowered.arguments}
    used_names = {use.name for use in lowered.uses}
    for cache in cache_arrays(part, split, tokens) if part.kind and tokens.decodes else ():
        known |= dict(zip(cache.dims, cache.shape, strict=True))
        spec = cache.decided_spec
        one = (() if dim == "s" else axes for dim, axes in zip(cache.dims, spec.dims, strict=True))
        own = {cache.name: spec, f"all_{cache.name}": spec, f"new_{cache.name}": PartitionSpec((*one,))}
        for name in used_names & own.keys():
            specs[name], dtypes[name] = own[name], cache.dtype
    known["b"] = -(-tokens.batch // known["m"]) * known["m"]
    size = program_sizes(lowered, {dim: known[dim] for dim in lowered.dims if dim in known}, "")
    if "logits" in lowered.named and "loss" not in lowered.named:
        # The logits are split as the tokens, and over the axes of the vocabulary that these leave free.
        _, table, _ = next(weights[name] for name in ("lm_head", "embed_tokens", "wte") if name in weights)
        used = {whole_axis(axis) for axis in tokens.spec.axes}
        free = tuple(axis for axis in table.dims[0] if whole_axis(axis) not in used)
        specs["logits"] = PartitionSpec((*tokens.step_spec.dims, free))
    specs |= {name: spec for name, (_, spec, _) in weights.items()}
    return program_problem(lowered, split.mesh, specs, size, Dtypes(of.dtype, dtypes), "auto")


def _alike(
    known: Mapping[str, SplitParameter], model: str, part: DecoderPart, described: DecoderParameter
) -> list[SplitParameter]:
    """A parameter in all layers. Raises `QuestionError` for one that is missing or has another shape."""
    shape, alike = described.shape(part.sizes), []
    for layer in part.layers:
        name = bare_name(described.name.replace(LAYER, str(layer)))
        own = known.get(name)
        if own is None or own.parameter.shape != shape:
            has = "no parameter" if own is None else f"the shape {times(own.parameter.shape)} for"
            problem = f"{model} has {has} {name}, where its config says {times(shape)}"
            raise QuestionError(problem, "give the weights and the config.json of one model")
        alike.append(own)
    return alike


def _in_program(part: DecoderPart, described: DecoderParameter, own: Sequence[SplitParameter]) -> Weights:
    """The matrices of a weight by their roles. Rows of no head, beside those of heads, are whole. Raises
    `QuestionError` where layers differ in their specs."""
    first, found = own[0], {}
    for parameter in own if described.roles else ():
        if parameter.spec != first.spec:
            problem = f"{parameter.parameter.name} and {first.parameter.name} are sharded differently"
            raise QuestionError(problem, "shard all layers alike to plan a step")
    for role in described.roles:
        letters = described.letters_of(role, part.sizes)
        dims: list[tuple[str, ...]] = []
        for axes, word, several in zip(first.spec.dims, letters, described.letters, strict=True):
            if len(several) > 1 and "k" in "".join(several) and "k" not in word:
                dims += [()] * len(word)
            elif word:
                sizes = [part.sizes[letter] for letter in word]
                dims += spread(axes, sizes, first.mesh) if len(word) > 1 else [axes]
        found[role] = "".join(letters), PartitionSpec(tuple(dims)), first.parameter.dtype
    return found


def _text(part: DecoderPart, of: Architecture, tokens: Tokens, with_loss: bool) -> str:
    """The statements of a part, of `decoders.txt`."""
    kind, sizes = part.kind, part.sizes
    words = words_of(of, kind).union(["decodes"] * tokens.decodes, ["loss"] * with_loss)
    if kind is None:
        return "; ".join(statement for (statement,) in rows(f"{part.name} program", words, {}))
    values = {"g": "g," * ("groups" in words), "activation": of.activation, "window": kind.window}
    values |= expert_roles(of) | {"chosen": kind.experts_per_token}
    values["room"] = "".join(f", {factor:.9g}" for factor in (*tokens.load[-1:], *tokens.load[:1]))
    values["taken"] = "taken" if "shared" in words else "mlp_out"
    values |= {name: f"c_attn_{name}" if of.family == "gpt2" else f"{name}_proj" for name in "qkv"}
    if kind.mixer == "latent":
        values["ratio"] = ((sizes["l"] + sizes["r"]) / (sizes["n"] + sizes["r"])) ** 0.5
        values["source"] = "scaled" if tokens.decodes else "source" if "queries" in words else "norm1"
    values |= {"sinks": ", {sinks}" * (of.family == "gpt_oss"), "cap": ", 50" * (of.family == "gemma2")}
    if kind.mixer == "delta":
        values |= {"query_scale": 1 / sizes["n"], "key_scale": sizes["n"] ** -0.5}
    section = "mamba2 program" if kind.mixer == "mamba2" else "layer program"
    return "; ".join(statement for (statement,) in rows(section, words, values))


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
