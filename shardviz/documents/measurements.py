"""Measurements as JSON and as CSV: every row with its prediction, and the lines through them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from shardviz.documents.fields import (
    Beside,
    Document,
    DocumentKind,
    array_of,
    bandwidth,
    closed,
    count,
    flag,
    null_if_empty,
    nullable,
    number,
    one_of,
    text,
    texts,
)
from shardviz.documents.jobs import JOB, job_beside
from shardviz.documents.plans import MESH

if TYPE_CHECKING:
    from shardviz.devices.fitting import TimeFit
    from shardviz.devices.job import Job
    from shardviz.devices.measurement import Measurement
    from shardviz.devices.question import MeasureQuestion
    from shardviz.hardware.machine import PlacedMesh

_ROW = closed(
    "One operation of one size.",
    op=text("JAX's name of a collective, or matmul or copy."),
    axes=texts("Mesh axes of its groups; none: each device by itself."),
    group_size=count("Devices of a group."),
    dtype=text("The dtype."),
    bytes=count(
        "Bytes of the larger of a device's operand and result; of a matmul and a copy the operand's."
    ).of("size"),
    count=count(
        "Elements, as nccl-tests counts them: of a gather, scatter or exchange those of a member's part."
    ),
    clock=one_of("Whose time it is: the device's own, from its profile, or the wall's.", "wall", "device"),
    seconds=array_of(number("Seconds."), "Seconds of one run of the operation, by run."),
    median_seconds=number("Their median.").of("median"),
    min_seconds=number("The fastest.").of("least"),
    max_seconds=number("The slowest.").of("most"),
    noise=nullable(
        number(
            "The middle half of the runs, from its fastest to its slowest, over the median; null: one run."
        )
    ),
    algbw_bytes_per_s=number("Bytes over the median time.").of("algorithm_bandwidth"),
    busbw_bytes_per_s=number("Bytes a second on the bus of a device, by nccl-tests' factors.").of(
        "bus_bandwidth"
    ),
    flops_per_s=nullable(number("FLOP/s of one device; null: not a matmul.")).of("flops_per_second"),
    wrong=nullable(count("Elements that are not the exact result; null: rounding leaves none exact.")),
    bound_seconds=nullable(number("The least that the machine's links allow; null: no machine was named.")),
    predicted_seconds=nullable(number("Seconds that the machine predicts; null: no machine was named.")),
    fitted_seconds=nullable(number("Seconds by the fitted lines; null: there are too few sizes.")),
    note=null_if_empty(text("What the compiler made of it that was not asked for; null: nothing.")),
)

REGIMES = array_of(
    closed(
        "A straight line: V bytes take latency_seconds + V / bandwidth_bytes_per_s.",
        from_bytes=count("The least bytes for which it holds.").of("start"),
        latency_seconds=number("Seconds.").of("latency"),
        latency_error_seconds=number("The standard error of that.").of("latency_error"),
        bandwidth_bytes_per_s=bandwidth("Bytes a second; inf where the sizes tell none.").of("bandwidth"),
        bandwidth_error_bytes_per_s=number("The standard error of that.").of("bandwidth_error"),
    ),
    "The lines, from small sizes on; several where one does not hold.",
)
"""The regimes of what was measured or fitted."""

_FIT = closed(
    "The lines of an operation over axes.",
    op=text("JAX's name of a collective, or copy."),
    axes=texts("Mesh axes of its groups; none: each device by itself."),
    regimes=REGIMES,
    noise=nullable(number("The usual spread of the runs over their median; null: each ran once.")),
    slowed=count("Sizes that took longer than a larger one, as other work slowed them down."),
    error=number("The median of how far the lines are from the times, relative to these."),
    held_back_error=nullable(
        number("The same of every second size, predicted from the others; null: too few sizes.")
    ).of("held_back"),
    holds=flag("Sizes that were held back are predicted within 25 % in the median."),
)

MEASURE = DocumentKind(
    "measure",
    "measure",
    "Times of collectives and of local work on devices, and the lines through them.",
    mesh=MESH("The mesh."),
    device=text("JAX's name of the devices; empty: nothing was measured."),
    machine=null_if_empty(text("The machine that predicts; null: none was named.")),
    is_partial=flag("It was interrupted, or failed on its way."),
    rows=array_of(_ROW, "What was measured, in the order of the question."),
    fits=array_of(_FIT, "The lines, of operations with sizes enough."),
    job=JOB,
)


def measure_document(
    question: MeasureQuestion,
    rows: Sequence[Measurement],
    fits: Sequence[TimeFit],
    placed: PlacedMesh | None,
    is_partial: bool,
    job: Job | None = None,
) -> Document:
    """All that was measured, on the devices of a `job`; `placed` is the mesh on the machine that predicts."""
    return MEASURE.document(
        question,
        device=rows[0].device if rows else "",
        machine="" if placed is None else placed.machine.name,
        is_partial=is_partial,
        rows=list(_rows(rows, fits, placed)),
        fits=[fit for fit in fits if fit.op != "matmul"],
        job=job_beside(job, question.mesh, question.groups),
    )


def _rows(
    rows: Sequence[Measurement], fits: Sequence[TimeFit], placed: PlacedMesh | None
) -> Iterator[Beside]:
    from shardviz.devices.prediction import bound_seconds, predicted_seconds

    by_group = {(fit.op, fit.axes): fit for fit in fits if fit.op != "matmul"}
    for row in rows:
        case, fit = row.case, by_group.get(row.case.group)
        yield Beside(
            row,
            **{name: getattr(case, name) for name in ("op", "axes", "group_size", "dtype", "size", "count")},
            bound_seconds=None if placed is None else bound_seconds(case, placed),
            predicted_seconds=None if placed is None else predicted_seconds(case, placed),
            fitted_seconds=None if fit is None else fit.seconds(case.size),
        )


COLUMNS = (
    *("op", "axes", "group_size", "dtype", "bytes", "count", "clock", "median_seconds", "min_seconds"),
    *("max_seconds", "noise", "algbw_bytes_per_s", "busbw_bytes_per_s", "flops_per_s", "wrong"),
    *("bound_seconds", "predicted_seconds"),
)
"""The columns of CSV: fields of a row; those of the lines are known only at the end."""


def csv_line(row: Measurement | None, placed: PlacedMesh | None = None) -> str:
    """A row as a line of CSV with its end; without one the names of the columns."""
    values: Sequence[Any] = COLUMNS
    if row is not None:
        (beside,) = _rows([row], (), placed)
        document = _ROW.write(beside) | {"axes": " ".join(row.case.axes)}
        values = ["" if document[name] is None else document[name] for name in COLUMNS]
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(values)
    return line.getvalue()
