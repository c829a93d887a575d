"""The models that are known by name, from `built_in.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from shardviz.errors import QuestionError, ShardvizError
from shardviz.models.architecture import parameters
from shardviz.models.model import Model
from shardviz.models.sources.config_json import read_architecture
from shardviz.strict_table import StrictTable


@cache
def _tables() -> dict[str, dict[str, Any]]:
    text = files(__package__).joinpath("built_in.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def built_in_names() -> tuple[str, ...]:
    """The names of all models, in order."""
    return tuple(_tables())


def known_as(text: str) -> str | None:
    """The one of `built_in_names` that a text is: the name itself, or its repository on Hugging Face; None
    for any other."""
    word = text.lower()
    return next((name for name, table in _tables().items() if word in (name, _repository(table))), None)


def _repository(table: dict[str, Any]) -> str:
    return "/".join(table["source"].lower().rsplit("/", 2)[1:])


def built_in_model(name: str) -> Model:
    """The model of one of `built_in_names`, its weights in bf16; GPT-2's are in f32, as published."""
    config = StrictTable(_tables()[name], _fault)
    architecture = read_architecture(config)
    return Model(name, config.text("source"), parameters(architecture), architecture)


def _fault(key: str, reason: str, hint: str) -> ShardvizError:
    return QuestionError(f"built_in.toml: {key}: {reason}", hint)
