"""A lecture as the server knows it: where the teacher's page is, where the pupils' are, what they predict;
and the page that tells a teacher so.

It is kept in memory alone, of nobody's name. Who has left counts no more; the predictions are kept, by the
name that the page gave the browser's tab, its seat, for a connection that breaks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import Any

from shardviz.errors import QuestionError, plural
from shardviz.forms.form import one_line
from shardviz.forms.share import Shared, from_string
from shardviz.lessons.attempt import TITLES, LessonStage, stages
from shardviz.lessons.course import find, lesson_names
from shardviz.lessons.lesson import Lesson

MAX_SEATS = 1000
"""Seats that were left whose predictions are kept."""
MAX_CHOICE = 200
"""Characters of an answer that are kept."""


@dataclass(frozen=True)
class PagePointer:
    """`lens` is the position in the mesh of the device that is marked, None where none is. `step` is that of
    the plan under the cursor or played, from 1, `round` the one that is shown; 0 where there is none.
    `layout` has the values of a `LayoutView`; it is empty where no layout is shown."""

    lens: int | None = None
    step: int = 0
    round: int = 0
    layout: tuple[str, int, bool, bool] | tuple[()] = ()


def pointer_in(said: object) -> PagePointer:
    """The pointer in a message; one that points at nothing where it has none."""
    match said:
        case {"lens": int() | None as lens, "step": int(step), "round": int(round), "layout": [*layout]}:
            match layout:
                case [str(array), int(position), bool(by_device), bool(at_einsum)] if position >= 0:
                    return PagePointer(lens, step, round, (array, position, by_device, at_einsum))
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
    """The pupils, those of them who follow, how many are at each stage, how many predicted what, how many
    looked at an answer before they predicted, and the answers that the teacher has shown."""

    pupils: int
    following: int
    places: Counter[LessonPlace]
    predictions: Mapping[LessonPlace, Counter[str]]
    looked: Mapping[LessonPlace, int]
    shown: Mapping[LessonPlace, str]


@dataclass
class _Pupil:
    place: LessonPlace | None = None
    """None where the pupil follows."""
    predictions: dict[LessonPlace, str] = field(default_factory=dict)
    looked: set[LessonPlace] = field(default_factory=set)
    """The predictions whose answers the pupil has seen before the teacher showed them."""


class Lecture:
    """`string` is what the teacher's page shows, for others to open; `shared` the same, read; `pointer` is at
    what of it that page looks; `asked` the prediction that it shows, None where it shows none; `shown` those
    whose answers it has shown."""

    def __init__(self, string: str) -> None:
        self.string = string
        self.shared: Shared = from_string(string)
        self.pointer = PagePointer()
        self.asked: Any = None
        self.shown: dict[LessonPlace, str] = {}
        self._pupils: dict[str, _Pupil] = {}
        self._left: dict[str, _Pupil] = {}
        """Pupils whose pages are gone."""

    def lead(self, said: object) -> bool:
        """Note what the teacher's page says; return whether it is elsewhere than before."""
        before = self.string, self.pointer
        match said:
            case {"type": "leads", "shared": str(string), **more}:
                try:
                    self.shared = from_string(string)
                except QuestionError:
                    return False
                self.string, self.pointer, self.asked = string, pointer_in(said), more.get("asks")
                if self.asked is not None and self.asked["is_shown"]:
                    self.shown[self._place] = self.asked["answer"]
        return (self.string, self.pointer) != before

    def hear(self, seat: str, said: object) -> None:
        """Note what the page of a pupil who took over says, as far as it may be: of lessons of the course."""
        pupil, known = self._pupils.get(seat), ("", *lesson_names())
        match said:
            case _ if pupil is None:
                return
            case {"type": "stands", "lesson": str(name), "stage": int(stage)} if name in known:
                pupil.place = LessonPlace(name, stage)
                passed = stages(find(name, may_read_files=False))[: max(0, stage) + 1] if name else ()
                seen = {LessonPlace(name, number) for kind, number in passed if kind == "reveal"}
                pupil.looked |= seen - self.shown.keys()
            case {"type": "predicts", "lesson": str(name), "number": int(number), "choice": str(choice)}:
                if name and name in known and 0 <= number < 10:
                    self._note(pupil, LessonPlace(name, number), choice)

    def predict(self, seat: str, choice: str) -> None:
        if self.asked is not None and choice in self.asked["choices"] and seat in self._pupils:
            self._note(self._pupils[seat], self._place, choice)

    def _note(self, pupil: _Pupil, place: LessonPlace, choice: str) -> None:
        """Keep a prediction, unless its answer was seen before."""
        if place not in pupil.looked and place not in self.shown:
            pupil.predictions[place] = one_line(choice[:MAX_CHOICE])

    @property
    def _place(self) -> LessonPlace:
        return LessonPlace(self.shared.lesson, self.asked["number"])

    def question_for(self, seat: str) -> dict[str, object] | None:
        """The question that the page of a pupil who follows asks, with what was chosen, and the answer as
        soon as the teacher shows it."""
        if self.asked is None:
            return None
        pupil, answer = self._pupils[seat], self.asked["answer"] if self.asked["is_shown"] else None
        asked = {name: self.asked[name] for name in ("question", "choices")} | {"answer": answer}
        return asked | {"chosen": pupil.predictions.get(self._place), "looked": self._place in pupil.looked}

    def enter(self, seat: str) -> None:
        """Note a pupil at a seat, with what was predicted there before."""
        self._pupils[seat] = self._pupils.get(seat) or self._left.pop(seat, None) or _Pupil()

    def follow(self, seat: str) -> None:
        if seat in self._pupils:
            self._pupils[seat].place = None

    def leave(self, seat: str) -> None:
        gone = self._pupils.pop(seat, None)
        if gone is not None and (gone.predictions or gone.looked):
            self._left[seat] = gone
            if len(self._left) > MAX_SEATS:
                del self._left[next(iter(self._left))]

    @property
    def counts(self) -> ClassCounts:
        predictions: defaultdict[LessonPlace, Counter[str]] = defaultdict(Counter)
        looked: Counter[LessonPlace] = Counter()
        for pupil in self._pupils.values():
            for place, choice in pupil.predictions.items():
                predictions[place][choice] += 1
            looked.update(pupil.looked - pupil.predictions.keys())
        here = LessonPlace(self.shared.lesson, self.shared.stage)
        places = Counter(pupil.place or here for pupil in self._pupils.values())
        following = sum(pupil.place is None for pupil in self._pupils.values())
        return ClassCounts(len(self._pupils), following, places, predictions, looked, self.shown)


