"""Values over sizes on two logarithmic axes: a chart of any, and compute and communication over a range of
sizes with their crossings."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import pairwise

from rich.style import Style
from rich.text import Text

from shardviz.planner.plan import axes_words
from shardviz.planner.pricing.costs import Crossing, Sweep
from shardviz.render.caption import axes_text
from shardviz.render.cost_view import machine_words
from shardviz.render.lines import GAP, sentence, sentences
from shardviz.render.palette import DIM, Palette
from shardviz.render.plan_pages import headline
from shardviz.render.plan_view import time_words
from shardviz.render.tables import table
from shardviz.units import BINARY, human_bytes, seconds

COMPUTE, COMMUNICATION, BOTH = "●", "×", "◉"
CROSSING = "┆"


def sweep_view(sweep: Sweep, width: int, palette: Palette, verbose: bool = False) -> list[Text]:
    """The crossings in words, the chart, its legend, the machine; when `verbose`, costs at every size."""
    rows = [
        [
            size_text(size),
            time_words(cost.compute_seconds, not cost.unknown),
            seconds(cost.communication_seconds),
            human_bytes(cost.wire_bytes),
        ]
        for size, cost in zip(sweep.sizes, sweep.costs, strict=True)
    ]
    sent = dict.fromkeys(axes for cost in sweep.costs for axes in cost.communication_by_axes)
    names = Text(", ").join(axes_text(axes, sweep.problem.mesh, palette, "") for axes in sent)
    mark = (COMMUNICATION, _communication_style(sweep, palette))
    communication = Text.assemble(mark, " communication over ")
    legend = [Text.assemble((COMPUTE, "bold"), " compute"), communication + names if sent else Text()]
    heads = [f">{head}" for head in (sweep.name, "compute", "communication", "sent")]
    return [
        *headline(sweep.problem, width, palette),
        *sentences(_words(sweep), width),
        Text(),
        *chart_lines(sweep, width, palette),
        Text(),
        *table([legend], width),
        *([Text(), *table(rows, width, 0, heads), Text()] if verbose else ()),
        *sentence(machine_words(sweep.costs[0]), width, style="dim"),
    ]


def chart_lines(sweep: Sweep, width: int, palette: Palette, height: int = 14) -> list[Text]:
    costs = sweep.costs
    curves = [[cost.compute_seconds for cost in costs], [cost.communication_seconds for cost in costs]]
    times = [time for curve in curves for time in curve if time > 0] or [1e-6]
    chart = LogChart(times, sweep.sizes, min(width, 100), height, seconds, size_text)
    field = chart.cells
    crossed = {chart.column(crossing.size) for crossing in sweep.crossings}
    for column in crossed:
        for cells in field:
            cells[column] = (CROSSING, DIM)
    compute, sent = (chart.rows(zip(sweep.sizes, curve, strict=True)) for curve in curves)
    communication = _communication_style(sweep, palette)
    for column, (own, other) in enumerate(zip(compute, sent, strict=True)):
        if other is not None:
            field[other][column] = (COMMUNICATION, communication)
        if own is not None:
            field[own][column] = (BOTH if own == other else COMPUTE, Style(bold=True))
    return chart.lines(crossed, sweep.name)


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
    by_axes = sweep.costs[-1].communication_by_axes
    if not by_axes:
        return Style()
    axes = max(by_axes, key=lambda key: by_axes[key])
    return palette.axis(sweep.problem.mesh, axes[0])


def _words(sweep: Sweep) -> Iterator[str]:
    first = sweep.costs[0]
    if first.unknown:
        yield f"compute is a lower bound: {first.missing_figure}"
    if sweep.crossings:
        yield from (_crossing_words(sweep, crossing) for crossing in sweep.crossings)
    elif first.unknown and first.compute_seconds < first.communication_seconds:
        yield "compute may take longer than communication at any of these sizes"
    elif any(cost.communication_seconds for cost in sweep.costs):
        longer = first.compute_seconds >= first.communication_seconds
        yield f"{'compute' if longer else 'communication'} takes longer at all of these sizes"
    elif any(cost.wire_bytes for cost in sweep.costs):
        yield "communication takes no time here"
    else:
        yield "nothing is sent at any of these sizes"
    if sweep.plans_change:
        sizes = ", ".join(map(size_text, sweep.plans_change))
        yield f"the plan changes at {sweep.name} = {sizes}"


def _crossing_words(sweep: Sweep, crossing: Crossing) -> str:
    """``compute takes longer from b = 12,240``: exact where the plan stays the same."""
    longer, size = "compute" if crossing.compute_grows else "communication", crossing.size
    exact = "" if crossing.same_plan else " (the next size tried)"
    exact = " at the latest" if sweep.costs[0].unknown else exact
    words = f"{longer} takes longer from {sweep.name} = {size:,}{exact}"
    if size not in sweep.sizes:
        return words
    cost = sweep.costs[sweep.sizes.index(size)]
    sent = (f"{axes_words(axes)} {seconds(time)}" for axes, time in cost.communication_by_axes.items())
    return f"{words}: {', '.join([f'compute {seconds(cost.compute_seconds)}', *sent])}"


class LogChart:
    """A field of `height` lines, `cells`, in a picture of `width` columns: values go upwards, at powers of
    ten as `written`; sizes go to the right, as many of them named by `size_text` as have room."""

    def __init__(
        self,
        values: Iterable[float],
        sizes: Sequence[int],
        width: int,
        height: int,
        written: Callable[[float], str],
        size_text: Callable[[int], str],
    ) -> None:
        logs = [math.log10(value) for value in values]
        # At least a decade, so that equal values lie in the middle.
        spare = max(0.0, 1.0 - (max(logs) - min(logs))) / 2
        self._low, self._high = min(logs) - spare, max(logs) + spare
        self.height = height
        powers = range(math.ceil(self._low), math.floor(self._high) + 1)
        marks = [10.0**power for power in powers] or [10 ** ((self._low + self._high) / 2)]
        self._labels = {self.row(mark): written(mark) for mark in marks}
        self._gutter = max(map(len, self._labels.values()))
        self.width = max(width - self._gutter - 2, 10)
        self._sizes, self._size_text = sizes, size_text
        self._first, self._span = math.log2(sizes[0]), math.log2(sizes[-1]) - math.log2(sizes[0])
        blank: tuple[str, Style] = (" ", Style())
        self.cells = [[blank] * self.width for _ in range(height)]

    def row(self, value: float) -> int:
        return round((self._high - math.log10(value)) / (self._high - self._low) * (self.height - 1))

    def column(self, size: float) -> int:
        share = (math.log2(size) - self._first) / self._span if self._span else 0.0
        return round(share * (self.width - 1))

    def size_at(self, column: int) -> float:
        return float(2 ** (self._first + column / (self.width - 1) * self._span))

    def rows(self, points: Iterable[tuple[int, float]]) -> list[int | None]:
        """The row of every column, on straight lines between points; None where a value is 0."""
        rows: list[int | None] = [None] * self.width
        for (first, before), (last, after) in pairwise(points):
            for column in range(self.column(first), self.column(last) + 1):
                way = math.log2(self.size_at(column) / first) / math.log2(last / first)
                share = min(max(way, 0.0), 1.0)
                if before > 0 and after > 0:
                    rows[column] = self.row(before ** (1 - share) * after**share)
        return rows

    def lines(self, crossed: Collection[int] = (), name: str = "") -> list[Text]:
        """The field with its labels; `crossed` columns go on through the axis of the sizes of `name`."""
        lines = []
        for number, cells in enumerate(self.cells):
            label = self._labels.get(number, "")
            line = Text(f"{label:>{self._gutter}} {'┤' if label else '│'}")
            for cell in cells:
                line.append(*cell)
            line.rstrip()
            lines.append(line)
        marked = self._marked_sizes()
        signs = dict.fromkeys(crossed, CROSSING) | {column: "┴" for column, _, _ in marked}
        words = ""
        for _, start, label in marked:
            words += " " * (start - len(words)) + label
        lead = (f"{name} " if name else "").rjust(self._gutter + 2)[-self._gutter - 2 :]
        axis = "".join(signs.get(column, "─") for column in range(self.width))
        return [*lines, Text(f"{' ' * self._gutter} └{axis}"), Text(lead + words)]

    def _marked_sizes(self) -> list[tuple[int, int, str]]:
        """Columns that are marked, with where their labels begin: every size, or every n-th that has room."""
        for stride in range(1, len(self._sizes)):
            marks = [self._label(size) for size in self._sizes[::stride]]
            if all(start + len(label) + GAP <= after for (_, start, label), (_, after, _) in pairwise(marks)):
                return marks
        return [self._label(self._sizes[0])]

    def _label(self, size: int) -> tuple[int, int, str]:
        column, label = self.column(size), self._size_text(size)
        return column, min(max(column - len(label) // 2, 0), self.width - len(label)), label
