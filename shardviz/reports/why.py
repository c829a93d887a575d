"""Why a collective is there: the two shardings that met at its place, and what kind of meeting that was.

The compiler inserts collectives where a value is split in one way and an operation wants it in another, and
where a dimension that is summed over is split. Shardy's own text, before any collective is in it, has each of
these places (`hlo/mlir/reshards.py`); a collective of the compiled program belongs to the one with its axes,
its kind, JAX's name and its size. Without that text its shapes and groups tell what moves, and not why.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePath
from typing import Literal

from shardviz.hlo.collective import Collective
from shardviz.hlo.named_scopes import program_place
from shardviz.reports.alike import AlikeEntries, common_name, numberless
from shardviz.reports.entries import CollectiveEntry
from shardviz.reports.explicit_reshards import ARGUMENT, ExplicitReshards, Meeting
from shardviz.reports.train_step import TrainStep
from shardviz.sharding import Mesh, shard_shape
from shardviz.units import human_bytes

ReasonKind = Literal["contraction", "gradient", "parameter", "constraint", "result", "reshard", "unknown"]
CONTRACTIONS = frozenset(("dot_general", "dot", "convolution"))
CONSTRAINTS = frozenset(("sharding_constraint", "reshard"))
"""JAX's names of operations that say how a value is split."""
LEAST = 2.0
"""Points for names and sizes from which on a collective and a meeting belong together."""
_MOVES = frozenset(("all-gather", "all-to-all", "collective-permute", "ragged-all-to-all"))


@dataclass(frozen=True)
class Reason:
    """Why one collective is there.

    A "contraction" sums over a split dimension, a "gradient" sums a parameter's gradient over the devices
    that hold parts of the batch, a "parameter" is stored in parts and wanted whole, a "constraint" and a
    "result" are split as the program says, and in a "reshard" two operations want a value in two ways. Where
    the kind is "unknown" there is no `meeting`, and `words` say what shapes and groups tell. It `is_expected`
    where it is proved to be there by design (`train_step`).
    """

    kind: ReasonKind
    words: str
    meeting: Meeting | None = None
    is_expected: bool = False


@dataclass(frozen=True)
class AlikeReasons(AlikeEntries):
    """Collectives of one operation over the same axes that are there for reasons in the same words, but for
    numbers such as a layer's; `reasons` are those of the entries, each once."""

    reasons: tuple[Reason, ...]

    @property
    def sources(self) -> tuple[str, ...]:
        """The lines of the user's program that they come from, each once."""
        return tuple(dict.fromkeys(filter(None, (each.collective.source for each in self.entries))))


def alike_reasons(told: Iterable[tuple[CollectiveEntry, Reason]]) -> tuple[AlikeReasons, ...]:
    """The entries in groups of one reason, in the order of each group's first."""
    found: dict[tuple[object, ...], list[tuple[CollectiveEntry, Reason]]] = {}
    for entry, reason in told:
        met = reason.meeting
        # A number is a layer's, where it is not of the shardings; where nobody knows these, a dimension's.
        same = (reason.words,) if met is None else (numberless(reason.words), met.before, met.after)
        key = entry.collective.op, entry.collective.axes, entry.phase, same
        found.setdefault(key, []).append((entry, reason))
    return tuple(
        AlikeReasons(
            tuple(entry for entry, _ in those),
            common_name(reason.words for _, reason in those),
            tuple(dict.fromkeys(reason for _, reason in those)),
        )
        for those in found.values()
    )


def reasons(
    entries: Iterable[CollectiveEntry], mesh: Mesh | None, found: ExplicitReshards | None = None
) -> tuple[Reason, ...]:
    """The reason of each entry; `found` is the same program with explicit reshards, where its StableHLO is at
    hand."""
    step = TrainStep(found or ExplicitReshards())
    return tuple(_reason(each, step, mesh) for each in entries)


def _reason(entry: CollectiveEntry, step: TrainStep, mesh: Mesh | None) -> Reason:
    meeting = None if mesh is None else meeting_of(entry, step.program.meetings, mesh)
    if meeting is None and entry.gradient_of:
        return Reason("gradient", _of_gradient(entry.collective.axes))
    if meeting is None:
        return Reason("unknown", _of_shapes(entry.collective))
    kind = _kind(entry, meeting, step)
    is_expected = (kind == "gradient" and step.sums_once(meeting, entry.runs)) or (
        kind == "parameter" and step.gathers_parameter(entry.argument, meeting, entry.runs)
    )
    return Reason(kind, _words(kind, entry, meeting, step), meeting, is_expected)


