"""Which transfers of one side stand for which of the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from math import prod

from shardviz.compare.transfer import Transfer, devices_along
from shardviz.sharding import Mesh

_MOST_SPLIT = 4
"""Into how many parts a split or merged collective is looked for."""


def of_one_array(one: Transfer, other: Transfer) -> bool:
    """Whether both may move the same array; one of which nothing is known may be any."""
    return not one.arrays or not other.arrays or bool(set(one.arrays) & set(other.arrays))


def alike(one: Transfer, other: Transfer) -> bool:
    """Whether both are the same collective of the same array."""
    return one.kind == other.kind and of_one_array(one, other)


def kinds(several: Iterable[Transfer]) -> Counter[object]:
    """How many there are of each kind, whatever the array."""
    return Counter(one.kind for one in several)


def in_parts(one: Transfer, other: Transfer, mesh: Mesh) -> bool:
    """Whether `one` is `other` with its axes cut into parts that are ordered in another way."""
    same = (one.op, one.base_axes, one.amount) == (other.op, other.base_axes, other.amount)
    return same and of_one_array(one, other) and _devices([one], mesh) == _devices([other], mesh)


def _devices(several: Iterable[Transfer], mesh: Mesh) -> int:
    """Devices along all axes and sub-axes of some transfers."""
    return prod(devices_along(axis, mesh) for one in several for axis in one.axes)


def permuted(among: list[Transfer], like: Transfer) -> bool:
    """Whether a permute prepares or mends what the other transfers of the same array do."""
    return any(one.op == "collective-permute" and set(one.arrays) & set(like.arrays) for one in among)


def first(among: list[Transfer], op: str, like: Transfer) -> Transfer | None:
    """One of kind `op` over the same axes of the same array, with as many elements."""
    wanted = (op, like.base_axes, like.amount)
    same = (one for one in among if (one.op, one.base_axes, one.amount) == wanted)
    return next((one for one in same if of_one_array(one, like)), None)


def later_gather(among: list[Transfer], reduced: Transfer, others: list[Transfer]) -> Transfer | None:
    """An all-gather that puts back together what a reduce-scatter in place of `reduced` would cut, alone or
    together with axes that the other side gathers by themselves."""
    for one in among:
        if (
            one.op == "all-gather"
            and one.base_axes >= reduced.base_axes
            and set(one.arrays) & set(reduced.arrays)
        ):
            alone = one.base_axes == reduced.base_axes
            if alone or rest_of_gather(one, reduced, others):
                return one
    return None


def rest_of_gather(gather: Transfer, reduced: Transfer, others: list[Transfer]) -> list[Transfer]:
    """The other side's all-gather of the same array over the axes of `gather` that `reduced` does not have,
    if there is one."""
    rest = gather.base_axes - reduced.base_axes
    same = [
        one
        for one in others
        if one.op == "all-gather" and one.base_axes == rest and set(one.arrays) & set(gather.arrays)
    ]
    return same[:1] if rest else []


def covering(one: Transfer, among: list[Transfer], mesh: Mesh) -> list[Transfer]:
    """Two or more transfers of the same kind that share out the axes of `one` between them, if any do."""
    same = [
        other
        for other in among
        if other.op == one.op and other.base_axes <= one.base_axes and set(other.arrays) & set(one.arrays)
    ]
    for count in range(2, min(_MOST_SPLIT, len(same)) + 1):
        for several in combinations(same, count):
            covered = frozenset().union(*(other.base_axes for other in several))
            largest = max(other.elements for other in several)
            same_size = _devices(several, mesh) == _devices([one], mesh)
            if same_size and (covered, largest) == (one.base_axes, one.elements):
                return list(several)
    return []
