"""Both sides of a comparison: what of them is not yet explained, and the differences found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from shardviz.compare.difference import Difference
from shardviz.compare.transfer import Transfer
from shardviz.planner import Plan
from shardviz.sharding import PartitionSpec


@dataclass
class Comparison:
    """The transfers of both sides that are not yet explained, and the differences found.

    `slices` are the target's local slices, which move nothing, as far as its text shows them.
    """

    plan: Plan
    target: str
    ours: list[Transfer]
    theirs: list[Transfer]
    slices: list[Transfer]
    result_spec: PartitionSpec | None
    found: list[Difference] = field(default_factory=list)

    def say(
        self, code: str, message: str, ours: Iterable[Transfer] = (), theirs: Iterable[Transfer] = ()
    ) -> None:
        """Note a difference, and strike out what it explains."""
        self.found.append(Difference(self.target, code, message))
        for one in ours:
            self.ours.remove(one)
        for one in theirs:
            self.theirs.remove(one)

    def beside(self, name: str) -> frozenset[str]:
        """The other operands of the einsums that take an array."""
        taking = [[operand.name for operand in part.operands] for part in self.plan.problem.parts]
        return frozenset(other for names in taking if name in names for other in names) - {name}

    def takes(self, result: str, operand: str) -> bool:
        """Whether an einsum makes the one out of the other."""
        return any(
            part.result.name == result and operand in [each.name for each in part.operands]
            for part in self.plan.problem.parts
        )
