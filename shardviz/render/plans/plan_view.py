"""The plan in words: numbered steps, what each moves, and why."""

from __future__ import annotations

from rich.text import Text

from shardviz.errors import plural
from shardviz.planner.plan import LOCAL_OPS, Plan, Step
from shardviz.planner.work_split import CASES
from shardviz.render.caption import axes_text, spec_text
from shardviz.render.lines import columns, records, sentence
from shardviz.render.palette import Palette
from shardviz.render.units import exact_bytes, human_bytes
from shardviz.sharding import Mesh

RIGHT = frozenset({3, 4})


def plan_view(plan: Plan, width: int, palette: Palette) -> list[Text]:
    """The case, the steps with their reasons, and what a device sends in all."""
    lines = case_lines(plan, width)
    rows = [step_cells(number, step, plan, palette) for number, step in enumerate(plan.steps, 1)]
    aligned = columns(rows, width, 1, RIGHT)
    for row, step in zip(rows, plan.steps, strict=True):
        lines += records([row], width, 1) if aligned is None else [aligned.pop(0)]
        lines += sentence(step.reason, width, 4)
    return [*lines, *sentence(totals(plan), width, 1)]


def case_lines(plan: Plan, width: int) -> list[Text]:
    """Which case of the textbook each part is, and what that means."""
    lines = sentence("; ".join(plan.cases), width, lead="plan  ", style="bold")
    for case, meaning in CASES.items():
        if any(case in named for named in plan.cases):
            lines += sentence(f"{case}: {meaning}", width, 1, style="dim")
    return lines


def step_lines(plan: Plan, number: int, width: int, palette: Palette) -> list[Text]:
    """One step of the plan, numbered as there, with its reason."""
    step = plan.steps[number - 1]
    lines = records([step_cells(number, step, plan, palette)], width, 1)
    return [*lines, *sentence(step.reason, width, 4)]


def totals(plan: Plan) -> str:
    """What the plan costs: ``1 collective; each device sends 98,304 bytes (96 KiB)``.

    Another way than the plan's may send less: so this is no bound for a target's answer.
    """
    count = len(plan.collectives)
    if not count:
        return "no collective: nothing is sent"
    sent = exact_bytes(plan.wire_bytes)
    if plan.wire_bytes >= 1024:
        sent += f" ({human_bytes(plan.wire_bytes)})"
    return f"{plural(count, 'collective')}; each device sends {sent}"


def step_cells(number: int, step: Step, plan: Plan, palette: Palette) -> list[Text]:
    """Number, op, the array as the step leaves it, and of a collective the bytes and those sent."""
    mesh = plan.problem.mesh
    cells = [Text(f"{number}"), _op(step, mesh, palette), _becomes(step, plan, palette)]
    if step.op not in LOCAL_OPS:
        cells += [Text(exact_bytes(step.bytes)), Text(f"{step.wire_bytes:,} sent", "dim")]
    return cells


def _op(step: Step, mesh: Mesh, palette: Palette) -> Text:
    if step.einsum is not None:
        return Text.assemble((step.op, "bold"), f" {step.einsum}")
    text = Text.assemble((step.op, "bold"), f" {step.array}")
    return text.append(" over ").append_text(axes_text(step.axes, mesh, palette)) if step.axes else text


def _becomes(step: Step, plan: Plan, palette: Palette) -> Text:
    """The array as the step leaves it."""
    dims = next(
        array.dims
        for part in plan.problem.parts
        for array in (*part.operands, part.result)
        if array.name == step.array
    )
    return Text("→ ").append_text(spec_text(step.array, dims, step.to_spec, plan.problem.mesh, palette))
