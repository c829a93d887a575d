"""The answers of several targets: one after another, or side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

    from shardviz.compare import Difference
    from shardviz.compiler.compiled import Compiled
    from shardviz.planner.problem import Problem
    from shardviz.render.palette import Palette

    Answers = Sequence[tuple[Compiled, Sequence[Difference]]]

FEW = 2
"""So many targets may stand one after another."""


def side_by_side(targets: Sequence[str]) -> bool:
    """Whether there is one table of all: of two programs that run, and of three targets or more.

    Shardy's answer is no such program, and beside one there is little to put in columns.
    """
    return len(targets) > FEW or (len(targets) == FEW and "shardy" not in targets)


def answers_view(
    answers: Answers, problem: Problem, width: int, palette: Palette, asked: Sequence[str] = ()
) -> list[Text]:
    """Each target's answer, given with its differences from the plan, under a blank line.

    `asked` are the names of all targets, where more answers than these are to come.
    """
    # All is loaded when there are answers: whoever asks nobody but the planner needs none.
    from shardviz.render.axis_parts import parts_of_axes
    from shardviz.render.lines import sentence

    moved = [each for compiled, _ in answers for each in compiled.collectives]
    notes = [
        line
        for words in parts_of_axes(moved, problem.mesh)
        for line in sentence(words, width, 2, style="dim")
    ]
    names = asked or [compiled.target for compiled, _ in answers]
    return [*_answers(answers, problem, width, palette, side_by_side(names)), *notes]


def _answers(answers: Answers, problem: Problem, width: int, palette: Palette, in_table: bool) -> list[Text]:
    if in_table:
        from shardviz.render.programs.targets_table import targets_table

        return targets_table(answers, problem, width, palette)
    from shardviz.render.programs.target_view import target_view

    return [
        line
        for compiled, differences in answers
        for line in target_view(compiled, differences, problem, width, palette)
    ]
