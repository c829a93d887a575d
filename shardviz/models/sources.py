"""A model from what a user wrote: a name, a `config.json`, the header of `safetensors`, or a folder of these;
no weights are read. The keys of a config are those of `transformers`' configuration classes
(https://huggingface.co/docs/transformers/model_doc/llama and its neighbours). A file of `safetensors` is 8
bytes, the length N of its header, little-endian; N bytes of JSON; and the data
(https://huggingface.co/docs/safetensors/index#format). Of a model in several files
`model.safetensors.index.json` names the file of each tensor, without shapes."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, BinaryIO, Literal, NoReturn

from shardviz.errors import QuestionError, did_you_mean, plural, quote
from shardviz.models.model import Architecture, Model, ModelParameter, parameters
from shardviz.sharding import canonical_dtype
from shardviz.strict_table import StrictTable, parsed_table
from shardviz.user_files import is_folder, is_there, open_file

CONFIG = "config.json"
WEIGHTS = ".safetensors"
_REPOSITORY = re.compile(r"[\w-][\w.-]*/[\w.-]+(?<!\.json)(?<!\.safetensors)")


def read_model(text: str) -> Model:
    """The model of a built-in name, of a `config.json`, of a `safetensors` file or the index of many, or of a
    folder of these. Raises `QuestionError` for an unknown name, and for a file that cannot be read."""
    name = text.strip()
    for known, table in _tables().items():
        if name.lower() in (known, "/".join(table["source"].lower().rsplit("/", 2)[1:])):
            return built_in_model(known)
    path = Path(name)
    is_path = os.sep in name or name.startswith("~") or name.endswith((WEIGHTS, ".json"))
    if is_path:
        # A visitor's session is not told which paths there are.
        announce(path)
    path = path.expanduser()
    if is_folder(path):
        files = [*sorted(path.glob(f"*{INDEX}")), *sorted(path.glob(f"*{WEIGHTS}")), path / CONFIG]
        if not files[0].is_file():
            reason = f"it has no {CONFIG} and no {WEIGHTS} file"
            hint = "give another; shardviz checkpoint reads those of Orbax"
            raise ModelFileError(str(path), "", reason, hint)
        return replace(_of_file(files[0]), name=path.resolve().name)
    if _REPOSITORY.fullmatch(name) and not is_there(path):
        hint = f"for a repository, fetch its config: hf download {name} {CONFIG}"
        raise ModelFileError(name, "", "the file does not exist", hint)
    if is_path:
        return _of_file(path)
    names = built_in_names()
    hint = f"{did_you_mean(name, names)}known are {', '.join(names)}; or give a config.json or .safetensors"
    raise QuestionError(f"there is no model {quote(name)}", hint)


def _of_file(path: Path) -> Model:
    """The model of a config, or of weights that may have one beside them."""
    is_weights = path.name.endswith((WEIGHTS, INDEX))
    tensors = read_safetensors(path) if is_weights else ()
    name = path.name.partition(".")[0]
    if name in ("config", "model"):
        name = path.resolve().parent.name
    config = path.with_name(CONFIG) if is_weights else path
    if is_weights and not config.is_file():
        return Model(name, str(path), tensors)
    architecture = read_architecture(json_table(text_of(config), str(config)))
    own = parameters(architecture)
    if is_weights:
        # The tensors with the logical axes that the architecture gives those of its shapes.
        dims = {(bare_name(parameter.name), parameter.shape): parameter.dims for parameter in own}
        own = tuple(
            replace(tensor, dims=dims.get((bare_name(tensor.name), tensor.shape), tensor.dims))
            for tensor in tensors
        )
    return Model(name, str(path), own, architecture)


def bare_name(name: str) -> str:
    """The name without the module around the decoder, which checkpoints have or lack."""
    return name.removeprefix("model.").removeprefix("transformer.")


# The models that are known by name, from `built_in.toml`.


@cache
def _tables() -> dict[str, dict[str, Any]]:
    return tomllib.loads(files(__package__).joinpath("built_in.toml").read_text(encoding="utf-8"))


def built_in_names() -> tuple[str, ...]:
    return tuple(_tables())


def built_in_model(name: str) -> Model:
    """The model of one of `built_in_names`, its weights in bf16; GPT-2's are in f32, as published."""
    config = StrictTable(
        _tables()[name], lambda key, reason, hint: QuestionError(f"built_in.toml: {key}: {reason}", hint)
    )
    architecture = read_architecture(config)
    return Model(name, config.text("source"), parameters(architecture), architecture)


