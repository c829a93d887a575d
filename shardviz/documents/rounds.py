"""A collective round by round, its messages, its algorithms, and a matmul block by block beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from shardviz.collectives.values import plain_values
from shardviz.documents.fields import (
    BANDWIDTH,
    Beside,
    Document,
    DocumentKind,
    JsonField,
    of,
    one_of,
    record,
    records,
)
from shardviz.documents.meshes import JOB, MESH, job_beside

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shardviz.devices.job import Job
    from shardviz.stepping.collective_matmul import BlockwiseMatmul
    from shardviz.stepping.collective_run import CollectiveRun, Verdict
    from shardviz.stepping.transfers import TransferLog

_LINK = JsonField(
    {"type": "array", "items": {"anyOf": [{"type": "integer", "minimum": 0}, {"const": "switch"}]}}
)
_VALUES = of(Any, "Numbers as nested lists, NaN and infinities as text, complex ones as [real, imaginary].")
_WAITING = of(int, "Messages that wait for a link; null: the queues are too long to follow.", "waiting")
_SECONDS = of(
    float, "Seconds by store and forward over shortest paths; a lower bound where queues are too long."
)
DEVICE_VALUES = record(
    "A device and its numbers.",
    id=of(int, "The device's id."),
    coords=of([int], "Its place along each mesh axis."),
    values=_VALUES,
).shared("device_values")
_COMPARED = record(
    "An algorithm, in numbers.",
    algorithm=of(str, "The algorithm's name."),
    chunks=of(int, "Chunks into which the larger of a device's operand and result is cut."),
    rounds=of(int, "Rounds in all."),
    wire_bytes=of(int, "Bytes that one device sends at most, over all rounds.", "device_bytes"),
    busiest_bytes=of(int, "Bytes that the busiest link carries, over all rounds."),
    waiting_messages=_WAITING,
    seconds=_SECONDS,
)
_NOT_COMPARED = record(
    "An algorithm without numbers.",
    algorithm=of(str, "The algorithm's name."),
    reason=of(str, "The reason why it has none."),
)


ALGORITHM = JsonField(
    {
        "description": "An algorithm, or the reason why it cannot be compared.",
        "oneOf": [_COMPARED.schema, _NOT_COMPARED.schema],
    },
    lambda row: (_NOT_COMPARED if isinstance(row, tuple) else _COMPARED).write(row),
).shared("algorithm")
_BANDWIDTH = of(BANDWIDTH, "Bytes a second of one link, one way; inf where that takes no time.")
_QUESTION = {
    "op": of(str, "JAX's name of the collective, such as all_gather.", "operation.name"),
    "axes": of([str], "Mesh axes of its groups, the major one first.", "operation.axes"),
    "parameters": of({str: of(Any, "A value.")}, "JAX's parameters, by name.", "operation.parameters"),
    "mesh": of(MESH, "The mesh."),
    "shape": of([int], "Elements along each dimension of the whole array.", "question.layout.array.shape"),
    "dtype": of(str, "The element type.", "question.layout.array.dtype"),
    "spec": of(str, "The array's sharding, as text.", "question.spec"),
    "shard_shape": of(
        [int], "Elements along each dimension of one device's shard.", "question.layout.shard_shape"
    ),
    "bytes": of(int, "Bytes of the larger of a device's operand and result."),
    "topology": of(str, "The links that join the devices of a group.", lambda run: str(run.links.topology)),
    "latency_s": of(float, "Seconds of one hop.", "links.spec.latency"),
    "bandwidth_bytes_per_s": _BANDWIDTH.at("links.spec.bandwidth"),
    "machine": of(str, "The machine whose links they are; null where they were given.", "links.machine.name"),
    "levels": records(
        "The physical dimensions of a group, the major one first.",
        "One physical dimension of a group.",
        "links.levels",
        name=of(str, "The name that people have for it: x, NVLink, DCN."),
        kind=of(
            one_of("ring", "line", "switch", "network", "chip"), "The way in which its members are joined."
        ),
        members=of(int, "Members.", "size"),
        hops=of(int, "Links between neighbours of the group."),
        load=of(int, "Messages that share the busiest of these links when all groups send.", "messages"),
        latency_s=of(float, "Seconds of one hop.", "spec.latency"),
        bandwidth_bytes_per_s=_BANDWIDTH.at("spec.bandwidth"),
    ),
    "closed_form": record(
        "The time by formula, independent of the algorithm; null where there is no formula.",
        seconds=of(float, "Seconds."),
        latency_seconds=of(float, "Seconds of its hops, or of NCCL."),
        bandwidth_seconds=of(float, "Seconds of its bytes."),
        textbook_seconds=of(float, "Seconds that the scaling book counts for the bytes, V/W."),
        bound=of(str, "The level that takes longest, or latency; empty: nothing is sent."),
        convention=of(str, "How it is counted."),
    ),
    "chip": of(str, "The chip that has such links; null where their figures were given.", "links.chip"),
    "optimum": record(
        "The least that any algorithm needs.",
        "bound",
        rounds=of(int, "Rounds, where a device sends one message a round."),
        wire_bytes=of(int, "Bytes that one device must send."),
    ),
}
"""The collective, its array, and the links that join its devices."""
_SCHEDULE = {
    "algorithm": of(str, "The algorithm that is followed.", "schedule.algorithm"),
    "groups": of(
        [[int]],
        "Device ids of each group; all groups run at the same time.",
        lambda run: [[run.mesh.device_id(position) for position in group] for group in run.groups],
    ),
    "chunks": of(int, "Chunks that a device's data is cut into.", "schedule.chunks"),
}
_VERDICT = {
    "verified_against": of(
        one_of("cpu", "real"),
        "The target whose result agrees; null: none was asked, or the results differ.",
        lambda run: run.verdict.ran.target if run.verdict and run.verdict.agrees else None,
    ),
    "verdict": of(
        one_of("equal", "rounding", "different"),
        "The comparison with JAX's result, bit for bit or within rounding; null: JAX was not asked.",
        "verdict.verification.verdict",
    ),
    "program": of(str, "The program that JAX ran; null: none.", "verdict.ran.program"),
    "job": JOB,
}
"""JAX's verdict on the results."""
_ALGORITHMS = of([of(ALGORITHM, "An algorithm.")], "Every algorithm that can carry it out.", "rows")