def class_page(led: Shared, counts: ClassCounts) -> str:
    """The page in HTML: `led` is what the teacher's page shows."""
    lesson = find(led.lesson, may_read_files=False) if led.lesson else None
    parts = [f"<h1>{escape(_title(led.lesson))}</h1>"]
    parts.append(f"<p>{plural(counts.pupils, 'pupil')}, {counts.following} with you</p>")
    if lesson is not None:
        parts.append(_stages(lesson, led, counts))
    parts.append(_elsewhere(led, counts))
    asked = counts.predictions.keys() | counts.looked.keys()
    ordered = sorted(asked, key=lambda place: (place.lesson != led.lesson, place.lesson, place.number))
    parts += [_prediction(place, counts) for place in ordered]
    template = (files("shardviz.serve") / "page" / "class.html").read_text(encoding="utf-8")
    return template.replace("{class}", "\n".join(filter(None, parts)))


def _stages(lesson: Lesson, led: Shared, counts: ClassCounts) -> str:
    here = {place.number: count for place, count in counts.places.items() if place.lesson == led.lesson}
    rows = [
        (_stage_name(lesson, stage) + " ◂ you" * (number == led.stage), here.get(number, 0))
        for number, stage in enumerate(stages(lesson))
    ]
    return _table("Where they are", rows, counts.pupils)


def _elsewhere(led: Shared, counts: ClassCounts) -> str:
    """A row for each other lesson that a pupil has open, and for problems of their own."""
    by_lesson = Counter(place.lesson for place in counts.places.elements() if place.lesson != led.lesson)
    rows = [(_title(name), count) for name, count in sorted(by_lesson.items())]
    return _table("Elsewhere", rows, counts.pupils) if rows else ""


def _prediction(place: LessonPlace, counts: ClassCounts) -> str:
    lesson, said = find(place.lesson, may_read_files=False), counts.predictions.get(place, Counter())
    if place.number >= len(lesson.predictions):
        return ""
    title = f"{_stage_name(lesson, LessonStage('predict', place.number))} in lesson {lesson.number}"
    answered = f"{title}: {said.total()} of {counts.pupils} have predicted"
    rows = [(choice + " ✓" * (choice == counts.shown.get(place)), n) for choice, n in said.most_common()]
    if counts.looked[place]:
        rows.append(("looked before predicting", counts.looked[place]))
    return _table(answered, rows, counts.pupils, lesson.predictions[place.number].question)


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
