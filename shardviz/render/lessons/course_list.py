"""The lessons of the course, with what is done of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rich.text import Text

from shardviz.lessons.lesson import Lesson
from shardviz.lessons.progress import Progress
from shardviz.render.lessons.guide_lines import TITLES

State = Literal["new", "begun", "solved"]
MARKS: dict[State, str] = {"new": "○", "begun": "◐", "solved": "●"}
WORDS: dict[State, str] = {"new": "", "begun": "begun", "solved": "solved"}


@dataclass(frozen=True)
class Entry:
    """A lesson in the list; `stage` is the name of the stage at which it was left, empty where none was."""

    number: int
    name: str
    title: str
    state: State
    stage: str = ""


def entry_of(progress: Progress, lesson: Lesson) -> Entry:
    """What the list says of a lesson."""
    left = progress.left(lesson)
    is_solved = progress.is_solved(lesson)
    stage = TITLES[left.stage.kind] if left is not None and left.stage.kind != "code" else ""
    state: State = "solved" if is_solved else "begun" if left is not None else "new"
    return Entry(lesson.number, lesson.name, lesson.title, state, stage)


def course_line(entry: Entry) -> Text:
    """``●  3  Rows, columns, replicas   solved``."""
    words = f"at {entry.stage}" if entry.state == "begun" and entry.stage else WORDS[entry.state]
    line = Text.assemble(f"{MARKS[entry.state]} ", (f"{entry.number:>2}  ", "dim"), entry.title)
    return line.append(f"  {words}", "dim") if words else line
