"""The steps of a plan: those of its planned statements, with their reasons, and what comes before them.

Arguments may lie on other devices than the mesh has in its order; each takes a step onto it first. An array
that one device holds alone is taken for a pending sum over the whole mesh: the array there, zeros on all
other devices. That moves no byte; the step that adds the sum, or scatters it, sends the array. An array whose
devices stand in another order is permuted: the devices send whole blocks to each other, or what they have cut
of theirs before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations

from shardviz.errors import QuestionError
from shardviz.planner.plan import Plan, Step, axes_words
from shardviz.planner.problem import Objective, Problem, Statement
from shardviz.planner.reasons import explain_einsum, explain_moves
from shardviz.planner.statements.work_split import PlannedStatement, WorkSplit, case_of
from shardviz.planner.states.moves import PathMove, move_step, spec_of, state_of
from shardviz.sharding import Layout, Mesh, PartitionSpec, ShardedArray, array_bytes

SHOWN = 8
"""Devices of an order that a reason lists."""
MOST_CUT = 2
"""On a mesh of more axes than this no array is cut before it is permuted: each way is planned anew."""


def plan_of(
    problem: Problem, planned: Sequence[PlannedStatement], objective: Objective, *, optimal: bool
) -> Plan:
    """The plan of a problem's statements as planned, of which some may be several."""
    parts = tuple(one.part for one in planned)
    asked = None if parts == problem.parts else problem
    problem = replace(problem, parts=parts)
    steps = (*first_steps(problem), *plan_steps(problem, planned))
    cases = tuple(
        case_of(one.part.einsum, one.starts, problem.mesh)
        if one.part.function == "multiply"
        else one.part.function
        for one in planned
    )
    result_spec = next(step.to_spec for step in reversed(steps) if step.array == problem.result.name)
    return Plan(problem, steps, result_spec, cases, objective, optimal, asked=asked)


def plan_steps(problem: Problem, planned: Sequence[PlannedStatement]) -> Iterator[Step]:
    """The steps of all statements of a problem in order, with their reasons."""
    mesh = problem.mesh
    for number, one in enumerate(planned):
        part, split = one.part, one.work_split
        later = (operand for part in problem.parts[number + 1 :] for operand in part.operands)
        next_input = next((operand for operand in later if operand.name == part.result.name), None)
        behind = list(one.behind)
        if split.largest:
            # The largest of all parts is taken at once.
            largest = PathMove("pmax", split.largest, None, split.made, split.result)
            behind.insert(0, (part.result, (move_step(part.result, mesh, largest),)))
        for is_behind, arrays in enumerate((one.before, behind)):
            if is_behind:
                yield _work_step(mesh, part, split, explain_einsum(one), number)
            for array, moves in arrays:
                for move, why in zip(moves, explain_moves(one, next_input, array, moves), strict=True):
                    yield replace(move, reason=why, part=number)


def _work_step(mesh: Mesh, part: Statement, split: WorkSplit, reason: str, number: int) -> Step:
    """The local work of a statement."""
    spec = spec_of(split.made)
    array = part.result.with_spec(spec)
    shape = array.shard_shape(mesh)
    is_einsum = part.function == "multiply"
    return Step(
        "einsum" if is_einsum else "apply",
        array.name,
        (),
        None,
        spec,
        spec,
        shape,
        array.dtype,
        array_bytes(shape, array.dtype),
        0,
        reason,
        tuple(operand.name for operand in part.operands),
        part.einsum,
        number,
        "" if is_einsum else part.function,
        tuple(map(spec_of, split.operands)),
    )


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
        step = _taken_apart(array, mesh) if spec.only_device is not None else _permuted(array, mesh)
        if step.axes:
            yield replace(step, from_spec=spec, part=_first_user(problem, array))


def cut_first(problem: Problem) -> Iterator[tuple[Problem, tuple[Step, Step]]]:
    """Ways to cut an argument as it lies, and permute the smaller blocks to where they are wanted: each as
    the problem that is left then, and the two steps. None of a program, whose plans take long."""
    mesh = problem.mesh
    if not problem.is_tree or sum(size > 1 for size in mesh.shape.values()) > MOST_CUT:
        return
    for array in problem.arguments:
        spec = array.decided_spec
        if len(spec.devices) < 2 or spec.unreduced:
            continue
        used = [axis for dim in spec.dims for axis in dim]
        free = [axis for axis, size in mesh.shape.items() if size > 1 and axis not in used]
        if not free or any(":" in axis for axis in used):
            continue
        for cut in _cut(spec, array.shape, free, mesh):
            dim = next(number for number, axes in enumerate(cut.dims) if axes != spec.dims[number])
            for after in _alike(cut, mesh):
                yield _sent_cut(problem, array, dim, cut, after)


