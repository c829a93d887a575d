"""A model from what a user wrote: a name, a file, or a folder of files."""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from shardviz.errors import QuestionError, did_you_mean, quote
from shardviz.models.model import Architecture, Model, ModelParameter, parameters
from shardviz.models.sources.config_json import read_architecture
from shardviz.models.sources.model_files import ModelFileError, announce, json_table, text_of
from shardviz.models.sources.safetensors import INDEX, read_safetensors
from shardviz.strict_table import StrictTable
from shardviz.user_files import is_folder, is_there

CONFIG = "config.json"
WEIGHTS = ".safetensors"
_REPOSITORY = re.compile(r"[\w-][\w.-]*/[\w.-]+(?<!\.json)(?<!\.safetensors)")
_PREFIXES = ("model.", "transformer.")


def read_model(text: str) -> Model:
    """The model of a built-in name, of a `config.json`, of a `safetensors` file or the index of many, or of a
    folder that has some of these.

    A config beside the weights says how they are used. Raises `QuestionError` for a name that is not known,
    and for a file that cannot be read.
    """
    name = text.strip()
    if (known := _known_as(name)) is not None:
        return built_in_model(known)
    path = Path(name)
    is_path = os.sep in name or name.startswith("~") or name.endswith((WEIGHTS, ".json"))
    if is_path:
        # A visitor's session is not told which paths there are.
        announce(path)
    path = path.expanduser()
    if is_folder(path):
        return _of_folder(path)
    if _REPOSITORY.fullmatch(name) and not is_there(path):
        raise ModelFileError(
            name,
            "",
            "the file does not exist",
            f"for a repository, fetch its config: hf download {name} {CONFIG}",
        )
    if is_path:
        return _of_weights(path) if name.endswith((WEIGHTS, INDEX)) else _of_config(path)
    names = built_in_names()
    raise QuestionError(
        f"there is no model {quote(name)}",
        f"{did_you_mean(name, names)}known are {', '.join(names)}; or give a config.json or .safetensors",
    )


def _of_folder(path: Path) -> Model:
    weights = [*sorted(path.glob(f"*{INDEX}")), *sorted(path.glob(f"*{WEIGHTS}"))]
    if weights:
        return replace(_of_weights(weights[0]), name=path.resolve().name)
    if not (path / CONFIG).is_file():
        raise ModelFileError(
            str(path), "", f"it has no {CONFIG} and no {WEIGHTS} file", "give another folder"
        )
    return replace(_of_config(path / CONFIG), name=path.resolve().name)


def _of_config(path: Path) -> Model:
    architecture = _architecture(path)
    return Model(_called(path), str(path), parameters(architecture), architecture)


def _of_weights(path: Path) -> Model:
    found = read_safetensors(path)
    config = path.with_name(CONFIG)
    if not config.is_file():
        return Model(_called(path), str(path), found)
    architecture = _architecture(config)
    return Model(_called(path), str(path), with_dims(found, architecture), architecture)


def _architecture(path: Path) -> Architecture:
    return read_architecture(json_table(text_of(path), str(path)))


def _called(path: Path) -> str:
    """The folder's name where the file's says nothing."""
    stem = path.name.partition(".")[0]
    return path.resolve().parent.name if stem in ("config", "model") else stem


def with_dims(found: tuple[ModelParameter, ...], architecture: Architecture) -> tuple[ModelParameter, ...]:
    """The parameters of a checkpoint with the logical axes that its architecture gives those of its
    shapes."""
    expected = {bare_name(each.name): each for each in parameters(architecture)}

    def described(each: ModelParameter) -> ModelParameter:
        own = expected.get(bare_name(each.name))
        return each if own is None or own.shape != each.shape else replace(each, dims=own.dims)

    return tuple(map(described, found))


def bare_name(name: str) -> str:
    """The name without the module around the decoder, which checkpoints have or lack."""
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name


# The models that are known by name, from `built_in.toml`.


@cache
def _tables() -> dict[str, dict[str, Any]]:
    return tomllib.loads(files(__package__).joinpath("built_in.toml").read_text(encoding="utf-8"))


def built_in_names() -> tuple[str, ...]:
    """The names of all models, in order."""
    return tuple(_tables())


def _known_as(text: str) -> str | None:
    """The one of `built_in_names` that a text is: the name itself, or its repository on Hugging Face; None
    for any other."""
    word = text.lower()
    for name, table in _tables().items():
        if word in (name, "/".join(table["source"].lower().rsplit("/", 2)[1:])):
            return name
    return None


def built_in_model(name: str) -> Model:
    """The model of one of `built_in_names`, its weights in bf16; GPT-2's are in f32, as published."""
    config = StrictTable(
        _tables()[name], lambda key, reason, hint: QuestionError(f"built_in.toml: {key}: {reason}", hint)
    )
    architecture = read_architecture(config)
    return Model(name, config.text("source"), parameters(architecture), architecture)