STEP = DocumentKind(
    "step",
    "step",
    "A collective round by round.",
    **_QUESTION,
    **_SCHEDULE,
    before=of(
        [of(DEVICE_VALUES, "A device.")],
        "The numbers of every device before; null: they are not followed.",
        lambda run: _devices(run, run.frames.before),
    ),
    rounds=records(
        "The rounds, in order.",
        "A round.",
        lambda run: [_round(run, number) for number in range(1, run.schedule.rounds + 1)],
        round=of(int, "Its number, from 1."),
        phase=of(str, "The work that the rounds of its part of the algorithm do together."),
        sends=records(
            "Everything that is sent, in all groups.",
            "A chunk on its way from one device to another.",
            src=of(int, "The sender's id.", 0),
            dst=of(int, "The receiver's id.", 1),
            chunk=of(int, "The chunk's number, from 0.", 2),
            bytes=of(int, "Bytes of the chunk.", 3),
            reduce=of(bool, "The receiver adds it to what it has; else it takes its place.", 4),
        ),
        device_bytes=of(int, "Bytes that one device sends at most."),
        busiest_link=of(
            _LINK,
            "A link, from one device's id to the other's, or the switch in the middle; null: "
            "nothing is sent.",
        ),
        busiest_bytes=of(int, "Bytes on the busiest link."),
        links=records(
            "Links of the first group that carry something.",
            "A link of the first group.",
            ends=of(_LINK, "From one device's id to the other's, or the switch in the middle.", 0),
            bytes=of(int, "Bytes that it carries.", 1),
        ),
        waiting_messages=_WAITING,
        hops=of(int, "Links that all messages of a group cross together."),
        seconds=_SECONDS,
    ),
    after=of(
        [of(DEVICE_VALUES, "A device.")],
        "The numbers of every device after; null: they are not followed.",
        lambda run: _devices(run, run.frames.after),
    ),
    result=record(
        "The result of shard_map; null: no numbers, or scalars that cannot be joined.",
        lambda run: None if run.final is None else run,
        dtype=of(str, "The element type.", "result_dtype"),
        shape=of([int], "Elements along each dimension.", "final.shape"),
        spec=of(str, "Its sharding, as text.", "question.final_spec"),
        values=_VALUES.at(lambda run: plain_values(run.final)),
    ),
    wire_bytes=of(int, "Bytes that one device sends at most, over all rounds.", "timeline.device_bytes"),
    busiest_bytes=of(int, "Bytes that the busiest link carries, over all rounds.", "timeline.busiest_bytes"),
    waiting_messages=_WAITING.at("timeline.waiting"),
    seconds=_SECONDS.at("timeline.seconds"),
    algorithms=_ALGORITHMS,
    **_VERDICT,
)


def step_document(run: CollectiveRun, verdict: Verdict | None, job: Job | None = None) -> Document:
    """The document of `shardviz step --json`; with numbers, devices' values as nested lists.

    Lists one entry a send: ask for it only where that many fit (`Schedule` says how many there are).
    """
    return STEP.document(run, verdict=verdict, job=job_beside(job, run.mesh, [run.operation.axes]))


