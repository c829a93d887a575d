"""The costs of a program on meshes as tables over the shardings of its arrays and the splits of its work.

A statement's cost is that of its work, of the moves of its operands to what the work needs, and of the move
of its result to the sharding that the array has: a sum of tables over one split and one array each, the least
of which `least_sum` finds. What several meshes of one `ProgramSpace` need is found at once: arrays here have
a row for each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import inf, prod
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shardviz.errors import plural
from shardviz.planner.pricing.priced_plan import Passes, by_pass
from shardviz.planner.problem import Phase, Statement
from shardviz.planner.problem.functions import has_halo, local_work, sent_beside
from shardviz.planner.search.least_sum import Factor, Table, TooWideError, least_of_stars
from shardviz.planner.search.program_space import Numbers, ProgramSpace, WorkChoice
from shardviz.planner.search.rules import ShardingRules
from shardviz.planner.states.moves import Axes, State
from shardviz.planner.states.prices import Prices, compute_price
from shardviz.sharding import array_bytes

MAX_ENTRIES = 1_000_000
"""Entries of all tables of an elimination without bounds."""
AT_ONCE = 8_000_000
"""The same of all that are found at once: some tens of megabytes."""


@dataclass(frozen=True)
class Multipliers:
    """The weights of a sum: by pass of seconds of work, of communication that must be waited for and of
    communication that other work can hide, and of bytes held (seconds a byte)."""

    work: Passes = (1.0, 1.0)
    exposed: Passes = (1.0, 1.0)
    hidden: Passes = (1.0, 1.0)
    memory: float = 0.0


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


class PlacedProgram(NamedTuple):
    """A program on one mesh: `held` are an array's copies through a step, `offloaded` seconds for a byte of
    what goes from the host and back."""

    space: ProgramSpace
    rules: ShardingRules
    prices: Prices
    held: Mapping[str, float]
    stage: PipelineStage
    offloaded: Mapping[str, float]

    def times(self) -> Table:
        """The number of times that a step takes each collective of the space; partial sums are reduced once
        where each device adds up those of all microbatches."""
        several, moves = self.stage.microbatches, self.space.moves
        numbers = [
            (1 if array.is_once else several, several if any(array.examples) else 1) for array in moves.arrays
        ]
        moved, summed = np.array(numbers, float)[moves.array].T
        times: Table = np.where(moves.is_sum, summed, moved)
        return times


@dataclass(frozen=True, eq=False)
class ProgramSharding:
    """A state of every array that leads and a split of every statement's work, by their numbers, and the
    figures for one layer: seconds by pass of `work`, and of communication, `exposed` or `hidden` (beside the
    work of other layers). `memory` are the bytes that a device holds at once: `static` ones through the step,
    `activations` or the `gradients` that take their place, and those of the largest statement."""

    leaders: Numbers
    splits: Numbers
    work: Passes
    exposed: Passes
    hidden: Passes
    memory: float
    static: float
    activations: float
    gradients: float

    def seconds(self, by: Multipliers) -> float:
        """The sum of its seconds by multipliers."""
        sides = (by.work, self.work), (by.exposed, self.exposed), (by.hidden, self.hidden)
        return sum(weights[0] * own[0] + weights[1] * own[1] for weights, own in sides)

    def beside(self, other: ProgramSharding, times: float, *, is_last: bool) -> ProgramSharding:
        """The figures with another part of the same step, which runs so many `times` for each layer. The
        backward pass of the last part is before that of the layers."""

        def both(own: Passes, more: Passes) -> Passes:
            return own[0] + times * more[0], own[1] + times * more[1]

        meanwhile = other.gradients if is_last else max(other.activations, other.gradients)
        kept = self.activations if is_last else max(self.activations, self.gradients)
        return replace(
            self,
            work=both(self.work, other.work),
            exposed=both(self.exposed, other.exposed),
            hidden=both(self.hidden, other.hidden),
            memory=max(self.memory + other.static + meanwhile, self.static + kept + other.memory),
            static=self.static + other.static,
            activations=self.activations + other.activations * (not is_last),
            gradients=self.gradients + other.gradients,
        )


@dataclass(frozen=True, eq=False)
class ProgramTables:
    """The tables of a program on a mesh. By the splits of all statements: seconds of `work`, inf for one that
    does not divide evenly, of what it needs beside its operands (`sent`) and how long it waits for that
    (`waited`), FLOPs and bytes of HBM. By the places of the space: seconds of `collectives`, each over other
    axes, and of `moves`; bytes of `shards`, and whether they are `even`."""

    program: PlacedProgram
    work: Table
    sent: Table
    waited: Table
    flops: Table
    traffic: Table
    collectives: Table
    moves: Table
    shards: Table
    even: NDArray[np.bool_]

    @property
    def space(self) -> ProgramSpace:
        return self.program.space

    @property
    def uneven(self) -> str:
        """Why a statement's work cannot be split as the rules have it; "" where all can."""
        starts = zip(self.space.split_starts, self.space.statements, strict=True)
        for start, statement in starts:
            if not np.isfinite(self.work[start : start + len(statement.choices)]).any():
                return self.program.rules.not_divided(f"the work on {statement.part.result.name}")
        return ""

    @property
    def shardings(self) -> int:
        """The number of all shardings: one state for each array that leads."""
        starts = zip(self.space.state_rows, self.space.states.values(), strict=True)
        return prod(int(self.even[start : start + len(states)].sum()) for start, states in starts)

    def states(self, sharding: ProgramSharding) -> dict[str, State]:
        own = zip(self.space.states.items(), sharding.leaders, strict=True)
        return {name: states[index] for (name, states), index in own}

    def ring(self, sharding: ProgramSharding) -> Axes:
        """The axes along which keys and values go round, if there are any."""
        taken = zip(self.space.statements, sharding.splits, strict=True)
        choices = (statement.choices[split] for statement, split in taken)
        return next((choice.beside for choice in choices if choice.is_ring), ())

    def flops_of(self, sharding: ProgramSharding) -> float:
        return float(self.flops[self.space.split_starts + sharding.splits].sum())

    def longest(self, sharding: ProgramSharding) -> tuple[float, float]:
        """FLOPs and bytes of HBM of the work that takes longest."""
        places = self.space.split_starts + sharding.splits
        longest = places[self.work[places].argmax()]
        return float(self.flops[longest]), float(self.traffic[longest])

    def work_of(self, sharding: ProgramSharding) -> list[tuple[Phase, float]]:
        """The seconds of each statement's work."""
        seconds = self.work[self.space.split_starts + sharding.splits].tolist()
        return [*zip((part.phase for part in self.space.problem.parts), seconds, strict=True)]

    def summed(
        self,
        sharding: ProgramSharding,
        parts: Sequence[tuple[Phase, Axes, float, bool]],
        others: Sequence[tuple[Phase, float]],
    ) -> ProgramSharding:
        """A sharding with its figures as exact sums: of these parts of its communication, and of its work and
        that of `others`."""
        work = by_pass((*self.work_of(sharding), *others))
        exposed, hidden = (
            by_pass((phase, seconds) for phase, _, seconds, own in parts if own == is_hidden)
            for is_hidden in (False, True)
        )
        return replace(sharding, work=work, exposed=exposed, hidden=hidden)

    def communication(self, sharding: ProgramSharding) -> list[tuple[Phase, Axes, float, bool]]:
        """Each communication of a layer, with the axes of its groups, none for the host's, and whether other
        work hides it; last those that it hides."""
        space, moves = self.space, self.space.moves
        parts: list[tuple[Phase, Axes, float, bool]] = []
        for at, statement in enumerate(space.statements):
            place, phase = space.split_starts[at] + sharding.splits[at], statement.part.phase
            if sent := float(self.sent[place]):
                axes, waited = statement.choices[sharding.splits[at]].beside, float(self.waited[place])
                parts += [(phase, axes, waited, False), (phase, axes, sent - waited, True)]
        times = self.program.times()
        ends = [*moves.starts[1:], len(self.collectives)]
        places, _ = space.places(sharding.leaders[None], sharding.splits[None])
        for statement, hideable, place in zip(space.edges[0], space.edges[2], places[0], strict=True):
            for one in moves.collectives[space.way_of[place]] if self.moves[place] else ():
                if one:
                    best = moves.starts[one] + self.collectives[moves.starts[one] : ends[one]].argmin()
                    _, axes = moves.lines[moves.line[best - 1]]
                    seconds = float(self.collectives[best] * times[one])
                    parts.append((space.statements[statement].part.phase, axes, seconds, bool(hideable)))
        if transfers := self.host_transfers(sharding.leaders):
            parts.append(("optimizer", (), transfers, False))
        if sends := self.stage_sends(sharding.leaders):
            parts += [(phase, (self.program.stage.axis,), sends, False) for phase in space.sending]
        return sorted(parts, key=itemgetter(3))

    def stage_sends(self, leaders: Numbers) -> float:
        """Seconds of a layer and pass in which a stage sends what it has made to the next, or gradients."""
        stage, space = self.program.stage, self.space
        if stage.stages == 1:
            return 0.0
        size = int(self.shards[space.made_row + leaders[space.made_leader]]) // stage.microbatches
        seconds = self.program.prices.move_seconds("ppermute", (stage.axis,), size, size)
        return seconds * stage.microbatches * stage.interleave / stage.layers

    def host_transfers(self, leaders: Numbers) -> float:
        """Seconds of a layer in which what is offloaded comes from the host and goes back."""
        away, space = self.program.offloaded, self.space
        if not away:
            return 0.0
        rows = _kept_rows(space, [self])[0] + leaders[space.kept_leaders]
        return float(self.shards[rows] @ np.array([away.get(name, 0.0) for name in space.kept]))


