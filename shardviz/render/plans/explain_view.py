"""The question as a picture: operands, a sign, and the result of every part, with their shares in words."""

from __future__ import annotations

from rich.text import Text

from shardviz.planner.plan import Plan
from shardviz.planner.problem import Problem
from shardviz.render.caption import caption_cells, mesh_text, notes, repetition
from shardviz.render.layouts.layout_canvas import array_lines
from shardviz.render.lines import sentence, table
from shardviz.render.palette import Palette
from shardviz.render.plans.plan_arrays import count_of, numbered_parts
from shardviz.render.plans.plan_view import plan_view


def headline(problem: Problem, width: int, palette: Palette) -> list[Text]:
    """The einsums and the mesh: ``bd,df->bf   mesh X=2, Y=4, 8 devices``."""
    einsums = Text("; ".join(str(part.einsum) for part in problem.parts), "bold")
    return table([[einsums, Text.assemble("mesh ", mesh_text(problem.mesh, palette))]], width)


def question_view(plan: Plan, width: int, palette: Palette, with_pictures: bool = True) -> list[Text]:
    """Every part of the chain: the pictures of its arrays, then a line of words for each."""
    parts = numbered_parts(plan)
    lines: list[Text] = []
    if with_pictures:
        lines = [*array_lines(parts, width, palette), *repetition(count_of(parts), palette), Text()]
    arrays = {str(layout): layout for part in parts for layout, _ in part}
    lines += table([caption_cells(layout, palette) for layout in arrays.values()], width)
    for layout in arrays.values():
        for note in notes(layout):
            lines += sentence(note, width)
    return lines


def explain_view(plan: Plan, width: int, palette: Palette, with_pictures: bool = True) -> list[Text]:
    """Headline, pictures unless they are left out, shares, and the plan, with blank lines between."""
    return [
        *headline(plan.problem, width, palette),
        Text(),
        *question_view(plan, width, palette, with_pictures),
        Text(),
        *plan_view(plan, width, palette),
    ]