def _cut(spec: PartitionSpec, shape: tuple[int, ...], free: list[str], mesh: Mesh) -> Iterator[PartitionSpec]:
    """A spec with more axes at the end of one dimension, which they divide."""
    for count in range(1, len(free) + 1):
        for axes in permutations(free, count):
            for dim, size in enumerate(shape):
                dims = (*spec.dims[:dim], (*spec.dims[dim], *axes), *spec.dims[dim + 1 :])
                if size % math.prod(map(mesh.axis_size, dims[dim])) == 0:
                    yield replace(spec, dims=dims)


def _alike(spec: PartitionSpec, mesh: Mesh) -> Iterator[PartitionSpec]:
    """The specs on the mesh with the blocks of a spec, on the same or other devices."""
    axes = [axis for dim in spec.dims for axis in dim]
    for order in permutations([axis for axis, size in mesh.shape.items() if size > 1], len(axes)):
        rest = iter(order)
        found = PartitionSpec(tuple(tuple(next(rest) for _ in dim) for dim in spec.dims))
        if found.parts(mesh) == spec.parts(mesh):
            yield found


def _sent_cut(
    problem: Problem, array: ShardedArray, dim: int, cut: PartitionSpec, after: PartitionSpec
) -> tuple[Problem, tuple[Step, Step]]:
    mesh, spec = problem.mesh, array.decided_spec
    axes = cut.dims[dim][len(spec.dims[dim]) :]
    given, smaller, sent = (state_of(replace(each, devices=()), mesh) for each in (spec, cut, after))
    slicing = move_step(array, mesh, PathMove("slice", axes, dim, given, smaller))
    everywhere = tuple(axis for axis, size in mesh.shape.items() if size > 1)
    sending = move_step(array, mesh, PathMove("ppermute", everywhere, None, smaller, sent))
    user = _first_user(problem, array)
    cutting = (
        f"{array.name} is on {_devices(spec)}, which is not the mesh's order. Each device keeps its own "
        f"1/{math.prod(map(mesh.axis_size, axes))} of {array.dims[dim]} before it sends anything."
    )
    reason = (
        f"A device whose block belongs elsewhere sends all {sending.wire_bytes:,} bytes of it to one other."
    )
    first = replace(slicing, from_spec=spec, to_spec=cut, reason=cutting, part=user)
    second = replace(sending, from_spec=cut, reason=reason, part=user)
    return with_operand(problem, array.with_spec(after)), (first, second)


def _first_user(problem: Problem, array: ShardedArray) -> int:
    """The number of the first statement that takes an array."""
    return next(
        number
        for number, part in enumerate(problem.parts)
        if any(operand.name == array.name for operand in part.operands)
    )


def with_operand(problem: Problem, array: ShardedArray) -> Problem:
    """The problem with another argument of the same name."""
    return problem.with_arrays(lambda each: array if each.name == array.name else each)


def has_first_steps(problem: Problem) -> bool:
    """Return whether an argument takes a step onto the mesh before any other. Not all plans that move it
    later are looked at, so that one of them may cost less."""
    return next(first_steps(problem), None) is not None


def _taken_apart(array: ShardedArray, mesh: Mesh) -> Step:
    """One device's array as a pending sum."""
    spec = array.decided_spec
    before, after = (state_of(each, mesh) for each in (PartitionSpec.replicated(array.rank), spec))
    reason = (
        f"Device {spec.only_device} alone holds {array.name}. The others take zeros, so that it is a "
        f"partial sum over {axes_words(after[1])}, and the step that adds or scatters that sends it; no byte "
        "moves yet."
    )
    return replace(move_step(array, mesh, PathMove("mask", after[1], None, before, after)), reason=reason)


def _permuted(array: ShardedArray, mesh: Mesh) -> Step:
    """The blocks of an array sent to the devices that hold them in the mesh's order."""
    state = state_of(array.decided_spec, mesh)
    given, wanted = Layout(array, mesh), Layout(array.with_spec(spec_of(state)), mesh)
    held = {given.mesh.device_id(place): given.block(place) for place in range(mesh.size)}
    stays = all(held[mesh.device_id(place)] == wanted.block(place) for place in range(mesh.size))
    axes = () if stays else tuple(axis for axis, size in mesh.shape.items() if size > 1)
    step = move_step(array, mesh, PathMove("ppermute", axes, None, state, state))
    reason = (
        f"{array.name} is on {_devices(array.decided_spec)}, which is not the mesh's order: a device whose "
        f"block belongs elsewhere sends all {step.wire_bytes:,} bytes of it to one other."
    )
    return replace(step, reason=reason)


def _devices(spec: PartitionSpec) -> str:
    """``device 3 alone``, or ``the devices 7, 6, 5, …``."""
    if spec.only_device is not None:
        return f"device {spec.only_device} alone"
    more = ", …" if len(spec.devices) > SHOWN else ""
    return f"the devices {', '.join(map(str, spec.devices[:SHOWN]))}{more}"
