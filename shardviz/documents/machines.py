"""Machines, targets and versions; where a mesh lies on a machine; what was measured there, also as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from shardviz.documents.fields import BANDWIDTH, Beside, Document, DocumentKind, of, one_of, record, records
from shardviz.documents.meshes import JOB, MESH, job_beside

if TYPE_CHECKING:
    from shardviz.devices.fitting import TimeFit
    from shardviz.devices.job import Job
    from shardviz.devices.question import Measurement, MeasureQuestion
    from shardviz.hardware.machine import Machine, PlacedMesh
    from shardviz.sharding import Mesh

_ROW = record(
    "One operation of one size.",
    op=of(str, "JAX's name of a collective, or matmul or copy."),
    axes=of([str], "Mesh axes of its groups; none: each device by itself."),
    group_size=of(int, "Devices of a group."),
    dtype=of(str, "The dtype."),
    bytes=of(
        int,
        "Bytes of the larger of a device's operand and result; of a matmul and a copy the operand's.",
        "size",
    ),
    count=of(
        int, "Elements, as nccl-tests counts them: of a gather, scatter or exchange those of a member's part."
    ),
    clock=of(
        one_of("wall", "device"), "Whose time it is: the device's own, from its profile, or the wall's."
    ),
    seconds=of([of(float, "Seconds.")], "Seconds of one run of the operation, by run."),
    median_seconds=of(float, "Their median.", "median"),
    min_seconds=of(float, "The fastest.", "least"),
    max_seconds=of(float, "The slowest.", "most"),
    noise=of(
        float, "The middle half of the runs, from its fastest to its slowest, over the median; null: one run."
    ),
    algbw_bytes_per_s=of(float, "Bytes over the median time.", "algorithm_bandwidth"),
    busbw_bytes_per_s=of(
        float, "Bytes a second on the bus of a device, by nccl-tests' factors.", "bus_bandwidth"
    ),
    flops_per_s=of(float, "FLOP/s of one device; null: not a matmul.", "flops_per_second"),
    wrong=of(int, "Elements that are not the exact result; null: rounding leaves none exact."),
    bound_seconds=of(float, "The least that the machine's links allow; null: no machine was named."),
    predicted_seconds=of(float, "Seconds that the machine predicts; null: no machine was named."),
    fitted_seconds=of(float, "Seconds by the fitted lines; null: there are too few sizes."),
    note=of(str, "What the compiler made of it that was not asked for; null: nothing."),
)
REGIMES = records(
    "The lines, from small sizes on; several where one does not hold.",
    "A straight line: V bytes take latency_seconds + V / bandwidth_bytes_per_s.",
    from_bytes=of(int, "The least bytes for which it holds.", "start"),
    latency_seconds=of(float, "Seconds.", "latency"),
    latency_error_seconds=of(float, "The standard error of that.", "latency_error"),
    bandwidth_bytes_per_s=of(BANDWIDTH, "Bytes a second; inf where the sizes tell none.", "bandwidth"),
    bandwidth_error_bytes_per_s=of(float, "The standard error of that.", "bandwidth_error"),
)
"""The regimes of what was measured or fitted."""
_FIT = record(
    "The lines of an operation over axes.",
    op=of(str, "JAX's name of a collective, or copy."),
    axes=of([str], "Mesh axes of its groups; none: each device by itself."),
    regimes=REGIMES,
    noise=of(float, "The usual spread of the runs over their median; null: each ran once."),
    slowed=of(int, "Sizes that took longer than a larger one, as other work slowed them down."),
    error=of(float, "The median of how far the lines are from the times, relative to these."),
    held_back_error=of(
        float, "The same of every second size, predicted from the others; null: too few sizes.", "held_back"
    ),
    holds=of(bool, "Sizes that were held back are predicted within 25 % in the median."),
)
_LINK = record(
    "A link.",
    bandwidth_bytes_per_s=of(
        BANDWIDTH, "Bytes a second, one way; inf where that takes no time.", "bandwidth"
    ),
    latency_seconds=of(float, "Seconds of one hop.", "latency"),
)
DEVICE = record(
    "One JAX device; a figure that nobody publishes is null.",
    peak_flops_per_s=of({str: of(float, "FLOP/s.")}, "FLOP/s of matrix products, by dtype.", "peak"),
    hbm_bytes=of(int, "Bytes of HBM; null: not known."),
    usable_hbm_bytes=of(int, "Bytes of HBM that a program may use; null: not known.", "usable_bytes"),
    hbm_bandwidth_bytes_per_s=of(
        BANDWIDTH, "Bytes a second of HBM; inf where that takes no time; null: not known.", "hbm_bandwidth"
    ),
    on_chip_bytes=of(int, "Bytes beside the matrix units; null: not known."),
    clock_hertz=of(float, "The clock in hertz; null: not known.", "clock"),
)
MACHINE = DocumentKind(
    "machine",
    "machine",
    "A machine: the figures of its devices and links, and where a mesh lies on it.",
    name=of(str, "The name of the hardware, or that of its file."),
    chip=of(str, "The chip."),
    source=of(str, "The origin of the figures."),
    devices=of(int, "JAX devices in all."),
    devices_per_chip=of(int, "JAX devices of one chip.", "family.devices_per_chip"),
    slices=of(int, "TPU slices, joined by the network.", "family.slices"),
    device=DEVICE,
    torus=records(
        "The axes of the torus; none for GPUs.",
        "An axis of each slice's torus.",
        "family.torus",
        axis=of(str, "x, y or z.", "name"),
        chips=of(int, "Chips along it.", "size"),
        is_ring=of(bool, "Its last chip is linked to its first.", lambda axis: axis.kind == "ring"),
        link=of(_LINK, "A link between neighbours."),
    ),
    node=record(
        "A node of GPUs; null: the machine has none.",
        lambda machine: next((one for one in machine.family.dimensions if one.kind == "switch"), None),
        devices=of(int, "GPUs of a node.", "size"),
        link=of(_LINK, "A GPU's link to the switch."),
    ),
    cores=of(
        _LINK,
        "Between two devices of a chip; null: a chip is one.",
        lambda machine: machine.family.links.get("chip"),
    ),
    network=of(_LINK, "A device's part of the network between slices or nodes; null: there is none."),
    measured=records(
        "What was measured; it holds for all groups with the same links.",
        "A collective whose times were measured, which stand for the formulas.",
        op=of(str, "JAX's name."),
        mesh=of(str, "The mesh on which it was measured."),
        axes=of([str], "The mesh axes of its groups."),
        dtype=of(str, "The dtype; null: not given."),
        noise=of(float, "The usual spread of the runs over their median; null: not known."),
        regimes=REGIMES,
    ),
    mesh=of(MESH, "The mesh; null: none was given."),
    mesh_axes=records(
        "Where each axis of the mesh lies; null: no mesh was given.",
        "A mesh axis.",
        axis=of(str, "The mesh axis.", 0),
        along=records(
            "The physical dimensions that it lies along, the major first.",
            "A physical dimension.",
            1,
            kind=of(one_of("ring", "line", "switch", "network", "chip"), "The links."),
            name=of(str, "What it is called: x, NVLink, DCN."),
            devices=of(int, "Members of a group along it.", "size"),
            hops=of(int, "Links between neighbours of the group."),
            load=of(int, "Messages that share the busiest of these links when all groups send.", "messages"),
            link=of(_LINK, "A link, or a group's part of one that several share.", "spec"),
        ),
    ),
    device_ids=of([int], "Device ids by row-major mesh position; null: no mesh was given."),
)


def machine_document(machine: Machine, mesh: Mesh | None, placed: PlacedMesh | None) -> Document:
    """The machine, and where the mesh lies that is `placed` on it."""
    axes = placed and [(axis, placed.group_levels((axis,))) for axis in placed.mesh.axis_names]
    ids = placed and placed.placement and placed.placement.ids
    return MACHINE.document(machine, mesh=mesh, mesh_axes=axes, device_ids=ids)


TARGETS = DocumentKind(
    "targets",
    "targets",
    "The targets, and how to install them.",
    groups=records(
        "All groups.",
        "Targets that need the same packages.",
        group=of(str, "The group's name, and that of the extra of this package.", "name"),
        title=of(str, "A description of these targets."),
        available=of(bool, "They can answer here.", lambda group: not group.missing),
        missing=of(str, "The packages that are missing; null: none."),
        install=of(str, "The command that installs them; null: there is none for this machine.", "command"),
        versions=of({str: str}, "Versions of the packages that are here, by package."),
        targets=records(
            "Targets of the group.",
            "A target, or one of many.",
            "choices",
            target=of(str, "A name that --target takes.", "name"),
            description=of(str, "The compiler or hardware of that name.", "what"),
            device=of(
                DEVICE, "One JAX device of the target; null: its hardware is not known.", "machine.device"
            ),
        ),
        takes=of(str, "Other names that the group takes; null: no others."),
    ),
)


INFO = DocumentKind(
    "info",
    "info",
    "Versions of all that an answer can depend on.",
    versions=of({str: str}, "Versions of all that an answer can depend on, by name."),
    warning=of(str, "The reason why these versions do not fit together; null where they do."),
)

MEASURE = DocumentKind(
    "measure",
    "measure",
    "Times of collectives and of local work on devices, and the lines through them.",
    mesh=of(MESH, "The mesh."),
    device=of(str, "JAX's name of the devices; empty: nothing was measured."),
    machine=of(str, "The machine that predicts; null: none was named."),
    is_partial=of(bool, "It was interrupted, or failed on its way."),
    rows=of([_ROW], "What was measured, in the order of the question."),
    fits=of([_FIT], "The lines, of operations with sizes enough."),
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
        machine=placed and placed.machine.name,
        is_partial=is_partial,
        rows=list(_rows(rows, fits, placed)),
        fits=[fit for fit in fits if fit.op != "matmul"],
        job=job_beside(job, question.mesh, question.groups),
    )


def _rows(
    rows: Sequence[Measurement], fits: Sequence[TimeFit], placed: PlacedMesh | None
) -> Iterator[Beside]:
    from shardviz.devices.question import bound_seconds, predicted_seconds

    by_group = {(fit.op, fit.axes): fit for fit in fits if fit.op != "matmul"}
    for row in rows:
        case, fit = row.case, by_group.get(row.case.group)
        yield Beside(
            row,
            case,
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
