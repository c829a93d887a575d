"""A plan: its arrays as pictures, its numbered steps with their reasons; and plans ranked by their time.

Every block of an array has a number, which gives it its colour and glyph in all views.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from shardviz.errors import plural
from shardviz.notation import SpecPart, write_specs
from shardviz.planner.plan import LOCAL_OPS, Plan, Step, axes_words, repeated_work
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.problem.problem import notices, statement_text
from shardviz.planner.ranking import Candidate
from shardviz.planner.statements.work_split import CASES
from shardviz.render.caption import (
    caption_cells,
    collectives_text,
    mesh_text,
    notes,
    operation_text,
    repetition,
    spec_text,
)
from shardviz.render.layouts.layout_canvas import array_lines
from shardviz.render.layouts.numbered_parts import count_of, numbered_parts
from shardviz.render.lines import GAP, columns, records, sentence, table
from shardviz.render.palette import BEST, Palette
from shardviz.render.train_steps import (
    phase_heading,
    state_names,
    state_words,
    training_words,
    update_runs,
    update_text,
)
from shardviz.units import exact_bytes, flops, human_bytes, seconds

if TYPE_CHECKING:
    from shardviz.planner.pricing.costs import PlanCost

RIGHT = frozenset({3, 4})
MOST_NAMES = 3
INDENT, REASON_INDENT = 1, 4


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
    be meant; none of a chain."""
    if problem.is_chain:
        return []
    return [
        *(line for part in problem.forward for line in sentence(_statement_words(part), width, INDENT)),
        *(line for notice in notices(problem) for line in sentence(f"{notice}.", width)),
    ]


def _statement_words(part: Statement) -> str:
    """``Y[b,f] = X[b,d] * W[d,f] (sums over d)``; a function along dimensions names these itself."""
    summed = part.summed if part.function == "multiply" and len(part.operands) > 1 else ()
    return statement_text(part) + (f" (sums over {', '.join(summed)})" if summed else "")


def question_view(plan: Plan, width: int, palette: Palette, with_pictures: bool = True) -> list[Text]:
    """Every part of the chain: the pictures of its arrays, then a line of words for each.

    A program of several statements has no pictures, but each of its arguments and results has its line.
    """
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
    for layout in arrays.values():
        for note in notes(layout):
            lines += sentence(note, width)
    return [*lines, *sentence(state_words(problem), width)] if state_words(problem) else lines


def explain_view(cost: PlanCost, width: int, palette: Palette, with_pictures: bool = True) -> list[Text]:
    """Headline, pictures unless they are left out, shares, the plan and its cost, with blank lines between.

    A plan that does not fit says so first.
    """
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
    runs = update_runs(plan)
    updates = _update_heads(plan, runs, width, palette)
    for number, (step, head) in enumerate(
        zip(plan.steps, _heads(plan, runs, width, palette), strict=True), 1
    ):
        if heading := phase_heading(plan, number):
            lines.append(Text(f" {heading}", "bold"))
        if number in runs:
            lines += updates.get(number, [])
            continue
        lines += head
        if not is_folded(step, plan):
            lines += sentence(step.reason, width, REASON_INDENT)
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
    return [line for words in told for line in sentence(words, width, INDENT, style="dim")]


def _repeated_words(parts: Sequence[int], problem: Problem) -> str:
    """The work of some statements, by what they make; others of the program are repeated less or not."""
    if {*parts} == {*range(len(problem.parts))}:
        return "the work"
    names = [*dict.fromkeys(problem.parts[part].result.name for part in parts)]
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return f"the work of {', '.join(names[:MOST_NAMES])}{more}"


def step_lines(plan: Plan, number: int, width: int, palette: Palette) -> list[Text]:
    """One step of the plan, numbered as there, with its reason."""
    step = plan.steps[number - 1]
    lines = records([step_cells(number, step, plan, palette)], width, INDENT)
    return [*lines, *sentence(step.reason, width, REASON_INDENT)]


