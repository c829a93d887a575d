"""The rows of a plan's steps, of which all tables of steps are made: lines of a page, and the table to choose
from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from itertools import groupby
from typing import NamedTuple

from rich.style import Style
from rich.text import Text

from shardviz.errors import plural
from shardviz.planner.plan import LOCAL_OPS, Plan, Step, axes_words, repeated_work
from shardviz.planner.pricing.costs import PlanCost
from shardviz.planner.pricing.priced_plan import HBM, IN_PLACE, UNKNOWN, PricedStep
from shardviz.planner.problem import Problem, value_pieces
from shardviz.planner.statements.work_split import CASES
from shardviz.render.caption import axes_text, spec_text
from shardviz.render.lines import GAP, bar, beside, listed, sentence, sentences
from shardviz.render.palette import Palette
from shardviz.render.tables import columns, records
from shardviz.units import exact_bytes, flops, human_bytes, seconds


class StepRow(NamedTuple):
    """A step, or all steps in a row that update one parameter, of which `step` is the last. `number` is
    ``2``, or ``7–9``; `operation` is ``psum Out over Y`` and `becomes` the array after it, ``→ Out[b_X, f]``.
    In a program one cell has both, ``Y[b_X, f] = silu(H)``, and `short` has them without the spec."""

    number: str
    step: Step
    operation: Text
    becomes: Text
    short: Text
    is_statement: bool
    is_update: bool
    priced: Sequence[PricedStep]

    @property
    def is_moving(self) -> bool:
        return self.step.op not in LOCAL_OPS

    @property
    def seconds(self) -> float | None:
        """The time of all its steps; None where one of them has none."""
        known = [step.seconds for step in self.priced if step.seconds is not None]
        return sum(known) if known and len(known) == len(self.priced) else None

    @property
    def moved(self) -> str:
        """The figure that bounds its time: bytes sent, bytes of memory, or work."""
        if self.is_moving:
            return f"{human_bytes(self.step.wire_bytes)} sent"
        if not self.priced:
            return ""
        last = self.priced[-1]
        if self.is_update or last.bound == HBM:
            return f"{human_bytes(sum(step.hbm_bytes for step in self.priced))} of HBM"
        return flops(last.flops)

    @property
    def cells(self) -> list[Text]:
        """The cells below `HEADINGS`, without the bar; a slice in place moves nothing, an update uses HBM."""
        cells = [Text(self.number), self.operation, self.becomes]
        if self.priced and not self.is_update and self.priced[0].convention == IN_PLACE:
            return [*cells, Text(), Text("in place", "dim"), Text(), Text()]
        is_known = all(step.bound != UNKNOWN for step in self.priced)
        time = time_words(self.seconds, is_known)
        bound = HBM if self.is_update else self.priced[0].bound if self.priced and is_known else ""
        return [*cells, Text(self.moved), Text(time * bool(self.priced), "bold"), Text(), Text(bound, "dim")]


AT_LEAST = "≥ "
"""Before a time of which a part is missing."""


def time_words(duration: float | None, is_known: bool) -> str:
    """``162 µs``; of a time of which a part is missing ``≥ 162 µs``, or ``unknown``."""
    if not duration and not is_known:
        return "unknown"
    return AT_LEAST * (not is_known) + seconds(duration or 0.0)


HEADINGS = ("", "step", "", ">moves", ">time", "", "bound")
NUMBER, OPERATION, BECOMES, MOVED, TIME, BAR, BOUND = range(len(HEADINGS))
LEFT_OUT = {BECOMES: 28, BAR: 20, MOVED: 16}
"""The columns that narrower tables do without, in this order: each where the operation would else be cut to
fewer columns than these."""
INDENT, REASON_INDENT = 1, 4


def step_rows(plan: Plan, palette: Palette, priced: Sequence[PricedStep]) -> dict[int, StepRow]:
    """The row of each step by its number, from 1; steps that update one parameter are one, by the last."""
    runs = update_runs(plan)
    numbers = ((number, runs.get(number)) for number in range(1, len(plan.steps) + 1))
    return {
        number: step_row(plan, number, palette, priced, run)
        for number, run in numbers
        if run is None or number == run[-1]
    }


def step_row(
    plan: Plan, number: int, palette: Palette, priced: Sequence[PricedStep] = (), run: range | None = None
) -> StepRow:
    """The row of one step, or of the `run` of steps that update its parameter."""
    step, problem = plan.steps[number - 1], plan.problem
    part, is_chain = problem.parts[step.part], problem.is_chain
    dims = next(array.dims for array in problem.arrays if array.name == step.array)
    array = spec_text(step.array, dims, step.to_spec, problem.mesh, palette)
    becomes = Text.assemble("→ ", array)
    is_statement = step.einsum is not None and not is_chain
    if is_statement:
        if run is None:
            pieces = value_pieces(part)
            value = "".join(one if isinstance(one, str) else part.operands[one].name for one in pieces)
        else:
            assert problem.training is not None
            assert problem.training.optimizer is not None
            name = _updated(plan, step)
            value = f"{problem.training.optimizer.rule}({name}, {dict(problem.gradients)[name]})"
        operation, becomes = Text.assemble(array, f" = {value}"), Text()
        short = Text.assemble((step.array, "bold"), f" = {value}")
    else:
        operation = short = Text.assemble((step.op, "bold"), f" {step.einsum or step.array}")
        if step.axes:
            short.append(" over ").append_text(axes_text(step.axes, problem.mesh, palette))
        if not is_chain:
            operation, becomes = Text.assemble(short, " ", becomes), Text()
    first = number if run is None else run[0]
    label = f"{number}" if first == number else f"{first}–{number}"
    prices = priced[first - 1 : number]
    return StepRow(label, step, operation, becomes, short, is_statement, run is not None, prices)


def phase_heading(plan: Plan, number: int) -> str:
    """The phase that begins with a step, from 1, or ""; recomputation is a part of the backward pass."""

    def phase(step: Step) -> str:
        own = plan.problem.parts[step.part].phase
        return "backward" if own == "recomputed" else own

    here = phase(plan.steps[number - 1])
    if plan.problem.training is None or (number > 1 and phase(plan.steps[number - 2]) == here):
        return ""
    return here


def update_runs(plan: Plan) -> dict[int, range]:
    """By the number of each step, from 1, those in a row that update the same parameter as it does."""
    runs: dict[int, range] = {}
    for name, run in groupby(enumerate(plan.steps, 1), lambda pair: _updated(plan, pair[1])):
        numbers = [number for number, _ in run]
        runs |= dict.fromkeys(numbers if name else (), range(numbers[0], numbers[-1] + 1))
    return runs


def _updated(plan: Plan, step: Step) -> str:
    """The parameter whose optimizer's statement the step is; "" for all others."""
    part = plan.problem.parts[step.part]
    return part.source if part.phase == "optimizer" and step.einsum is not None else ""


