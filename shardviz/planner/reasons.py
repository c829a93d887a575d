"""The reason of each step of a plan: one sentence, with the numbers of the case."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from shardviz.planner.problem import Contraction
from shardviz.planner.reshard import Axes, ReshardMove, Shards, State, spec_of, state_of, with_axes
from shardviz.planner.work_split import WorkSplit
from shardviz.sharding import Mesh, ShardedArray, shard_shape

Operand = tuple[ShardedArray, State]
"""An operand with its state before any step."""


@dataclass(frozen=True)
class EinsumChoice:
    """One einsum with what was chosen for it.

    `starts` are the operands' states before any step, `gathered` the names of the arrays that the whole plan
    gathers. `next_input` is the result as the next einsum is given it, None after the last.
    """

    mesh: Mesh
    part: Contraction
    work_split: WorkSplit
    starts: tuple[State, ...]
    gathered: frozenset[str]
    next_input: ShardedArray | None

    def dim_of(self, axis: str) -> str | None:
        """The dimension of the einsum that `axis` splits while the devices compute."""
        return next((dim for dim, axes in self.work_split.assignment.items() if axis in axes), None)

    def start(self, array: ShardedArray) -> State:
        """The state of an operand before any step."""
        pairs = zip(self.part.operands, self.starts, strict=True)
        return next(state for operand, state in pairs if operand is array)

    def others(self, array: ShardedArray) -> list[Operand]:
        """The operands besides `array`, with their states before any step."""
        pairs = zip(self.part.operands, self.starts, strict=True)
        return [(operand, state) for operand, state in pairs if operand is not array]

    def wire_bytes(self, array: ShardedArray, op: str, axes: Axes, state: State) -> int:
        """The bytes that one device would send to gather, or to add, `array` over `axes`, not in `state`."""
        shards = Shards(array.shape, array.dtype, self.mesh.shape, ())
        return shards.move(op, axes, None, state, state).wire_bytes


def explain_einsum(choice: EinsumChoice) -> str:
    """The computation of every device, and its result."""
    part, mesh = choice.part, choice.mesh
    pieces = []
    for operand, state in zip(part.operands, choice.work_split.operands, strict=True):
        pieces.append(f"{operand.name}[{_times(_local(operand, state, mesh))}]")
    doing = (
        f"multiplies its {pieces[0]} by its {pieces[1]}" if len(pieces) == 2 else f"works on its {pieces[0]}"
    )
    pending = choice.work_split.result[1]
    summed = [dim for dim in part.einsum.contracted if choice.work_split.assignment.get(dim)]
    if pending and summed:
        parts = mesh.group_size(axis for dim in summed for axis in choice.work_split.assignment[dim])
        where = " and ".join(summed)
        return (
            f"Every device {doing} without moving a byte, but it sums only its 1/{parts} of {where}: "
            f"the result is a partial sum over {_names(pending)}."
        )
    if pending:
        return f"Every device {doing} without moving a byte; the sum over {_names(pending)} is still pending."
    return f"Every device {doing} and has its piece of {part.result.name}: no byte moves."


def explain_moves(choice: EinsumChoice, array: ShardedArray, moves: Sequence[ReshardMove]) -> list[str]:
    """One sentence for each move of one operand, or of the result, on its way to one state."""
    is_operand = any(operand is array for operand in choice.part.operands)
    return [
        _explain(choice, array, move, following, moves[-1].after, is_operand)
        for move, following in zip_longest(moves, moves[1:])
    ]


def _explain(
    choice: EinsumChoice,
    array: ShardedArray,
    move: ReshardMove,
    following: ReshardMove | None,
    goal: State,
    is_operand: bool,
) -> str:
    match move.op:
        case "all_gather":
            return _gather(choice, array, move, goal, is_operand)
        case "slice":
            return _slice(choice, array, move, goal, is_operand)
        case "all_to_all":
            return _exchange(choice, array, move, goal, is_operand)
        case "ppermute":
            return _permute(array, move, goal)
        case _:
            return _reduce(choice, array, move, following, goal)


def _gather(
    choice: EinsumChoice, array: ShardedArray, move: ReshardMove, goal: State, is_operand: bool
) -> str:
    assert move.dim is not None
    n, axes = choice.mesh.group_size(move.axes), _names(move.axes)
    before, after = _extents(choice, array, move)
    doing = f"gather its {n} pieces of {before:,} into {after:,}"
    stays_split = set(move.axes) & {axis for held in goal[0] for axis in held}
    if stays_split or (is_operand and not set(move.axes) <= set(choice.start(array)[0][move.dim])):
        return f"On the way to the wanted split of {array.name}, {doing}; {_sent(move, n)}."
    if is_operand:
        return _gather_operand(choice, array, move, doing)
    whole = "All" if after == array.shape[move.dim] else "More"
    wanted = f"{whole} of {array.dims[move.dim]} of {array.name} is wanted on every device of {axes}"
    return f"{wanted}{_given(choice, array, goal)}: {doing}; {_sent(move, n)}."


def _given(choice: EinsumChoice, array: ShardedArray, goal: State) -> str:
    """Where an intermediate result is given to be so; "" for the last, which is what is wanted."""
    given = choice.next_input
    if given is None or array is not choice.part.result:
        return ""
    placed = f"split by {' and '.join(_places(array, goal))}" if any(goal[0]) else "whole"
    if array.spec is not None and state_of(array.spec, choice.mesh) == goal:
        return f", as {array.name} is given {placed}"
    if given.spec is not None and state_of(given.spec, choice.mesh) == goal:
        return f", as the next einsum is given {array.name} {placed}"
    return ""


def _extents(choice: EinsumChoice, array: ShardedArray, move: ReshardMove) -> tuple[int, ...]:
    """Elements of a device along the dimension of a move, before and after it."""
    assert move.dim is not None
    return tuple(_local(array, state, choice.mesh)[move.dim] for state in (move.before, move.after))


def _gather_operand(choice: EinsumChoice, array: ShardedArray, move: ReshardMove, doing: str) -> str:
    """The reason why an operand loses a split for good: another use of the axes, or the bytes to keep it."""
    assert move.dim is not None
    part, dim, axes = choice.part, array.dims[move.dim], _names(move.axes)
    price = _sent(move, choice.mesh.group_size(move.axes))
    if array.dims.count(dim) > 1:
        return (
            f"{array.name} has {dim} twice, and no axis can split both at once: {doing}, so that every "
            f"device finds the diagonal in what it holds; {price}."
        )
    for other, _ in choice.others(array):
        if other.dims.count(dim) > 1:
            return (
                f"{other.name} has {dim} twice, and no axis can split both at once, so every device needs "
                f"all of {array.name}'s {dim}: {doing}; {price}."
            )
    if (conflict := _conflict(choice, array, move)) is not None:
        start, instead = conflict
        return f"{start}, and the product can follow only one: gather {array.name}'s {dim}; {price}{instead}."
    for axis in move.axes:
        if (split := choice.dim_of(axis)) is not None:
            return (
                f"Over {axis} the devices split {split}, which {array.name} does not have, and not {dim}: "
                f"{doing}; {price}."
            )
    mates = [(other, state) for other, state in choice.others(array) if dim in other.dims]
    used = {axis for other, (placed, _) in mates for axis in placed[other.dims.index(dim)]}
    if dim in part.einsum.contracted and mates and not used & set(move.axes):
        before, after = _extents(choice, array, move)
        return (
            f"The product sums over {dim}, but only {array.name} is split along it over {axes} "
            f"({before:,} of {after:,} on a device): {doing}; {price}."
        )
    if (summed := _summing(choice, array, move, mates)) is not None:
        return f"{summed}: gather {array.name}'s {dim}; {price}."
    return (
        f"No cheaper plan was found that leaves {array.name} split along {dim} over {axes}: {doing}; "
        f"{price}{_afterwards(choice, array, move, mates)}."
    )


def _conflict(choice: EinsumChoice, array: ShardedArray, move: ReshardMove) -> tuple[str, str] | None:
    """Another operand that keeps the axes for a dimension of its own: in words, and what gathering that one
    would send, where it is more."""
    assert move.dim is not None
    dim = array.dims[move.dim]
    for other, state in choice.others(array):
        for place, (other_dim, held) in enumerate(zip(other.dims, state[0], strict=True)):
            shared = tuple(axis for axis in move.axes if axis in held and choice.dim_of(axis) == other_dim)
            if not shared:
                continue
            if dim in choice.part.einsum.contracted:
                start = (
                    f"Over {_names(shared)} {array.name} is split by {dim}, which is summed, "
                    f"but {other.name} by {other_dim}"
                )
            else:
                start = (
                    f"Both {array.name} (along {dim}) and {other.name} (along {other_dim}) "
                    f"want {_names(shared)}"
                )
            rest = held[: len(held) - len(move.axes)]
            if set(held) != {*rest, *move.axes} or other.name in choice.gathered:
                return start, ""
            kept = (with_axes(state[0], place, rest), state[1])
            sent = choice.wire_bytes(other, "all_gather", move.axes, kept)
            return start, (
                f"; gathering {other.name} instead would send {sent:,}" if sent > move.wire_bytes else ""
            )
    return None


def _summing(
    choice: EinsumChoice, array: ShardedArray, move: ReshardMove, mates: Sequence[Operand]
) -> str | None:
    """The textbook would add partial sums here (case 3), where that sends more than gathering."""
    assert move.dim is not None
    dim = array.dims[move.dim]
    op, sent = _partial_sums(choice, move)
    if not (mates and dim in choice.part.einsum.contracted and _gathered(choice, array, move, mates) < sent):
        return None
    names = " and ".join(operand.name for operand in choice.part.operands)
    return (
        f"{names} are split alike along {dim} over {_names(move.axes)}, and a {op} could add partial sums by "
        f"sending {sent:,} bytes; gathering {names} sends less, though every device multiplies "
        f"{choice.mesh.group_size(move.axes)} times as much"
    )


def _afterwards(
    choice: EinsumChoice, array: ShardedArray, move: ReshardMove, mates: Sequence[Operand]
) -> str:
    """The one collective on the result that gathering the operand saves, where that sends more."""
    assert move.dim is not None
    dim, result = array.dims[move.dim], choice.part.result
    if dim in choice.part.einsum.contracted:
        op, sent = _partial_sums(choice, move)
        return (
            f"; a {op} of {result.name} would send {sent:,}" if not mates and sent > move.wire_bytes else ""
        )
    if result.spec is None or set(move.axes) & {*result.spec.axes, *choice.work_split.result[1]}:
        return ""
    sent = choice.wire_bytes(result, "all_gather", move.axes, choice.work_split.result)
    return f"; gathering {result.name} afterwards would send {sent:,}" if sent > move.wire_bytes else ""


def _partial_sums(choice: EinsumChoice, move: ReshardMove) -> tuple[str, int]:
    """The collective that would add partial sums of the result over a gather's axes, and what it sends."""
    result = choice.part.result
    scattered = result.spec is not None and set(move.axes) <= set(result.spec.axes)
    op = "psum_scatter" if scattered else "psum"
    return op, choice.wire_bytes(result, op, move.axes, choice.work_split.result)


