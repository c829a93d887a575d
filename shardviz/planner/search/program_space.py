"""The shardings of a program's arrays and the ways to divide its statements' work, without their costs: what
all meshes have in common whose axes may split the same dimensions, with any sizes.

Moves are those of `direct_moves`, by their number in `DirectWays`, which meshes with the same axes of more
than one device share. All shards of all shardings are rows of one table (`ShardRows`), of which
`program_tables` finds the sizes on many meshes at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import chain, zip_longest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shardviz.planner.plan import LOCAL_OPS
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.problem.functions import FUNCTIONS, Shape
from shardviz.planner.search.least_sum import Elimination
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
from shardviz.planner.states.paths import next_move
from shardviz.planner.training import state_spec
from shardviz.sharding import ShardedArray
from shardviz.sharding.array import BITS

Numbers = NDArray[np.intp]
States = tuple[State, ...]
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


DirectWay = tuple[int, ...] | None
"""The numbers of a way's collectives, from 1, without cuts, which are read in place and free; None where
there is no way."""


class WorkChoice(NamedTuple):
    """One way to split a statement's work, an `assignment` of axes to dimensions: the states that it needs of
    the operands and makes of the result. What it needs beside its operands goes over the axes `beside`:
    halos, or on a ring keys and values, during the work, which has `whole` states of them."""

    states: States
    whole: States
    assignment: tuple[tuple[str, Axes], ...]
    beside: Axes = ()
    is_ring: bool = False


class DirectWays:
    """The direct ways between states, by number, and the ways to divide the work of statements, on all meshes
    with the same axes of more than one device."""

    def __init__(self, wide: Axes) -> None:
        self.wide = wide
        sizes = dict(zip(wide, _PRIMES, strict=False))
        self._space = StateSpace(sizes, sizes)
        self.ways: list[DirectWay] = [None]
        self.collectives: list[DirectCollective] = []
        self._numbers: dict[object, int] = {None: 0}
        self.choices: dict[object, tuple[WorkChoice, ...]] = {}
        self._one: dict[object, object] = {}

    def one(self, states: States) -> States:
        """The states as the same object each time."""
        return self._one.setdefault(states, states)  # type: ignore[return-value]

    @remembered
    def between(self, befores: States, afters: States) -> Numbers:
        """For each pair of states of arrays of one rank the number of the way."""
        return np.array([[self._number(before, after) for after in afters] for before in befores], np.intp)

    @remembered
    def _number(self, before: State, after: State) -> int:
        way: DirectWay = None  # whole values do not become pending sums
        if before == after:
            way = ()
        elif set(after[1]) <= set(before[1]):
            # A way for some axes is one for any others in their place.
            own = (*dict.fromkeys(chain(*before[0], before[1], *after[0])),)
            move = self._move(*(self._renamed(state, own, self.wide) for state in (before, after)))
            way = self.ways[self._number(self._renamed(move.after, self.wide, own), after)]
            if way is not None and move.op not in LOCAL_OPS:
                way = self._collective(move, own), *way
        return self._numbered(self.ways, way)

    def _numbered(self, every: list[Any], one: object) -> int:
        number = self._numbers.setdefault(one, len(every))
        if number == len(every):
            every.append(one)
        return number

    @remembered
    def _move(self, before: State, after: State) -> PathMove:
        return next_move(self._space, before, after)

    @remembered
    def _renamed(self, state: State, old: Axes, new: Axes) -> State:
        dims, pending = state
        names = dict(zip(old, new, strict=False))
        *renamed, addends = [tuple([names[axis] for axis in axes]) for axes in (*dims, pending)]
        return tuple(renamed), addends

    @remembered
    def _collective(self, move: PathMove, own: Axes) -> int:
        """The number of a move's collective, from 1, its `own` axes in the place of the first."""
        (before, pending), (after, _) = (
            self._renamed(state, self.wide, own) for state in (move.before, move.after)
        )
        before, after = (tuple(tuple(sorted(own)) for own in dims) for dims in (before, after))
        used = {*pending, *chain(*before)}
        idle = tuple(axis for axis in self.wide if axis not in used and move.op == "all_gather")
        axes = tuple(own[self.wide.index(axis)] for axis in move.axes)
        if move.op in ("psum", "ppermute"):
            axes = tuple(sorted(axes, key=self.wide.index))
        return 1 + self._numbered(self.collectives, DirectCollective(move.op, axes, before, after, idle))

    @remembered
    def cuts(self, dims: tuple[Dims, ...]) -> NDArray[np.bool_]:
        """For each sharding, dimension and axis whether it splits that."""
        rank = len(dims[0]) if dims else 1
        cuts = np.zeros((len(dims), rank, len(self.wide)), bool)
        for number, own in enumerate(dims):
            for dim, axes in enumerate(own):
                for axis in axes:
                    cuts[number, dim, self.wide.index(axis)] = True
        return cuts


