"""Experts and pipelines: tokens that find no place at an expert, stages that wait.

An expert has so many places; a token that chooses a full one is dropped. Of a pipeline the devices along a
mesh axis are stages, and micro-batches go through them one after the other: in every tick a stage works on
one micro-batch and hands it to the next stage, so stage s works on micro-batch t − s in tick t (Huang et al.,
"GPipe", 2019). The backward pass goes the same way back, with the same share of time idle.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError, quote
from shardviz.lessons.measures.answers import NUMBER, PERCENT, ComputedAnswer, whole_number
from shardviz.strict_table import closest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardviz.forms.resolve import ResolvedProblem


def size(resolved: ResolvedProblem, dim: str) -> ComputedAnswer:
    """The size of a dimension, given or derived, such as that of an expert's places."""
    return NUMBER.answer(_size_of(resolved, dim))


def dropped(resolved: ResolvedProblem, dim: str, loads: str) -> ComputedAnswer:
    """The choices that find no place, where `loads` says how many tokens of a sequence choose each expert and
    each expert has as many places as `dim` is long."""
    places = _size_of(resolved, dim)
    chosen = [whole_number(each) for each in loads.split(",")]
    if len(chosen) < 2:
        raise QuestionError(f"{quote(loads, 30)} is one load", "write one for each expert: 9,3,2,2")
    return NUMBER.answer(sum(max(0, each - places) for each in chosen))


def ticks(resolved: ResolvedProblem, axis: str, dim: str) -> ComputedAnswer:
    """The ticks until the last micro-batch has left the last stage."""
    return NUMBER.answer(len(_schedule(resolved, axis, dim)))


def busy(resolved: ResolvedProblem, axis: str, dim: str, tick: str) -> ComputedAnswer:
    """The number of stages that work in a tick; the first is tick 0."""
    schedule = _schedule(resolved, axis, dim)
    number = whole_number(tick)
    if number >= len(schedule):
        raise QuestionError(f"there is no tick {number:,}", f"they go from 0 to {len(schedule) - 1:,}")
    return NUMBER.answer(sum(each is not None for each in schedule[number]))


def bubble(resolved: ResolvedProblem, axis: str, dim: str) -> ComputedAnswer:
    """The share of its time for which a stage has nothing to do."""
    works = [each is not None for stages in _schedule(resolved, axis, dim) for each in stages]
    return PERCENT.answer(1 - Fraction(sum(works), len(works)))


def _schedule(resolved: ResolvedProblem, axis: str, dim: str) -> Sequence[Sequence[int | None]]:
    """For each tick the micro-batch of each stage, None where it has none."""
    stages = resolved.problem.mesh.axis_size(axis)
    count = _size_of(resolved, dim)
    every = range(count + stages - 1)
    return [
        [tick - stage if 0 <= tick - stage < count else None for stage in range(stages)] for tick in every
    ]


def _size_of(resolved: ResolvedProblem, dim: str) -> int:
    known = {
        name: extent
        for part in resolved.problem.forward
        for array in (*part.operands, part.result)
        for name, extent in zip(array.dims, array.shape, strict=True)
    }
    if dim not in known:
        raise QuestionError(f"there is no dimension {quote(dim, 30)}", closest(dim, tuple(known)))
    return known[dim]
