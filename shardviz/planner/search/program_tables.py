"""The costs of a program on one mesh as tables over the shardings of its arrays and the splits of its work.

A statement's cost is that of its work, of the moves of its operands to what the work needs, and of the move
of its result to the sharding that the array has: a sum of tables over one split and one array each, the least
of which `least_sum` finds. The moves are those of `direct_moves`, found once for all meshes (`DirectWays`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import inf, prod
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shardviz.errors import plural
from shardviz.hardware.machine import PlacedMesh
from shardviz.planner.plan import LOCAL_OPS
from shardviz.planner.pricing.priced_plan import Passes, by_pass
from shardviz.planner.problem import Phase, Problem, Statement
from shardviz.planner.problem.functions import FUNCTIONS, Shape, local_work, sent_beside
from shardviz.planner.search.least_sum import Factor, Table, least_of_stars
from shardviz.planner.search.rules import ShardingRules
from shardviz.planner.states.moves import (
    Axes,
    Dims,
    PathMove,
    State,
    StateSpace,
    remembered,
    spec_of,
    subsets,
)
from shardviz.planner.states.paths import direct_moves
from shardviz.planner.states.prices import Prices
from shardviz.planner.training import state_spec
from shardviz.sharding import Mesh, ShardedArray, array_bytes

Part = tuple[Axes, float]
"""The mesh axes of a collective and its seconds."""
_PRIMES = (2, 3, 5, 7, 11)
"""Sizes of axes of which no product is another: a way for these is one for axes of any size."""


class DirectCollective(NamedTuple):
    """A collective over mesh axes, with the axes that split each dimension before and after it, in no order;
    `idle` are those over which an all-gather may cut the array first, for more links."""

    op: str
    axes: Axes
    before: Dims
    after: Dims
    idle: Axes = ()


DirectWay = tuple[DirectCollective, ...] | None
"""The collectives of a way, without cuts, which are read in place and free; None where there is no way."""


class DirectWays:
    """The direct ways between states, by number, on all meshes with the same axes of more than one device."""

    def __init__(self, wide: Axes) -> None:
        self._wide = wide
        sizes = dict(zip(wide, _PRIMES, strict=False))
        self._space = StateSpace(sizes, sizes)
        self.ways: list[DirectWay] = []
        self._numbers: dict[DirectWay, int] = {}

    @remembered
    def between(self, befores: tuple[State, ...], afters: tuple[State, ...]) -> NDArray[np.intp]:
        """For each pair of states of arrays of one rank the number of the way."""
        return np.array([[self._number(before, after) for after in afters] for before in befores], np.intp)

    @remembered
    def _number(self, before: State, after: State) -> int:
        way: DirectWay = None  # whole values do not become pending sums
        if set(after[1]) <= set(before[1]):
            moves = direct_moves(self._space, before, after)
            way = tuple(self._collective(move) for move in moves if move.op not in LOCAL_OPS)
        number = self._numbers.setdefault(way, len(self.ways))
        if number == len(self.ways):
            self.ways.append(way)
        return number

    def _collective(self, move: PathMove) -> DirectCollective:
        before, after = (tuple(tuple(sorted(own)) for own in dims) for dims, _ in (move.before, move.after))
        used = {*move.before[1], *(axis for axes in before for axis in axes)}
        idle = tuple(axis for axis in self._wide if axis not in used and move.op == "all_gather")
        return DirectCollective(move.op, move.axes, before, after, idle)


class MovedArray(NamedTuple):
    """An array as its moves are priced: of one microbatch, if there are several. A step moves it so many
    `times`, but over the axes `over`, and reduces its partial sums, `sums` times: once where each device adds
    up those of all of them."""

    shape: Shape
    dtype: str
    times: int = 1
    sums: int = 1
    over: Axes = ()


class DirectPrices:
    """The prices of direct ways on a placed mesh."""

    def __init__(self, prices: Prices, mesh: Mesh, ways: DirectWays) -> None:
        self._prices, self._mesh, self._ways = prices, mesh, ways

    def table(self, array: MovedArray, befores: tuple[State, ...], afters: tuple[State, ...]) -> Table:
        """Seconds from each state to each; whole values do not become pending sums."""
        numbers = self._ways.between(befores, afters)
        seconds = np.zeros(len(self._ways.ways))
        for number in np.flatnonzero(np.bincount(numbers.ravel())).tolist():
            seconds[number] = self._seconds(array, number)
        prices: Table = seconds[numbers]
        return prices

    @remembered
    def _seconds(self, array: MovedArray, number: int) -> float:
        way = self._ways.ways[number]
        return inf if way is None else sum(self._part(array, collective)[1] for collective in way)

    def parts(self, array: MovedArray, before: State, after: State) -> tuple[Part, ...]:
        """The collectives of a way, in order."""
        way = self._ways.ways[self._ways.between((before,), (after,))[0, 0]]
        return tuple(self._part(array, collective) for collective in way or ())

    def local_bytes(self, shape: Shape, dtype: str, dims: Dims) -> int:
        return array_bytes(self.local_shape(shape, dims), dtype)

    @remembered
    def local_shape(self, shape: Shape, dims: Dims) -> Shape:
        return tuple(-(-size // self._group_size(axes)) for size, axes in zip(shape, dims, strict=True))

    @remembered
    def _group_size(self, axes: Axes) -> int:
        return self._mesh.group_size(axes)

    @remembered
    def _part(self, array: MovedArray, collective: DirectCollective) -> Part:
        shape, dtype, times, sums, over = array
        before, after = (
            self.local_bytes(shape, dtype, dims) for dims in (collective.before, collective.after)
        )
        seconds_of = self._prices.move_seconds
        cheapest = (collective.axes, seconds_of(collective.op, collective.axes, before, after))
        for more in subsets(collective.idle):
            # A cut over axes that hold copies, and a gather over these too, which has more links.
            axes = (*collective.axes, *more)
            if any(size % self._group_size(axes) == 0 for size in shape):
                seconds = seconds_of(collective.op, axes, before // self._group_size(more), after)
                cheapest = min(cheapest, (axes, seconds), key=lambda part: part[1])
        axes, seconds = cheapest
        is_sum = collective.op == "psum" or set(over).issuperset(collective.axes)
        return axes, seconds * (sums if is_sum else times)


@dataclass(frozen=True)
class Multipliers:
    """The weights of a sum: by pass of seconds of work, of communication that must be waited for and of
    communication that other work can hide, and of bytes held (seconds a byte)."""

    work: Passes = (1.0, 1.0)
    exposed: Passes = (1.0, 1.0)
    hidden: Passes = (1.0, 1.0)
    memory: float = 0.0


class WorkChoice(NamedTuple):
    """One way to split a statement's work: the states that it needs of the operands and makes of the result,
    the FLOPs of one device, its bytes of HBM, and the seconds of both. What it needs beside its operands
    takes `sent` seconds over the axes `beside`: halos, or on a ring keys and values, during the work."""

    states: tuple[State, ...]
    flops: int
    hbm_bytes: int
    seconds: float
    beside: Axes = ()
    sent: float = 0.0
    is_ring: bool = False

    @property
    def exposed(self) -> float:
        """Seconds for which the work waits."""
        return max(0.0, self.sent - self.seconds) if self.is_ring else self.sent


class StatementTable(NamedTuple):
    """A statement with the ways to split its work. For its operands, and last its result: `arrays`, their
    `variables`, and whether their move can run beside other work (`Roles.is_hideable`)."""

    part: Statement
    choices: tuple[WorkChoice, ...]
    arrays: tuple[ShardedArray, ...]
    variables: tuple[str, ...]
    hideable: tuple[bool, ...]

    @property
    def is_later(self) -> bool:
        return self.part.phase != "forward"


class PipelineStage(NamedTuple):
    """The stages along a mesh axis: each computes `layers`, of `microbatches` parts of the batch one after
    the other (1F1B: Narayanan and others 2021), and sends each to the next. With an `interleave` of 2 a stage
    has every second half of its layers: it waits half as long and sends twice as often. A single stage adds
    up the gradients of the parts: it gathers and scatters for each, and sums over copies at the end."""

    axis: str
    stages: int
    layers: float
    microbatches: int
    interleave: int = 1

    @property
    def bubble(self) -> float:
        """The part of its work for which the first stage waits."""
        return (self.stages - 1) / (self.interleave * self.microbatches)

    @property
    def in_flight(self) -> float:
        """The part of the batch whose activations the first stage holds."""
        more = (self.stages - 1) / self.interleave if self.interleave > 1 else 0
        return min(1.0, (self.stages + more) / self.microbatches)

    @property
    def words(self) -> str:
        """``96 microbatches, interleave 2``."""
        return f"{plural(self.microbatches, 'microbatch', 'microbatches')}" + (
            f", interleave {self.interleave}" * (self.interleave > 1)
        )


class ProgramTables:
    """The tables of a program on a placed mesh. A variable is the name of the array that leads others."""

    def __init__(
        self,
        problem: Problem,
        placed: PlacedMesh,
        rules: ShardingRules,
        held: Mapping[str, float],
        stage: PipelineStage | None = None,
        ways: DirectWays | None = None,
    ) -> None:
        """`held` are an array's copies through a step; meshes with the same wide axes share `ways`."""
        self.problem, self.placed, self.rules = problem, placed, rules
        self._prices = Prices(placed)
        ways = ways or DirectWays(tuple(axis.name for axis in rules.wide))
        self.moves = DirectPrices(self._prices, rules.mesh, ways)
        self._held, self._stage = held, stage
        self._over, self._updated = _sharded_updates(problem, rules)
        self._gradients = {gradient for _, gradient in problem.gradients}
        self._microbatches = 1 if stage is None else stage.microbatches
        roles = rules.roles
        self.arrays: dict[str, ShardedArray] = {argument.name: argument for argument in problem.arguments}
        for part in problem.parts:
            self.arrays.setdefault(part.result.name, part.result)
        self.states: dict[str, tuple[State, ...]] = {
            name: rules.states(array, name in roles.parameters)
            for name, array in self.arrays.items()
            if roles.leader(name) == name
        }
        same: dict[tuple[State, ...], tuple[State, ...]] = {}
        self.states = {name: same.setdefault(states, states) for name, states in self.states.items()}
        self._choices: dict[object, tuple[WorkChoice, ...]] = {}
        self._tables: dict[object, Table] = {}
        self.statements = [self._statement(part) for part in problem.parts]

    @property
    def sizes(self) -> dict[str, int]:
        """The number of values of each variable, the splits of the statements' work among them."""
        own = {name: len(states) for name, states in self.states.items()}
        return own | {_split_of(n): len(statement.choices) for n, statement in enumerate(self.statements)}

    @property
    def shardings(self) -> int:
        """The number of all shardings: one state for each array that leads."""
        return prod(map(len, self.states.values()))

    @property
    def uneven(self) -> str:
        """Why an array or a statement's work cannot be split as the rules have it; "" where all can."""
        rules = self.rules
        for name, states in self.states.items():
            array = self.arrays[name]
            is_open = states and array.spec is None
            if not is_open and (words := rules.uneven(array, name in rules.roles.parameters)):
                return words
        undivided = (statement.part.result.name for statement in self.statements if not statement.choices)
        return next((rules.not_divided(f"the work on {name}") for name in undivided), "")

    def _statement(self, part: Statement) -> StatementTable:
        roles, arrays = self.rules.roles, part.arrays
        # All operands of a sum may be pending, and so its result.
        function = FUNCTIONS[part.function]
        summed = {operand.name for index, operand in enumerate(part.operands) if function.may_pend(index)}
        may_pend = function.linearity == "sum" and summed <= roles.addends
        pending = [axis.name for axis in self.rules.wide if may_pend]
        times = self._microbatches if part.phase != "optimizer" else 1

        @cache
        def work_of(*shapes: Shape) -> tuple[int, int, float]:
            flops, traffic, dtype = local_work(part, shapes[:-1], shapes[-1])
            seconds = self._prices.work_seconds(flops, traffic, dtype)
            return times * flops, times * traffic, times * seconds

        def choices() -> Iterator[WorkChoice]:
            for split in self.rules.splits(part).every([pending] * len(part.operands)):
                states = (*split.operands, split.made)
                shapes = (
                    self._of_microbatch(array, self.moves.local_shape(array.shape, dims), times)
                    for array, (dims, _) in zip(arrays, states, strict=True)
                )
                cuts = {dim: self.rules.mesh.group_size(axes) for dim, axes in split.assignment.items()}
                axes = split.assignment.get(part.whole[0], ()) if part.whole else ()
                sent = sum(
                    times
                    * self._prices.collective_seconds(
                        one.op, axes, -(-array_bytes(one.shape, one.dtype) // times)
                    )
                    for one in sent_beside(part, cuts)
                )
                choice = WorkChoice(states, *work_of(*shapes), axes, sent)
                yield choice
                yield from self._as_ring(part, choice, times)

        variables = tuple(roles.leader(array.name) for array in arrays)
        hideable = tuple(roles.is_hideable(array.name, part.phase) for array in arrays)
        # Statements that are alike, such as those that are computed again, share their choices.
        names = [array.name for array in arrays]
        own = [
            (array.shape, array.dtype, variable in roles.parameters, names.index(array.name))
            for array, variable in zip(arrays, variables, strict=True)
        ]
        alike = (part.einsum, part.function, part.merged, part.whole, part.number, part.phase == "optimizer")
        key = (*alike, bool(pending), *own)
        if key not in self._choices:
            self._choices[key] = tuple(choices())
        return StatementTable(part, self._choices[key], arrays, variables, hideable)

    def _as_ring(self, part: Statement, choice: WorkChoice, times: int) -> Iterator[WorkChoice]:
        """The same work where devices along a sequence axis have parts of the keys and values, and pass them
        on while they compute with them, gradients of them too (ring attention: Liu and others 2023)."""
        positions = self.rules.roles.positions
        passed = positions.intersection(part.whole)
        split = {
            axis
            for array, (dims, _) in zip(part.arrays, choice.states, strict=True)
            for dim, axes in zip(array.dims, dims, strict=True)
            if dim in positions and dim not in passed
            for axis in axes
        }
        axes = (axis.name for axis in self.rules.wide if axis.kind == "sequence")
        ring = tuple(axis for axis in axes if axis in split)
        parts = self.rules.mesh.group_size(ring)
        if not ring or not passed or choice.beside or any(part.sizes[dim] % parts for dim in passed):
            return
        states, sent = [], 0.0
        for array, (dims, pending) in zip(part.arrays, choice.states, strict=True):
            own = tuple(ring if dim in passed else axes for dim, axes in zip(array.dims, dims, strict=True))
            states.append((own, tuple(axis for axis in pending if axis not in ring)))
            if own != dims:
                shape = self._of_microbatch(array, self.moves.local_shape(array.shape, dims), times)
                op = "psum_scatter" if len(states) == len(part.arrays) else "all_gather"
                size = array_bytes(shape, array.dtype)
                sent += times * self._prices.collective_seconds(op, ring, size)
        yield choice._replace(states=tuple(states), beside=ring, sent=sent, is_ring=True)

    def _of_microbatch(self, array: ShardedArray, shape: Shape, microbatches: int) -> Shape:
        """A device's shard of an array, of one part of the examples."""
        examples = self.rules.roles.examples
        return tuple(
            -(-size // microbatches) if dim in examples else size
            for dim, size in zip(array.dims, shape, strict=True)
        )

    def _bytes(self, array: ShardedArray, state: State) -> int:
        # Gradients of several parts of the batch are added up before they are scattered.
        is_summed = self._microbatches > 1 and array.name in self._gradients
        dims = (state if is_summed else self._own(array, state))[0]
        return self.moves.local_bytes(array.shape, array.dtype, dims)

    def _own(self, array: ShardedArray, state: State) -> State:
        """The state of an array where the one that leads it has `state`."""
        return self._updated_state(array, state) if array.name in self._updated else state

    @remembered
    def _updated_state(self, array: ShardedArray, state: State) -> State:
        spec = state_spec(array.with_spec(spec_of(state)), self._over, self.rules.mesh)
        return spec.dims, state[1]

    def _live_bytes(self, array: ShardedArray, state: State) -> int:
        """Bytes of a device's shard, while a stage computes one part of the batch."""
        shape = self.moves.local_shape(array.shape, self._own(array, state)[0])
        return array_bytes(self._of_microbatch(array, shape, self._microbatches), array.dtype)

    @remembered
    def _moves(self, number: int) -> list[Table]:
        """For each operand of a statement, and last the result, seconds by split and state."""
        statement = self.statements[number]
        tables, last = [], len(statement.arrays) - 1
        for index, (array, name) in enumerate(zip(statement.arrays, statement.variables, strict=True)):
            moved, given = self._moved(statement.part, array), self.states[name]
            key = (id(statement.choices), index, moved, id(given), array.name in self._updated)
            if key not in self._tables:
                needed = tuple(choice.states[index] for choice in statement.choices)
                given = tuple(self._own(array, state) for state in given)
                pair = (needed, given) if index == last else (given, needed)
                table = self.moves.table(moved, *pair)
                self._tables[key] = table if index == last else table.T
            tables.append(self._tables[key])
        return tables

    def _moved(self, part: Statement, array: ShardedArray) -> MovedArray:
        """An array of a statement as it is moved with each part of the batch, but once by the optimizer."""
        times = self._microbatches
        if self.rules.roles.examples.intersection(array.dims):
            return MovedArray(self._of_microbatch(array, array.shape, times), array.dtype, times, times)
        times = 1 if part.phase == "optimizer" else times
        return MovedArray(array.shape, array.dtype, times, over=self._over)

    @cached_property
    def _memory(self) -> dict[str, Table]:
        """Bytes that a device keeps through the step, by variable and state."""
        memory: dict[str, Table] = {}
        for name, array in self.arrays.items():
            copies = self._held.get(name, 0.0)
            if copies:
                leader = self.rules.roles.leader(name)
                own = [copies * self._bytes(array, state) for state in self.states[leader]]
                memory[leader] = memory.get(leader, np.zeros(len(own))) + np.array(own)
        return memory

    def factors(self, by: Multipliers) -> list[Factor]:
        """The tables whose sum is to be least."""
        # Of shardings of equal times the smaller one is chosen.
        factors = [Factor((name,), (by.memory or 1e-22) * table) for name, table in self._memory.items()]
        for number, statement in enumerate(self.statements):
            split = _split_of(number)
            work, waited, sent = np.array(
                [(choice.seconds, choice.exposed, choice.sent) for choice in statement.choices]
            ).T
            later = statement.is_later
            own = by.work[later] * work + by.exposed[later] * waited + by.hidden[later] * (sent - waited)
            factors.append(Factor((split,), own))
            for variable, hideable, table in zip(
                statement.variables, statement.hideable, self._moves(number), strict=True
            ):
                weights = by.hidden if hideable else by.exposed
                factors.append(Factor((split, variable), weights[statement.is_later] * table))
        return factors

    def best(self, by: Multipliers) -> tuple[float, ProgramSharding]:
        """The least sum, and a sharding that has it. Raises `TooWideError`."""
        bound, chosen = least_of_stars(self.factors(by), self.sizes)
        states = {name: ways[chosen[name]] for name, ways in self.states.items()}
        return bound, self.sharding(
            states, [statement.choices[chosen[_split_of(n)]] for n, statement in enumerate(self.statements)]
        )

    def sharding(self, states: Mapping[str, State], choices: Sequence[WorkChoice]) -> ProgramSharding:
        """The figures of one sharding, with these splits of the statements' work."""
        exposed: list[tuple[Phase, Axes, float]] = []
        hidden: list[tuple[Phase, Axes, float]] = []
        work: list[tuple[Phase, float]] = []
        flops = 0.0
        kept, largest, waiting = self._kept(states), 0, self._waiting(states)
        for number, (table, choice) in enumerate(zip(self.statements, choices, strict=True)):
            part = table.part
            work.append((part.phase, choice.seconds))
            flops += choice.flops
            if choice.sent:
                exposed.append((part.phase, choice.beside, choice.exposed))
                hidden.append((part.phase, choice.beside, choice.sent - choice.exposed))
            held_beside = waiting[number]
            for index, (array, variable) in enumerate(zip(table.arrays, table.variables, strict=True)):
                state, own = self._own(array, states[variable]), choice.states[index]
                is_result = index == len(table.arrays) - 1
                ends = (own, state) if is_result else (state, own)
                for axes, seconds in self.moves.parts(self._moved(part, array), *ends):
                    (hidden if table.hideable[index] else exposed).append((part.phase, axes, seconds))
                # A copy of an operand that is moved first, and a result that is not kept as it is made, but
                # for pending sums, whose totals take their place.
                moved = state[0] != own[0] if is_result else state != own
                if moved or (is_result and not self._held.get(array.name)):
                    held_beside += self._live_bytes(array, own)
            largest = max(largest, held_beside)
        if (stage := self._stage) is not None and stage.stages > 1:
            # What a stage has made it sends to the next, or gradients back.
            result, axes = self.problem.forward[-1].result, (stage.axis,)
            size = self._bytes(result, states[self.rules.roles.leader(result.name)]) // stage.microbatches
            sends = stage.microbatches * stage.interleave
            seconds = self._prices.move_seconds("ppermute", axes, size, size) * sends
            every = dict.fromkeys(part.phase for part in self.problem.parts)
            phases = [phase for phase in every if phase in ("forward", "backward")]
            exposed += [(phase, axes, seconds / stage.layers) for phase in phases]
        longest = max(choices, key=attrgetter("seconds"))
        timed = by_pass(work), flops, tuple(exposed), tuple(hidden)
        ring = next((choice.beside for choice in choices if choice.is_ring), ())
        return ProgramSharding(dict(states), *timed, kept + largest, longest, ring)

    def _kept(self, states: Mapping[str, State]) -> float:
        """Bytes that a device keeps through the step: activations or the gradients that take their place;
        both where gradients of several parts of the batch are added up."""
        phases = {part.result.name: part.phase for part in self.problem.parts}
        if (passed := self.problem.passed_on) is not None:
            phases[passed.name] = "forward"
        kept, others = 0.0, {"forward": 0.0, "backward": 0.0}
        for name, copies in self._held.items():
            size = self._bytes(self.arrays[name], states[self.rules.roles.leader(name)])
            kept += copies * size
            if (phase := phases.get(name)) in others:
                others[phase] += copies * size
        return kept if self._microbatches > 1 else kept - min(others.values())

    def _waiting(self, states: Mapping[str, State]) -> list[int]:
        """For each statement the bytes of other results that wait for a later one and are not kept."""
        parts = enumerate(self.problem.parts)
        last = {operand.name: number for number, part in parts for operand in part.operands}
        waiting = [0] * len(self.problem.parts)
        for made, part in enumerate(self.problem.parts):
            name = part.result.name
            if not self._held.get(name):
                size = self._live_bytes(part.result, states[self.rules.roles.leader(name)])
                for number in range(made + 1, last.get(name, made) + 1):
                    waiting[number] += size
        return waiting


def _sharded_updates(problem: Problem, rules: ShardingRules) -> tuple[Axes, frozenset[str]]:
    """The axes over which the optimizer's state is sharded beside its parameter, and the names of that state
    and of the gradients, which are scattered to it (ZeRO's first stage)."""
    training = problem.training
    over = training.optimizer.over if training and training.optimizer else ()
    over = tuple(axis for axis in over if rules.mesh.axis_size(axis) > 1)
    trained = rules.roles.parameters
    state = {name for pair in problem.updates if pair[0] not in trained for name in pair}
    state |= {gradient for name, gradient in problem.gradients if name in trained}
    return over, frozenset(state if over else ())


@dataclass(frozen=True)
class ProgramSharding:
    """A sharding of every array, by the name of the array that leads, and its figures for one layer: seconds
    of `work` by pass, and of each communication with its phase and the axes of its groups, `exposed` or
    `hidden` (beside the work of other layers). `memory` are the bytes that a device keeps through the step,
    and those of the largest statement beside them; `longest` is the work that takes longest.
    Keys and values go round a `ring` of axes, if there are any."""

    states: dict[str, State]
    work: Passes
    flops: float
    exposed: tuple[tuple[Phase, Axes, float], ...]
    hidden: tuple[tuple[Phase, Axes, float], ...]
    memory: float
    longest: WorkChoice
    ring: Axes = ()


def _split_of(number: int) -> str:
    """The variable of a statement's split; no array has such a name."""
    return f"#{number}"
