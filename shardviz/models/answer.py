"""A question about a whole model and its answer: the memory of a device, what moves from one answer to
another, and the step: the plans of embedding, layers, and logits, in a train step with each token's loss."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

from shardviz.errors import QuestionError, quote
from shardviz.hardware.machine import PlacedMesh
from shardviz.models.layer_program import ModelPart, Tokens, cache_bytes, model_parts, read_load
from shardviz.models.model import Model
from shardviz.models.rule_set import (
    FoldedParameter,
    RuleSet,
    ShardingRule,
    SplitModel,
    SplitParameter,
    folded,
    inputs_spec,
    split_model,
)
from shardviz.planner.planner import Planner
from shardviz.planner.pricing.costs import PlanCost, price
from shardviz.planner.pricing.priced_plan import PricedStep, sums_of
from shardviz.planner.problem import Phase, dropped_words
from shardviz.planner.problem.training import Optimizer, Training
from shardviz.planner.training import state_spec, with_backward
from shardviz.sharding import Mesh, ShardedArray, array_bytes, canonical_dtype, shard_shape

USUAL_SEQUENCE = 4096
"""Tokens of a sequence, where the model takes as many."""


@dataclass(frozen=True)
class ModelQuestion:
    """A model whose parameters are split, the tokens of a step, its prices, and perhaps its training."""

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
    load: str | float = "",
) -> ModelQuestion:
    """The question; without a `batch` of as many sequences as devices split it, without a `sequence` of
    `USUAL_SEQUENCE` tokens or as many as the model takes; with a `dtype` the weights have it; `load`
    is as `read_load` reads it. Raises `QuestionError` for what does not fit the model or the mesh."""
    if dtype:
        model = in_dtype(model, dtype)
    split = split_model(model, rules, mesh)
    spec = inputs_spec(rules, mesh, inputs)
    batch = mesh.group_size(spec.dims[0]) if batch is None else _checked(batch, "sequences")
    sequence = usual_sequence(model) if sequence is None else _checked(sequence, "tokens in a sequence")
    return ModelQuestion(split, Tokens(batch, sequence, spec, load=read_load(load, model)), placed, training)


def _checked(count: object, what: str) -> int:
    if not isinstance(count, int) or count < 1:
        raise QuestionError(f"a step cannot have {quote(repr(count), 30)[1:-1]} {what}", "give 1 or more")
    return count


def usual_sequence(model: Model) -> int:
    """Tokens of a sequence, where nobody says how many."""
    of = model.architecture
    return USUAL_SEQUENCE if of is None else min(USUAL_SEQUENCE, of.positions)


def with_changes(question: ModelQuestion, changes: Sequence[ShardingRule]) -> ModelQuestion:
    """The question with splits that decide before the rules. Raises `QuestionError` for unfit ones."""
    if not changes:
        return question
    split = question.split
    rules = replace(split.rules, changes=tuple(changes))
    return replace(question, split=split_model(split.model, rules, split.mesh))


def read_change(text: str) -> ShardingRule:
    """``q_proj=_ tensor``, a pattern of names and a spec. Raises `QuestionError` where one is missing."""
    pattern, _, spec = (word.strip() for word in text.rpartition("="))
    if not pattern or not spec:
        raise QuestionError(f"{quote(text)} is not a change of a sharding", "write 'q_proj=_ tensor'")
    return ShardingRule(pattern, spec, "a change")


def in_dtype(model: Model, dtype: str, activations: str = "") -> Model:
    """The model with its parameters, but those of whole numbers, and its activations in a dtype."""
    name, architecture = canonical_dtype(dtype), model.architecture
    if architecture is not None:
        architecture = replace(architecture, dtype=activations or name)
    parameters = (each if each.dtype[0] in "sup" else replace(each, dtype=name) for each in model.parameters)
    return replace(model, parameters=tuple(parameters), architecture=architecture)


@dataclass(frozen=True)
class PlannedPart:
    """A part of a model with the cost of its plan; it runs `cost.layers` times."""

    part: ModelPart
    cost: PlanCost = field(repr=False)

    def collectives(self) -> Iterator[tuple[Phase, PricedStep]]:
        """The collectives of one run, in order, with the part of a train step that each belongs to."""
        for priced in self.cost.steps:
            if priced.is_collective:
                yield self.cost.plan.problem.parts[priced.step.part].phase, priced


@dataclass(frozen=True)
class ModelStep:
    """The parts of a step in order; seconds are the sum of all steps, one after the other."""

    parts: tuple[PlannedPart, ...]

    @property
    def layer(self) -> PlannedPart:
        """The layers of the kind of which there are the most."""
        return max(self.parts, key=lambda part: part.cost.layers)

    @cached_property
    def seconds_by_phase(self) -> dict[Phase, float]:
        """Seconds of all runs of all parts, by the part of a train step."""
        return sums_of(
            (phase, part.cost.layers * seconds)
            for part in self.parts
            for phase, seconds in part.cost.seconds_by_phase.items()
        )

    @property
    def seconds(self) -> float:
        return math.fsum(part.cost.layers_seconds for part in self.parts)

    @property
    def overlapped_seconds(self) -> float:
        """Seconds if the communication of each part is overlapped with its work."""
        return math.fsum(part.cost.layers * part.cost.overlapped_seconds for part in self.parts)

    @property
    def is_partial(self) -> bool:
        """A figure of the machine is missing, so that seconds are lower bounds."""
        return any(part.cost.unknown for part in self.parts)

    @property
    def published_seconds(self) -> float | None:
        """Seconds of a train step as published runs of the chip go; None where no run is known."""
        usual = [(part.cost.layers, part.cost.published_seconds) for part in self.parts]
        known = [layers * own for layers, own in usual if own is not None]
        return math.fsum(known) if len(known) == len(usual) else None

    @property
    def communication_seconds(self) -> float:
        """Seconds of the collectives, as if none were hidden behind the work."""
        return math.fsum(part.cost.layers * part.cost.communication_seconds for part in self.parts)

    @property
    def wire_bytes(self) -> int:
        return sum(part.cost.layers * part.cost.wire_bytes for part in self.parts)

    @property
    def flops(self) -> int:
        return sum(part.cost.layers * part.cost.flops for part in self.parts)

    @property
    def dropped(self) -> tuple[str, ...]:
        """Sentences on the choices of experts that are dropped."""
        words = (dropped_words(part.cost.plan.problem) for part in self.parts)
        return tuple(dict.fromkeys(chain.from_iterable(words)))

    @property
    def count(self) -> int:
        return sum(part.cost.layers * len(part.cost.plan.collectives) for part in self.parts)


@dataclass(frozen=True)
class ModelMemory:
    """Bytes of a device, None where they are not known.

    `gradients` are those of all parameters, in the optimizer's dtype, `optimizer` its state,
    `keys_and_values` those of all tokens and layers. `working` is the most that a planned step holds beside
    the parameters and the optimizer's state; `activations` are what the layers keep for the backward pass.
    `limit` is what a program may use of the chip's memory; beyond an estimate a compiler may allocate the
    part `allocated` of it."""

    parameters: int
    gradients: int
    optimizer: int
    keys_and_values: int | None = None
    activations: int | None = None
    working: int | None = None
    limit: int | None = None
    allocated: float = 0.0

    @property
    def training(self) -> int:
        """All of a train step; without a planned step its activations are left out."""
        beside = self.gradients if self.working is None else max(self.working, self.gradients)
        return self.parameters + self.optimizer + beside

    @property
    def serving(self) -> int:
        """The parameters, and all keys and values."""
        return self.parameters + (self.keys_and_values or 0)

    def over(self, used: int) -> int:
        """The bytes that do not fit; 0 where all do, or where the limit is not known."""
        return 0 if self.limit is None else max(0, used - self.limit)

    def allocated_bytes(self, used: int) -> int:
        """The most bytes that a compiler may allocate for so many."""
        return round(used * (1 + self.allocated))


@dataclass(frozen=True)
class ModelAnswer:
    """The memory and the step of a model; `step` is None where nothing says how the parameters are used."""

    question: ModelQuestion
    memory: ModelMemory
    step: ModelStep | None


def answered(question: ModelQuestion) -> ModelAnswer:
    """The answer, for which the step is planned. Raises `QuestionError` as `planned_step` does."""
    step = None if question.model.architecture is None else planned_step(question)
    return ModelAnswer(question, model_memory(question, step), step)


@dataclass(frozen=True)
class MovedCollective:
    """Collectives over the same axes in a part and a phase of a step: figures of all runs in two answers."""

    part: str
    phase: Phase
    op: str
    axes: tuple[str, ...]
    counts: tuple[int, int]
    bytes: tuple[int, int]
    seconds: tuple[float, float]


@dataclass(frozen=True)
class ModelChange:
    """Two answers about a model: the `parameters` that are split otherwise, before and after, and the
    `collectives` that are added, gone, or of other bytes."""

    before: ModelAnswer
    after: ModelAnswer
    parameters: tuple[tuple[FoldedParameter, FoldedParameter], ...]
    collectives: tuple[MovedCollective, ...]


def change(before: ModelAnswer, after: ModelAnswer) -> ModelChange:
    """The differences between two answers about the same parameters."""
    split = {parameter.parameter.name: parameter for parameter in before.question.split.parameters}
    pairs = [
        (split.get(parameter.parameter.name, parameter), parameter)
        for parameter in after.question.split.parameters
    ]
    others = folded(parameter for first, parameter in pairs if first.spec != parameter.spec)
    parameters = ((replace(one, first=split[one.first.parameter.name]), one) for one in others)
    old, new, none = _totals(before.step), _totals(after.step), (0, 0, 0.0)
    moved = []
    for key in dict.fromkeys((*old, *new)):
        one, other = old.get(key, none), new.get(key, none)
        if one[:2] != other[:2]:
            figures = (one[0], other[0]), (one[1], other[1]), (one[2], other[2])
            moved.append(MovedCollective(*key, *figures))
    return ModelChange(before, after, tuple(parameters), tuple(moved))


def _totals(step: ModelStep | None) -> dict[tuple[str, Phase, str, tuple[str, ...]], tuple[int, int, float]]:
    """Number, bytes and seconds of all runs of the collectives that are alike."""
    totals: dict[tuple[str, Phase, str, tuple[str, ...]], tuple[int, int, float]] = {}
    for part in step.parts if step is not None else ():
        runs = part.cost.layers
        for phase, priced in part.collectives():
            key = (part.part.name, phase, priced.step.op, priced.step.axes)
            count, size, seconds = totals.get(key, (0, 0, 0.0))
            seconds += runs * (priced.seconds or 0.0)
            totals[key] = count + runs, size + runs * priced.step.bytes, seconds
    return totals


def model_memory(question: ModelQuestion, step: ModelStep | None = None) -> ModelMemory:
    """The memory of a model; with a planned step also what that holds."""
    training, parameters = question.training, question.split.parameters
    optimizer = None if training is None else training.optimizer
    memories = [part.cost.training_memory for part in step.parts if part.part.kind] if step else []
    kept = [memory.activations for memory in memories if memory is not None]
    has_cache = question.model.architecture is not None
    return ModelMemory(
        parameters=question.split.bytes_per_device,
        gradients=0 if training is None else _gradient_bytes(parameters, optimizer),
        optimizer=sum(_state_bytes(each, optimizer) for each in parameters) if optimizer else 0,
        keys_and_values=cache_bytes(question.split, question.tokens, per_device=True) if has_cache else None,
        activations=sum(kept) if kept else None,
        working=None if step is None else _working_bytes(step, optimizer),
        limit=question.placed.machine.device.limit_bytes,
        allocated=question.placed.machine.allocated,
    )


def _gradient_bytes(parameters: Iterable[SplitParameter], optimizer: Optimizer | None) -> int:
    return sum(
        array_bytes(each.shard_shape, optimizer.gradients if optimizer else each.parameter.dtype)
        for each in parameters
    )


def _state_bytes(each: SplitParameter, optimizer: Optimizer) -> int:
    """Bytes of a parameter's state on a device."""
    parameter = each.parameter
    dims = tuple(f"d{index}" for index in range(len(parameter.shape)))
    array = ShardedArray(parameter.name, dims, parameter.shape, parameter.dtype, each.spec)
    shard = shard_shape(parameter.shape, state_spec(array, optimizer.over, each.mesh), each.mesh)
    return sum(array_bytes(shard, dtype) for dtype in optimizer.state_dtypes(parameter.dtype))


