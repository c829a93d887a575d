"""A plan as a table to choose from: axes, bytes and time of each step, and the reason of the chosen one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple

from rich.style import Style
from rich.text import Text

from shardviz.errors import plural
from shardviz.planner.plan import LOCAL_OPS, axes_words
from shardviz.planner.pricing.costs import PlanCost
from shardviz.planner.pricing.priced_plan import IN_PLACE, PricedStep
from shardviz.render.caption import axes_text
from shardviz.render.lines import GAP, bar, records, sentence
from shardviz.render.palette import DIM, Palette
from shardviz.render.plan_view import (
    StepRow,
    case_lines,
    meaning_lines,
    phase_heading,
    step_row,
    step_rows,
    update_runs,
)
from shardviz.units import estimated_seconds, exact_bytes, human_bytes, seconds

if TYPE_CHECKING:
    from shardviz.stepping.plan_step import StepCost

MARK = "▌"
"""Stands before every line of the chosen step."""
HEADINGS = ("", "step", "", "axis", "bytes", "sent", "time", "", "bound")
NUMBER, OPERATION, BECOMES, AXES, BYTES, SENT, TIME, BAR, BOUND = range(len(HEADINGS))
RIGHT = frozenset({NUMBER, BYTES, SENT, TIME})
LEFT_OUT = {BOUND: 28, BECOMES: 28, BYTES: 20, BAR: 16, SENT: 10, AXES: 10}
"""The columns that narrower pages do without, in this order: each where the operation would else be cut to
fewer columns than these."""
LEAST_BAR, MOST_BAR = 4, 24
INDENT, REASON_INDENT = 1, 4
DIGITS = 5
"""Of the time of the chosen step."""


class TableRow(NamedTuple):
    """The cells of a line, that of the bar empty; the operation in fewer words, for narrow pages; the seconds
    that the bar shows, and its colour."""

    cells: Sequence[Text]
    short: Text
    seconds: float = 0.0
    colour: Style = DIM


class PlanTable:
    """The table of a plan with its cost, in lines of at most `width` columns. What does not change with the
    choice is made once."""

    def __init__(self, cost: PlanCost, width: int, palette: Palette) -> None:
        self._cost, self._width, self._palette = cost, width, palette
        self._plan = cost.plan
        self._runs = update_runs(cost.plan)
        self._line = cache(lambda number: self._drawn(self._rows[number]))

    def lines(
        self, chosen: int, costs: Mapping[int, StepCost], group: Text | None = None
    ) -> tuple[list[Text], range]:
        """All lines, and which of them are those of step `chosen`, from 1. `costs` are the known rounds and
        bytes of collectives, by the number of the step. `group` is the one that does the chosen step with the
        device that is marked."""
        lines = [*self._above]
        place = range(0)
        for number in range(1, len(self._cost.steps) + 1):
            run = self._runs.get(number, range(0))
            if heading := phase_heading(self._plan, number):
                lines.append(Text(f" {heading}", "bold"))
            if number == chosen:
                block = self._chosen(number, costs, group)
                place = range(len(lines), len(lines) + len(block))
                lines += block
            elif chosen in run or not run:
                lines.append(self._line(number))
            elif number == run[-1]:
                lines.append(self._line(-number))
        lines += [self._line(0), *self._rounds_in_all(costs)]
        return [*lines, *meaning_lines(self._plan, self._width)], place

    def _chosen(self, number: int, costs: Mapping[int, StepCost], group: Text | None) -> list[Text]:
        """The row of the chosen step, and below it all that was cut of it, its reason and its figures."""
        priced, row = self._cost.steps[number - 1], self._rows[number]
        line, start = self._line(number).copy(), INDENT + self._widths[NUMBER] + GAP
        stop = start + min(self._operation(row).cell_len, self._widths[OPERATION])
        line.stylize("reverse", start, stop)
        lines, indent = [line], REASON_INDENT
        if self._is_cut or (BECOMES not in self._widths and row.cells[BECOMES]):
            whole = step_row(self._plan, number, self._palette)
            becomes = Text("→ ").append_text(whole.becomes)
            lines += records([[whole.operation, becomes]], self._width, indent)
        lines += sentence(priced.step.reason, self._width, indent)
        lines += sentence(exact_words(priced), self._width, indent, style="dim")
        if number in costs:
            lines += sentence(rounds_words(costs[number]), self._width, indent, style="dim")
        if group is not None:
            lines += records([[Text.assemble("group ", group)]], self._width, indent)
        return [Text.assemble((MARK, "bold")).append_text(line[1:]) for line in lines]

    @cached_property
    def _above(self) -> list[Text]:
        head = [Text(heading, "dim") for heading in HEADINGS]
        return [*case_lines(self._plan, self._width), self._drawn(TableRow(tuple(head), head[OPERATION]))]

    @cached_property
    def _rows(self) -> dict[int, TableRow]:
        """The rows by the number of their step; those of all steps that update one parameter by less than
        the last one's, and that of the whole plan by 0."""
        plan, palette, priced = self._plan, self._palette, self._cost.steps
        rows = {
            number * (-1 if row.is_update else 1): self._row(row)
            for number, row in step_rows(plan, palette, priced).items()
        }
        for number in self._runs:
            rows[number] = self._row(step_row(plan, number, palette, priced))
        cost = self._cost
        layers = f"in each of {cost.layers} layers" if cost.layers > 1 else "in all"
        sent = human_bytes(cost.wire_bytes) if plan.collectives else ""
        time = seconds(cost.serial_seconds) if len(cost.unknown) < len(cost.steps) else ""
        cells = [Text(each, "bold") for each in ("", layers, "", "", "", sent, time, "", "")]
        return rows | {0: TableRow(cells, cells[OPERATION])}

    @cached_property
    def _shown(self) -> list[TableRow]:
        return [row for number, row in self._rows.items() if number not in self._runs]

    @cached_property
    def _longest(self) -> float:
        return max(row.seconds for row in self._shown)

    @cached_property
    def _widths(self) -> dict[int, int]:
        widths = {}
        for column, heading in enumerate(HEADINGS):
            widest = max(row.cells[column].cell_len for row in self._shown)
            if column == BAR and self._longest:
                widest = LEAST_BAR
            if widest:
                widths[column] = max(widest, len(heading))
        for column, least in LEFT_OUT.items():
            if widths[OPERATION] + min(self._spare(widths), 0) >= min(widths[OPERATION], least):
                break
            widths.pop(column, None)
        spare = self._spare(widths)
        widths[OPERATION] += min(spare, 0)
        if BAR in widths:
            widths[BAR] = min(widths[BAR] + max(spare, 0), MOST_BAR)
        return widths

    def _spare(self, widths: Mapping[int, int]) -> int:
        """The columns that are left over; less than 0 where some are missing."""
        return self._width - INDENT - sum(widths.values()) - GAP * (len(widths) - 1)

    def _drawn(self, row: TableRow) -> Text:
        line = Text(" " * INDENT)
        for index, (column, width) in enumerate(self._widths.items()):
            cell = row.cells[column].copy()
            if column == BAR:
                cell = Text(bar(row.seconds, self._longest, width), row.colour)
            elif column == OPERATION:
                cell = self._operation(row)
            cell.truncate(width, overflow="ellipsis")
            blank = " " * (width - cell.cell_len)
            line.append(" " * GAP * bool(index))
            line.append_text(Text.assemble(blank, cell) if column in RIGHT else Text.assemble(cell, blank))
        line.rstrip()
        return line

    def _operation(self, row: TableRow) -> Text:
        """The operation; in fewer words where not all rows have room for more."""
        return (row.short if self._is_cut else row.cells[OPERATION]).copy()

    @cached_property
    def _is_cut(self) -> bool:
        return any(row.cells[OPERATION].cell_len > self._widths[OPERATION] for row in self._shown)

    def _row(self, row: StepRow) -> TableRow:
        step, mesh = row.step, self._plan.problem.mesh
        made = Text("→ ").append_text(row.becomes)
        operation = short = Text.assemble((step.op, "bold"), f" {step.einsum or step.array}")
        colour = Style(color=self._palette.lanes["matmul" if step.op == "einsum" else "compute"])
        if row.value:
            short = Text(row.value) if row.is_update else row.operation
            operation, made = Text.assemble(row.becomes, f" = {row.value}"), Text()
        elif not self._plan.problem.is_chain:
            # Beside statements, which are long, a column for this would be empty in most rows.
            operation, made = Text.assemble(operation, " ", made), Text()
        axes = Text()
        if step.axes and not row.is_update:
            axes = axes_text(step.axes, mesh, self._palette, ",")
            colour = self._palette.axis(mesh, step.axes[0])
        moves = (human_bytes(step.bytes), human_bytes(step.wire_bytes)) if row.is_moving else ("", "")
        time = Text(row.time, "dim" if row.is_in_place else "bold")
        bound = "" if row.bound == axes_words(step.axes) else row.bound
        cells = [Text(row.number), operation, made, axes, *map(Text, moves), time, Text(), Text(bound, "dim")]
        taken = sum(step.seconds or 0.0 for step in row.priced)
        return TableRow(cells, short, taken, colour)

    def _rounds_in_all(self, costs: Mapping[int, StepCost]) -> list[Text]:
        moving = [number for number, step in enumerate(self._plan.steps, 1) if step.op not in LOCAL_OPS]
        if len(moving) < 2 or any(number not in costs for number in moving):
            return []
        from shardviz.stepping.plan_step import StepCost

        known = [costs[number] for number in moving]
        whole = StepCost(
            ", ".join(dict.fromkeys(cost.algorithm for cost in known)),
            sum(cost.rounds for cost in known),
            sum(cost.wire_bytes for cost in known),
            sum(cost.least_rounds for cost in known),
            sum(cost.least_wire_bytes for cost in known),
        )
        words = f"{plural(len(moving), 'collective')} {rounds_words(whole)}"
        return sentence(words, self._width, INDENT, style="dim")


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
    time = "of unknown time" if priced.seconds is None else estimated_seconds(priced.seconds, DIGITS)
    return f"{counted}, {time}: {priced.convention}"


def rounds_words(cost: StepCost) -> str:
    """``by ring: 12 MiB sent in 6 rounds; the least: 12 MiB, 2 rounds``."""
    return (
        f"by {cost.algorithm}: {human_bytes(cost.wire_bytes)} sent in {plural(cost.rounds, 'round')}; "
        f"the least: {human_bytes(cost.least_wire_bytes)}, {plural(cost.least_rounds, 'round')}"
    )
