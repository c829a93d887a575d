"""Models as files, and questions about them."""

from __future__ import annotations

import json
import struct

import pytest

from shardviz.models.answer import model_question
from shardviz.models.rule_files import named_rules
from shardviz.models.sources import read_model
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.problem.training import parse_training
from shardviz.targets.hardware import placed_for

LLAMA = {
    "model_type": "llama",
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
}
"""A small Llama with grouped heads."""


@pytest.fixture
def config(tmp_path):
    """Writes a config.json with other keys than `LLAMA`, and returns its path."""

    def write(**changes):
        path = tmp_path / "config.json"
        path.write_text(json.dumps({**LLAMA, **changes}), encoding="utf-8")
        return str(path)

    return write


@pytest.fixture
def weights(tmp_path):
    """Writes the header of a file in the format safetensors, by its documentation, and returns its path."""

    def write(tensors, name="model.safetensors"):
        described = {
            tensor: {"dtype": dtype, "shape": shape, "data_offsets": [0, 0]}
            for tensor, (dtype, shape) in tensors.items()
        }
        text = json.dumps({"__metadata__": {"format": "pt"}, **described}).encode()
        path = tmp_path / name
        path.write_bytes(struct.pack("<Q", len(text)) + text)
        return str(path)

    return write


def _asked(source, rules, mesh, machine=None, training=("layer", "adam"), **more):
    devices = parse_mesh(mesh)
    return model_question(
        read_model(source) if isinstance(source, str) else source,
        named_rules(rules, devices) if isinstance(rules, str) else rules,
        placed_for(machine, (), devices),
        devices,
        training=None if training is None else parse_training(True, *training, devices),
        **more,
    )


@pytest.fixture
def asked():
    """The question of some words; `training` is what is computed again and the optimizer, None for none."""
    return _asked