# Configs.

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
    """The architecture of a config. Raises the table's error for a `model_type` of another family, a size
    that is missing, and sizes that do not fit one another."""
    name = config.choice("model_type", tuple(FAMILIES))
    family, is_gpt2 = FAMILIES[name], name == "gpt2"
    key_of = _OF_GPT2 if is_gpt2 else {}

    def size(key: str, usual: int = 0, most: int = MOST) -> int:
        """A size from 1 to `most`; the usual one where the key is missing, or null."""
        own = key_of.get(key, key)
        if usual and config.values.get(own) is None:
            return usual
        elements = config.count(own, most)
        if not elements:
            config.fail(own, "it is 0", "sizes are 1 or more")
        return elements

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
        config.fail("mlp_only_layers", "layers of two kinds are not supported", hint)
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


# Files, opened without waiting, read up to a limit.

READ = "shardviz.model_file"
"""The audit event of a model's file that is about to be read: who may read none refuses it there."""
MAX_BYTES = 100_000_000
"""Bytes of a text, as much as `safetensors` allows a header."""


class ModelFileError(QuestionError):
    """An error of a model's file `name`: at `key` (empty: the whole), with a `reason`."""

    def __init__(self, name: str, key: str, reason: str, hint: str = "") -> None:
        super().__init__(": ".join(filter(None, (quote(name, 200), key, reason))), hint)
        self.name, self.key, self.reason = name, key, reason


def announce(path: Path) -> None:
    """Say that a path is about to be looked at. Raises `ModelFileError` where that is refused."""
    try:
        sys.audit(READ, str(path))
    except OSError as error:
        fail_reading(path, error)


def opened(path: Path) -> BinaryIO:
    """The file, opened to read bytes. Raises `ModelFileError` where it cannot be opened, or is none."""
    announce(path)
    try:
        return open_file(path.expanduser())
    except FileNotFoundError:
        raise ModelFileError(str(path), "", "the file does not exist", "look at its path") from None
    except (OSError, RuntimeError) as error:
        fail_reading(path, error)


def text_of(path: Path, most: int = MAX_BYTES) -> str:
    """The text of a file of at most so many bytes. Raises `ModelFileError` for others, and if not UTF-8."""
    try:
        with opened(path) as file:
            read = file.read(most + 1)
    except OSError as error:
        fail_reading(path, error)
    if len(read) > most:
        raise ModelFileError(str(path), "", f"it has more than {most:,} bytes", "give the right file")
    try:
        return read.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ModelFileError(str(path), "", "it is not text in UTF-8", "give the right file") from None


def json_table(text: str | bytes, name: str) -> StrictTable:
    """The object that a JSON text holds. Raises `ModelFileError` for text that is not one."""
    hint = "check the commas, quotes and brackets there"
    return parsed_table(text, json.loads, "JSON", hint, partial(ModelFileError, name))


def fail_reading(path: Path, error: Exception) -> NoReturn:
    reason = (isinstance(error, OSError) and error.strerror) or str(error)
    raise ModelFileError(str(path), "", f"it cannot be read: {reason}", "look at its path") from None


# Headers of safetensors.

