"""Compute and communication over a range of sizes: a chart on logarithmic scales, with their crossings."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import pairwise

from rich.style import Style
from rich.text import Text

from shardviz.planner.plan import axes_words
from shardviz.planner.pricing.sweep import Crossing, Sweep
from shardviz.render.caption import axes_text
from shardviz.render.cost_view import machine_words
from shardviz.render.lines import sentence, table
from shardviz.render.palette import DIM, Palette
from shardviz.render.plan_view import headline
from shardviz.units import BINARY, seconds

COMPUTE, COMMUNICATION, BOTH, CROSSING = "●", "×", "◉", "┆"
BOLD = Style(bold=True)
Cell = tuple[str, Style]
BLANK: Cell = (" ", Style())
HEIGHT = 14
"""Lines of the chart's field."""
MAX_WIDTH = 100
GAP = 2
"""Columns between the labels of sizes at least."""
DECADES = tuple(range(-9, 7))
"""Powers of ten of a second that may be marked."""


def sweep_view(sweep: Sweep, width: int, palette: Palette) -> list[Text]:
    """The problem, the chart, its legend, the crossings in words, and the machine."""
    return [
        *headline(sweep.problem, width, palette),
        Text(),
        *chart_lines(sweep, width, palette),
        Text(),
        *_legend(sweep, width, palette),
        *(line for words in _words(sweep) for line in sentence(words, width)),
        *sentence(machine_words(sweep.costs[0]), width, style="dim"),
    ]


def chart_lines(sweep: Sweep, width: int, palette: Palette, height: int = HEIGHT) -> list[Text]:
    """The chart: seconds upwards, the size to the right, both logarithmic."""
    chart = _Chart(sweep, min(width, MAX_WIDTH), height)
    return chart.lines(_communication_style(sweep, palette))


