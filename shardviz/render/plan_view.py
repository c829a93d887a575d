"""A plan: the rows of its steps, which all tables of steps are made of, the words of a train step, and the
page: its arrays as pictures, its numbered steps with their reasons. Every block of an array has a number,
which gives it its colour and glyph in all views."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from rich.text import Text

from shardviz.errors import plural
from shardviz.planner.plan import LOCAL_OPS, Parts, Plan, Step, axes_words, decided_parts, repeated_work
from shardviz.planner.pricing.priced_plan import HBM, IN_PLACE, PricedStep
from shardviz.planner.problem import UNNAMED, Problem, notices, statement_text, value_pieces
from shardviz.planner.statements.work_split import CASES
from shardviz.render.caption import axes_text, caption_cells, mesh_text, notes, repetition, spec_text
from shardviz.render.layouts.layout_canvas import array_lines
from shardviz.render.lines import GAP, Cell, columns, records, sentence, sentences, table
from shardviz.render.palette import Palette
from shardviz.sharding import Layout
from shardviz.units import exact_bytes, flops, human_bytes, seconds


@dataclass(frozen=True)
class StepRow:
    """A step of a plan, or all steps in a row that update one parameter, of which `step` is the last.

    `number` is ``2``, or ``7–9``. `operation` is ``psum Out over Y`` or ``einsum bd,df->bf``; of a statement
    of a program and of an update ``Y = silu(H)``, of which `value` stands after the sign. `becomes` is the
    array as the step leaves it. `priced` are its prices, where it has any.
    """

    number: str
    step: Step
    operation: Text
    becomes: Text
    value: str = ""
    is_update: bool = False
    priced: Sequence[PricedStep] = ()

    @property
    def is_moving(self) -> bool:
        return self.step.op not in LOCAL_OPS

    @property
    def is_in_place(self) -> bool:
        return not self.is_update and self.priced[0].convention == IN_PLACE

    @property
    def seconds(self) -> float | None:
        """The time of all its steps; None where one of them has none."""
        known = [step.seconds for step in self.priced if step.seconds is not None]
        return sum(known) if len(known) == len(self.priced) else None

    @property
    def time(self) -> str:
        if self.is_in_place:
            return "in place"
        return "unknown" if self.seconds is None else seconds(self.seconds)

    @property
    def bound(self) -> str:
        """The resource or the axes by which its time is bound; an update only reads and writes memory."""
        if self.seconds is None or self.is_in_place:
            return ""
        return HBM if self.is_update else self.priced[0].bound

    @property
    def size(self) -> str:
        """The bytes of a collective."""
        return exact_bytes(self.step.bytes) if self.is_moving else ""

    @property
    def moved(self) -> str:
        """The figure that bounds its time: bytes sent, bytes of memory, or work."""
        last = self.priced[-1]
        if last.is_collective:
            return f"{human_bytes(last.wire_bytes)} sent"
        if self.is_update or last.bound == HBM:
            return f"{human_bytes(sum(step.hbm_bytes for step in self.priced))} of HBM"
        return flops(last.flops)


def step_rows(plan: Plan, palette: Palette, priced: Sequence[PricedStep] = ()) -> dict[int, StepRow]:
    """The row of each step by its number, from 1; all steps that update one parameter are one, by the number
    of the last."""
    runs = update_runs(plan)
    rows = {}
    for number in range(1, len(plan.steps) + 1):
        row, run = step_row(plan, number, palette, priced), runs.get(number)
        if run is None:
            rows[number] = row
        elif number == run[-1]:
            value = update_text(plan, number)
            rows[number] = replace(
                row,
                number=f"{run[0]}–{number}",
                operation=Text(value),
                value=value,
                is_update=True,
                priced=priced[run[0] - 1 : number],
            )
    return rows


def step_row(plan: Plan, number: int, palette: Palette, priced: Sequence[PricedStep] = ()) -> StepRow:
    """The row of one step."""
    step, problem, value = plan.steps[number - 1], plan.problem, ""
    arrays = (array for part in problem.parts for array in (*part.operands, part.result))
    dims = next(array.dims for array in arrays if array.name == step.array)
    if step.einsum is not None and not problem.is_chain:
        pieces, part = value_pieces(problem.parts[step.part]), problem.parts[step.part]
        value = "".join(piece if isinstance(piece, str) else part.operands[piece].name for piece in pieces)
        operation = Text.assemble((step.array, "bold"), f" = {value}")
    elif step.einsum is not None:
        operation = Text.assemble((step.op, "bold"), f" {step.einsum}")
    else:
        operation = Text.assemble((step.op, "bold"), f" {step.array}")
        if step.axes:
            operation.append(" over ").append_text(axes_text(step.axes, problem.mesh, palette))
    becomes = spec_text(step.array, dims, step.to_spec, problem.mesh, palette)
    return StepRow(f"{number}", step, operation, becomes, value, False, priced[number - 1 : number])


def training_words(problem: Problem) -> str:
    """``, backward, remat dots, adam``; nothing for a forward pass."""
    training = problem.training
    if training is None:
        return ""
    remat = "" if training.remat == "none" else f", remat {training.remat}"
    return f", backward{remat}" + (f", {training.optimizer}" if training.optimizer else "")


def phase_heading(plan: Plan, number: int) -> str:
    """The phase that begins with a step, from 1; "" where none does. What is computed again is a part of the
    backward pass."""

    def phase(step: Step) -> str:
        own = plan.problem.parts[step.part].phase
        return "backward" if own == "recomputed" else own

    here = phase(plan.steps[number - 1])
    if plan.problem.training is None or (number > 1 and phase(plan.steps[number - 2]) == here):
        return ""
    return here


def update_runs(plan: Plan) -> dict[int, range]:
    """By the number of each step, from 1, those in a row that update the same parameter as it does."""
    found: dict[int, range] = {}
    for _, run in groupby(enumerate(plan.steps, 1), lambda pair: _updated(plan, pair[1])):
        numbers = [number for number, step in run if _updated(plan, step)]
        found |= dict.fromkeys(numbers, range(numbers[0], numbers[-1] + 1)) if numbers else {}
    return found


def _updated(plan: Plan, step: Step) -> str:
    """The parameter whose optimizer's statement the step is; "" for all others."""
    part = plan.problem.parts[step.part]
    return part.source if part.phase == "optimizer" and step.einsum is not None else ""


