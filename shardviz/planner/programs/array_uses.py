"""The uses of the arrays of a program: which statement needs what, and what is kept for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

from shardviz.planner.problem import Problem, Statement
from shardviz.planner.programs.copies import ArrayCopies
from shardviz.planner.programs.statement_choices import StatementChoices, StatementForm
from shardviz.planner.states.moves import State
from shardviz.planner.states.paths import ArrayKind
from shardviz.planner.states.prices import Cost
from shardviz.sharding import ShardedArray, array_bytes


class NextUse(NamedTuple):
    """A statement that is the next to use some live arrays: `places` are their numbers among these, by
    operand; `first` are the copies of arguments that it uses first, with which it costs `least`. `held` takes
    from the copies of the live arrays those that the cost depends on."""

    form: StatementForm
    least: Cost
    places: tuple[int | None, ...]
    first: tuple[ArrayCopies | None, ...]
    held: Callable[[tuple[ArrayCopies, ...]], object]

    def excess(self, choices: StatementChoices, copies: tuple[ArrayCopies, ...]) -> Cost:
        """The cost of the statement beyond the least with these copies of the live arrays."""
        held = tuple(
            first if place is None else copies[place]
            for place, first in zip(self.places, self.first, strict=True)
        )
        return choices.least(self.form, held) - self.least


class ArrayUses:
    """The statements of a program as forms, and the arrays that they use.

    `starts` are the given copies of the arguments, `last` is the last statement that needs an array, with the
    number of statements for what is returned. `first` are for each statement the given copies of the
    arguments that it uses first. `open` are the results that may be left in several states, with these.
    `used` are the names of all operands.
    """

    def __init__(self, choices: StatementChoices, problem: Problem) -> None:
        self.choices, self.problem = choices, problem
        self.starts = {
            array.name: choices.moves.copies(choices.kind(array), choices.pool.state(array.decided_spec))
            for array in problem.arguments
        }
        self.names = [[operand.name for operand in part.operands] for part in problem.parts]
        self.used = {operand.name for part in problem.parts for operand in part.operands}
        self.last = {
            operand.name: number for number, part in enumerate(problem.parts) for operand in part.operands
        } | dict.fromkeys(problem.results, len(problem.parts))
        self.forms = [self._form(part) for part in problem.parts]
        self.first = self._held_first()
        self.open = {
            part.result.name: tuple(choices.pool.open_states(part.result))
            for part, form in zip(problem.parts, self.forms, strict=True)
            if form.wanted is None and part.result.name in self.problem.results
        }

    @cached_property
    def least(self) -> list[Cost]:
        """The cost of each statement at least, with the copies of the arguments that it uses first."""
        return [self.choices.least(form, held) for form, held in zip(self.forms, self.first, strict=True)]

    def _form(self, part: Statement) -> StatementForm:
        pool = self.choices.pool
        through = tuple(
            None if operand.spec is None or self._is_given(operand) else pool.state(operand.spec)
            for operand in part.operands
        )
        spec = part.result.spec
        if part is self.problem.parts[-1]:
            spec = self.problem.wanted_spec
        return self.choices.form(part, through, None if spec is None else pool.state(spec))

    def _is_given(self, operand: ShardedArray) -> bool:
        """The program is given the operand as it must be."""
        given = self.starts.get(operand.name)
        return (
            given is not None
            and operand.spec is not None
            and given.states == (self.choices.pool.state(operand.spec),)
        )

    def _held_first(self) -> list[tuple[ArrayCopies | None, ...]]:
        """For each statement the given copies of the arguments that it uses first, or first behind the
        forward pass where their copies are not kept from there."""
        found: list[tuple[ArrayCopies | None, ...]] = []
        used: set[str] = set()
        for number in range(len(self.problem.parts)):
            if number and self.leaves_forward(number - 1):
                used.clear()
            names = self.names[number]
            found.append(tuple(None if name in used else self.starts.get(name) for name in names))
            used.update(names)
        return found

    def next_uses(self, number: int, live: list[str]) -> list[NextUse]:
        """The statements that next need the arrays that are live behind a statement."""
        found = []
        waiting = set(live)
        for later in range(number + 1, len(self.forms)):
            names = self.names[later]
            if not waiting.isdisjoint(names):
                places = tuple(live.index(name) if name in waiting else None for name in names)
                held = itemgetter(*(place for place in places if place is not None))
                found.append(NextUse(self.forms[later], self.least[later], places, self.first[later], held))
                waiting.difference_update(names)
        return found

    def leaves_forward(self, number: int) -> bool:
        phases = [part.phase for part in self.problem.parts[number : number + 2]]
        return self.problem.layers > 1 and phases[0] == "forward" and phases[-1] != "forward"

    def kept_for_later(self, name: str, copies: ArrayCopies) -> ArrayCopies:
        """The copy that takes the least bytes, of arguments the array as it is given."""
        if name in self.starts:
            return self.choices.moves.copies(copies.kind, copies.states[0])
        least = min(copies.states, key=lambda copy: self._bytes(copies.kind, copy))
        return self.choices.moves.copies(copies.kind, least)

    def _bytes(self, kind: ArrayKind, copy: State) -> int:
        mesh = self.problem.mesh
        shape = [-(-size // mesh.group_size(axes)) for size, axes in zip(kind.shape, copy[0], strict=True)]
        return array_bytes(shape, kind.dtype)