def program_words(problem: Problem) -> str:
    """``program of 18 statements, × 32, backward, remat dots, adam``."""
    words = [f"program of {plural(len(problem.forward), 'statement')}"]
    words += [f"× {problem.layers}"] * (problem.layers > 1)
    if problem.training is not None:
        remat, optimizer = problem.training.remat, problem.training.optimizer
        words += ["backward", *[f"remat {remat}"] * (remat != "none"), *[f"{optimizer}"] * bool(optimizer)]
    return ", ".join(words)


def plan_view(
    plan: Plan,
    width: int,
    palette: Palette,
    priced: Sequence[PricedStep] = (),
    verbose: bool = False,
    time: str = "",
) -> list[Text]:
    """The `time` and the case, then a line a step: its bytes, its time where they are `priced`, and why. When
    `verbose` also arrays, bounds and full reasons, and each way of counting time once."""
    rows = step_rows(plan, palette, priced)
    shown = (NUMBER, OPERATION, BECOMES, MOVED, TIME, BOUND) if verbose else (NUMBER, OPERATION, MOVED, TIME)
    cells = [[row.cells[column] for column in shown] for row in rows.values()]
    for row, own in zip(rows.values(), cells, strict=True):
        own[OPERATION] = row.operation if verbose or row.is_statement else row.short
    head = [">" * HEADINGS[column].startswith(">") for column in shown]
    # A row that is wider than the page does not take the others out of their columns.
    widths = [max(cell.cell_len for cell in column) for column in zip(*cells, strict=True)]
    others = [wide for column, wide in enumerate(widths) if wide and column != OPERATION]
    room = width - INDENT - sum(others) - GAP * len(others)
    fitting = [index for index, row in enumerate(cells) if row[OPERATION].cell_len <= room]
    texts = columns([cells[index] for index in fitting], width, INDENT, head) or []
    aligned = dict(zip(fitting, texts, strict=True))
    left = max((line.cell_len for line in texts), default=0) + GAP
    lines = [*case_lines(plan, width, time), *(meaning_lines(plan, width) if verbose else ())]
    told: set[str] = set()
    first = 1
    for index, (number, row) in enumerate(rows.items()):
        if heading := phase_heading(plan, first):
            lines.append(Text(f" {heading}", "bold"))
        first = number + 1
        lines += [aligned[index]] if index in aligned else records([cells[index]], width, INDENT)
        if not verbose:
            why = "" if row.is_statement else row.step.short_reason
            lines[-1:] = beside(lines[-1], why, left, width, 24, REASON_INDENT)
            continue
        if not row.is_statement:
            lines += sentence(row.step.reason, width, REASON_INDENT)
        convention = row.priced[-1].convention if row.priced and row.is_moving else ""
        if convention not in told:
            told.add(convention)
            lines += sentence(convention, width, REASON_INDENT, style="dim")
    return [*lines, *sentence(totals(plan), width, INDENT)] if verbose else lines


