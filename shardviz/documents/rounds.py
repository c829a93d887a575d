"""A collective round by round, its algorithms, and a matmul block by block beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from shardviz.collectives.values import plain_values
from shardviz.documents.fields import KINDS, Beside, Document, JsonField, record
from shardviz.documents.machines import job_beside

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shardviz.devices.job import Job
    from shardviz.sharding import Mesh
    from shardviz.stepping.collective_matmul import BlockwiseMatmul
    from shardviz.stepping.collective_run import CollectiveRun, Verdict


def step_document(run: CollectiveRun, verdict: Verdict | None, job: Job | None = None) -> Document:
    """The document of `shardviz step --json`; with numbers, devices' values as nested lists.

    Lists one entry a send: ask for it only where that many fit (`Schedule` says how many there are)."""
    return KINDS["step"].document(run, verdict=verdict, job=job_beside(job, run.mesh, [run.operation.axes]))


def _devices(mesh: Mesh, values: NDArray[Any] | None) -> list[Beside] | None:
    """Every device with its coordinates and its numbers, in the mesh's order."""
    if values is None:
        return None
    return [
        Beside(id=mesh.device_id(position), coords=mesh.coords(position), values=listed)
        for position, listed in enumerate(plain_values(values))
    ]


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


def matmul_document(matmul: BlockwiseMatmul, step: int) -> Document:
    """The document of `shardviz explain --step N --matmul --json`; `step` is N."""
    return KINDS["matmul"].document(matmul.run, matmul, number=step)


def _slots(matmul: BlockwiseMatmul) -> Iterator[Beside]:
    members = range(matmul.run.schedule.pattern.group_size)
    for index, slot in enumerate(matmul.slots):
        start, end = slot.sends if index else (None, None)
        yield Beside(
            slot=index,
            blocks=[matmul.blocks(index, member) for member in members],
            start_seconds=slot.work[0],
            end_seconds=slot.work[1],
            round_start_seconds=start,
            round_end_seconds=end,
        )


def _algorithm() -> JsonField:
    compared, not_compared = record("rounds", "compared"), record("rounds", "not_compared")
    schema = {
        "description": "An algorithm, or the reason why it cannot be compared.",
        "oneOf": [compared.schema, not_compared.schema],
    }
    return JsonField(
        schema, lambda row: (not_compared if isinstance(row, tuple) else compared).write(row)
    ).shared("algorithm")


_END = {"anyOf": [{"type": "integer", "minimum": 0}, {"const": "switch"}]}
TYPES = {"link": lambda: JsonField({"type": "array", "items": _END}), "algorithm": _algorithm}
SOURCES = {
    "topology": lambda run: str(run.links.topology),
    "groups": lambda run: [[run.mesh.device_id(position) for position in group] for group in run.groups],
    "before": lambda run: _devices(run.mesh, run.frames.before),
    "rounds": lambda run: [_round(run, number) for number in range(1, run.schedule.rounds + 1)],
    "after": lambda run: _devices(run.mesh, run.frames.after),
    "held_spec": lambda held: str(held.layout.spec),
    "held_devices": lambda held: _devices(held.layout.mesh, held.values),
    "result": lambda run: None if run.final is None else run,
    "values": lambda run: plain_values(run.final),
    "verified_against": lambda run: run.verdict.ran.target if run.verdict and run.verdict.agrees else None,
    "einsum": lambda matmul: str(matmul.einsum.einsum),
    "slots": _slots,
    "round": lambda slot: slot.slot or None,
    "prefetch": lambda matmul: matmul if matmul.before else None,
}
