"""The steps of a planned program, with their reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from shardviz.planner.dag.copies import ArrayPath
from shardviz.planner.dag.program_planner import PlannedProgram
from shardviz.planner.plan import Step
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.reasons import EinsumChoice, explain_einsum, explain_moves
from shardviz.planner.statements.work_split import WorkSplit, case_of
from shardviz.planner.states.moves import ReshardMove, State
from shardviz.planner.states.paths import PathMove
from shardviz.planner.steps import Joined, move_step, moves_of_work, work_step
from shardviz.sharding import ShardedArray

ArrayMoves = tuple[ShardedArray, tuple[ReshardMove, ...]]


@dataclass
class _Scheduled:
    """A statement with the moves before it, of its operands, and behind it; `starts` are the operands' states
    before them."""

    part: Statement
    work_split: WorkSplit
    starts: tuple[State, ...]
    before: list[ArrayMoves] = field(default_factory=list)
    behind: list[ArrayMoves] = field(default_factory=list)


def program_steps(problem: Problem, planned: PlannedProgram) -> tuple[list[Step], tuple[str, ...]]:
    """The steps in order, and the case of the textbook that each statement is.

    Pending sums are added right behind the statement that leaves them.
    """
    scheduled = _scheduled(problem, planned)
    steps: list[Step] = []
    for number, one in enumerate(scheduled):
        uses = (operand for later in problem.parts[number + 1 :] for operand in later.operands)
        following = next((operand for operand in uses if operand.name == one.part.result.name), None)
        other_ways = planned.other_ways[number]
        choice = EinsumChoice(problem.mesh, one.part, one.work_split, one.starts, following, other_ways)
        for array, moves in one.before:
            steps += _move_steps(choice, array, moves, number)
        steps.append(work_step(problem.mesh, one.part, one.work_split, explain_einsum(choice), number))
        for array, moves in one.behind:
            steps += _move_steps(choice, array, moves, number)
    cases = tuple(
        case_of(one.part.einsum, one.starts, problem.mesh)
        if one.part.function == "multiply"
        else one.part.function
        for one in scheduled
    )
    return steps, cases


def _move_steps(
    choice: EinsumChoice, array: ShardedArray, moves: Sequence[ReshardMove], number: int
) -> Iterator[Step]:
    reasons = explain_moves(choice, array, moves)
    return (move_step(array, move, why, number) for move, why in zip(moves, reasons, strict=True))


def _scheduled(problem: Problem, planned: PlannedProgram) -> list[_Scheduled]:
    joined = Joined(problem.mesh)
    makers = {part.result.name: number for number, part in enumerate(problem.parts)}
    found: list[_Scheduled] = []
    for part, choice in zip(problem.parts, planned.choices, strict=True):
        starts = tuple(joined.state(path.start) for path in choice.paths)
        one = _Scheduled(part, joined.split(choice.split), starts)
        for operand, path in zip(part.operands, choice.paths, strict=True):
            rest = path.moves
            if operand.name in makers:
                rest = _add_behind(found[makers[operand.name]], path, joined)
            if rest:
                one.before.append((operand, joined.moves(operand, rest)))
        if largest := moves_of_work(problem.mesh, part, one.work_split):
            one.behind.append((part.result, largest))
        found.append(one)
        if choice.result_path.moves:
            one.behind.append((part.result, joined.moves(part.result, choice.result_path.moves)))
    for name, path in planned.returns.items():
        maker = found[makers[name]]
        rest = _add_behind(maker, path, joined)
        if rest:
            found[-1].behind.append((maker.part.result, joined.moves(maker.part.result, rest)))
    return found


def _add_behind(maker: _Scheduled, path: ArrayPath, joined: Joined) -> tuple[PathMove, ...]:
    """Have the sums that a path adds first added behind the statement that makes the array: the moves
    left."""
    if joined.state(path.start) != maker.work_split.result:
        return path.moves
    count = 0
    while count < len(path.moves) and path.moves[count].op in ("psum", "psum_scatter"):
        count += 1
    if count:
        array = maker.part.result
        maker.behind.append((array, joined.moves(array, path.moves[:count])))
    return path.moves[count:]