def case_lines(plan: Plan, width: int, time: str = "") -> list[Text]:
    """The repeated work, then each part's case (a lone one's meaning after a `time`), or a program's size."""
    is_chain = plan.problem.is_chain
    repeated = repeated_work(plan)
    words = "; ".join(plan.cases) if is_chain else program_words(plan.problem)
    if time:
        meanings = _meanings(plan)
        meaning = f": {meanings[0][1].partition(';')[0]}" if len(plan.cases) == len(meanings) == 1 else ""
        words = f"{time}, {words}{meaning}"
    if repeated is not None:
        work = "the work"
        # Others of the program are repeated less or not.
        if {*repeated.parts} != {*range(len(plan.problem.parts))}:
            names = [*dict.fromkeys(plan.problem.parts[part].result.name for part in repeated.parts)]
            work = f"the work of {listed(names, 3)}"
        words = (
            f"every device repeats {work} {repeated.factor} ×, though the specs divide it over "
            f"{axes_words(repeated.axes)}; {words}"
        )
    return sentence(words, width, lead="plan  ", style="bold")


def meaning_lines(plan: Plan, width: int) -> list[Text]:
    """The meaning of each of the textbook's cases that the plan names; nothing for a program."""
    return sentences((f"{case}: {said}" for case, said in _meanings(plan)), width, INDENT, style="dim")


def _meanings(plan: Plan) -> list[tuple[str, str]]:
    named = plan.cases if plan.problem.is_chain else ()
    return [(case, said) for case, said in CASES.items() if any(case in one for one in named)]


def step_lines(
    plan: Plan, number: int, width: int, palette: Palette, priced: Sequence[PricedStep] = ()
) -> list[Text]:
    row = step_row(plan, number, palette, priced)
    return [*records([row.cells], width, INDENT), *sentence(row.step.reason, width, REASON_INDENT)]