INDEX = ".index.json"
MAX_RANK = 64
MAX_SIZE = 2**48
DTYPES = {
    "BOOL": "pred",
    "F8_E4M3": "f8e4m3fn",
    "F8_E5M2": "f8e5m2",
    "F8_E8M0": "f8e8m0fnu",
    "F4": "f4e2m1fn",
    "BF16": "bf16",
    **{f"F{bits}": f"f{bits}" for bits in (16, 32, 64)},
    **{f"I{bits}": f"s{bits}" for bits in (8, 16, 32, 64)},
    **{f"U{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
    "C64": "c64",
}
"""The format's dtypes, as HLO names them."""
_EXPERT = re.compile(r"(.*\bexperts)\.\d+\.(.*)")


def read_safetensors(path: Path) -> tuple[ModelParameter, ...]:
    """The parameters of a file, or of all files that an index names, layers in order. Raises `ModelFileError`
    for a file that is not of the format, and for a tensor of the index that its file lacks."""
    tensors = _tensors_of_index(path) if path.name.endswith(INDEX) else _tensors_of_file(path)
    return tuple(stacked_experts(sorted(tensors, key=lambda tensor: in_order(tensor.name))))


def in_order(name: str) -> list[tuple[int, str]]:
    """A key by which layer 10 comes after layer 9."""
    return [(len(piece) * piece.isdigit(), piece) for piece in re.split(r"(\d+)", name)]


def _tensors_of_index(path: Path) -> Iterator[ModelParameter]:
    index = json_table(text_of(path), str(path)).table("weight_map")
    tensors: dict[str, dict[str, ModelParameter]] = {}
    for name in index.values:
        file = index.line(name, 255)
        if not file or Path(file).name != file:
            problem = f"{quote(file)} is not a file beside the index"
            index.fail(name, problem, "give the index of a checkpoint")
        if file not in tensors:
            tensors[file] = {tensor.name: tensor for tensor in _tensors_of_file(path.with_name(file))}
        if name not in tensors[file]:
            index.fail(name, f"{quote(file)} has no such tensor", "download the files anew")
        yield tensors[file][name]


def _tensors_of_file(path: Path) -> Iterator[ModelParameter]:
    try:
        with opened(path) as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= MAX_BYTES:
                reason = f"it does not begin with the length of a header of up to {MAX_BYTES:,} bytes"
                raise ModelFileError(str(path), "", reason, "give a file in the format safetensors")
            header = file.read(length)
    except OSError as error:
        fail_reading(path, error)
    if len(header) < length:
        reason = f"its header ends after {plural(len(header), 'byte')} of {length:,}"
        raise ModelFileError(str(path), "", reason, "download the file anew")
    table = json_table(header, str(path))
    return (_parameter(table, name) for name in table.values if name != "__metadata__")


def _parameter(table: StrictTable, name: str) -> ModelParameter:
    table.check_shown(name, name)
    own = table.table(name)
    dtype = own.text("dtype")
    if dtype not in DTYPES:
        own.fail("dtype", f"{quote(dtype, 30)} is not a dtype of the format", f"it has {', '.join(DTYPES)}")
    sizes = own.listed("shape", MAX_RANK)
    return ModelParameter(name, tuple(sizes.count(value, MAX_SIZE) for value in sizes.values), DTYPES[dtype])


def stacked_experts(parameters: Iterable[ModelParameter]) -> Iterator[ModelParameter]:
    """The parameters, those of a layer's experts (``experts.0.w1``, …) as one, as JAX has them, if alike."""
    groups: dict[str, list[ModelParameter]] = {}
    for parameter in parameters:
        match = _EXPERT.fullmatch(parameter.name)
        groups.setdefault(parameter.name if match is None else f"{match[1]}.{match[2]}", []).append(parameter)
    for name, group in groups.items():
        first = group[0]
        if first.name == name or len({(parameter.shape, parameter.dtype) for parameter in group}) > 1:
            yield from group
        else:
            yield ModelParameter(name, (len(group), *first.shape), first.dtype)