def lost_batch(told: Iterable[tuple[CollectiveEntry, Reason]], step: TrainStep) -> str:
    """A sentence on the place from which on the batch is split no longer, where forward matmuls therefore sum
    over its axes, and more than what is sent by design; "" where that is not certain."""
    lost = step.lost_batch()
    if lost is None:
        return ""
    source, summed, by_design = "", 0, 0
    for entry, reason in told:
        meeting, sent = reason.meeting, entry.all_wire_bytes or entry.collective.wire_bytes
        # A collective named after another operation is matched by its size, and stands elsewhere.
        if meeting == lost and entry.collective.op_name in (lost.consumer_name, lost.producer_name):
            source = f" ({PurePath(entry.collective.source).name})" if entry.collective.source else ""
        if reason.is_expected:
            by_design += sent
        elif meeting is not None and reason.kind == "contraction" and entry.phase == "forward":
            summed += sent * (meeting.producer in CONTRACTIONS and bool({*meeting.axes} & step.batch_axes))
    if summed <= by_design:
        return ""
    axes = " and ".join(sorted(step.batch_axes))
    stored = [
        name for name, one in step.state.items() if step.batch_axes & {*chain.from_iterable(one.spec.dims)}
    ]
    place = _operation(lost.consumer, lost.consumer_name)
    split = f"FSDP does not happen: {stored[0]} and others are split over {axes}, and " if stored else ""
    return (
        f"{split}the batch stops being sharded over {axes} at {place}{source}: matmuls sum activations "
        f"over {axes}, of which a device sends {human_bytes(summed)}"
    )


def _of_gradient(axes: Sequence[str]) -> str:
    return f"a gradient, of which each device along {' and '.join(axes) or 'its groups'} holds a partial sum"


def meeting_of(entry: CollectiveEntry, found: Sequence[Meeting], mesh: Mesh) -> Meeting | None:
    """The meeting that fits a collective best; None where none has its axes, and its name or its size."""
    collective = entry.collective
    axes = {axis.partition(":")[0] for axis in collective.axes}
    best, score = None, 0.0
    for meeting in found:
        own = {axis.partition(":")[0] for axis in meeting.axes}
        if not axes or not _is_of_kind(entry, meeting) or not axes <= own:
            continue
        if not _axes_of(meeting) <= set(mesh.axis_names):
            # It is on another of the program's meshes.
            continue
        size = _size_points(collective, meeting, mesh)
        if not size and entry.argument and meeting.argument not in ("", entry.argument):
            continue
        points = _likeness(collective.op_name or collective.source, meeting) + size
        points += (axes == own) * 0.5 + (meeting.argument != "" and meeting.argument == entry.argument)
        if points > score and points >= LEAST:
            best, score = meeting, points
    return best


def _axes_of(meeting: Meeting) -> set[str]:
    """The mesh axes that its shardings name."""
    dims = (*meeting.before.dims, *meeting.after.dims)
    return {axis.partition(":")[0] for dim in dims for axis in dim} | {
        axis.partition(":")[0] for axis in meeting.axes
    }


def _is_of_kind(entry: CollectiveEntry, meeting: Meeting) -> bool:
    collective = entry.collective
    # A matmul in steps sends a parameter's parts in permutes, and the sums of a gradient, of no argument.
    in_steps = collective.op == "collective-permute" and not entry.argument and entry.phase == "backward"
    if meeting.kind == "sum":
        return in_steps or collective.op in ("all-reduce", "reduce-scatter")
    if in_steps and meeting.argument:
        return False
    dims = [*zip(meeting.before.dims, meeting.after.dims, strict=True)]
    if collective.op == "all-to-all" and all(set(new) <= set(old) for old, new in dims):
        # Nothing is cut in another way: it is gathered.
        return False
    # A reshard that only cuts further sends nothing.
    return collective.op in _MOVES and any(new[: len(old)] != old for old, new in dims)


