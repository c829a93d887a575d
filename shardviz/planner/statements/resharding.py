"""A statement that copies its operand, or transposes it, and so is nothing but a change of its sharding.

Its axes can be cut finer than those of other statements: one search leads from the given state to the wanted
one, instead of one for each way to divide the work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from shardviz.planner.problem import Problem, Statement
from shardviz.planner.statements.planned_statement import PlannedStatement
from shardviz.planner.statements.statement_ways import StatementWays
from shardviz.planner.statements.work_split import WorkSplit
from shardviz.planner.states.moves import PathMove, ReshardMove, State, reshard_move, spec_of, state_of
from shardviz.planner.states.paths import CheapestPaths
from shardviz.planner.states.prices import Cost
from shardviz.sharding import Mesh, array_bytes, shard_shape

MOST_PRIMES = 6
"""Prime parts of axes up to which those of a reshard are cut into them: with seven a search takes seconds."""
MOST_MOVES = 20_000
"""Moves that a search lists before it gives up, after some tenths of a second."""


def is_reshard(part: Statement) -> bool:
    """Return whether a statement copies or transposes its operand and does nothing else."""
    dims = part.einsum.operands[0]
    return (
        part.function == "multiply"
        and len(part.operands) == 1
        and not (part.merged or part.whole)
        and len(set(dims)) == len(dims)
        and set(dims) == set(part.einsum.result)
        and part.operands[0].dtype == part.result.dtype
        and part.result.spec is not None
    )


def is_only_reshard(problem: Problem) -> bool:
    """Return whether a problem is one reshard."""
    return len(problem.parts) == 1 and is_reshard(problem.parts[0])


def planned_reshard(part: Statement, mesh: Mesh, moves: Sequence[ReshardMove]) -> PlannedStatement:
    """A reshard by moves of its result from the given state, with the copy where it takes least: of the
    smallest pieces."""
    operand, result = part.operands[0], part.result
    given = state_of(operand.decided_spec, mesh)

    def of_operand(state: State) -> State:
        return tuple(state[0][result.dims.index(dim)] for dim in operand.dims), state[1]

    states = [given_state(part, given), *(move.after for move in moves)]
    pieces = [math.prod(shard_shape(result.shape, spec_of(state), mesh)) for state in states]
    place = pieces.index(min(pieces))
    dims, pending = states[place]
    assignment = {dim: axes for dim, axes in zip(result.dims, dims, strict=True) if axes}
    before = tuple(
        reshard_move(
            operand,
            mesh,
            move.op,
            move.axes,
            None if move.dim is None else operand.dims.index(result.dims[move.dim]),
            of_operand(move.before),
            of_operand(move.after),
        )
        for move in moves[:place]
    )
    split = WorkSplit(assignment, (of_operand(states[place]),), (dims, pending))
    behind = tuple(moves[place:])
    return PlannedStatement(mesh, part, split, (given,), [(operand, before)], [(result, behind)])


def given_state(part: Statement, state: State) -> State:
    """The state of a reshard's operand, with the dimensions in the order of its result's."""
    dims = part.operands[0].dims
    return tuple(state[0][dims.index(dim)] for dim in part.result.dims), state[1]


def cheapest_moves(part: Statement, ways: StatementWays) -> tuple[Cost, Cost, tuple[PathMove, ...]] | None:
    """The moves of a reshard's result from the given state to the wanted one, behind what they cost with a
    copy of it, and what no plan costs less than: with the copy of the smallest pieces that there can be. None
    where none are found."""
    result, pool, space = part.result, ways.pool, ways.space
    start = given_state(part, pool.state(part.operands[0].decided_spec))
    goal = {pool.state(result.decided_spec): 0}
    pending = tuple(axis for axis in space.sizes if axis in start[1] or axis in space.may_mask)
    search = CheapestPaths(space, ways.kind(result), ways.prices, goal, pending, most_moves=MOST_MOVES)
    cost = search.cost(start)
    if cost is None:
        return None
    _, moves = search.path(start)
    held = min(search.local_bytes(state) for state in (start, *(move.after for move in moves)))
    smallest = array_bytes(result.shape, result.dtype) // space.group_size(tuple(space.sizes))
    work = (ways.prices.work(0, 2 * size, "") for size in (held, smallest))
    with_copy, least = (cost + copied for copied in work)
    return with_copy, least, moves
