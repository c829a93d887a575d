"""A question about a collective → everything that its views show."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shardviz.errors import QuestionError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from shardviz.cli.collective_question import CollectiveQuestion
    from shardviz.collectives import Frames, LowerBound, Operation, Pattern, Schedule
    from shardviz.hardware import Row, Topology, Wire
    from shardviz.render.walk import Walk

    Values = NDArray[Any]
    Ints = NDArray[np.int64]

MAX_COMPARED = 2**16
"""Members of the largest group for which algorithms are compared: beyond it that takes minutes."""


@dataclass(frozen=True)
class Links:
    """What joins the members of a group: how, and by what."""

    topology: Topology
    wire: Wire


def links_from_text(
    dims: tuple[int, ...], topology: str | None, latency: str | None, bandwidth: str | None
) -> Links:
    """The links of a group whose axes have the sizes `dims`; None is as a TPU has it.

    Raises `QuestionError`.
    """
    from shardviz.hardware import Wire, parse_bandwidth, parse_latency, topology_for

    usual = Wire()
    wire = Wire(
        usual.latency if latency is None else parse_latency(latency),
        usual.bandwidth if bandwidth is None else parse_bandwidth(bandwidth),
    )
    return Links(topology_for(topology, dims), wire)


def walk_through(question: CollectiveQuestion, links: Links) -> Walk:
    """Run the schedule and count what it costs. Raises `QuestionError` for what is too large to follow."""
    from shardviz.collectives import Frames

    if question.shards is None:
        return _walk(question, links, Frames(question.schedule))
    mesh = question.layout.mesh
    return _walk(question, links, Frames(question.schedule, question.operation, mesh, question.shards))


def comparison_of(question: CollectiveQuestion, links: Links) -> Walk:
    """What a comparison of algorithms shows, without a run. Raises `QuestionError` for too large a group."""
    from shardviz.collectives import Frames

    size = question.schedule.pattern.group_size
    if size > MAX_COMPARED:
        raise QuestionError(
            f"algorithms are compared over up to {MAX_COMPARED:,} devices, and the group has {size:,}",
            "take a smaller mesh, or fewer axes with --axis",
        )
    frames = Frames.__new__(Frames)
    frames.schedule = question.schedule
    return _walk(question, links, frames)


def _walk(question: CollectiveQuestion, links: Links, frames: Frames) -> Walk:
    from shardviz.hardware import timeline
    from shardviz.render.walk import Walk
    from shardviz.sharding import array_bytes

    layout, operation, schedule = question.layout, question.operation, question.schedule
    array, pattern = layout.array, schedule.pattern
    dtype = moved_dtype(operation, array.dtype)

    def chunk_bytes(schedule: Schedule) -> int | Ints:
        return bytes_of(chunk_elements(operation, layout.shard_shape, schedule), dtype)

    sizes = chunk_bytes(schedule)
    payload = array_bytes(payload_shape(operation, layout.shard_shape, pattern.group_size), dtype)
    return Walk(
        operation=operation,
        mesh=layout.mesh,
        frames=frames,
        shape=array.shape,
        dtype=array.dtype,
        spec=question.spec,
        shard_shape=layout.shard_shape,
        chunk_bytes=sizes,
        bytes=payload,
        timeline=timeline(schedule, sizes, links.topology, links.wire),
        topology=links.topology,
        wire=links.wire,
        bound=bound_of(operation, schedule, payload, sizes),
        rows=rows_of(pattern, chunk_bytes, links),
        final_spec=question.final_spec,
        final_positions=question.final_positions,
    )


def rows_of(pattern: Pattern, chunk_bytes: Callable[[Schedule], int | Ints], links: Links) -> tuple[Row, ...]:
    """A row for every algorithm, as `comparison` has them, for chunks of whole elements."""
    from shardviz.hardware import Row, timeline
    from shardviz.hardware.comparisons import MAX_UNEVEN, candidates

    rows = []
    for name, schedule in candidates(pattern).items():
        if isinstance(schedule, str):
            rows.append(Row(name, None, schedule))
            continue
        sizes = chunk_bytes(schedule)
        if not isinstance(sizes, int) and len(sizes) > MAX_UNEVEN:
            sizes = int(sizes.max())
        line = timeline(schedule, sizes, links.topology, links.wire)
        rows.append(Row(name, None, line.too_long) if line.too_long else Row(name, line))
    return tuple(rows)


def moved_dtype(operation: Operation, dtype: str) -> str:
    """The dtype of what is sent, for shards of a dtype."""
    import numpy as np

    from shardviz.collectives.values import numpy_dtype
    from shardviz.sharding import canonical_dtype

    return canonical_dtype(str(operation.prepared(np.empty(0, numpy_dtype(dtype))).dtype))


def payload_shape(operation: Operation, shard_shape: tuple[int, ...], group_size: int) -> tuple[int, ...]:
    """The shape of the larger of a device's operand and result; of rows in a table, those of the busiest."""
    if operation.name == "all_gather":
        return (group_size, *shard_shape)
    if operation.name == "ragged_all_to_all":
        table = vars(operation)["send_sizes"]
        return (max(*map(sum, table), *map(sum, zip(*table, strict=True))), *shard_shape[1:])
    return shard_shape


def bound_of(operation: Operation, schedule: Schedule, payload: int, chunk_bytes: int | Ints) -> LowerBound:
    """The fewest rounds and bytes; of a table of rows, what the busiest device sends or receives."""
    import numpy as np

    from shardviz.collectives import lower_bound

    bound = lower_bound(schedule.pattern, payload)
    if operation.name != "ragged_all_to_all":
        return bound
    n = schedule.pattern.group_size
    table = np.broadcast_to(chunk_bytes, schedule.chunks).reshape(n, n, -1).sum(axis=2)
    table[np.diag_indices(n)] = 0
    most = int(max(table.sum(axis=0).max(), table.sum(axis=1).max()))
    return replace(bound, rounds=bound.rounds if most else 0, wire_bytes=most)


def chunk_elements(operation: Operation, shard_shape: tuple[int, ...], schedule: Schedule) -> int | Ints:
    """Elements of each chunk, or of every one where all are alike: as `Cuts.sizes`, without cutting."""
    import numpy as np

    pattern = schedule.pattern
    pieces = pattern.pieces(schedule.chunks)
    elements = math.prod(shard_shape)
    if operation.name == "ragged_all_to_all":
        table = np.array(vars(operation)["send_sizes"], dtype=np.int64)
        blocks = table.reshape(-1) * math.prod(shard_shape[1:])
    else:
        cut = pattern.kind in ("reduce_scatter", "all_to_all")
        block = elements // pattern.group_size if cut else elements
        if block % pieces == 0:
            return block // pieces
        blocks = np.full(pattern.base_chunks, block)
    least, more = np.divmod(blocks[:, None], pieces)
    sizes: Ints = (least + (np.arange(pieces) < more)).reshape(-1)
    return sizes


def bytes_of(elements: int | Ints, dtype: str) -> int | Ints:
    """The bytes of chunks with so many elements; parts of a byte count whole."""
    from shardviz.sharding.dtype import BITS

    return -(-elements * BITS[dtype] // 8)
