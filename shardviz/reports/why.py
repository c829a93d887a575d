"""Why a collective is there: the two shardings that met at its place, and what kind of meeting that was.

The compiler inserts collectives where a value is split in one way and an operation wants it in another, and
where a dimension that is summed over is split. Shardy's own text, before any collective is in it, has each of
these places (`ExplicitReshards`); a collective of the compiled program belongs to the one with its axes,
its kind, JAX's name and its size. Without that text its shapes and groups tell what moves, and not why.

What a train step has by design is proved by its arguments and its sums. A step returns its state anew and not
its batch: arguments whose types no result has are data, and the axes that split the first split dimension of
all of them split the batch. A sum over these axes while gradients are taken, of an array with a parameter's
dimensions, is a gradient: nothing else contracts the batch. What has no such proof is called nothing."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePath
from typing import Literal

from shardviz.hlo.arguments import pieces_of
from shardviz.hlo.collective import Collective
from shardviz.hlo.named_scopes import program_place
from shardviz.reports.entries import AlikeEntries, CollectiveEntry, common_name, numberless
from shardviz.reports.lowered_module import ARGUMENT, CONSTRAINTS, ExplicitReshards, Meeting, SplitArgument
from shardviz.sharding import Mesh, shard_shape
from shardviz.units import human_bytes

ReasonKind = Literal["contraction", "gradient", "parameter", "constraint", "result", "reshard", "unknown"]
CONTRACTIONS = frozenset(("dot_general", "dot", "convolution"))
SAME_NAME = 2.0
"""Points for a name that is the same; a collective and a meeting that belong together have as many."""
SAME_DIMS = 3.0
"""Points for a device's part with the same dimensions."""


@dataclass(frozen=True)
class Reason:
    """The reason of a collective.

    A "contraction" sums over a split dimension, a "gradient" sums a parameter's gradient over the devices
    that hold parts of the batch, a "parameter" is stored in parts and wanted whole, a "constraint" and a
    "result" are split as the program says, and in a "reshard" two operations want a value in two ways. There
    is no `meeting` where the kind is "unknown", several parameters fit, or the compiler sums what Shardy
    would gather first. It `is_expected` where it is proved to be there by design (`TrainStep`)."""

    kind: ReasonKind
    words: str
    meeting: Meeting | None = None
    is_expected: bool = False


@dataclass(frozen=True)
class AlikeReasons(AlikeEntries):
    """Collectives of one operation and axes whose `reasons` (each once) are alike but for layers' numbers."""

    reasons: tuple[Reason, ...]

    @property
    def sources(self) -> tuple[str, ...]:
        """The lines of the user's program that they come from, each once."""
        return tuple(dict.fromkeys(filter(None, (entry.collective.source for entry in self.entries))))


def alike_reasons(told: Iterable[tuple[CollectiveEntry, Reason]]) -> tuple[AlikeReasons, ...]:
    """The entries in groups of one reason, in the order of each group's first."""
    found: defaultdict[tuple[object, ...], list[tuple[CollectiveEntry, Reason]]] = defaultdict(list)
    for entry, reason in told:
        met = reason.meeting
        # A number is a layer's, where it is not of the shardings; where nobody knows these, a dimension's.
        same = (reason.words,) if met is None else (numberless(reason.words), met.before, met.after)
        found[entry.collective.op, entry.collective.axes, entry.phase, same].append((entry, reason))
    groups = (zip(*those, strict=True) for those in found.values())
    return tuple(
        AlikeReasons(entries, common_name(reason.words for reason in own), tuple(dict.fromkeys(own)))
        for entries, own in groups
    )


def reasons(
    entries: Iterable[CollectiveEntry], mesh: Mesh | None, reshards: ExplicitReshards | None = None
) -> tuple[Reason, ...]:
    """The reason of each entry; `reshards` is the same program with explicit reshards, where it is known."""
    step = TrainStep(reshards or ExplicitReshards())
    return tuple(_reason(entry, step, mesh) for entry in entries)


