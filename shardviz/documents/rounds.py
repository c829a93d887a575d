"""A collective round by round, and its algorithms side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from shardviz.collectives.values import plain_values
from shardviz.documents.fields import (
    COUNT,
    Beside,
    Document,
    DocumentKind,
    JsonField,
    anything,
    array_of,
    bandwidth,
    by_name,
    closed,
    count,
    counts,
    flag,
    null_if_empty,
    nullable,
    number,
    one_of,
    plain,
    shared,
    text,
    texts,
)
from shardviz.documents.jobs import JOB, job_beside
from shardviz.documents.plans import MESH

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shardviz.devices.job import Job
    from shardviz.hardware import AlgorithmRow
    from shardviz.stepping.collective_run import CollectiveRun
    from shardviz.stepping.verdict import Verdict


def _link(run: CollectiveRun, link: tuple[int, int]) -> list[int | str]:
    """A link of the first group by device ids; ``switch`` is the node in the middle."""
    group = run.groups[0]
    return [run.mesh.device_id(group[node]) if node < len(group) else "switch" for node in link]


_LINK = JsonField(
    {
        "description": "A link, from one device's id to the other's, or the switch in the middle; "
        "null: nothing is sent.",
        "type": "array",
        "items": {"anyOf": [COUNT.schema, {"const": "switch"}]},
    }
)
_VALUES = anything(
    "Numbers as nested lists, NaN and infinities as text, complex ones as [real, imaginary]."
).by(plain)
WAITING = nullable(count("Messages that wait for a link; null: the queues are too long to follow.")).of(
    "waiting"
)
_SECONDS = number(
    "Seconds by store and forward over shortest paths; a lower bound where queues are too long."
)
_GROUP = JsonField({"type": "array", "items": COUNT.schema}, list)
DEVICE_VALUES = shared(
    "device_values",
    closed(
        "A device and its numbers.",
        id=count("The device's id."),
        coords=counts("Its place along each mesh axis."),
        values=_VALUES,
    ),
)
_COMPARED = closed(
    "An algorithm, in numbers.",
    algorithm=text("The algorithm's name."),
    chunks=count("Chunks into which the larger of a device's operand and result is cut."),
    rounds=count("Rounds in all."),
    wire_bytes=count("Bytes that one device sends at most, over all rounds.").of("device_bytes"),
    busiest_bytes=count("Bytes that the busiest link carries, over all rounds."),
    waiting_messages=WAITING,
    seconds=_SECONDS,
)
_NOT_COMPARED = closed(
    "An algorithm without numbers.",
    algorithm=text("The algorithm's name."),
    reason=text("The reason why it has none."),
)


def _row(row: AlgorithmRow) -> Any:
    return (_NOT_COMPARED if row.reason else _COMPARED).write(row)


ALGORITHM = shared(
    "algorithm",
    JsonField(
        {
            "description": "An algorithm, or the reason why it cannot be compared.",
            "oneOf": [_COMPARED.schema, _NOT_COMPARED.schema],
        },
        _row,
    ),
)

_BANDWIDTH = bandwidth("Bytes a second of one link, one way; inf where that takes no time.")

QUESTION = {
    "op": text("JAX's name of the collective, such as all_gather.").of("operation.name"),
    "axes": texts("Mesh axes of its groups, the major one first.").of("operation.axes"),
    "parameters": by_name(anything("A value.").by(plain), "JAX's parameters, by name.").of(
        "operation.parameters"
    ),
    "mesh": MESH("The mesh."),
    "shape": counts("Elements along each dimension of the whole array.").of("question.layout.array.shape"),
    "dtype": text("The element type.").of("question.layout.array.dtype"),
    "spec": text("The array's sharding, as text.").of("question.spec"),
    "shard_shape": counts("Elements along each dimension of one device's shard.").of(
        "question.layout.shard_shape"
    ),
    "bytes": count("Bytes of the larger of a device's operand and result."),
    "topology": text("The links that join the devices of a group.").by(str).of("links.topology"),
    "latency_s": number("Seconds of one hop.").of("links.spec.latency"),
    "bandwidth_bytes_per_s": _BANDWIDTH.of("links.spec.bandwidth"),
    "machine": nullable(text("The machine whose links they are; null where they were given.")).of(
        lambda run: None if run.links.machine is None else run.links.machine.name
    ),
    "levels": array_of(
        closed(
            "One physical dimension of a group.",
            name=text("The name that people have for it: x, NVLink, DCN."),
            kind=one_of(
                "The way in which its members are joined.", "ring", "line", "switch", "network", "chip"
            ),
            members=count("Members.").of("size"),
            hops=count("Links between neighbours of the group."),
            load=count("Messages that share the busiest of these links when all groups send.").of("messages"),
            latency_s=number("Seconds of one hop.").of("spec.latency"),
            bandwidth_bytes_per_s=_BANDWIDTH.of("spec.bandwidth"),
        ),
        "The physical dimensions of a group, the major one first.",
    ).of("links.levels"),
    "closed_form": nullable(
        closed(
            "The time by formula, independent of the algorithm; null where there is no formula.",
            seconds=number("Seconds."),
            latency_seconds=number("Seconds of its hops, or of NCCL."),
            bandwidth_seconds=number("Seconds of its bytes."),
            textbook_seconds=number("Seconds that the scaling book counts for the bytes, V/W."),
            bound=text("The level that takes longest, or latency; empty: nothing is sent."),
            convention=text("How it is counted."),
        )
    ),
    "chip": null_if_empty(text("The chip that has such links; null where their figures were given.")).of(
        "links.chip"
    ),
    "optimum": closed(
        "The least that any algorithm needs.",
        rounds=count("Rounds, where a device sends one message a round."),
        wire_bytes=count("Bytes that one device must send."),
    ).of("bound"),
}
"""The collective, its array, and the links that join its devices."""
SCHEDULE = {
    "algorithm": text("The algorithm that is followed.").of("schedule.algorithm"),
    "groups": array_of(_GROUP, "Device ids of each group; all groups run at the same time.").of(
        lambda run: [[run.mesh.device_id(position) for position in group] for group in run.groups]
    ),
    "chunks": count("Chunks that a device's data is cut into.").of("schedule.chunks"),
}
VERDICT = {
    "verified_against": nullable(
        one_of("The target whose result agrees; null: none was asked, or the results differ.", "cpu", "real")
    ),
    "verdict": nullable(
        one_of(
            "The comparison with JAX's result, bit for bit or within rounding; null: JAX was not asked.",
            *("equal", "rounding", "different"),
        )
    ),
    "program": nullable(text("The program that JAX ran; null: none.")),
    "job": JOB,
}
"""JAX's verdict on the results."""
_ALGORITHMS = array_of(ALGORITHM("An algorithm."), "Every algorithm that can carry it out.").of("rows")