def _gathered(
    choice: EinsumChoice, array: ShardedArray, move: ReshardMove, mates: Sequence[Operand]
) -> float:
    """The bytes that gathering all operands along a dimension sends; infinite if they split it otherwise."""
    assert move.dim is not None
    dim, (dims, _) = array.dims[move.dim], choice.start(array)
    total = 0
    for operand, (placed, pending) in ((array, choice.start(array)), *mates):
        place = operand.dims.index(dim)
        if placed[place] != dims[move.dim]:
            return math.inf
        kept = tuple(axis for axis in placed[place] if axis not in move.axes)
        state = (with_axes(placed, place, kept), pending)
        total += choice.wire_bytes(operand, "all_gather", move.axes, state)
    return total


def _slice(
    choice: EinsumChoice, array: ShardedArray, move: ReshardMove, goal: State, is_operand: bool
) -> str:
    assert move.dim is not None
    dim, n = array.dims[move.dim], choice.mesh.group_size(move.axes)
    after = _local(array, move.after, choice.mesh)[move.dim]
    return (
        f"{_purpose(choice, array, move, move.dim, goal, is_operand)}, each device keeps its own 1/{n} of "
        f"{dim} ({after:,}); it already has it, so no byte moves."
    )


def _exchange(
    choice: EinsumChoice, array: ShardedArray, move: ReshardMove, goal: State, is_operand: bool
) -> str:
    assert move.dim is not None
    n = choice.mesh.group_size(move.axes)
    target = next(
        place
        for place, (old, new) in enumerate(zip(move.before[0], move.after[0], strict=True))
        if len(new) > len(old)
    )
    if is_operand or not _stays(move, target, goal):
        why = f"{_purpose(choice, array, move, target, goal, is_operand)}, {array.name} trades"
    else:
        given = _given(choice, array, goal)
        why = f"With a split along {array.dims[target]} wanted{given}, {array.name} trades"
    return (
        f"{why} its split of "
        f"{array.dims[move.dim]} over {_names(move.axes)} for one of {array.dims[target]}: each device keeps "
        f"1/{n} of what it holds and sends every other piece to its new owner; {_sent(move, n)}."
    )


