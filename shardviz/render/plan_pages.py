"""Pages of a plan: what it answers, its arrays, its steps and its cost; one step in full; and below the table
to choose from the roofline as bars, of its arithmetic, its memory and its links."""

from __future__ import annotations

import math

from rich.style import Style
from rich.text import Text

from shardviz.planner.plan import Plan
from shardviz.planner.pricing.costs import PlanCost
from shardviz.planner.problem import UNNAMED, Problem, notices, statement_text
from shardviz.render.caption import caption_cells, mesh_text, notes, repetition
from shardviz.render.cost_view import (
    alternative_words,
    alternatives_view,
    bound_words,
    faster_words,
    fit_lines,
    layers_words,
    machine_words,
    matmul_words,
    memory_words,
    overlapped_words,
    padding_lines,
    threshold_words,
    total_words,
)
from shardviz.render.layouts.layout_canvas import Numbered, array_lines, count_of, numbered_parts
from shardviz.render.lines import GAP, bar, listed, sentence, sentences
from shardviz.render.palette import DIM, Palette
from shardviz.render.plan_view import (
    INDENT,
    REASON_INDENT,
    adopted_lines,
    exact_words,
    plan_view,
    program_words,
    step_lines,
    time_words,
)
from shardviz.render.tables import table
from shardviz.sharding import Layout, ShardedArray
from shardviz.units import human_bytes, seconds

MOST_DRAWN, MOST_FOLDED = 32, 3
"""Devices beyond which pictures are folded, and the rows and columns that these have then."""
CROSSING = "┊"
LABELS, VALUES, LEAST, MOST = 9, 9, 4, 48


def headline(problem: Problem, width: int, palette: Palette) -> list[Text]:
    """The einsums, or the size of a program, and the mesh: ``bd,df->bf   mesh X=2, Y=4, 8 devices``."""
    words = problem.text if problem.is_chain else program_words(problem)
    mesh = Text.assemble("mesh ", mesh_text(problem.mesh, palette))
    return table([[Text(words, "bold"), mesh]], width)


def statement_lines(problem: Problem, width: int) -> list[Text]:
    """A program's forward statements and notices; none of einsums in letters, or of one product."""
    if problem.is_chain and (len(problem.parts) == 1 or problem.result.name == UNNAMED):
        return []
    said = []
    for part in problem.forward:
        # A function along dimensions names these itself.
        summed = part.summed if part.function == "multiply" and len(part.operands) > 1 else ()
        said.append(statement_text(part) + (f" (sums over {', '.join(summed)})" if summed else ""))
    return [*sentences(said, width, INDENT), *sentences((f"{notice}." for notice in notices(problem)), width)]


def question_view(
    plan: Plan, width: int, palette: Palette, with_pictures: bool = True, verbose: bool = True
) -> list[Text]:
    """The pictures of the chain's arrays, then a line of words for each; a program has only lines, for its
    arguments and results. Pictures of many devices are folded, unless `verbose`."""
    problem = plan.problem
    parts = numbered_parts(plan)
    lines: list[Text] = []
    if with_pictures and (problem.is_chain or len(problem.parts) == 1):
        folded = not verbose and problem.mesh.size > MOST_DRAWN
        lines = array_lines(parts, width, palette, MOST_FOLDED if folded else None)
        lines += [*repetition(count_of(parts), palette), Text()]
    named = None
    if not problem.is_chain:
        trained = {part.source for part in problem.parts if part.phase == "optimizer"}
        updated = problem.updates if problem.training else ()
        state = {name for pair in updated if pair[0] not in trained for name in pair}
        named = {*problem.results, *(array.name for array in problem.arguments)} - state
    arrays = {
        str(layout): layout
        for part in parts
        for layout, _ in part
        if named is None or layout.array.name in named
    }
    lines += table([caption_cells(layout, palette) for layout in arrays.values()], width)
    return lines + sentences((note for layout in arrays.values() for note in notes(layout)), width)


