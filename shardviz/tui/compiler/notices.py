"""Lines about targets' answers: the tab and the heading of each, and what stands in place of a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.text import Text

from shardviz.errors import plural
from shardviz.forms.wording import as_sentence
from shardviz.render.lines import printable_line, sentence
from shardviz.render.programs.program_pages import ListedProgram
from shardviz.render.programs.target_answers import TargetTab, error_lines, spinner, targets_table, wait_lines
from shardviz.tui.compiler_queries import reworded, wait_of
from shardviz.units import human_bytes, seconds

if TYPE_CHECKING:
    from shardviz.errors import ShardvizError
    from shardviz.planner import Problem
    from shardviz.render.palette import Palette
    from shardviz.tui.compiler_queries import ShownAnswer, ShownPasses

TICK_S = 0.1
"""Seconds between two pictures of something under way."""
NO_TARGETS = "No compiler is asked: name targets in the problem, such as shardy,cpu."


def tab(answer: ShownAnswer, moving: bool) -> TargetTab:
    """A target with its state, for the strip."""
    name, compiled = answer.target.name, answer.compiled
    if compiled is not None:
        if compiled.status != "ok":
            return TargetTab(name, "✗")
        return TargetTab(name, "✓", seconds(compiled.elapsed_s) if compiled.elapsed_s else "")
    wait = wait_of(answer)
    if wait.seconds is not None:
        return TargetTab(name, spinner(wait.seconds, moving), f"{wait.seconds:.1f} s")
    return TargetTab(name, "·", "cancelled" if answer.state == "cancelled" else "waits")


def state_words(answer: ShownAnswer | ShownPasses) -> str:
    """``compiling, 3.2 s``, ``cancelled; r asks again``; empty where the answer is there."""
    if answer.state in ("answered", "failed"):
        return ""
    wait = wait_of(answer)
    return wait.stage if wait.seconds is None else f"{wait.stage}, {wait.seconds:.1f} s"


def program_heading(
    answer: ShownAnswer, program: ListedProgram | ShardvizError | None, folded: bool, width: int
) -> Text:
    """``cpu  1 collective  192 KiB sent  on each device``; of the problem before, how it is now.

    What does not fit is left out.
    """
    compiled = answer.compiled
    state = state_words(answer)
    if compiled is not None and compiled.status != "ok":
        return Text.assemble((answer.target.name, "bold"), "  no answer")
    if not isinstance(program, ListedProgram):
        return Text.assemble((answer.target.name, "bold"), f"  {state or 'reading…'}")
    if program.compiled is not compiled:
        return Text.assemble(("of the problem before", "bold"), f"  {state or 'reading…'}")
    moving = [each for each in program.compiled.collectives if each.op != "slice"]
    sent = sum(each.wire_bytes * (each.count or 1) for each in moving)
    how = "on all devices at once" if answer.target.name == "shardy" else "on each device"
    facts = [plural(len(moving), "collective"), *[f"{human_bytes(sent)} sent"] * bool(moving)]
    facts.append(how if folded else "all of the text")
    text = Text.assemble((answer.target.name, "bold"))
    for fact in facts:
        if text.cell_len + 2 + len(fact) <= width:
            text.append(f"  {fact}", "dim")
    return text


def notice(answer: ShownAnswer | None, width: int) -> list[Text]:
    """The reason why a target shows no program."""
    if answer is None:
        return sentence(NO_TARGETS, width)
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
    """The table of all answers that are here, with their reasons, and the targets that are still at work."""
    if not answers:
        return sentence(NO_TARGETS, width)
    here = [
        (reworded(each.compiled), each.differences) for each in answers.values() if each.compiled is not None
    ]
    lines = targets_table(here, problem, width, palette, rounded=True)[1:] if here else []
    waits = [wait_of(each) for each in answers.values() if each.compiled is None]
    missing = wait_lines(waits, width, moving)
    return [printable_line(line) for line in [*lines, *[Text()] * bool(lines and missing), *missing]]