class _Chart:
    """A field of `height` lines, with the labels of times before it and those of sizes below."""

    def __init__(self, sweep: Sweep, width: int, height: int) -> None:
        self._sweep = sweep
        self._height = height
        times = [
            time
            for cost in sweep.costs
            for time in (cost.compute_seconds, cost.communication_seconds)
            if time > 0
        ] or [1e-6]
        low, high = math.log10(min(times)), math.log10(max(times))
        # At least a decade, so that equal times lie in the middle.
        spare = max(0.0, 1.0 - (high - low)) / 2
        self._low, self._high = low - spare, high + spare
        marks = [10.0**power for power in DECADES if self._low <= power <= self._high]
        self._marks = marks or [10 ** ((self._low + self._high) / 2)]
        self._gutter = max(len(seconds(mark)) for mark in self._marks)
        self._width = max(width - self._gutter - 2, 10)
        self._logs = [math.log2(size) for size in sweep.sizes]

    def lines(self, communication: Style) -> list[Text]:
        crossed = {self._column(math.log2(each.size)): each.size for each in self._sweep.crossings}
        field = self._field(crossed, communication)
        labels = {self._row(mark): seconds(mark) for mark in self._marks}
        lines = []
        for row, cells in enumerate(field):
            line = Text(f"{labels.get(row, ''):>{self._gutter}} ")
            line.append("┤" if row in labels else "│")
            for cell in cells:
                line.append(*cell)
            line.rstrip()
            lines.append(line)
        return [*lines, *self._below(crossed)]

    def _field(self, crossed: Mapping[int, int], communication: Style) -> list[list[Cell]]:
        """The cells: both curves, and at each crossing a line, with its size where there is room."""
        field = [[BLANK] * self._width for _ in range(self._height)]
        for column in crossed:
            for cells in field:
                cells[column] = (CROSSING, DIM)
        compute = self._rows([cost.compute_seconds for cost in self._sweep.costs])
        sent = self._rows([cost.communication_seconds for cost in self._sweep.costs])
        for column, (own, other) in enumerate(zip(compute, sent, strict=True)):
            if other is not None:
                field[other][column] = (COMMUNICATION, communication)
            if own is not None:
                field[own][column] = (BOTH if own == other else COMPUTE, BOLD)
        for column, size in crossed.items():
            name = f"{self._sweep.name} = {size:,}"
            for start in (column + 2, column - len(name) - 1):
                room = range(max(start, 0), start + len(name))
                free = [
                    cells for cells in field if all(cells[place : place + 1] == [BLANK] for place in room)
                ]
                if start >= 0 and free:
                    for place, letter in zip(room, name, strict=True):
                        free[0][place] = (letter, BOLD)
                    break
        return field

    def _below(self, crossed: Container[int]) -> Iterator[Text]:
        """The axis of sizes with its marks, and their labels."""
        labels = self._labels()
        marks = {column for column, _, _ in labels}
        axis = "".join(
            "┴" if column in marks else "┆" if column in crossed else "─" for column in range(self._width)
        )
        yield Text(f"{' ' * self._gutter} └{axis}")
        words = ""
        for _, start, label in labels:
            words += " " * (start - len(words)) + label
        lead = f"{self._sweep.name} ".rjust(self._gutter + 2)[-self._gutter - 2 :]
        yield Text(lead + words)

    def _labels(self) -> list[tuple[int, int, str]]:
        """Columns that are marked, with where their labels begin: every size, or every n-th that has room."""
        sizes = [*zip(self._sweep.sizes, self._logs, strict=True)]
        for stride in range(1, len(sizes)):
            found = [self._label(size, log) for size, log in sizes[::stride]]
            if all(start + len(label) + GAP <= after for (_, start, label), (_, after, _) in pairwise(found)):
                return found
        return [self._label(*sizes[0])]

    def _label(self, size: int, log: float) -> tuple[int, int, str]:
        column, label = self._column(log), size_text(size)
        return column, min(max(column - len(label) // 2, 0), self._width - len(label)), label

    def _column(self, log: float) -> int:
        share = (log - self._logs[0]) / (self._logs[-1] - self._logs[0])
        return round(share * (self._width - 1))

    def _row(self, time: float) -> int:
        share = (math.log10(time) - self._low) / (self._high - self._low)
        return round((1 - share) * (self._height - 1))

    def _rows(self, times: Sequence[float]) -> list[int | None]:
        """The row of every column, on straight lines between the times; None where a time is 0."""
        rows: list[int | None] = [None] * self._width
        for (x1, t1), (x2, t2) in pairwise(zip(self._logs, times, strict=True)):
            for column in range(self._column(x1), self._column(x2) + 1):
                log = self._logs[0] + column / (self._width - 1) * (self._logs[-1] - self._logs[0])
                share = min(max((log - x1) / (x2 - x1), 0.0), 1.0)
                if t1 > 0 and t2 > 0:
                    rows[column] = self._row(t1 ** (1 - share) * t2**share)
        return rows


def size_text(size: int) -> str:
    """``64``, ``4Ki``, ``1Mi``; numbers that are not so many of them are written out."""
    prefix = ""
    for unit in BINARY:
        if size % 1024 or not size:
            break
        size, prefix = size // 1024, unit.removesuffix("B")
    return f"{size:,}{prefix}"


def _communication_style(sweep: Sweep, palette: Palette) -> Style:
    """The colour of the mesh axis that is waited for most, at the largest size."""
    found = sweep.costs[-1].communication_by_axes
    if not found:
        return Style()
    axes = max(found, key=lambda each: found[each])
    return palette.axis(sweep.problem.mesh, axes[0])


def _legend(sweep: Sweep, width: int, palette: Palette) -> list[Text]:
    """The marks, and the axes that communicate."""
    mesh = sweep.problem.mesh
    sent = dict.fromkeys(axes for cost in sweep.costs for axes in cost.communication_by_axes)
    names = Text(", ").join(axes_text(axes, mesh, palette, "") for axes in sent)
    mark = _communication_style(sweep, palette)
    communication = Text.assemble((COMMUNICATION, mark), " communication")
    cells = [
        Text.assemble((COMPUTE, "bold"), " compute"),
        communication.append(" over ").append_text(names) if sent else Text(),
    ]
    return table([cells], width)


def _words(sweep: Sweep) -> list[str]:
    """The crossings, or which is longer all along; and where the plan changes."""
    said = [_crossing_words(sweep, crossing) for crossing in sweep.crossings]
    if not said:
        cost = sweep.costs[0]
        if not any(each.communication_seconds for each in sweep.costs):
            is_sent = any(each.wire_bytes for each in sweep.costs)
            said = ["what is sent takes no time here" if is_sent else "nothing is sent at any of these sizes"]
        elif cost.compute_seconds >= cost.communication_seconds:
            said = ["compute takes longer at all of these sizes"]
        else:
            said = ["communication takes longer at all of these sizes"]
    if sweep.plans_change:
        sizes = ", ".join(map(size_text, sweep.plans_change))
        said.append(f"the plan has other steps from {sweep.name} = {sizes} on")
    return said


def _crossing_words(sweep: Sweep, crossing: Crossing) -> str:
    """``compute takes longer from b = 12,240 on``: exact where the plan stays the same."""
    longer = "compute" if crossing.compute_grows else "communication"
    most = _seconds_at(sweep, crossing.size)
    exact = "" if crossing.same_plan else " (the next size looked at)"
    return f"{longer} takes longer from {sweep.name} = {crossing.size:,} on{exact}{most}"


def _seconds_at(sweep: Sweep, size: int) -> str:
    if size not in sweep.sizes:
        return ""
    cost = sweep.costs[sweep.sizes.index(size)]
    sent = ", ".join(
        f"{axes_words(axes)} {seconds(time)}" for axes, time in cost.communication_by_axes.items()
    )
    return f": compute {seconds(cost.compute_seconds)}" + (f", {sent}" if sent else "")
