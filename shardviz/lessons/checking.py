"""The errors of a lesson that can be read, key by key, for its author."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from shardviz.errors import ShardvizError
from shardviz.forms.form import ProblemForm
from shardviz.forms.resolve import ResolvedProblem, resolve_first
from shardviz.lessons.goal import changes, first_difference, read_spec, wanted_mesh
from shardviz.lessons.lesson import Lesson, Prediction, TextFigure
from shardviz.lessons.measures import answer_of, compute, is_right, measured
from shardviz.lessons.measures.answers import figures
from shardviz.lessons.measures.subject import array_named, resolve_once
from shardviz.strict_table import shown_key


@dataclass(frozen=True)
class Complaint:
    """A key of the lesson's file (``predict.2.wrong``), and what is wrong with it."""

    key: str
    reason: str


def unchecked_figures(lesson: Lesson) -> list[str]:
    """The times and bytes in a valid lesson's text that no figure, answer or limit of its goal has."""
    said = [figure.says for figure in lesson.figures]
    said += [answer_of(prediction).text for prediction in lesson.questions.values()]
    said += (lesson.goal.at_most or {}).values()
    known = set(figures("; ".join(said)).values())
    told = [lesson.see, lesson.explain, *lesson.hints]
    told += [reason for prediction in lesson.predictions for reason in prediction.wrong.values()]
    stated = figures("; ".join(told))
    return [text for text, value in stated.items() if value not in known]


def complaints(lesson: Lesson) -> list[Complaint]:
    """All that is wrong with a lesson, in the order of its file; none where it is valid: the start does not
    meet the goal and the solution does, by changing what may change; every wrong answer is one of its
    question's kind, wrong, and unlike the others; every screen has something to show; every one of its
    `figures` stands in its text and is what its measure computes."""
    return list(_complaints(lesson))


def _complaints(lesson: Lesson) -> Iterator[Complaint]:
    setup = _resolved(lesson.setup)
    if isinstance(setup, ShardvizError):
        fault = resolve_first(lesson.setup).faults[0]
        yield Complaint(f"setup.{fault.field.partition('.')[0]}", _words(setup))
        return
    yield from _screen("screen", lesson.screen, setup)
    for key, prediction in lesson.questions.items():
        yield from _prediction(key, prediction, lesson.screen)
    yield from _goal(lesson, setup)
    for number, figure in enumerate(lesson.figures, 1):
        yield from _figure(f"figures.{number}", figure, lesson)
    yield from _code("program", lesson.program)
    if (writing := lesson.writing) is not None and writing.goal is None:
        for key in ("starter", "solution", "reference"):
            yield from _code(f"write.{key}", getattr(writing, key))


def _code(key: str, text: str) -> Iterator[Complaint]:
    try:
        compile(text, key, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        yield Complaint(key, f"line {getattr(error, 'lineno', None)}: {getattr(error, 'msg', error)}")


def _prediction(key: str, prediction: Prediction, screen: str) -> Iterator[Complaint]:
    resolved = _resolved(prediction.draft)
    if isinstance(resolved, ShardvizError):
        yield Complaint(f"{key}.with", _words(resolved))
        return
    try:
        answer = answer_of(prediction)
    except ShardvizError as error:
        yield Complaint(f"{key}.ask", _words(error))
        return
    if prediction.tolerance is not None and not isinstance(answer.read(answer.text), (int, Fraction)):
        yield Complaint(f"{key}.tolerance", f"only a number can be typed; the answer is {answer.text}")
        return
    if prediction.before:
        yield from _screen(f"{key}.before", prediction.before, resolved)
    if prediction.screen != screen:
        yield from _screen(f"{key}.screen", prediction.screen, resolved)
    known: dict[str, str] = {}
    for wrong in prediction.wrong:
        complaint_key = f"{key}.wrong.{shown_key(wrong)}"
        try:
            shown = answer.shown(wrong)
        except ShardvizError as error:
            yield Complaint(complaint_key, _words(error))
            continue
        if is_right(prediction, wrong):
            yield Complaint(complaint_key, f"it is right: the answer is {answer.text}")
        elif shown in known:
            yield Complaint(complaint_key, f"it says the same as {known[shown]}")
        known.setdefault(shown, shown_key(wrong))


def _figure(key: str, figure: TextFigure, lesson: Lesson) -> Iterator[Complaint]:
    try:
        answer = compute(figure.ask, figure.draft)
        is_so = answer.is_same(figure.says)
    except ShardvizError as error:
        yield Complaint(key, _words(error))
        return
    if not is_so:
        yield Complaint(f"{key}.says", f"{figure.ask} is {answer.text}, not {figure.says}")
        return
    told = [lesson.see, lesson.explain, *lesson.hints]
    for prediction in lesson.questions.values():
        told += [prediction.question, *(text for pair in prediction.wrong.items() for text in pair)]
    number, _, unit = map(re.escape, figure.says.partition(" "))
    # Of several numbers only the last has the unit: 251, 89.4 or 35.8 ms.
    parts = rf"(?<![\d.,]){number}(?![.,]?\d)", rf"(?<!\w){unit}(?!\w)"
    if not any(all(re.search(part, text) for part in parts) for text in told):
        yield Complaint(f"{key}.says", f"{figure.ask} is {figure.says}, which the lesson's text does not say")


def _goal(lesson: Lesson, setup: ResolvedProblem) -> Iterator[Complaint]:
    solution = _resolved(lesson.solution)
    if isinstance(solution, ShardvizError):
        yield Complaint("solution", _words(solution))
        return
    goal_complaints = list(_parts_of_goal(lesson, solution))
    yield from goal_complaints
    if goal_complaints:
        return
    if first_difference(lesson.goal, lesson, setup) is None:
        yield Complaint("goal", "the start meets it already")
    changed = next(filter(None, changes(setup, solution, lesson.goal.may_change)), None)
    own = lesson.setup.collective
    if lesson.goal.may_change == ("collective",) and replace(lesson.solution, collective=own) != lesson.setup:
        changed = "only the collective may change"
    if changed is not None:
        yield Complaint("goal.may_change", f"the solution changes what is not in it: {changed}")
        return
    difference = first_difference(lesson.goal, lesson, solution)
    if difference is not None:
        yield Complaint("goal", f"the solution does not meet it: {difference}")


def _parts_of_goal(lesson: Lesson, solution: ResolvedProblem) -> Iterator[Complaint]:
    """Conditions that cannot be evaluated in any sandbox."""
    goal = lesson.goal
    for name, text in (goal.holds or {}).items():
        try:
            read_spec(text, wanted_mesh(lesson), array_named(solution, name))
        except ShardvizError as error:
            yield Complaint(f"goal.holds.{shown_key(name)}", _words(error))
    for ask, limit in (goal.at_most or {}).items():
        try:
            measured(ask, solution).read(limit)
        except ShardvizError as error:
            yield Complaint(f"goal.at_most.{shown_key(ask)}", _words(error))
    ends = None if goal.ends is None else _resolved(goal.ends)
    if isinstance(ends, ShardvizError):
        yield Complaint("goal.ends", _words(ends))


def _screen(key: str, screen: str, resolved: ResolvedProblem) -> Iterator[Complaint]:
    if screen == "step" and resolved.collective is None and not resolved.plan.collectives:
        reason = "there is nothing to step through: no collective is set, and the plan sends nothing"
        yield Complaint(key, reason)


def _resolved(draft: ProblemForm) -> ResolvedProblem | ShardvizError:
    try:
        return resolve_once(draft)
    except ShardvizError as error:
        return error


def _words(error: ShardvizError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message
