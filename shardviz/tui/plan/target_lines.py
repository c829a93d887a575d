"""The targets' answers in lines: those that are here, and below them who is still at work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.text import Text

from shardviz.render.lines import sentence
from shardviz.render.programs.target_status import wait_lines
from shardviz.tui.target_answers import reworded, wait_of

if TYPE_CHECKING:
    from shardviz.planner import Problem
    from shardviz.render.palette import Palette
    from shardviz.tui.target_answers import ShownAnswer


class TargetLines:
    """Draws answers; those that are here are drawn once, and who is under way each time anew."""

    def __init__(self) -> None:
        self._drawn: tuple[object, ...] = ()
        self._here: list[Text] = []

    def lines(
        self,
        answers: Mapping[str, ShownAnswer],
        problem: Problem,
        width: int,
        palette: Palette,
        moving: bool,
    ) -> list[Text]:
        """All lines; without `moving`, nothing turns while one waits."""
        if not answers:
            return sentence("No targets: no compiler is asked.", width, style="dim")
        here = tuple(answer for answer in answers.values() if answer.compiled is not None)
        drawn = (here, tuple(answers), width, palette)
        if drawn != self._drawn:
            self._drawn, self._here = drawn, _here(here, tuple(answers), problem, width, palette)
        waits = [wait_of(answer) for answer in answers.values() if answer.compiled is None]
        between = [Text()] if self._here and waits else []
        return [*self._here, *between, *wait_lines(waits, width, moving)]


def _here(
    answers: tuple[ShownAnswer, ...], asked: tuple[str, ...], problem: Problem, width: int, palette: Palette
) -> list[Text]:
    if not answers:
        return []
    # Loaded with the first answer: until then the screen needs none of it.
    from shardviz.render.programs.target_answers import answers_view

    given = [(reworded(each.compiled), each.differences) for each in answers if each.compiled is not None]
    return answers_view(given, problem, width, palette, asked)[1:]
