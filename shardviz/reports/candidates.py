"""Changes of a program that may mend a waste: which to try, the most likely first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from shardviz.hlo import HloModule
from shardviz.hlo.named_scopes import program_place
from shardviz.hlo.overlap import independent
from shardviz.reports.entries import CollectiveEntry
from shardviz.reports.lowered_module import Meeting, ScheduleCandidate, ShardingCandidate, SplitArgument
from shardviz.reports.why import Reason, TrainStep
from shardviz.sharding import Mesh, PartitionSpec, array_bytes, shard_shape
from shardviz.timeline.program_timeline import COMPUTE, ProgramTimeline

MOST = 8
"""Candidates that are tried for one collective."""
LOOKUPS = "gather", "scatter"
"""JAX's names of lookups, and of updates at places, begin so."""
_ASYNCHRONOUS = {
    "all-gather": ("xla_enable_async_all_gather",),
    "all-reduce": ("xla_enable_async_all_reduce", "xla_tpu_enable_async_collective_fusion_fuse_all_reduce"),
    "all-to-all": ("xla_tpu_enable_async_all_to_all",),
    "collective-permute": ("xla_enable_async_collective_permute",),
}
"""Options with which XLA for TPUs makes an operation asynchronous, on some of them."""


def asynchronous(op: str, platform: str) -> Iterator[ScheduleCandidate]:
    """Options of a platform's compiler with which collectives of an operation may overlap."""
    if platform == "tpu":
        sets = [_ASYNCHRONOUS.get(op, ())]
        if op in ("all-gather", "all-reduce", "reduce-scatter"):
            sets.append((f"xla_tpu_enable_sparse_core_collective_offload_{op.replace('-', '_')}",))
    else:
        sets = [("xla_gpu_enable_latency_hiding_scheduler",)] * (platform != "cpu")
    return (ScheduleCandidate(options=tuple((name, "true") for name in names)) for names in sets if names)


def splits(one: SplitArgument, mesh: Mesh) -> Iterator[PartitionSpec]:
    """The ways to split one dimension of an array evenly, those over the most devices first."""
    axes = [axis for axis, size in mesh.shape.items() if size > 1]
    for together in (*([axes] if len(axes) > 1 else []), *([axis] for axis in axes)):
        for dim, size in enumerate(one.shape):
            if size % mesh.group_size(together) == 0:
                dims: list[tuple[str, ...]] = [()] * len(one.shape)
                dims[dim] = tuple(together)
                yield PartitionSpec(tuple(dims))


def candidates(
    reason: Reason, step: TrainStep, mesh: Mesh, entry: CollectiveEntry | None = None
) -> tuple[ShardingCandidate, ...]:
    """The changes to try, the likeliest first; none if expected. A reason without a meeting needs `entry`."""
    meeting = reason.meeting
    over = meeting.axes if meeting is not None else entry.collective.axes if entry is not None else ()
    if reason.is_expected:
        return ()
    # Arguments may be on another of the program's meshes.
    known = {*mesh.axis_names}
    arguments = [
        one
        for one in step.program.arguments
        if all(axis.partition(":")[0] in known for dim in one.spec.dims for axis in dim)
    ]
    if meeting is not None:
        own = [*_candidates(meeting, arguments, mesh)]
    elif entry is not None and program_place(entry.collective.op_name).primitive.startswith(LOOKUPS):
        # Shardy leaves it to XLA how a lookup is divided.
        rows = entry.collective.operand_shape[1:]
        own = [*_moved([one for one in arguments if one.shape[1:] == rows], over, mesh)]
    elif reason.kind == "contraction":
        own = []
    else:
        return ()
    lost = step.lost_batch() if {*over} & step.batch_axes else None
    kept = [] if lost is None else [*_kept_batch(lost, step.batch_axes)]
    return tuple(dict.fromkeys([*kept, *own]))[:MOST]


def _kept_batch(lost: Meeting, batch: frozenset[str]) -> Iterator[ShardingCandidate]:
    """The result of the operation that wants the batch whole, split as the batch is."""
    dims = tuple(tuple(axis for axis in own if axis in batch) for own in lost.before.dims)
    made = lost.consumer_shape
    same = len(made) >= len(dims) and all(
        not own or size == other for own, size, other in zip(dims, lost.shape, made, strict=False)
    )
    if same and lost.consumer_name:
        spec = PartitionSpec((*dims, *((),) * (len(made) - len(dims))))
        yield ShardingCandidate(
            spec, made_by=lost.consumer_name, opcode=lost.consumer, shape=made, source=lost.sources[1]
        )


