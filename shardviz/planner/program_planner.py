"""Plans of programs whose arrays are used several times.

The statements are walked in order, with the *copies* that a device may hold of every array still needed: as
it was made, and what moves for earlier uses have made of it. Of all partial plans that hold the same copies
the cheapest is followed, and none that costs as much as a cheaper one with the moves that make its copies; of
these the most promising, with what the next uses of their arrays cost at least (a beam search with dominance:
Lowerre, "The HARPY Speech Recognition System", 1976). `lower_bound` says how far the best can be. In H = A·W;
G = A·V with A[_, X] a plan that gathers A for H holds it whole for G: it costs more than one that adds up H,
until G.

Where a program stands for several layers, the smallest copy of an array, of an argument the given one, is
kept from the forward pass to what follows: as many of them as there are layers lie in memory meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import itemgetter
from typing import NamedTuple

from shardviz.errors import QuestionError
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.statements.statement_ways import StatementWays
from shardviz.planner.statements.work_split import PlannedStatement, WorkSplit, planned_statement
from shardviz.planner.states.moves import PathMove, State, remembered
from shardviz.planner.states.paths import ArrayKind, CheapestPaths
from shardviz.planner.states.prices import UNREACHABLE, Cost
from shardviz.sharding import ShardedArray

WIDTH = 48
"""Partial plans that are followed from statement to statement."""
COMPARED = 12
"""Cheaper partial plans that each is compared with."""


Path = tuple[State, tuple[PathMove, ...]]
"""The copy that an array comes from, and its moves from there."""


@dataclass(frozen=True, eq=False, slots=True)
class ArrayCopies:
    """The states in which a device holds an array: as it was made, then the others in order.
    `StatementChoices` has one object for all that are alike: they are looked up as objects, which is most of
    what planning a program does."""

    kind: ArrayKind
    states: tuple[State, ...]

    @property
    def pending(self) -> frozenset[str]:
        return frozenset(axis for _, pending in self.states for axis in pending)


@dataclass(frozen=True, eq=False, slots=True)
class StatementForm:
    """A statement as far as its ways depend on it, the same object for all that differ in names only: `kinds`
    are those of the operands and of the result; `same` says for each operand which is the first that is the
    same array, `through` the state that it must pass, `wanted` that of the result."""

    part: Statement
    kinds: tuple[ArrayKind, ...]
    same: tuple[int, ...]
    through: tuple[State | None, ...]
    wanted: State | None


class StatementChoice(NamedTuple):
    """One way to run a statement: `paths` lead each operand to what the split needs, `result_path` the
    result to its constraint. `copies` are those of each operand afterwards, and last those of the result."""

    cost: Cost
    split: WorkSplit
    paths: tuple[Path, ...]
    result_path: Path
    copies: tuple[ArrayCopies, ...]


class StatementChoices:
    """The ways of statements over some axes; what is found serves all statements that are alike."""

    def __init__(self, ways: StatementWays) -> None:
        self.ways = ways
        self._nearest: dict[tuple[ArrayCopies, State], tuple[Cost, State]] = {}
        self._imitations: dict[tuple[ArrayCopies, ArrayCopies], Cost] = {}
        self.forms: dict[object, StatementForm] = {}

    @remembered
    def least(self, form: StatementForm, copies: tuple[ArrayCopies | None, ...]) -> Cost:
        """The cost that no plan can save of a statement: its work, the moves of those operands of which
        copies are held (None: it is as it is needed), and those of the result."""
        pending = tuple(frozenset() if held is None else held.pending for held in copies)
        costs = []
        for split, cost in self._splits_of(form, pending):
            for index, (held, needed) in enumerate(zip(copies, split.operands, strict=True)):
                if held is not None and form.through[index] is None and form.same[index] == index:
                    moved = self.nearest(held, needed)
                    cost += moved[0] if moved is not None else 0
            if form.wanted is not None:
                moved = self.nearest(self.copies(form.kinds[-1], split.result), form.wanted)
                cost += moved[0] if moved is not None else 0
            costs.append(cost)
        return min(costs)

    @remembered
    def choices(
        self, form: StatementForm, copies: tuple[ArrayCopies, ...], kept: tuple[bool, ...]
    ) -> tuple[StatementChoice, ...]:
        """The ways to run a statement whose operands a device holds so, the cheapest first, without those
        that a cheaper one can imitate. `kept` says which operands later statements need, and the result."""
        needed = [
            index
            for index, is_kept in enumerate(kept)
            if is_kept and form.same[index : index + 1] in ((index,), ())
        ]
        pareto: list[tuple[StatementChoice, list[ArrayCopies]]] = []
        for choice in sorted(self._every_choice(form, copies), key=lambda choice: choice.cost):
            own = [choice.copies[index] for index in needed]
            if not any(self.imitates(better, own, choice.cost - cheaper.cost) for cheaper, better in pareto):
                pareto.append((choice, own))
        return tuple(choice for choice, _ in pareto)

    @remembered
    def _splits_of(
        self, form: StatementForm, pending: tuple[frozenset[str], ...]
    ) -> list[tuple[WorkSplit, Cost]]:
        """Every way to share the work, with the local work; `pending` as `WorkSplits` has it."""
        splits = self.ways.splits(form.part).every(pending)
        return [(split, self.ways.work(form.part, split)) for split in splits]

    def _every_choice(
        self, form: StatementForm, copies: tuple[ArrayCopies, ...]
    ) -> Iterator[StatementChoice]:
        """The cheapest way with each split of the work with which all operands can be had."""
        for split, cost in self._splits_of(form, tuple(own.pending for own in copies)):
            held, paths = list(copies), []
            for same, through, needed in zip(form.same, form.through, split.operands, strict=True):
                moved = self.way(held[same], *((needed,) if through is None else (through, needed)))
                if moved is None:
                    break
                cost += moved[0]
                paths.append(moved[1])
                held[same] = self.with_copies(held[same], [move.after for move in moved[1][1]])
            else:
                made = split.result if form.wanted is None else form.wanted
                moved = self.way(self.copies(form.kinds[-1], split.result), made)
                if moved is not None:
                    after = (*(held[same] for same in form.same), self.copies(form.kinds[-1], made))
                    yield StatementChoice(cost + moved[0], split, tuple(paths), moved[1], after)

    @remembered
    def copies(self, kind: ArrayKind, *states: State) -> ArrayCopies:
        return ArrayCopies(kind, states)

    def with_copies(self, copies: ArrayCopies, made: Iterable[State]) -> ArrayCopies:
        """Copies with further ones; the first stays the first."""
        first, *others = copies.states
        new = {state for state in made if state not in copies.states}
        return self.copies(copies.kind, first, *sorted(new.union(others))) if new else copies

    def nearest(
        self, copies: ArrayCopies, goal: State, limit: Cost = UNREACHABLE
    ) -> tuple[Cost, State] | None:
        """The least cost of making a copy, and of which; None where it is not less than `limit`."""
        key = (copies, goal)
        best = self._nearest.get(key)
        if best is None:
            for copy in copies.states:
                cost = 0 if copy == goal else self._from(copies.kind, copy).cost(goal, limit)
                if cost is not None and cost < limit:
                    best, limit = (cost, copy), cost
            if best is not None:
                self._nearest[key] = best
        return best

    @remembered
    def _from(self, kind: ArrayKind, copy: State) -> CheapestPaths:
        return self.ways.to(kind, {copy: 0})

    def way(self, copies: ArrayCopies, *goals: State) -> tuple[Cost, Path] | None:
        """The cheapest moves from a copy through some states in turn, and their cost; None without any."""
        total: Cost = 0
        path: Path | None = None
        for goal in goals:
            nearest = self.nearest(copies, goal)
            if nearest is None:
                return None
            cost, start = nearest
            moves = () if start == goal else self._from(copies.kind, start).path(goal)[1]
            path = (start, moves) if path is None else (path[0], path[1] + moves)
            total, copies = total + cost, self.copies(copies.kind, goal)
        assert path is not None
        return total, path

    def imitation(self, copies: ArrayCopies, others: ArrayCopies, limit: Cost = UNREACHABLE) -> Cost | None:
        """The cost of making all of `others`, each on its own; None where one is not less than `limit`."""
        key = (copies, others)
        total = self._imitations.get(key)
        if total is None:
            total = 0
            for state in others.states:
                if state not in copies.states:
                    nearest = self.nearest(copies, state, limit - total)
                    if nearest is None:
                        return None
                    total += nearest[0]
            self._imitations[key] = total
        return total

    def imitates(self, copies: Sequence[ArrayCopies], others: Sequence[ArrayCopies], slack: Cost) -> bool:
        """Return whether moves that cost no more than `slack` make the other copies of these."""
        for own, wanted in zip(copies, others, strict=True):
            if own is not wanted:
                cost = self.imitation(own, wanted, slack + 1)
                if cost is None or cost > slack:
                    return False
                slack -= cost
        return True

    def kept(self, copies: ArrayCopies, is_argument: bool) -> ArrayCopies:
        """The copy that is kept behind the forward pass: the given one, or that of the least bytes."""
        size = self._from(copies.kind, copies.states[0]).local_bytes
        return self.copies(copies.kind, copies.states[0] if is_argument else min(copies.states, key=size))


class ArrayUses:
    """The statements of a program as forms, and the arrays that they use: `starts` are the given copies of
    the arguments, `last` the last statement that needs an array, `open` the states in which results may be
    left that may be left in several, `used` the names of all operands."""

    def __init__(self, choices: StatementChoices, problem: Problem) -> None:
        self.choices, self.problem = choices, problem
        ways, parts = choices.ways, problem.parts
        self.starts = {
            array.name: choices.copies(ways.kind(array), ways.pool.state(array.decided_spec))
            for array in problem.arguments
        }
        # Each with its form, the names of its operands, and the given copies of the arguments that it uses
        # first, or first behind the forward pass.
        self.statements: list[tuple[Statement, StatementForm, list[str], tuple[ArrayCopies | None, ...]]] = []
        self.last: dict[str, int] = {}
        used: set[str] = set()
        for number, part in enumerate(parts):
            names = [operand.name for operand in part.operands]
            if number and self.leaves_forward(number - 1):
                used.clear()
            first = tuple(None if name in used else self.starts.get(name) for name in names)
            self.statements.append((part, self._form(part), names, first))
            used.update(names)
            self.last |= dict.fromkeys(names, number)
        self.used = {*self.last}
        self.last |= dict.fromkeys(problem.results, len(parts))
        self.open = {
            part.result.name: tuple(ways.pool.open_states(part.result))
            for part, form, _, _ in self.statements
            if form.wanted is None and part.result.name in problem.results
        }

    def _form(self, part: Statement) -> StatementForm:
        ways, through = self.choices.ways, list[State | None]()
        for operand in part.operands:
            state = None if operand.spec is None else ways.pool.state(operand.spec)
            given = self.starts.get(operand.name)
            through.append(None if given is not None and given.states == (state,) else state)
        spec = self.problem.wanted_spec if part is self.problem.parts[-1] else part.result.spec
        wanted = None if spec is None else ways.pool.state(spec)
        names = [operand.name for operand in part.operands]
        own = tuple(map(ways.kind, part.arrays)), tuple(map(names.index, names)), tuple(through), wanted
        key = (part.einsum, part.function, part.merged, part.whole, part.along, part.number, own)
        return self.choices.forms.setdefault(key, StatementForm(part, *own))

    def leaves_forward(self, number: int) -> bool:
        phases = [part.phase for part in self.problem.parts[number : number + 2]]
        return self.problem.layers > 1 and phases[0] == "forward" and phases[-1] != "forward"


class _Partial(NamedTuple):
    """A plan of the first statements: the copies of each array that is still needed, `live` in this order,
    and the choice at the last of these statements, behind another partial plan."""

    cost: Cost
    copies: tuple[ArrayCopies, ...]
    live: list[str]
    before: _Partial | None = None
    choice: StatementChoice | None = None


def planned_program(choices: StatementChoices, problem: Problem) -> tuple[Cost, list[PlannedStatement]]:
    """The cheapest plan found, and its cost. Raises `QuestionError` for an array that cannot be had."""
    uses = ArrayUses(choices, problem)
    partials = [_Partial(0, (), [])]
    for number, part in enumerate(problem.parts):
        partials = _followed(uses, number, _extended(uses, number, partials))
        if not partials:
            names = (
                ", ".join(array.name for array in part.arrays if array.spec is not None) or part.result.name
            )
            raise QuestionError(
                f"no collectives over equal shards bring {names} to the shardings that {part.einsum} needs",
                "shard it in another way, or use sizes that its axes divide",
            )
    ends = [_ends(uses, partial) for partial in partials]
    totals = [partial.cost + cost for partial, (cost, _) in zip(partials, ends, strict=True)]
    cost = min(totals)
    best = totals.index(cost)
    chosen: list[StatementChoice] = []
    partial = partials[best]
    while partial.before is not None and partial.choice is not None:
        chosen.insert(0, partial.choice)
        partial = partial.before
    return cost, list(_scheduled(problem, chosen, ends[best][1]))


def _extended(uses: ArrayUses, number: int, partials: list[_Partial]) -> list[_Partial]:
    """The partial plans with one statement more."""
    choices, (part, form, names, _) = uses.choices, uses.statements[number]
    live = partials[0].live
    arrays = (*names, part.result.name)
    kept = tuple(uses.last.get(name, -1) > number for name in arrays)
    after = [name for name in dict.fromkeys((*live, *arrays)) if uses.last.get(name, -1) > number]
    places = [arrays.index(name) if name in arrays else len(arrays) + live.index(name) for name in after]
    by_copies: dict[tuple[ArrayCopies, ...], _Partial] = {}
    for partial in partials:
        held = dict(zip(live, partial.copies, strict=True))
        copies = tuple(held.get(name) or uses.starts[name] for name in names)
        for choice in choices.choices(form, copies, kept):
            both = choice.copies + partial.copies
            own = tuple([both[index] for index in places])
            if uses.leaves_forward(number):
                own = tuple(map(choices.kept, own, [name in uses.starts for name in after]))
            cost = partial.cost + choice.cost
            known = by_copies.get(own)
            if known is None or cost < known.cost:
                by_copies[own] = _Partial(cost, own, after, partial, choice)
    return list(by_copies.values())


def _followed(uses: ArrayUses, number: int, partials: list[_Partial]) -> list[_Partial]:
    """The partial plans to follow, the most promising first, by what their next uses cost at least."""
    choices = uses.choices
    costs = [partial.cost for partial in partials]
    live = partials[0].live if partials else []
    waiting = set(live)
    for _, form, names, first in uses.statements[number + 1 :]:
        if waiting.isdisjoint(names):
            continue
        places = [live.index(name) if name in waiting else None for name in names]
        waiting.difference_update(names)
        key_of = itemgetter(*(index for index in places if index is not None))
        least: dict[object, Cost] = {}
        for index, partial in enumerate(partials):
            key = key_of(partial.copies)
            if key not in least:
                pairs = zip(places, first, strict=True)
                held = tuple(own if index is None else partial.copies[index] for index, own in pairs)
                least[key] = choices.least(form, held)
            costs[index] += least[key]
    promising = sorted(range(len(partials)), key=costs.__getitem__)
    beam: list[_Partial] = []
    for partial in map(partials.__getitem__, promising):
        if len(beam) == WIDTH:
            break
        if not any(
            choices.imitates(better.copies, partial.copies, partial.cost - better.cost)
            for better in beam[:COMPARED]
        ):
            beam.append(partial)
    return beam


def _ends(uses: ArrayUses, partial: _Partial) -> tuple[Cost, dict[str, Path]]:
    """The cost of leaving the returned arrays as they may be left, and the moves to there."""
    total: Cost = 0
    paths: dict[str, Path] = {}
    for name, copies in zip(partial.live, partial.copies, strict=True):
        if name in uses.open:
            ends = uses.choices.ways.onward(copies.kind, uses.open[name])
            least = UNREACHABLE  # a copy on every device is one of the goals
            for copy in copies.states:
                if (cost := ends.cost(copy, least)) is not None:
                    least, start = cost, copy
            total, paths[name] = total + least, (start, ends.path(start)[1])
    return total, paths


def _scheduled(
    problem: Problem, choices: Sequence[StatementChoice], returns: Mapping[str, Path]
) -> Iterator[PlannedStatement]:
    """The statements in order, with the moves around them: sums are added right behind their statement; what
    brings a result to where it is returned otherwise stands behind the last."""
    makers = {part.result.name: number for number, part in enumerate(problem.parts)}
    before: list[list[tuple[ShardedArray, tuple[PathMove, ...]]]] = [[] for _ in choices]
    behind: list[list[tuple[ShardedArray, tuple[PathMove, ...]]]] = [[] for _ in choices]

    def behind_maker(array: ShardedArray, path: Path) -> tuple[PathMove, ...]:
        """The moves left when the sums that they begin with are added behind the array's statement."""
        start, moves = path
        number = makers.get(array.name)
        if number is None or start != choices[number].split.result:
            return moves
        sums = tuple(takewhile(lambda move: move.op in ("psum", "psum_scatter"), moves))
        if sums:
            behind[number].append((problem.parts[number].result, sums))
        return moves[len(sums) :]

    for number, (part, choice) in enumerate(zip(problem.parts, choices, strict=True)):
        for operand, path in zip(part.operands, choice.paths, strict=True):
            if rest := behind_maker(operand, path):
                before[number].append((operand, rest))
        if choice.result_path[1]:
            behind[number].append((part.result, choice.result_path[1]))
    for name, path in returns.items():
        array = problem.parts[makers[name]].result
        if rest := behind_maker(array, path):
            behind[-1].append((array, rest))
    for part, choice, *around in zip(problem.parts, choices, before, behind, strict=True):
        starts = [start for start, _ in choice.paths]
        yield planned_statement(problem.mesh, part, choice.split, starts, *around)
