"""The least cost of a program whose arrays are used several times, by trying every way to share all work.

An array is made in one state and moved to the states in which statements take it: by the cheapest tree of
moves from the first to all of the others, so that what two of them need is moved once (Dreyfus and Wagner,
"The Steiner problem in graphs", 1971, in one direction). Every split of every statement is tried with every
split of the others, unless the costs so far and the least local work that is left are above the best known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import NamedTuple

from shardviz.hardware.machine import PlacedMesh
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.problem.functions import FUNCTIONS
from shardviz.sharding import ShardedArray, array_bytes
from tests.planner.exhaustive import (
    NOTHING,
    UNLIMITED,
    Atoms,
    Cost,
    Space,
    State,
    Way,
    add,
    allowed_ends,
    assignments,
    named_axes,
    pending_axes,
)


class Split(NamedTuple):
    """One way to share a statement's work: the states that it takes and makes, and the local work."""

    operands: tuple[State, ...]
    result: State
    cost: Cost


def least_program_cost(problem: Problem, placed: PlacedMesh, objective: str, limit: Cost) -> Way | None:
    """The best plan; None where none costs at most `limit`."""
    space = Space(placed, problem.mesh, objective, axes=named_axes(problem), padded=pending_axes(problem))
    return _Search(problem, space, limit).best()


@dataclass
class _Search:
    problem: Problem
    space: Space
    limit: Cost
    found: Way | None = None
    splits: list[list[Split]] = field(default_factory=list)
    left: list[Cost] = field(default_factory=list)

    def best(self) -> Way | None:
        parts = self.problem.parts
        self.splits = [sorted(splits(self.space, part), key=lambda split: split.cost) for part in parts]
        self.left = [NOTHING]
        for each in reversed(self.splits):
            self.left.insert(0, add(self.left[0], each[0].cost))
        self.arrays = {array.name: array for array in self.problem.arguments}
        self.arrays |= {part.result.name: part.result for part in parts}
        self.trees = cache(self._tree)
        made = {array.name: self.space.state(array.decided_spec) for array in self.problem.arguments}
        self._follow(0, NOTHING, made, {name: frozenset() for name in self.arrays})
        return self.found

    def _follow(
        self, number: int, cost: Cost, made: dict[str, State], needed: dict[str, frozenset[State]]
    ) -> None:
        """Try all splits of a statement and those behind it; `cost` is that of all before."""
        best = self.limit if self.found is None else min(self.limit, self.found.cost)
        if add(cost, self.left[number]) > best:
            return
        if number == len(self.splits):
            total = self._returned(cost, made, needed)
            if total <= best:
                states = (
                    f"{name} as {self.space.said(state)}" for name, own in needed.items() for state in own
                )
                self.found = Way(total, tuple(Way(NOTHING, (), said) for said in states))
            return
        part = self.problem.parts[number]
        options = []
        for split in self.splits[number]:
            more = dict(needed)
            total = add(cost, split.cost)
            for operand, state in zip(part.operands, split.operands, strict=True):
                if state in more[operand.name] or state == made[operand.name]:
                    continue
                before = self.trees(operand.name, made[operand.name], more[operand.name])
                more[operand.name] |= {state}
                after = self.trees(operand.name, made[operand.name], more[operand.name])
                total = add(total, tuple(new - old for new, old in zip(after, before, strict=True)))
            if total[0] < math.inf and add(total, self.left[number + 1]) <= best:
                options.append((total, split, more))
        for total, split, more in sorted(options, key=lambda option: option[0]):
            self._follow(number + 1, total, made | {part.result.name: split.result}, more)

    def _returned(self, cost: Cost, made: dict[str, State], needed: dict[str, frozenset[State]]) -> Cost:
        """The cost with the moves of the results to states in which they may be returned."""
        for name in self.problem.results:
            array, start = self.arrays[name], made[name]
            before = self.trees(name, start, needed[name])
            if array.spec is not None:
                ends = {self.space.state(array.spec)}
            else:
                ends = allowed_ends(self.space, self.problem, array, self._reach(name, start))
            after = min((self.trees(name, start, needed[name] | {end}) for end in ends), default=UNLIMITED)
            cost = add(cost, tuple(new - old for new, old in zip(after, before, strict=True)))
        return cost

    def _reach(self, name: str, start: State) -> dict[State, Way]:
        array = self.arrays[name]
        return self._reached(array.shape, array.dtype, start)

    def __post_init__(self) -> None:
        self._reached = cache(
            lambda shape, dtype, start: self.space.reach(shape, dtype, {start: Way(NOTHING)}, self.limit)
        )

    def _tree(self, name: str, start: State, ends: frozenset[State]) -> Cost:
        """The cost of the cheapest tree of moves from one state to all of the others."""
        ends = ends - {start}
        if not ends:
            return NOTHING
        terminals = sorted(ends)
        if len(terminals) == 1:
            way = self._reach(name, start).get(terminals[0])
            return UNLIMITED if way is None else way.cost
        nodes = list(self._reach(name, start))

        def between(one: State, other: State) -> Cost:
            way = self._reach(name, one).get(other)
            return UNLIMITED if way is None else way.cost

        full = (1 << len(terminals)) - 1
        costs: dict[int, dict[State, Cost]] = {}
        for subset in range(1, full + 1):
            if subset & (subset - 1) == 0:
                end = terminals[subset.bit_length() - 1]
                costs[subset] = {node: between(node, end) for node in nodes}
                continue
            joined = {}
            for node in nodes:
                halves = [
                    add(costs[half][node], costs[subset ^ half][node])
                    for half in range(1, subset)
                    if half & subset == half and half < subset ^ half
                ]
                joined[node] = min(halves)
            costs[subset] = {
                node: min(add(between(node, fork), cost) for fork, cost in joined.items()) for node in nodes
            }
        return costs[full][start]