def priced(programs: Sequence[PlacedProgram]) -> list[ProgramTables]:
    """The tables of programs on meshes."""
    tables: dict[int, ProgramTables] = {}
    for space, numbers in _by_space(one.space for one in programs):
        tables |= zip(numbers, _priced(space, [programs[number] for number in numbers]), strict=True)
    return [tables[number] for number in range(len(programs))]


def _by_space(spaces: Iterable[ProgramSpace]) -> Iterable[tuple[ProgramSpace, list[int]]]:
    groups: dict[int, tuple[ProgramSpace, list[int]]] = {}
    for number, space in enumerate(spaces):
        groups.setdefault(id(space), (space, []))[1].append(number)
    return groups.values()


def _priced(space: ProgramSpace, programs: list[PlacedProgram]) -> list[ProgramTables]:
    wide, count = space.ways.wide, len(programs)
    sizes = np.array([[one.rules.mesh.axis_size(axis) for axis in wide] for one in programs], float)
    batches = np.array([float(one.stage.microbatches) for one in programs])
    shapes, cuts, bits = space.rows.tables
    parts = np.ones((count, *shapes.shape))
    for number in range(len(wide)):
        parts *= np.where(cuts[:, :, number], sizes[:, number, None, None], 1.0)
    is_even = (shapes % parts == 0).all(axis=-1)
    local = np.ceil(shapes / (parts * np.where(cuts[:, :, -1], batches[:, None, None], 1.0)))
    shards = np.ceil(local.prod(axis=-1) * bits / 8)
    work = _work(space, programs, local, is_even, shards, batches)
    collectives = _collectives(space, programs, sizes.reshape(count, len(wide)), shards, local)
    rows = space.moves
    times = np.array([one.times() for one in programs])
    ways = (np.minimum.reduceat(collectives, rows.starts, axis=1) * times)[:, rows.collectives].sum(axis=-1)
    ways[:, rows.impossible] = inf
    columns = *work, collectives, ways[:, space.way_of], shards, is_even
    return [ProgramTables(one, *(column[row] for column in columns)) for row, one in enumerate(programs)]


