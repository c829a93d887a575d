"""The course and a lesson as JSON objects, for tools: the answers are in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shardviz import schemas
from shardviz.drafts.document import to_document
from shardviz.lessons.attempt import UNKNOWN
from shardviz.lessons.lesson import Lesson, Prediction
from shardviz.render.lessons.course_list import Entry
from shardviz.render.lessons.guide_lines import told_of


def course_document(entries: Sequence[Entry]) -> dict[str, Any]:
    """The lessons in order; `stage` is null where none was begun."""
    lessons = [
        {
            "number": entry.number,
            "name": entry.name,
            "title": entry.title,
            "state": entry.state,
            "stage": entry.stage or None,
        }
        for entry in entries
    ]
    return schemas.document("lessons", {"lessons": lessons})


def lesson_document(lesson: Lesson) -> dict[str, Any]:
    """All of a lesson, each answer as it is computed; problems as `drafts.document` writes them."""
    return schemas.document(
        "lesson",
        {
            "lesson": {
                "number": lesson.number,
                "name": lesson.name,
                "title": lesson.title,
                "see": lesson.see,
                "screen": lesson.screen,
                "setup": to_document(lesson.setup),
                "predictions": [_prediction_document(each) for each in lesson.predictions],
                "explain": lesson.explain,
                "goal": lesson.goal.text,
                "hints": list(lesson.hints),
                "solution": to_document(lesson.solution),
                "program": lesson.program or None,
            },
        },
    )


def _prediction_document(prediction: Prediction) -> dict[str, Any]:
    told = told_of(prediction)
    return {
        "question": prediction.question,
        "ask": prediction.ask,
        "choices": [*told.choices, UNKNOWN],
        "answer": told.answer,
        "wrong": dict(told.reasons),
        "problem": to_document(prediction.draft),
    }
