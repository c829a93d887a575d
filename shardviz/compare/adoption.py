"""Shardy's choice in place of the plan's, where it costs less."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from shardviz.errors import QuestionError
from shardviz.planner import Plan, Planner, Problem
from shardviz.planner.planner import MOST_ANYWHERE
from shardviz.planner.pricing.costs import price
from shardviz.sharding import PartitionSpec

if TYPE_CHECKING:
    from shardviz.hardware.machine import PlacedMesh


class SplitAnswer(Protocol):
    """A target's answer that says how the arrays in between are split."""

    @property
    def target(self) -> str: ...
    @property
    def splits(self) -> Sequence[tuple[str, PartitionSpec]]: ...


def cheaper_plan(plan: Plan, answers: Iterable[SplitAnswer], placed: PlacedMesh) -> Plan:
    """The plan, or where Shardy's way to split the arrays in between costs less, a plan that does the same.

    That plan has its results where Shardy leaves them, and the planner's moves; `Plan.teller` says so. Both
    are priced alike. A plan that is proved to be the best is never looked at again.
    """
    splits = next((each.splits for each in answers if each.target == "shardy"), ())
    return cheaper_if_split(plan, splits, placed) if may_be_beaten(plan, splits) else plan


def may_be_beaten(plan: Plan, splits: Sequence[tuple[str, PartitionSpec]]) -> bool:
    """Return whether a plan with the splits that Shardy chose may cost less."""
    return bool(splits) and not plan.optimal and plan.teller != "shardy"


def cheaper_if_split(plan: Plan, splits: Iterable[tuple[str, PartitionSpec]], placed: PlacedMesh) -> Plan:
    """As `cheaper_plan`, given how Shardy splits the arrays in between."""
    others = [plan, *_split_alike(plan, split_as(plan.question, dict(splits)), placed)]
    other = min(others, key=lambda each: _cost(each, placed))
    if other is plan:
        return plan
    return replace(
        other,
        problem=_reopened(other.problem, plan.question),
        optimal=False,
        at_most=plan.at_most,
        faster=plan.faster,
        teller="shardy",
        asked=plan.question,
    )


def _split_alike(plan: Plan, problem: Problem, placed: PlacedMesh) -> Iterator[Plan]:
    """Plans of a problem whose open results Shardy has split: one that shares the work as the arrays are
    split, and where the mesh is small enough the fastest."""
    wide = [size for size in problem.mesh.axis_sizes if size > 1]
    for anywhere in (None, True) if len(wide) <= MOST_ANYWHERE else (None,):
        try:
            planner = Planner(problem.mesh, placed, plan.objective, anywhere=anywhere, is_bounded=False)
            yield planner.plan(problem)
        except QuestionError:
            continue


def split_as(problem: Problem, splits: Mapping[str, PartitionSpec]) -> Problem:
    """The problem with its open results split so."""
    parts = tuple(
        replace(part, result=part.result.with_spec(splits[part.result.name]))
        if part.result.spec is None and part.result.name in splits
        else part
        for part in problem.parts
    )
    return replace(problem, parts=parts)


def _reopened(problem: Problem, question: Problem) -> Problem:
    """The problem with those results open that the question leaves open."""
    is_open = {part.result.name for part in question.parts if part.result.spec is None}
    parts = tuple(
        replace(part, result=part.result.with_spec(None)) if part.result.name in is_open else part
        for part in problem.parts
    )
    return replace(problem, parts=parts)


def _cost(plan: Plan, placed: PlacedMesh) -> tuple[float, float]:
    """Seconds and bytes sent, in the order in which the plan makes them small."""
    seconds, sent = price(plan, placed).serial_seconds, float(plan.wire_bytes)
    return (seconds, sent) if plan.objective == "time" else (sent, seconds)