def _purpose(
    choice: EinsumChoice, array: ShardedArray, move: ReshardMove, place: int, goal: State, is_operand: bool
) -> str:
    """The purpose of a move that splits a dimension of an array further."""
    dim, axes = array.dims[place], _names(move.axes)
    if not _stays(move, place, goal):
        return f"On the way to the wanted split of {array.name}"
    for other, (placed, _) in choice.others(array) if is_operand else ():
        if any(
            name == dim and set(move.axes) <= set(held) for name, held in zip(other.dims, placed, strict=True)
        ):
            return f"To match {other.name}'s split of {dim} over {axes}"
    if dim in choice.part.einsum.contracted:
        return f"To sum over {dim} in parts over {axes}"
    return f"To have {choice.part.result.name} split along {dim} over {axes}"


def _permute(array: ShardedArray, move: ReshardMove, goal: State) -> str:
    before, after = _placed(array, move.before), _placed(array, move.after)
    end = "" if goal == move.after else ", where the next step can work on them"
    return (
        f"The blocks of {array.name} are right but on the wrong devices ({before}, not {after}): "
        f"a device whose block belongs elsewhere sends all {move.wire_bytes:,} bytes of it to one other{end}."
    )


def _stays(move: ReshardMove, dim: int, goal: State) -> bool:
    """The axes that a move puts on a dimension are wanted there in the end."""
    return set(move.axes) <= set(goal[0][dim])


