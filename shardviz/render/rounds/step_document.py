"""The JSON document of a collective: every device, every send of every round, every result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shardviz import schemas
from shardviz.hardware import AlgorithmRow
from shardviz.render.documents import mesh_document
from shardviz.render.programs.target_document import Document
from shardviz.render.rounds.pieces import plain_values
from shardviz.stepping.collective_run import CollectiveRun
from shardviz.stepping.verdict import Verdict

if TYPE_CHECKING:
    from numpy.typing import NDArray


def step_document(walk: CollectiveRun, verdict: Verdict | None) -> Document:
    """Everything that `shardviz step` knows; with numbers, devices' values as nested lists.

    Lists one entry a send: ask for it only where that many fit (`Schedule` says how many there are).
    """
    schedule = walk.schedule
    return schemas.document(
        "step",
        {
            **_question(walk),
            "algorithm": schedule.algorithm,
            "groups": [[walk.mesh.device_id(position) for position in group] for group in walk.groups],
            "chunks": schedule.chunks,
            "before": _devices(walk, walk.frames.before),
            "rounds": [_round(walk, number) for number in range(1, schedule.rounds + 1)],
            "after": _devices(walk, walk.frames.after),
            "result": _result(walk),
            "wire_bytes": walk.timeline.device_bytes,
            "busiest_bytes": walk.timeline.busiest_bytes,
            "waiting_messages": walk.timeline.waiting,
            "seconds": walk.timeline.seconds,
            "algorithms": [_row(row) for row in walk.rows],
            "verified_against": verdict.ran.target if verdict and verdict.agrees else None,
            "verdict": verdict.verification.verdict if verdict else None,
            "program": verdict.ran.program if verdict else None,
        },
    )


def comparison_document(
    walk: CollectiveRun, crossovers: Sequence[tuple[int, str]], left_out: Sequence[tuple[str, str]]
) -> Document:
    """Every algorithm for the question of a walk, and which is fastest from which payload on."""
    return schemas.document(
        "comparison",
        {
            **_question(walk),
            "algorithms": [_row(row) for row in walk.rows],
            "crossovers": [{"from_bytes": start, "algorithm": name} for start, name in crossovers],
            "left_out": [{"algorithm": name, "reason": reason} for name, reason in left_out],
        },
    )


def plain(value: Any) -> Any:
    """A value as JSON has it: NaN and infinities are strings, a complex number is [real, imaginary]."""
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _question(walk: CollectiveRun) -> Document:
    """The question: the collective, the array, and the links."""
    operation, layout = walk.operation, walk.question.layout
    array = layout.array
    return {
        "op": operation.name,
        "axes": list(operation.axes),
        "parameters": {name: plain(value) for name, value in operation.parameters.items()},
        "mesh": mesh_document(walk.mesh),
        "shape": list(array.shape),
        "dtype": array.dtype,
        "spec": walk.question.spec,
        "shard_shape": list(layout.shard_shape),
        "bytes": walk.bytes,
        "topology": str(walk.links.topology),
        "latency_s": walk.links.wire.latency,
        "bandwidth_bytes_per_s": plain(walk.links.wire.bandwidth),
        "chip": walk.links.chip or None,
        "optimum": {"rounds": walk.bound.rounds, "wire_bytes": walk.bound.wire_bytes},
    }


def _devices(walk: CollectiveRun, values: NDArray[Any] | None) -> list[Document] | None:
    """Every device by id with its coordinates and its numbers, in the mesh's order."""
    if values is None:
        return None
    listed = plain_values(values)
    return [
        {
            "id": walk.mesh.device_id(position),
            "coords": list(walk.mesh.coords(position)),
            "values": plain(listed[position]),
        }
        for position in range(walk.mesh.size)
    ]


def _result(walk: CollectiveRun) -> Document | None:
    if walk.final is None:
        return None
    return {
        "dtype": walk.result_dtype,
        "shape": list(walk.final.shape),
        "spec": walk.question.final_spec,
        "values": plain(plain_values(walk.final)),
    }


def _round(walk: CollectiveRun, number: int) -> Document:
    """Every send of one round in every group, and what the round loads."""
    schedule, load = walk.schedule, walk.timeline[number - 1]
    sends = schedule.round(number).expanded(schedule.chunks)
    entries = list(
        zip(sends.src.tolist(), sends.dst.tolist(), sends.chunk.tolist(), sends.reduce.tolist(), strict=True)
    )
    sizes = walk.chunk_bytes
    sent = []
    for group in walk.groups:
        ids = [walk.mesh.device_id(position) for position in group]
        sent += [
            {
                "src": ids[src],
                "dst": ids[dst],
                "chunk": chunk,
                "bytes": sizes if isinstance(sizes, int) else int(sizes[chunk]),
                "reduce": reduce,
            }
            for src, dst, chunk, reduce in entries
        ]
    return {
        "round": number,
        "phase": walk.phase_name(schedule.phase(number)[0]),
        "sends": sent,
        "device_bytes": load.device_bytes,
        "busiest_link": _link(walk, load.busiest_link),
        "busiest_bytes": load.busiest_bytes,
        "links": _links(walk, number),
        "waiting_messages": load.waiting,
        "hops": load.hops,
        "seconds": load.seconds,
    }


def _links(walk: CollectiveRun, number: int) -> list[Document]:
    """Every link of the first group that a round loads."""
    loads = walk.timeline.link_bytes(number)
    ends = walk.links.topology.ends
    return [
        {"ends": _link(walk, ends(link)), "bytes": int(loads[link])} for link in loads.nonzero()[0].tolist()
    ]


def _link(walk: CollectiveRun, link: tuple[int, int] | None) -> list[int | str] | None:
    """A link of the first group by device ids; ``switch`` is the node in the middle."""
    if link is None:
        return None
    group = walk.groups[0]
    return [walk.mesh.device_id(group[node]) if node < len(group) else "switch" for node in link]


def _row(row: AlgorithmRow) -> Document:
    if row.reason:
        return {"algorithm": row.algorithm, "reason": row.reason}
    return {
        "algorithm": row.algorithm,
        "rounds": row.rounds,
        "wire_bytes": row.device_bytes,
        "busiest_bytes": row.busiest_bytes,
        "waiting_messages": row.waiting,
        "seconds": row.seconds,
    }
