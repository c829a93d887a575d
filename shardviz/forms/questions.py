"""Questions: the problems of a session with their plans, those of sessions before, what tells them apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shardviz.errors import ShardvizError
from shardviz.forms.form import History
from shardviz.forms.resolve import ResolvedProblem, resolve
from shardviz.forms.summary import SummaryPart, summary
from shardviz.lazy_names import LazyImports

with LazyImports():
    from shardviz.planner import planner

if TYPE_CHECKING:
    from shardviz.hardware.machine import PlacedMesh
    from shardviz.planner.plan import Plan
    from shardviz.planner.problem import Problem

KEPT = 100
EARLIER = 20
"""Steps of undo that are looked at for questions of sessions before."""
BESIDE = {"targets"}
"""The parts of a summary that change no figure of the plan."""


class AskedQuestions:
    """The questions, the newest first; one that is asked again comes to the front."""

    def __init__(self) -> None:
        self._asked: list[ResolvedProblem] = []

    def take(self, resolved: ResolvedProblem) -> None:
        """Keep a valid problem whose plan is made, in place of the same one, whose plan may be another."""
        others = [each for each in self._asked if not is_same_question(each, resolved)]
        self._asked = [resolved, *others][:KEPT]

    def add_earlier(self, resolved: ResolvedProblem) -> None:
        """Keep a question of a session before, after all others."""
        if not any(is_same_question(each, resolved) for each in self._asked):
            self._asked = [*self._asked, resolved][:KEPT]

    @property
    def newest_first(self) -> tuple[ResolvedProblem, ...]:
        return tuple(self._asked)

    def before(self, resolved: ResolvedProblem) -> tuple[ResolvedProblem, ...]:
        """The questions other than this one."""
        return tuple(each for each in self._asked if not is_same_question(each, resolved))


def earlier_questions(history: History, asked: AskedQuestions) -> Iterator[ResolvedProblem]:
    """The questions of the last steps of undo that were not asked in this session, the newest first. What is
    wrong, or takes long to plan, is left out."""
    known = {resolved.draft for resolved in asked.newest_first}
    steps = dict.fromkeys(reversed((*history.before, history.draft, *history.after)))
    for draft in [step for step in steps if step not in known][:EARLIER]:
        try:
            resolved = resolve(draft, find_plan=_quick_plan)
        except ShardvizError:
            continue
        if resolved.planning is None:
            yield resolved


def _quick_plan(problem: Problem, placed: PlacedMesh) -> Plan | None:
    return planner.plan(problem, placed) if planner.is_planned_quickly(problem) else None


def is_same_question(one: ResolvedProblem, other: ResolvedProblem) -> bool:
    """True for one problem on one machine, with one mesh: the targets only answer it."""
    return one is other or (one.problem, one.placed) == (other.problem, other.placed)


def what_differs(one: ResolvedProblem, other: ResolvedProblem) -> tuple[SummaryPart, ...]:
    """The parts of a question's summary that another one has not; all of them where it has only fewer."""
    parts = [part for part in summary(one) if part.kind not in BESIDE]
    others = summary(other)
    return tuple(part for part in parts if part not in others) or tuple(parts)
