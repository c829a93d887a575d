"""All stages of a compilation, a line each, and one of them in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from shardviz.hlo.passes.stage import Stage
from shardviz.render.palette import Palette
from shardviz.render.programs.foreign_text import printable_line
from shardviz.render.programs.passes_view import stage_view

if TYPE_CHECKING:
    from shardviz.planner.problem import Problem


def stage_list(
    stages: Sequence[Stage],
    chosen: int,
    problem: Problem,
    width: int,
    palette: Palette,
    diff: Sequence[Text] = (),
) -> tuple[list[Text], range]:
    """The lines, with `diff` under the chosen stage, and which of them are the chosen stage's."""
    lines: list[Text] = []
    shown = range(0)
    for place, stage in enumerate(stages):
        if place == chosen:
            start = len(lines)
            lines += [printable_line(line) for line in stage_view(stage, place + 1, problem, width, palette)]
            lines += diff
            shown = range(start, len(lines))
            continue
        line = Text(f"{place + 1:>2}  {stage.title}", "dim")
        line.truncate(width, overflow="ellipsis")
        lines.append(printable_line(line))
    return lines, shown
