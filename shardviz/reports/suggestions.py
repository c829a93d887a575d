"""Changes that avoid a collective, tried on Shardy and on the target's own compiler before they are said.

A candidate changes the sharding of an argument, or constrains the value that is moved, or the one from which
on the batch is split no longer. It is kept where Shardy then needs less in all, has no such meeting any more,
and no device multiplies more than before: then every device would do the same work in place of the
collective. It is said where the target's program sends less, too, and saves more bytes than it takes memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shardviz.hlo.mlir.reshards import Meeting, SplitArgument
from shardviz.reports.train_step import TrainStep
from shardviz.reports.why import Reason
from shardviz.sharding import Mesh, PartitionSpec, array_bytes, shard_shape

MOST = 8
"""Candidates that are tried for one collective."""
ENOUGH = 0.95
"""The part of the most that can be saved for which less memory is preferred."""
MARGIN = 1.001
"""How much more a device may multiply: some sizes are rounded up."""
LEAST_PART = 0.01
"""The part of all bytes that a change saves at least."""


@dataclass(frozen=True)
class ShardingCandidate:
    """A change: an argument, or else the result of the operation `made_by`, is split as `spec`.

    `made_by` is JAX's name of an operation, `opcode` its name in StableHLO; `memory_bytes` is what the
    argument takes more on each device.
    """

    spec: PartitionSpec
    argument: SplitArgument | None = None
    made_by: str = ""
    opcode: str = ""
    shape: tuple[int, ...] = ()
    memory_bytes: int = 0

    @property
    def code(self) -> str:
        """The change as it is written."""
        if self.argument is not None:
            return f"{self.argument.name}: {self.spec} in place of {self.argument.spec}"
        return f"x = jax.lax.with_sharding_constraint(x, {self.spec})"


@dataclass(frozen=True)
class Outcome:
    """A program as Shardy leaves it: bytes that a device sends in all, what meets, and its
    multiplications."""

    wire_bytes: int
    meetings: tuple[Meeting, ...]
    products: int


@dataclass(frozen=True)
class Suggestion:
    """A candidate that a `target` has been asked about; `saved_bytes` are sent less by a device, in all, and
    `memory_bytes` is what it takes more of a device's memory."""

    candidate: ShardingCandidate
    saved_bytes: int
    memory_bytes: int = 0
    target: str = "shardy"

    def is_worth(self, sent_bytes: int) -> bool:
        """Return whether it saves a part of the bytes that are sent, and more than it takes of memory."""
        return self.saved_bytes >= LEAST_PART * sent_bytes and self.memory_bytes <= self.saved_bytes


def candidates(reason: Reason, step: TrainStep, mesh: Mesh) -> tuple[ShardingCandidate, ...]:
    """The changes to try, the most likely first; none for what is expected."""
    if reason.meeting is None or reason.is_expected:
        return ()
    # Arguments may be on another of the program's meshes.
    known = {*mesh.axis_names}
    arguments = [
        one
        for one in step.program.arguments
        if all(axis.partition(":")[0] in known for dim in one.spec.dims for axis in dim)
    ]
    lost = step.lost_batch() if {*reason.meeting.axes} & step.batch_axes else None
    kept = [] if lost is None else [*_kept_batch(lost, step.batch_axes)]
    found = dict.fromkeys([*kept, *_candidates(reason.meeting, arguments, mesh)])
    return tuple(found)[:MOST]


def _kept_batch(lost: Meeting, batch: frozenset[str]) -> Iterator[ShardingCandidate]:
    """The result of the operation that wants the batch whole, split as the batch is."""
    dims = tuple(tuple(axis for axis in own if axis in batch) for own in lost.before.dims)
    made = lost.consumer_shape
    same = len(made) >= len(dims) and all(
        not own or size == other for own, size, other in zip(dims, lost.shape, made, strict=False)
    )
    if same and lost.consumer_name:
        spec = PartitionSpec((*dims, *((),) * (len(made) - len(dims))))
        yield ShardingCandidate(spec, made_by=lost.consumer_name, opcode=lost.consumer, shape=made)


def _candidates(
    meeting: Meeting, arguments: Sequence[SplitArgument], mesh: Mesh
) -> Iterator[ShardingCandidate]:
    if meeting.kind == "reshard":
        if meeting.argument:
            for one in arguments:
                if one.name == meeting.argument:
                    kept = one.spec.dims[: len(one.shape) - len(meeting.shape)]
                    yield _of_argument(one, PartitionSpec((*kept, *meeting.after.dims)), mesh)
        else:
            yield ShardingCandidate(
                meeting.after, made_by=meeting.producer_name, opcode=meeting.producer, shape=meeting.shape
            )
    moved = set(meeting.axes)
    by_size = sorted(arguments, key=lambda one: array_bytes(one.shape, one.dtype))
    for one in by_size:
        if not one.spec.unreduced and any(moved & set(dim) for dim in one.spec.dims):
            rest = tuple(tuple(axis for axis in dim if axis not in moved) for dim in one.spec.dims)
            yield _of_argument(one, PartitionSpec(rest), mesh)
            for dim, own in enumerate(rest):
                taken = tuple(axis for axis in meeting.axes if any(axis in old for old in one.spec.dims))
                other = PartitionSpec((*rest[:dim], (*own, *taken), *rest[dim + 1 :]))
                if other != one.spec and one.shape[dim] % mesh.group_size((*own, *taken)) == 0:
                    yield _of_argument(one, other, mesh)


def _of_argument(one: SplitArgument, spec: PartitionSpec, mesh: Mesh) -> ShardingCandidate:
    before, after = (array_bytes(shard_shape(one.shape, each, mesh), one.dtype) for each in (one.spec, spec))
    return ShardingCandidate(spec, one, memory_bytes=after - before)


def suggestion(
    candidate: ShardingCandidate, meeting: Meeting, before: Outcome, after: Outcome
) -> Suggestion | None:
    """The candidate, where Shardy says that it helps."""
    saved = before.wire_bytes - after.wire_bytes
    key = _key(meeting)
    gone = sum(_key(each) == key for each in after.meetings) < sum(
        _key(each) == key for each in before.meetings
    )
    if saved <= 0 or not gone or after.products > before.products * MARGIN:
        return None
    return Suggestion(candidate, saved, candidate.memory_bytes)


def best(found: Sequence[Suggestion]) -> Suggestion:
    """The one that takes the least memory of those that save about as much as any."""
    most = max(each.saved_bytes for each in found)
    enough = [each for each in found if each.saved_bytes >= ENOUGH * most]
    return min(enough, key=lambda each: (each.memory_bytes, -each.saved_bytes))


def _key(meeting: Meeting) -> tuple[object, ...]:
    return meeting.kind, meeting.axes, meeting.shape, meeting.before, meeting.after, meeting.consumer_name
