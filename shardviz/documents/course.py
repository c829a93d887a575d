"""Lessons, and problems as they are shared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from shardviz.documents.fields import Beside, JsonField, late, one_of, record
from shardviz.forms.form import SCREENS

if TYPE_CHECKING:
    from shardviz.lessons.lesson import Lesson


def _questions(lesson: Lesson) -> Iterator[Beside]:
    """Each prediction with its choices, all in one form, and the right one of them."""
    from shardviz.lessons.attempt import UNKNOWN
    from shardviz.lessons.measures import answer_of, choices

    for prediction in lesson.predictions:
        answer = answer_of(prediction)
        yield Beside(
            prediction,
            choices=[*map(answer.shown, choices(prediction)), UNKNOWN]
            if prediction.tolerance is None
            else [],
            answer=answer.text,
            wrong={answer.shown(said): reason for said, reason in prediction.wrong.items()},
        )


def _draft() -> JsonField:
    """A form, as share strings and files have it."""
    return replace(record("course", "form"), write=late("shardviz.forms.share", "to_document")).shared(
        "draft"
    )


TYPES = {"draft": _draft, "screen": lambda: one_of(SCREENS)}
SOURCES = {"predictions": _questions}
