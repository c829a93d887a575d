"""Collectives and collective matmuls as a compiler wrote them, and the runs of each kind of them, in all and
against what a test expects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

RAGGED = "ragged-all-to-all"
OPS = (
    "all-gather",
    "all-reduce",
    "reduce-scatter",
    "all-to-all",
    RAGGED,
    "collective-permute",
    "collective-broadcast",
    "send",
    "recv",
    "slice",
)
"""HLO's names. `slice` is the local slicing of a replicated dimension, which moves nothing."""


@dataclass(frozen=True)
class Origin:
    """The arguments of the program that a value comes from, numbered from 0. With `computed` it was computed
    from them, else it is made of their own elements."""

    arguments: tuple[int, ...]
    computed: bool = False


@dataclass(frozen=True)
class Work:
    """An instruction that runs while a collective is under way. `op` is its opcode, or "matmul" where it
    multiplies matrices, by itself or inside a fusion. `cycles` is the compiler's own estimate, None where the
    text has none."""

    name: str
    op: str
    cycles: int | None = None


@dataclass(frozen=True)
class MatmulOrder:
    """The place of a collective among the program's `matmuls`: it begins after `before` of them."""

    before: int
    matmuls: int


@dataclass(frozen=True)
class Collective:
    """A collective read from HLO or Shardy text.

    `op` is HLO's name. `axes` are the user's mesh axes, major first, a sub-axis as ``"Y:(2)2"``; empty when
    the groups follow no axes. `groups` are device ids, or for a permute (source, target) pairs; None when
    there are too many to list. Shapes are per device; for a combined collective they are those of its first
    array and `arrays` counts them; of a permute in place they are those of the slices that it sends. `bytes`
    is the larger of a device's operand and result, all arrays together; of a ragged-all-to-all, whose result
    is a buffer of any size, the operand, as if it were sent evenly. `wire_bytes` is what one device must send
    at least. `count` is how often it runs, None when a loop's length is unknown; `in_branch`: where that
    branch of a conditional is taken. `source` is where in the user's program it comes from, as the text says
    it ("file.py:12", else an op name), or ""; `op_name` is JAX's name of the operation that it is for, or "".

    `dim` is the dimension that is gathered, scattered or sliced, for an all-to-all the one that becomes
    whole; `split_dim` the one that an all-to-all splits. Both are None where the text names no single
    dimension: other ops, several dimensions at once, an all-to-all of separate arrays. `group_size` is how
    many devices take part in one group, 2 for the pairs of a permute; `group_count` how many groups, or
    pairs, there are, 0 where the text does not tell. `origin` tells which of the program's arguments the
    operand comes from, None where the text does not lead there.

    `is_async` tells that it starts and ends in different places; `overlapped` is what runs in between, in
    program order (1,000 instructions at most): what only names, indexes or fetches data is not work.
    `algorithm` is how the compiler carries it out, in its own words, where it says so. With `between_slices`
    it crosses the data-center network: the text has a `send` and a `recv` of TPU slices, `op` is what they
    carry, and a group has devices of several slices. `matmul_order` is where it begins among the matmuls,
    None where it was not asked for or the text does not tell. With `is_host_transfer` a `send` goes to the
    device's host, and a `recv` comes from there, not from another device."""

    op: str
    name: str
    axes: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...] | None
    operand_shape: tuple[int, ...]
    result_shape: tuple[int, ...]
    dtype: str
    bytes: int
    wire_bytes: int
    count: int | None = 1
    source: str = ""
    arrays: int = 1
    dim: int | None = None
    split_dim: int | None = None
    group_size: int = 1
    origin: Origin | None = None
    is_async: bool = False
    overlapped: Sequence[Work] = ()
    algorithm: str = ""
    between_slices: bool = False
    in_branch: bool = False
    matmul_order: MatmulOrder | None = None
    is_host_transfer: bool = False
    group_count: int = 0
    op_name: str = ""

    def having(self, **fields: object) -> Collective:
        """As `dataclasses.replace`, but a long module has tens of thousands of them."""
        other = object.__new__(Collective)
        object.__setattr__(other, "__dict__", self.__dict__ | fields)
        return other


@dataclass(frozen=True)
class CollectiveMatmul:
    """Permutes and partial matmuls instead of an all-gather before a matmul, or a reduce-scatter after it.

    `op` is HLO's name of the collective that was decomposed ("all-gather" or "reduce-scatter"). `permutes`
    and `matmuls` name instructions of the module in program order; `directions` is 1 where all permutes go
    the same way around the ring, 2 where they go both ways. `group_size` is the devices of the ring. `bytes`
    is the larger of the operand and the result of the collective that it replaces, on one device;
    `wire_bytes` what one device sends in all the permutes, loops included (None: a loop of unknown length).
    The zeros that sums begin with may be sent once for several reduce-scatters of one shape: such a permute
    is one of each of them.

    Wang et al., "Overlap communication with dependent computation via decomposition" (2023)."""

    op: str
    axes: tuple[str, ...]
    directions: int
    group_size: int
    permutes: tuple[str, ...]
    matmuls: tuple[str, ...]
    bytes: int
    wire_bytes: int | None
    source: str = ""


