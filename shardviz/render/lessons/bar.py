"""The lesson's own line: its number and title, and a dot for each stage."""

from __future__ import annotations

from rich.text import Text

from shardviz.lessons.attempt import TITLES, Attempt, stages

DONE, HERE, TO_COME = "●", "◉", "○"


def bar(attempt: Attempt, width: int) -> Text:
    """``3  Rows, columns, replicas      ●●◉○○○○○  Predict``; what does not fit is left out from the right."""
    lesson = attempt.lesson
    number = f"{lesson.number}  " if lesson.number else ""
    line = Text.assemble((f"{number}{lesson.title}", "bold"))
    count = len(stages(lesson))
    dots = f"{DONE * attempt.place}{HERE}{TO_COME * (count - attempt.place - 1)}"
    name = TITLES[attempt.stage.kind]
    solved = "  ✓ solved" if attempt.is_solved else ""
    for end in (f"{dots}  {name}{solved}", f"{dots}  {name}", dots):
        if line.cell_len + len(end) + 2 <= width:
            line.append(" " * (width - line.cell_len - len(end))).append(end)
            return line
    end = f"  {dots}"
    line.truncate(max(width - len(end), 1), overflow="ellipsis")
    line.append(" " * (width - line.cell_len - len(end))).append(end)
    return line
