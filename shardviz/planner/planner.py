"""Problem → Plan: the steps with the fewest bytes on the wire.

A plan is looked for among all ways to share each einsum's work (`work_split`), with the cheapest moves of
the operands to it and of the result from it (`reshard`). A chain is planned as a whole, by dynamic
programming over the sharding of every intermediate.

With the result the compiler's choice, it stays where the multiplication left it; pending sums are added by
a psum, or by a psum_scatter where an operand of this einsum, or an array of a later one, splits that
dimension so. Ties go to fewer collectives, then less work per device, then fewer slices, then to the plan
that leaves first operands (usually the activations) in place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError
from shardviz.planner.plan import Objective, Plan, Step
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.reasons import EinsumChoice, explain_einsum, explain_moves
from shardviz.planner.reshard import PathCost, ReshardMove, Reshards, State, spec_of, state_of, with_axes
from shardviz.planner.work_split import ResultRequest, WorkSplit, case_of, work_splits
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray, array_bytes

if TYPE_CHECKING:
    from shardviz.hardware.machine import PlacedMesh

EFFORT = {2: (4096, 48), 3: (4096, 12), 4: (48, 4)}
"""By the number of mesh axes that the specs name: how many ways to share an einsum's work are priced, the
most promising first, and how many shardings of an intermediate are followed into the next einsum."""
LEAST_EFFORT = (8, 3)

Key = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class ChainStep:
    """One part of a chain as planned: how its work is split, the moves of each operand, those of the
    result to each state that it must pass through, and the operands' states before any step."""

    work_split: WorkSplit
    operand_moves: tuple[tuple[ReshardMove, ...], ...]
    result_moves: tuple[tuple[ReshardMove, ...], ...]
    starts: tuple[State, ...]


@dataclass(frozen=True)
class PartialPlan:
    """The cheapest way found to have a part's result in some state."""

    key: Key
    chain: tuple[ChainStep, ...]


