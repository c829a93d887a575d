"""Both sides of a comparison as transfers, with their words; what is unexplained, and the differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import prod

from shardviz.compare.moved_arrays import MovedArrays, summed_operands
from shardviz.errors import joined, plural
from shardviz.hlo import Collective, CollectiveMatmul, Work, wire_bytes
from shardviz.hlo.collective import by_permute
from shardviz.hlo.named_scopes import joined_names
from shardviz.planner.plan import HLO_OPS, Plan
from shardviz.planner.problem import Problem, Statement
from shardviz.reports.target_result import TargetResult
from shardviz.sharding import Mesh
from shardviz.sharding.array import BITS
from shardviz.sharding.axis_parts import whole_axis
from shardviz.text_tables import rows_beside


@dataclass(frozen=True)
class ArrayTransfer:
    """A collective of either side in the same terms; `elements` of the larger of operand and result.

    `arrays` are the names of the arrays it may move, `pieces` how many arrays it carries at once. Where
    permutes stand for it, `taken_apart` tells which, and `permute_runs` how often they run in all. It and
    `runs` are None in a loop of unknown length. `wire_bytes` is for all runs that are known, `bytes` and
    `elements` for one. `place` is its place among those of its side."""

    op: str
    axes: tuple[str, ...]
    elements: int
    bytes: int
    wire_bytes: int
    dtype: str
    arrays: tuple[str, ...]
    pieces: int = 1
    between_slices: bool = False
    taken_apart: CollectiveMatmul | None = None
    runs: int | None = 1
    permute_runs: int | None = None
    place: int = 0

    @property
    def kind(self) -> tuple[str, frozenset[str], tuple[int, int | None]]:
        """The operation, its axes, and how much it moves: two that agree in it send the same."""
        return self.op, frozenset(self.axes), self.amount

    @property
    def is_sum(self) -> bool:
        """It adds up parts, and so does more than move them."""
        return self.op in ("all-reduce", "reduce-scatter")

    @property
    def amount(self) -> tuple[int, int | None]:
        """Elements of a run, and runs: what must agree for two to be the same."""
        return self.elements, self.runs

    @property
    def base_axes(self) -> frozenset[str]:
        """The mesh axes, sub-axes counted as the axis that they are part of."""
        return frozenset(map(whole_axis, self.axes))

    def may_share_array(self, other: ArrayTransfer) -> bool:
        """Both may move the same array; one of which nothing is known may be any."""
        return not self.arrays or not other.arrays or self.shares_array(other)

    def shares_array(self, other: ArrayTransfer) -> bool:
        """Both are known to move one of the same arrays."""
        return not {*self.arrays}.isdisjoint(other.arrays)

    def is_like(self, other: ArrayTransfer) -> bool:
        """Both are the same collective of the same array."""
        return self.kind == other.kind and self.may_share_array(other)

    @property
    def over(self) -> str:
        return over(self)

    def __str__(self) -> str:
        between = " between slices" if self.between_slices else ""
        often = "" if self.runs == 1 else " in a loop" if self.runs is None else f" {self.runs:,} times"
        return f"{self.op}{self.over}{between} ({self.bytes:,} bytes){often}"


def kinds(several: Iterable[ArrayTransfer]) -> Counter[object]:
    """The number of transfers of each kind, of any array."""
    return Counter(one.kind for one in several)


def planned(plan: Plan) -> list[ArrayTransfer]:
    """The collectives of the plan that send something, in all runs of the program."""
    layers = plan.problem.layers
    return [
        ArrayTransfer(
            HLO_OPS[step.op],
            step.axes,
            prod(step.shape),
            step.bytes,
            step.wire_bytes * layers,
            step.dtype,
            (step.array,),
            runs=layers,
            place=index,
        )
        for index, step in enumerate(plan.collectives)
        if step.wire_bytes
    ]


def compiled(
    collectives: Sequence[Collective], problem: Problem, matmuls: Sequence[CollectiveMatmul] = ()
) -> list[ArrayTransfer]:
    """The collectives of a target's answer to `problem` that move something, in program order, and its local
    slices. One of `matmuls` stands as the gather or scatter that its permutes replace."""
    moved = MovedArrays(problem)
    transfers = []
    for index, (given, matmul, permute_runs) in enumerate(_whole(collectives, matmuls, problem.layers)):
        one = _of_one_run(given, problem.layers)
        if one.wire_bytes or one.op == "slice":
            transfers.append(
                ArrayTransfer(
                    one.op,
                    one.axes,
                    elements_of(one),
                    one.bytes,
                    one.wire_bytes * (1 if one.count is None else one.count),
                    one.dtype,
                    moved.of(one),
                    one.arrays,
                    one.between_slices,
                    matmul,
                    one.count,
                    permute_runs,
                    index,
                )
            )
    return transfers


def elements_of(one: Collective) -> int:
    """Elements of the larger of operand and result."""
    return one.bytes * 8 // max(1, BITS.get(one.dtype, 8))


def _of_one_run(one: Collective, layers: int) -> Collective:
    """A collective of the arrays of all runs at once, stacked in front, as one for each run."""
    shapes = one.operand_shape, one.result_shape
    if layers == 1 or one.count != 1 or any(len(shape) < 2 or shape[0] != layers for shape in shapes):
        return one
    return replace(
        one,
        operand_shape=one.operand_shape[1:],
        result_shape=one.result_shape[1:],
        bytes=one.bytes // layers,
        wire_bytes=one.wire_bytes // layers,
        count=layers,
    )


def _whole(
    collectives: Sequence[Collective], matmuls: Sequence[CollectiveMatmul], layers: int
) -> Iterator[tuple[Collective, CollectiveMatmul | None, int | None]]:
    """Collectives, with one whole gather or scatter in place of the permutes that take it apart, and the runs
    of these in all. It runs in each layer, as they do, where they all run a multiple of that."""
    parts = by_permute(matmuls)
    counts = {one.name: one.count for one in collectives}
    seen: list[CollectiveMatmul] = []
    for one in collectives:
        matmul = parts.get(one.name)
        if matmul is None:
            yield one, None, None
        elif matmul not in seen:
            seen.append(matmul)
            own = [counts[name] for name in matmul.permutes if name in counts]
            known = [count for count in own if count is not None]
            is_known = len(known) == len(own)
            in_layers = is_known and all(count % layers == 0 for count in known)
            whole = _put_together(one, matmul, layers if in_layers else 1)
            yield whole, matmul, sum(known) if is_known else None


def _put_together(permute: Collective, matmul: CollectiveMatmul, runs: int) -> Collective:
    """The collective that a collective matmul replaces in so many runs; shapes as one dimension."""
    whole = matmul.bytes * 8 // max(1, BITS.get(permute.dtype, 8))
    group, is_gather = max(1, matmul.group_size), matmul.op == "all-gather"
    shapes = [(whole // group,), (whole,)]
    held = matmul.bytes // group if is_gather else matmul.bytes
    return replace(
        permute,
        op=matmul.op,
        axes=matmul.axes or permute.axes,
        operand_shape=shapes[not is_gather],
        result_shape=shapes[is_gather],
        bytes=matmul.bytes,
        wire_bytes=wire_bytes(matmul.op, matmul.group_size, matmul.bytes, held),
        group_size=matmul.group_size,
        count=runs,
    )


def taken_apart(
    collectives: Sequence[Collective], partitioned: Sequence[Collective] | None
) -> tuple[list[Collective], list[Collective]]:
    """The collectives with the pieces of combined ones in their place, and those that were combined: all of
    whose pieces the module right after partitioning has."""
    pairs = [(one, _pieces(one, partitioned or ()) if one.arrays > 1 else []) for one in collectives]
    taken = [collective for one, several in pairs for collective in several or [one]]
    return taken, [one for one, several in pairs if several]


def _pieces(one: Collective, partitioned: Sequence[Collective]) -> list[Collective]:
    wide, alike = BITS.get(one.dtype, 8), []
    for each in partitioned:
        if (each.op, {*each.axes}, each.arrays) == (one.op, {*one.axes}, 1) and each.dtype in BITS:
            size, wire = (count * wide // BITS[each.dtype] for count in (each.bytes, each.wire_bytes))
            alike.append(replace(each, dtype=one.dtype, bytes=size, wire_bytes=wire))
    # A TPU's compiler keeps only one of the names.
    together = f"{one.source}:{':'.join(joined_names(one.source))}"
    named = [each for each in alike if each.source.rpartition("jit(program)/")[2] in together]
    for pieces in (named, alike):
        if len(pieces) == one.arrays and sum(each.bytes for each in pieces) == one.bytes:
            return pieces
    return []


CAUSES: dict[str, str] = dict(rows_beside(__file__, "causes.txt"))
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
    transfers, ours and theirs, that agree."""

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
        return self.ours, self.theirs

    def of_einsum(self, part: Statement) -> tuple[list[ArrayTransfer], list[ArrayTransfer]]:
        """The transfers left on either side that move an einsum's operands, not their own sums, or that add
        or move its results."""
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
        """The axes over which either side adds up a result; None where another sum may be of it."""
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


