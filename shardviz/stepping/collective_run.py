"""A collective run by its schedule: its rounds, its numbers, what they cost, and JAX's results beside."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from shardviz.collectives.frames import Frames
from shardviz.collectives.operation import Operation
from shardviz.collectives.schedule import LowerBound, Phase, Schedule, Sends
from shardviz.collectives.trace import can_be_kept
from shardviz.collectives.values import Ints
from shardviz.collectives.verification import VerificationResult, verify
from shardviz.errors import CompilerError, QuestionError
from shardviz.hardware.collective_time import RAGGED, CollectiveTime
from shardviz.hardware.group_links import Links, group_links
from shardviz.hardware.machine import PlacedMesh
from shardviz.hardware.timelines import (
    CumulativeCost,
    NotCompared,
    Timeline,
    comparison,
    in_best_pieces,
    timeline,
)
from shardviz.reports.target_result import ExecutionResult
from shardviz.sharding import Layout, Mesh, array_bytes
from shardviz.sharding.array import BITS
from shardviz.stepping.question import CollectiveQuestion, counted_shards, held

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_SENDS = 2**18
MAX_NUMBERS = 2**19
"""The most that one JSON document may list."""
MAX_SHOWN_DEVICES = 512
"""On more devices numbers are not looked at one by one."""
MAX_COMPARED = 2**16
"""Members of the largest group for which algorithms are compared: beyond it that takes minutes."""


@dataclass(frozen=True)
class CollectiveRun:
    """A question and its links; the answers are worked out when they are first looked at."""

    question: CollectiveQuestion
    links: Links

    @property
    def operation(self) -> Operation:
        return self.question.operation

    @property
    def schedule(self) -> Schedule:
        return self.question.schedule

    @property
    def mesh(self) -> Mesh:
        return self.question.layout.mesh

    @cached_property
    def frames(self) -> Frames:
        """Every state, with numbers where the question has them. Raises `QuestionError` for too many."""
        return Frames(self.schedule, self.operation, self.mesh, self.question.shards)

    @cached_property
    def followed(self) -> bool:
        return can_be_kept(self.schedule)

    @cached_property
    def bytes(self) -> int:
        layout = self.question.layout
        shape = self.operation.larger(layout.shard_shape, self._group_size)
        return array_bytes(shape, self.operation.moved_dtype(layout.array.dtype))

    @cached_property
    def chunk_bytes(self) -> int | Ints:
        return self._chunk_bytes(self.schedule)

    @cached_property
    def timeline(self) -> Timeline:
        return timeline(self.schedule, self.chunk_bytes, self.used_links.topology, self.used_links.spec)

    @cached_property
    def used_links(self) -> Links:
        """The links with the start and the bandwidth that the machine's price of the collective has."""
        return self.links.reached_by(self.closed_form)

    @cached_property
    def cost(self) -> CumulativeCost | None:
        """The cost of the rounds until any one; None where they are too many to add up."""
        try:
            return CumulativeCost(self.timeline)
        except QuestionError:
            return None

    @cached_property
    def closed_form(self) -> CollectiveTime:
        """The price of the collective on the links as they lie, independent of the algorithm."""
        pattern = self.schedule.pattern
        op = pattern.kind.replace("_", "-") if "_" in pattern.kind else f"collective-{pattern.kind}"
        op = op if self.operation.even else RAGGED
        return self.links.collective_time(op, self.bytes, pattern.perm if pattern.kind == "permute" else None)

    @cached_property
    def bound(self) -> LowerBound:
        layout = self.question.layout
        return self.operation.least(layout.shard_shape, layout.array.dtype, self._group_size)

    @cached_property
    def rows(self) -> tuple[Timeline | NotCompared, ...]:
        """All algorithms for the same question, this one among them. Raises `QuestionError` for a large
        group."""
        if self._group_size > MAX_COMPARED:
            most = f"algorithms are compared over up to {MAX_COMPARED:,} devices"
            hint = f"take up to {MAX_COMPARED:,}: a smaller mesh, or fewer axes in --axis"
            raise QuestionError(f"{most}, and the group has {self._group_size:,}", hint)
        links = self.used_links
        rows = comparison(self.schedule.pattern, self._chunk_bytes, links.topology, links.spec)
        # This one as it is asked for, with its own pieces.
        mine = (self.schedule.algorithm, Timeline)
        return tuple(self.timeline if (row.algorithm, type(row)) == mine else row for row in rows)

    def unlisted(self, number: int | None = None) -> str:
        """The reason why a document cannot list every number and every send, as a clause; empty where it
        can."""
        schedule, devices = self.schedule, self.mesh.size
        if self.question.shards is not None and held(self.question.layout, self.operation) > MAX_NUMBERS:
            return f"every number, and {devices:,} devices hold more than {MAX_NUMBERS:,}"
        every: Iterable[tuple[Sends, int]] = schedule.different_rounds()
        if number is not None:
            every = [(schedule.round(number), 1)] if number else []
        sends = 0
        for sent, rounds in every:
            sends += devices // self._group_size * len(sent) * sent.span * rounds
            if sends > MAX_SENDS:
                many = f"{schedule.algorithm} on {devices:,} devices has more than {MAX_SENDS:,}"
                return f"every send, and {many}"
        return ""

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        return self.mesh.groups(self.operation.axes)

    @cached_property
    def places(self) -> dict[int, tuple[int, int]]:
        return {
            position: (number, member)
            for number, group in enumerate(self.groups)
            for member, position in enumerate(group)
        }

    def held_chunks(self, member: int, ended: bool) -> Ints:
        """The chunks with which a member starts, or with which it has to end."""
        members, chunks = self._starts_and_ends[ended]
        return chunks[members.searchsorted(member) : members.searchsorted(member + 1)]

    @cached_property
    def final(self) -> NDArray[Any] | None:
        """`shard_map`'s result; None without numbers or positions, and where scalars cannot be joined."""
        after, positions = self.frames.after, self.question.final_positions
        if after is None or not positions or (after.ndim == 1 and len(positions) > 1):
            return None
        chosen = after[list(positions)]
        return chosen[0] if len(chosen) == 1 else np.concatenate(chosen)

    def compared(self, ran: ExecutionResult) -> Verdict:
        return compare_with_jax(self.question, self.frames, ran)

    @property
    def result_dtype(self) -> str:
        return self.question.layout.array.dtype if self.frames.cuts is None else self.frames.cuts.dtype

    def phase_name(self, phase: Phase) -> str:
        """The work of a phase's rounds together, and along which mesh axes: "all-gather along X"."""
        axes = ", ".join(self.operation.axes[axis] for axis in phase.along)
        return f"{phase.name} along {axes}" if axes else phase.name

    @property
    def _group_size(self) -> int:
        return self.schedule.pattern.group_size

    def _chunk_bytes(self, schedule: Schedule) -> int | Ints:
        layout = self.question.layout
        elements = self.operation.chunk_sizes(layout.shard_shape, self._group_size, schedule.chunks)
        return -(-elements * BITS[self.operation.moved_dtype(layout.array.dtype)] // 8)

    @cached_property
    def _starts_and_ends(self) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
        pattern, chunks = self.schedule.pattern, self.schedule.chunks
        return pattern.starts(chunks), pattern.ends(chunks)


def run_on(
    question: CollectiveQuestion,
    placed: PlacedMesh,
    topology: str | None = None,
    latency: str | None = None,
    bandwidth: str | None = None,
) -> CollectiveRun:
    """The question on the links of a machine; texts stand for what the machine has. Raises as
    `group_links`."""
    axes, dims = question.operation.axes, question.schedule.pattern.dims
    return CollectiveRun(question, group_links(placed, axes, dims, topology, latency, bandwidth))


def pipelined(run: CollectiveRun) -> CollectiveRun:
    """The run in as many pieces as take the least time on its links, where its algorithm has a pipeline."""
    best = in_best_pieces(run.timeline, run._chunk_bytes)
    if best.schedule.chunks == run.schedule.chunks:
        return run
    return CollectiveRun(replace(run.question, schedule=best.schedule), run.links)


@dataclass(frozen=True)
class PreparedRun:
    """A collective ready to be played: `run` as it is asked for, `drawn` with numbers, maybe of a smaller
    array."""

    run: CollectiveRun
    drawn: CollectiveRun


def prepare_run(question: CollectiveQuestion, links: Links) -> PreparedRun:
    """Work out all that every frame needs. Raises `ShardvizError`."""
    run = CollectiveRun(question, links)
    small = small_example(question)
    drawn = run if small is None else CollectiveRun(small, links)
    try:
        _prepare(drawn)
    except QuestionError:
        # More numbers than fit: who holds which chunk, or who sends to whom, can still be told.
        drawn = CollectiveRun(replace(question, shards=None), links)
        if drawn.followed:
            _prepare(drawn)
    if run.cost is not None:
        _ = run.timeline.seconds
    return PreparedRun(run, drawn)


def _prepare(run: CollectiveRun) -> None:
    for number in (0, run.schedule.rounds):
        for piece in run.frames[number].pieces(0)[:1]:
            _ = (piece.count, piece.values)
    _ = run.frames[0].needed(0)
    _ = run.final


def small_example(question: CollectiveQuestion) -> CollectiveQuestion | None:
    """The same collective by the same schedule, on the smallest array of which no chunk is empty. It has
    numbers. None where the question has numbers of its own, or a smaller array would have none either."""
    layout, schedule = question.layout, question.schedule
    if question.shards is not None or layout.mesh.size > MAX_SHOWN_DEVICES:
        return None
    pieces = schedule.pattern.pieces(schedule.chunks)
    smallest = question.operation.smallest_shard(schedule.pattern.group_size, pieces)
    rank = len(layout.shard_shape)
    if len(smallest) > rank:
        return None
    shard = [*smallest, *(1,) * (rank - len(smallest))]
    shape = tuple(size * parts for size, parts in zip(shard, layout.parts, strict=True))
    small = Layout(replace(layout.array, shape=shape), layout.mesh)
    if math.prod(shape) > layout.array.elements:
        return None
    try:
        question.operation.check(small.shard_shape, layout.array.dtype, schedule.pattern.group_size)
    except QuestionError:
        return None
    shards = counted_shards(small, question.operation)
    smaller = replace(question, layout=small, shards=shards, counted=True, is_smaller=True)
    return None if shards is None else smaller


@dataclass(frozen=True)
class Verdict:
    """The same collective as JAX ran it, and its values beside ours. `smaller` are the elements of the array
    that stood for the one asked for, 0 where JAX ran that."""

    ran: ExecutionResult
    verification: VerificationResult
    smaller: int = 0

    @property
    def agrees(self) -> bool:
        return self.verification.verdict != "different"


def compare_with_jax(question: CollectiveQuestion, frames: Frames, ran: ExecutionResult) -> Verdict:
    """A comparison of JAX's results with ours. `frames` are those of the question, with its numbers. Raises
    `CompilerError` where JAX has no results."""
    if ran.shards is None:
        raise CompilerError(ran.error, ran.hint)
    before, after = frames.before, frames.after
    assert before is not None
    assert after is not None
    result = verify(question.operation, question.layout.mesh, before, after, ran.shards)
    return Verdict(ran, result, question.layout.array.elements if question.is_smaller else 0)
