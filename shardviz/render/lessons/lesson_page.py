"""A lesson as a page to read, where no application can be opened: all of it but the answers."""

from __future__ import annotations

from rich.text import Text

from shardviz.drafts.command_line import to_command_line
from shardviz.drafts.form import ProblemForm
from shardviz.lessons.attempt import UNKNOWN
from shardviz.lessons.lesson import Lesson, Prediction
from shardviz.render.command_lines import command_lines
from shardviz.render.lessons.guide_lines import told_of
from shardviz.render.lines import sentence


def lesson_page(lesson: Lesson, width: int) -> list[Text]:
    """Title, what to see and the command that shows it, the questions with their choices, the goal."""
    number = f"{lesson.number}  " if lesson.number else ""
    lines = [*sentence(lesson.title, width, lead=number, style="bold"), Text()]
    for paragraph in lesson.see.split("\n"):
        lines += sentence(paragraph, width)
    lines += _shown(lesson.setup, width)
    for place, prediction in enumerate(lesson.predictions, 1):
        lines += [Text(), *sentence(prediction.question, width, lead=f"Predict {place}  ")]
        lines += _choices(prediction, width)
    lines += [Text(), *sentence(lesson.goal.text, width, lead="Change  ")]
    opened = f"shardviz lesson {lesson.number}" if lesson.number else "the same command"
    end = f"In a terminal, {opened} shows all of it, and the answers."
    lines += [Text(), *sentence(end, width, style="dim")]
    return lines


def _choices(prediction: Prediction, width: int) -> list[Text]:
    texts = (*told_of(prediction).choices, UNKNOWN)
    return [line for text in texts for line in sentence(text, width, 2, "· ")]


def _shown(draft: ProblemForm, width: int) -> list[Text]:
    """The command that shows the problem, as it has to be typed."""
    command = to_command_line(draft, "explain" if draft.collective is None else "step")
    return [Text.assemble("  ", (line, "dim")) for line in command_lines(command, width - 2)]
