"""Every sharding worth considering, one line each, the cheapest first."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shardviz.errors import plural
from shardviz.notation import SpecPart, write_specs
from shardviz.planner.plan import Plan
from shardviz.planner.problem import Problem
from shardviz.planner.search import Candidate
from shardviz.render.caption import axes_text
from shardviz.render.lines import columns, records, sentence
from shardviz.render.palette import Palette
from shardviz.render.plans.plan_view import headline
from shardviz.render.units import human_bytes

HEADINGS = ("", "", "specs", "sent", "memory", "collectives", "case")
RIGHT = frozenset({0, 3, 4})
BEST = "★"


def ranking_view(
    problem: Problem, candidates: Sequence[Candidate], width: int, palette: Palette, limit: int
) -> list[Text]:
    """A table of the first `limit` candidates, and how many more there are."""
    shown = candidates[:limit]
    rows = [_cells(number, candidate, palette) for number, candidate in enumerate(shown, 1)]
    head = [Text(heading, "bold") for heading in HEADINGS]
    lines = columns([head, *rows], width, right=RIGHT)
    if lines is None:
        # The cases follow from the collectives, so they go first.
        lines = columns([row[:-1] for row in (head, *rows)], width, right=RIGHT)
    if lines is None:
        lines = records(rows, width)
    words = f"{BEST} no other sends less without holding or computing more. Sent and memory are per device."
    more = len(candidates) - len(shown)
    if more:
        words += f" {plural(more, 'more sharding')}: --limit {len(candidates)} or --json shows all."
    return [*headline(problem, width, palette), Text(), *lines, *sentence(words, width, style="dim")]


def specs_text(plan: Plan) -> str:
    """The specs of a plan's operands and result as `--specs` takes them: ``XY,Y_->X_``."""
    parts = [
        SpecPart(tuple(operand.spec for operand in part.operands), part.result.spec)
        for part in plan.problem.parts
    ]
    parts[-1] = SpecPart(parts[-1].operands, plan.result_spec)
    return write_specs(parts)


def _cells(number: int, candidate: Candidate, palette: Palette) -> list[Text]:
    plan = candidate.plan
    mesh = plan.problem.mesh
    moved = Text("none", "dim")
    if plan.collectives:
        moved = Text(", ").join(
            Text.assemble((f"{step.op} {step.array} ", ""), axes_text(step.axes, mesh, palette, ","))
            for step in plan.collectives
        )
    return [
        Text(str(number), "dim"),
        Text(BEST if candidate.best else "", "bold"),
        Text(specs_text(plan), "bold"),
        Text(human_bytes(plan.wire_bytes)),
        Text(human_bytes(candidate.memory_per_device)),
        moved,
        Text("; ".join(plan.cases), "dim"),
    ]
