"""Both sides of a comparison: what of them is not yet explained, and the differences found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from shardviz.compare.moved_arrays import summed_operands
from shardviz.compare.transfer import ArrayTransfer
from shardviz.hlo import Collective
from shardviz.planner.plan import Plan
from shardviz.planner.problem import Statement
from shardviz.reports.target_result import TargetResult

CAUSES = {
    "packed_dtype": "packed into a wider dtype",
    "promoted_dtype": "wider dtype",
    "narrowed_dtype": "narrower dtype",
    "collective_matmul": "permutes between matmuls",
    "between_slices": "send and recv between slices",
    "combined_collectives": "combined into one",
    "fused_reduce_scatter": "all-reduce and slice fused",
    "overlapped": "overlapped",
    "idle_axis": "uses an axis that no spec has",
    "other_result": "another result sharding",
    "only_other_result": "another result sharding, same bytes",
    "moved_elsewhere": "another array, same bytes",
    "gathered_again": "another number of gathers",
    "summed_apart": "sums each summand on its own",
    "scatter_and_gather": "reduce-scatter and all-gather, or both in one",
    "all_reduce_and_slice": "all-reduce, then slice",
    "scattered_less": "scatters over fewer axes",
    "split_collective": "one collective as several",
    "merged_collectives": "several collectives as one",
    "padded": "padded array",
    "gathered_more": "gathers more",
    "summed_first": "sums before multiplying",
    "gathered_not_reduced": "gathers instead of summing",
    "reduced_not_gathered": "sums instead of gathering",
    "other_sums": "sums over other axes",
    "gathered_other_operand": "gathers the other operand",
    "other_operand": "moves the other operand",
    "operand_not_result": "moves an operand, not the result",
    "result_not_operand": "moves the result, not an operand",
    "other_split": "moves other arrays",
    "sub_axes": "over parts of an axis",
    "fewer_bytes": "fewer bytes",
    "summed_more": "sums more",
    "other_route": "another route",
    "extra_collective": "an extra collective",
    "avoided_collective": "a collective less",
}
"""The code of each difference, the most specific first, and the few words that a table has for it."""
AS_PLANNED = frozenset({"overlapped", "fused_reduce_scatter", "combined_collectives", "packed_dtype"})
"""Codes of differences after which every byte still moves as planned, only at another time or together."""
SAME_TRAFFIC = AS_PLANNED | {"moved_elsewhere", "only_other_result"}
"""Those, and codes of differences with as many bytes by the same collectives, but of other arrays."""


@dataclass(frozen=True)
class Difference:
    """One difference between the plan and a target: a stable code and one sentence with the numbers."""

    target: str
    code: str
    message: str


@dataclass
class Comparison:
    """The transfers of both sides that are not yet explained, and the differences found.

    `slices` are the target's local slices, which move nothing, as far as its text shows them. `scheduled` are
    its collectives as they run, without the permutes of collective matmuls. `equal` are the pairs of
    transfers, ours and theirs, that agree.
    """

    plan: Plan
    answer: TargetResult
    ours: list[ArrayTransfer]
    theirs: list[ArrayTransfer]
    slices: list[ArrayTransfer]
    scheduled: Sequence[Collective]
    found: list[Difference] = field(default_factory=list)
    equal: list[tuple[ArrayTransfer, ArrayTransfer]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.target = self.answer.target
        self._answered = [*self.theirs]
        self._sums = [one for one in self.ours if one.is_sum], [one for one in self.theirs if one.is_sum]

    def add(
        self,
        code: str,
        message: str,
        ours: Iterable[ArrayTransfer] = (),
        theirs: Iterable[ArrayTransfer] = (),
    ) -> None:
        """Note a difference, and strike out what it explains."""
        self.found.append(Difference(self.target, code, message))
        for one in ours:
            self.ours.remove(one)
        for one in theirs:
            self.theirs.remove(one)

    @property
    def sides(self) -> tuple[list[ArrayTransfer], list[ArrayTransfer]]:
        """Ours and theirs."""
        return self.ours, self.theirs

    def of_einsum(self, part: Statement) -> tuple[list[ArrayTransfer], list[ArrayTransfer]]:
        """The transfers left on either side that move an einsum's operands, or that add or move its results.

        Sums of an operand are those of the einsum before."""
        made = {array.name for array in (part.result, *summed_operands(part).values())}
        used = {operand.name for operand in part.operands}
        ours, theirs = (
            [one for one in side if one.arrays and {*one.arrays} <= (made if one.is_sum else made | used)]
            for side in self.sides
        )
        return ours, theirs

    def plans(self, names: Iterable[str]) -> bool:
        """The plan sends something of some arrays."""
        return bool({step.array for step in self.plan.collectives if step.wire_bytes} & {*names})

    def stays(self, name: str) -> bool:
        """None of the target's collectives can be of an array, nor of its sums."""
        parts = self.plan.problem.parts
        others = {array.name for part in parts for array in (*part.operands, part.result)} - {name}
        return all(one.arrays and {*one.arrays} <= others for one in self._answered)

    def summed_over(self, result: str) -> tuple[frozenset[str], frozenset[str]] | None:
        """The axes over which either side adds up a result; None where that cannot be told: a sum of no
        known array may be one of it."""
        sums = [[one for one in side if result in one.arrays or not one.arrays] for side in self._sums]
        if any(not one.axes or len(one.arrays) != 1 for side in sums for one in side):
            return None
        ours, theirs = (frozenset(axis for one in side for axis in one.base_axes) for side in sums)
        return ours, theirs

    def whole_route(self, names: Iterable[str]) -> tuple[list[ArrayTransfer], list[ArrayTransfer]]:
        """All that either side does with some arrays, what agrees included, in its order."""
        wanted = frozenset(names)
        ours, theirs = ([one for one in side if wanted & {*one.arrays}] for side in self.sides)
        for mine, other in self.equal:
            if wanted & {*mine.arrays}:
                ours.append(mine)
                theirs.append(other)
        ours.sort(key=lambda one: one.place)
        theirs.sort(key=lambda one: one.place)
        return ours, theirs
