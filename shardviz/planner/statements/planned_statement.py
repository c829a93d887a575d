"""A statement as planned: how its work is divided, the moves around it, and what was not chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from shardviz.planner.plan import Step
from shardviz.planner.problem import Objective, Statement
from shardviz.planner.statements.work_split import WorkSplit
from shardviz.planner.states.moves import Axes, PathMove, State, move_step, spec_of
from shardviz.planner.states.prices import Cost, Prices
from shardviz.sharding import Mesh, ShardedArray
from shardviz.sharding.axis_parts import joined_parts
from shardviz.units import estimated_seconds, exact_bytes

NOTICED = 1e-8
"""Seconds; two ways that differ by less take as long."""


@dataclass(frozen=True)
class OtherWay:
    """The best of the ways that keep a split, against the one that was chosen: seconds and wire bytes of a
    device more, negative where they are less. `gathered` are the operands that it gathers and does not move
    otherwise."""

    seconds: float
    wire_bytes: int
    gathered: frozenset[str]
    objective: Objective

    def more(self) -> str:
        """Such as ``would take 43 µs more and send 96 bytes more``; "" where it would cost no more by the
        plan's objective, as within a margin it may."""
        time = estimated_seconds(abs(self.seconds))
        sent = exact_bytes(abs(self.wire_bytes))
        is_alike = abs(self.seconds) < NOTICED
        if self.objective == "bytes":
            less = f", though it would take {time} less" if self.seconds < 0 and not is_alike else ""
            return f"would send {sent} more{less}" if self.wire_bytes > 0 else ""
        if self.seconds >= 0 and is_alike and self.wire_bytes > 0:
            return f"would take as long and send {sent} more"
        if self.seconds <= 0:
            return ""
        rest = f" and send {sent} more" if self.wire_bytes else ""
        if self.wire_bytes < 0:
            rest = f", though it would send {sent} less"
        return f"would take {time} more{rest}"


def cost_of_other_way(
    prices: Prices, other: Cost, chosen: Cost, moves: Iterable[tuple[ShardedArray, Sequence[PathMove]]]
) -> OtherWay:
    """A way by its cost against that of the chosen one, with the moves of its operands."""
    own, instead = prices.parts(chosen), prices.parts(other)
    gathered = frozenset(array.name for array, path in moves if [move.op for move in path] == ["all_gather"])
    return OtherWay(
        instead.seconds - own.seconds, instead.wire_bytes - own.wire_bytes, gathered, prices.objective
    )


Keeping = Callable[[str, Axes], OtherWay | None]
"""The best way that splits a dimension over axes while the devices compute; None where there is none, or
where nobody looks for it because there are too many."""


@dataclass(frozen=True)
class PlannedStatement:
    """A statement as planned: `starts` are the operands' states before any step, `before` the moves of its
    operands, `behind` those that follow it, mostly of its result, as steps without their reasons; `keeping`
    has the ways that were not chosen, where these are looked for."""

    mesh: Mesh
    part: Statement
    work_split: WorkSplit
    starts: tuple[State, ...]
    before: Sequence[tuple[ShardedArray, tuple[Step, ...]]]
    behind: Sequence[tuple[ShardedArray, tuple[Step, ...]]]
    keeping: Keeping | None

    def dim_of(self, axis: str) -> str | None:
        """The dimension of the einsum that `axis` splits while the devices compute."""
        return next((dim for dim, axes in self.work_split.assignment.items() if axis in axes), None)

    def start(self, array: ShardedArray) -> State:
        """The state of an operand before any step."""
        pairs = zip(self.part.operands, self.starts, strict=True)
        return next(state for operand, state in pairs if operand is array)

    def others(self, array: ShardedArray) -> list[tuple[ShardedArray, State]]:
        """The operands besides `array`, with their states before any step."""
        pairs = zip(self.part.operands, self.starts, strict=True)
        return [(operand, state) for operand, state in pairs if operand is not array]


Moves = Sequence[tuple[ShardedArray, Sequence[PathMove]]]


def planned_statement(
    mesh: Mesh,
    part: Statement,
    split: WorkSplit,
    starts: Sequence[State],
    before: Moves,
    behind: Moves,
    keeping: Keeping | None = None,
) -> PlannedStatement:
    """A statement planned over parts of axes, of which adjacent ones are joined."""

    def joined(state: State) -> State:
        spec = spec_of(state, mesh)
        return spec.dims, spec.unreduced

    def steps(moves: Moves) -> list[tuple[ShardedArray, tuple[Step, ...]]]:
        return [(array, tuple(move_step(array, mesh, move) for move in own)) for array, own in moves]

    work_split = WorkSplit(
        {dim: joined_parts(axes, mesh.shape) for dim, axes in split.assignment.items()},
        tuple(map(joined, split.operands)),
        joined(split.result),
        joined_parts(split.largest, mesh.shape),
    )
    own_starts = tuple(map(joined, starts))
    return PlannedStatement(mesh, part, work_split, own_starts, steps(before), steps(behind), keeping)
