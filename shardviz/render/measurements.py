"""Devices at hand: the processes of a job that hold them; measurements in the columns of nccl-tests, each row
printed as soon as it is there; charts of bandwidth over size; the lines through what was measured, and where
they do not hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from string import ascii_uppercase

from rich.style import Style
from rich.text import Text

from shardviz.devices.fitting import HOLDS, NOISY, TimeFit
from shardviz.devices.job import GroupSpan, Job, group_span
from shardviz.devices.question import Case, Measurement, MeasureQuestion, bound_seconds, predicted_seconds
from shardviz.errors import plural
from shardviz.hardware.machine import PlacedMesh
from shardviz.hardware.measured import Regime
from shardviz.render.caption import axes_text, coordinates
from shardviz.render.lines import GAP, sentence, sentences
from shardviz.render.palette import DIM, SIGNS, Palette
from shardviz.render.sweep_view import LogChart
from shardviz.render.tables import Cell, columns, records, table
from shardviz.sharding import Mesh
from shardviz.units import flops, human_bytes, measured_rate, rate, seconds, times

WIDTHS = {
    "size": 8,
    "count": 11,
    "matrix": 11,
    "time": 8,
    "min": 8,
    "max": 8,
    "algbw": 10,
    "busbw": 10,
    "FLOP/s": 12,
    "bound": 8,
    "predicted": 9,
    "off": 6,
    "#wrong": 6,
}
GIVING_WAY = (("count", "matrix"), ("algbw",), ("min", "max"), ("bound",), ("off",), ("predicted",))
"""Columns that narrower pages are without, the first ones first."""
MAX_PROCESSES, MAX_GROUPS, MAX_NAMED = 8, 4, 8


class MeasuredRows:
    """The rows of a question, in columns of fixed widths; predicted, too, where its mesh is `placed`."""

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
            where = "on each device by itself" if mesh.size > 1 else "on one device"
            title.append(f" {where}, {case.dtype}", "dim")
        return [Text(), title, self._line(case, {name: name for name in WIDTHS}, "dim")]

    def row(self, row: Measurement) -> list[Text]:
        case, placed = row.case, self._placed
        cells = {
            "size": human_bytes(case.size),
            "time": seconds(row.median),
            "min": seconds(row.least),
            "max": seconds(row.most),
            "#wrong": "N/A" if row.wrong is None else f"{row.wrong:,}",
        }
        if case.op == "matmul":
            cells |= {"matrix": times((case.side,) * 2), "FLOP/s": flops(row.flops_per_second or 0.0, True)}
        else:
            cells |= {
                "count": f"{case.count:,}",
                "algbw": measured_rate(row.algorithm_bandwidth),
                "busbw": measured_rate(row.bus_bandwidth),
            }
        if placed is not None:
            predicted = predicted_seconds(case, placed)
            bound = bound_seconds(case, placed)
            cells |= {
                "bound": "–" if bound is None else seconds(bound),
                "predicted": "–" if predicted is None else seconds(predicted),
                "off": "–" if predicted is None else f"{predicted / row.median - 1:+.0%}",
            }
        return [self._line(case, cells, "bold red" if row.wrong else "")]

    def _line(self, case: Case, cells: Mapping[str, str], style: str) -> Text:
        other = {"count", "algbw", "busbw"} if case.op == "matmul" else {"matrix", "FLOP/s"}
        if self._placed is None:
            other |= {"bound", "predicted", "off"}
        names = [name for name in WIDTHS if name not in other]
        for least in GIVING_WAY:
            if sum(WIDTHS[name] for name in names) + GAP * (len(names) - 1) <= self._width:
                break
            names = [name for name in names if name not in least]
        return Text((" " * GAP).join(f"{cells[name]:>{WIDTHS[name]}}" for name in names).rstrip(), style)


def rows_words(rows: Sequence[Measurement]) -> Iterator[str]:
    """Sentences on the clock, on what the compiler made of the operations, and on the devices."""
    on = rows[0].device
    if {row.clock for row in rows} == {"device"}:
        yield f"Device time on {on}, from a profile: the median over a loop's iterations."
    else:
        yield f"Wall time on {on}: one iteration of a jitted loop, median over runs, excluding compilation."
    yield from (f"{note}." for note in dict.fromkeys(row.note for row in rows) if note)


HEADINGS = ("", "over", ">from", ">latency", ">bandwidth", ">off", ">held back", ">noise")
TITLE = "fitted: time = latency + size / bandwidth; held back: every second size, predicted from the others"
LOOSE = 0.5
"""A standard error of a bandwidth, as a part of it, that is to be said."""
HEIGHT, MAX_WIDTH, LEAST_WIDTH = 10, 90, 32


def fits_view(fits: Sequence[TimeFit], mesh: Mesh, width: int, palette: Palette) -> list[Text]:
    """A chart for each operation with several sizes, a table of all lines, and what is to be doubted."""
    lines: list[Text] = []
    for _, group in groupby(fits, key=lambda fit: fit.op):
        shown = [fit for fit in group if len(fit.rows) > 1]
        if shown:
            lines += [Text(), *bandwidth_chart(shown, mesh, width, palette)]
    of_lines = [fit for fit in fits if fit.op != "matmul"]
    if of_lines:
        rows: list[Sequence[Cell]] = []
        for fit in of_lines:
            named = (fit.op, "bold"), axes_text(fit.axes, mesh, palette)
            told = (f"{fit.error:.0%}", percent(fit.held_back), percent(fit.noise))
            first, *others = map(regime_cells, fit.regimes)
            rows += [[*named, *first, *told], *(["", "", *cells] for cells in others)]
        lines += [Text(), *sentence(TITLE, width), *table(rows, width, 0, HEADINGS, style="dim")]
    return [*lines, *sentences(doubts(of_lines), width)]


def bandwidth_chart(fits: Sequence[TimeFit], mesh: Mesh, width: int, palette: Palette) -> list[Text]:
    """Bandwidth over size of one operation: a letter for the groups along some axes, dots for the fitted
    lines. A matmul has FLOP/s, and no line: its time is none over its bytes."""
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
        legend.append(Text("· the fitted lines", "dim"))
    for fit in fits if not is_matmul else ():
        first, last = fit.rows[0].case.size, fit.rows[-1].case.size
        for column in range(chart.column(first), chart.column(last) + 1):
            size = min(max(chart.size_at(column), first), last)
            row = chart.row(_rate(fit, size, fit.seconds(size)))
            if 0 <= row < HEIGHT:
                chart.cells[row][column] = ("·", DIM)
    signs = {id(fit): sign for fit, sign in zip(fits, zip(marks, styles, strict=True), strict=True)}
    for fit, size, value in points:
        chart.cells[chart.row(value)][chart.column(size)] = signs[id(fit)]
    what = "FLOP/s" if is_matmul else "bus bandwidth"
    title = Text.assemble((fits[0].op, "bold"), (f", {what} over size", "dim"))
    return [title, *chart.lines(), *records([legend], width, 2)]


def _rate(fit: TimeFit, size: float, time: float) -> float:
    """Bus bytes a second, or FLOP/s of a matmul, whose work grows with the third power of its side."""
    case = fit.rows[0].case
    if case.op == "matmul":
        return float(case.flops * (size / case.size) ** 1.5 / time)
    return size * case.bus_factor / time


def percent(share: float | None) -> str:
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
            f"One line does not fit {_names(several)}, because of a cache size or a change of algorithm; "
            "each regime has its own."
        )
    if noisy := [fit for fit in fits if (fit.noise or 0.0) > NOISY]:
        yield (
            f"Noise over {NOISY:.0%} for {_names(noisy)}: other work runs on these devices; measure again, "
            "or use more --runs."
        )
    if slowed := [fit for fit in fits if fit.slowed]:
        sizes = plural(sum(fit.slowed for fit in slowed), "size")
        yield (
            f"{sizes} took longer than a larger one, slowed by other work; the fits exclude them: "
            f"{_names(slowed)}."
        )
    wrong = [fit for fit in fits if not fit.holds]
    if forbidden := [fit for fit in wrong if fit.is_noisy]:
        yield f"Too noisy to predict within {HOLDS:.0%}: {_names(forbidden)}."
    if others := [fit for fit in wrong if not fit.is_noisy]:
        yield f"No line fits within {HOLDS:.0%} for {_names(others)}."
    ratios = ((fit, [each.bandwidth_error / each.bandwidth for each in fit.regimes]) for fit in fits)
    if loose := [fit for fit, spreads in ratios if max(spreads) > LOOSE]:
        yield (
            f"The bandwidth is uncertain by more than {LOOSE:.0%} for {_names(loose)}: measure larger sizes, "
            "or use more --runs."
        )
    if blind := [fit for fit in fits if fit.regimes[-1].bandwidth == float("inf")]:
        yield (
            f"These sizes show no bandwidth for {_names(blind)}: measure larger ones. A machine file uses "
            "formulas for them."
        )


def too_few_sizes(cases: Sequence[Case]) -> str:
    """A sentence on collectives of which one size was measured; "" where there are none."""
    if not cases:
        return ""
    words = f"One size shows neither latency nor bandwidth of {_names(cases)}: measure two or more, such as"
    return f"{words} --sizes 4KiB:1MiB."


def _names(those: Sequence[TimeFit | Case]) -> str:
    names = []
    for op, group in groupby(those, key=lambda measured: measured.op):
        over = "; ".join(", ".join(measured.axes) for measured in group if measured.axes)
        names.append(f"{op} ({over})" if over else op)
    return ", ".join(names)


def job_lines(
    job: Job, mesh: Mesh, axes: Sequence[Sequence[str]], width: int, palette: Palette
) -> list[Text]:
    """The mesh as a grid, each device with its holder, or else the processes one by one; then a line for each
    of `axes`. Nothing for a process that is alone, or a mesh that the job refuses."""
    if not job.runs(mesh):
        return []
    where = plural(len({*job.hosts}), "host") if len({*job.hosts}) > 1 else job.hosts[0]
    said = f"{job.processes:,} processes on {where}, {plural(mesh.size, 'device')}"
    lines = sentence(said, width, lead="job  ")
    # The mesh with its last axis to the right, unless it is too large.
    across, grid = mesh.axis_sizes[-1], None
    if mesh.size // across <= 16 and across <= 16:
        cells = [[Text()]]
        cells[0] += [coordinates(mesh, position, palette, mesh.axis_names[-1:]) for position in range(across)]
        for position in range(mesh.size):
            if not position % across:
                cells.append([coordinates(mesh, position, palette, mesh.axis_names[:-1])])
            process = job.holder(mesh, position)
            held = f" {f'{job.hosts[process]} ' if len({*job.hosts}) > 1 else ''}p{process}"
            cells[-1].append(Text.assemble((f"{mesh.device_id(position)}", "bold"), (held, "dim")))
        grid = columns(cells, width, 1)
    lines += grid or []
    if not grid:
        holders: list[list[Cell]] = []
        for process in range(min(job.processes, MAX_PROCESSES)):
            devices = job.devices_of(process)
            held = f"{devices[0]:,}–{devices[-1]:,}" if len(devices) > 1 else ", ".join(map(str, devices))
            holders.append([(f"p{process}", "bold"), job.hosts[process], f"devices {held}"])
        lines += table(holders, width, 1)
        if (more := job.processes - MAX_PROCESSES) > 0:
            lines += sentence(plural(more, "more process", "more processes"), width, 1)
    rows = [_span_cells(group_span(job, mesh, axis), mesh, palette) for axis in axes]
    return [*lines, *table(rows, width, 1), Text()]


def _span_cells(span: GroupSpan, mesh: Mesh, palette: Palette) -> list[Text]:
    """``over X  ≠ 2 of 4 groups cross hosts: {0, 4} node-a, node-b; …``."""
    count = len(span.groups)

    def crossing_words(some: int) -> str:
        groups = plural(count, "group") if some == count else f"{some:,} of {plural(count, 'group')}"
        return f"{groups} {'crosses' if some == 1 else 'cross'}"

    if span.across_hosts:
        crossing = [
            f"{{{', '.join(str(mesh.device_id(position)) for position in group)}}} {', '.join(hosts)}"
            for group, hosts in zip(span.groups, span.hosts, strict=True)
            if hosts and len(group) <= MAX_NAMED
        ]
        listed = "; ".join([*crossing[:MAX_GROUPS], *["…"] * (len(crossing) > MAX_GROUPS)])
        said = f"≠ {crossing_words(span.across_hosts)} hosts{': ' if listed else ''}{listed}"
    elif span.across_processes:
        said = f"{crossing_words(span.across_processes)} processes of one host"
    else:
        said = f"{plural(count, 'group')}{', each' if count > 1 else ''} within one process"
    cell = Text(said)
    if span.across_hosts:
        cell.stylize(SIGNS["≠"], 0, 1)
    return [Text.assemble("over ", axes_text(span.axes, mesh, palette)), cell]