def totals(plan: Plan) -> str:
    """The cost of the plan: ``1 collective; each device sends 98,304 bytes (96 KiB)``.

    Other plans may send less, so this is not a lower bound for a target's answer.
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
    operation = operation_text(step, plan.problem, palette)
    if is_folded(step, plan):
        # The result with its split stands for its name.
        value = operation[len(step.array) + len(" = ") :]
        return [Text(f"{number}"), becomes(step, plan, palette)[len("→ ") :], value]
    cells = [Text(f"{number}"), operation, becomes(step, plan, palette)]
    if step.op not in LOCAL_OPS:
        cells += [Text(exact_bytes(step.bytes)), Text(f"{step.wire_bytes:,} sent", "dim")]
    return cells


def is_folded(step: Step, plan: Plan) -> bool:
    """Return whether a step is a statement of a program, which needs no words: nothing moves."""
    return step.einsum is not None and not plan.problem.is_chain


def becomes(step: Step, plan: Plan, palette: Palette) -> Text:
    """The array as the step leaves it."""
    dims = next(
        array.dims
        for part in plan.problem.parts
        for array in (*part.operands, part.result)
        if array.name == step.array
    )
    return Text("→ ").append_text(spec_text(step.array, dims, step.to_spec, plan.problem.mesh, palette))


def _heads(plan: Plan, runs: Mapping[int, range], width: int, palette: Palette) -> list[list[Text]]:
    """The first line of every step, or more where it is wide: what it does to which array."""
    rows = [step_cells(number, step, plan, palette) for number, step in enumerate(plan.steps, 1)]
    if not plan.problem.is_chain:
        return _statement_heads(plan, rows, runs, width)
    aligned = columns(rows, width, INDENT, RIGHT)
    if aligned is not None:
        return [[line] for line in aligned]
    return [records([row], width, INDENT) for row in rows]


def _update_heads(
    plan: Plan, runs: Mapping[int, range], width: int, palette: Palette
) -> dict[int, list[Text]]:
    """By the number of its last step, the line of all steps that update one parameter."""
    heads = {}
    for number in (number for number, run in runs.items() if number == run[-1]):
        made = becomes(plan.steps[number - 1], plan, palette)[len("→ ") :]
        value = Text.assemble("= ", update_text(plan, number))
        heads[number] = _numbered(f"{runs[number][0]}–{number}", made, [value], width, is_work=True)
    return heads


def _statement_heads(
    plan: Plan, rows: Sequence[Sequence[Text]], runs: Mapping[int, range], width: int
) -> list[list[Text]]:
    """The lines of each statement, their values under one another where they fit, and of each move."""
    steps = enumerate(zip(rows, plan.steps, strict=True), 1)
    numbered = {place: row for place, (row, step) in steps if is_folded(step, plan)}
    # Updates have a line of their own, and do not widen the others.
    shown = [row for place, row in numbered.items() if place not in runs]
    number = max(row[0].cell_len for row in rows)
    made = max(row[1].cell_len for row in shown)
    widest = INDENT + number + made + max(row[2].cell_len for row in shown) + 2 * GAP
    heads = []
    for place, (first, second, *rest) in enumerate(rows, 1):
        is_work = place in numbered
        if is_work and widest <= width:
            second = Text.assemble(second, " " * (made - second.cell_len))
        if is_work:
            rest = [Text.assemble("= ", rest[0])]
        heads.append(_numbered(f"{first.plain:>{number}}", second, rest, width, is_work))
    return heads


def _numbered(number: str, name: Text, rest: Sequence[Text], width: int, is_work: bool) -> list[Text]:
    """The lines of a step, of which the first begins with its number and what it makes; the value of a
    statement is beside that or on the next line, and not cut in two."""
    first = Text.assemble(number, " " * GAP, name)
    whole = Text(" ").join([first, *rest])
    if is_work and INDENT + whole.cell_len <= width:
        return [Text.assemble(" " * INDENT, whole)]
    return records([[first, *rest]], width, INDENT)


HEADINGS = ("", "", "specs", "time", "bound", "sent", "memory", "work", "collectives", "case")
RANKING_RIGHT = frozenset({0, 3, 5, 6, 7})
TOO_LARGE = "!"
"""Marks what does not fit."""


def ranking_view(
    problem: Problem, candidates: Sequence[Candidate], width: int, palette: Palette, limit: int
) -> list[Text]:
    """A table of the first `limit` candidates, and how many more there are."""
    shown = candidates[:limit]
    rows = _ranking_cells(shown, palette)
    lines = _in_columns(rows, width, (10, 9, 8)) or records(rows[1:], width)
    words = " ".join((*_ranking_words(candidates), "All figures are per device."))
    more = len(candidates) - len(shown)
    if more:
        words += f" {plural(more, 'more sharding')}: --limit {len(candidates)} or --json shows all."
    head = [*headline(problem, width, palette), *statement_lines(problem, width)]
    return [*head, Text(), *lines, *sentence(words, width, style="dim")]


def ranking_rows(candidates: Sequence[Candidate], width: int, palette: Palette) -> list[Text]:
    """The heads of the columns that fit, then a line for each candidate."""
    rows = _ranking_cells(candidates, palette)
    least = [Text("  ").join(row[2:4]) for row in rows]
    return _in_columns(rows, width, (10, 9, 8, 7, 6, 4)) or least


def _ranking_cells(candidates: Sequence[Candidate], palette: Palette) -> list[list[Text]]:
    cells = [_cells(number, candidate, palette) for number, candidate in enumerate(candidates, 1)]
    return [[Text(heading, "bold") for heading in HEADINGS], *cells]


def _in_columns(rows: Sequence[Sequence[Text]], width: int, stops: Iterable[int]) -> list[Text] | None:
    """As many columns as fit; None where not even the fewest do. The cases follow from the collectives, and
    these from the specs, so they go first."""
    cut = (columns([row[:stop] for row in rows], width, right=RANKING_RIGHT) for stop in stops)
    return next((lines for lines in cut if lines is not None), None)


def _ranking_words(candidates: Sequence[Candidate]) -> Iterator[str]:
    """The order and the marks, a sentence each."""
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


def _cells(number: int, candidate: Candidate, palette: Palette) -> list[Text]:
    cost = candidate.cost
    plan = cost.plan
    return [
        Text(str(number), "dim"),
        Text(BEST if candidate.best else "", "bold"),
        Text(specs_text(plan), "bold"),
        Text("unknown" if cost.unknown else seconds(cost.serial_seconds)),
        Text("" if cost.unknown else cost.bound),
        Text(human_bytes(plan.wire_bytes)),
        Text(human_bytes(candidate.memory_per_device) + (TOO_LARGE if cost.over_bytes else "")),
        Text(flops(cost.flops)),
        collectives_text(plan, palette),
        Text("; ".join(plan.cases), "dim"),
    ]
