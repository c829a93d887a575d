"""Measurements of devices: rows in the columns of nccl-tests, each printed as soon as it is there; charts of
bandwidth over size; the lines through what was measured, and where they do not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from string import ascii_uppercase

from rich.style import Style
from rich.text import Text

from shardviz.devices.fitting import HOLDS, NOISY, TimeFit
from shardviz.devices.question import Case, Measurement, MeasureQuestion, bound_seconds, predicted_seconds
from shardviz.errors import plural
from shardviz.hardware.machine import PlacedMesh
from shardviz.hardware.measured import Regime
from shardviz.render.caption import axes_text
from shardviz.render.lines import GAP, Cell, records, sentence, sentences, table
from shardviz.render.palette import DIM, Palette
from shardviz.render.sweep_view import LogChart
from shardviz.sharding import Mesh
from shardviz.units import flops, human_bytes, measured_rate, rate, seconds, times

WRONG = "bold red"
LEVELS = 6
"""Of columns that a narrow page does without."""


@dataclass(frozen=True)
class MeasuredColumn:
    """A column: its heading, its width, how a row's cell is written, and how early it is left out where a
    page is narrow (0: never)."""

    heading: str
    width: int
    cell: Callable[[Measurement], str]
    left_out: int = 0


class MeasuredRows:
    """The rows of a question, in columns of fixed widths; with a machine, on which its mesh is `placed`,
    beside what that predicts."""

    def __init__(
        self, question: MeasureQuestion, placed: PlacedMesh | None, width: int, palette: Palette
    ) -> None:
        self._mesh, self._placed = question.mesh, placed
        self._width, self._palette = width, palette

    def heading(self, case: Case) -> list[Text]:
        """The lines above the first row of an operation and its axes."""
        mesh, title = self._mesh, Text(case.op, "bold")
        if case.is_collective:
            groups = plural(mesh.size // case.group_size, "group")
            title.append(" over ").append_text(axes_text(case.axes, mesh, self._palette))
            title.append(f", {groups} of {case.group_size:,}, {case.dtype}", "dim")
        else:
            each = "on each device by itself" if mesh.size > 1 else "on one device"
            title.append(f" {each}, {case.dtype}", "dim")
        return [Text(), title, self._line(case, lambda column: column.heading, "dim")]

    def row(self, row: Measurement) -> list[Text]:
        """The line of a row."""
        return [self._line(row.case, lambda column: column.cell(row), WRONG if row.wrong else "")]

    def _line(self, case: Case, text: Callable[[MeasuredColumn], str], style: str) -> Text:
        """The columns that fit, the least important left out first."""
        columns = self._columns(case)
        for level in range(LEVELS, 0, -1):
            if sum(column.width for column in columns) + GAP * (len(columns) - 1) <= self._width:
                break
            columns = [column for column in columns if column.left_out != level]
        cells = (f"{text(column):>{column.width}}" for column in columns)
        return Text((" " * GAP).join(cells).rstrip(), style)

    def _columns(self, case: Case) -> list[MeasuredColumn]:
        column, placed = MeasuredColumn, self._placed
        count = column("count", 11, lambda row: f"{row.case.count:,}", 6)
        rates = [
            column("algbw", 10, lambda row: measured_rate(row.algorithm_bandwidth), 5),
            column("busbw", 10, lambda row: measured_rate(row.bus_bandwidth)),
        ]
        if case.op == "matmul":
            count = column("matrix", 11, lambda row: times((row.case.side,) * 2), 6)
            rates = [column("FLOP/s", 12, lambda row: flops(row.flops_per_second or 0.0, True))]
        beside = []
        if placed is not None:

            def off(row: Measurement) -> str:
                found = predicted_seconds(row.case, placed)
                return "–" if found is None else f"{found / row.median - 1:+.0%}"

            beside = [
                column("bound", 8, lambda row: _or_none(bound_seconds(row.case, placed)), 3),
                column("predicted", 9, lambda row: _or_none(predicted_seconds(row.case, placed)), 1),
                column("off", 6, off, 2),
            ]
        return [
            column("size", 8, lambda row: human_bytes(row.case.size)),
            count,
            column("time", 8, lambda row: seconds(row.median)),
            column("min", 8, lambda row: seconds(row.least), 4),
            column("max", 8, lambda row: seconds(row.most), 4),
            *rates,
            *beside,
            column("#wrong", 6, lambda row: "N/A" if row.wrong is None else f"{row.wrong:,}"),
        ]


def _or_none(time: float | None) -> str:
    return "–" if time is None else seconds(time)


def rows_words(rows: Sequence[Measurement]) -> Iterator[str]:
    """Sentences on the clock, on what the compiler made of the operations, and on the devices."""
    on = rows[0].device
    if {row.clock for row in rows} == {"device"}:
        yield f"Time by the clock of the devices, {on}, from their profile: the median of a loop's passes."
    else:
        yield f"Wall time on {on}: a pass of a jitted loop, the median of the runs, excluding compilation."
    yield from (f"{note}." for note in dict.fromkeys(row.note for row in rows) if note)


HEADINGS = ("", "over", "from", "latency", "bandwidth", "off", "held back", "noise")
RIGHT = frozenset({2, 3, 4, 5, 6, 7})
TITLE = (
    "time = latency + size / bandwidth, as fitted; held back: every second size, predicted from the others"
)
LOOSE = 0.5
"""A standard error of a bandwidth, as a part of it, that is to be said."""
HEIGHT, MAX_WIDTH, LEAST_WIDTH = 10, 90, 32
LINE = "·"


def fits_view(fits: Sequence[TimeFit], mesh: Mesh, width: int, palette: Palette) -> list[Text]:
    """A chart for each operation with several sizes, a table of all lines, and what is to be doubted."""
    lines: list[Text] = []
    for _, group in groupby(fits, key=lambda fit: fit.op):
        shown = [fit for fit in group if len(fit.rows) > 1]
        if shown:
            lines += [Text(), *bandwidth_chart(shown, mesh, width, palette)]
    of_lines = [fit for fit in fits if fit.op != "matmul"]
    if of_lines:
        lines += [Text(), *sentence(TITLE, width), *_fits_table(of_lines, mesh, width, palette)]
    return [*lines, *sentences(doubts(of_lines), width)]


def bandwidth_chart(fits: Sequence[TimeFit], mesh: Mesh, width: int, palette: Palette) -> list[Text]:
    """Bandwidth over size of one operation: a letter for the groups along some axes, dots for the fitted
    lines. A matmul has FLOP/s in place of bytes, and no line: its time is none over its bytes."""
    marks = ascii_uppercase[: len(fits)]
    styles = [palette.axis(mesh, fit.axes[0]) if len(fit.axes) == 1 else Style(bold=True) for fit in fits]
    legend = [
        Text.assemble((mark, style), " ", axes_text(fit.axes, mesh, palette) if fit.axes else fit.op)
        for mark, style, fit in zip(marks, styles, fits, strict=True)
    ]
    is_matmul = fits[0].op == "matmul"
    points = [(fit, row.case.size, _rate(fit, row.case.size, row.median)) for fit in fits for row in fit.rows]
    chart = LogChart(
        [value for _, _, value in points],
        sorted({size for _, size, _ in points}),
        min(max(width, LEAST_WIDTH), MAX_WIDTH),
        HEIGHT,
        lambda value: flops(value, True) if is_matmul else rate(value),
        human_bytes,
    )
    if not is_matmul:
        legend.append(Text(f"{LINE} the fitted lines", "dim"))
    for fit in fits if not is_matmul else ():
        first, last = fit.rows[0].case.size, fit.rows[-1].case.size
        for column in range(chart.column(first), chart.column(last) + 1):
            size = min(max(chart.size_at(column), first), last)
            row = chart.row(_rate(fit, size, fit.seconds(size)))
            if 0 <= row < HEIGHT:
                chart.cells[row][column] = (LINE, DIM)
    signs = {id(fit): sign for fit, sign in zip(fits, zip(marks, styles, strict=True), strict=True)}
    for fit, size, value in points:
        chart.cells[chart.row(value)][chart.column(size)] = signs[id(fit)]
    what = "FLOP/s" if is_matmul else "bus bandwidth"
    title = Text.assemble((fits[0].op, "bold"), (f", {what} over size", "dim"))
    return [title, *chart.lines(), *records([legend], width, 2)]


def _rate(fit: TimeFit, size: float, time: float) -> float:
    """Bytes a second on the bus, or a matmul's FLOP/s, whose operations grow with the third power of its
    side."""
    case = fit.rows[0].case
    if case.op == "matmul":
        return float(case.flops * (size / case.size) ** 1.5 / time)
    return size * case.bus_factor / time


def _fits_table(fits: Sequence[TimeFit], mesh: Mesh, width: int, palette: Palette) -> list[Text]:
    rows: list[Sequence[Cell]] = [[(heading, "dim") for heading in HEADINGS]]
    for fit in fits:
        named = (fit.op, "bold"), axes_text(fit.axes, mesh, palette)
        told = (f"{fit.error:.0%}", _percent(fit.held_back), _percent(fit.noise))
        first, *others = map(regime_cells, fit.regimes)
        rows += [[*named, *first, *told], *(["", "", *cells] for cells in others)]
    return table(rows, width, right=RIGHT)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def regime_cells(regime: Regime) -> tuple[str, str, str]:
    """Where a regime begins, its latency and its bandwidth, with their errors."""
    latency = seconds(regime.latency)
    if regime.latency_error:
        latency += f" ± {seconds(float(f'{regime.latency_error:.2g}'))}"
    bandwidth = "–" if regime.bandwidth == float("inf") else measured_rate(regime.bandwidth)
    if regime.bandwidth_error:
        bandwidth += f" ± {regime.bandwidth_error / regime.bandwidth:.0%}"
    return human_bytes(regime.start), latency, bandwidth


def doubts(fits: Sequence[TimeFit]) -> Iterator[str]:
    """Sentences on fits that do not hold, have several regimes, are noisy, or tell no bandwidth."""
    if several := [fit for fit in fits if len(fit.regimes) > 1]:
        yield (
            f"One line does not hold for {_names(several)}: a cache is full, or another algorithm begins; "
            "each regime has a line."
        )
    if noisy := [fit for fit in fits if (fit.noise or 0.0) > NOISY]:
        yield (
            f"Noise over {NOISY:.0%} for {_names(noisy)}: other work runs on these devices; measure again, "
            "or with more --runs."
        )
    if slowed := [fit for fit in fits if fit.slowed]:
        sizes = plural(sum(fit.slowed for fit in slowed), "size")
        yield (
            f"{sizes} took longer than a larger one, slowed down by other work, which the lines leave "
            f"out: {_names(slowed)}."
        )
    wrong = [fit for fit in fits if not fit.holds]
    if forbidden := [fit for fit in wrong if fit.is_noisy]:
        yield f"Too noisy to predict within {HOLDS:.0%}: {_names(forbidden)}."
    if others := [fit for fit in wrong if not fit.is_noisy]:
        yield f"No line fits within {HOLDS:.0%} for {_names(others)}."
    if loose := [fit for fit in fits if fit.bandwidth_spread > LOOSE]:
        yield (
            f"A bandwidth is uncertain by more than {LOOSE:.0%} for {_names(loose)}: measure larger sizes, "
            "or with more --runs."
        )
    if blind := [fit for fit in fits if fit.regimes[-1].bandwidth == float("inf")]:
        yield (
            f"These sizes tell no bandwidth for {_names(blind)}: measure larger ones. A machine's file has "
            "formulas for them."
        )


def too_few_sizes(cases: Sequence[Case]) -> str:
    """A sentence on collectives of which one size was measured; "" where there are none."""
    if not cases:
        return ""
    return (
        f"One size tells no latency and no bandwidth of {_names(cases)}: measure two sizes or more, as with "
        "--sizes 4KiB:1MiB."
    )


def _names(those: Sequence[TimeFit | Case]) -> str:
    names = []
    for op, group in groupby(those, key=lambda each: each.op):
        over = "; ".join(", ".join(each.axes) for each in group if each.axes)
        names.append(f"{op} ({over})" if over else op)
    return ", ".join(names)
