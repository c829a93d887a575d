"""The course as a list, and a lesson as a page to read where no application can be opened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.text import Text

from shardviz.drafts.command_line import to_command_line
from shardviz.drafts.form import ProblemForm
from shardviz.lessons.attempt import UNKNOWN
from shardviz.lessons.lesson import Lesson, Prediction
from shardviz.lessons.progress import CourseEntry, State
from shardviz.render.command_lines import command_lines
from shardviz.render.lessons.guide import told_of
from shardviz.render.lines import sentence

MARKS: dict[State, str] = {"new": "○", "begun": "◐", "solved": "●"}
WORDS: dict[State, str] = {"new": "", "begun": "begun", "solved": "solved"}


def course_line(entry: CourseEntry) -> Text:
    """``●  3  Rows, columns, replicas   solved``."""
    words = f"at {entry.stage}" if entry.state == "begun" and entry.stage else WORDS[entry.state]
    line = Text.assemble(f"{MARKS[entry.state]} ", (f"{entry.number:>2}  ", "dim"), entry.title)
    return line.append(f"  {words}", "dim") if words else line


def course_page(entries: Sequence[CourseEntry], width: int) -> list[Text]:
    """A line for each lesson, then how many are solved and the command that opens the next one."""
    counts = Counter(entry.state for entry in entries)
    lines = [Text("Lessons", "bold"), Text()]
    lines += [line[:width] for line in map(course_line, entries)]
    legend = "   ".join(f"{mark} {counts[state]} {state}" for state, mark in MARKS.items() if counts[state])
    lines += [Text(), *sentence(legend, width, style="dim")]
    begun = next((entry for entry in entries if entry.state == "begun"), None)
    following = begun or next((entry for entry in entries if entry.state == "new"), None)
    if following is None:
        return [*lines, *sentence("All are solved; shardviz lesson 1 opens the first one again.", width)]
    verb = "goes on with" if begun else "opens"
    return [*lines, *sentence(f"shardviz lesson {following.number} {verb} “{following.title}”.", width)]


def lesson_page(lesson: Lesson, width: int) -> list[Text]:
    """All of a lesson but the answers: what to see and the command that shows it, the questions, the goal."""
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
