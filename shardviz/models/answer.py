"""The answer to a question about a model: its memory and its step; and what moves from one answer to
another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz.models.folding import FoldedParameter, folded
from shardviz.models.memory import ModelMemory, model_memory
from shardviz.models.question import ModelQuestion
from shardviz.models.step import ModelStep, planned_step

if TYPE_CHECKING:
    from shardviz.planner.problem import Phase


@dataclass(frozen=True)
class ModelAnswer:
    """The memory of a device and the step of a model; `step` is None where nothing says how the parameters
    are used."""

    question: ModelQuestion
    memory: ModelMemory
    step: ModelStep | None


def answered(question: ModelQuestion) -> ModelAnswer:
    """The answer, for which the step is planned. Raises `QuestionError` as `planned_step` does."""
    step = None if question.model.architecture is None else planned_step(question)
    return ModelAnswer(question, model_memory(question, step), step)


@dataclass(frozen=True)
class MovedCollective:
    """Collectives over the same axes in a part and a phase of a step, in two answers: how many, their bytes
    and their seconds, of all runs together."""

    part: str
    phase: Phase
    op: str
    axes: tuple[str, ...]
    counts: tuple[int, int]
    bytes: tuple[int, int]
    seconds: tuple[float, float]


@dataclass(frozen=True)
class ModelChange:
    """Two answers about a model, and where they differ.

    `parameters` are those that are split otherwise, before and after; `collectives` those that are added,
    gone, or of other bytes.
    """

    before: ModelAnswer
    after: ModelAnswer
    parameters: tuple[tuple[FoldedParameter, FoldedParameter], ...]
    collectives: tuple[MovedCollective, ...]


def change(before: ModelAnswer, after: ModelAnswer) -> ModelChange:
    """The differences between two answers about the same parameters."""
    split = {each.parameter.name: each for each in before.question.split.parameters}
    others = [
        each
        for each in after.question.split.parameters
        if each.parameter.name in split and split[each.parameter.name].spec != each.spec
    ]
    pairs = []
    for each in folded(others):
        first = split[each.first.parameter.name]
        pairs.append((FoldedParameter(each.name, first, each.count), each))
    return ModelChange(before, after, tuple(pairs), tuple(_moved(before.step, after.step)))


_Alike = tuple[str, "Phase", str, tuple[str, ...]]
"""Part, phase, operation and axes of collectives that are counted together."""


def _moved(before: ModelStep | None, after: ModelStep | None) -> Iterator[MovedCollective]:
    one, other = _totals(before), _totals(after)
    for key in dict.fromkeys((*one, *other)):
        first, second = one.get(key, (0, 0, 0.0)), other.get(key, (0, 0, 0.0))
        if first[:2] != second[:2]:
            (count, size, seconds), (new_count, new_size, new_seconds) = first, second
            yield MovedCollective(*key, (count, new_count), (size, new_size), (seconds, new_seconds))


def _totals(step: ModelStep | None) -> dict[_Alike, tuple[int, int, float]]:
    """The number, the bytes and the seconds of all runs of the collectives that are alike."""
    found: dict[_Alike, tuple[int, int, float]] = {}
    for each in step.parts if step is not None else ():
        runs = each.cost.layers
        for phase, priced in each.collectives():
            key = (each.part.name, phase, priced.step.op, priced.step.axes)
            count, size, seconds = found.get(key, (0, 0, 0.0))
            seconds += runs * (priced.seconds or 0.0)
            found[key] = count + runs, size + runs * priced.step.bytes, seconds
    return found