STEP = DocumentKind(
    "step",
    "step",
    "A collective round by round.",
    **QUESTION,
    **SCHEDULE,
    before=nullable(
        array_of(
            DEVICE_VALUES("A device."), "The numbers of every device before; null: they are not followed."
        )
    ).of(lambda run: _devices(run, run.frames.before)),
    rounds=array_of(
        closed(
            "A round.",
            round=count("Its number, from 1."),
            phase=text("The work that the rounds of its part of the algorithm do together."),
            sends=array_of(
                closed(
                    "A chunk on its way from one device to another.",
                    src=count("The sender's id."),
                    dst=count("The receiver's id."),
                    chunk=count("The chunk's number, from 0."),
                    bytes=count("Bytes of the chunk."),
                    reduce=flag("The receiver adds it to what it has; else it takes its place."),
                ),
                "Everything that is sent, in all groups.",
            ),
            device_bytes=count("Bytes that one device sends at most."),
            busiest_link=nullable(_LINK),
            busiest_bytes=count("Bytes on the busiest link."),
            links=array_of(
                closed(
                    "A link of the first group.",
                    ends=_LINK,
                    bytes=count("Bytes that it carries."),
                ),
                "Links of the first group that carry something.",
            ),
            waiting_messages=WAITING,
            hops=count("Links that all messages of a group cross together."),
            seconds=_SECONDS,
        ),
        "The rounds, in order.",
    ).of(lambda run: [_round(run, number) for number in range(1, run.schedule.rounds + 1)]),
    after=nullable(
        array_of(
            DEVICE_VALUES("A device."), "The numbers of every device after; null: they are not followed."
        )
    ).of(lambda run: _devices(run, run.frames.after)),
    result=nullable(
        closed(
            "The result of shard_map; null: no numbers, or scalars that cannot be joined.",
            dtype=text("The element type.").of("result_dtype"),
            shape=counts("Elements along each dimension.").of("final.shape"),
            spec=text("Its sharding, as text.").of("question.final_spec"),
            values=_VALUES.of(lambda run: plain_values(run.final)),
        )
    ).of(lambda run: None if run.final is None else run),
    wire_bytes=count("Bytes that one device sends at most, over all rounds.").of("timeline.device_bytes"),
    busiest_bytes=count("Bytes that the busiest link carries, over all rounds.").of("timeline.busiest_bytes"),
    waiting_messages=WAITING.of("timeline.waiting"),
    seconds=_SECONDS.of("timeline.seconds"),
    algorithms=_ALGORITHMS,
    **VERDICT,
)


