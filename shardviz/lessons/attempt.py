"""A learner's attempt at a lesson, at one of its stages: an immutable value; and as what is shared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from shardviz.forms.form import ProblemForm
from shardviz.forms.share import Shared
from shardviz.lessons.course import find
from shardviz.lessons.lesson import Lesson, Prediction
from shardviz.lessons.measures import is_right

StageKind = Literal["see", "predict", "reveal", "explain", "change", "write", "code"]
TITLES: dict[StageKind, str] = {
    "see": "See",
    "predict": "Predict",
    "reveal": "Answer",
    "explain": "Why",
    "change": "Change",
    "write": "Write",
    "code": "Code",
}
UNKNOWN = "I don't know"
"""An answer to every question."""
MAX_TRIES = 100
"""Answers to the questions of a lesson that are kept."""


class LessonStage(NamedTuple):
    """A part of a lesson; `number` is that of the prediction, from 0."""

    kind: StageKind
    number: int = 0


def stages(lesson: Lesson) -> tuple[LessonStage, ...]:
    """See, then each prediction with its reveal, explain, change, write where something is written, code."""
    asked = (
        LessonStage(kind, number)
        for number, _ in enumerate(lesson.predictions)
        for kind in ("predict", "reveal")
    )
    write = [LessonStage("write")] * (lesson.writing is not None)
    change = (LessonStage("explain"), LessonStage("change"), *write, LessonStage("code"))
    return (LessonStage("see"), *asked, *change)


class Try(NamedTuple):
    """An answer that was given to the prediction `number`, from 0, or to its second question."""

    number: int
    said: str
    is_again: bool


@dataclass(frozen=True)
class Attempt:
    """A lesson, the stage at which a learner is, and what was done so far. `answers` has the choice of each
    prediction, None where it was not answered yet. `draft` is the sandbox, as it stands. `hints` counts those
    that were shown. `is_solved` stays once the goal was met, `met` is the sandbox that met it last. `tries`
    are all answers, in their order. `again` are the numbers of the predictions whose second question is
    asked, or was. `written` is the text that was checked last; `is_written`: it passes."""

    lesson: Lesson
    place: int
    answers: tuple[str | None, ...]
    draft: ProblemForm
    hints: int = 0
    is_solved: bool = False
    met: ProblemForm | None = None
    tries: tuple[Try, ...] = ()
    again: frozenset[int] = frozenset()
    written: str = ""
    is_written: bool = False

    @property
    def stage(self) -> LessonStage:
        return stages(self.lesson)[self.place]

    @property
    def prediction(self) -> Prediction | None:
        """The prediction of a predict or a reveal stage."""
        kind, number = self.stage
        if kind not in ("predict", "reveal"):
            return None
        first = self.lesson.predictions[number]
        return first.again if number in self.again and first.again is not None else first

    @property
    def shown(self) -> ProblemForm:
        """The problem that is on screen at this stage; on the setup's mesh while the best is asked for."""
        kind, setup, prediction = self.stage.kind, self.lesson.setup, self.prediction
        if prediction is None:
            return self.draft if kind in ("change", "code") else setup
        is_mesh_asked = kind == "predict" and prediction.ask.startswith("fastest ")
        return replace(prediction.draft, mesh=setup.mesh) if is_mesh_asked else prediction.draft

    @property
    def may_go_on(self) -> bool:
        """Return whether `next` goes on: a prediction has to be answered, also with `UNKNOWN`, a goal met."""
        kind, number = self.stage
        if kind == "predict":
            return self.answers[number] is not None
        return self.is_solved if kind == "change" else kind != "code"

    def next(self) -> Attempt:
        """The next stage, where one may go on."""
        return replace(self, place=self.place + 1) if self.may_go_on else self

    def back(self) -> Attempt:
        """The stage before; the first where there is none."""
        return replace(self, place=max(0, self.place - 1))

    def answer(self, choice: str) -> Attempt:
        kind, number = self.stage
        if kind != "predict":
            return self
        answers = (*self.answers[:number], choice, *self.answers[number + 1 :])
        tried = Try(number, choice, number in self.again)
        return replace(self, answers=answers, tries=(*self.tries, tried)[:MAX_TRIES])

    @property
    def asks_again(self) -> bool:
        """True where an answer was wrong and a second question follows."""
        kind, number = self.stage
        prediction, said = self.prediction, self.answers[number]
        if kind != "reveal" or prediction is None or prediction.again is None:
            return False
        return said is not None and not is_right(prediction, said)

    def ask_again(self) -> Attempt:
        """Ask the second question of the prediction at which one stands."""
        number = self.stage.number
        answers = (*self.answers[:number], None, *self.answers[number + 1 :])
        return replace(self, place=self.place - 1, answers=answers, again=self.again | {number})

    def wrote(self, text: str, passes: bool) -> Attempt:
        """A text was checked. A program that passed stays, as the sandbox that met the goal does."""
        is_program = self.lesson.writing is not None and self.lesson.writing.goal is None
        if is_program and self.is_written and not passes:
            return self
        return replace(self, written=text, is_written=passes)

    def edited(self, draft: ProblemForm, is_met: bool) -> Attempt:
        """The sandbox was changed; `is_met`: it meets the goal now."""
        met = draft if is_met else self.met
        return replace(self, draft=draft, is_solved=self.is_solved or is_met, met=met)


def begin(lesson: Lesson) -> Attempt:
    """A lesson from its first stage."""
    return Attempt(lesson, 0, (None,) * len(lesson.predictions), lesson.setup)


def shared_of(attempt: Attempt, screen: str) -> Shared:
    """The lesson's sandbox and stage; a lesson that is not of the course is shared as its problem alone."""
    if not attempt.lesson.number:
        return Shared(attempt.shown, screen)
    return Shared(attempt.draft, screen, attempt.lesson.name, attempt.place)


def attempt_of(shared: Shared) -> Attempt:
    """The attempt at a shared lesson's stage, or at its last, with no answers known. Raises `LessonError`."""
    lesson = find(shared.lesson, may_read_files=False)
    index = min(shared.stage, len(stages(lesson)) - 1)
    passed = sum(stage.kind == "reveal" for stage in stages(lesson)[: index + 1])
    answers = (UNKNOWN,) * passed + (None,) * (len(lesson.predictions) - passed)
    return replace(begin(lesson), place=index, answers=answers, draft=shared.draft)


def with_own(sent: Attempt, own: Attempt) -> Attempt:
    """An attempt that was sent, with what the learner has predicted, asked for and solved. One that was sent
    before its sandbox opens leaves that as it is."""
    answers = tuple(
        theirs if mine is None else mine for mine, theirs in zip(own.answers, sent.answers, strict=True)
    )
    hints, is_solved = max(own.hints, sent.hints), own.is_solved or sent.is_solved
    draft = sent.draft if sent.stage.kind in ("change", "code") else own.draft
    done = replace(sent, answers=answers, hints=hints, is_solved=is_solved, draft=draft)
    done = replace(done, met=own.met, tries=own.tries, again=own.again)
    return done.wrote(own.written, own.is_written)


def afresh(attempt: Attempt) -> Attempt:
    """An attempt that came to its end begins again; what was said and solved stays so."""
    if attempt.stage.kind != "code":
        return attempt
    new = begin(attempt.lesson)
    return replace(attempt, place=0, answers=new.answers, draft=new.draft, again=new.again)
