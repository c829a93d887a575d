"""Meshes, specs and the layout of an array; a sharding in every notation; jobs of several processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from shardviz.documents.fields import KINDS, Beside, Document, JsonField
from shardviz.errors import ShardvizError

if TYPE_CHECKING:
    from shardviz.devices.job import Job
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
    """The value of a document's `JOB`, with the groups along each of `axes`; None where no job of several
    processes runs the mesh."""
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
    """For each dimension its axes, of a `PartitionSpec` or given as they are."""
    axes = "For each dimension the mesh axes that split it, the major one first; empty where it is whole."
    items = {"type": "array", "items": {"type": "string"}}
    field = JsonField({"type": "array", "items": items}, lambda spec: [list(axes) for axes in spec])
    return field.described(axes).shared("spec")


def _range() -> JsonField:
    items = {"type": "integer", "minimum": 0}
    schema = {"type": "array", "items": items, "minItems": 2, "maxItems": 2}
    return JsonField({"description": "Start and stop.", **schema}, list)


TYPES = {"spec": _spec, "range": _range}
SOURCES = {
    "shard_shape": lambda array: array.shard_shape(array.mesh),
    "bytes_per_device": lambda array: array.bytes_per_device(array.mesh),
    "replicas": lambda array: array.replicas(array.mesh),
    "array": lambda layout: Beside(layout.array, mesh=layout.mesh),
    "devices": iter,
}