def _working_bytes(step: ModelStep, optimizer: Optimizer | None) -> int:
    """The most that any part holds beside its parameters and their state: with the activations of layers
    before it, then with the gradients of those behind it, whose backward pass is first."""
    most = kept = 0
    for index, part in enumerate(step.parts):
        memory, cost = part.cost.training_memory, part.cost
        if memory is not None:
            beside = memory.peak - memory.parameters - memory.optimizer
            beside += sum(
                _gradient_bytes(later.part.parameters, optimizer) for later in step.parts[index + 1 :]
            )
        else:
            mesh, given = cost.plan.problem.mesh, cost.plan.problem.arguments
            weights = [array for array in given if array.name not in ("x", "tokens")]
            own = sum(array.bytes_per_device(mesh) for array in weights)
            beside = cost.layers_peak_bytes - cost.layers * own
        most = max(most, beside + kept)
        kept += 0 if memory is None else memory.activations
    return most


def planned_step(question: ModelQuestion) -> ModelStep:
    """The step of a model. Raises `QuestionError` as `model_parts` does."""
    placed, training = question.placed, question.training
    planner = Planner(question.mesh, placed, anywhere=False, is_bounded=False)
    parts = []
    for part in model_parts(question.split, question.tokens, with_loss=training is not None):
        problem = part.problem
        if training is not None:
            # Only the layers are computed again.
            own = training if part.kind else training._replace(remat="none")
            problem = with_backward(problem, own)
        parts.append(PlannedPart(part, price(planner.plan(problem), placed)))
    return ModelStep(tuple(parts))
