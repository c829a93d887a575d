"""What stands in the pane where there is no program: why not, and what can be done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.text import Text

from shardviz.drafts.wording import as_sentence
from shardviz.render.lines import sentence
from shardviz.render.programs.target_answers import error_lines, targets_table
from shardviz.render.programs.target_status import wait_lines
from shardviz.render.sanitize import printable_line
from shardviz.tui.target_answers import reworded, wait_of

if TYPE_CHECKING:
    from shardviz.errors import ShardvizError
    from shardviz.planner import Problem
    from shardviz.render.palette import Palette
    from shardviz.tui.target_answers import ShownAnswer

NOBODY = "No compiler is asked: name targets in the problem, such as shardy,cpu."


def notice(answer: ShownAnswer | None, width: int) -> list[Text]:
    """Why a target shows no program."""
    if answer is None:
        return sentence(NOBODY, width)
    if answer.compiled is not None and answer.compiled.status != "ok":
        return [printable_line(line) for line in error_lines(reworded(answer.compiled), width, 0)]
    return sentence(answer.target.description, width, style="dim")


def fault_lines(fault: ShardvizError, width: int) -> list[Text]:
    """A sentence and its hint."""
    said, hint = as_sentence(fault.message), as_sentence(fault.hint)
    lines = [*sentence(said, width, lead="✗ "), *sentence(hint, width, 2, style="dim")]
    return [printable_line(line) for line in lines]


def all_answers(
    answers: Mapping[str, ShownAnswer], problem: Problem, width: int, palette: Palette, moving: bool
) -> list[Text]:
    """The table of all answers that are here, with their reasons, and who is still at it."""
    here = [
        (reworded(each.compiled), each.differences) for each in answers.values() if each.compiled is not None
    ]
    lines = targets_table(here, problem, width, palette)[1:] if here else []
    waits = [wait_of(each) for each in answers.values() if each.compiled is None]
    missing = wait_lines(waits, width, moving)
    if not answers:
        return sentence(NOBODY, width)
    return [printable_line(line) for line in [*lines, *[Text()] * bool(lines and missing), *missing]]