def exact_words(priced: PricedStep) -> str:
    """``8,388,608 bytes, 12,582,912 sent, 139.81 µs: a ring of 4 along Y, …``, each figure in full."""
    if priced.convention == IN_PLACE:
        return IN_PLACE
    if priced.is_collective:
        counted = f"{exact_bytes(priced.step.bytes)}, {priced.wire_bytes:,} sent"
    else:
        counted = f"{priced.hbm_bytes:,} bytes of HBM"
        if priced.flops:
            counted = f"{priced.flops:,} FLOP, {counted}"
    time = "unknown time" if priced.seconds is None else seconds(priced.seconds, 5)
    if priced.bound == UNKNOWN and priced.seconds is not None:
        time = f"at least {time}"
    optimistic = f". Optimistic: {priced.optimistic}" * bool(priced.optimistic)
    return f"{counted}, {time}: {priced.convention}{optimistic}"


def totals(plan: Plan) -> str:
    """``1 collective; each device sends 98,304 bytes (96 KiB)``: other plans may send less."""
    count = len(plan.collectives)
    if not count:
        return "no collective: nothing is sent"
    sent = exact_bytes(plan.wire_bytes)
    if plan.wire_bytes >= 1024:
        sent += f" ({human_bytes(plan.wire_bytes)})"
    return f"{plural(count, 'collective')}; each device sends {sent}"


def adopted_lines(plan: Plan, width: int) -> list[Text]:
    """Says of a plan that it splits or moves arrays as Shardy does, and why."""
    if plan.teller == "planner":
        return []
    is_one = len(plan.question.parts) == 1
    does = "The array is resharded as by Shardy" if is_one else "Intermediates are sharded as by Shardy"
    return sentence(f"{does}, because that costs less than the planner's own best plan.", width)


MARK = "▌"
"""Stands before every line of the chosen step."""
LEAST_BAR, MOST_BAR = 4, 24


