"""Rows of measurements, each printed as soon as it is there, so that the columns have fixed widths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from shardviz.devices.measurement import Measurement, bound_seconds, predicted_seconds
from shardviz.devices.question import Case, MeasureQuestion
from shardviz.errors import plural
from shardviz.hardware.machine import PlacedMesh
from shardviz.render.caption import axes_text
from shardviz.render.lines import GAP
from shardviz.render.palette import Palette
from shardviz.units import flops, human_bytes, measured_rate, seconds, times

WRONG = "bold red"


@dataclass(frozen=True)
class _Column:
    """A column: its heading, its width, how a row's cell is written, and how early it is left out where a
    page is narrow (0: never)."""

    heading: str
    width: int
    cell: Callable[[Measurement], str]
    left_out: int = 0


class MeasuredRows:
    """The rows of a question; with a machine, on which its mesh is `placed`, beside what that predicts."""

    def __init__(
        self, question: MeasureQuestion, placed: PlacedMesh | None, width: int, palette: Palette
    ) -> None:
        self._question, self._placed = question, placed
        self._width, self._palette = width, palette

    def heading(self, case: Case) -> list[Text]:
        """The lines above the first row of an operation and its axes."""
        return [
            Text(),
            self._title(case),
            self._line(self._columns(case), lambda column: column.heading, "dim"),
        ]

    def row(self, row: Measurement) -> list[Text]:
        """The line of a row."""
        wrong = WRONG if row.wrong else ""
        return [self._line(self._columns(row.case), lambda column: column.cell(row), wrong)]

    def _title(self, case: Case) -> Text:
        mesh = self._question.mesh
        title = Text(case.op, "bold")
        if case.is_collective:
            groups = plural(mesh.size // case.group_size, "group")
            title.append(" over ").append_text(axes_text(case.axes, mesh, self._palette))
            return title.append(f", {groups} of {case.group_size:,}, {case.dtype}", "dim")
        each = "on each device by itself" if mesh.size > 1 else "on one device"
        return title.append(f" {each}, {case.dtype}", "dim")

    def _line(self, columns: list[_Column], text: Callable[[_Column], str], style: str) -> Text:
        cells = (f"{text(column):>{column.width}}" for column in columns)
        return Text((" " * GAP).join(cells).rstrip(), style)

    def _columns(self, case: Case) -> list[_Column]:
        """Those that fit, the least important left out first."""
        columns = self._all(case)
        for level in range(6, 0, -1):
            if sum(column.width for column in columns) + GAP * (len(columns) - 1) <= self._width:
                break
            columns = [column for column in columns if column.left_out != level]
        return columns

    def _all(self, case: Case) -> list[_Column]:
        columns = [
            _Column("size", 8, lambda row: human_bytes(row.case.size)),
            _Column("count", 11, lambda row: f"{row.case.count:,}", 6),
        ]
        if case.op == "matmul":
            columns[1] = _Column("matrix", 11, lambda row: times((row.case.side,) * 2), 6)
        columns += [
            _Column("time", 8, lambda row: seconds(row.median)),
            _Column("min", 8, lambda row: seconds(row.least), 4),
            _Column("max", 8, lambda row: seconds(row.most), 4),
        ]
        if case.op == "matmul":
            columns.append(_Column("FLOP/s", 12, lambda row: flops(row.flops_per_second or 0.0, True)))
        else:
            columns.append(_Column("algbw", 10, lambda row: measured_rate(row.algorithm_bandwidth), 5))
            columns.append(_Column("busbw", 10, lambda row: measured_rate(row.bus_bandwidth)))
        if self._placed is not None:
            columns += self._beside(self._placed)
        return [*columns, _Column("#wrong", 6, lambda row: "N/A" if row.wrong is None else f"{row.wrong:,}")]

    def _beside(self, placed: PlacedMesh) -> list[_Column]:
        def bound(row: Measurement) -> str:
            return _or_none(bound_seconds(row.case, placed))

        def predicted(row: Measurement) -> str:
            return _or_none(predicted_seconds(row.case, placed))

        def off(row: Measurement) -> str:
            found = predicted_seconds(row.case, placed)
            return "–" if found is None else f"{found / row.median - 1:+.0%}"

        return [
            _Column("bound", 8, bound, 3),
            _Column("predicted", 9, predicted, 1),
            _Column("off", 6, off, 2),
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