class MovedArray(NamedTuple):
    """An array as its moves are priced, with the dimensions that a microbatch has a part of. It is moved with
    each microbatch, or else `is_once`; its partial sums are reduced once where it has no such dimension."""

    shape: Shape
    dtype: str
    examples: tuple[bool, ...]
    is_once: bool = False


class ShardRows:
    """Shards of arrays, each a row: the sizes of its array's dimensions and whether an axis splits each, the
    last axis being the microbatches."""

    def __init__(self, ways: DirectWays, rank: int) -> None:
        self._ways, self._rank = ways, rank
        self._starts: dict[object, int] = {}
        self._pieces: list[tuple[Shape, str, tuple[bool, ...], tuple[Dims, ...]]] = []
        self._count = 0

    def add(self, array: MovedArray, dims: tuple[Dims, ...]) -> int:
        """The first row of the shards of an array with each of these axes on its dimensions."""
        key = (*array[:3], dims)
        if key not in self._starts:
            self._starts[key] = self._count
            self._pieces.append(key)
            self._count += len(dims)
        return self._starts[key]

    @cached_property
    def tables(self) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]:
        """Of each row the sizes and the cuts, and the bits of an element."""
        axes = len(self._ways.wide)
        shapes, bits = np.ones((self._count, self._rank)), np.zeros(self._count)
        cuts, start = np.zeros((self._count, self._rank, axes + 1), bool), 0
        for shape, dtype, examples, dims in self._pieces:
            rows, rank = slice(start, start + len(dims)), len(shape)
            shapes[rows, :rank], bits[rows] = shape, BITS[dtype]
            cuts[rows, :rank, :axes], cuts[rows, :rank, axes] = self._ways.cuts(dims), examples
            start += len(dims)
        return shapes, cuts, bits


class StatementSpace(NamedTuple):
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


class MoveRows(NamedTuple):
    """The collectives of all ways of a program, each way of its own array, as rows: of `lines` the one whose
    price it has, the rows of its shards `before` and `after` it and of the `whole` array, whether each axis
    cuts that `first`, and `group`, whether each is one that it goes over. Alternatives of one collective
    stand one after the other from `starts` on, which has its `array`; one that `is_sum` adds up partial sums,
    or goes over the axes of an optimizer. Way number n has the `collectives[n]`, of which the first takes no
    time."""

    arrays: tuple[MovedArray, ...]
    lines: tuple[tuple[str, Axes], ...]
    line: Numbers
    before: Numbers
    after: Numbers
    first: NDArray[np.bool_]
    group: NDArray[np.bool_]
    whole: Numbers
    starts: Numbers
    array: Numbers
    is_sum: NDArray[np.bool_]
    collectives: Numbers
    impossible: NDArray[np.bool_]


