"""A lesson as a notebook for Jupyter and Colab: cells to see, predict, check, reveal and change, which call
`shardviz.lesson`."""

from __future__ import annotations

from collections.abc import Iterator

from shardviz.forms.command_line import to_command_line
from shardviz.lessons.attempt import UNKNOWN
from shardviz.lessons.lesson import Lesson
from shardviz.lessons.measures import typed_form
from shardviz.render.exports.script import notebook_of
from shardviz.render.lesson_view import stage_facts

INSTALL = "%pip install -q 'shardviz @ git+https://github.com/shardviz/shardviz'"


def lesson_notebook(lesson: Lesson) -> str:
    """The notebook as JSON, without outputs and answers. Raises `ShardvizError` for a lesson whose answers
    cannot be computed."""
    return notebook_of(_cells(lesson))


def _cells(lesson: Lesson) -> Iterator[tuple[str, str]]:
    yield (
        "markdown",
        f"# {lesson.title}\n\nRun the cells in order, and write your answers into those that ask.",
    )
    yield "code", INSTALL
    name = lesson.name if lesson.number else lesson.source
    yield "code", f"import shardviz\n\nlesson = shardviz.lesson({name!r})\nlesson"
    for key, prediction in lesson.questions.items():
        facts, said = stage_facts(prediction), key.removeprefix("predict.").replace(".", "_")
        listed = [*facts.choices, UNKNOWN] if prediction.tolerance is None else [typed_form(prediction)]
        choices = "\n".join(f"- `{choice}`" for choice in listed)
        again = "Only if that was wrong: " * key.endswith("again")
        yield "markdown", f"**Predict {said.replace('_', ', ')}.** {again}{prediction.question}\n\n{choices}"
        yield "code", f'answer_{said} = ""'
        yield "code", f"lesson.check({key!r}, answer_{said})"
        yield "code", f"lesson.reveal({key!r})"
    yield "code", "lesson.explain"
    yield (
        "markdown",
        f"**Change.** {lesson.goal.text} Edit the command, and run the cell until the goal is met.",
    )
    command = to_command_line(lesson.setup, "step" if "collective" in lesson.goal.may_change else "explain")
    yield "code", f"lesson.change({command!r})"
