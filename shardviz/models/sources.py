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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, BinaryIO, Literal, NoReturn

from shardviz.errors import QuestionError, did_you_mean, plural, quote
from shardviz.models.decoder import parameters
from shardviz.models.model import Architecture, LayerKind, Model, ModelParameter
from shardviz.sharding import canonical_dtype
from shardviz.strict_table import StrictTable, parsed_table
from shardviz.user_files import is_folder, is_there, open_file

CONFIG = "config.json"
WEIGHTS = ".safetensors"
_AROUND = re.compile(r"^(language_model\.|model\.|transformer\.|backbone\.)+")
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
    if name and is_folder(path):
        files = [*sorted(path.glob(f"*{INDEX}")), *sorted(path.glob(f"*{WEIGHTS}")), path / CONFIG]
        if not files[0].is_file():
            reason = f"it has no {CONFIG} and no {WEIGHTS} file"
            hint = "give another; shardviz checkpoint reads Orbax checkpoints"
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
    return _AROUND.sub("", name)


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
    0 where the width is divided among the heads. Of so many layers, `period`, the last attends to all tokens;
    all `others`, which with 0 are all, are of this type. `experts` and `shared` are the keys of the widths of
    an expert, and of one that all tokens take; `dense` that of an MLP of no experts. `usual` are sizes
    that a config may leave out, `keys` its own for those of all others, `sizes` the keys of letters, of which
    `linear` are those of layers of linear attention."""

    activation: Literal["silu", "gelu"] = "silu"
    norms: int = 2
    tied: bool = False
    qkv_bias: bool = False
    qk_norm: bool = False
    head_size: int = 0
    mixer: Literal["attention", "latent", "mamba2"] = "attention"
    period: int = 1
    others: str = "full_attention"
    experts: str = ""
    shared: str = ""
    dense: str = "intermediate_size"
    usual: Mapping[str, int] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, str] = field(default_factory=dict)
    linear: Mapping[str, str] = field(default_factory=dict)


@cache
def families() -> dict[str, ModelFamily]:
    """By `model_type`."""
    text = files(__package__).joinpath("families.toml").read_text(encoding="utf-8")
    return {name: ModelFamily(**fields) for name, fields in tomllib.loads(text).items()}


EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts")
"""The keys of the number of experts: the second until transformers 4 for some families, the first since 5."""
PERIODS = ("sliding_window_pattern", "full_attention_interval")
EXPERT_STEPS = ("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_freq")
"""The keys of how many layers there are for one of all tokens, and for one of experts."""
WINDOWS = {"sliding_attention": "sliding_window", "chunked_attention": "attention_chunk_size"}
LAYER_TYPES = ("full_attention", *WINDOWS, "linear_attention")


def read_architecture(config: StrictTable) -> Architecture:
    """The architecture of a config, or of the one of its text. Raises the table's error for a `model_type` of
    another family, a size that is missing, and sizes that do not fit one another."""
    if "text_config" in config:
        config = config.table("text_config")
    return _ConfigReader(config).architecture()


class _ConfigReader:
    def __init__(self, config: StrictTable) -> None:
        self.config, self.name = config, config.choice("model_type", tuple(families()))
        self.family, self.key_of = families()[self.name], families()[self.name].keys

    def size(self, key: str, usual: int = 0, most: int = MOST) -> int:
        """A size from 1 to `most`; the usual one where the key is missing, or null."""
        own, usual = self.key_of.get(key, key), self.family.usual.get(key, usual)
        if usual and self.config.values.get(own) is None:
            return usual
        elements = self.config.count(own, most)
        if not elements:
            self.config.fail(own, "it is 0", "sizes are 1 or more")
        return elements

    def optional(self, *keys: str) -> int:
        """The size of the first of the keys that is there and not null; 0 without one."""
        known = next((key for key in keys if self.config.values.get(key) is not None), "")
        return self.config.count(known, MOST) if known else 0

    def flag(self, key: str, usual: bool = False) -> bool:
        is_usual = self.name == "gpt2" or self.config.values.get(key) is None
        return usual if is_usual else self.config.typed(key, bool)

    def architecture(self) -> Architecture:
        family, is_gpt2 = self.family, self.name == "gpt2"
        layers = self.size("num_hidden_layers", most=MOST_LAYERS)
        expert_layers = self._expert_layers(layers)
        kinds = (self._kind(word, layer in expert_layers) for layer, word in enumerate(self._types(layers)))
        return Architecture(
            family=self.name,
            vocab=self.size("vocab_size"),
            width=self.size("hidden_size"),
            kinds=tuple(kinds),
            positions=self.size("max_position_embeddings", 0 if is_gpt2 else 4096),
            tied=self.flag("tie_word_embeddings", family.tied),
            norms=family.norms,
            activation=family.activation,
            qkv_bias=family.qkv_bias or self.flag("attention_bias"),
            output_bias=self.flag("attention_bias"),
            mlp_bias=self.flag("mlp_bias"),
            qk_norm=family.qk_norm,
            dtype=_dtype(self.config, "f32" if is_gpt2 else "bf16"),
        )

    def _types(self, layers: int) -> list[str]:
        """The type of every layer, of `LAYER_TYPES`."""
        if self.config.values.get("layer_types") is not None:
            listed = self.config.listed("layer_types", MOST_LAYERS)
            if len(listed.values) != layers:
                problem = f"it has {len(listed.values):,} layers, not {layers:,}"
                self.config.fail("layer_types", problem, "give the type of each layer")
            known = LAYER_TYPES if self.family.linear else LAYER_TYPES[:-1]
            return [listed.choice(number, known) for number in listed.values]
        period = self.optional(*PERIODS) or self.family.period
        is_full = (period and layer % period == 0 for layer in range(1, layers + 1))
        return ["full_attention" if full else self.family.others for full in is_full]

    def _expert_layers(self, layers: int) -> set[int]:
        """The layers that have experts: all, or one in so many, behind some, but for those listed."""
        if not self.family.experts or not self.optional(*EXPERTS):
            return set()
        is_said = self.config.values.get("mlp_only_layers") is not None
        dense = self.config.listed("mlp_only_layers", layers) if is_said else None
        others = {dense.count(number, layers) for number in dense.values} if dense else set()
        step, first = self.optional(*EXPERT_STEPS) or 1, self.optional("first_k_dense_replace")
        return {layer for layer in range(first, layers) if (layer + 1) % step == 0} - others

    def _kind(self, word: str, has_experts: bool) -> LayerKind:
        window, is_linear, taken = WINDOWS.get(word, ""), word == "linear_attention", 0
        usual = self.family.usual.get(window, 0) * (window not in self.config)
        seen = self.optional(window) or usual if self.flag("use_sliding_window", True) else 0
        mixer = "delta" if is_linear else self.family.mixer
        own = self._heads(self.family.linear if is_linear else self.family.sizes)
        if has_experts:
            own |= {"f": self.size(self.family.experts), "e": self.optional(*EXPERTS), "i": 1}
            if self.family.shared:
                own["u"] = self.size(self.family.shared) * (self.optional("n_shared_experts") or 1)
            taken = self.size("num_experts_per_tok")
        elif mixer != "mamba2":
            usual = 4 * self.size("hidden_size") if self.name == "gpt2" else 0
            own["f"] = self.size(self.family.dense, usual)
        return LayerKind(mixer, tuple(own.items()), seen, taken)

    def _heads(self, keys: Mapping[str, str]) -> dict[str, int]:
        if keys:
            own = {letter: self.size(key) for letter, key in keys.items()}
            if own["k"] % (groups := own.get("g", 1)):
                self.config.fail(keys["k"], f"{own['k']} heads are not {groups} groups of as many")
            return own | {"k": own["k"] // groups, "q": self.optional("q_lora_rank"), "i": 1}
        width, heads = self.size("hidden_size"), self.size("num_attention_heads")
        kv_heads = heads if self.name == "gpt2" else self.size("num_key_value_heads", heads)
        if heads % kv_heads:
            problem = f"{heads} heads do not share {kv_heads} keys and values evenly"
            self.config.fail("num_key_value_heads", problem)
        is_given = self.name != "gpt2" and self.config.values.get("head_dim") is not None
        head_size = self.size("head_dim") if is_given else self.family.head_size
        if not head_size and width % heads:
            key = self.key_of.get("hidden_size", "hidden_size")
            self.config.fail(key, f"{width} is not a multiple of the {heads} heads", "give head_dim")
        return {"k": kv_heads, "g": heads // kv_heads, "h": head_size or width // heads}


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
DTYPES = {"BOOL": "pred", "F8_E4M3": "f8e4m3fn", "F8_E5M2": "f8e5m2", "F8_E8M0": "f8e8m0fnu"}
DTYPES |= {"F4": "f4e2m1fn", "BF16": "bf16"} | {f"F{bits}": f"f{bits}" for bits in (16, 32, 64)}
DTYPES |= {f"{sign}{bits}": f"{own}{bits}" for sign, own in ("Is", "Uu") for bits in (8, 16, 32, 64)}
DTYPES["C64"] = "c64"
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
