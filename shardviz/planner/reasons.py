"""Why each step of a plan is there: one sentence, with the numbers of the case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shardviz.planner.contraction import Sharing
from shardviz.planner.moves import Axes, Move, State, spec_of
from shardviz.planner.problem import Contraction
from shardviz.sharding import Mesh, ShardedArray, array_bytes, shard_shape


@dataclass(frozen=True)
class Choice:
    """One einsum with what was chosen for it: `starts` are the operands' states before any step."""

    mesh: Mesh
    part: Contraction
    sharing: Sharing
    starts: tuple[State, ...]

    def dim_of(self, axis: str) -> str | None:
        """The dimension of the einsum that `axis` splits while the devices multiply."""
        return next((dim for dim, axes in self.sharing.assignment.items() if axis in axes), None)

    def start(self, array: ShardedArray) -> State:
        """The state of an operand before any step."""
        pairs = zip(self.part.operands, self.starts, strict=True)
        return next(state for operand, state in pairs if operand is array)

    def others(self, array: ShardedArray) -> list[tuple[ShardedArray, State]]:
        """The operands besides `array`, with their states before any step."""
        pairs = zip(self.part.operands, self.starts, strict=True)
        return [(operand, state) for operand, state in pairs if operand is not array]


def explain_einsum(choice: Choice) -> str:
    """What the devices compute, and what their results are."""
    part, mesh = choice.part, choice.mesh
    pieces = []
    for operand, state in zip(part.operands, choice.sharing.operands, strict=True):
        pieces.append(f"{operand.name}[{_times(_local(operand, state, mesh))}]")
    doing = (
        f"multiplies its {pieces[0]} by its {pieces[1]}" if len(pieces) == 2 else f"works on its {pieces[0]}"
    )
    pending = choice.sharing.result[1]
    summed = [dim for dim in part.einsum.contracted if choice.sharing.assignment.get(dim)]
    if pending and summed:
        parts = mesh.group_size(axis for dim in summed for axis in choice.sharing.assignment[dim])
        where = " and ".join(summed)
        return (
            f"Every device {doing} without moving a byte, but it sums only its 1/{parts} of {where}: "
            f"the result is a partial sum over {_names(pending)}."
        )
    if pending:
        return f"Every device {doing} without moving a byte; the sum over {_names(pending)} is still pending."
    return f"Every device {doing} and has its piece of {part.result.name}: no byte moves."


def explain_moves(choice: Choice, array: ShardedArray, moves: Sequence[Move]) -> list[str]:
    """One sentence for each move of one operand, or of the result."""
    is_operand = any(operand is array for operand in choice.part.operands)
    goal = moves[-1].after if moves else None
    return [_explain(choice, array, move, goal, is_operand) for move in moves]


def _explain(choice: Choice, array: ShardedArray, move: Move, goal: State | None, is_operand: bool) -> str:
    match move.op:
        case "all_gather":
            return _gather(choice, array, move, is_operand)
        case "slice":
            return _slice(choice, array, move, goal, is_operand)
        case "all_to_all":
            return _exchange(choice, array, move, goal, is_operand)
        case "ppermute":
            return _permute(array, move, goal)
        case _:
            return _reduce(choice, array, move, goal)