def _candidates(
    meeting: Meeting, arguments: Sequence[SplitArgument], mesh: Mesh
) -> Iterator[ShardingCandidate]:
    after = meeting.after
    if meeting.kind == "reshard":
        if meeting.constraint and meeting.then != "return":
            yield ShardingCandidate(after, source=meeting.sources[1], removed=meeting.constraint)
        if meeting.argument:
            for one in arguments:
                if one.name == meeting.argument:
                    kept = one.spec.dims[: len(one.shape) - len(meeting.shape)]
                    yield of_argument(one, PartitionSpec((*kept, *after.dims)), mesh)
        else:
            made = meeting.producer_name, meeting.producer, meeting.shape
            yield ShardingCandidate(after, None, *made, source=meeting.sources[0])
    yield from _moved(arguments, meeting.axes, mesh)


def _moved(
    arguments: Sequence[SplitArgument], axes: Sequence[str], mesh: Mesh
) -> Iterator[ShardingCandidate]:
    """Arguments, the smallest first, that some axes split no longer, or in another dimension."""
    moved = dict.fromkeys(axis.partition(":")[0] for axis in axes)
    for one in sorted(arguments, key=lambda one: array_bytes(one.shape, one.dtype)):
        taken = tuple(axis for axis in moved if axis in one.spec.axes)
        if one.spec.unreduced or not taken:
            continue
        rest = tuple(tuple(axis for axis in dim if axis not in moved) for dim in one.spec.dims)
        yield of_argument(one, PartitionSpec(rest), mesh)
        for dim, own in enumerate(rest):
            other = PartitionSpec((*rest[:dim], (*own, *taken), *rest[dim + 1 :]))
            if other != one.spec and one.shape[dim] % mesh.group_size((*own, *taken)) == 0:
                yield of_argument(one, other, mesh)


def even_constraints(one: ShardingCandidate, mesh: Mesh) -> Iterator[ShardingCandidate]:
    """For a constraint whose axes do not divide its value, its removal, then those that split other
    dimensions by these axes evenly."""
    parts = one.spec.parts(mesh)
    kept = [
        own if size % count == 0 else ()
        for own, size, count in zip(one.spec.dims, one.shape, parts, strict=True)
    ]
    moved = tuple(axis for axis in one.spec.axes if not any(axis in own for own in kept))
    yield one
    for dim, own in enumerate(kept):
        if one.shape[dim] % mesh.group_size((*own, *moved)) == 0:
            spec = PartitionSpec((*kept[:dim], (*own, *moved), *kept[dim + 1 :]))
            yield replace(one, spec=spec, before=one.spec)


def of_argument(one: SplitArgument, spec: PartitionSpec, mesh: Mesh) -> ShardingCandidate:
    before, after = (array_bytes(shard_shape(one.shape, spec, mesh), one.dtype) for spec in (one.spec, spec))
    return ShardingCandidate(spec, one, memory_bytes=after - before)


def hideable(
    module: HloModule, entries: Iterable[CollectiveEntry], timeline: ProgramTimeline
) -> dict[CollectiveEntry, float]:
    """The seconds of all runs that other work could hide of the time for which a device waits for each
    collective: as long as the work takes that does not depend on it, and is not beside it yet."""
    assert module.index is not None
    lines = dict(zip((one.name for one in module.collectives), module.lines, strict=True))
    work = {op.name: op.seconds or 0.0 for op in timeline.ops if timeline.lanes[op.lane] == COMPUTE}
    hidden = {}
    for entry in entries:
        if entry.all_exposed and entry.seconds is not None and entry.exposed is not None:
            others = independent(module.index, lines[entry.collective.name])
            beside = sum(work.get(other.name, 0.0) for other in others) - (entry.seconds - entry.exposed)
            hidden[entry] = max(0.0, min(entry.exposed, beside)) * (entry.runs or 0)
    return {entry: seconds for entry, seconds in hidden.items() if seconds}
