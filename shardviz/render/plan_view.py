"""A plan: its arrays as pictures, its numbered steps with their reasons; and plans ranked by their time.
Every block of an array has a number, which gives it its colour and glyph in all views."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from shardviz.errors import plural
from shardviz.notation import SpecPart, write_specs
from shardviz.planner.plan import Parts, Plan, axes_words, decided_parts, repeated_work
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.problem.problem import UNNAMED, notices, statement_text
from shardviz.planner.ranking import Candidate
from shardviz.planner.statements.work_split import CASES
from shardviz.render.caption import caption_cells, collectives_text, mesh_text, notes, repetition
from shardviz.render.layouts.layout_canvas import array_lines
from shardviz.render.lines import (
    GAP,
    Cell,
    as_text,
    columns,
    fitting_columns,
    records,
    sentence,
    sentences,
    table,
)
from shardviz.render.palette import BEST, Palette
from shardviz.render.plan_steps import (
    StepRow,
    phase_heading,
    state_names,
    state_words,
    step_row,
    step_rows,
    training_words,
)
from shardviz.sharding import Layout
from shardviz.units import exact_bytes, flops, human_bytes, seconds

if TYPE_CHECKING:
    from shardviz.planner.pricing.costs import PlanCost

RIGHT = frozenset({3, 4})
MOST_NAMES = 3
INDENT, REASON_INDENT = 1, 4


Numbered = tuple[Layout, int]
"""A layout and the number of its first block."""


def numbered_parts(plan: Plan, parts_of: Callable[[Plan], Parts] = decided_parts) -> list[list[Numbered]]:
    """For every part of the chain the layouts of its operands and its result, each with its first number.

    `parts_of` says how they are sharded: as the problem has them, or as the einsum does (`einsum_parts`).
    An intermediate keeps its numbers where the next part uses it: it is the same data. The partial sums of
    a block share its number.
    """
    first = 0
    seen: dict[str, int] = {}
    parts = []
    for operands, result in parts_of(plan):
        part = []
        for array in (*operands, result):
            layout = Layout(array, plan.problem.mesh)
            key = f"{array.name} {layout.spec}"
            if key not in seen:
                seen[key] = first
                first += layout.num_shards // plan.problem.mesh.group_size(layout.spec.unreduced)
            part.append((layout, seen[key]))
        parts.append(part)
    return parts


def count_of(parts: Iterable[Sequence[Numbered]]) -> int:
    """The number of blocks that are numbered."""
    return max(first + math.prod(layout.parts) for part in parts for layout, first in part)


def headline(problem: Problem, width: int, palette: Palette) -> list[Text]:
    """The einsums, or the size of a program, and the mesh: ``bd,df->bf   mesh X=2, Y=4, 8 devices``."""
    words = problem.text if problem.is_chain else program_words(problem)
    mesh = Text.assemble("mesh ", mesh_text(problem.mesh, palette))
    return table([[Text(words, "bold"), mesh]], width)


def program_words(problem: Problem) -> str:
    """``program of 18 statements, × 32, backward, adam``."""
    repeated = f", × {problem.layers}" if problem.layers > 1 else ""
    return f"program of {plural(len(problem.forward), 'statement')}{repeated}{training_words(problem)}"


def statement_lines(problem: Problem, width: int) -> list[Text]:
    """The statements of a program's forward pass, each on a line of its own or more, and what of them may not
    be meant; none of einsums in letters, or of one product, whose heading says what it sums."""
    if problem.is_chain and (len(problem.parts) == 1 or problem.result.name == UNNAMED):
        return []
    return [
        *sentences(map(_statement_words, problem.forward), width, INDENT),
        *sentences((f"{notice}." for notice in notices(problem)), width),
    ]


def _statement_words(part: Statement) -> str:
    """``Y[b,f] = X[b,d] * W[d,f] (sums over d)``; a function along dimensions names these itself."""
    summed = part.summed if part.function == "multiply" and len(part.operands) > 1 else ()
    return statement_text(part) + (f" (sums over {', '.join(summed)})" if summed else "")


def question_view(plan: Plan, width: int, palette: Palette, with_pictures: bool = True) -> list[Text]:
    """Every part of the chain: the pictures of its arrays, then a line of words for each. A program of
    several statements has no pictures, but each of its arguments and results has its line."""
    problem = plan.problem
    parts = numbered_parts(plan)
    lines: list[Text] = []
    if with_pictures and (problem.is_chain or len(problem.parts) == 1):
        lines = [*array_lines(parts, width, palette), *repetition(count_of(parts), palette), Text()]
    named = None
    if not problem.is_chain:
        named = {*problem.results, *(array.name for array in problem.arguments)} - state_names(problem)
    arrays = {
        str(layout): layout
        for part in parts
        for layout, _ in part
        if named is None or layout.array.name in named
    }
    lines += table([caption_cells(layout, palette) for layout in arrays.values()], width)
    lines += sentences((note for layout in arrays.values() for note in notes(layout)), width)
    return lines + sentence(state_words(problem), width)


def explain_view(cost: PlanCost, width: int, palette: Palette, with_pictures: bool = True) -> list[Text]:
    """Headline, pictures unless they are left out, shares, the plan and its cost, with blank lines between. A
    plan that does not fit says so first."""
    from shardviz.render.alternatives_view import alternatives_view
    from shardviz.render.cost_view import cost_view, fit_lines, padding_lines

    plan = cost.plan
    return [
        *headline(plan.problem, width, palette),
        *statement_lines(plan.problem, width),
        *fit_lines(cost, width),
        *padding_lines(cost, width),
        Text(),
        *question_view(plan, width, palette, with_pictures),
        Text(),
        *adopted_lines(plan, width),
        *plan_view(plan, width, palette),
        *alternatives_view(cost, width, palette),
        Text(),
        *cost_view(cost, width, palette),
        *sentence(cost.assumes, width, INDENT),
    ]


def adopted_lines(plan: Plan, width: int) -> list[Text]:
    """Says of a plan that it splits or moves arrays as Shardy does, and why."""
    if plan.teller == "planner":
        return []
    is_one = len(plan.question.parts) == 1
    does = (
        "The array is resharded as Shardy does it"
        if is_one
        else "The arrays in between are split as Shardy splits them"
    )
    return sentence(f"{does}: priced alike, that costs less than the best that the planner found.", width)


def plan_view(plan: Plan, width: int, palette: Palette) -> list[Text]:
    """The case, the steps with their reasons, and what a device sends in all."""
    lines = [*case_lines(plan, width), *meaning_lines(plan, width)]
    rows = step_rows(plan, palette)
    first = 1
    for (number, row), head in zip(rows.items(), _heads(plan, [*rows.values()], width), strict=True):
        if heading := phase_heading(plan, first):
            lines.append(Text(f" {heading}", "bold"))
        lines += head
        if not row.value:
            lines += sentence(row.step.reason, width, REASON_INDENT)
        first = number + 1
    return [*lines, *sentence(totals(plan), width, INDENT)]


def case_lines(plan: Plan, width: int) -> list[Text]:
    """The work that the plan repeats, then the textbook's case of each part, or a program's size."""
    is_chain = plan.problem.is_chain
    repeated = repeated_work(plan)
    words = "; ".join(plan.cases) if is_chain else program_words(plan.problem)
    if repeated is not None:
        work = _repeated_words(repeated.parts, plan.problem)
        words = (
            f"every device repeats {work} {repeated.factor} ×, which the specs divide over "
            f"{axes_words(repeated.axes)}; {words}"
        )
    return sentence(words, width, lead="plan  ", style="bold")


def meaning_lines(plan: Plan, width: int) -> list[Text]:
    """The meaning of each of the textbook's cases that the plan names; nothing for a program."""
    if not plan.problem.is_chain:
        return []
    told = [f"{case}: {said}" for case, said in CASES.items() if any(case in named for named in plan.cases)]
    return sentences(told, width, INDENT, style="dim")


