"""A check that every text of a lesson can be read at once in a terminal of 80×24."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from shardviz.lessons.attempt import UNKNOWN, Attempt, LessonStage, begin, stages
from shardviz.lessons.lesson import Lesson
from shardviz.render.lessons.guide import Told, guide_page, told_of
from shardviz.render.lines import sentence

COLUMNS, LINES = 80, 24
GUIDE = (34, LINES - 4)
"""Columns and lines of the guide: above it stand the lesson, the problem and the screens, below the keys."""
TITLE = 46
"""Columns of the title beside the dots of the stages."""
STRIP = COLUMNS - 2
GOAL_LINES = HINT_LINES = 2


def fits(lesson: Lesson) -> list[str]:
    """The texts that do not fit, a sentence each."""
    return [*_title(lesson), *_stages(lesson), *_strip(lesson)]


def _title(lesson: Lesson) -> Iterator[str]:
    if len(lesson.title) > TITLE:
        yield f"title has {len(lesson.title)} letters; {TITLE} fit"


def _stages(lesson: Lesson) -> Iterator[str]:
    width, height = GUIDE
    attempt = begin(lesson)
    too_long: set[int] = set()
    for place, stage in enumerate(stages(lesson)):
        at = replace(attempt, place=place)
        # A question that is too long is so again above each answer.
        if stage.kind == "change" or (stage.kind == "reveal" and stage.number in too_long):
            continue
        for said, told in _tellings(at):
            answered = replace(at, answers=(said,) * len(lesson.predictions))
            page = guide_page(answered, told, width, height)
            where = _key(stage, said)
            widest = max(line.cell_len for line in page.lines)
            if stage.kind == "predict" and (widest > width or len(page.lines) > height):
                too_long.add(stage.number)
            if widest > width:
                yield f"{where} has a word of {widest} columns; {width} fit"
            elif len(page.lines) > height:
                yield f"{where} takes {len(page.lines)} lines of {width} columns; {height} fit"


def _key(stage: LessonStage, said: str | None) -> str:
    """The key of the file that a stage shows."""
    if stage.kind == "predict":
        return f"predict.{stage.number + 1}.question with its choices"
    return stage.kind if said is None else f"predict.{stage.number + 1} after the answer {said!r}"


def _tellings(attempt: Attempt) -> Iterator[tuple[str | None, Told]]:
    """All that the stage can say: a reveal has something to say to each answer."""
    prediction = attempt.prediction
    if prediction is None:
        yield None, Told()
        return
    told = replace(told_of(prediction), chosen=0)
    if attempt.stage.kind == "predict":
        yield None, told
        return
    for said in (*told.choices, UNKNOWN):
        yield said, told


def _strip(lesson: Lesson) -> Iterator[str]:
    if len(sentence(lesson.goal.text, STRIP, lead="Goal  ")) > GOAL_LINES:
        yield f"goal.text takes more than {GOAL_LINES} lines of {STRIP} columns"
    for number, hint in enumerate(lesson.hints, 1):
        if len(sentence(hint, STRIP, lead=f"Hint {number} of 3  ")) > HINT_LINES:
            yield f"hints.{number} takes more than {HINT_LINES} lines of {STRIP} columns"
