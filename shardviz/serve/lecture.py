"""A lecture as the server knows it: where the teacher's page is, where the pupils' are, what they predict.

It is kept in memory alone, of nobody's name, and what is known of a pupil goes with the pupil's page.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from shardviz.errors import QuestionError
from shardviz.forms.form import one_line
from shardviz.forms.share import Shared, from_string
from shardviz.lessons.course import lesson_names

MAX_CHOICE = 200
"""Characters of an answer that are kept."""


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


@dataclass
class _Pupil:
    place: LessonPlace | None = None
    follows: bool = True
    predictions: dict[LessonPlace, str] = field(default_factory=dict)


class Lecture:
    """`string` is what the teacher's page shows, for others to open; `shared` the same, read."""

    def __init__(self, string: str) -> None:
        self.string = string
        self.shared: Shared = from_string(string)
        self._pupils: defaultdict[Hashable, _Pupil] = defaultdict(_Pupil)

    def lead(self, said: object) -> bool:
        """Note what the teacher's page says; return whether it is elsewhere than before."""
        match said:
            case {"type": "leads", "shared": str(string)} if string != self.string:
                try:
                    self.shared = from_string(string)
                except QuestionError:
                    return False
                self.string = string
                return True
        return False

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

    def leave(self, pupil: Hashable) -> None:
        """Forget a pupil."""
        self._pupils.pop(pupil, None)

    @property
    def counts(self) -> ClassCounts:
        pupils = [pupil for pupil in self._pupils.values() if pupil.place is not None]
        predictions: defaultdict[LessonPlace, Counter[str]] = defaultdict(Counter)
        for pupil in pupils:
            for place, choice in pupil.predictions.items():
                predictions[place][choice] += 1
        places = Counter(pupil.place for pupil in pupils if pupil.place is not None)
        return ClassCounts(len(pupils), sum(pupil.follows for pupil in pupils), places, predictions)