def _reason(entry: CollectiveEntry, step: TrainStep, mesh: Mesh | None) -> Reason:
    fitting = [] if mesh is None else meetings_of(entry, step.program.meetings, mesh)
    told = []
    for meeting in fitting:
        kind = _kind(entry, meeting, step)
        is_expected = (kind == "gradient" and 0 < step.sums_each(meeting, entry.runs) <= 1) or (
            kind == "parameter" and step.gathers_parameter(entry.argument, meeting, entry.runs)
        )
        told.append(Reason(kind, _words(kind, entry, meeting, step), meeting, is_expected))
    if told and all(_says(entry, reason) == _says(entry, told[0]) for reason in told):
        return told[0]
    # Meetings that fit alike say different things: which of them it was is not known.
    if told and all(reason.kind == "parameter" for reason in told):
        names = " or ".join(dict.fromkeys(meeting.argument for meeting in fitting))
        words = f"{names} is stored split over {' and '.join(entry.collective.axes)}, and is wanted whole"
        return Reason("parameter", words, is_expected=all(reason.is_expected for reason in told))
    if entry.gradient_of:
        return Reason("gradient", _of_gradient(entry.collective.axes))
    one = entry.collective
    is_sum = one.op in ("all-reduce", "reduce-scatter") and one.arrays == 1 and one.axes
    if is_sum and entry.phase == "forward" and program_place(one.op_name).primitive in CONTRACTIONS:
        return Reason("contraction", _of_contraction(_operation("", one.op_name), one.axes))
    return Reason("unknown", _of_shapes(one))


def _says(entry: CollectiveEntry, reason: Reason) -> tuple[object, ...]:
    """The claim of a reason, but for the numbers of layers: of a parameter one of its users will do."""
    met = reason.meeting
    assert met is not None
    if reason.kind == "parameter":
        return reason.kind, entry.argument or met.argument, met.before, met.after
    shardings = () if met.kind == "sum" else (met.before, met.after)
    return reason.kind, *shardings, numberless(reason.words)


def lost_batch(told: Iterable[tuple[CollectiveEntry, Reason]], step: TrainStep) -> str:
    """A sentence on where the batch stops being sharded, if forward matmuls therefore sum over its axes more
    than is sent by design; "" where that is not certain."""
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
        elif reason.kind == "contraction" and entry.phase == "forward":
            is_matmul = meeting is None or meeting.producer in CONTRACTIONS
            over = entry.collective.axes if meeting is None else meeting.axes
            summed += sent * (is_matmul and bool({*over} & step.batch_axes))
    if summed <= by_design:
        return ""
    axes = " and ".join(sorted(step.batch_axes))
    stored = [name for name, one in step.state.items() if step.batch_axes & {*chain(*one.spec.dims)}]
    operation = _operation(lost.consumer, lost.consumer_name)
    split = f"FSDP does not happen: {stored[0]} and others are split over {axes}, and " if stored else ""
    return (
        f"{split}the batch stops being sharded over {axes} at {operation}{source}: matmuls sum activations "
        f"over {axes}, of which a device sends {human_bytes(summed)}"
    )


def _of_contraction(operation: str, axes: Sequence[str]) -> str:
    words = " and ".join(axes)
    return f"{operation} sums over a dimension that is split over {words}: each device holds a partial sum"


def _of_gradient(axes: Sequence[str]) -> str:
    return f"a gradient, of which each device along {' and '.join(axes) or 'its groups'} holds a partial sum"


def meetings_of(entry: CollectiveEntry, meetings: Sequence[Meeting], mesh: Mesh) -> list[Meeting]:
    """The meetings that fit a collective best; none where none has its axes, and its name or its size."""
    points = [_points(entry, meeting, mesh) for meeting in meetings]
    most = max(points, default=0.0)
    if most < SAME_NAME:
        return []
    return [meeting for meeting, own in zip(meetings, points, strict=True) if own == most]