def _work(
    space: ProgramSpace,
    programs: list[PlacedProgram],
    local: Table,
    is_even: Table,
    shards: Table,
    batches: Table,
) -> Table:
    """Seconds of work, of a ring beside it and longer, FLOPs and bytes of HBM, by mesh and split."""
    prices = [one.prices for one in programs]
    device = prices[0].placed.machine.device
    work, sent, waited, flops, traffic = columns = np.zeros((5, len(programs), space.splits))
    start = 0
    for part, choices, whole, needed in space.alike:
        own = slice(start, start := start + len(choices))
        rows = [slice(row, row + len(choices)) for row in whole]
        shapes: list[Any] = [
            tuple(local[:, row, dim] for dim in range(array.rank))
            for row, array in zip(rows, part.arrays, strict=True)
        ]
        times = batches[:, None] if part.phase != "optimizer" else 1.0
        operations, moved, dtype = local_work(part, shapes[:-1], shapes[-1])
        dtype = prices[0].priced_dtype(dtype) if np.any(operations) else ""
        both = compute_price(operations, moved, dtype, device)
        arithmetic, passing = (0.0 if seconds is None else seconds for seconds in both)
        divides = np.all([is_even[:, row : row + len(choices)] for row in needed], axis=0)
        for mesh, number in np.argwhere(divides & [bool(choice.beside) for choice in choices]):
            sizes = [shards[mesh, row + number] for row in whole]
            sent[mesh, own.start + number] = _sent(programs[mesh], part, choices[number], sizes)
        divides &= np.isfinite(sent[:, own])
        sent[:, own] = np.where(divides, sent[:, own], 0.0)
        work[:, own] = np.where(divides, np.maximum(arithmetic, passing), inf) * times
        flops[:, own], traffic[:, own] = operations * times, moved * times
        is_ring = [choice.is_ring for choice in choices]
        waited[:, own] = np.maximum(0.0, sent[:, own] - np.where(is_ring, work[:, own], 0.0))
    return columns