def _reduce(
    choice: EinsumChoice, array: ShardedArray, move: ReshardMove, following: ReshardMove | None, goal: State
) -> str:
    n, axes = choice.mesh.group_size(move.axes), _names(move.axes)
    held = f"Each of the {n} devices along {axes} holds a partial sum of {array.name}"
    if move.op == "psum":
        return (
            f"{held}: add them up and give every device the total; each sends "
            f"2×{n - 1}/{n} of {move.bytes:,} bytes = {move.wire_bytes:,}."
        )
    assert move.dim is not None
    dim = array.dims[move.dim]
    if _stays(move, move.dim, goal):
        why = f", and {dim} is wanted split over {axes}{_given(choice, array, goal)}"
    elif following is not None and following.op == "all_gather" and set(move.axes) <= set(following.axes):
        why = ", and the next step gathers the pieces along with others"
    else:
        why = f", and with {dim} split over {axes} the next step is cheaper"
    return (
        f"{held}{why}: add them up and let each device keep its 1/{n} of the total; "
        f"each sends {n - 1}/{n} of {move.bytes:,} bytes = {move.wire_bytes:,}, half of what a psum would."
    )


def _sent(move: ReshardMove, n: int) -> str:
    return f"each device sends {n - 1}/{n} of {move.bytes:,} bytes = {move.wire_bytes:,}"


def _local(array: ShardedArray, state: State, mesh: Mesh) -> tuple[int, ...]:
    return shard_shape(array.shape, spec_of(state), mesh)


def _placed(array: ShardedArray, state: State) -> str:
    """Such as ``b over X, d over Y``."""
    return ", ".join(_places(array, state)) or "whole"


def _places(array: ShardedArray, state: State) -> list[str]:
    return [f"{dim} over {_names(axes)}" for dim, axes in zip(array.dims, state[0], strict=True) if axes]


def _names(axes: Axes) -> str:
    """Axes as the scaling book writes several: ``X``, ``XY``, or ``data·model`` for long names."""
    return ("" if all(len(axis) == 1 for axis in axes) else "·").join(axes)


def _times(shape: tuple[int, ...]) -> str:
    return "×".join(f"{size}" for size in shape)
