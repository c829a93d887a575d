"""Bandwidth over size, both logarithmic: a letter for the groups along some axes, dots for their lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from string import ascii_uppercase

from rich.style import Style
from rich.text import Text

from shardviz.devices.fitting import TimeFit
from shardviz.render.caption import axes_text
from shardviz.render.lines import records
from shardviz.render.palette import DIM, Palette
from shardviz.sharding import Mesh
from shardviz.units import flops, human_bytes, rate

HEIGHT = 10
MAX_WIDTH = 90
LEAST_WIDTH = 20
LINE = "·"


def bandwidth_chart(fits: Sequence[TimeFit], mesh: Mesh, width: int, palette: Palette) -> list[Text]:
    """A chart of the fits of one operation, with its legend. A matmul has FLOP/s in place of bytes."""
    marks = ascii_uppercase[: len(fits)]
    styles = [palette.axis(mesh, fit.axes[0]) if len(fit.axes) == 1 else Style(bold=True) for fit in fits]
    legend = [
        Text.assemble((mark, style), " ", axes_text(fit.axes, mesh, palette) if fit.axes else fit.op)
        for mark, style, fit in zip(marks, styles, fits, strict=True)
    ]
    is_matmul = fits[0].op == "matmul"
    what = "FLOP/s" if is_matmul else "bus bandwidth"
    title = Text.assemble((fits[0].op, "bold"), (f", {what} over size", "dim"))
    field = _Field(fits, min(width, MAX_WIDTH))
    if not is_matmul:  # its time is no line over its bytes
        legend.append(Text(f"{LINE} the fitted lines", "dim"))
        for fit in fits:
            field.line(fit)
    for mark, style, fit in zip(marks, styles, fits, strict=True):
        field.marks(fit, mark, style)
    return [title, *field.lines(), *records([legend], width, 2)]


class _Field:
    """The cells of a chart, with the labels of rates before them and those of sizes below."""

    def __init__(self, fits: Sequence[TimeFit], width: int) -> None:
        points = [(row.case.size, _rate(fit, row.case.size, row.median)) for fit in fits for row in fit.rows]
        rates = [each for _, each in points]
        self._sizes = sorted({size for size, _ in points})
        self._unit = flops if fits[0].op == "matmul" else None
        self._low, self._high = math.log10(min(rates)), math.log10(max(rates))
        # At least a decade, so that equal rates lie in the middle.
        spare = max(0.0, 1.0 - (self._high - self._low)) / 2
        self._low, self._high = self._low - spare, self._high + spare
        powers = range(math.ceil(self._low), math.floor(self._high) + 1)
        self._labels = {self._row(10.0**power): self._words(10.0**power) for power in powers}
        self._gutter = max(map(len, self._labels.values()))
        self._width = max(width - self._gutter - 2, LEAST_WIDTH)
        self._cells = [[(" ", Style())] * self._width for _ in range(HEIGHT)]

    def line(self, fit: TimeFit) -> None:
        """The fitted lines, between the sizes that were measured."""
        first, last = fit.rows[0].case.size, fit.rows[-1].case.size
        for column in range(self._column(first), self._column(last) + 1):
            low, high = math.log2(self._sizes[0]), math.log2(self._sizes[-1])
            size = 2 ** (low + column / (self._width - 1) * (high - low))
            size = min(max(size, first), last)
            row = self._row(_rate(fit, size, fit.seconds(size)))
            if 0 <= row < HEIGHT:
                self._cells[row][column] = (LINE, DIM)

    def marks(self, fit: TimeFit, mark: str, style: Style) -> None:
        """The rows, each with the letter of its groups."""
        for row in fit.rows:
            place = self._row(_rate(fit, row.case.size, row.median))
            self._cells[place][self._column(row.case.size)] = (mark, style)

    def lines(self) -> list[Text]:
        found = []
        for number, cells in enumerate(self._cells):
            label = self._labels.get(number, "")
            line = Text(f"{label:>{self._gutter}} {'┤' if label else '│'}")
            for cell in cells:
                line.append(*cell)
            line.rstrip()
            found.append(line)
        marks = self._size_labels()
        columns = {column for column, _, _ in marks}
        axis = "".join("┴" if column in columns else "─" for column in range(self._width))
        words = ""
        for _, start, label in marks:
            words += " " * (start - len(words)) + label
        return [*found, Text(f"{' ' * self._gutter} └{axis}"), Text(f"{' ' * self._gutter}  {words}")]

    def _size_labels(self) -> list[tuple[int, int, str]]:
        """Columns that are marked, with where their labels begin: as many sizes as there is room for."""
        found: list[tuple[int, int, str]] = []
        for size in self._sizes:
            column, label = self._column(size), human_bytes(size)
            start = min(max(column - len(label) // 2, 0), self._width - len(label))
            if not found or start >= found[-1][1] + len(found[-1][2]) + 2:
                found.append((column, start, label))
        return found

    def _words(self, value: float) -> str:
        return rate(value) if self._unit is None else flops(value, True)

    def _column(self, size: float) -> int:
        low, high = math.log2(self._sizes[0]), math.log2(self._sizes[-1])
        return round((math.log2(size) - low) / (high - low) * (self._width - 1)) if high > low else 0

    def _row(self, value: float) -> int:
        return round((self._high - math.log10(value)) / (self._high - self._low) * (HEIGHT - 1))


def _rate(fit: TimeFit, size: float, time: float) -> float:
    """Bytes a second on the bus, or a matmul's FLOP/s, whose operations grow with the third power of its
    side."""
    case = fit.rows[0].case
    if case.op == "matmul":
        return float(case.flops * (size / case.size) ** 1.5 / time)
    return size * case.bus_factor / time
