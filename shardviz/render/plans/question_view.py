"""The question as a picture: operands, a sign, and the result of every part, with their shares in words."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shardviz.errors import plural
from shardviz.planner.plan import Plan
from shardviz.planner.problem import Problem
from shardviz.render.caption import caption_cells
from shardviz.render.layouts.picture import Picture, notes, picture, repetition
from shardviz.render.layouts.sheet import SIGN_WIDTH
from shardviz.render.lines import sentence, table
from shardviz.render.palette import Palette
from shardviz.render.plans.numbering import count_of, numbered_parts
from shardviz.sharding import Layout, Mesh

LIMITS = (1000, 48, 40, 32, 26)
"""Widths that pictures are squeezed to, one after the other, to stand side by side."""


def headline(problem: Problem, width: int, palette: Palette) -> list[Text]:
    """The einsums and the mesh: ``bd,df->bf   mesh X=2, Y=4, 8 devices``."""
    einsums = Text("; ".join(str(part.einsum) for part in problem.parts), "bold")
    return table([[einsums, Text.assemble("mesh ", mesh_text(problem.mesh, palette))]], width)


def mesh_text(mesh: Mesh, palette: Palette) -> Text:
    """``X=2, Y=4, 8 devices``, axes coloured."""
    text = Text()
    for name, size in mesh.shape.items():
        text.append(name, palette.axis(mesh, name)).append(f"={size}, ")
    return text.append(plural(mesh.size, "device"))


def question_view(plan: Plan, width: int, palette: Palette, with_pictures: bool = True) -> list[Text]:
    """Every part of the chain: the pictures of its arrays, then a line of words for each."""
    lines: list[Text] = []
    parts = numbered_parts(plan)
    if with_pictures:
        for part in parts:
            lines += [Text()] if lines else []
            layouts, firsts = zip(*part, strict=True)
            lines += pictures(layouts, firsts, width, palette)
        lines += [*repetition(count_of(parts), palette), Text()]
    arrays = {str(layout): layout for part in parts for layout, _ in part}
    lines += table([caption_cells(layout, palette) for layout in arrays.values()], width)
    for layout in arrays.values():
        for note in notes(layout):
            lines += sentence(note, width)
    return lines


def pictures(layouts: Sequence[Layout], numbers: Sequence[int], width: int, palette: Palette) -> list[Text]:
    """Operands and result side by side with signs between; on as many rows as the width needs."""
    for limit in LIMITS:
        drawn = [
            picture(layout, min(limit, width), palette, number)
            for layout, number in zip(layouts, numbers, strict=True)
        ]
        if limit == LIMITS[0]:
            roomy = drawn
        elif any(each.summarised for each in drawn):
            break
        if sum(each.width + SIGN_WIDTH for each in drawn) - SIGN_WIDTH <= width:
            return _beside(drawn, ["", *_signs(drawn)])
    lines: list[Text] = []
    shelf: list[Picture] = []
    signs: list[str] = []
    for each, sign in zip(roomy, ["", *_signs(roomy)], strict=True):
        if shelf and sum(one.width + SIGN_WIDTH for one in (*shelf, each)) > width:
            lines += [*_beside(shelf, signs), Text()]
            shelf, signs = [], []
        shelf.append(each)
        signs.append(sign)
    return lines + _beside(shelf, signs)


def _signs(drawn: Sequence[Picture]) -> list[str]:
    """What stands before each picture but the first: `·` before an operand, `→` before the result."""
    return ["·"] * (len(drawn) - 2) + ["→"] * (len(drawn) > 1)


def _beside(drawn: Sequence[Picture], signs: Sequence[str]) -> list[Text]:
    """Pictures next to one another, their boxes top-aligned, each with its sign before its title."""
    top = max(each.top for each in drawn)
    height = max(len(each.lines) + top - each.top for each in drawn)
    rows = [Text() for _ in range(height + 1)]
    left = 0
    for place, (each, sign) in enumerate(zip(drawn, signs, strict=True)):
        title = each.title
        if place:
            rows[0].append(" " * (left - SIGN_WIDTH // 2 - 1 - rows[0].cell_len)).append(sign, "bold")
        elif sign:
            title = Text.assemble((f"{sign} ", "bold"), title)
        column = [title, *[Text()] * (top - each.top), *each.lines]
        for row, line in zip(rows, column, strict=False):
            if line.cell_len:
                row.append(" " * (left - row.cell_len)).append_text(line)
        left += each.width + SIGN_WIDTH
    for row in rows:
        row.rstrip()
    return rows
