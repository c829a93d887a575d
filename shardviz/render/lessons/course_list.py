"""The lessons of the course, with what is done of each."""

from __future__ import annotations

from rich.text import Text

from shardviz.lessons.progress import CourseEntry, State

MARKS: dict[State, str] = {"new": "○", "begun": "◐", "solved": "●"}
WORDS: dict[State, str] = {"new": "", "begun": "begun", "solved": "solved"}


def course_line(entry: CourseEntry) -> Text:
    """``●  3  Rows, columns, replicas   solved``."""
    words = f"at {entry.stage}" if entry.state == "begun" and entry.stage else WORDS[entry.state]
    line = Text.assemble(f"{MARKS[entry.state]} ", (f"{entry.number:>2}  ", "dim"), entry.title)
    return line.append(f"  {words}", "dim") if words else line