def _gather(choice: Choice, array: ShardedArray, move: Move, is_operand: bool) -> str:
    assert move.dim is not None
    dim, n = array.dims[move.dim], choice.mesh.group_size(move.axes)
    axes = _names(move.axes)
    before = _local(array, move.before, choice.mesh)[move.dim]
    after = _local(array, move.after, choice.mesh)[move.dim]
    doing = f"gather its {n} pieces of {before:,} into {after:,}"
    price = _sent(move, n)
    if not is_operand:
        whole = f"{_extent(after, array, move.dim)} of {array.name} is wanted on every device of {axes}"
        return f"{whole}: {doing}; {price}."
    if not set(move.axes) <= set(choice.start(array)[0][move.dim]):
        return f"On the way to the wanted split of {array.name}, {doing}; {price}."
    if array.dims.count(dim) > 1:
        return (
            f"{array.name} has {dim} twice, and no axis can split both at once: {doing}, so that every "
            f"device finds the diagonal in what it holds; {price}."
        )
    rival = _rival(choice, array, move.axes)
    if rival is not None and rival[1] == dim and _alike(choice, dim):
        return _gather_though_alike(choice, array, dim, move)
    if rival is not None:
        other, other_dim, other_bytes = rival
        if dim in choice.part.einsum.contracted and other_dim != dim:
            start = (
                f"Over {axes} {array.name} is split by {dim}, which is summed, "
                f"but {other.name} by {other_dim}"
            )
        elif dim in choice.part.einsum.contracted:
            start = f"Both {array.name} and {other.name} are split along {dim} over {axes}, in different ways"
        else:
            start = f"Both {array.name} (along {dim}) and {other.name} (along {other_dim}) want {axes}"
        instead = (
            f"; gathering {other.name} instead would send {other_bytes:,}"
            if other_bytes > move.wire_bytes
            else ""
        )
        followed = "can follow only one" if any(map(choice.dim_of, move.axes)) else "here follows neither"
        return f"{start}, and the product {followed}: gather {array.name}'s {dim}; {price}{instead}."
    if dim in choice.part.einsum.contracted:
        return (
            f"The product sums over {dim}, but only {array.name} is split along it over {axes} "
            f"({before:,} of {after:,} on a device): {doing}; {price}."
        )
    return (
        f"The multiplication does not follow the split of {array.name} along {dim} over {axes}, so every "
        f"device needs more of it: {doing}; {price}."
    )


def _alike(choice: Choice, dim: str) -> bool:
    """Whether all operands that have a dimension split it over the same axes, in the same order."""
    held = {
        axes
        for operand, (placed, _) in zip(choice.part.operands, choice.starts, strict=True)
        for name, axes in zip(operand.dims, placed, strict=True)
        if name == dim
    }
    return len(held) == 1


def _gather_though_alike(choice: Choice, array: ShardedArray, dim: str, move: Move) -> str:
    """The textbook would add partial sums here (case 3), but that sends more."""
    mesh, result = choice.mesh, choice.part.result
    n, axes = mesh.group_size(move.axes), _names(move.axes)
    names = " and ".join(operand.name for operand in choice.part.operands if dim in operand.dims)
    summed = array_bytes(_local(result, choice.sharing.result, mesh), result.dtype)
    wanted = result.spec.axes if result.spec is not None else ()
    op, rounds = ("psum_scatter", 1) if set(move.axes) <= set(wanted) else ("psum", 2)
    return (
        f"{names} are split alike along {dim} over {axes}, and a {op} could add partial sums by sending "
        f"{rounds * summed * (n - 1) // n:,} bytes; gathering {names} sends less, though every device "
        f"multiplies {n} times as much: gather {array.name}'s {dim}; {_sent(move, n)}."
    )


def _rival(choice: Choice, array: ShardedArray, axes: Axes) -> tuple[ShardedArray, str, int] | None:
    """Another operand that `axes` split too: it, the dimension, and the bytes to gather it instead."""
    for other, (placed, _) in choice.others(array):
        for dim, held in zip(other.dims, placed, strict=True):
            if set(axes) & set(held):
                n = choice.mesh.group_size(axes)
                kept = tuple(tuple(a for a in on if a not in axes) for on in placed)
                whole = array_bytes(_local(other, (kept, ()), choice.mesh), other.dtype)
                return other, dim, whole * (n - 1) // n
    return None


def _slice(choice: Choice, array: ShardedArray, move: Move, goal: State | None, is_operand: bool) -> str:
    assert move.dim is not None
    dim, n = array.dims[move.dim], choice.mesh.group_size(move.axes)
    after = _local(array, move.after, choice.mesh)[move.dim]
    axes = _names(move.axes)
    matching = [
        other.name
        for other, (placed, _) in choice.others(array)
        for name, held in zip(other.dims, placed, strict=True)
        if name == dim and set(move.axes) <= set(held)
    ]
    if not _stays(move, move.dim, goal):
        why = f"On the way to the wanted split of {array.name},"
    elif is_operand and matching:
        why = f"To match {matching[0]}'s split of {dim} over {axes},"
    else:
        made = choice.part.result.name if is_operand else array.name
        why = f"To have {made} split along {dim} over {axes},"
    return f"{why} each device keeps its own 1/{n} of {dim} ({after:,}); it already has it, so no byte moves."


