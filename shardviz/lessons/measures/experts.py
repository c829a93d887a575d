"""Experts with a capacity: how many places there are, and how many tokens find none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.errors import QuestionError, quote
from shardviz.lessons.measures.answers import NUMBER, ComputedAnswer, whole_number
from shardviz.strict_table import closest

if TYPE_CHECKING:
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