class Planner:
    """Plans problems on one mesh; remembers reshardings, so that similar problems are planned quickly."""

    def __init__(self, mesh: Mesh, placed: PlacedMesh | None = None, objective: Objective = "time") -> None:
        """Plan for a mesh as `placed` on a machine; without one on the assumed machine."""
        from shardviz.hardware.machine import assumed_machine, on_assumed_machine

        self.mesh, self.objective = mesh, objective
        self.placed = placed or on_assumed_machine(assumed_machine(), mesh)
        self._reshards = Reshards(mesh.shape)

    def plan(self, problem: Problem) -> Plan:
        """The plan. Raises `QuestionError` when the result cannot be left unreduced as asked."""
        partial_plans: dict[State | None, PartialPlan] = {None: PartialPlan((0, 0, 0, 0, 0), ())}
        for index in range(len(problem.parts)):
            found: dict[State, PartialPlan] = {}
            for start, before in partial_plans.items():
                self._extend(problem, index, start, before, found)
            if not found:
                raise _cannot_stay_unreduced(problem.parts[index].result)
            partial_plans = dict(sorted(found.items(), key=lambda item: item[1].key)[: _effort(problem)[1]])
        best = min(partial_plans.values(), key=lambda partial: partial.key)
        return self._written(problem, best.chain)

    def _extend(
        self,
        problem: Problem,
        index: int,
        start: State | None,
        before: PartialPlan,
        found: dict[State, PartialPlan],
    ) -> None:
        """Add every plan up to a part to `found`, its first operand being in `start` (None: as given)."""
        part = problem.parts[index]
        last = index + 1 == len(problem.parts)
        starts = tuple(
            start if start is not None and place == 0 else state_of(operand.decided_spec, self.mesh)
            for place, operand in enumerate(part.operands)
        )
        for bound, work_split, goals in self._by_bound(problem, index, starts):
            least = before.key[0] + bound
            if last and any(least > partial.key[0] for partial in found.values()):
                break
            end, key, chain_step = self._priced(part, starts, work_split, goals)
            total: Key = tuple(map(sum, zip(before.key, key, strict=True)))  # type: ignore[assignment]
            known = found.get(end)
            if known is None or total < known.key:
                found[end] = PartialPlan(total, (*before.chain, chain_step))

    def _priced(
        self, part: Statement, starts: tuple[State, ...], work_split: WorkSplit, goals: tuple[State, ...]
    ) -> tuple[State, Key, ChainStep]:
        """The state in which the result ends, the cost, and the moves."""
        operand_paths = [
            self._reshards.path(operand.shape, operand.dtype, held, needed)
            for operand, held, needed in zip(part.operands, starts, work_split.operands, strict=True)
        ]
        ends = (work_split.result, *goals)
        result_paths = [
            self._reshards.path(part.result.shape, part.result.dtype, old, new) for old, new in pairwise(ends)
        ]
        costs = (found for found, _ in (*operand_paths, *result_paths))
        cost = PathCost(*map(sum, zip(*costs, strict=True)))
        work = math.prod(
            size // self.mesh.group_size(work_split.assignment.get(dim, ()))
            for dim, size in _dim_sizes(part).items()
        )
        key: Key = (cost.wire_bytes, cost.collectives, work, cost.slices, operand_paths[0][0].wire_bytes)
        operand_moves = tuple(path for _, path in operand_paths)
        result_moves = tuple(path for _, path in result_paths)
        return ends[-1], key, ChainStep(work_split, operand_moves, result_moves, starts)

    def _by_bound(
        self, problem: Problem, index: int, starts: tuple[State, ...]
    ) -> list[tuple[int, WorkSplit, tuple[State, ...]]]:
        """Every split of a part's work with every way to leave its result, fewest wire bytes first."""
        part, requests = problem.parts[index], _requests(problem, index)
        wanted = [state_of(spec, self.mesh) for spec in _constraints(problem, index)]
        splits = self._splits_to_follow(problem, index)
        options = []
        for work_split in work_splits(part.einsum, starts, requests, _dim_sizes(part), self.mesh.shape):
            needed = sum(
                self._reshards.bound(operand.shape, operand.dtype, held, wanted)
                for operand, held, wanted in zip(part.operands, starts, work_split.operands, strict=True)
            )
            for goals in _goals(part.result, work_split.result, wanted, splits):
                after = self._reshards.bound(
                    part.result.shape, part.result.dtype, work_split.result, goals[0]
                )
                options.append((needed + after, work_split, goals))
        options.sort(key=lambda option: option[0])
        return options[: _effort(problem)[0]]

    def _splits_to_follow(self, problem: Problem, index: int) -> list[tuple[str, tuple[str, ...]]]:
        """The splits of dimensions in the arrays around a part, where its pending sums may be scattered."""
        given = [operand for operand in problem.parts[index].operands if operand.spec is not None]
        return _splits([*given, *_later(problem, index)], self.mesh)

    def _written(self, problem: Problem, chain: tuple[ChainStep, ...]) -> Plan:
        steps: list[Step] = []
        cases = []
        gathered = _gathered(problem, chain)
        following = [*(part.operands[0] for part in problem.parts[1:]), None]
        for part, chain_step, next_input in zip(problem.parts, chain, following, strict=True):
            choice = EinsumChoice(
                self.mesh, part, chain_step.work_split, chain_step.starts, gathered, next_input
            )
            for operand, moves in zip(part.operands, chain_step.operand_moves, strict=True):
                reasons = explain_moves(choice, operand, moves)
                steps.extend(_step(operand, move, why) for move, why in zip(moves, reasons, strict=True))
            steps.append(self._multiply(part, chain_step, explain_einsum(choice)))
            for moves in chain_step.result_moves:
                reasons = explain_moves(choice, part.result, moves)
                steps.extend(_step(part.result, move, why) for move, why in zip(moves, reasons, strict=True))
            cases.append(case_of(part.einsum, chain_step.starts, self.mesh.axis_names))
        result = problem.result.spec or (steps[-1].to_spec)
        return Plan(problem, tuple(steps), result, tuple(cases))

    def _multiply(self, part: Statement, chain_step: ChainStep, reason: str) -> Step:
        spec = spec_of(chain_step.work_split.result)
        array = part.result.with_spec(spec)
        shape = array.shard_shape(self.mesh)
        size = array_bytes(shape, array.dtype)
        names = tuple(operand.name for operand in part.operands)
        return Step(
            "einsum",
            array.name,
            (),
            None,
            spec,
            spec,
            shape,
            array.dtype,
            size,
            0,
            reason,
            names,
            part.einsum,
        )


