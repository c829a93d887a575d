"""The way not taken at a statement of a program: its cost if an operand kept a split that it loses.

Everything else stays as it is planned: what another way does not leave behind of the copies that later
statements take is made for them all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shardviz.planner.programs.copies import ArrayCopies, ArrayPath
from shardviz.planner.programs.statement_choices import StatementChoice, StatementChoices, StatementForm
from shardviz.planner.statements.planned_statement import OtherWay, cost_of_other_way
from shardviz.planner.states.moves import Axes, State
from shardviz.planner.states.prices import Cost
from shardviz.sharding import PartitionSpec


@dataclass(frozen=True)
class ProgramWays:
    """A statement as planned, with the copies that a device `held` of its operands before it.

    `needed` are for each operand the copies that later statements start from, `goal` is the state in which
    the result goes on.
    """

    choices: StatementChoices
    form: StatementForm
    held: tuple[ArrayCopies, ...]
    chosen: StatementChoice
    needed: tuple[ArrayCopies, ...]
    goal: State

    def keeping(self, dim: str, axes: Axes) -> OtherWay | None:
        """As `OtherWays` has it."""
        (own,), _ = self.choices.pool.state(PartitionSpec((axes,)))
        best: tuple[Cost, StatementChoice] | None = None
        for other in self.choices.every_way(self.form, self.held):
            if set(own) <= set(other.split.assignment.get(dim, ())):
                cost = self._cost(other)
                if cost is not None and (best is None or cost < best[0]):
                    best = cost, other
        chosen = self._cost(self.chosen)
        if best is None or chosen is None:
            return None
        pairs = zip(self.form.part.operands, best[1].paths, strict=True)
        gathered = frozenset(
            operand.name for operand, path in pairs if [move.op for move in path.moves] == ["all_gather"]
        )
        return cost_of_other_way(self.choices.prices, best[0], chosen, gathered)

    def _cost(self, way: StatementChoice) -> Cost | None:
        """The cost of a way until all that follows can go on as it is planned; None where it cannot."""
        moves, total = self.choices.moves, way.cost
        for place, needed in enumerate(self.needed):
            more = moves.imitation(way.copies[place], needed)
            if more is None:
                return None
            total += more
        found = moves.nearest(way.copies[-1], self.goal)
        return None if found is None else total + found[0]


def state_of_all_uses(natural: State, uses: Sequence[ArrayPath]) -> State:
    """The state to which an array goes on its way to all of its uses: where the first of them starts from
    there, or their ways part."""
    state, rest = natural, [path for path in uses if path.start == natural]
    paths = [path.moves for path in rest]
    while paths and all(paths) and len({moves[0].after for moves in paths}) == 1:
        state = paths[0][0].after
        # A later use may start from a copy that an earlier one has made.
        paths = [moves[1:] for moves in paths] + [path.moves for path in uses if path.start == state]
    return state
