"""The rule sets that ship, by name, alone or together: ``fsdp``, ``fsdp+tensor``, ``X=fsdp+Y=tensor``."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from shardviz.errors import QuestionError, did_you_mean, quote
from shardviz.models.rules.rule_set import BATCH_AXES, RuleSet, ShardingRule, named_axis
from shardviz.sharding import Mesh

AXES = ["vocab", "embed", "heads", "kv_heads", "qkv", "mlp", "experts"]
AXES += ["norm", "head_size", "router", "positions"]
"""The logical axes of the parameters of an architecture: those that no set splits stay whole."""


@cache
def _tables() -> dict[str, dict[str, Any]]:
    return tomllib.loads(files(__package__).joinpath("shipped.toml").read_text(encoding="utf-8"))


def shipped_names() -> dict[str, str]:
    """Every set with its sentence."""
    return {name: table["what"] for name, table in _tables().items()}


def shipped_rules(text: str, mesh: Mesh) -> RuleSet:
    """The sets that a text names, for the axes of a mesh.

    An axis that is called after the batch splits it, whether a set is for it or not. Raises `QuestionError`
    for a set that does not exist, and for one of which the mesh has no axis.
    """
    axis_of: dict[str, str] = {}
    for piece in text.split("+"):
        axis, equals, name = (word.strip() for word in piece.rpartition("="))
        if name not in _tables():
            raise QuestionError(
                f"there are no rules called {quote(name)}",
                f"{did_you_mean(name, _tables())}the sets are {', '.join(_tables())}; or give a file",
            )
        if equals:
            mesh.axis_size(axis)  # refuses an axis that the mesh lacks
        axis_of[name] = axis if equals else _usual_axis(name, mesh, "+" not in text)
    if len(set(axis_of.values())) < len(axis_of):
        twice = next(axis for axis in axis_of.values() if list(axis_of.values()).count(axis) > 1)
        names = " and of ".join(name for name, axis in axis_of.items() if axis == twice)
        raise QuestionError(
            f"the axis {twice} is that of {names}",
            "name an axis of its own for each, as in X=fsdp+Y=tensor",
        )
    split_over = {axis: _tables()[name]["split"] for name, axis in axis_of.items()}
    is_of_batch = {axis: axis in BATCH_AXES for axis in mesh.axis_names}
    is_of_batch |= {axis: "batch" in dims for axis, dims in split_over.items()}
    batch = tuple(axis for axis, is_split in is_of_batch.items() if is_split)
    rules = [
        ShardingRule(dim, (axis,), name)
        for name, axis in axis_of.items()
        for dim in split_over[axis]
        if dim != "batch"
    ]
    rules += [ShardingRule(dim, ()) for dim in AXES]
    return RuleSet(text, "logical", (ShardingRule("batch", batch), *rules), for_any_model=True)


def _usual_axis(name: str, mesh: Mesh, is_alone: bool) -> str:
    names = _tables()[name]["axes"]
    found = named_axis(mesh, names) if is_alone else next((n for n in names if n in mesh.axis_names), None)
    if found is None:
        raise QuestionError(
            f"the mesh {mesh} has no axis for {name}",
            f"call one {', '.join(names[:-1])} or {names[-1]}, or name it: {mesh.axis_names[0]}={name}",
        )
    return found