def _devices(run: CollectiveRun, values: NDArray[Any] | None) -> list[Beside] | None:
    """Every device with its coordinates and its numbers, in the mesh's order."""
    if values is None:
        return None
    mesh = run.mesh
    return [
        Beside(id=mesh.device_id(position), coords=mesh.coords(position), values=listed)
        for position, listed in enumerate(plain_values(values))
    ]


def _phase_name(run: CollectiveRun, number: int) -> str:
    return run.phase_name(run.schedule.phase(number)[0])


def _round(run: CollectiveRun, number: int) -> Beside:
    """The load of a round, and beside that every send of it in every group."""
    load, link_bytes = run.timeline[number - 1], run.timeline.link_bytes(number)
    ends = run.links.topology.ends
    return Beside(
        load,
        round=number,
        phase=_phase_name(run, number),
        sends=_sends(run, number),
        busiest_link=None if load.busiest_link is None else _link(run, load.busiest_link),
        links=[(_link(run, ends(link)), int(link_bytes[link])) for link in link_bytes.nonzero()[0].tolist()],
    )


def _link(run: CollectiveRun, link: tuple[int, int]) -> list[int | str]:
    """A link of the first group by device ids; ``switch`` is the node in the middle."""
    group = run.groups[0]
    return [run.mesh.device_id(group[node]) if node < len(group) else "switch" for node in link]


def _sends(run: CollectiveRun, number: int) -> Iterator[tuple[int, int, int, int, bool]]:
    """Every send of a round, by device ids, one group after the other."""
    sends = run.schedule.round(number).expanded(run.schedule.chunks)
    columns = [column.tolist() for column in (sends.src, sends.dst, sends.chunk, sends.reduce)]
    sizes = run.chunk_bytes
    for group in run.groups:
        ids = [run.mesh.device_id(position) for position in group]
        for src, dst, chunk, reduce in zip(*columns, strict=True):
            size = sizes if isinstance(sizes, int) else int(sizes[chunk])
            yield ids[src], ids[dst], chunk, size, reduce


COMPARISON = DocumentKind(
    "comparison",
    "step --compare",
    "The algorithms of a collective side by side.",
    **_QUESTION,
    algorithms=_ALGORITHMS,
    crossovers=records(
        "The fastest algorithms, from small payloads to large ones.",
        "The fastest algorithm from a payload on.",
        from_bytes=of(int, "Bytes of the payload.", 0),
        algorithm=of(str, "The algorithm's name.", 1),
    ),
    left_out=records(
        "Algorithms that the crossovers leave out.",
        "An algorithm that was not compared over payloads.",
        algorithm=of(str, "The algorithm's name.", 0),
        reason=of(str, "The reason why it was not.", 1),
    ),
)


def comparison_document(
    run: CollectiveRun, crossovers: Sequence[tuple[int, str]], left_out: Sequence[tuple[str, str]]
) -> Document:
    """Every algorithm for the question of a run, and the fastest one from each payload on."""
    return COMPARISON.document(run, crossovers=crossovers, left_out=left_out)


_TRANSFER = record(
    "A message from one device to another.",
    src=of(int, "The sender's id."),
    dst=of(int, "The receiver's id."),
    chunks=of([int], "The numbers of its chunks, from 0."),
    values=of(
        [of(Any, "A number; NaN and infinities as text, a complex one as [real, imaginary].")],
        "The numbers of its chunks before the round, in their order; null: they are not followed.",
    ),
    bytes=of(int, "Bytes of all its chunks."),
    reduce=of(bool, "The receiver adds them to its own; else they take their place.", "adds"),
    level=of(int, "The level of its links, from the outermost; 0 where there is one."),
    hops=of(int, "Links of that level that it crosses, a switch being one."),
    seconds=of(float, "Seconds that it takes alone, where it waits for no other."),
)
TRANSFERS = DocumentKind(
    "transfers",
    "step --transfers",
    "The messages of a collective's rounds.",
    **_QUESTION,
    **_SCHEDULE,
    rounds=records(
        "The rounds that were asked for, in order.",
        "A round.",
        round=of(int, "Its number, from 1."),
        phase=of(str, "The work that the rounds of its part of the algorithm do together."),
        start_seconds=of(float, "Seconds at which it begins; null: the rounds are too many to add up."),
        end_seconds=of(float, "Seconds at which it ends; null: as for its start."),
        waiting_messages=_WAITING,
        transfers=of([_TRANSFER], "Its messages, in all groups."),
    ),
    **_VERDICT,
)


