"""The page that tells a teacher where the class is and what it predicts: counts, and nobody's name."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from shardviz.errors import plural
from shardviz.lessons.attempt import TITLES, LessonStage, stages
from shardviz.lessons.course import find

if TYPE_CHECKING:
    from shardviz.forms.share import Shared
    from shardviz.lessons.lesson import Lesson
    from shardviz.serve.lecture import ClassCounts, LessonPlace


def class_page(led: Shared, counts: ClassCounts) -> str:
    """The page in HTML: `led` is what the teacher's page shows."""
    lesson = find(led.lesson, may_read_files=False) if led.lesson else None
    parts = [f"<h1>{escape(_title(led.lesson))}</h1>"]
    parts.append(f"<p>{plural(counts.pupils, 'pupil')}, {counts.following} with you</p>")
    if lesson is not None:
        parts.append(_stages(lesson, led, counts))
    parts.append(_elsewhere(led, counts))
    asked = sorted(
        counts.predictions, key=lambda place: (place.lesson != led.lesson, place.lesson, place.number)
    )
    parts += [_prediction(place, counts) for place in asked]
    template = (files("shardviz.serve") / "page" / "class.html").read_text(encoding="utf-8")
    return template.replace("{class}", "\n".join(filter(None, parts)))


def _stages(lesson: Lesson, led: Shared, counts: ClassCounts) -> str:
    here = {place.number: count for place, count in counts.places.items() if place.lesson == led.lesson}
    rows = []
    for number, stage in enumerate(stages(lesson)):
        name = _stage_name(lesson, stage) + (" ◂ you" if number == led.stage else "")
        rows.append((name, here.get(number, 0)))
    return _table("Where they are", rows, counts.pupils)


def _elsewhere(led: Shared, counts: ClassCounts) -> str:
    """A row for each other lesson that a pupil has open, and for problems of their own."""
    found: dict[str, int] = {}
    for place, count in counts.places.items():
        if place.lesson != led.lesson:
            found[place.lesson] = found.get(place.lesson, 0) + count
    rows = [(_title(name), count) for name, count in sorted(found.items())]
    return _table("Elsewhere", rows, counts.pupils) if rows else ""


def _prediction(place: LessonPlace, counts: ClassCounts) -> str:
    lesson, said = find(place.lesson, may_read_files=False), counts.predictions[place]
    if place.number >= len(lesson.predictions):
        return ""
    title = f"{_stage_name(lesson, LessonStage('predict', place.number))} in lesson {lesson.number}"
    answered = f"{title}: {said.total()} of {counts.pupils} have predicted"
    question = lesson.predictions[place.number].question
    return _table(answered, said.most_common(), counts.pupils, question)


def _table(title: str, rows: Iterable[tuple[str, int]], most: int, text: str = "") -> str:
    lines = [f"<h2>{escape(title)}</h2>"]
    if text:
        lines.append(f"<p>{escape(text)}</p>")
    lines.append("<table>")
    for name, count in rows:
        meter = f'<meter max="{max(most, 1)}" value="{count}">{count}</meter>'
        lines.append(f"<tr><th>{escape(name)}</th><td>{count}</td><td>{meter}</td></tr>")
    return "\n".join([*lines, "</table>"])


def _title(name: str) -> str:
    if not name:
        return "A problem in no lesson"
    lesson = find(name, may_read_files=False)
    return f"Lesson {lesson.number}: {lesson.title}"


def _stage_name(lesson: Lesson, stage: LessonStage) -> str:
    """``Predict 2``: numbered where the lesson has several predictions."""
    is_numbered = stage.kind in ("predict", "reveal") and len(lesson.predictions) > 1
    return f"{TITLES[stage.kind]} {stage.number + 1}" if is_numbered else TITLES[stage.kind]
