"""The steps of a plan, of what a planner has found: moves and local work as states of axis parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shardviz.planner.plan import Step
from shardviz.planner.problem import Statement
from shardviz.planner.statements.work_split import WorkSplit
from shardviz.planner.states.moves import ReshardMove, State, reshard_move, spec_of
from shardviz.planner.states.paths import PathMove
from shardviz.sharding import Mesh, ShardedArray, array_bytes
from shardviz.sharding.axis_parts import joined_parts


@dataclass(frozen=True)
class Joined:
    """States, work splits and moves with adjacent parts of an axis of the mesh as one."""

    mesh: Mesh

    def state(self, state: State) -> State:
        spec = spec_of(state, self.mesh)
        return spec.dims, spec.unreduced

    def split(self, split: WorkSplit) -> WorkSplit:
        shape = self.mesh.shape
        return WorkSplit(
            {dim: joined_parts(axes, shape) for dim, axes in split.assignment.items()},
            tuple(map(self.state, split.operands)),
            self.state(split.result),
            joined_parts(split.largest, shape),
        )

    def moves(self, array: ShardedArray, moves: Sequence[PathMove]) -> tuple[ReshardMove, ...]:
        """The moves of an array with their bytes."""
        return tuple(
            reshard_move(
                array,
                self.mesh,
                move.op,
                move.axes,
                move.dim,
                self.state(move.before),
                self.state(move.after),
            )
            for move in moves
        )


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
