"""Changes that avoid a collective, tried on Shardy and on the target's own compiler before they are said.

A candidate changes the sharding of an argument, or constrains the value that is moved, or the one from which
on the batch is split no longer. It is kept where Shardy then needs less in all, has no such meeting any more,
and no device multiplies more than before: then every device would do the same work in place of the
collective. It is said where the target's program sends less, too, and saves more bytes than it takes memory.

An argument that every device holds whole is split in the ways that divide it: the split is said where the
target's program then takes less memory, by more than it sends more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from shardviz.reports.arrays import ProgramArray, alike_arrays
from shardviz.reports.entries import entries_of
from shardviz.reports.lowered_module import ExplicitReshards, Meeting, ShardingCandidate, SplitArgument
from shardviz.reports.target_program import TargetProgram
from shardviz.reports.why import Reason, TrainStep
from shardviz.sharding import Mesh, PartitionSpec, array_bytes, shard_shape

MOST = 8
"""Candidates that are tried for one collective."""
ENOUGH = 0.95
"""The part of the most that can be saved for which less memory is preferred."""
MARGIN = 1.001
"""How much more a device may multiply: some sizes are rounded up."""
LEAST_PART = 0.01
"""The part of all bytes that a change saves at least."""
MOST_REASONS = 3
"""Meetings for which changes are tried: each try takes as long as Shardy does."""
MOST_REPLICATED = 2
"""Arguments that every device holds whole, for which splits are tried."""
MOST_COMPILED = 2
"""Changes for one meeting that the target compiles, those first that save most on Shardy."""


Outcome = tuple[int, ExplicitReshards]
"""A program as Shardy leaves it: bytes that a device sends in all, and what meets in it."""


@dataclass(frozen=True)
class Suggestion:
    """A candidate that a `target` has been asked about; `saved_bytes` are sent less by a device, in all, and
    `memory_bytes` is what it takes more of a device's memory. On a target with hardware a run takes
    `saved_seconds` less."""

    candidate: ShardingCandidate
    saved_bytes: int
    memory_bytes: int = 0
    target: str = "shardy"
    saved_seconds: float | None = None

    def is_worth(self, sent_bytes: int) -> bool:
        """Return whether it saves a part of the bytes that are sent, and more than it takes of memory."""
        return self.saved_bytes >= LEAST_PART * sent_bytes and self.memory_bytes <= self.saved_bytes


AskChanged = Callable[[str, Sequence[ShardingCandidate]], TargetProgram]
"""Has a target, by its name, compile a program with changes."""


def suggestions(ask: AskChanged, compiled: TargetProgram) -> dict[Reason, Suggestion]:
    """The best change for each of the first reasons of a program that have one.

    A change that Shardy or the target refuses is passed over.
    """
    sent_for = dearest_reasons(compiled)
    if not sent_for:
        return {}
    plain = ask("shardy", ())
    if plain.module is None or plain.mesh is None:
        return {}
    mesh, step = plain.mesh, TrainStep(plain.explicit_reshards)
    before: Outcome = plain.bytes_sent or 0, plain.explicit_reshards
    sent = compiled.bytes_sent or 0
    partitioned: dict[ShardingCandidate, Outcome | None] = {}
    answered: dict[ShardingCandidate, Suggestion | None] = {}

    def on_shardy(change: ShardingCandidate, reason: Reason) -> Suggestion | None:
        if change not in partitioned:
            answer = ask("shardy", (change,))
            outcome = answer.bytes_sent or 0, answer.explicit_reshards
            partitioned[change] = None if answer.module is None else outcome
        after = partitioned[change]
        return None if after is None else suggestion(change, reason.meeting, before, after)

    def on_target(one: Suggestion) -> Suggestion | None:
        if compiled.target == "shardy":
            return one
        if one.candidate not in answered:
            answer = ask(compiled.target, (one.candidate,))
            answered[one.candidate] = _compared(one.candidate, compiled, answer)
        return answered[one.candidate]

    found: dict[Reason, Suggestion] = {}
    looked_at = 0
    told = zip(entries_of(compiled.module), compiled.reasons, strict=True) if compiled.module else ()
    axes = {reason: entry.collective.axes for entry, reason in told}
    for reason, own in sent_for.items():
        changes = candidates(reason, step, mesh, axes[reason])
        # Of what Shardy would not have done so, the saving tells whether it is gone.
        least = own if reason.meeting is None else 0
        known = (
            each
            for each in dict.fromkeys(found.values())
            if each.candidate in changes and each.saved_bytes >= least
        )
        if helps := next((each for each in known if on_shardy(each.candidate, reason)), None):
            found[reason] = helps
        elif changes and looked_at < MOST_REASONS:
            looked_at += 1
            likely = filter(None, (on_shardy(change, reason) for change in changes))
            by_saving = sorted(likely, key=lambda each: -each.saved_bytes)[:MOST_COMPILED]
            tried = filter(None, map(on_target, by_saving))
            if kept := [each for each in tried if each.is_worth(sent) and each.saved_bytes >= least]:
                found[reason] = best(kept)
    return found


def dearest_reasons(program: TargetProgram) -> dict[Reason, int]:
    """The bytes that a device sends for each reason of a program, those of the dearest collectives first;
    contractions over other axes than the batch's are last, since sums of them are seldom avoided without more
    work on each device."""
    if program.module is None or not program.reshards:
        return {}
    batch = TrainStep(program.explicit_reshards).batch_axes
    told = []
    for entry, reason in zip(entries_of(program.module), program.reasons, strict=True):
        is_seldom_avoided = reason.kind == "contraction" and not batch & {*entry.collective.axes}
        told.append((is_seldom_avoided, entry.all_wire_bytes or entry.collective.wire_bytes, reason))
    found: Counter[Reason] = Counter()
    for _, sent, reason in sorted(told, key=lambda one: (one[0], -one[1])):
        found[reason] += sent
    return found


def _compared(candidate: ShardingCandidate, before: TargetProgram, after: TargetProgram) -> Suggestion | None:
    """The bytes that a change saves on a target, and the memory that it takes there."""
    if before.bytes_sent is None or after.bytes_sent is None:
        return None
    memory = candidate.memory_bytes
    if before.memory is not None and after.memory is not None:
        memory = after.memory.peak_bytes - before.memory.peak_bytes
    was, now = before.times().times, after.times().times
    seconds = None if was is None or now is None else was.model.seconds - now.model.seconds
    return Suggestion(candidate, before.bytes_sent - after.bytes_sent, memory, before.target, seconds)


def split_suggestions(ask: AskChanged, compiled: TargetProgram) -> dict[ProgramArray, Suggestion]:
    """For the largest arguments that every device holds whole, of alike ones the first, a split that frees
    more memory than it sends bytes."""
    named = Counter(one.name for one in compiled.explicit_reshards.arguments)
    known = {one.name: one for one in compiled.explicit_reshards.arguments if named[one.name] == 1}
    plain = ask("shardy", ())
    if plain.mesh is None or plain.bytes_sent is None:
        return {}
    mesh, sent = plain.mesh, plain.bytes_sent
    whole = [one for one in compiled.arrays if any(mark.kind == "replicated" for mark in one.marks)]
    found: dict[ProgramArray, Suggestion] = {}
    for group in alike_arrays(one for one in whole if one.name in known)[:MOST_REPLICATED]:
        freed: list[tuple[int, tuple[ShardingCandidate, ...]]] = []
        for spec in islice(_splits(known[group[0].name], mesh), MOST):
            changes = tuple(_of_argument(known[one.name], spec, mesh) for one in group)
            partitioned = ask("shardy", changes)
            if partitioned.bytes_sent is not None:
                more = partitioned.bytes_sent - sent + sum(change.memory_bytes for change in changes)
                freed.append((more, changes))
        tried = []
        for _, changes in sorted(freed, key=lambda one: one[0])[:MOST_COMPILED]:
            one = _compared(changes[0], compiled, ask(compiled.target, changes))
            if one is not None and one.memory_bytes < min(0, one.saved_bytes):
                tried.append(one)
        if tried:
            found[group[0]] = min(tried, key=lambda one: one.memory_bytes - one.saved_bytes)
    return found


def _splits(one: SplitArgument, mesh: Mesh) -> Iterator[PartitionSpec]:
    """The ways to split one dimension of an array evenly, those over the most devices first."""
    axes = [axis for axis, size in mesh.shape.items() if size > 1]
    for together in (*([axes] if len(axes) > 1 else []), *([axis] for axis in axes)):
        for dim, size in enumerate(one.shape):
            if size % mesh.group_size(together) == 0:
                dims: list[tuple[str, ...]] = [()] * len(one.shape)
                dims[dim] = tuple(together)
                yield PartitionSpec(tuple(dims))


def candidates(
    reason: Reason, step: TrainStep, mesh: Mesh, axes: Sequence[str] = ()
) -> tuple[ShardingCandidate, ...]:
    """The changes to try, the most likely first; none for what is expected. `axes` are those of the
    collective, for a reason without a meeting."""
    meeting = reason.meeting
    if reason.is_expected or (meeting is None and reason.kind != "contraction"):
        return ()
    # Arguments may be on another of the program's meshes.
    known = {*mesh.axis_names}
    arguments = [
        one
        for one in step.program.arguments
        if all(axis.partition(":")[0] in known for dim in one.spec.dims for axis in dim)
    ]
    over = axes if meeting is None else meeting.axes
    lost = step.lost_batch() if {*over} & step.batch_axes else None
    kept = [] if lost is None else [*_kept_batch(lost, step.batch_axes)]
    found = dict.fromkeys([*kept, *(_candidates(meeting, arguments, mesh) if meeting is not None else ())])
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
    before, after = (array_bytes(shard_shape(one.shape, spec, mesh), one.dtype) for spec in (one.spec, spec))
    return ShardingCandidate(spec, one, memory_bytes=after - before)


def suggestion(
    candidate: ShardingCandidate, meeting: Meeting | None, before: Outcome, after: Outcome
) -> Suggestion | None:
    """The candidate, where Shardy says that it helps: less is sent, and of the meeting, where it knows it,
    there are fewer."""
    (sent, was), (still_sent, now) = before, after
    left, had = (
        sum(meeting is not None and _key(each) == _key(meeting) for each in reshards.meetings)
        for reshards in (now, was)
    )
    is_there = meeting is not None and left >= had
    if still_sent >= sent or is_there or now.products > was.products * MARGIN:
        return None
    return Suggestion(candidate, sent - still_sent, candidate.memory_bytes)


def best(found: Sequence[Suggestion]) -> Suggestion:
    """The one that takes the least memory of those that save about as much as any."""
    most = max(each.saved_bytes for each in found)
    enough = [each for each in found if each.saved_bytes >= ENOUGH * most]
    return min(enough, key=lambda each: (each.memory_bytes, -each.saved_bytes))


def _key(meeting: Meeting) -> tuple[object, ...]:
    return meeting.kind, meeting.axes, meeting.shape, meeting.before, meeting.after, meeting.consumer_name
