"""Shardy's choice in place of the plan's, where it costs less."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from shardviz.errors import QuestionError
from shardviz.hardware.machine import PlacedMesh
from shardviz.hlo.mlir.collectives import ShardyMove
from shardviz.planner.plan import HLO_OPS, Plan
from shardviz.planner.planner import Planner, plan_of
from shardviz.planner.pricing.costs import price
from shardviz.planner.problem import Problem
from shardviz.planner.statements.statement_ways import MOST_SEARCHED
from shardviz.planner.statements.work_split import WorkSplit, planned_statement
from shardviz.planner.states.moves import PathMove, State, spec_of, state_of
from shardviz.reports.target_result import TargetResult
from shardviz.sharding import PartitionSpec, shard_shape


def cheaper_plan(plan: Plan, answers: Iterable[TargetResult], placed: PlacedMesh) -> Plan:
    """The plan, or where Shardy's way costs less, a plan that does the same; `Plan.teller` says so.

    Of a program that is Shardy's way to split the arrays in between, with the planner's moves; of a problem
    that only reshards an array it is Shardy's moves. A plan that is proved to be the best is kept."""
    shardy = next((answer for answer in answers if answer.target == "shardy"), None)
    if shardy is None or not may_be_beaten(plan, shardy.splits, shardy.moves):
        return plan
    return cheaper_if_split(plan, shardy.splits, shardy.moves, placed)


def may_be_beaten(
    plan: Plan, splits: Sequence[tuple[str, PartitionSpec]], moves: Sequence[ShardyMove]
) -> bool:
    """Return whether a plan with the splits, or the moves, that Shardy chose may cost less."""
    return bool(splits or moves) and not plan.optimal and plan.teller != "shardy"


def cheaper_if_split(
    plan: Plan, splits: Sequence[tuple[str, PartitionSpec]], moves: Sequence[ShardyMove], placed: PlacedMesh
) -> Plan:
    """As `cheaper_plan`, given how Shardy splits the arrays in between, or moves the only one."""
    others = [plan]
    if splits:
        others += _split_alike(plan, split_as(plan.question, dict(splits)), placed)
    if moves:
        others.append(_moved_alike(plan, moves))

    def cost(one: Plan) -> list[float]:
        """Seconds and bytes sent, in the order in which the plan makes them small."""
        figures = [price(one, placed).serial_seconds, float(one.wire_bytes)]
        return figures if one.objective != "bytes" else figures[::-1]

    other = min(others, key=cost)
    if other is plan:
        return plan
    return replace(
        other,
        problem=other.problem.with_results(dict.fromkeys(_open_results(plan.question))),
        optimal=False,
        at_most=plan.at_most,
        faster=plan.faster,
        teller="shardy",
        asked=plan.question,
    )


def _split_alike(plan: Plan, problem: Problem, placed: PlacedMesh) -> Iterator[Plan]:
    """Plans of a problem whose open results Shardy has split: one that shares the work as the arrays are
    split, and where the mesh is small enough the fastest."""
    wide = [size for size in problem.mesh.axis_sizes if size > 1]
    for anywhere in (None, True) if len(wide) <= MOST_SEARCHED else (None,):
        try:
            planner = Planner(problem.mesh, placed, plan.objective, anywhere=anywhere, is_bounded=False)
            yield planner.plan(problem)
        except QuestionError:
            continue


def _moved_alike(plan: Plan, moves: Sequence[ShardyMove]) -> Plan:
    problem, mesh = plan.question, plan.question.mesh
    part = problem.parts[0]
    operand, result = part.operands[0], part.result
    given = state_of(operand.decided_spec, mesh)

    def turned(state: State, dims: Sequence[str], into: Sequence[str]) -> State:
        return tuple(state[0][dims.index(dim)] for dim in into), state[1]

    def of_operand(state: State) -> State:
        return turned(state, result.dims, operand.dims)

    before = turned(given, operand.dims, result.dims)
    states, planned = [before], list[PathMove]()
    jax_ops = {hlo: name for name, hlo in HLO_OPS.items() if name != "pmax"}
    for move in moves:
        after = state_of(move.spec, mesh)
        old, new = (tuple(map(mesh.group_size, dims)) for dims, _ in (before, after))
        if move.op in ("slice", "reduce-scatter"):
            old, new = new, old
        dim = next((index for index, parts in enumerate(old) if parts > new[index]), None)
        planned.append(PathMove(jax_ops.get(move.op, move.op), move.axes, dim, before, after))
        before = after
        states.append(after)
    # The copy is where it takes least: of the smallest pieces.
    pieces = [math.prod(shard_shape(result.shape, spec_of(state), mesh)) for state in states]
    index = pieces.index(min(pieces))
    dims, pending = states[index]
    assignment = {dim: axes for dim, axes in zip(result.dims, dims, strict=True) if axes}
    first = []
    for own in planned[:index]:
        dim = None if own.dim is None else operand.dims.index(result.dims[own.dim])
        first.append(PathMove(own.op, own.axes, dim, of_operand(own.before), of_operand(own.after)))
    split = WorkSplit(assignment, (of_operand(states[index]),), (dims, pending))
    one = planned_statement(mesh, part, split, [given], [(operand, first)], [(result, planned[index:])])
    return plan_of(problem, [one], plan.objective, optimal=False)


def split_as(problem: Problem, splits: Mapping[str, PartitionSpec]) -> Problem:
    """The problem with its open results split so."""
    return problem.with_results({name: splits[name] for name in _open_results(problem) if name in splits})


def _open_results(problem: Problem) -> list[str]:
    return [part.result.name for part in problem.parts if part.result.spec is None]