def step_document(run: CollectiveRun, verdict: Verdict | None, job: Job | None = None) -> Document:
    """The document of `shardviz step --json`; with numbers, devices' values as nested lists.

    Lists one entry a send: ask for it only where that many fit (`Schedule` says how many there are).
    """
    return STEP.document(run, **verdict_beside(run, verdict, job))


def verdict_beside(run: CollectiveRun, verdict: Verdict | None, job: Job | None) -> dict[str, object]:
    """The values of a document's `VERDICT`; JAX was not asked where it is None."""
    return {
        "verified_against": verdict.ran.target if verdict and verdict.agrees else None,
        "verdict": verdict.verification.verdict if verdict else None,
        "program": verdict.ran.program if verdict else None,
        "job": job_beside(job, run.mesh, [run.operation.axes]),
    }


def _devices(run: CollectiveRun, values: NDArray[Any] | None) -> list[Beside] | None:
    """Every device with its coordinates and its numbers, in the mesh's order."""
    if values is None:
        return None
    mesh = run.mesh
    return [
        Beside(id=mesh.device_id(position), coords=mesh.coords(position), values=listed)
        for position, listed in enumerate(plain_values(values))
    ]


class _Send(NamedTuple):
    src: int
    dst: int
    chunk: int
    bytes: int
    reduce: bool


def _round(run: CollectiveRun, number: int) -> Beside:
    """The load of a round, and beside that every send of it in every group."""
    load, link_bytes = run.timeline[number - 1], run.timeline.link_bytes(number)
    ends = run.links.topology.ends
    return Beside(
        load,
        round=number,
        phase=run.phase_name(run.schedule.phase(number)[0]),
        sends=_sends(run, number),
        busiest_link=None if load.busiest_link is None else _link(run, load.busiest_link),
        links=[
            Beside(ends=_link(run, ends(link)), bytes=int(link_bytes[link]))
            for link in link_bytes.nonzero()[0].tolist()
        ],
    )


def _sends(run: CollectiveRun, number: int) -> Iterator[_Send]:
    """Every send of a round, by device ids, one group after the other."""
    sends = run.schedule.round(number).expanded(run.schedule.chunks)
    columns = [column.tolist() for column in (sends.src, sends.dst, sends.chunk, sends.reduce)]
    sizes = run.chunk_bytes
    for group in run.groups:
        ids = [run.mesh.device_id(position) for position in group]
        for src, dst, chunk, reduce in zip(*columns, strict=True):
            size = sizes if isinstance(sizes, int) else int(sizes[chunk])
            yield _Send(ids[src], ids[dst], chunk, size, reduce)


COMPARISON = DocumentKind(
    "comparison",
    "step --compare",
    "The algorithms of a collective side by side.",
    **QUESTION,
    algorithms=_ALGORITHMS,
    crossovers=array_of(
        closed(
            "The fastest algorithm from a payload on.",
            from_bytes=count("Bytes of the payload.").of(itemgetter(0)),
            algorithm=text("The algorithm's name.").of(itemgetter(1)),
        ),
        "The fastest algorithms, from small payloads to large ones.",
    ),
    left_out=array_of(
        closed(
            "An algorithm that was not compared over payloads.",
            algorithm=text("The algorithm's name.").of(itemgetter(0)),
            reason=text("The reason why it was not.").of(itemgetter(1)),
        ),
        "Algorithms that the crossovers leave out.",
    ),
)


def comparison_document(
    run: CollectiveRun, crossovers: Sequence[tuple[int, str]], left_out: Sequence[tuple[str, str]]
) -> Document:
    """Every algorithm for the question of a run, and the fastest one from each payload on."""
    return COMPARISON.document(run, crossovers=crossovers, left_out=left_out)
