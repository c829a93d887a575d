"""The steps of a plan: those of its planned statements, with their reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardviz.planner.plan import Step
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.reasons import explain_einsum, explain_moves
from shardviz.planner.statements.planned_statement import ArrayMoves, PlannedStatement
from shardviz.planner.statements.work_split import WorkSplit
from shardviz.planner.states.moves import ReshardMove, reshard_move, spec_of
from shardviz.sharding import Mesh, ShardedArray, array_bytes


def plan_steps(problem: Problem, planned: Sequence[PlannedStatement]) -> Iterator[Step]:
    """The steps of all statements of a problem in order, with their reasons."""
    for number, one in enumerate(planned):
        later = (operand for part in problem.parts[number + 1 :] for operand in part.operands)
        next_input = next((operand for operand in later if operand.name == one.part.result.name), None)

        def steps_of(
            arrays: Sequence[ArrayMoves],
            one: PlannedStatement = one,
            next_input: ShardedArray | None = next_input,
            number: int = number,
        ) -> Iterator[Step]:
            for array, moves in arrays:
                for move, why in zip(moves, explain_moves(one, next_input, array, moves), strict=True):
                    yield move_step(array, move, why, number)

        yield from steps_of(one.before)
        yield work_step(problem.mesh, one.part, one.work_split, explain_einsum(one), number)
        yield from steps_of([(one.part.result, moves_of_work(problem.mesh, one.part, one.work_split))])
        yield from steps_of(one.behind)


def work_step(mesh: Mesh, part: Statement, split: WorkSplit, reason: str, number: int) -> Step:
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


def moves_of_work(mesh: Mesh, part: Statement, split: WorkSplit) -> tuple[ReshardMove, ...]:
    """The step that follows the local work at once: the `pmax` of the largest of all parts, if any."""
    if not split.largest:
        return ()
    return (reshard_move(part.result, mesh, "pmax", split.largest, None, split.made, split.result),)


def move_step(array: ShardedArray, move: ReshardMove, reason: str, number: int) -> Step:
    """A move of an array, for the statement with this number."""
    return Step(
        move.op,
        array.name,
        move.axes,
        move.dim,
        spec_of(move.before),
        spec_of(move.after),
        move.shape,
        array.dtype,
        move.bytes,
        move.wire_bytes,
        reason,
        part=number,
    )