def step_arrays(plan: Plan) -> list[list[Numbered]]:
    """For every step the operands and the result of an einsum, else the array before and after it. A block
    keeps its number while it is the same; partial sums have that of the block that they add up to."""
    parts = numbered_parts(plan)
    arrays: dict[str, ShardedArray] = {}
    firsts: dict[tuple[str, tuple[tuple[str, ...], ...]], int] = {}
    for layout, first in (numbered for part in parts for numbered in part):
        arrays.setdefault(layout.array.name, layout.array)
        firsts.setdefault((layout.array.name, layout.spec.dims), first)
    next_block = count_of(parts)
    steps = []
    for step in plan.steps:
        changed = arrays[step.array]
        before = [arrays[name] for name in step.operands] or [changed.with_spec(step.from_spec)]
        arrays[step.array] = after = changed.with_spec(step.to_spec)
        numbered = []
        for layout in (Layout(array, plan.problem.mesh) for array in (*before, after)):
            blocks = layout.array.name, layout.spec.dims
            if blocks not in firsts:
                firsts[blocks] = next_block
                next_block += math.prod(layout.parts)
            numbered.append((layout, firsts[blocks]))
        steps.append(numbered)
    return steps


def time_lines(cost: PlanCost, width: int, has_totals: bool = True) -> list[Text]:
    """The machine, then the totals: seconds, thresholds, intensity and utilisation, memory."""
    time = sentence(machine_words(cost), width, lead="time  ")
    return time + sentences(total_words(cost) if has_totals else (), width, INDENT)


def explain_view(
    cost: PlanCost, width: int, palette: Palette, with_pictures: bool = True, verbose: bool = False
) -> list[Text]:
    """A plan and its cost below what it answers and whether it fits, all of it when `verbose`."""
    plan = cost.plan
    return [
        *headline(plan.problem, width, palette),
        *statement_lines(plan.problem, width),
        *fit_lines(cost, width),
        *padding_lines(plan.problem.padding, width),
        Text(),
        *question_view(plan, width, palette, with_pictures, verbose),
        Text(),
        *(full_plan if verbose else short_plan)(cost, width, palette),
    ]


def short_plan(cost: PlanCost, width: int, palette: Palette) -> list[Text]:
    """The time and the case, a line for each step, the totals, and the alternatives, a sentence each."""
    time, count = time_words(cost.serial_seconds, not cost.unknown), len(cost.plan.collectives)
    sent = f"{human_bytes(cost.wire_bytes)} sent by {count} collectives" if count else "nothing is sent"
    totals = [
        sent * (count != 1),
        overlapped_words(cost) if count and cost.compute_seconds else "",
        memory_words(cost),
        layers_words(cost),
    ]
    others = [f"{alternative_words(other, cost)}." for other in cost.alternatives[:1]]
    return [
        *plan_view(cost.plan, width, palette, cost.steps, time=time),
        *sentence("; ".join(filter(None, totals)), width, INDENT),
        *sentences(others, width, INDENT),
    ]


def full_plan(cost: PlanCost, width: int, palette: Palette) -> list[Text]:
    """The plan with all of its reasons, and what is `around_plan`."""
    steps = plan_view(cost.plan, width, palette, cost.steps, verbose=True)
    return [*adopted_lines(cost.plan, width), *steps, *around_plan(cost, width, palette)]


def around_plan(cost: PlanCost, width: int, palette: Palette) -> list[Text]:
    """The alternatives of a plan, and its time with all that it assumes."""
    optimistic: dict[str, list[str]] = {}
    for number, step in enumerate(cost.steps, 1):
        if step.optimistic:
            optimistic.setdefault(step.optimistic, []).append(str(number))
    said = [f"{why} (step {listed(numbers, 3)})" for why, numbers in optimistic.items()]
    return [
        *alternatives_view(cost, width, palette),
        Text(),
        *time_lines(cost, width),
        *sentences((f"optimistic: {'; '.join(said)}" * bool(said), cost.assumes), width, INDENT),
    ]