def _repeated_words(parts: Sequence[int], problem: Problem) -> str:
    """The work of some statements, by what they make; others of the program are repeated less or not."""
    if {*parts} == {*range(len(problem.parts))}:
        return "the work"
    names = [*dict.fromkeys(problem.parts[part].result.name for part in parts)]
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return f"the work of {', '.join(names[:MOST_NAMES])}{more}"


def step_lines(plan: Plan, number: int, width: int, palette: Palette) -> list[Text]:
    """One step of the plan, numbered as there, with its reason."""
    row = step_row(plan, number, palette)
    cells = [row.becomes, row.value] if row.value else _cells(row)
    lines = records([[row.number, *cells]], width, INDENT)
    return [*lines, *sentence(row.step.reason, width, REASON_INDENT)]


def totals(plan: Plan) -> str:
    """The cost of the plan: ``1 collective; each device sends 98,304 bytes (96 KiB)``. Other plans may send
    less, so this is not a lower bound for a target's answer."""
    count = len(plan.collectives)
    if not count:
        return "no collective: nothing is sent"
    sent = exact_bytes(plan.wire_bytes)
    if plan.wire_bytes >= 1024:
        sent += f" ({human_bytes(plan.wire_bytes)})"
    return f"{plural(count, 'collective')}; each device sends {sent}"


def _cells(row: StepRow) -> list[Cell]:
    """The operation, the array as the step leaves it, and of a collective the bytes and those sent."""
    sent = (f"{row.step.wire_bytes:,} sent", "dim") if row.is_moving else ""
    return [row.operation, Text("→ ").append_text(row.becomes), row.size, sent]


