"""Where one stands in a lesson, as what is shared, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from shardviz.drafts.share import Shared
from shardviz.lessons.attempt import UNKNOWN, Attempt, begin, stages

if TYPE_CHECKING:
    from shardviz.lessons.lesson import Lesson


def shared_of(attempt: Attempt, screen: str) -> Shared:
    """The lesson's sandbox and stage; a lesson that is not of the course is shared as its problem alone."""
    if not attempt.lesson.number:
        return Shared(attempt.shown, screen)
    return Shared(attempt.draft, screen, attempt.lesson.name, attempt.place)


def attempt_of(shared: Shared) -> Attempt:
    """The attempt at a shared lesson's stage; predictions before it count as not known.

    Raises `LessonError` where the course has no such lesson.
    """
    from shardviz.lessons.course import find

    return attempt_at(find(shared.lesson, may_read_files=False), shared)


def with_own(sent: Attempt, own: Attempt) -> Attempt:
    """An attempt that was sent, with what the learner has predicted, asked for and solved.

    One that was sent before its sandbox opens leaves that as it is.
    """
    answers = tuple(
        theirs if mine is None else mine for mine, theirs in zip(own.answers, sent.answers, strict=True)
    )
    hints, is_solved = max(own.hints, sent.hints), own.is_solved or sent.is_solved
    draft = sent.draft if sent.stage.kind in ("change", "code") else own.draft
    return replace(sent, answers=answers, hints=hints, is_solved=is_solved, draft=draft)


def attempt_at(lesson: Lesson, shared: Shared) -> Attempt:
    """The attempt at this lesson; a stage beyond its end is the last."""
    place = min(shared.stage, len(stages(lesson)) - 1)
    passed = sum(stage.kind == "reveal" for stage in stages(lesson)[: place + 1])
    answers = (UNKNOWN,) * passed + (None,) * (len(lesson.predictions) - passed)
    return replace(begin(lesson), place=place, answers=answers, draft=shared.draft)