def assumption_lines(cost: PlanCost, width: int, more: str = "") -> list[Text]:
    """A blank line, the assumptions of the times, and how to see `more`."""
    machine, matmuls = cost.machine, matmul_words(cost.machine, cost.plan.problem.forward[-1].result.dtype)
    words = f"On {machine.name}, {matmuls}."
    if any(step.is_collective for step in cost.unknown):
        words += f" Collectives have no seconds: {cost.missing_figure}."
    if machine.assumed:
        words = f"Times assume {machine.name} {matmuls}, each axis a ring."
    said = " ".join(filter(None, (words, bound_words(cost), more)))
    return [Text(), *sentence(said, width, style="dim")]


def step_page(cost: PlanCost, number: int, width: int, palette: Palette) -> list[Text]:
    """One step of a plan in full: its reason, its figures and how its time is counted, and its arrays."""
    plan = cost.plan
    return [
        *headline(plan.problem, width, palette),
        Text(),
        *step_lines(plan, number, width, palette, cost.steps),
        *sentence(exact_words(cost.steps[number - 1]), width, REASON_INDENT, style="dim"),
        Text(),
        *array_lines([step_arrays(plan)[number - 1]], width, palette),
    ]


def roofline(cost: PlanCost, width: int, palette: Palette) -> list[Text]:
    """The seconds of arithmetic, memory and links as bars on one scale; none where a time is unknown. What
    goes beyond `CROSSING` is not compute-bound. A figure that is one step's stands in its row alone."""
    if cost.unknown:
        return []
    said = {seconds(step.seconds or 0.0) for step in cost.steps}
    local = [step for step in cost.steps if not step.is_collective]
    lanes, mesh, layers = palette.lanes, cost.plan.problem.mesh, cost.layers
    parts = {
        "compute": [(sum(step.compute_seconds or 0.0 for step in local), Style(color=lanes["matmul"]))],
        "HBM": [(sum(step.hbm_seconds or 0.0 for step in local), Style(color=lanes["memory"]))],
        "links": [
            (duration, palette.axis(mesh, axes[0]) if axes else DIM)
            for axes, duration in cost.communication_by_axes.items()
        ],
    }
    totals = {name: sum(size for size, _ in pieces) for name, pieces in parts.items()}
    most, room = max(totals.values()), min(width - LABELS - VALUES - GAP, MOST)
    if not most or room < LEAST:
        return []
    crossing = LABELS + min(round(room * totals["compute"] / most), room - 1)
    lines = []
    for name, pieces in parts.items():
        if not totals[name]:
            continue
        line = Text(f" {name:<{LABELS - 1}}", DIM)
        for size, style in pieces:
            line.append(bar(size, most, room), style)
        line.pad_right(LABELS + room - line.cell_len)
        if name != "compute":
            line = Text.assemble(line[:crossing], (CROSSING, "bold"), line[crossing + 1 :])
        value = seconds(totals[name] * layers)
        line = line[: LABELS + room].append(f" {value:>{VALUES}}" * (value not in said))
        line.rstrip()
        lines.append(line)
    return lines


def below_table(
    cost: PlanCost, width: int, palette: Palette, is_full: bool, has_totals: bool, has_alternatives: bool
) -> list[Text]:
    """The roofline, the size above which the plan is compute-bound, and how much faster another would be;
    with `is_full` all totals, and every plan that others would choose, as far as they are known."""
    lines = [Text(), *roofline(cost, width, palette)]
    if not is_full:
        bound = threshold_words(cost.thresholds).partition(";")[0].partition(" (now")[0] if has_totals else ""
        fastest = [one.cost for one in cost.alternatives if one.name == "fastest"] if has_alternatives else []
        faster = [faster_words(one, cost).partition(":")[0].removesuffix(".") + "." for one in fastest]
        unknown = total_words(cost)[:1] if cost.unknown else []
        return lines + sentences([*unknown, bound, *faster], width, INDENT)
    others = sentence("Searching for alternative plans …", width, INDENT, style="dim")
    if has_alternatives:
        others = alternatives_view(cost, width, palette)
    return [*others, *lines, *time_lines(cost, width, has_totals)]