class ProgramSpace:
    """All shardings of a step on meshes whose arrays have the same `states`; a variable is the name of the
    array that leads others, or the `split` of a statement's work. `own` are the states of the arrays that an
    optimizer has `over` more axes, by those of the array that leads them."""

    def __init__(
        self,
        problem: Problem,
        rules: ShardingRules,
        held: Collection[str],
        ways: DirectWays,
        states: dict[str, States],
        own: dict[str, States],
    ) -> None:
        self.problem, self.ways, self.states, self._rules = problem, ways, states, rules
        self.over, _ = sharded_updates(problem, rules)
        self.arrays, self.names = arrays_of(problem), [*states]
        self.kept = [name for name in self.arrays if name in held]
        self.statements = [self._statement(part) for part in problem.parts]
        self.later = np.array([statement.is_later for statement in self.statements])
        self.variables = self.names, [*map(split_of, range(len(self.statements)))]
        self.rows = ShardRows(ways, max((array.rank for array in self.arrays.values()), default=0))
        leaders = {name: rules.roles.leader(name) for name in self.arrays}
        self._leaders = {name: self.names.index(leader) for name, leader in leaders.items()}
        self._given = {name: ways.one(own.get(name, states[leader])) for name, leader in leaders.items()}
        self.state_rows = [self.rows.add(_moved(self.arrays[n]), _dims(those)) for n, those in states.items()]
        # Gradients of several microbatches are added up before they are scattered.
        gradients = {gradient for _, gradient in problem.gradients}.intersection(leaders)
        self._keep(self._given | {name: states[leaders[name]] for name in gradients})
        self._wait()
        self._share_splits()
        self._move()
        # What a stage of a pipeline makes for the next one.
        made_last = problem.forward[-1].result
        self.made_row = self.rows.add(_moved(made_last), _dims(self._given[made_last.name]))
        self.made_leader = self._leaders[made_last.name]
        phases = dict.fromkeys(part.phase for part in problem.parts)
        self.sending = [phase for phase in phases if phase in ("forward", "backward")]

    def _keep(self, summed: dict[str, States]) -> None:
        """Find the rows and phases of what a device keeps through a step, of gradients those `summed` too."""
        kept, problem, add = self.kept, self.problem, self.rows.add
        arrays = [_moved(self.arrays[name]) for name in kept]
        rows = [[*map(add, arrays, (_dims(own[n]) for n in kept))] for own in (self._given, summed)]
        self.kept_rows = np.array(rows, np.intp)
        self.kept_leaders = np.array([self._leaders[name] for name in kept], np.intp)
        phases = {part.result.name: part.phase for part in problem.parts}
        if (passed := problem.passed_on) is not None:
            phases[passed.name] = "forward"
        self.kept_phases = np.array(
            [[phases.get(name) == phase for name in kept] for phase in ("forward", "backward")], bool
        )

    def _wait(self) -> None:
        """Find the results that wait for a later statement, and during which statements they do."""
        parts = self.problem.parts
        last = {operand.name: at for at, part in enumerate(parts) for operand in part.operands}
        made = [(at, part.result) for at, part in enumerate(parts) if part.result.name not in self.kept]
        rows = [self.rows.add(self.moved(array), _dims(self._given[array.name])) for _, array in made]
        self.waiting_rows = np.array(rows, np.intp)
        self.waiting_leaders = np.array([self._leaders[array.name] for _, array in made], np.intp)
        every = np.arange(len(parts))[:, None]
        begin = np.array([at for at, _ in made], np.intp)
        self.waits = (every > begin) & (every <= np.array([last.get(a.name, at) for at, a in made], np.intp))

    def _share_splits(self) -> None:
        """The splits of statements that are alike, once: one of these, and for each of its arrays the first
        row of the shards that the work takes or makes, while a ring passes them on, and before."""
        self.alike: list[tuple[Statement, tuple[WorkChoice, ...], list[int], list[int]]] = []
        self.splits = 0
        begins: dict[int, int] = {}
        for part, choices, arrays, *_ in self.statements:
            if id(choices) not in begins:
                begins[id(choices)] = self.splits
                self.splits += len(choices)
                shards, add = [*enumerate(map(self.moved, arrays))], self.rows.add
                whole = [add(array, tuple(own.whole[at][0] for own in choices)) for at, array in shards]
                before = [add(array, tuple(own.states[at][0] for own in choices)) for at, array in shards]
                self.alike.append((part, choices, whole, before))
        self.split_starts = np.array([begins[id(each.choices)] for each in self.statements], np.intp)

    def _move(self) -> None:
        """The moves of each statement's arrays, whose tables stand once where they are the same."""
        moves, ids = _Moves(self), dict[object, int]()
        self.scopes: list[tuple[str, ...]] = [(name,) for name in self.names]
        edges, needed_ids, given_ids = list[tuple[int, ...]](), list[int](), list[int]()
        # Of each scope the row of each split, as several need an array in one state.
        self.need_rows: list[Numbers | None] = [None] * len(self.scopes)
        for at, statement in enumerate(self.statements):
            self.scopes.append((split_of(at),))
            self.need_rows.append(None)
            for index, (array, name) in enumerate(zip(statement.arrays, statement.variables, strict=True)):
                is_result = index == len(statement.arrays) - 1
                given = self._given[array.name]
                needed = self.ways.one(tuple(choice.states[index] for choice in statement.choices))
                moved = self.moved(array, statement.part)
                needs = {state: row for row, state in enumerate(dict.fromkeys(needed))}
                table = moves.place(moved, self.ways.one((*needs,)), given, is_result)
                ends = at, self._leaders[array.name], statement.hideable[index], table, len(given)
                # A copy of an operand that is moved first, and a result that is not kept as it is made, but
                # for pending sums, whose totals take their place.
                shard = self.rows.add(self.moved(array), _dims(needed))
                is_made = is_result and array.name not in self.kept
                edges.append((*ends, shard, len(needed_ids), len(given_ids), is_made))
                for compared, side in ((needed_ids, needed), (given_ids, given)):
                    values = _dims(side) if is_result else side
                    compared += [ids.setdefault(value, len(ids)) for value in values]
                self.scopes.append((split_of(at), name))
                self.need_rows.append(np.array([needs[state] for state in needed], np.intp))
        self.edges = np.array(edges, np.intp).T
        self._rows = np.concatenate([rows for rows in self.need_rows if rows is not None])
        self._needed_ids, self._given_ids = np.array(needed_ids), np.array(given_ids)
        self.way_of, self.moves = moves.rows()

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The number of values of each variable, the splits of the statements' work among them."""
        own = {name: len(states) for name, states in self.states.items()}
        return own | {split_of(at): len(statement.choices) for at, statement in enumerate(self.statements)}

    @cached_property
    def elimination(self) -> Elimination:
        return Elimination(self.scopes, self.sizes)

    def places(self, leaders: Numbers, splits: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
        """For shardings the places of their moves, and whether each needs a copy beside the array."""
        statement, leader, _, table, count, _, needed, given, is_made = self.edges
        split, state = splits[:, statement], leaders[:, leader]
        is_moved = self._needed_ids[needed + split] != self._given_ids[given + state]
        return table + self._rows[needed + split] * count + state, is_moved | is_made.astype(bool)

    def moved(self, array: ShardedArray, part: Statement | None = None) -> MovedArray:
        """An array of a statement as it is moved with each part of the batch, but once by the optimizer."""
        examples = tuple(dim in self._rules.roles.examples for dim in array.dims)
        is_once = part is not None and part.phase == "optimizer"
        return MovedArray(array.shape, array.dtype, examples, is_once)

    def _statement(self, part: Statement) -> StatementSpace:
        rules, roles, arrays = self._rules, self._rules.roles, part.arrays
        # All operands of a sum may be pending, and so its result.
        function = FUNCTIONS[part.function]
        summed = {operand.name for index, operand in enumerate(part.operands) if function.may_pend(index)}
        may_pend = function.linearity == "sum" and summed <= roles.addends
        pending = [axis.name for axis in rules.wide if may_pend]

        def choices() -> Iterator[WorkChoice]:
            for split in rules.splits(part).every([pending] * len(part.operands)):
                states = (*split.operands, split.made)
                axes = split.assignment.get(part.whole[0], ()) if part.whole else ()
                choice = WorkChoice(states, states, (*split.assignment.items(),), axes)
                yield choice
                yield from self._as_ring(part, choice)

        variables = tuple(roles.leader(array.name) for array in arrays)
        hideable = tuple(roles.is_hideable(array.name, part.phase) for array in arrays)
        # Statements that are alike, such as those that are computed again, share their choices.
        names = [array.name for array in arrays]
        own = [
            (array.shape, array.dtype, variable in roles.parameters, names.index(array.name))
            for array, variable in zip(arrays, variables, strict=True)
        ]
        alike = (part.einsum, part.function, part.merged, part.whole, part.number, part.phase == "optimizer")
        key = (*alike, bool(pending), *own, *(rules.mesh.axis_sizes if part.merged else ()))
        if key not in self.ways.choices:
            self.ways.choices[key] = tuple(choices())
        return StatementSpace(part, self.ways.choices[key], arrays, variables, hideable)

    def _as_ring(self, part: Statement, choice: WorkChoice) -> Iterator[WorkChoice]:
        """The same work where devices along a sequence axis have parts of the keys and values, and pass them
        on while they compute with them, gradients of them too (ring attention: Liu and others 2023)."""
        positions = self._rules.roles.positions
        passed = positions.intersection(part.whole)
        split = {
            axis
            for array, (dims, _) in zip(part.arrays, choice.states, strict=True)
            for dim, axes in zip(array.dims, dims, strict=True)
            if dim in positions and dim not in passed
            for axis in axes
        }
        axes = (axis.name for axis in self._rules.wide if axis.kind == "sequence")
        ring = tuple(axis for axis in axes if axis in split)
        if not ring or not passed or choice.beside:
            return
        states = []
        for array, (dims, pending) in zip(part.arrays, choice.states, strict=True):
            own = tuple(ring if dim in passed else axes for dim, axes in zip(array.dims, dims, strict=True))
            states.append((own, tuple(axis for axis in pending if axis not in ring)))
        yield choice._replace(states=tuple(states), beside=ring, is_ring=True)


class _Moves:
    """The ways of a program's arrays, and their tables one after the other."""

    def __init__(self, space: ProgramSpace) -> None:
        self._space = space
        self._places: dict[object, int] = {}
        self._tables: dict[MovedArray, list[tuple[int, Numbers]]] = {}
        self._count = 0

    def place(self, array: MovedArray, needed: States, given: States, is_result: bool) -> int:
        """The place of the first way of a table by the state that is needed and that given."""
        key = array, id(needed), id(given), is_result
        if key not in self._places:
            between = self._space.ways.between
            numbers = between(needed, given) if is_result else between(given, needed).T
            self._tables.setdefault(array, []).append((self._count, numbers.ravel()))
            self._places[key] = self._count
            self._count += numbers.size
        return self._places[key]

    def rows(self) -> tuple[Numbers, MoveRows]:
        """The way of each place, each of an array once, and the rows of their collectives."""
        ways, add, over = self._space.ways, self._space.rows.add, self._space.over
        table = np.array([*zip_longest(*(way or (0,) for way in ways.ways), fillvalue=0)], np.intp).T
        lines: dict[tuple[str, Axes], int] = {}
        numbers = list[tuple[int, ...]]()
        cuts = list[tuple[Axes, Axes]]()
        starts, of_start, is_sum = [0], [0], [False]
        way_of, used_ways, of_ways = np.zeros(self._count, np.intp), list[Numbers](), list[Numbers]()
        for its_number, (array, tables) in enumerate(self._tables.items()):
            its_ways = np.concatenate([own for _, own in tables])
            used, way = np.unique(its_ways, return_inverse=True)
            places = np.concatenate([start + np.arange(len(own)) for start, own in tables])
            way_of[places] = sum(map(len, used_ways)) + way
            found, at = np.unique(np.append(0, table[used]), return_inverse=True)
            of_ways.append(np.where(at > 0, len(starts) - 1 + at, 0)[1:].reshape(len(used), -1))
            used_ways.append(used)
            for one in (ways.collectives[number - 1] for number in found[1:].tolist()):
                starts.append(len(numbers) + 1)
                of_start.append(its_number)
                is_sum.append(one.op == "psum" or set(over).issuperset(one.axes))
                shards = [add(array, (dims,)) for dims in (one.before, one.after, ((),) * len(array.shape))]
                # A cut over axes that hold copies, and a gather over these too, which has more links.
                for more in ((), *subsets(one.idle)):
                    line = lines.setdefault((one.op, (*one.axes, *more)), len(lines))
                    numbers.append((line, *shards))
                    cuts.append((more, (*one.axes, *more)))
        columns = np.array(numbers, np.intp).reshape(-1, 4).T
        first, group = (ways.cuts(tuple((own[side],) for own in cuts))[:, 0] for side in (0, 1))
        return way_of, MoveRows(
            arrays=tuple(self._tables) or (MovedArray((), "", ()),),
            lines=tuple(lines),
            line=columns[0],
            before=columns[1],
            after=columns[2],
            first=first,
            group=group,
            whole=columns[3],
            starts=np.array(starts, np.intp),
            array=np.array(of_start, np.intp),
            is_sum=np.array(is_sum),
            collectives=np.concatenate(of_ways),
            impossible=np.concatenate(used_ways) == 0,
        )


class ProgramSpaces:
    """The spaces of a search, each shared by all meshes that have it."""

    def __init__(self) -> None:
        self._ways: dict[Axes, DirectWays] = {}
        self._spaces: dict[object, ProgramSpace] = {}

    def of(self, problem: Problem, rules: ShardingRules, held: Collection[str]) -> ProgramSpace | str:
        """The space of a step, of whose arrays the `held` ones are kept through it; or why an array cannot be
        split as the rules have it."""
        wide = tuple(axis.name for axis in rules.wide)
        ways = self._ways[wide] = self._ways.get(wide) or DirectWays(wide)
        roles, arrays = rules.roles, arrays_of(problem)
        states: dict[str, States] = {}
        found: dict[object, States] = {}
        key: object
        for name, array in arrays.items():
            if roles.leader(name) == name:
                key = array.dims, array.shape, array.spec, name in roles.parameters, name in roles.addends
                if key not in found:
                    found[key] = ways.one(rules.states(array, name in roles.parameters))
                states[name] = found[key]
                is_open = array.spec is None and any(rules.divides(array, dims) for dims, _ in found[key])
                if not is_open and (words := rules.uneven(array, name in roles.parameters)):
                    return words
        over, names = sharded_updates(problem, rules)
        own: dict[str, States] = {}
        for name in names:
            given = states[roles.leader(name)]
            key = arrays[name].shape, id(given)
            if key not in found:
                specs = (state_spec(arrays[name].with_spec(spec_of(one)), over, rules.mesh) for one in given)
                every = tuple((spec.dims, state[1]) for spec, state in zip(specs, given, strict=True))
                found[key] = ways.one(every)
            own[name] = found[key]
        merged = rules.mesh.axis_sizes if any(part.merged for part in problem.parts) else ()
        key = id(problem), wide, *map(id, states.values()), *map(id, own.values()), merged
        if key not in self._spaces:
            self._spaces[key] = ProgramSpace(problem, rules, held, ways, states, own)
        return self._spaces[key]


def arrays_of(problem: Problem) -> dict[str, ShardedArray]:
    arrays = {argument.name: argument for argument in problem.arguments}
    for part in problem.parts:
        arrays.setdefault(part.result.name, part.result)
    return arrays


def sharded_updates(problem: Problem, rules: ShardingRules) -> tuple[Axes, list[str]]:
    """The axes over which the optimizer's state is sharded beside its parameter, and the names of that state
    and of the gradients, which are scattered to it (ZeRO's first stage)."""
    training = problem.training
    over = training.optimizer.over if training and training.optimizer else ()
    over = tuple(axis for axis in over if rules.mesh.axis_size(axis) > 1)
    trained = rules.roles.parameters
    state = dict.fromkeys(name for pair in problem.updates if pair[0] not in trained for name in pair)
    state |= dict.fromkeys(gradient for name, gradient in problem.gradients if name in trained)
    return over, [*state] if over else []


def split_of(number: int) -> str:
    """The variable of a statement's split; no array has such a name."""
    return f"#{number}"


def _moved(array: ShardedArray) -> MovedArray:
    """An array as a whole, of all microbatches."""
    return MovedArray(array.shape, array.dtype, (False,) * array.rank)


def _dims(states: States) -> tuple[Dims, ...]:
    return tuple(dims for dims, _ in states)
