"""`shardviz.lesson`: a lesson of the course, stage by stage, in a notebook."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shardviz.api.shown import Shown
from shardviz.errors import QuestionError, quote
from shardviz.lazy_names import LazyImports
from shardviz.strict_table import closest

with LazyImports():
    from shardviz.documents import fields
    from shardviz.forms import command_line, wording
    from shardviz.lessons import attempt as attempts, course, goal, measures
    from shardviz.lessons.measures import subject
    from shardviz.render import exports, lesson_view, tables
    from shardviz.render.exports import sections

if TYPE_CHECKING:
    from rich.text import Text

    from shardviz.render.palette import Palette

MANY = 1000
"""Lines for which a page has room."""


def lesson(name: str) -> LessonStageView:
    """A lesson by its number, its name, or the path of its file, to see in a notebook::

        lesson = shardviz.lesson("reduce-scatter")
        lesson                                    # what there is to see
        lesson.check("predict.2", "3 KiB")        # whether that is right, and why not
        lesson.reveal("predict.2")                # the answer in its picture
        lesson.change("shardviz explain …")       # the first difference from the goal

    Raises `ShardvizError` for a lesson that does not exist."""
    return LessonStageView(attempts.begin(course.find(name)))


@dataclass(frozen=True, repr=False)
class LessonStageView(Shown):
    """A lesson at one of its stages: the words, and the picture, if it is shown."""

    attempt: attempts.Attempt
    has_picture: bool = True

    def lines(self, width: int, palette: Palette, verbose: bool = False) -> list[Text]:
        attempt, prediction = self.attempt, self.attempt.prediction
        facts = lesson_view.StageFacts() if prediction is None else lesson_view.stage_facts(prediction)
        words, _ = lesson_view.guide_page(attempt, facts, width, MANY)
        if not self.has_picture:
            return words
        screen = attempt.lesson.screen if prediction is None else prediction.screen
        drawn = exports.subject_of(subject.resolve_once(attempt.shown), screen)
        parts = sections.sections(drawn, width, palette)
        blank = [tables.as_text("")]
        shown = [[*blank, *((verbose and part.more) or part.lines)] for part in parts]
        return [*words, *(line for lines in shown for line in lines)]

    def document(self) -> dict[str, Any]:
        return fields.KINDS["lesson"].document(lesson=self.attempt.lesson)

    def check(self, question: str, said: str) -> LessonStageView:
        """The verdict on an answer to a question by its key: ``predict.1``, ``predict.1.again``; without an
        answer the question. Raises `QuestionError` for text that is not an answer."""
        at = replace(self._at(question, said or attempts.UNKNOWN), has_picture=False)
        return at if said else replace(at, attempt=at.attempt.back())

    def reveal(self, question: str) -> LessonStageView:
        """The answer to a question, in its picture."""
        return self._at(question, attempts.UNKNOWN)

    @property
    def explain(self) -> LessonStageView:
        """The reason, and the picture of the beginning."""
        index = attempts.stages(self.attempt.lesson).index(attempts.LessonStage("explain"))
        return replace(self, attempt=replace(self.attempt, place=index))

    def change(self, command: str) -> None:
        """Print the first difference of a command's problem from the goal. Raises `ShardvizError`."""
        lesson = self.attempt.lesson
        draft = command_line.form_from_line(command, lesson.setup)
        if "collective" not in lesson.goal.may_change:
            draft = replace(draft, collective=lesson.setup.collective)
        difference = goal.first_difference(lesson.goal, lesson, subject.resolve_once(draft))
        print("The goal is met." if difference is None else wording.as_sentence(difference))

    def _at(self, question: str, said: str) -> LessonStageView:
        lesson = self.attempt.lesson
        if question not in lesson.questions:
            raise QuestionError(
                f"there is no question {quote(question, 30)}", closest(question, [*lesson.questions])
            )
        prediction, number = lesson.questions[question], int(question.split(".")[1]) - 1
        if said != attempts.UNKNOWN:
            said = measures.typed_answer(prediction, said)
        answers = tuple(said if index == number else None for index in range(len(lesson.predictions)))
        index = attempts.stages(lesson).index(attempts.LessonStage("reveal", number))
        again = frozenset({number} if prediction is not lesson.predictions[number] else ())
        return replace(self, attempt=replace(self.attempt, place=index, answers=answers, again=again))
