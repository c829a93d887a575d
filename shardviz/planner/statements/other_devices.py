"""Arguments on other devices than the mesh has in its order, and the first step that each takes onto it.

An array that one device holds alone is taken for a pending sum over the whole mesh: the array there, zeros on
all other devices. That moves no byte; the step that adds the sum, or scatters it, sends the array. An array
whose devices stand in another order is permuted: the devices send whole blocks to each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from shardviz.errors import QuestionError
from shardviz.planner.plan import Step, axes_words
from shardviz.planner.problem import Problem
from shardviz.planner.states.moves import ReshardMove, reshard_move, spec_of, state_of
from shardviz.planner.steps import move_step
from shardviz.sharding import Layout, Mesh, PartitionSpec, ShardedArray

SHOWN = 8
"""Devices of an order that a reason lists."""


def check_devices(problem: Problem) -> None:
    """Raise `QuestionError` where an array that the program makes is wanted on devices of its own."""
    made = {part.result.name for part in problem.parts}
    for array in problem.arrays:
        if array.spec is not None and array.spec.devices and array.name in made:
            raise QuestionError(
                f"{array.name} is wanted on {_devices(array.spec)}, and a program leaves what it makes "
                "on its mesh",
                f"leave {array.name} on the mesh, as in {'_' * array.rank}, and move it afterwards",
            )


def first_steps(problem: Problem) -> Iterator[Step]:
    """The first step of each argument that is on other devices; of none whose blocks are where they
    belong."""
    mesh = problem.mesh
    for array in problem.arguments:
        spec = array.spec
        if spec is None or not spec.devices:
            continue
        move, reason = _taken_apart(array, mesh) if spec.only_device is not None else _permuted(array, mesh)
        if move.axes:
            users = (
                number for number, part in enumerate(problem.parts) if array.name in _names(part.operands)
            )
            yield replace(move_step(array, move, reason, next(users)), from_spec=spec)


def has_first_steps(problem: Problem) -> bool:
    """Return whether an argument takes a step onto the mesh before any other. Plans that move it later, as
    after a slice, are not looked at, so that one of them may cost less."""
    return next(first_steps(problem), None) is not None


def _names(arrays: tuple[ShardedArray, ...]) -> list[str]:
    return [array.name for array in arrays]


def _taken_apart(array: ShardedArray, mesh: Mesh) -> tuple[ReshardMove, str]:
    """One device's array as a pending sum."""
    spec = array.decided_spec
    after = state_of(spec, mesh)
    before = state_of(PartitionSpec.replicated(array.rank), mesh)
    reason = (
        f"Device {spec.only_device} alone holds {array.name}. The others take zeros, so that it is a "
        f"partial sum over {axes_words(after[1])}, and the step that adds or scatters that sends it; no byte "
        "moves yet."
    )
    return reshard_move(array, mesh, "mask", after[1], None, before, after), reason


def _permuted(array: ShardedArray, mesh: Mesh) -> tuple[ReshardMove, str]:
    """The blocks of an array sent to the devices that hold them in the mesh's order."""
    state = state_of(array.decided_spec, mesh)
    given, wanted = Layout(array, mesh), Layout(array.with_spec(spec_of(state)), mesh)
    held = {given.mesh.device_id(place): given.block(place) for place in range(mesh.size)}
    stays = all(held[mesh.device_id(place)] == wanted.block(place) for place in range(mesh.size))
    axes = () if stays else tuple(axis for axis, size in mesh.shape.items() if size > 1)
    move = reshard_move(array, mesh, "ppermute", axes, None, state, state)
    reason = (
        f"{array.name} is on {_devices(array.decided_spec)}, which is not the mesh's order: a device whose "
        f"block belongs elsewhere sends all {move.wire_bytes:,} bytes of it to one other."
    )
    return move, reason


def _devices(spec: PartitionSpec) -> str:
    """``device 3 alone``, or ``the devices 7, 6, 5, …``."""
    if spec.only_device is not None:
        return f"device {spec.only_device} alone"
    more = ", …" if len(spec.devices) > SHOWN else ""
    return f"the devices {', '.join(map(str, spec.devices[:SHOWN]))}{more}"
