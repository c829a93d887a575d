"""A lecture as the server knows it: where the teacher's page is, where the pupils' are, what they predict;
and the page that tells a teacher so.

It is kept in memory alone, of nobody's name. Who has left counts no more; the predictions are kept, by the
name that the page gave the browser's tab, for a connection that breaks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files

from shardviz.errors import QuestionError, plural
from shardviz.forms.form import one_line
from shardviz.forms.share import Shared, from_string
from shardviz.lessons.attempt import TITLES, LessonStage, stages
from shardviz.lessons.course import find, lesson_names
from shardviz.lessons.lesson import Lesson

MAX_TABS = 1000
"""Tabs that were left whose predictions are kept."""
MAX_CHOICE = 200
"""Characters of an answer that are kept."""


@dataclass(frozen=True)
class PagePointer:
    """`lens` is the position in the mesh of the device that is marked, None where none is. `step` is that of
    the plan under the cursor or played, from 1, `round` the one that is shown; 0 where there is none."""

    lens: int | None = None
    step: int = 0
    round: int = 0


def pointer_in(said: object) -> PagePointer:
    """The pointer in a message; one that points at nothing where it has none."""
    match said:
        case {"lens": int() | None as lens, "step": int(step), "round": int(round)}:
            return PagePointer(lens, step, round)
    return PagePointer()


@dataclass(frozen=True)
class LessonPlace:
    """A lesson by its name, empty for a problem that is in none; the number of a stage or a prediction of it,
    from 0."""

    lesson: str
    number: int


@dataclass(frozen=True)
class ClassCounts:
    """The pupils, those of them who follow, how many are at each stage, and how many predicted what."""

    pupils: int
    following: int
    places: Mapping[LessonPlace, int]
    predictions: Mapping[LessonPlace, Counter[str]]


Predictions = dict[LessonPlace, str]


@dataclass
class _Pupil:
    tab: str = ""
    place: LessonPlace | None = None
    follows: bool = True
    predictions: Predictions = field(default_factory=dict)


class Lecture:
    """`string` is what the teacher's page shows, for others to open; `shared` the same, read; `pointer` is at
    what of it that page looks."""

    def __init__(self, string: str) -> None:
        self.string = string
        self.shared: Shared = from_string(string)
        self.pointer = PagePointer()
        self._pupils: defaultdict[Hashable, _Pupil] = defaultdict(_Pupil)
        self._left: dict[str, Predictions] = {}
        """The predictions of pupils who have left, by their tabs."""

    def lead(self, said: object) -> bool:
        """Note what the teacher's page says; return whether it is elsewhere than before."""
        before = self.string, self.pointer
        match said:
            case {"type": "leads", "shared": str(string)}:
                try:
                    self.shared = from_string(string)
                except QuestionError:
                    return False
                self.string, self.pointer = string, pointer_in(said)
        return (self.string, self.pointer) != before

    def hear(self, pupil: Hashable, said: object) -> None:
        """Note what a pupil's page says, as far as it may be: of lessons of the course."""
        match said:
            case {"type": "stands", "lesson": str(lesson), "stage": int(stage), "follows": bool(follows)}:
                if lesson in ("", *lesson_names()):
                    self._pupils[pupil].place = LessonPlace(lesson, stage)
                    self._pupils[pupil].follows = follows
            case {"type": "predicts", "lesson": str(lesson), "number": int(number), "choice": str(choice)}:
                if lesson in lesson_names() and 0 <= number < 10:
                    said_so = one_line(choice[:MAX_CHOICE])
                    self._pupils[pupil].predictions[LessonPlace(lesson, number)] = said_so

    def enter(self, pupil: Hashable, tab: str) -> Predictions:
        """Note a pupil in a tab of that name, and return what was predicted there before, also by a page that
        has not quite left."""
        found = self._left.pop(tab, {})
        for other in self._pupils.values() if tab else ():
            if other.tab == tab and other.predictions:
                found, other.predictions = other.predictions, {}
        self._pupils[pupil] = _Pupil(tab, predictions=found)
        return found

    def leave(self, pupil: Hashable) -> None:
        """Count a pupil no more."""
        gone = self._pupils.pop(pupil, None)
        if gone is not None and gone.tab and gone.predictions:
            self._left[gone.tab] = gone.predictions
            if len(self._left) > MAX_TABS:
                del self._left[next(iter(self._left))]

    @property
    def counts(self) -> ClassCounts:
        pupils = [pupil for pupil in self._pupils.values() if pupil.place is not None]
        predictions: defaultdict[LessonPlace, Counter[str]] = defaultdict(Counter)
        for pupil in pupils:
            for place, choice in pupil.predictions.items():
                predictions[place][choice] += 1
        places = Counter(pupil.place for pupil in pupils if pupil.place is not None)
        return ClassCounts(len(pupils), sum(pupil.follows for pupil in pupils), places, predictions)


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