def _likeness(op_name: str, meeting: Meeting) -> float:
    """2 for the name of an operation on one of both sides, less for one around it."""
    if not op_name:
        return 0.0
    op_name = op_name.partition(";")[0]
    names = meeting.name, meeting.producer_name, meeting.consumer_name
    if op_name in names:
        return 2.0
    mine, places = program_place(op_name), [program_place(name) for name in names if name]
    same = [each for each in places if each.phase == mine.phase]
    return max(((1.5 if each.primitive == mine.primitive else 0.5) for each in same), default=0.0)


def _size_points(collective: Collective, meeting: Meeting, mesh: Mesh) -> float:
    """3 where a device's part of the value before or after it has the same dimensions in some order, 2 where
    it has as many elements."""
    pairs = [
        (collective.operand_shape, shard_shape(meeting.shape, meeting.before, mesh)),
        (collective.result_shape, shard_shape(meeting.shape, meeting.after, mesh)),
    ]
    if any(_dims(shape) == _dims(part) for shape, part in pairs):
        return 3.0
    # The tuple form of an all-to-all has an array for each device.
    arrays = collective.arrays if collective.op == "all-to-all" else 1
    return 2.0 * any(math.prod(shape) * arrays == math.prod(part) for shape, part in pairs)


def _dims(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(size for size in shape if size > 1))


def _kind(entry: CollectiveEntry, meeting: Meeting, step: TrainStep) -> ReasonKind:
    if meeting.kind == "sum":
        return "gradient" if entry.gradient_of or step.is_gradient(meeting) else "contraction"
    if (entry.argument or meeting.argument) and all(
        set(new) <= set(old) for old, new in zip(meeting.before.dims, meeting.after.dims, strict=True)
    ):
        return "parameter"
    if program_place(meeting.name).primitive in CONSTRAINTS or (
        program_place(meeting.consumer_name).primitive in CONSTRAINTS
    ):
        return "constraint"
    return "result" if meeting.consumer == "return" else "reshard"


def _words(kind: ReasonKind, entry: CollectiveEntry, meeting: Meeting, step: TrainStep) -> str:
    axes = " and ".join(meeting.axes)
    before, after = meeting.before, meeting.after
    made, user = (
        _operation(meeting.producer, meeting.producer_name),
        _operation(meeting.consumer, meeting.consumer_name),
    )
    argument = ""
    if kind == "parameter" or meeting.argument:
        # What the compiled program tells is certain; that of a function's text is the first of its shape.
        argument = entry.argument or meeting.argument
    value = argument or f"the result of {made}"
    if not argument and meeting.producer in (ARGUMENT, "optimization_barrier"):
        value = "a value from outside of this function"
    match kind:
        case "contraction":
            return f"{made} sums over a dimension that is split over {axes}: each device holds a partial sum"
        case "gradient" if step.is_gradient(meeting):
            return f"a gradient, summed over the devices along {axes}, which each hold part of the batch"
        case "gradient":
            return _of_gradient(meeting.axes)
        case "parameter":
            return f"{value} is stored split, as {before}, and {user} wants it as {after}"
        case "constraint":
            return f"{value} is {before}, and the program says {after}"
        case "result":
            return f"{value} is {before}, and is returned as {after}"
        case _:
            return f"{value} is {before}, and {user} wants {after}"


def _operation(opcode: str, name: str) -> str:
    """The words for an operation: the user's scope and JAX's name."""
    place = program_place(name)
    scopes = "/".join(place.scopes[-1:])
    return f"{scopes}/{place.primitive}" if scopes else place.primitive or opcode


def _of_shapes(collective: Collective) -> str:
    """The reason by its shapes and groups, where nobody has the program before it was compiled."""
    axes = " and ".join(collective.axes) or f"groups of {collective.group_size} devices"
    dim, split = collective.dim, collective.split_dim
    match collective.op:
        case "all-gather" if dim is not None:
            return f"dimension {dim} of the value is split over {axes}, and is wanted whole"
        case "all-reduce":
            return f"each device along {axes} holds a partial sum, and all want the total"
        case "reduce-scatter" if dim is not None:
            return f"each device along {axes} holds a partial sum, and wants its part of dimension {dim}"
        case "all-to-all" if dim is not None and split is not None and dim != split:
            return f"dimension {dim} is split over {axes}, and dimension {split} is wanted split instead"
        case "collective-permute":
            return f"devices along {axes} hold other blocks of the value than they want"
        case _:
            return f"the value is split over {axes} in one way, and wanted in another"
