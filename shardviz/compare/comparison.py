"""Both sides of a comparison: what of them is not yet explained, and the differences found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from shardviz.compare.difference import Difference
from shardviz.compare.transfer import Transfer
from shardviz.compare.wording import arrays, listed
from shardviz.hlo import Collective
from shardviz.planner import Contraction, Plan
from shardviz.sharding import PartitionSpec


@dataclass
class Comparison:
    """The transfers of both sides that are not yet explained, and the differences found.

    `slices` are the target's local slices, which move nothing, as far as its text shows them. `scheduled` are
    its collectives as they run, without the permutes of collective matmuls; `partitioned` those right after
    partitioning, None where nobody knows.
    """

    plan: Plan
    target: str
    ours: list[Transfer]
    theirs: list[Transfer]
    slices: list[Transfer]
    result_spec: PartitionSpec | None
    scheduled: Sequence[Collective] = ()
    partitioned: Sequence[Collective] | None = None
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

    def say_instead(
        self, code: str, message: str, ours: Sequence[Transfer], theirs: Sequence[Transfer]
    ) -> None:
        """Note that one move stands for another, with what follows from it for the arrays of the same einsum.

        The target needs nothing for some that the plan moves, and moves others that the plan leaves. The
        message has no full stop.
        """
        names = {name for one in (*ours, *theirs) for name in one.arrays}
        near = frozenset(name for part in self.plan.problem.parts for name in _names(part, names))
        rest_ours, rest_theirs = _without(self.ours, ours), _without(self.theirs, theirs)
        also = _untouched(rest_theirs, rest_ours, near)
        spared = _untouched(rest_ours, rest_theirs, near)
        message += f"; besides, it moves {arrays(also)} by {listed(also)}" if also else ""
        message += f"; so it does without the plan's {', '.join(map(str, spared))}" if spared else ""
        self.say(code, f"{message}.", [*ours, *spared], [*theirs, *also])

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


def _names(part: Contraction, names: set[str]) -> set[str]:
    """All arrays of an einsum that takes or makes one of `names`."""
    own = {array.name for array in (*part.operands, part.result)}
    return own if own & names else set()


def _without(among: Sequence[Transfer], used: Sequence[Transfer]) -> list[Transfer]:
    rest = list(among)
    for one in used:
        rest.remove(one)
    return rest


def _untouched(among: Sequence[Transfer], others: Sequence[Transfer], near: frozenset[str]) -> list[Transfer]:
    """Transfers of the arrays in `near` that none of `others` may move."""
    moved = {name for one in others for name in one.arrays}
    return [one for one in among if one.arrays and near.issuperset(one.arrays) and not moved & {*one.arrays}]