def by_permute(matmuls: Iterable[CollectiveMatmul]) -> dict[str, CollectiveMatmul]:
    """The collective matmul that each permute belongs to, by its name; the first of several."""
    return {name: matmul for matmul in reversed([*matmuls]) for name in matmul.permutes}


OTHERS = "others"
"""All the operations that an expectation does not name."""


@dataclass(frozen=True)
class Total:
    """All collectives of one kind, those between TPU slices and transfers to and from the host apart. `count`
    is how often they run, loops included; `bytes` and `wire_bytes` are the sums of what a run has, on one
    device. Those in a loop of unknown length are in none of the three: `unknown` counts them."""

    op: str
    between_slices: bool = False
    is_host_transfer: bool = False
    count: int = 0
    bytes: int = 0
    wire_bytes: int = 0
    unknown: int = 0


def totals(collectives: Iterable[Collective]) -> tuple[Total, ...]:
    """A total for each kind, in the order in which the kinds first come. Local slices are not collectives."""
    by_kind: dict[tuple[str, bool, bool], Total] = {}
    for one in collectives:
        kind = one.op, one.between_slices, one.is_host_transfer
        if one.op != "slice":
            total, count = by_kind.get(kind, Total(*kind)), one.count or 0
            by_kind[kind] = Total(
                *kind,
                total.count + count,
                total.bytes + count * one.bytes,
                total.wire_bytes + count * one.wire_bytes,
                total.unknown + (one.count is None),
            )
    return tuple(by_kind.values())


Expected = int | Mapping[tuple[str, ...], int | None] | None
"""Runs in all, or those over each group of mesh axes, whose order does not matter; None is any number."""


@dataclass(frozen=True)
class Tally:
    """The collectives of one operation, by HLO's name, or of all `OTHERS`. `expected` is how often they
    should run in all, None where nothing is expected. `found` counts runs through loops and calls;
    `uncounted` is how many of the collectives are in loops of unknown length. With `axes` they are those over
    these mesh axes alone, and without any, those over axes that are not named."""

    op: str
    expected: int | None
    collectives: tuple[Collective, ...]
    axes: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """``all-gather``, ``all-gather over model``."""
        if self.axes is None:
            return self.op
        return f"{self.op} over {', '.join(self.axes) or 'other axes'}"

    @property
    def found(self) -> int:
        return sum(collective.count for collective in self.collectives if collective.count is not None)

    @property
    def uncounted(self) -> int:
        return sum(collective.count is None for collective in self.collectives)

    @property
    def is_met(self) -> bool:
        """Return whether all is as expected, which is never said of a loop of unknown length."""
        return self.expected is None or (self.found == self.expected and not self.uncounted)


def tallies(
    collectives: Iterable[Collective], expected: Mapping[str, Expected], others: int | None
) -> tuple[Tally, ...]:
    """One tally for each operation that is expected, for each of its axes, or that runs. `expected` has HLO's
    names; None there exempts an operation from `others`, the runs of all that `expected` does not name (None:
    not checked). Where the axes of an operation are named, it is not to run over others. Local slices, which
    move nothing, and transfers to and from the host are left out."""
    by_op: dict[str, list[Collective]] = {op: [] for op in expected}
    for collective in collectives:
        if collective.op != "slice" and not collective.is_host_transfer:
            by_op.setdefault(collective.op, []).append(collective)
    named = [tally for op, wanted in expected.items() for tally in _tallies(op, wanted, by_op[op])]
    rest = {op: those for op, those in by_op.items() if op not in expected}
    if others is None:
        return (*named, *(Tally(op, None, tuple(those)) for op, those in rest.items()))
    return (*named, Tally(OTHERS, others, tuple(chain.from_iterable(rest.values()))))


def _tallies(op: str, wanted: Expected, collectives: Sequence[Collective]) -> list[Tally]:
    if not isinstance(wanted, Mapping):
        return [Tally(op, wanted, tuple(collectives))]
    keys = {frozenset(axes): axes for axes in wanted}
    by_axes: dict[tuple[str, ...], list[Collective]] = {axes: [] for axes in wanted}
    for collective in collectives:
        by_axes.setdefault(keys.get(frozenset(collective.axes), ()), []).append(collective)
    return [Tally(op, wanted.get(axes, 0), tuple(those), axes) for axes, those in by_axes.items()]