def _points(entry: CollectiveEntry, meeting: Meeting, mesh: Mesh) -> float:
    collective = entry.collective
    axes, own = _whole_axes(collective.axes), _whole_axes(meeting.axes)
    if not axes or not axes <= own or not _is_of_kind(entry, meeting):
        return 0.0
    named = own | _whole_axes(chain(*meeting.before.dims, *meeting.after.dims))
    if not named <= {*mesh.axis_names}:  # it is on another of the program's meshes
        return 0.0
    size = _size_points(collective, meeting, mesh)
    is_argument = meeting.argument != "" and meeting.argument == entry.argument
    if not size and entry.argument and meeting.argument and not is_argument:
        return 0.0
    likeness = _likeness(collective.op_name or collective.source, meeting)
    if size < SAME_DIMS and not is_argument and likeness < SAME_NAME:
        # Another operation of its kind, such as the next matmul, may move as many elements.
        return 0.0
    return likeness + size + (axes == own) * 0.5 + is_argument


def _whole_axes(axes: Iterable[str]) -> frozenset[str]:
    """The mesh axes that some are, or are parts of."""
    return frozenset(axis.partition(":")[0] for axis in axes)


def _is_of_kind(entry: CollectiveEntry, meeting: Meeting) -> bool:
    op = entry.collective.op
    # A matmul in steps sends a parameter's parts in permutes, and the sums of a gradient, of no argument.
    in_steps = op == "collective-permute" and not entry.argument and entry.phase == "backward"
    if meeting.kind == "sum":
        return in_steps or op in ("all-reduce", "reduce-scatter")
    # Where nothing is cut in another way, it is gathered.
    if (in_steps and meeting.argument) or (op == "all-to-all" and _only_gathers(meeting)):
        return False
    # A reshard that only cuts further sends nothing.
    dims = zip(meeting.before.dims, meeting.after.dims, strict=True)
    is_move = op in ("all-gather", "all-to-all", "collective-permute", "ragged-all-to-all")
    return is_move and any(new[: len(old)] != old for old, new in dims)


def _only_gathers(meeting: Meeting) -> bool:
    return all({*new} <= {*old} for old, new in zip(meeting.before.dims, meeting.after.dims, strict=True))


def _likeness(op_name: str, meeting: Meeting) -> float:
    """`SAME_NAME` for the name of an operation on one of both sides, less for another one like it."""
    if not op_name:
        return 0.0
    op_name = op_name.partition(";")[0]
    names = meeting.name, meeting.producer_name, meeting.consumer_name
    if op_name in names:
        return SAME_NAME
    mine, places = program_place(op_name), (program_place(name) for name in names if name)
    same = (other.primitive == mine.primitive for other in places if other.phase == mine.phase)
    return max((1.5 if is_same else 0.5 for is_same in same), default=0.0)


def _size_points(collective: Collective, meeting: Meeting, mesh: Mesh) -> float:
    """`SAME_DIMS` where a device's part, before or after, has these dimensions, 2 for as many elements."""
    shapes = collective.operand_shape, collective.result_shape
    parts = (shard_shape(meeting.shape, spec, mesh) for spec in (meeting.before, meeting.after))
    pairs = [*zip(shapes, parts, strict=True)]
    if any(_dims(shape) == _dims(part) for shape, part in pairs):
        return SAME_DIMS
    # The tuple form of an all-to-all has an array for each device.
    arrays = collective.arrays if collective.op == "all-to-all" else 1
    return 2.0 * any(math.prod(shape) * arrays == math.prod(part) for shape, part in pairs)


def _dims(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(size for size in shape if size > 1))


def _kind(entry: CollectiveEntry, meeting: Meeting, step: TrainStep) -> ReasonKind:
    if meeting.kind == "sum":
        return "gradient" if entry.gradient_of or step.is_gradient(meeting) else "contraction"
    if (entry.argument or meeting.argument) and _only_gathers(meeting):
        return "parameter"
    names = meeting.name, meeting.consumer_name
    if any(program_place(name).primitive in CONSTRAINTS for name in names):
        return "constraint"
    return "result" if meeting.consumer == "return" else "reshard"