# Pieces of the sentences that name a difference.


def in_dtype(other: ArrayTransfer, mine: ArrayTransfer) -> str:
    return f" in {other.dtype}" if other.dtype != mine.dtype else ""


def with_article(name: str) -> str:
    """Such as "an all-gather"; several of them, as "2 times all-gather", have no article."""
    return name if name[0].isdigit() else f"{'an' if name[0] == 'a' else 'a'} {name}"


def against(theirs: int, ours: int) -> str:
    return f"both send {ours:,} bytes" if theirs == ours else f"it sends {theirs:,} bytes instead of {ours:,}"


def over(one: ArrayTransfer | Collective) -> str:
    """The axes, as in ` over X, Y`; nothing where it follows none."""
    return f" over {', '.join(one.axes)}" if one.axes else ""


def wire(several: Iterable[ArrayTransfer]) -> int:
    return sum(one.wire_bytes for one in several)


def listed(several: Sequence[ArrayTransfer]) -> str:
    """All in turn; equal ones in a row once, with how many they are."""
    runs = [(text, len([*run])) for text, run in groupby(map(str, several))]
    return ", then ".join(text if count == 1 else f"{count} times {text}" for text, count in runs)


def arrays(several: Sequence[ArrayTransfer]) -> str:
    """The arrays of some transfers; where one of them may move several arrays, "A or W"."""
    names = dict.fromkeys(one_of(one.arrays) for one in several if one.arrays)
    return joined([*names]) or "other data"


