"""A question about a whole model, from what a user wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError, quote
from shardviz.hardware.machine import PlacedMesh
from shardviz.models.layer_program import Tokens
from shardviz.models.model import Model
from shardviz.models.rule_set import RuleSet, ShardingRule, inputs_spec
from shardviz.models.splitting import SplitModel, split_model
from shardviz.sharding import Mesh, canonical_dtype

if TYPE_CHECKING:
    from shardviz.planner.problem.training import Training

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

    Raises `QuestionError` for rules that do not fit the model or the mesh, for another dtype, and for less
    than one sequence or token.
    """
    if dtype:
        model = in_dtype(model, dtype)
    split = split_model(model, rules, mesh)
    spec = inputs_spec(rules, mesh, inputs)
    architecture = model.architecture
    usual = min(USUAL_SEQUENCE, USUAL_SEQUENCE if architecture is None else architecture.positions)
    batch = mesh.group_size(spec.dims[0]) if batch is None else _checked(batch, "sequences")
    sequence = usual if sequence is None else _checked(sequence, "tokens in a sequence")
    return ModelQuestion(split, Tokens(batch, sequence, spec), placed, training)


def _checked(count: object, what: str) -> int:
    if not isinstance(count, int) or count < 1:
        raise QuestionError(f"a step cannot have {quote(repr(count), 30)[1:-1]} {what}", "give 1 or more")
    return count


def with_changes(question: ModelQuestion, changes: Sequence[ShardingRule]) -> ModelQuestion:
    """The question with other splits, patterns of names with a spec each, which decide before the rules.

    Raises `QuestionError` for a spec that does not fit.
    """
    if not changes:
        return question
    split = question.split
    rules = replace(split.rules, changes=tuple(changes))
    return replace(question, split=split_model(split.model, rules, split.mesh))


def read_change(text: str) -> ShardingRule:
    """``q_proj=_ tensor``, a pattern of names and a spec. Raises `QuestionError` where one of them is
    missing."""
    pattern, _, spec = (word.strip() for word in text.rpartition("="))
    if not pattern or not spec:
        raise QuestionError(f"{quote(text)} does not change a split", "write 'q_proj=_ tensor'")
    return changed_split(pattern, spec)


def changed_split(pattern: str, spec: str) -> ShardingRule:
    """A change of the split of those parameters in whose names a pattern is found."""
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
