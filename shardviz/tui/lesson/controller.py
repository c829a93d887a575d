"""A lesson that is open: its stage, what is to be seen there, and what every command makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Lock

from shardviz.errors import ShardvizError
from shardviz.forms.form import History, ProblemForm
from shardviz.forms.resolve import ResolvedProblem
from shardviz.lessons.attempt import UNKNOWN, Attempt, stages
from shardviz.lessons.course import following
from shardviz.lessons.goal import first_difference
from shardviz.lessons.lesson import Lesson, Prediction
from shardviz.lessons.measures import AnswerLocation, answer_location, typed_answer
from shardviz.lessons.writing import WritingCheck, form_of
from shardviz.render.lesson_view import StageFacts, stage_facts
from shardviz.tui.registry import LESSON, Command

NOT_REVEALED = "space shows the answer."
MAX_TYPED = 40
"""Characters of a typed answer."""


class LessonController:
    """A learner's attempt at a lesson, or a teacher's presentation of one to a class; without any widgets.

    `chosen` is the choice under the cursor, `typed` the answer as far as it is typed. `hint` is the number of
    the hint that is shown, from 1, 0 for none; it was requested after the last edit if `is_hint_new`.
    `difference` is what the sandbox still lacks, None where it meets the goal. `after` is the next lesson.
    `is_presented`: nobody chooses. `draft_before` is the sandbox to which undo leads. Choices are in the
    order of `seed`, the learner's. `check` is that of what was written last, None while it runs, and `file`
    is where it stands.

    The answers to a lesson of the course are computed when a stage needs them, or by `compute_answers`.
    Raises `ShardvizError` for a lesson of one's own that asks for what cannot be computed."""

    def __init__(
        self,
        attempt: Attempt,
        is_presented: bool = False,
        draft_before: ProblemForm | None = None,
        seed: str = "",
    ) -> None:
        self._answers: dict[tuple[str, ProblemForm], tuple[StageFacts, AnswerLocation]] = {}
        self._seed = "" if is_presented else seed
        self.typed = ""
        self._computing = Lock()
        self.after = following(attempt.lesson)
        self.attempt = attempt
        self.is_presented = is_presented
        self.chosen = 0
        self.hint = attempt.hints if attempt.place else 0
        self.is_hint_new = False
        self.difference: str | None = ""
        self.check: WritingCheck | None = None
        self.file = ""
        self._hints_to_write = 0
        self._sandbox = History(attempt.lesson.setup)
        self._sandbox.push(draft_before or attempt.draft)
        self._sandbox.push(attempt.draft)
        if not self.lesson.number:  # those of the course have answers
            self.compute_answers()
        self._enter()

    def compute_answers(self) -> None:
        """Compute the answers to all predictions, so that no stage waits for them. Any thread may do so."""
        for prediction in self.lesson.questions.values():
            self._answer(prediction)

    def _answer(self, prediction: Prediction) -> tuple[StageFacts, AnswerLocation]:
        """The words of a prediction with its answer, and where that is to be seen; computed once."""
        key = prediction.question, prediction.draft
        with self._computing:
            if key not in self._answers:
                self._answers[key] = stage_facts(prediction, self._seed), answer_location(prediction)
            return self._answers[key]

    @property
    def lesson(self) -> Lesson:
        return self.attempt.lesson

    @property
    def kind(self) -> str:
        return self.attempt.stage.kind

    @property
    def screen(self) -> str:
        """The screen that the stage begins with; while the answer is hidden, the one that shows it; of a goal
        about what the plan sends, the plan."""
        prediction, goal = self.attempt.prediction, self.lesson.goal
        if prediction is not None:
            is_before = self.kind == "predict" and prediction.before
            return prediction.before if is_before else prediction.screen
        limited = {ask.split()[0] for ask in goal.at_most or ()}
        is_about_plan = goal.collectives or (goal.ends is None and limited & {"sent", "count"})
        return "plan" if self.kind == "change" and is_about_plan else self.lesson.screen

    @property
    def place(self) -> AnswerLocation:
        prediction = self.attempt.prediction
        if self.kind != "reveal" or prediction is None:
            return AnswerLocation()
        return self._answer(prediction)[1]

    @property
    def is_hidden(self) -> bool:
        """True where the screen is hidden, since it would give the answer away."""
        prediction = self.attempt.prediction
        return self.kind == "predict" and prediction is not None and not prediction.before

    @property
    def told(self) -> StageFacts:
        if self.attempt.prediction is None:
            return StageFacts(
                after=self.after.title if self.after is not None else "",
                text=self.written,
                file=self.file,
                check=self.check,
                hints=self._hints_to_write,
            )
        is_asked = self.kind == "predict" and not self.is_presented
        told, _place = self._answer(self.attempt.prediction)
        typed = self.typed if self.is_typed else None
        return replace(told, chosen=self.chosen, typed=typed) if is_asked else told

    @property
    def is_typed(self) -> bool:
        """True where the learner types the answer; a class chooses."""
        prediction = self.attempt.prediction
        is_asked = self.kind == "predict" and not self.is_presented
        return is_asked and prediction is not None and prediction.tolerance is not None

    def takes(self, key: str, character: str | None) -> bool:
        """Type a key into the answer, which begins with a digit or a point; return whether it was for it."""
        if not self.is_typed:
            return False
        if self.typed and key in ("backspace", "escape"):
            self.typed = self.typed[:-1] if key == "backspace" else ""
        elif character and character.isprintable() and (self.typed or character in "0123456789."):
            self.typed = (self.typed + character)[:MAX_TYPED]
        else:
            return False
        return True

    @property
    def history(self) -> History:
        """The forms of the stage: the sandbox's, or the one that is shown."""
        writing = self.lesson.writing
        if self.kind == "write" and self.is_field and writing is not None:
            for text in (self.written, writing.starter):
                with suppress(ShardvizError):
                    return History(form_of(writing, text))
        return self._sandbox if self.kind in ("change", "code") else History(self.attempt.shown)

    @property
    def is_field(self) -> bool:
        """True where what is written is a field's text, not a file."""
        return self.lesson.writing is not None and self.lesson.writing.goal is not None

    @property
    def written(self) -> str:
        """The text of the field, at first the starter's."""
        starter = self.lesson.writing.starter if self.lesson.writing is not None else ""
        return " ".join((self.attempt.written or starter).split()) if self.is_field else ""

    def wrote(self, text: str, check: WritingCheck | None) -> None:
        """A text has been written; it is being checked, or it was."""
        self.check, last = check, self.attempt
        is_known = last.is_written and last.written == text
        self.attempt = last.wrote(text, is_known if check is None else not check.wrong)

    @property
    def may_go_on(self) -> bool:
        """True where `next` leads on. A teacher may leave the goal to the class."""
        if self.kind == "code":
            return self.after is not None
        return self.attempt.may_go_on or (self.is_presented and self.kind == "change")

    @property
    def refusal(self) -> str:
        """The reason why `next` does not lead on."""
        if self.kind == "predict":
            return NOT_REVEALED if self.is_presented else f"Choose an answer first, such as “{UNKNOWN}”."
        if self.kind == "change":
            return "The goal is not met yet; h gives a hint."
        return "This is the last lesson; L lists all lessons."

    @property
    def commands(self) -> list[Command]:
        return [command for command in LESSON if self.does(command.name.split("'")[1])]

    def does(self, word: str) -> bool:
        asks, change = self.kind == "predict" and not self.is_presented, self.kind == "change"
        return {
            "answer": asks,
            "down": asks and not self.is_typed,
            "up": asks and not self.is_typed,
            "reveal": self.kind == "predict" and self.is_presented,
            "next": self.may_go_on,
            "back": self.attempt.place > 0,
            "hint": (change and bool(self.lesson.hints)) or self.kind == "write",
            "write": self.kind == "write" and self.is_field,
            "reset": change and self._sandbox.draft != self.lesson.setup,
        }.get(word, True)

    def move(self, step: int) -> None:
        self.chosen = (self.chosen + step) % len(self._choices)

    @property
    def choice(self) -> str:
        """The choice under the cursor, of a prediction, or what was typed. Raises `QuestionError` for typed
        text that is not an answer."""
        prediction = self.attempt.prediction
        if self.is_typed and prediction is not None:
            return typed_answer(prediction, self.typed) if self.typed.strip() else UNKNOWN
        return self._choices[self.chosen]

    def answer(self) -> None:
        """Predict what is chosen, and see the answer; a teacher shows it without predicting."""
        self.attempt = self.attempt.answer(UNKNOWN if self.is_presented else self.choice).next()
        self._enter()

    def next(self) -> None:
        """To the next stage, where there is one; after a wrong answer to the second question."""
        if self.attempt.asks_again and not self.is_presented:
            self.attempt = self.attempt.ask_again()
            self._enter()
            return
        index = min(self.attempt.place + 1, len(stages(self.lesson)) - 1)
        self.attempt = replace(self.attempt, place=index)
        self._enter()

    def back(self) -> None:
        self.attempt = self.attempt.back()
        self._enter()

    def next_hint(self) -> None:
        """The next hint; after the last, none, and then the first again."""
        if self.kind == "write" and self.lesson.writing is not None:
            self._hints_to_write = (self._hints_to_write + 1) % (len(self.lesson.writing.hints) + 1)
            return
        count = len(self.lesson.hints)
        if count:
            self.hint = (self.hint + 1) % (count + 1)
            self.is_hint_new = self.hint > 0
            self.attempt = replace(self.attempt, hints=max(self.attempt.hints, self.hint))

    def look_at(self, resolved: ResolvedProblem) -> None:
        """Compare the sandbox with the goal. What is still being typed has not met it yet."""
        if self.kind != "change":
            return
        self.difference = first_difference(self.lesson.goal, self.lesson, resolved)
        self.is_hint_new = self.is_hint_new and resolved.draft == self.attempt.draft
        is_met = self.difference is None and resolved.draft == self._sandbox.draft
        self.attempt = self.attempt.edited(resolved.draft, is_met)

    @property
    def _choices(self) -> Sequence[str]:
        prediction = self.attempt.prediction
        return (*self._answer(prediction)[0].choices, UNKNOWN) if prediction is not None else ()

    def _enter(self) -> None:
        """The cursor where the answer was, if there was one; nothing is typed yet."""
        self.typed = ""
        kind, number = self.attempt.stage
        said = self.attempt.answers[number] if kind == "predict" else None
        self.chosen = self._choices.index(said) if said is not None and said in self._choices else 0
