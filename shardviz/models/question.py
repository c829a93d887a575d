"""A question about a whole model, from what a user wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError, quote
from shardviz.hardware.machine import PlacedMesh
from shardviz.models.layer_program import Tokens
from shardviz.models.model import Model
from shardviz.models.rules.rule_files import is_rule_file, read_rule_file
from shardviz.models.rules.rule_set import RuleSet, ShardingRule, inputs_spec
from shardviz.models.rules.shipped import shipped_rules
from shardviz.models.splitting import SplitModel, split_model
from shardviz.sharding import Mesh, canonical_dtype

if TYPE_CHECKING:
    from shardviz.planner.training.options import Training

USUAL_SEQUENCE = 4096
"""Tokens of a sequence, where the model takes as many."""


@dataclass(frozen=True)
class ModelQuestion:
    """A model whose parameters are split, the tokens of a step, and what prices it.

    `training` is None for the forward pass alone.
    """

    split: SplitModel
    tokens: Tokens
    placed: PlacedMesh
    training: Training | None = None

    @property
    def model(self) -> Model:
        return self.split.model

    @property
    def mesh(self) -> Mesh:
        return self.split.mesh


def named_rules(text: str, mesh: Mesh) -> RuleSet:
    """The rules of a file, or of sets that ship. Raises `QuestionError` for neither."""
    return read_rule_file(text) if is_rule_file(text) else shipped_rules(text, mesh)


def model_question(
    model: Model,
    rules: RuleSet,
    placed: PlacedMesh,
    mesh: Mesh,
    *,
    training: Training | None = None,
    dtype: str = "",
    batch: int | None = None,
    sequence: int | None = None,
    inputs: str = "",
) -> ModelQuestion:
    """The question; without a `batch` of as many sequences as devices split it, each of `USUAL_SEQUENCE`
    tokens or as many as the model takes. With a `dtype` the model's weights have it.

    Raises `QuestionError` for rules that do not fit the model or the mesh, and for another dtype.
    """
    if dtype:
        model = in_dtype(model, dtype)
    split = split_model(model, rules, mesh)
    spec = inputs_spec(rules, mesh, inputs)
    architecture = model.architecture
    usual = min(USUAL_SEQUENCE, USUAL_SEQUENCE if architecture is None else architecture.positions)
    tokens = Tokens(batch or mesh.group_size(spec.dims[0]), sequence or usual, spec)
    return ModelQuestion(split, tokens, placed, training)


def with_changes(question: ModelQuestion, changes: Sequence[str]) -> ModelQuestion:
    """The question with other splits: texts such as ``q_proj=_ tensor``, each a pattern of names with a spec,
    which decide before the rules.

    Raises `QuestionError` for text without a pattern or without a spec, and for a spec that does not fit.
    """
    if not changes:
        return question
    split = question.split
    rules = replace(split.rules, changes=tuple(map(_change, changes)))
    return replace(question, split=split_model(split.model, rules, split.mesh))


def _change(text: str) -> ShardingRule:
    pattern, _, spec = (word.strip() for word in text.rpartition("="))
    if not pattern or not spec:
        raise QuestionError(f"{quote(text)} does not change a split", "write 'q_proj=_ tensor'")
    return ShardingRule(pattern, spec, "a change")


def in_dtype(model: Model, dtype: str) -> Model:
    """The model with all its parameters in a dtype, but those of whole numbers."""
    name = canonical_dtype(dtype)
    parameters = tuple(
        each if each.dtype[0] in "sup" else replace(each, dtype=name) for each in model.parameters
    )
    architecture = model.architecture
    return replace(
        model,
        parameters=parameters,
        architecture=None if architecture is None else replace(architecture, dtype=name),
    )
