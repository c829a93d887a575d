"""The questions of a session: problems that were on screen with their plans, and what tells them apart."""

from __future__ import annotations

from shardviz.forms.resolve import ResolvedProblem
from shardviz.forms.summary import SummaryPart, summary

KEPT = 100
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

    @property
    def newest_first(self) -> tuple[ResolvedProblem, ...]:
        return tuple(self._asked)

    def before(self, resolved: ResolvedProblem) -> tuple[ResolvedProblem, ...]:
        """The questions other than this one."""
        return tuple(each for each in self._asked if not is_same_question(each, resolved))


def is_same_question(one: ResolvedProblem, other: ResolvedProblem) -> bool:
    """True for one problem on one machine, with one mesh: the targets only answer it."""
    return one is other or (one.problem, one.placed) == (other.problem, other.placed)


def what_differs(one: ResolvedProblem, other: ResolvedProblem) -> tuple[SummaryPart, ...]:
    """The parts of a question's summary that another one has not; all of them where it has only fewer."""
    parts = [part for part in summary(one) if part.kind not in BESIDE]
    others = summary(other)
    return tuple(part for part in parts if part not in others) or tuple(parts)
