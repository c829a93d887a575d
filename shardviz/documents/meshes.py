"""Meshes, specs and the layout of an array; a sharding in every notation; jobs of several processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from shardviz.documents.fields import (
    Beside,
    Document,
    DocumentKind,
    JsonField,
    exactly,
    of,
    optional,
    record,
    records,
)
from shardviz.errors import ShardvizError

if TYPE_CHECKING:
    from shardviz.devices.job import Job
    from shardviz.notation import Reading
    from shardviz.sharding import Mesh

SPEC = replace(
    of(
        [[str]],
        "For each dimension the mesh axes that split it, the major one first; empty where it is whole.",
    ),
    write=lambda spec: [list(axes) for axes in spec],
).shared("spec")
"""For each dimension its axes, of a `PartitionSpec` or given as they are."""
MESH = record(
    "A mesh of devices.",
    axis_names=of([str], "The axes, the major one first."),
    axis_sizes=of([int], "Devices along each axis."),
    device_order=of([int], "Device ids by row-major position; null: the ids count the positions."),
).shared("mesh")


def array_fields(role: JsonField) -> dict[str, JsonField]:
    """The fields of an array beside which stands its `mesh`."""
    return {
        "name": of(str, "The array's name, such as A, W or Out."),
        "role": role,
        "dims": of([str], "The name of each dimension; empty where they have none."),
        "shape": of([int], "Elements along each dimension of the whole array."),
        "dtype": of(str, "The element type, such as bf16."),
        "spec": of(SPEC, "Its sharding.", "decided_spec"),
        "unreduced": of(
            [str], "Mesh axes over which its partial sums are not added up yet.", "decided_spec.unreduced"
        ),
        "devices": of(
            [int],
            "The ids of the devices that hold it, where these are not the mesh's in its order: one, or all.",
            "decided_spec.devices",
        ),
        "shard_shape": of(
            [int],
            "Elements along each dimension of one device's shard.",
            lambda array: array.shard_shape(array.mesh),
        ),
        "bytes_per_device": of(
            int, "Bytes of one device's shard.", lambda array: array.bytes_per_device(array.mesh)
        ),
        "replicas": of(int, "Devices that hold the same shard.", lambda array: array.replicas(array.mesh)),
    }


_RANGE = of([int], "Start and stop.")
_RANGE = replace(_RANGE, schema={**_RANGE.schema, "minItems": 2, "maxItems": 2})
LAYOUT = DocumentKind(
    "layout",
    "layout",
    "The slice of an array that every device holds.",
    mesh=of(MESH, "The mesh."),
    array=record(
        "The array.",
        lambda layout: Beside(layout.array, mesh=layout.mesh),
        **array_fields(exactly("array", "The array stands alone.")),
    ),
    devices=records(
        "Every device, in the mesh's order.",
        "A device, and the slice that it holds.",
        iter,
        id=of(int, "The device's id."),
        coords=of([int], "Its place along each mesh axis."),
        slices=of([_RANGE], "For each dimension the elements that it holds: from start to before stop."),
        shard=of(int, "The number of its shard: equal numbers are equal data."),
    ),
)

TRANSLATE = DocumentKind(
    "translate",
    "translate",
    "A sharding in every notation.",
    text=of(str, "The text that was read."),
    notation=of(str, "The notation that it was read in."),
    mesh=of(MESH, "The mesh; null where the text was read without one."),
    arrays=records(
        "The arrays, in the order of the text.",
        "An array of the text.",
        name=of(str, "The array's name; null where it has none."),
        translations=of({str: str}, "Its text in each notation, by the notation's name."),
        untranslatable=of({str: str}, "The reason why it has no text in a notation, by name."),
    ),
)


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
    return TRANSLATE.document(text=text, notation=notation, mesh=mesh, arrays=arrays)


JOB = optional(
    record(
        "The processes that hold the devices.",
        processes=of(int, "Processes."),
        hosts=of([str], "The host of each process."),
        process_of_device=of([int], "The process that holds each device, by device id.", "process_of"),
        groups=records(
            "The groups of devices, by their axes.",
            "The groups along some mesh axes.",
            axes=of([str], "The axes, the major one first."),
            within_process=of(int, "Groups of devices of one process."),
            across_processes=of(int, "Groups that cross processes of one host."),
            across_hosts=records(
                "Groups that cross hosts.",
                "A group that crosses hosts.",
                devices=of([int], "Its device ids.", 0),
                hosts=of([str], "Their hosts, each once.", 1),
            ),
        ),
    ).shared("job"),
    "The job of several processes whose devices ran it; left out: there was one process.",
)


def job_beside(job: Job | None, mesh: Mesh, axes: Sequence[Sequence[str]]) -> Beside | None:
    """The value of a document's `JOB`, with the groups along each of `axes`; None where no job of several
    processes runs the mesh."""
    from shardviz.devices.job import group_span

    if job is None or not job.runs(mesh):
        return None
    groups = []
    for span in (group_span(job, mesh, each) for each in axes):
        ids = ([mesh.device_id(position) for position in group] for group in span.groups)
        groups.append(
            Beside(span, across_hosts=[pair for pair in zip(ids, span.hosts, strict=True) if pair[1]])
        )
    return Beside(job, groups=groups)
