"""Meshes, specs and the layout of an array, a sharding in every notation, jobs of several processes;
machines, targets and versions, where a mesh lies on a machine, and what was measured there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from shardviz.documents.fields import KINDS, Beside, Document, JsonField
from shardviz.errors import ShardvizError
from shardviz.lazy_names import LazyImports

with LazyImports():
    from shardviz.hardware import gpu_times

if TYPE_CHECKING:
    from shardviz.devices.fitting import TimeFit
    from shardviz.devices.job import Job
    from shardviz.devices.question import Measurement, MeasureQuestion
    from shardviz.hardware.machine import Machine, PlacedMesh
    from shardviz.notation.reading import Reading
    from shardviz.sharding import Mesh


def translate_document(
    text: str,
    notation: str,
    readings: Sequence[Reading],
    written: Sequence[Mapping[str, str | ShardvizError]],
    mesh: Mesh | None,
) -> Document:
    """The text as it was read, and by notation each array's text, or why there is none."""
    arrays = [
        Beside(
            name=reading.name,
            translations={key: said for key, said in texts.items() if isinstance(said, str)},
            untranslatable={key: said.message for key, said in texts.items() if not isinstance(said, str)},
        )
        for reading, texts in zip(readings, written, strict=True)
    ]
    return KINDS["translate"].document(text=text, notation=notation, mesh=mesh, arrays=arrays)


def job_beside(job: Job | None, mesh: Mesh, axes: Sequence[Sequence[str]]) -> Beside | None:
    """The value of a document's `JOB`, with the groups along each of `axes`; None where no job runs it."""
    from shardviz.devices.job import group_span

    if job is None or not job.runs(mesh):
        return None
    groups = []
    for span in (group_span(job, mesh, axis) for axis in axes):
        ids = ([mesh.device_id(position) for position in group] for group in span.groups)
        groups.append(
            Beside(span, across_hosts=[pair for pair in zip(ids, span.hosts, strict=True) if pair[1]])
        )
    return Beside(job, groups=groups)


def _spec() -> JsonField:
    axes = "For each dimension the mesh axes that split it, the major one first; empty where it is whole."
    items = {"type": "array", "items": {"type": "string"}}
    field = JsonField({"type": "array", "items": items}, lambda spec: [list(axes) for axes in spec])
    return field.described(axes).shared("spec")


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
    fits = [fit for fit in fits if fit.op != "matmul"]
    return KINDS["measure"].document(
        question,
        device=rows[0].device if rows else "",
        machine=placed and placed.machine.name,
        is_partial=is_partial,
        rows=_rows(rows, fits, placed),
        fits=fits,
        job=job_beside(job, question.mesh, question.groups),
    )


def _rows(
    rows: Sequence[Measurement], fits: Sequence[TimeFit], placed: PlacedMesh | None
) -> Iterator[Beside]:
    from shardviz.devices.question import bound_seconds, predicted_seconds

    by_group = {(fit.op, fit.axes): fit for fit in fits}
    for row in rows:
        case, fit = row.case, by_group.get(row.case.group)
        yield Beside(
            row,
            case,
            bound_seconds=None if placed is None else bound_seconds(case, placed),
            predicted_seconds=None if placed is None else predicted_seconds(case, placed),
            fitted_seconds=None if fit is None else fit.seconds(case.size),
        )


_RANGE = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 2, "maxItems": 2}
TYPES = {"spec": _spec, "range": lambda: JsonField({"description": "Start and stop.", **_RANGE}, list)}
SOURCES = {
    "shard_shape": lambda array: array.shard_shape(array.mesh),
    "bytes_per_device": lambda array: array.bytes_per_device(array.mesh),
    "replicas": lambda array: array.replicas(array.mesh),
    "array": lambda layout: Beside(layout.array, mesh=layout.mesh),
    "devices": iter,
    "is_ring": lambda axis: axis.kind == "ring",
    "node": lambda machine: next((one for one in machine.family.dimensions if one.kind == "switch"), None),
    "collectives": lambda node: [
        (op, gpu_times.ways_over(node.nccl, op, node.size)) for op in gpu_times.NCCL.get(node.nccl, ())
    ],
    "matmuls": lambda device: [
        (dtype, *time) for dtype, time in gpu_times.MATMULS.get(device.matmuls, {}).items()
    ],
    "cores": lambda machine: machine.family.links.get("chip"),
    "available": lambda group: not group.missing,
}