class PlanTable:
    """A priced plan's table. With `is_full` a row has the array that its step makes, the chosen one all
    details, and the plan its cases; with `is_quiet` rows have FLOPs, but no seconds or HBM bytes."""

    def __init__(
        self, cost: PlanCost, width: int, palette: Palette, is_full: bool = False, is_quiet: bool = False
    ) -> None:
        self._cost, self._width, self._palette, self._is_full = cost, width, palette, is_full
        self._plan, self._is_quiet = cost.plan, is_quiet
        self._runs = update_runs(cost.plan)
        self._rows = step_rows(cost.plan, palette, cost.steps)
        self._longest = max(row.seconds or 0.0 for row in self._rows.values())
        self._line = cache(lambda number: self._drawn(self._rows[number]))
        self._one = cache(lambda number: step_row(cost.plan, number, palette, cost.steps))

    def lines(
        self, chosen: int, group: Text | None = None, has_total: bool = True
    ) -> tuple[list[Text], range]:
        """All lines, and which are those of step `chosen`, from 1; `group` does it with the marked device."""
        lines: list[Text] = []
        if self._is_full or repeated_work(self._plan) is not None:
            lines += case_lines(self._plan, self._width)
        lines.append(self._joined([Text(heading.removeprefix(">"), "dim") for heading in HEADINGS]))
        span = range(0)
        for number in range(1, len(self._cost.steps) + 1):
            run = self._runs.get(number, range(0))
            if heading := phase_heading(self._plan, number):
                lines.append(Text(f" {heading}", "bold"))
            if number == chosen:
                block = self._chosen(number, group)
                span = range(len(lines), len(lines) + len(block))
                lines += block
            elif chosen in run:
                lines.append(self._drawn(self._one(number)))
            elif number in self._rows:
                lines.append(self._line(number))
        lines += [self._joined(self._total)] * (has_total or self._cost.layers > 1)
        return lines + (meaning_lines(self._plan, self._width) if self._is_full else []), span

    def _chosen(self, number: int, group: Text | None) -> list[Text]:
        """The row of the chosen step and its reason; in full also what was cut of the row, and figures."""
        priced, row = self._cost.steps[number - 1], self._one(number)
        reason = (not self._is_full and priced.step.short_reason) or priced.step.reason
        line, start = self._drawn(row), INDENT + self._widths[NUMBER] + GAP
        shown = row.short if self._is_cut else row.operation
        line.stylize("reverse", start, start + min(shown.cell_len, self._widths[OPERATION]))
        lines, indent = [line], REASON_INDENT
        if self._is_full and (self._is_cut or (BECOMES not in self._widths and row.becomes)):
            lines += records([[row.operation, row.becomes]], self._width, indent)
        lines += sentence(reason, self._width, indent)
        if self._is_full and not self._is_quiet:
            lines += sentence(exact_words(priced), self._width, indent, style="dim")
        if group is not None:
            lines += records([[Text.assemble("group ", group)]], self._width, indent)
        return [Text.assemble((MARK, "bold")).append_text(line[1:]) for line in lines]

    @cached_property
    def _total(self) -> list[Text]:
        cost = self._cost
        layers = f"in each of {cost.layers} layers" if cost.layers > 1 else "total"
        if self._is_quiet and (work := sum(step.flops for step in cost.steps)):
            layers += f": {flops(work)}"
        sent = f"{human_bytes(cost.wire_bytes)} sent" if self._plan.collectives else ""
        time = time_words(cost.serial_seconds, not cost.unknown)
        words = {OPERATION: layers, MOVED: sent, TIME: time}
        return [Text(words.get(column, ""), "bold") for column in range(BOUND)]

    @cached_property
    def _widths(self) -> dict[int, int]:
        """The columns of each cell; the bar has what is left over."""
        table = [self._total, *(row.cells[:-1] for row in self._rows.values())]
        widest: list[int] = [max(cell.cell_len for cell in column) for column in zip(*table, strict=True)]
        widest[BAR] = LEAST_BAR * (self._longest > 0 and not self._is_quiet)
        widest[TIME] *= not self._is_quiet
        widest[BECOMES] *= self._is_full
        widths = {i: max(wide, len(HEADINGS[i].removeprefix(">"))) for i, wide in enumerate(widest) if wide}

        def spare() -> int:
            return self._width - INDENT - sum(widths.values()) - GAP * (len(widths) - 1)

        for column, least in LEFT_OUT.items():
            if widths[OPERATION] + min(spare(), 0) >= min(widths[OPERATION], least):
                break
            widths.pop(column, None)
        left = spare()
        widths[OPERATION] += min(left, 0)
        if BAR in widths:
            widths[BAR] = min(widths[BAR] + max(left, 0), MOST_BAR)
        return widths

    @cached_property
    def _is_cut(self) -> bool:
        """The operations are said in fewer words, as not all rows have room for more."""
        return any(row.operation.cell_len > self._widths[OPERATION] for row in self._rows.values())

    def _drawn(self, row: StepRow) -> Text:
        cells, step = row.cells[:-1], row.step
        if self._is_cut:
            cells[OPERATION] = row.short
        colour = Style(color=self._palette.lanes["matmul" if step.op == "einsum" else "compute"])
        if step.axes and not row.is_update:
            colour = self._palette.axis(self._plan.problem.mesh, step.axes[0])
        room = self._widths.get(BAR, 0)
        if self._is_quiet and not row.is_moving:
            work = sum(step.flops for step in row.priced)
            cells[MOVED] = Text(flops(work) if work else "")
        cells[BAR] = Text(bar(row.seconds or 0.0, self._longest, room), colour)
        return self._joined(cells)

    def _joined(self, cells: list[Text]) -> Text:
        line = Text(" " * INDENT)
        for index, (column, width) in enumerate(self._widths.items()):
            cell = cells[column].copy()
            cell.truncate(width, overflow="ellipsis")
            cell.align("right" if HEADINGS[column].startswith(">") else "left", width)
            line.append(" " * GAP * bool(index)).append_text(cell)
        line.rstrip()
        return line