def transfers_document(
    run: CollectiveRun, number: int | None = None, verdict: Verdict | None = None, job: Job | None = None
) -> Document:
    """The document of `shardviz step --transfers --json`, of all rounds or of one; 0 has no messages.

    Lists one entry a message: ask for it only where that many fit.
    """
    numbers = range(1, run.schedule.rounds + 1) if number is None else [number] if number else []
    job_groups = job_beside(job, run.mesh, [run.operation.axes])
    return TRANSFERS.document(run, rounds=_rounds(run, numbers), verdict=verdict, job=job_groups)


def _rounds(run: CollectiveRun, numbers: Sequence[int]) -> Iterator[Beside]:
    from shardviz.stepping.transfers import TransferLog

    log = TransferLog(run)
    for each in numbers:
        yield Beside(
            run.timeline[each - 1],
            round=each,
            phase=_phase_name(run, each),
            start_seconds=None if run.cost is None else run.cost.seconds(each - 1),
            end_seconds=None if run.cost is None else run.cost.seconds(each),
            transfers=_transfers(log, each),
        )


def _transfers(log: TransferLog, number: int) -> Iterator[Beside]:
    """Every message of a round, by device ids, one group after the other."""
    from shardviz.stepping.transfers import carried_values

    run = log.run
    frame = run.frames[number - 1] if run.has_numbers else None
    found = [log.transfer(number, place) for place in range(log.count(number))]
    for place, group in enumerate(run.groups):
        for each in found:
            values = None
            if frame is not None:
                carried = carried_values(frame, each, place)
                values = [value for chunk in carried for value in plain_values(chunk)]
            src, dst = (run.mesh.device_id(group[member]) for member in (each.source, each.target))
            yield Beside(each, src=src, dst=dst, values=values)


_SLOT = record(
    "A stretch of time between two rounds.",
    slot=of(int, "Its number, from 0: after the round of that number of a gather, before the next of a sum."),
    blocks=of(
        [[int]], "For each device of a group, in the group's order, the chunks whose blocks it multiplies."
    ),
    start_seconds=of(float, "Seconds from the beginning at which the work on its blocks begins."),
    end_seconds=of(float, "Seconds from the beginning at which the work on its blocks ends."),
    round=of(int, "The round before it; null: it is the first.", lambda slot: slot.slot or None),
    round_start_seconds=of(
        float, "Seconds from the beginning at which that round begins; null: there is none."
    ),
    round_end_seconds=of(float, "Seconds from the beginning at which that round ends; null: there is none."),
)


def _slots(matmul: BlockwiseMatmul) -> Iterator[Beside]:
    members = range(matmul.run.schedule.pattern.group_size)
    for place, slot in enumerate(matmul.slots):
        start, end = slot.sends if place else (None, None)
        yield Beside(
            slot=place,
            blocks=[matmul.blocks(place, member) for member in members],
            start_seconds=slot.work[0],
            end_seconds=slot.work[1],
            round_start_seconds=start,
            round_end_seconds=end,
        )


MATMUL = DocumentKind(
    "matmul",
    "explain --step --matmul",
    "A matmul block by block beside a collective.",
    **_QUESTION,
    **_SCHEDULE,
    step=of(int, "The number of the collective's step in the plan, from 1.", "number"),
    einsum=of(str, "The einsum of one device.", lambda matmul: str(matmul.einsum.einsum)),
    operands=of([str], "The arrays that it takes.", "einsum.operands"),
    result=of(str, "The array that it makes.", "einsum.array"),
    is_gather=of(bool, "The collective brings blocks of an operand; else it sums blocks of the result."),
    dim_name=of(
        str, "The dimension that is cut into blocks; null: they are parts of a whole array.", "letter"
    ),
    matmul_seconds=of(float, "Seconds of the whole matmul."),
    slots=of([_SLOT], "The slots, in order; all groups do the same.", _slots),
    rest_seconds=of(float, "Seconds of the rounds after the last slot, which have no work beside them."),
    seconds=of(float, "Seconds of the matmul and the collective together."),
    apart_seconds=of(float, "Seconds of one after the other."),
    prefetch=record(
        "The collective run whole beside the matmul before it; null: there is none, or nothing to fetch.",
        lambda matmul: matmul if matmul.before else None,
        step=of(
            int, "The number of that matmul's step in the plan, from 1.", lambda matmul: matmul.before[0]
        ),
        matmul_seconds=of(float, "Seconds of that matmul.", lambda matmul: matmul.before[1]),
        exposed_seconds=of(float, "Seconds of the collective that are left when it has ended."),
        seconds=of(
            float, "Seconds of both matmuls, with the collective beside the first.", "prefetched_seconds"
        ),
    ),
)


def matmul_document(matmul: BlockwiseMatmul, step: int) -> Document:
    """The document of `shardviz explain --step N --matmul --json`; `step` is N."""
    return MATMUL.document(matmul.run, matmul, number=step)
