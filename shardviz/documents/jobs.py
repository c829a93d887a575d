"""A job of several processes as JSON: the process and the host of each device, and the groups that cross
hosts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shardviz.documents.fields import Beside, array_of, closed, count, counts, optional, shared, texts

if TYPE_CHECKING:
    from shardviz.devices.job import GroupSpan, Job
    from shardviz.sharding import Mesh

_CROSSING = closed(
    "A group that crosses hosts.",
    devices=counts("Its device ids.").of(lambda pair: pair[0]),
    hosts=texts("Their hosts, each once.").of(lambda pair: pair[1]),
)
_GROUPS = closed(
    "The groups along some mesh axes.",
    axes=texts("The axes, the major one first."),
    within_process=count("Groups of devices of one process."),
    across_processes=count("Groups that cross processes of one host."),
    across_hosts=array_of(_CROSSING, "Groups that cross hosts."),
)
JOB = optional(
    shared(
        "job",
        closed(
            "The processes that hold the devices.",
            processes=count("Processes."),
            hosts=texts("The host of each process."),
            process_of_device=counts("The process that holds each device, by device id.").of("process_of"),
            groups=array_of(_GROUPS, "The groups of devices, by their axes."),
        ),
    )("The job of several processes whose devices ran it; left out: there was one process.")
)


def job_beside(job: Job | None, mesh: Mesh, axes: Sequence[Sequence[str]]) -> Beside | None:
    """The value of a document's `JOB`, with the groups along each of `axes`; None where no job of several
    processes runs the mesh."""
    from shardviz.devices.job import group_span

    if job is None or not job.runs(mesh):
        return None
    spans = [group_span(job, mesh, each) for each in axes]
    return Beside(
        job,
        groups=[Beside(span, across_hosts=_crossing(span, mesh)) for span in spans],
    )


def _crossing(span: GroupSpan, mesh: Mesh) -> list[tuple[list[int], tuple[str, ...]]]:
    return [
        ([mesh.device_id(position) for position in group], hosts)
        for group, hosts in zip(span.groups, span.hosts, strict=True)
        if hosts
    ]