def update_text(plan: Plan, number: int) -> str:
    """``adam(W1, dW1)``, for a step of the optimizer."""
    training, problem = plan.problem.training, plan.problem
    assert training is not None
    assert training.optimizer is not None
    name = _updated(plan, plan.steps[number - 1])
    return f"{training.optimizer.rule}({name}, {dict(problem.gradients)[name]})"


def state_words(problem: Problem) -> str:
    """``adam keeps a copy in f32 and two moments in f32 of each parameter, split as it is and over data``;
    nothing where there is no such state."""
    optimizer = None if problem.training is None else problem.training.optimizer
    if optimizer is None:
        return ""
    trained = {part.source for part in problem.parts if part.phase == "optimizer"}
    dtypes = {array.dtype for array in problem.arguments if array.name in trained}
    kept = []
    if optimizer.master and dtypes != {optimizer.master}:
        kept.append(f"a copy in {optimizer.master}")
    if optimizer.rule == "adam":
        kept.append(f"two moments in {optimizer.moments}")
    if not kept:
        return ""
    arrays = {array.name: array for array in problem.arguments}
    pairs = [
        (arrays[part.source].decided_spec.axes, arrays[old].decided_spec.axes)
        for old, new in problem.updates
        for part in problem.parts
        if part.result.name == new
    ]
    more = [axis for axis in optimizer.over if any(axis in own and axis not in its for its, own in pairs)]
    split = "split as it is" + "".join(f" and over {axis}" for axis in more)
    return f"{optimizer.rule} keeps {' and '.join(kept)} of each parameter, {split}"


def state_names(problem: Problem) -> set[str]:
    """The optimizer's state before and after the step, which `state_words` says."""
    trained = {part.source for part in problem.parts if part.phase == "optimizer"}
    return {name for pair in problem.updates if pair[0] not in trained for name in pair}


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
    said = []
    for part in problem.forward:
        # A function along dimensions names these itself.
        summed = part.summed if part.function == "multiply" and len(part.operands) > 1 else ()
        said.append(statement_text(part) + (f" (sums over {', '.join(summed)})" if summed else ""))
    return [
        *sentences(said, width, INDENT),
        *sentences((f"{notice}." for notice in notices(problem)), width),
    ]


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
