"""Machines, targets and versions; where a mesh lies on a machine; what was measured there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from shardviz.documents.fields import KINDS, Beside, Document
from shardviz.documents.meshes import job_beside
from shardviz.hardware.matmuls import MATMULS
from shardviz.hardware.nccl import NCCL, ways_over

if TYPE_CHECKING:
    from shardviz.devices.fitting import TimeFit
    from shardviz.devices.job import Job
    from shardviz.devices.question import Measurement, MeasureQuestion
    from shardviz.hardware.machine import Machine, PlacedMesh
    from shardviz.sharding import Mesh


def machine_document(machine: Machine, mesh: Mesh | None, placed: PlacedMesh | None) -> Document:
    """The machine, and where the mesh lies that is `placed` on it."""
    axes = placed and [(axis, placed.published_levels((axis,))) for axis in placed.mesh.axis_names]
    ids = placed and placed.placement and placed.placement.ids
    return KINDS["machine"].document(machine, mesh=mesh, mesh_axes=axes, device_ids=ids)


def measure_document(
    question: MeasureQuestion,
    rows: Sequence[Measurement],
    fits: Sequence[TimeFit],
    placed: PlacedMesh | None,
    is_partial: bool,
    job: Job | None = None,
) -> Document:
    """All that was measured, on the devices of a `job`; `placed` is the mesh on the machine that predicts."""
    return KINDS["measure"].document(
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


SOURCES = {
    "is_ring": lambda axis: axis.kind == "ring",
    "node": lambda machine: next((one for one in machine.family.dimensions if one.kind == "switch"), None),
    "collectives": lambda node: [(op, ways_over(node.nccl, op, node.size)) for op in NCCL.get(node.nccl, ())],
    "matmuls": lambda device: [(dtype, *time) for dtype, time in MATMULS.get(device.matmuls, {}).items()],
    "cores": lambda machine: machine.family.links.get("chip"),
    "available": lambda group: not group.missing,
}