def _exchange(choice: Choice, array: ShardedArray, move: Move, goal: State | None, is_operand: bool) -> str:
    assert move.dim is not None
    n = choice.mesh.group_size(move.axes)
    target = next(
        place
        for place, (old, new) in enumerate(zip(move.before[0], move.after[0], strict=True))
        if len(new) > len(old)
    )
    source_dim, target_dim = array.dims[move.dim], array.dims[target]
    if not _stays(move, target, goal):
        why = f"On the way to the wanted split, {array.name} trades"
    elif is_operand:
        why = f"The multiplication needs {array.name} split along {target_dim}, so it trades"
    else:
        why = f"With a split along {target_dim} wanted, {array.name} trades"
    return (
        f"{why} its split of {source_dim} over {_names(move.axes)} for one of {target_dim}: each device "
        f"keeps 1/{n} of what it holds and sends every other piece to its new owner; {_sent(move, n)}."
    )


def _permute(array: ShardedArray, move: Move, goal: State | None) -> str:
    before, after = _placed(array, move.before), _placed(array, move.after)
    end = "" if goal == move.after else ", where the next step can work on them"
    return (
        f"The blocks of {array.name} are right but on the wrong devices ({before}, not {after}): "
        f"a device whose block belongs elsewhere sends all {move.wire_bytes:,} bytes of it to one other{end}."
    )


def _stays(move: Move, dim: int, goal: State | None) -> bool:
    """Whether the axes that a move puts on a dimension are wanted there in the end."""
    return goal is None or set(move.axes) <= set(goal[0][dim])


def _reduce(choice: Choice, array: ShardedArray, move: Move, goal: State | None) -> str:
    n, axes = choice.mesh.group_size(move.axes), _names(move.axes)
    held = f"Each of the {n} devices along {axes} holds a partial sum of {array.name}"
    if move.op == "psum":
        return (
            f"{held}: add them up and give every device the total; each sends at least "
            f"2·{n - 1}/{n} of {move.bytes:,} bytes = {move.wire_bytes:,}."
        )
    assert move.dim is not None
    dim = array.dims[move.dim]
    if _stays(move, move.dim, goal):
        why = f", and {dim} is wanted split over {axes}"
    else:
        why = f", and with {dim} split over {axes} the next step is cheaper"
    return (
        f"{held}{why}: add them up and let each device keep its 1/{n} of the total; "
        f"each sends {n - 1}/{n} of {move.bytes:,} bytes = {move.wire_bytes:,}, half of what a psum would."
    )


def _sent(move: Move, n: int) -> str:
    return f"each device sends {n - 1}/{n} of {move.bytes:,} bytes = {move.wire_bytes:,}"


def _extent(size: int, array: ShardedArray, dim: int) -> str:
    return f"All of {array.dims[dim]}" if size == array.shape[dim] else f"More of {array.dims[dim]}"


def _local(array: ShardedArray, state: State, mesh: Mesh) -> tuple[int, ...]:
    return shard_shape(array.shape, spec_of(state), mesh)


def _placed(array: ShardedArray, state: State) -> str:
    """Such as ``b over X, d over Y``."""
    pairs = [f"{dim} over {_names(axes)}" for dim, axes in zip(array.dims, state[0], strict=True) if axes]
    return ", ".join(pairs) or "whole"


def _names(axes: Axes) -> str:
    """Axes as the scaling book writes several: ``X``, ``XY``, or ``data·model`` for long names."""
    return ("" if all(len(axis) == 1 for axis in axes) else "·").join(axes)


def _times(shape: tuple[int, ...]) -> str:
    return "×".join(f"{size}" for size in shape)