def _words(kind: ReasonKind, entry: CollectiveEntry, meeting: Meeting, step: TrainStep) -> str:
    axes = " and ".join(meeting.axes)
    before, after = meeting.before, meeting.after
    made = _operation(meeting.producer, meeting.producer_name)
    user = _operation(meeting.consumer, meeting.consumer_name)
    # What the compiled program tells is certain; that of a function's text is the first of its shape.
    is_told = kind == "parameter" or meeting.argument
    argument = (entry.argument or meeting.argument) if is_told else ""
    value = argument or f"the result of {made}"
    if not argument and meeting.producer in (ARGUMENT, "optimization_barrier"):
        value = "a value from outside of this function"
    match kind:
        case "contraction":
            return _of_contraction(made, meeting.axes)
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


class TrainStep:
    """A program with explicit reshards, maybe a train step; `state` has what it returns anew, by path."""

    def __init__(self, program: ExplicitReshards) -> None:
        self.program = program
        data = [one for one in program.arguments if any(one.spec.dims) and not one.is_returned]
        split = [{*next(filter(None, one.spec.dims))} for one in data]
        self.batch_axes = frozenset(set.intersection(*split)) if split else frozenset()
        self._returned = [one for one in program.arguments if one.is_returned]
        self.state = {one.name: one for one in self._returned}

    def is_gradient(self, meeting: Meeting) -> bool:
        """Return whether a sum is of a parameter's gradient, over axes that split the batch."""
        is_backward = program_place(meeting.name).phase == "backward"
        over_batch = {*meeting.axes} <= self.batch_axes
        return meeting.kind == "sum" and is_backward and over_batch and self._places(meeting.shape) > 0

    @property
    def _gradients(self) -> Iterator[Meeting]:
        return (meeting for meeting in self.program.meetings if self.is_gradient(meeting))

    def sums_each(self, meeting: Meeting, runs: int | None) -> float:
        """The number of sums of gradients like this one for each parameter of its shape: more than 1 where
        every micro-batch does; 0 where that is not known. `runs` are those of a collective for it."""
        key = meeting.axes, _dims(meeting.shape)
        calls = sum(each.calls for each in self._gradients if (each.axes, _dims(each.shape)) == key)
        return calls * (runs or 0) / max(self._places(meeting.shape), 1)

    def gathers_parameter(self, path: str, meeting: Meeting, runs: int | None) -> bool:
        """Return whether the argument at `path` is a parameter that FSDP stores in parts: its gradient is
        summed over the axes over which it is gathered, in a gather that no micro-batch repeats."""
        one, axes = self.state.get(path), {*meeting.axes}
        layers = 0 if one is None else _layers(one, meeting.shape)
        if one is None or runs is None or not 0 < layers >= runs or not axes <= self.batch_axes:
            return False
        summed = (each.shape for each in self._gradients if axes <= {*each.axes})
        return any(_layers(one, shape) == layers for shape in summed)

    def lost_batch(self) -> Meeting | None:
        """The first place at which a value that is split as the batch is, outside of the gradients, is split
        over its axes no longer: from there on every device works on more than its part."""
        for meeting in self.program.meetings:
            before, after = (frozenset(chain(*spec.dims)) for spec in (meeting.before, meeting.after))
            lost = (before - after) & self.batch_axes
            is_backward = program_place(meeting.name).phase == "backward"
            if meeting.kind == "reshard" and lost and not is_backward and meeting.argument not in self.state:
                return meeting
        return None

    def _places(self, shape: Sequence[int]) -> int:
        """The parameters with these dimensions, those of every layer counted where they are stacked."""
        trees: Counter[tuple[str, ...]] = Counter()
        for one in self._returned:
            trees[_tree(one.name)] += _layers(one, shape)
        return min(filter(None, trees.values()), default=0)


def _tree(path: str) -> tuple[str, ...]:
    """The steps to the tree of an argument: parameters and their states in an optimizer have one each."""
    first, *rest = pieces_of(path) or [""]
    return (first, *(step for step in rest[:1] if step.startswith(".") or "param" in step))


def _layers(one: SplitArgument, shape: Sequence[int]) -> int:
    """1 for an argument of these dimensions in any order, their number where it stacks such, else 0."""
    if _dims(one.shape) == _dims(shape):
        return 1
    return one.shape[0] if one.shape and _dims(one.shape[1:]) == _dims(shape) else 0
