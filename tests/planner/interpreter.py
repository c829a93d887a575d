"""Runs a plan on real numbers, device by device, to prove that it computes what the einsum says.

Every device has its own pieces; a step gives each device new ones from those of its group, by the meaning
of the collective alone (concatenate, add, exchange, send), never by cutting the global array again. At the
end devices that should hold the same data are checked to, and the pieces are put together.

Dimensions that do not divide are padded with zeros, as the compiler pads them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardviz.planner.plan import Plan, Step
from shardviz.sharding import Layout, Mesh, ShardedArray

Values = NDArray[Any]
Pieces = list[Values]


class PlanError(Exception):
    """A plan that does not compute what it should: always a bug of the planner."""


def run(plan: Plan, values: dict[str, Values]) -> Values:
    """The plan's result, assembled, for one global value per argument (`Problem.arguments`) by name.

    Raises `PlanError` when replicas disagree, a piece has the wrong shape, or a needed sum is missing.
    """
    mesh = plan.problem.mesh
    padded = {
        array.name: _pad(array, mesh)
        for part in plan.problem.parts
        for array in (*part.operands, part.result)
    }
    held: dict[str, Pieces] = {}
    for argument in plan.problem.arguments:
        array = padded[argument.name].with_spec(argument.decided_spec)
        value = np.asarray(values[argument.name])
        whole = np.zeros(array.shape, dtype=value.dtype)
        whole[tuple(map(slice, value.shape))] = value
        held[argument.name] = _cut(array, whole, mesh)
    for step in plan.steps:
        held[step.array] = _perform(step, held, mesh)
        _check_shapes(step, held[step.array], padded[step.array], mesh)
    result = plan.problem.result
    array = padded[result.name].with_spec(plan.result_spec)
    assembled = _assemble(array, held[result.name], mesh)
    return assembled[tuple(map(slice, result.shape))]


def _pad(array: ShardedArray, mesh: Mesh) -> ShardedArray:
    """The array with every uneven dimension rounded up to a multiple of the whole mesh."""
    shape = tuple(-(-size // mesh.size) * mesh.size for size in array.shape)
    return ShardedArray(array.name, array.dims, shape, array.dtype, None)


def _cut(array: ShardedArray, whole: Values, mesh: Mesh) -> Pieces:
    """Each device's piece; of a pending sum the first device of a group has everything, the others zeros."""
    layout = Layout(array, mesh)
    pieces = []
    for position, device in enumerate(layout):
        piece = whole[tuple(slice(start, stop) for start, stop in device.slices)]
        pieces.append(piece if layout.partial(position) == 0 else piece * 0)
    return pieces


def _assemble(array: ShardedArray, pieces: Pieces, mesh: Mesh) -> Values:
    layout = Layout(array, mesh)
    whole = np.zeros(array.shape, dtype=pieces[0].dtype)
    seen: dict[int, int] = {}
    for position, (device, piece) in enumerate(zip(layout, pieces, strict=True)):
        first = seen.setdefault(device.shard, position)
        if first == position:
            whole[tuple(slice(start, stop) for start, stop in device.slices)] += piece
        elif not np.array_equal(pieces[first], piece):
            raise PlanError(f"devices {first} and {position} should hold the same piece of {array.name}")
    return whole


def _perform(step: Step, held: dict[str, Pieces], mesh: Mesh) -> Pieces:
    """Every device's new piece of `step.array`, by position."""
    if step.op == "einsum":
        return _einsum(step, [held[name] for name in step.operands])
    pieces = held[step.array]
    if step.op == "ppermute":
        return _permute(step, pieces, mesh)
    result: Pieces = list(pieces)
    for group in mesh.groups(step.axes):
        for rank, position in enumerate(group):
            result[position] = _collect(step, [pieces[member] for member in group], rank)
    return result


def _einsum(step: Step, operands: list[Pieces]) -> Pieces:
    assert step.einsum is not None
    number = {dim: index for index, dim in enumerate(step.einsum.dims)}
    subscripts = [[number[dim] for dim in dims] for dims in step.einsum.operands]
    result = [number[dim] for dim in step.einsum.result]
    computed = []
    for pieces in zip(*operands, strict=True):
        arguments = [part for pair in zip(pieces, subscripts, strict=True) for part in pair]
        computed.append(np.asarray(np.einsum(*arguments, result)))
    return computed


def _collect(step: Step, group: Pieces, rank: int) -> Values:
    """What the member `rank` of a group has after a step, from what all members had."""
    match step.op:
        case "all_gather":
            assert step.dim is not None
            return np.concatenate(group, axis=step.dim)
        case "psum":
            return np.asarray(sum(group[1:], start=group[0]))
        case "psum_scatter":
            assert step.dim is not None
            total = np.asarray(sum(group[1:], start=group[0]))
            return _part(total, step.dim, rank, len(group))
        case "all_to_all":
            assert step.dim is not None
            pairs = zip(step.from_spec.dims, step.to_spec.dims, strict=True)
            split = next(dim for dim, (old, new) in enumerate(pairs) if len(new) > len(old))
            return np.concatenate([_part(piece, split, rank, len(group)) for piece in group], axis=step.dim)
        case "slice":
            assert step.dim is not None
            return _part(group[rank], step.dim, rank, len(group))
    raise PlanError(f"the plan has a step {step.op} that no device can perform")


def _part(piece: Values, dim: int, index: int, parts: int) -> Values:
    """The `index`-th of `parts` equal pieces along `dim`."""
    size = piece.shape[dim] // parts
    where = [slice(None)] * piece.ndim
    where[dim] = slice(index * size, (index + 1) * size)
    return piece[tuple(where)]


def _permute(step: Step, pieces: Pieces, mesh: Mesh) -> Pieces:
    """Every device gets the block it should hold, from a device of its group that holds that block.

    A ppermute sends from each device to at most one other, so each sender is used once.
    """
    shape = pieces[0].shape
    blocks = tuple(size * parts for size, parts in zip(shape, step.from_spec.parts(mesh), strict=True))
    dims = tuple(map(str, range(len(shape))))
    array = ShardedArray(step.array, dims, blocks, step.dtype, None)
    before = Layout(array.with_spec(step.from_spec), mesh)
    after = Layout(array.with_spec(step.to_spec), mesh)
    result: Pieces = list(pieces)
    for group in mesh.groups(step.axes):
        senders: dict[tuple[int, ...], list[int]] = {}
        for position in group:
            senders.setdefault(before.block(position), []).append(position)
        for position in group:
            candidates = senders.get(after.block(position))
            if not candidates:
                raise PlanError(f"no device of the group can send {step.array}'s block to device {position}")
            result[position] = pieces[candidates.pop(0)]
    return result


def _check_shapes(step: Step, pieces: Pieces, array: ShardedArray, mesh: Mesh) -> None:
    expected = array.with_spec(step.to_spec).shard_shape(mesh)
    for position, piece in enumerate(pieces):
        if piece.shape != expected:
            raise PlanError(
                f"after {step.op} device {position} holds {piece.shape} of {step.array}, not {expected}"
            )