def _sent(program: PlacedProgram, part: Statement, choice: WorkChoice, sizes: Sequence[float]) -> float:
    """Seconds in which a device sends what its work needs beside its operands, of whose shards these are the
    bytes; inf where shards are shorter than halos."""
    price, several = program.prices.collective_seconds, program.stage.microbatches
    if choice.is_ring:
        ends = [whole[0] != own[0] for whole, own in zip(choice.whole, choice.states, strict=True)]
        ops = [*["all_gather"] * len(part.operands), "psum_scatter"]
        every = zip(ops, sizes, ends, strict=True)
        return several * sum(
            price(op, choice.beside, int(size)) for op, size, is_passed in every if is_passed
        )
    cuts = {dim: program.rules.mesh.group_size(axes) for dim, axes in choice.assignment}
    if not has_halo(part, cuts):
        return inf
    beside = ((one.op, array_bytes(one.shape, one.dtype)) for one in sent_beside(part, cuts))
    return several * sum(price(op, choice.beside, -(-size // several)) for op, size in beside)


def _collectives(
    space: ProgramSpace, programs: list[PlacedProgram], sizes: Table, shards: Table, local: Table
) -> Table:
    """Seconds of each collective once, by mesh and row of `MoveRows`; the first takes none."""
    rows, machine = space.moves, programs[0].prices.placed.machine
    first, group = (np.where(cut, sizes[:, None, :], 1.0).prod(axis=-1) for cut in (rows.first, rows.group))
    before, after = np.floor(shards[:, rows.before] / first), shards[:, rows.after]
    size = np.where([rows.lines[line][0] == "all_gather" for line in rows.line], after, before)
    seconds = np.zeros_like(size)
    if not machine.family.lacks_links and size.size:
        lines = [[one.prices.line(*line) for line in rows.lines] for one in programs]
        start, latency, per_byte = np.moveaxis(np.array(lines, float)[:, rows.line], -1, 0)
        seconds = start + np.maximum(latency, per_byte * size)
        for mesh, row in np.argwhere(np.isnan(seconds)):
            op, axes = rows.lines[rows.line[row]]
            own_size = int(size[mesh, row])
            seconds[mesh, row] = programs[mesh].prices.collective_seconds(op, axes, own_size)
    passing = machine.device.pass_seconds(before + after)
    seconds = seconds if passing is None else np.maximum(seconds, passing)
    # A cut that does not divide.
    divides = (local[:, rows.whole] % group[:, :, None] == 0).any(axis=-1)
    seconds = np.where(divides | ~rows.first.any(axis=-1), seconds, inf)
    return np.concatenate([np.zeros((len(programs), 1)), seconds], axis=1)


def least_shardings(
    asked: Sequence[tuple[ProgramTables, Multipliers]],
) -> list[tuple[float, ProgramSharding] | TooWideError]:
    """The least sum of each, and a sharding that has it."""
    found: dict[int, tuple[float, ProgramSharding] | TooWideError] = {}
    for space, numbers in _by_space(tables.space for tables, _ in asked):
        entries = space.elimination.entries
        at_once = max(1, AT_ONCE // max(1, entries)) if entries <= MAX_ENTRIES else 1
        for start in range(0, len(numbers), at_once):
            own = numbers[start : start + at_once]
            tables, by = zip(*(asked[number] for number in own), strict=True)
            try:
                found |= zip(own, _least(space, tables, by), strict=True)
            except TooWideError as error:
                found[own[0]] = error
    return [found[number] for number in range(len(asked))]


def _least(
    space: ProgramSpace, tables: Sequence[ProgramTables], by: Sequence[Multipliers]
) -> list[tuple[float, ProgramSharding]]:
    factors = zip(_factors(space, tables, by), space.need_rows, strict=True)
    if space.elimination.entries <= MAX_ENTRIES:
        expanded = (table if rows is None else table[:, rows] for table, rows in factors)
        totals, chosen = space.elimination.least(expanded)
        leaders, splits = (np.array([chosen[name] for name in names]).T for names in space.variables)
    else:
        own = [
            Factor(scope, table[0], rows) for scope, (table, rows) in zip(space.scopes, factors, strict=True)
        ]
        total, one = least_of_stars(own, space.sizes)
        totals = np.array([total])
        leaders, splits = (np.array([[one[name] for name in names]]) for names in space.variables)
    return [*zip(map(float, totals), figures(space, tables, leaders, splits), strict=True)]


def _factors(
    space: ProgramSpace, tables: Sequence[ProgramTables], by: Sequence[Multipliers]
) -> Iterable[Table]:
    """The tables whose sum is to be least, as the space has their scopes, each by mesh."""
    work, sent, waited, moves, shards = (
        _stacked(tables, name) for name in ("work", "sent", "waited", "moves", "shards")
    )
    # Of shardings of equal times the smaller one is chosen.
    price = np.array([[one.memory or 1e-22] for one in by])
    of_work, of_exposed, of_hidden = (
        np.array([getattr(one, name) for one in by]) for name in ("work", "exposed", "hidden")
    )
    even, kept_sums = _stacked(tables, "even"), [np.zeros((len(tables), 1))] * len(space.names)
    every, kept = np.arange(len(tables))[:, None], _kept_rows(space, tables)
    sizes = [np.arange(len(states)) for states in space.states.values()]
    for at, (leader, name) in enumerate(zip(space.kept_leaders, space.kept, strict=True)):
        copies = np.array([[one.program.held[name]] for one in tables])
        transfers = of_exposed[:, 1:] * tables[0].program.offloaded.get(name, 0.0)
        size = shards[every, kept[:, at, None] + sizes[leader]]
        kept_sums[leader] = kept_sums[leader] + (price * copies + transfers) * size
    for start, own_sizes, total in zip(space.state_rows, sizes, kept_sums, strict=True):
        yield np.where(even[:, start + own_sizes], total, inf)
    edges = iter(space.edges[2:5].T.tolist())
    needs = iter([1 + int(rows.max()) for rows in space.need_rows if rows is not None])
    for start, statement in zip(space.split_starts, space.statements, strict=True):
        later, count = int(statement.is_later), len(statement.choices)
        own = slice(start, start + count)
        total = of_work[:, later, None] * work[:, own]
        if sent[:, own].any():
            total = total + of_exposed[:, later, None] * waited[:, own]
            total = total + of_hidden[:, later, None] * (sent[:, own] - waited[:, own])
        yield total
        for hideable, place, states in islice(edges, len(statement.arrays)):
            weights, many = (of_hidden if hideable else of_exposed)[:, later, None, None], next(needs)
            yield weights * moves[:, place : place + many * states].reshape(-1, many, states)


def _kept_rows(space: ProgramSpace, tables: Sequence[ProgramTables]) -> Numbers:
    rows: Numbers = space.kept_rows[[int(one.program.stage.microbatches > 1) for one in tables]]
    return rows


def _stacked(tables: Sequence[ProgramTables], name: str) -> Table:
    if len(tables) == 1:
        own: Table = getattr(tables[0], name)[None]
        return own
    return np.stack([getattr(one, name) for one in tables])


def figures(
    space: ProgramSpace, tables: Sequence[ProgramTables], leaders: Numbers, splits: Numbers
) -> list[ProgramSharding]:
    """Shardings with their figures."""
    places, copied = space.places(leaders, splits)
    at = space.split_starts + splits
    seconds, work, sent, waited = (
        np.take_along_axis(_stacked(tables, name), own, axis=1)
        for name, own in (("moves", places), ("work", at), ("sent", at), ("waited", at))
    )
    shards = _stacked(tables, "shards")
    statement, _, hideable, *_ = space.edges
    later, every = space.later, (False, True)
    is_later = later[statement]
    sends = np.array([own.stage_sends(row) for own, row in zip(tables, leaders, strict=True)])
    transfers = np.array([own.host_transfers(row) for own, row in zip(tables, leaders, strict=True)])
    working, exposed, hidden = list[Table](), list[Table](), list[Table]()
    for n in every:
        often = sum((phase != "forward") == n for phase in space.sending)
        ring, rest = (own[:, later == n].sum(axis=1) for own in (sent, waited))
        moved, beside = (seconds[:, (is_later == n) & (hideable == h)].sum(axis=1) for h in every)
        working.append(work[:, later == n].sum(axis=1))
        exposed.append(moved + rest + sends * often + transfers * n)
        hidden.append(beside + ring - rest)
    # Activations or the gradients that take their place, both where those of several microbatches are summed.
    copies = np.array([[one.program.held[name] for name in space.kept] for one in tables])
    rows = _kept_rows(space, tables) + leaders[:, space.kept_leaders]
    kept = np.take_along_axis(shards, rows, axis=1) * copies
    late = np.array([kept[:, own].sum(axis=1) for own in space.kept_phases])
    is_whole = np.array([one.program.stage.microbatches == 1 for one in tables])
    waiting = np.take_along_axis(shards, space.waiting_rows + leaders[:, space.waiting_leaders], axis=1)
    copies_beside = np.take_along_axis(shards, space.edges[5] + splits[:, statement], axis=1) * copied
    starts = np.searchsorted(statement, np.arange(len(space.statements)))
    largest = (waiting @ space.waits.T + np.add.reduceat(copies_beside, starts, axis=1)).max(axis=1)
    late[1] *= is_whole
    static = kept.sum(axis=1) - late.sum(axis=0)
    memory = static + late.max(axis=0) + largest
    by_pass = (np.array(own).T.tolist() for own in (working, exposed, hidden))
    figures = zip(leaders, splits, *by_pass, np.array([memory, static, *late]).T.tolist(), strict=True)
    return [ProgramSharding(n, s, tuple(w), tuple(e), tuple(h), *m) for n, s, w, e, h, m in figures]
