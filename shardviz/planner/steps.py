"""The steps of a plan: those of its planned statements, with their reasons, and what comes before them.

Arguments may lie on other devices than the mesh has in its order; each takes a step onto it first. An array
that one device holds alone is taken for a pending sum over the whole mesh: the array there, zeros elsewhere.
The step that adds the sum, or scatters it, sends the array. One whose devices stand in another order is
permuted: the devices send whole blocks to each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from shardviz.errors import QuestionError
from shardviz.planner.plan import Plan, Step, axes_words
from shardviz.planner.problem import Objective, Problem, Statement
from shardviz.planner.reasons import explain_einsum, explain_moves
from shardviz.planner.statements.work_split import PlannedStatement, WorkSplit, case_of
from shardviz.planner.states.moves import PathMove, move_step, spec_of, state_of
from shardviz.sharding import Layout, Mesh, PartitionSpec, ShardedArray, array_bytes, shard_shape

SHOWN = 8
"""Devices of an order that a reason lists."""


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
    result = part.result
    shape = shard_shape(result.shape, spec, mesh)
    size = array_bytes(shape, result.dtype)
    function = "" if part.function == "multiply" else part.function
    return Step(
        "apply" if function else "einsum",
        *(result.name, (), None, spec, spec, shape, result.dtype, size, 0, reason),
        tuple(operand.name for operand in part.operands),
        part.einsum,
        number,
        function,
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
            numbered = enumerate(problem.parts)
            user = next(
                n for n, part in numbered if array.name in [operand.name for operand in part.operands]
            )
            yield replace(step, from_spec=spec, part=user)


def _taken_apart(array: ShardedArray, mesh: Mesh) -> Step:
    """One device's array as a pending sum."""
    spec = array.decided_spec
    before, after = (state_of(spec, mesh) for spec in (PartitionSpec.replicated(array.rank), spec))
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
    held = {given.mesh.device_id(index): given.block(index) for index in range(mesh.size)}
    stays = all(held[mesh.device_id(index)] == wanted.block(index) for index in range(mesh.size))
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
