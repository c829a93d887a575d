"""The least cost of a chain of einsums, by trying everything: no code of the planner is used.

A state of an array is, for each dimension, a sequence of atoms, the major first, and the atoms over which
sums are pending; atoms are prime parts of mesh axes. Every move is one operation of JAX:

    all_gather    atoms leave the minor ends of dimensions
    psum          pending atoms are added up
    psum_scatter  pending atoms are appended to dimensions
    all_to_all    atoms leave the minor ends of some dimensions and are appended to others
    ppermute      any other state that cuts every dimension into as many parts
    slice         idle atoms are appended to dimensions
    mask          idle atoms become pending: the first devices keep what they have, the others take zeros
    pad           atoms leave the minor ends of dimensions and become pending: devices pad with zeros
    sum           dimensions that no other operand and not the result has are summed on each device

A slice takes no time: the step that takes the piece reads it in place. An einsum's work is split by any
assignment of atoms to its dimensions; over any other atom one operand may be a pending sum. Costs are those
of one step after the other: seconds by `collective_time` and the roofline, which of every step are rounded up
to nanoseconds, wire bytes, and the number of collectives.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from itertools import combinations, permutations, product
from typing import NamedTuple

from shardviz.hardware.collective_time import collective_time
from shardviz.hardware.machine import PlacedMesh
from shardviz.notation.einsum import Einsum
from shardviz.planner.problem import Problem, Statement
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray, array_bytes

Atoms = tuple[int, ...]
State = tuple[tuple[Atoms, ...], Atoms]
Cost = tuple[int, int, int]
"""By time: nanoseconds, wire bytes, collectives; by bytes: wire bytes, collectives, nanoseconds."""
HLO = {
    "all_gather": "all-gather",
    "psum": "all-reduce",
    "psum_scatter": "reduce-scatter",
    "all_to_all": "all-to-all",
    "ppermute": "collective-permute",
}
TIME, BYTES = "time", "bytes"
NOTHING: Cost = (0, 0, 0)
UNLIMITED = (math.inf, math.inf, math.inf)


class Way(NamedTuple):
    """The cost of having an array somehow, and what was done for it: steps, or ways to other arrays."""

    cost: Cost
    before: tuple[Way, ...] = ()
    step: str = ""

    def steps(self) -> list[str]:
        """What was done, in order."""
        return [step for way in self.before for step in way.steps()] + [self.step] * bool(self.step)


def prime_factors(number: int) -> list[int]:
    found, divisor = [], 2
    while number > 1:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return found


@dataclass(frozen=True)
class Atom:
    """A part of a mesh axis with `size` devices, and `before` in front of it on that axis."""

    axis: str
    before: int
    size: int


class Space:
    """The states and moves on one mesh, priced on a machine, over some of its axes, by default all.

    With `whole_axes` no axis is cut into parts. Shards are padded only over `padded`, by default any.
    """

    def __init__(
        self,
        placed: PlacedMesh,
        mesh: Mesh,
        objective: str = TIME,
        whole_axes: bool = False,
        axes: Iterable[str] | None = None,
        padded: Iterable[str] | None = None,
    ) -> None:
        self.placed, self.mesh, self.objective = placed, mesh, objective
        self.atoms: list[Atom] = []
        for axis, size in mesh.shape.items():
            before = 1
            if axes is not None and axis not in axes:
                continue
            for factor in [size] * (size > 1) if whole_axes else prime_factors(size):
                self.atoms.append(Atom(axis, before, factor))
                before *= factor
        self.sizes = [atom.size for atom in self.atoms]
        self.every = tuple(range(len(self.atoms)))
        self.padded = self.every if padded is None else self.numbers(tuple(padded))
        self.price = cache(self._price)
        self.placements = cache(self._placements)

    # Names of mesh axes.

    def numbers(self, names: tuple[str, ...]) -> Atoms:
        found: list[int] = []
        for name in names:
            axis, _, part = name.partition(":")
            before, size = map(int, part[1:].split(")")) if part else (1, self.mesh.shape[axis])
            inside = [
                number
                for number, atom in enumerate(self.atoms)
                if atom.axis == axis and before <= atom.before < before * size
            ]
            assert math.prod(self.sizes[number] for number in inside) == size, f"{name} is not made of atoms"
            found += inside
        return tuple(found)

    def state(self, spec: PartitionSpec) -> State:
        return tuple(map(self.numbers, spec.dims)), tuple(sorted(self.numbers(spec.unreduced)))

    def names(self, group: Atoms) -> tuple[str, ...]:
        """Atoms in the mesh's order as whole axes and parts, neighbours joined."""
        spans: list[tuple[str, int, int]] = []
        for number in sorted(group):
            atom = self.atoms[number]
            if spans and spans[-1][0] == atom.axis and spans[-1][1] * spans[-1][2] == atom.before:
                axis, before, size = spans.pop()
                spans.append((axis, before, size * atom.size))
            else:
                spans.append((atom.axis, atom.before, atom.size))
        return tuple(
            axis if size == self.mesh.shape[axis] else f"{axis}:({before}){size}"
            for axis, before, size in spans
        )

    def said(self, state: State) -> str:
        """A state in words: ``[X, (Y, Z)]``, ``[_, _] + Y``."""
        dims = ", ".join(
            " ".join(name for atom in dim for name in self.names((atom,))) or "_" for dim in state[0]
        )
        return f"[{dims}]" + (f" + {' '.join(self.names(state[1]))}" if state[1] else "")

    def count(self, atoms: Atoms) -> int:
        found = 1
        for number in atoms:
            found *= self.sizes[number]
        return found

    # Prices.

    def cost(self, seconds: float, wire: int, collectives: int) -> Cost:
        time = nanoseconds(seconds)
        return (time, wire, collectives) if self.objective == TIME else (wire, collectives, time)

    def _price(self, op: str, group: Atoms, before: int, after: int) -> Cost:
        """The cost of a step on one array, whose pieces have so many bytes before and after."""
        bandwidth = self.placed.machine.device.hbm_bandwidth
        if op == "slice":
            return NOTHING
        if op in ("mask", "pad"):
            return self.cost((before + after) / bandwidth if bandwidth else 0.0, 0, 0)
        held, n = max(before, after), self.count(group)
        levels = self.placed.group_levels(self.names(group), in_order=op == "ppermute")
        seconds = collective_time(HLO[op], held, levels, measured=self.placed.machine.measured).seconds
        if bandwidth:
            seconds = max(seconds, (before + after) / bandwidth)
        wire = held if op == "ppermute" else -(-(2 if op == "psum" else 1) * held * (n - 1) // n)
        return self.cost(seconds, wire, 1)

    def local(self, flops: int, moved: int, dtype: str) -> Cost:
        """The cost of a local computation that reads and writes so many bytes."""
        device = self.placed.machine.device
        known = dtype if device.flops_per_second(dtype) else max(device.peak, key=lambda pair: pair[1])[0]
        traffic = moved / device.hbm_bandwidth if device.hbm_bandwidth else 0.0
        work = device.matmul_seconds(flops, moved, known) if flops else 0.0
        return self.cost(max(work or 0.0, traffic), 0, 0)

    # Moves.

    def _placements(self, wanted: tuple[int, ...], free: Atoms) -> list[tuple[Atoms, ...]]:
        if not wanted:
            return [()]
        found = []
        for count in range(len(free) + 1):
            for atoms in permutations(free, count):
                if self.count(atoms) == wanted[0]:
                    left = tuple(number for number in free if number not in atoms)
                    found += [(atoms, *rest) for rest in self.placements(wanted[1:], left)]
        return found

    def moves(self, state: State) -> Iterator[tuple[str, Atoms, State]]:
        """The operation, its group and the state after it; some states cut a dimension unevenly."""
        dims, pending = state
        used = {*pending, *(number for dim in dims for number in dim)}
        idle = tuple(number for number in self.every if number not in used)
        for group in _subsets(idle):
            yield "mask", group, (dims, tuple(sorted((*pending, *group))))
            for after in _appended(dims, group, range(len(dims))):
                yield "slice", group, (after, pending)
        for group in _subsets(pending):
            rest = tuple(number for number in pending if number not in group)
            yield "psum", group, (dims, rest)
            for after in _appended(dims, group, range(len(dims))):
                yield "psum_scatter", group, (after, rest)
        for cuts in product(*(range(len(dim) + 1) for dim in dims)):
            group = tuple(number for dim, cut in zip(dims, cuts, strict=True) for number in dim[cut:])
            if not group:
                continue
            shorter = tuple(dim[:cut] for dim, cut in zip(dims, cuts, strict=True))
            yield "all_gather", tuple(sorted(group)), (shorter, pending)
            if {*group} <= {*self.padded}:
                yield "pad", tuple(sorted(group)), (shorter, tuple(sorted((*pending, *group))))
            targets = [
                number for number, (dim, cut) in enumerate(zip(dims, cuts, strict=True)) if cut == len(dim)
            ]
            for after in _appended(shorter, group, targets):
                yield "all_to_all", tuple(sorted(group)), (after, pending)
        free = tuple(number for number in self.every if number not in pending)
        for placed in self.placements(tuple(map(self.count, dims)), free):
            if placed != dims:
                yield "ppermute", self._permuted(dims, placed), (placed, pending)

    def _permuted(self, old: tuple[Atoms, ...], new: tuple[Atoms, ...]) -> Atoms:
        """The atoms by which a device and the one that it receives from may differ."""
        before, after = self._strides(old), self._strides(new)
        return tuple(number for number in self.every if before.get(number) != after.get(number))

    def _strides(self, dims: tuple[Atoms, ...]) -> dict[int, tuple[int, int]]:
        found = {}
        for number, dim in enumerate(dims):
            parts = 1
            for atom in dim:
                found[atom] = (number, parts)
                parts *= self.sizes[atom]
        return found

    # Searches.

    def reach(
        self, shape: tuple[int, ...], dtype: str, starts: Mapping[State, Way], limit: Cost
    ) -> dict[State, Way]:
        """The least cost, up to a limit, of having an array in each state."""

        @cache
        def held(dims: tuple[Atoms, ...]) -> int | None:
            """The bytes of a piece; None where a dimension does not divide."""
            sizes = []
            for size, dim in zip(shape, dims, strict=True):
                parts = self.count(dim)
                if size % parts:
                    return None
                sizes.append(size // parts)
            return array_bytes(sizes, dtype)

        best = {state: way for state, way in starts.items() if way.cost <= limit}
        heap = [(way.cost, state) for state, way in best.items()]
        heapq.heapify(heap)
        done: set[State] = set()
        while heap:
            cost, state = heapq.heappop(heap)
            if state in done:
                continue
            done.add(state)
            own = held(state[0])
            for op, group, after in self.moves(state):
                if after in done or (size := held(after[0])) is None:
                    continue
                total = add(cost, self.price(op, group, own, size))
                if total <= limit and (after not in best or total < best[after].cost):
                    best[after] = Way(total, (best[state],), f"{op} {self.names(group)} {self.said(after)}")
                    heapq.heappush(heap, (total, after))
        return best


@dataclass(frozen=True)
class Array:
    """An array before a statement: its dimensions, some of which may be summed, and what each state costs."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    ways: Mapping[State, Way] = field(repr=False)


def least_cost(
    problem: Problem,
    placed: PlacedMesh,
    objective: str = TIME,
    limit: Cost = UNLIMITED,
    whole_axes: bool = False,
) -> Way | None:
    """The best plan of a chain over the axes that its arrays name; None where none costs at most `limit`."""
    assert problem.is_chain
    space = Space(placed, problem.mesh, objective, whole_axes, named_axes(problem), pending_axes(problem))
    work = [_least_work(space, part) for part in problem.parts]
    made: Mapping[State, Way] = {}
    for number, part in enumerate(problem.parts):
        operands = []
        # Work that is still to be done comes on top of what the moves of this statement cost.
        before = (limit[0] - sum(cost[0] for cost in work[number:]), *limit[1:])
        after = (limit[0] - sum(cost[0] for cost in work[number + 1 :]), *limit[1:])
        for place, operand in enumerate(part.operands):
            ways = made
            if place or not number:
                start = {space.state(operand.decided_spec): Way(NOTHING)}
                ways = space.reach(operand.shape, operand.dtype, start, before)
            elif operand.spec is not None:
                ways = _only(made, space.state(operand.spec))
                ways = space.reach(operand.shape, operand.dtype, ways, before)
            operands.append(Array(operand.dims, operand.shape, operand.dtype, ways))
        made = after_statement(space, part, operands, after)
        if part.result.spec is not None:
            made = _only(made, space.state(part.result.spec))
            if number + 1 < len(problem.parts):
                made = space.reach(part.result.shape, part.result.dtype, made, after)
    if problem.result.spec is None:
        made = {state: made[state] for state in allowed_ends(space, problem, problem.result, made)}
    return min(made.values(), key=lambda way: way.cost, default=None)


def named_axes(problem: Problem) -> set[str]:
    """The mesh axes that some spec names, or names a part of."""
    specs = [array.spec for array in problem.arrays if array.spec is not None]
    return {name.partition(":")[0] for spec in specs for name in (*spec.axes, *spec.unreduced)}


def pending_axes(problem: Problem) -> set[str]:
    """The mesh axes, or parts of them, over which some array is given or wanted with pending sums."""
    specs = [array.spec for array in problem.arrays if array.spec is not None]
    return {name for spec in specs for name in spec.unreduced}


def allowed_ends(
    space: Space, problem: Problem, array: ShardedArray, states: Iterable[State]
) -> Iterator[State]:
    """The states in which a result may be left that nobody asks for: nothing is pending, and dimensions are
    split only over axes over which a given array splits them."""
    given = {
        (dim, atom)
        for each in problem.arrays
        if each.spec is not None
        for dim, atoms in zip(each.dims, space.state(each.spec)[0], strict=True)
        for atom in atoms
    }
    for dims, pending in states:
        split = {(dim, atom) for dim, atoms in zip(array.dims, dims, strict=True) for atom in atoms}
        if not pending and split <= given:
            yield dims, pending


def _only(ways: Mapping[State, Way], state: State) -> dict[State, Way]:
    return {state: ways[state]} if state in ways else {}


def _least_work(space: Space, part: Statement) -> Cost:
    """The cost of a statement whose work all devices share: less than any plan's."""
    sizes = {dim: size for array in part.operands for dim, size in zip(array.dims, array.shape, strict=True)}
    counts = [dim for dims in part.einsum.operands for dim in dims]
    is_matmul = any(counts.count(dim) > 1 and dim not in part.einsum.result for dim in sizes)
    products = math.prod(size for dim, size in sizes.items() if not _is_own(part.einsum, dim))
    flops = products * len(part.operands) // space.mesh.size if is_matmul else 0
    return space.local(flops, 0, part.result.dtype)


def _is_own(einsum: Einsum, dim: str) -> bool:
    """A dimension that only one operand has may be summed before."""
    return dim not in einsum.result and sum(dim in dims for dims in einsum.operands) == 1


def after_statement(space: Space, part: Statement, operands: list[Array], limit: Cost) -> dict[State, Cost]:
    """The least cost of a statement's result in each state."""
    found: dict[State, Way] = {}
    result = part.result
    for chosen in product(*(_summed(space, part, place, operands, limit) for place in range(len(operands)))):
        for state, way in _worked(space, part, chosen):
            if way.cost <= limit and (state not in found or way.cost < found[state].cost):
                found[state] = way
    return space.reach(result.shape, result.dtype, found, limit)


def _summed(space: Space, part: Statement, place: int, operands: list[Array], limit: Cost) -> list[Array]:
    """An operand as it is, and with every set of dimensions summed that only it has."""
    array = operands[place]
    others = {
        dim for other in (*part.einsum.operands[:place], *part.einsum.operands[place + 1 :]) for dim in other
    }
    own = tuple(
        dim
        for dim in dict.fromkeys(array.dims)
        if dim not in others and dim not in part.einsum.result and array.dims.count(dim) == 1
    )
    found = {(): array}
    for gone in _subsets(own):
        starts: dict[State, Way] = {}
        for earlier, before in found.items():
            if set(earlier) < set(gone):
                for after, way in _locally_summed(space, before, gone):
                    if after not in starts or way.cost < starts[after].cost:
                        starts[after] = way
        left = [index for index, dim in enumerate(array.dims) if dim not in gone]
        dims, shape = (tuple(each[index] for index in left) for each in (array.dims, array.shape))
        found[gone] = Array(dims, shape, array.dtype, space.reach(shape, array.dtype, starts, limit))
    return list(found.values())


def _locally_summed(space: Space, array: Array, gone: tuple[str, ...]) -> Iterator[tuple[State, Way]]:
    """The states of an array after each device summed its piece over dimensions, from each state before."""
    kept = [index for index, dim in enumerate(array.dims) if dim not in gone]
    for (dims, pending), way in array.ways.items():
        cut = [size // space.count(dim) for size, dim in zip(array.shape, dims, strict=True)]
        added = [atom for index, dim in enumerate(dims) if index not in kept for atom in dim]
        moved = array_bytes(cut, array.dtype) + array_bytes([cut[index] for index in kept], array.dtype)
        work = space.local(0, moved, array.dtype)
        after = tuple(dims[index] for index in kept), tuple(sorted((*pending, *added)))
        yield after, Way(add(way.cost, work), (way,), f"sum {' '.join(gone)} {space.said(after)}")


def _worked(space: Space, part: Statement, operands: tuple[Array, ...]) -> Iterator[tuple[State, Way]]:
    """Every state in which a statement can leave its result, with its cost."""
    sizes = {dim: size for array in operands for dim, size in zip(array.dims, array.shape, strict=True)}
    names = list(sizes)
    open_dims = [
        number for number, dim in enumerate(names) if all(array.dims.count(dim) < 2 for array in operands)
    ]
    summed = [dim for dim in names if dim not in part.einsum.result]
    # The peak of a chip is that of its matrix products; all else is bound by HBM.
    is_matmul = any(sum(array.dims.count(dim) for array in operands) > 1 for dim in summed)
    places = [[names.index(dim) for dim in array.dims] for array in operands]
    kept = [names.index(dim) for dim in part.einsum.result]
    dtype = part.result.dtype

    for assignment in assignments(space, len(names), open_dims, [sizes[dim] for dim in names]):
        used = {atom for atoms in assignment for atom in atoms}
        idle = [atom for atom in space.every if atom not in used]
        split = [tuple(assignment[place] for place in where) for where in places]
        cut = {dim: sizes[dim] // space.count(assignment[number]) for number, dim in enumerate(names)}
        moved = sum(array_bytes([cut[dim] for dim in array.dims], array.dtype) for array in operands)
        moved += array_bytes([cut[dim] for dim in part.einsum.result], dtype)
        flops = math.prod(cut.values()) * len(operands) if is_matmul else 0
        work = space.local(flops, moved, dtype)
        adds = [atom for dim in summed for atom in assignment[names.index(dim)]]
        result = tuple(assignment[place] for place in kept)
        for holders in product((None, *range(len(operands))), repeat=len(idle)):
            total, taken, needed = work, [], []
            for number, (array, dims) in enumerate(zip(operands, split, strict=True)):
                pending = tuple(atom for atom, holder in zip(idle, holders, strict=True) if holder == number)
                way = array.ways.get((dims, pending))
                if way is None:
                    break
                total = add(total, way.cost)
                taken.append(way)
                needed.append(space.said((dims, pending)))
            else:
                left = [atom for atom, holder in zip(idle, holders, strict=True) if holder is not None]
                after = result, tuple(sorted((*adds, *left)))
                step = f"{part.einsum} {', '.join(needed)} -> {space.said(after)}"
                yield after, Way(total, tuple(taken), step)


def assignments(
    space: Space, count: int, open_dims: list[int], sizes: list[int]
) -> Iterator[tuple[Atoms, ...]]:
    """Every way to split dimensions over atoms, in every order."""
    for used in ((), *_subsets(space.every)):
        for order in _appended(((),) * count, used, open_dims):
            if all(size % space.count(atoms) == 0 for size, atoms in zip(sizes, order, strict=True)):
                yield order


def _subsets(atoms: tuple) -> Iterator[tuple]:
    """Every subset but the empty one, smaller ones first."""
    for size in range(1, len(atoms) + 1):
        yield from combinations(atoms, size)


def _appended(dims: tuple[Atoms, ...], group: Atoms, targets: Sequence[int]) -> Iterator[tuple[Atoms, ...]]:
    """The dimensions with the atoms of a group appended to the minor ends of some, in every order."""
    for pieces in _orders(group, len(targets)):
        after = list(dims)
        for target, piece in zip(targets, pieces, strict=True):
            after[target] += piece
        yield tuple(after)


@cache
def _orders(group: Atoms, places: int) -> list[tuple[Atoms, ...]]:
    """Every way to lay all atoms of a group in rows at so many places."""
    if not places:
        return [()] if not group else []
    found = []
    for size in range(len(group) + 1):
        for row in permutations(group, size):
            left = tuple(atom for atom in group if atom not in row)
            found += [(row, *rest) for rest in _orders(left, places - 1)]
    return found


def nanoseconds(seconds: float) -> int:
    """Rounded up; 1e-6 seconds are 1000, whatever they are as a binary fraction."""
    return math.ceil(Decimal(seconds).quantize(Decimal("1e-15")) * 10**9)


def add(one: Cost, other: Cost) -> Cost:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]