def _heads(plan: Plan, rows: Sequence[StepRow], width: int) -> list[list[Text]]:
    """The first line of every step, or more where it is wide: what it does to which array. The values of a
    program's statements are under one another where they fit."""
    cells = [[row.number, *_cells(row)] for row in rows]
    if plan.problem.is_chain:
        aligned = columns(cells, width, INDENT, RIGHT)
        if aligned is not None:
            return [[line] for line in aligned]
        return [records([row], width, INDENT) for row in cells]
    # Updates have a line of their own, and do not widen the others.
    statements = [row for row in rows if row.value and not row.is_update]
    number = max(len(row.number) for row in rows if not row.is_update)
    made = max(row.becomes.cell_len for row in statements)
    widest = INDENT + number + made + max(len(row.value) for row in statements) + 2 * GAP
    heads = []
    for row, (_, operation, *rest) in zip(rows, cells, strict=True):
        if not row.value:
            first = Text.assemble(f"{row.number:>{number}}", " " * GAP, operation)
            heads.append(records([[first, *rest]], width, INDENT))
            continue
        name = row.becomes
        if widest <= width and not row.is_update:
            name = Text.assemble(name, " " * (made - name.cell_len))
        first = Text.assemble(f"{row.number:>{0 if row.is_update else number}}", " " * GAP, name)
        # A value is beside what it makes or on the next line, and not cut in two.
        whole = Text.assemble(" " * INDENT, first, f" = {row.value}")
        fits = whole.cell_len <= width
        heads.append([whole] if fits else records([[first, f"= {row.value}"]], width, INDENT))
    return heads


HEADINGS = ("", "", "specs", "time", "bound", "sent", "memory", "work", "collectives", "case")
RANKING_RIGHT = frozenset({0, 3, 5, 6, 7})
GIVING_WAY: Sequence[Collection[int]] = [range(9, 10), range(8, 10)]
"""The cases follow from the collectives, and these from the specs, so they go first."""
TOO_LARGE = "!"
"""Marks what does not fit."""


def ranking_view(
    problem: Problem, candidates: Sequence[Candidate], width: int, palette: Palette, limit: int
) -> list[Text]:
    """A table of the first `limit` candidates, and how many more there are."""
    shown = candidates[:limit]
    rows = _ranking_cells(shown, palette)
    words = " ".join((*_ranking_words(candidates), "All figures are per device."))
    more = len(candidates) - len(shown)
    if more:
        words += f" {plural(more, 'more sharding')}: --limit {len(candidates)} or --json shows all."
    return [
        *headline(problem, width, palette),
        *statement_lines(problem, width),
        Text(),
        *(fitting_columns(rows, width, 0, RANKING_RIGHT, HEADINGS, GIVING_WAY) or records(rows, width)),
        *sentence(words, width, style="dim"),
    ]


def ranking_rows(candidates: Sequence[Candidate], width: int, palette: Palette) -> list[Text]:
    """The heads of the columns that fit, then a line for each candidate."""
    rows = _ranking_cells(candidates, palette)
    without = [*GIVING_WAY, *(range(stop, 10) for stop in (7, 6, 4))]
    found = fitting_columns(rows, width, 0, RANKING_RIGHT, HEADINGS, without)
    return found or [Text("specs  time", "bold"), *(Text("  ").join(map(as_text, row[2:4])) for row in rows)]


def _ranking_cells(candidates: Sequence[Candidate], palette: Palette) -> list[list[Cell]]:
    return [
        [
            (str(number), "dim"),
            (BEST if candidate.best else "", "bold"),
            (specs_text(cost.plan), "bold"),
            "unknown" if cost.unknown else seconds(cost.serial_seconds),
            "" if cost.unknown else cost.bound,
            human_bytes(cost.plan.wire_bytes),
            human_bytes(candidate.memory_per_device) + TOO_LARGE * bool(cost.over_bytes),
            flops(cost.flops),
            collectives_text(cost.plan, palette),
            ("; ".join(cost.plan.cases), "dim"),
        ]
        for number, candidate in enumerate(candidates, 1)
        for cost in (candidate.cost,)
    ]


def _ranking_words(candidates: Sequence[Candidate]) -> Iterator[str]:
    from shardviz.render.cost_view import machine_words

    cost = candidates[0].cost
    if any(one.cost.unknown for one in candidates):
        yield f"{BEST} Pareto-optimal in bytes sent, memory and compute; not ranked by time."
    else:
        if any(one.best for one in candidates):
            yield f"{BEST} Pareto-optimal: nothing faster uses less memory."
        yield "Times are without overlap."
    if any(one.cost.over_bytes for one in candidates):
        yield f"{TOO_LARGE} does not fit in {human_bytes(cost.limit_bytes or 0)}."
    yield f"On {machine_words(cost)}."


def specs_text(plan: Plan) -> str:
    """The specs of a plan's operands and result as `--specs` takes them: ``XY,Y_->X_``."""
    parts = [
        SpecPart(tuple(operand.spec for operand in part.operands), part.result.spec)
        for part in plan.problem.parts
    ]
    parts[-1] = SpecPart(parts[-1].operands, plan.result_spec)
    return write_specs(parts)


def named_specs_text(plan: Plan) -> str:
    """The specs of a plan as `--specs` takes them: by the names of the arrays of a program."""
    problem = plan.problem
    if problem.is_chain:
        return specs_text(plan)
    from shardviz.notation.spec_string import write_named_specs

    given = {array.name: array.spec for array in (*problem.arguments, problem.result)}
    return write_named_specs({name: spec for name, spec in given.items() if spec is not None and spec.axes})
