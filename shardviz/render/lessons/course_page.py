"""The course as a page: every lesson with what is done of it, and what to type next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.text import Text

from shardviz.lessons.progress import CourseEntry
from shardviz.render.lessons.course_list import MARKS, course_line
from shardviz.render.lines import sentence


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