def plan(problem: Problem, placed: PlacedMesh | None = None, objective: Objective = "time") -> Plan:
    """The best plan on a machine; see the module's text for the rules."""
    return Planner(problem.mesh, placed, objective).plan(problem)


def _step(array: ShardedArray, move: ReshardMove, reason: str) -> Step:
    before, after = spec_of(move.before), spec_of(move.after)
    return Step(
        move.op,
        array.name,
        move.axes,
        move.dim,
        before,
        after,
        move.shape,
        array.dtype,
        move.bytes,
        move.wire_bytes,
        reason,
    )


def _gathered(problem: Problem, chain: tuple[ChainStep, ...]) -> frozenset[str]:
    """The names of the arrays that a plan gathers."""
    paths = [
        (array.name, path)
        for part, chain_step in zip(problem.parts, chain, strict=True)
        for array, path in (
            *zip(part.operands, chain_step.operand_moves, strict=True),
            *((part.result, path) for path in chain_step.result_moves),
        )
    ]
    return frozenset(name for name, path in paths if any(move.op == "all_gather" for move in path))


def _goals(
    result: ShardedArray, natural: State, wanted: list[State], splits: list[tuple[str, tuple[str, ...]]]
) -> list[tuple[State, ...]]:
    """The sequences of states to bring a part's result through: the `wanted` ones, or with none its sums
    added, and scattered where `splits` has a dimension split so."""
    dims, pending = natural
    if wanted:
        return [tuple(wanted)] if set(wanted[0][1]) <= set(pending) else []
    goals: list[tuple[State, ...]] = [((dims, ()),)]
    for dim, axes in splits:
        scattered = tuple(axis for axis in axes if axis in pending)
        if scattered and dim in result.dims:
            place = result.dims.index(dim)
            goals.append(((with_axes(dims, place, dims[place] + scattered), ()),))
    return goals


def _effort(problem: Problem) -> tuple[int, int]:
    """The entry of `EFFORT` for a problem."""
    specs = [array.spec for part in problem.parts for array in (*part.operands, part.result)]
    named = {axis for spec in specs if spec is not None for axis in spec.axes}
    wide = sum(problem.mesh.axis_size(axis) > 1 for axis in named)
    return EFFORT.get(max(wide, 2), LEAST_EFFORT)


def _constraints(problem: Problem, index: int) -> list[PartitionSpec]:
    """The specs that a part's result must pass through: its own, then the one given where it is used."""
    specs = [problem.parts[index].result.spec]
    if index + 1 < len(problem.parts):
        specs.append(problem.parts[index + 1].operands[0].spec)
    return [spec for spec in specs if spec is not None]


def _requests(problem: Problem, index: int) -> tuple[ResultRequest, ...]:
    """The splits of the result's dimensions that are wanted: by its constraints, or by what comes later."""
    part, mesh = problem.parts[index], problem.mesh
    constraints = _constraints(problem, index)
    if constraints:
        return tuple((part.result.dims, state_of(spec, mesh)) for spec in constraints)
    return tuple(
        ((dim,), ((axes,), ()))
        for dim, axes in _splits(_later(problem, index), mesh)
        if dim in part.result.dims
    )


def _later(problem: Problem, index: int) -> list[ShardedArray]:
    """The arrays after a part that have specs: second operands, constraints, wanted results."""
    arrays = [array for part in problem.parts[index + 1 :] for array in (*part.operands, part.result)]
    return [array for array in arrays if array.spec is not None]


def _splits(arrays: list[ShardedArray], mesh: Mesh) -> list[tuple[str, tuple[str, ...]]]:
    """The splits of arrays' dimensions: (dimension, axes), each once."""
    found = [
        (dim, axes)
        for array in arrays
        for dim, axes in zip(array.dims, state_of(array.decided_spec, mesh)[0], strict=True)
        if axes
    ]
    return list(dict.fromkeys(found))


def _dim_sizes(part: Statement) -> dict[str, int]:
    """Elements along each dimension of the einsum."""
    return {
        dim: size for operand in part.operands for dim, size in zip(operand.dims, operand.shape, strict=True)
    }


def _cannot_stay_unreduced(result: ShardedArray) -> QuestionError:
    axes = ", ".join(result.decided_spec.unreduced)
    return QuestionError(
        f"{result.name} cannot be left unreduced over {axes}: no summed dimension is split over it",
        "split a summed dimension of the operands over that axis, or ask for a reduced result",
    )