def splits(space: Space, part: Statement) -> Iterator[Split]:
    """Every way to share a statement's work."""
    function = FUNCTIONS[part.function]
    merged = dict(part.merged)
    arrays = (*part.operands, part.result)
    sizes = {dim: size for array in arrays for dim, size in zip(array.dims, array.shape, strict=True)}
    names, is_conv = list(sizes), part.function == "conv"
    open_dims = [
        number
        for number, dim in enumerate(names)
        if dim not in (part.whole[1:] if is_conv else part.whole)
        and dim not in merged
        and all(array.dims.count(dim) < 2 for array in arrays)
    ]
    for chosen in assignments(space, len(names), open_dims, [sizes[dim] for dim in names]):
        split = dict(zip(names, chosen, strict=True))
        if not all(_merge(space, split, sizes, dim, factors) for dim, factors in merged.items()):
            continue
        adds = [atom for dim in part.summed for atom in split[dim]]
        used = {atom for atoms in split.values() for atom in atoms}
        idle = [atom for atom in space.every if atom not in used]
        dims = [tuple(split[dim] for dim in array.dims) for array in arrays]
        cost = _work(space, part, split)
        if is_conv and split[part.along]:
            # A halo of all positions but one of the taps, of shards as long at least.
            rows = sizes[part.whole[-1]] - 1
            pairs = zip(part.operands[0].dims, part.operands[0].shape, strict=True)
            own = [rows if dim == part.along else size // space.count(split[dim]) for dim, size in pairs]
            if rows > sizes[part.along] // space.count(split[part.along]):
                continue
            size = array_bytes(own, part.operands[0].dtype)
            cost = add(cost, space._price("ppermute", split[part.along], size, size))
        every = tuple(range(len(part.operands)))
        if function.linearity == "none":
            ways: list[tuple[int, ...]] = [()]
        elif function.linearity == "sum":
            ways = [(), tuple(place for place in every if function.may_pend(place))]
        else:
            ways = [(), *((place,) for place in every if function.may_pend(place))]
        for holders in product(ways, repeat=len(idle)):
            pending = [
                tuple(atom for atom, held in zip(idle, holders, strict=True) if place in held)
                for place in every
            ]
            states = tuple(zip(dims[:-1], pending, strict=True))
            if function.takes_largest:
                # The largest of all parts is found at once, for as much as a sum: nothing else takes them.
                yield Split(states, (dims[-1], ()), add(cost, _of_all(space, part, split, adds)))
                continue
            left = sorted({*adds, *(atom for own in pending for atom in own)})
            yield Split(states, (dims[-1], tuple(left)), cost)


def _of_all(space: Space, part: Statement, split: dict[str, Atoms], atoms: list[int]) -> Cost:
    """The cost of an all-reduce of a statement's result."""
    if not atoms:
        return NOTHING
    pairs = zip(part.result.dims, part.result.shape, strict=True)
    size = array_bytes([size // space.count(split[dim]) for dim, size in pairs], part.result.dtype)
    return space._price("psum", tuple(atoms), size, size)


def _merge(
    space: Space, split: dict[str, Atoms], sizes: dict[str, int], dim: str, factors: tuple[str, ...]
) -> bool:
    """Split a dimension as those that it stands for; False where its pieces would not be in one place."""
    split[dim] = tuple(atom for factor in factors for atom in split[factor])
    single = True
    for factor in factors:
        if split[factor] and not single:
            return False
        single = single and space.count(split[factor]) == sizes[factor]
    return True


def _work(space: Space, part: Statement, split: dict[str, Atoms]) -> Cost:
    def local(array: ShardedArray) -> list[int]:
        return [size // space.count(split[dim]) for dim, size in zip(array.dims, array.shape, strict=True)]

    function = FUNCTIONS[part.function]
    result = local(part.result)
    moved = array_bytes(result, part.result.dtype)
    points: dict[str, int] = {}
    for place, array in enumerate(part.operands):
        shape = local(array)
        points |= dict(zip(array.dims, shape, strict=True))
        own = array_bytes(shape, array.dtype)
        if place in function.looks_up:
            own = min(own, array_bytes(result, array.dtype))
        moved += own
    flops = 0
    counts = [dim for array in part.operands for dim in array.dims]
    if part.function == "multiply":
        if any(counts.count(dim) > 1 for dim in part.summed):
            flops = math.prod(points.values()) * len(part.operands)
    elif function.multiplies_matrices:
        flops = math.prod(points.values()) * (function.flops + bool(part.summed))
    return space.local(flops, moved, part.operands[0].dtype if part.operands else part.result.dtype)