def one_of(names: Sequence[str]) -> str:
    """Such as "A or W"; of many their number."""
    return " or ".join(names) if len(names) <= 3 else f"one of {len(names)} arrays"


def does(several: Sequence[ArrayTransfer]) -> str:
    """All in turn, and what they send; by array where there are several."""
    if len({one.arrays for one in several}) > 1:
        return acts(several)
    return f"does {listed(several)}, sending {wire(several):,} bytes" if several else "needs nothing"


def acts(several: Sequence[ArrayTransfer]) -> str:
    """The work on each array in turn, and the bytes that all of it sends."""
    return f"{acts_on(several)}, sending {wire(several):,} bytes" if several else "sends nothing else"


def acts_on(several: Sequence[ArrayTransfer]) -> str:
    """Such as "moves A by all-gather over X (64 bytes), then adds up Out by all-reduce over Y (8 bytes)"."""
    runs = ([*run] for _, run in groupby(several, key=lambda one: (one.arrays, one.is_sum)))
    return ", then ".join(f"{verb(run)} {arrays(run)} by {listed(run)}" for run in runs)


def verb(several: Sequence[ArrayTransfer]) -> str:
    """The verb for some transfers of an array: a sum does more than move it."""
    sums = {one.is_sum for one in several}
    return "adds up and moves" if len(sums) > 1 else "adds up" if sums == {True} else "moves"


def cheaper(theirs: Sequence[ArrayTransfer], ours: Sequence[ArrayTransfer]) -> str:
    """The end of a sentence about two ways of which the target's sends less; "" where it does not."""
    return ", which is more" if wire(theirs) < wire(ours) else ""


def listed_axes(axes: frozenset[str], mesh: Mesh) -> str:
    return ", ".join(axis for axis in mesh.axis_names if axis in axes)


def under_way(overlapped: Sequence[Work]) -> str:
    """The work during a collective: "2 matmuls, ~52,626 cycles"; "" where there is none."""
    if not overlapped:
        return ""
    matmuls = sum(work.op == "matmul" for work in overlapped)
    others = len(overlapped) - matmuls
    words = [plural(matmuls, "matmul")] if matmuls else []
    words += [plural(others, "other instruction" if matmuls else "instruction")] if others else []
    cycles = sum(work.cycles or 0 for work in overlapped)
    return " and ".join(words) + (f", ~{cycles:,} cycles" if cycles else "")
