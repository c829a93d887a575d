"""Groups of devices as strided ids, and the mesh axes that they run along.

A `Loop` is (size, stride). A nest of them, major first, stands for the ids ``sum(i_k * stride_k)`` in
row-major order of the indices: ``((2, 4), (4, 1))`` is 0 … 7, ``((4, 1), (2, 4))`` is 0, 4, 1, 5, 2, 6, 3, 7.
So a million ids stay a few numbers.

XLA numbers the devices of a program by their row-major position in the mesh, whatever their ids are: with
``Mesh(numpy.array(jax.devices())[[3, 1, 4, 0, 5, 7, 2, 6]].reshape(2, 4), ...)`` the groups over the second
axis still read ``{{0,1,2,3},{4,5,6,7}}``. So positions are matched with axes, never the names in the text,
and only what is shown to the user is translated into device ids.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from shardviz.errors import NotationError
from shardviz.sharding import Mesh

Loop = tuple[int, int]


def row_major(sizes: Sequence[int]) -> tuple[Loop, ...]:
    """The nest that counts 0, 1, 2, … over the given sizes."""
    nest, stride = [], 1
    for size in reversed(sizes):
        nest.append((size, stride))
        stride *= size
    return tuple(reversed(nest))


def merge(nest: Iterable[Loop]) -> tuple[Loop, ...]:
    """The same ids in the same order with the fewest loops."""
    merged: list[Loop] = []
    for size, stride in nest:
        if size == 1:
            continue
        if merged and merged[-1][1] == size * stride:
            merged[-1] = (merged[-1][0] * size, stride)
        else:
            merged.append((size, stride))
    return tuple(merged)


def cut(nest: Iterable[Loop], count: int) -> tuple[tuple[Loop, ...], tuple[Loop, ...]] | None:
    """A nest as an outer one of `count` ids and the inner rest; None when that cuts no loop evenly."""
    outer: list[Loop] = []
    inner: list[Loop] = []
    for size, stride in merge(nest):
        if count % size == 0:
            outer.append((size, stride))
            count //= size
        elif size % count == 0:
            outer.append((count, stride * (size // count)))
            inner.append((size // count, stride))
            count = 1
        else:
            return None
        if count == 1:
            break
    rest = merge(nest)[len(outer) :]
    return tuple(outer), (*inner, *rest)


def pieces(loop: Loop, sizes: Sequence[int]) -> list[tuple[int, int, int]] | None:
    """The parts of digits that a loop runs over, in the row-major numbering of `sizes`.

    Each piece is (index into sizes, how many parts lie above it, its own size), major first: the
    loop (2, 1) over sizes (2, 4) is [(1, 2, 2)], the minor half of the second digit. None when the loop
    crosses digits without dividing them.
    """
    count, low = loop
    high = low * count
    found, covered = [], 1
    stride = 1
    for index in range(len(sizes) - 1, -1, -1):
        top = stride * sizes[index]
        start, stop = max(low, stride), min(high, top)
        if start < stop:
            if start % stride or top % stop or stop % start:
                return None
            found.append((index, top // stop, stop // start))
            covered *= stop // start
        stride = top
    return found[::-1] if covered == count else None


def through(positions: Iterable[Loop], nest: Sequence[Loop]) -> tuple[Loop, ...] | None:
    """Loops over positions as loops over the ids that `nest` puts there; None when they cut it unevenly."""
    sizes = [size for size, _ in nest]
    found: list[Loop] = []
    for loop in positions:
        parts = pieces(loop, sizes)
        if parts is None:
            return None
        found.extend((size, nest[i][1] * (sizes[i] // (above * size))) for i, above, size in parts)
    return merge(found)


def ids(nest: Iterable[Loop]) -> list[int]:
    """Every id, in order."""
    offsets = [0]
    for size, stride in nest:
        offsets = [offset + stride * i for offset in offsets for i in range(size)]
    return offsets


def length(nest: Iterable[Loop]) -> int:
    """The number of ids."""
    return math.prod(size for size, _ in nest)


def nest_of(offsets: Sequence[int]) -> tuple[Loop, ...] | None:
    """The nest whose ids are `offsets`, which begin with 0; None when there is none."""
    nest: list[Loop] = []
    done = 1
    while done < len(offsets):
        stride = offsets[done]
        if stride <= 0:
            return None
        size = 1
        while size * done < len(offsets) and offsets[size * done] == size * stride:
            size += 1
        while len(offsets) % (size * done):
            size -= 1
        if size == 1:
            return None
        nest.insert(0, (size, stride))
        done *= size
    return tuple(nest) if ids(nest) == list(offsets) else None


MAX_LISTED_IDS = 4096
"""Groups of more ids than this are not listed in a `Collective`."""
MAX_IRREGULAR = 2**18
"""Ids of lists, as a text writes them out or as groups are kept that are not a nest of loops: more than twice
those of any cluster, and XLA itself writes long ones as an iota."""

Lists = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class ReplicaGroups:
    """`count` groups of `size` ids: either `lists`, or the nests `outer` over groups and `inner` within one.

    Groups of unequal length are lists, and `size` is the longest.
    """

    outer: tuple[Loop, ...] = ()
    inner: tuple[Loop, ...] = ()
    lists: Lists | None = None

    @property
    def count(self) -> int:
        return length(self.outer) if self.lists is None else len(self.lists)

    @property
    def size(self) -> int:
        return length(self.inner) if self.lists is None else max(map(len, self.lists), default=0)

    @property
    def total(self) -> int:
        """The number of ids in all groups."""
        return self.count * self.size if self.lists is None else sum(map(len, self.lists))

    @property
    def highest(self) -> int:
        """The largest id, -1 where there is none."""
        if self.lists is None:
            return sum((size - 1) * stride for size, stride in (*self.outer, *self.inner))
        return max((i for group in self.lists for i in group), default=-1)

    def expand(self) -> Lists:
        """Every group's ids. Costs memory for each id: look at `total` first."""
        if self.lists is not None:
            return self.lists
        members = ids(self.inner)
        return tuple(tuple(base + member for member in members) for base in ids(self.outer))

    @cached_property
    def member_loops(self) -> tuple[Loop, ...] | None:
        """The nest that every group runs through from its own first id.

        Lists whose groups are no such nest in the order given are tried in ascending order. None when
        they are not a nest either, or not a partition of 0 … total-1 into groups of one size.
        """
        if self.lists is None:
            return merge(self.inner)
        flat = [i for group in self.lists for i in group]
        if {len(group) for group in self.lists} != {self.size} or sorted(flat) != list(range(len(flat))):
            return None
        for lists in (self.lists, tuple(tuple(sorted(group)) for group in self.lists)):
            offsets = [i - lists[0][0] for i in lists[0]]
            if all([i - group[0] for i in group] == offsets for group in lists):
                nest = nest_of(offsets)
                if nest is not None:
                    return nest
        return None

    def on_devices(
        self, replicas: int, partitions: int, *, channel: bool, use_global: bool | None
    ) -> ReplicaGroups:
        """The groups as device numbers ``replica * partitions + partition``.

        What the ids of the text mean depends on `channel` (a channel_id is there) and on `use_global`
        (use_global_device_ids; None for ops that have no such attribute), as XLA's
        `GetCollectiveOpGroupMode` has it: replicas, partitions, replicas with all their partitions, or
        already device numbers.
        """
        if use_global and channel:
            return self
        if channel and use_global is None:
            return self._times(replicas, partitions) if replicas > 1 else self
        spread = self._scaled(partitions)
        if channel:
            return spread._filled(partitions)
        return spread._times(partitions, 1) if partitions > 1 else spread

    def _scaled(self, by: int) -> ReplicaGroups:
        if self.lists is not None:
            return ReplicaGroups(lists=tuple(tuple(i * by for i in group) for group in self.lists))
        scale = [tuple((size, stride * by) for size, stride in nest) for nest in (self.outer, self.inner)]
        return ReplicaGroups(scale[0], scale[1])

    def _times(self, copies: int, stride: int) -> ReplicaGroups:
        """Every group once for each of `copies` shifts by `stride`."""
        if self.lists is None:
            return replace(self, outer=((copies, stride), *self.outer))
        check_listable(self.total * copies, str(self.lists[0]))
        return ReplicaGroups(
            lists=tuple(
                tuple(i + copy * stride for i in group) for copy in range(copies) for group in self.lists
            )
        )

    def _filled(self, count: int) -> ReplicaGroups:
        """Every id with the `count` - 1 that follow it."""
        if self.lists is None:
            return replace(self, inner=(*self.inner, (count, 1)))
        check_listable(self.total * count, str(self.lists[0]))
        return ReplicaGroups(
            lists=tuple(tuple(i + k for i in group for k in range(count)) for group in self.lists)
        )


def one_group(count: int) -> ReplicaGroups:
    """All of 0 … count-1 together."""
    return ReplicaGroups(inner=((count, 1),))


def groups_over(inner: Sequence[Loop], total: int) -> ReplicaGroups:
    """Groups that run through `inner`, one for each of the places that it leaves out of 0 … total-1.

    Raises `NotationError` when the loops overlap.
    """
    outer: list[Loop] = []
    top = total
    for size, stride in sorted((loop for loop in inner if loop[0] > 1), key=lambda loop: -loop[1]):
        if top % (size * stride):
            raise NotationError("the axes of a group overlap", str(list(inner)), 0)
        outer.append((top // (size * stride), size * stride))
        top = stride
    outer.append((top, 1))
    return ReplicaGroups(merge(outer), merge(inner))


def check_listable(total: int, text: str) -> None:
    """Raise `NotationError` when that many ids, of groups as `text` has them, are too many for lists."""
    if total > MAX_IRREGULAR:
        problem = f"{total:,} device numbers are more than the {MAX_IRREGULAR:,} that are read one by one,"
        raise NotationError(problem, text, 0)


def group_axes(groups: ReplicaGroups, mesh: Mesh) -> tuple[str, ...]:
    """The axes over which ids vary within a group, in the order in which they vary, major first.

    Groups of single devices, groups that leave out devices and groups that follow no axes give ().
    """
    if groups.size <= 1 or groups.total != mesh.size:
        return ()
    nest = groups.member_loops
    if nest is None:
        return ()
    parts = []
    for loop in nest:
        found = pieces(loop, mesh.axis_sizes)
        if found is None:
            return ()
        parts.extend(found)
    return tuple(sub_axis(mesh, index, above, size) for index, above, size in parts)


def pair_axes(pairs: Iterable[tuple[int, ...]], mesh: Mesh) -> tuple[str, ...]:
    """The axes along which the source and the target of some pair differ, in the mesh's order."""
    moved: set[int] = set()
    for source, target in pairs:
        if not (0 <= source < mesh.size and 0 <= target < mesh.size):
            return ()
        if source != target:
            moved.update(
                index
                for index, (a, b) in enumerate(zip(mesh.coords(source), mesh.coords(target), strict=True))
                if a != b
            )
    return tuple(name for index, name in enumerate(mesh.axis_names) if index in moved)


def sub_axis(mesh: Mesh, index: int, above: int, size: int) -> str:
    """An axis, or a part of it as Shardy writes one: ``Y:(above)size``."""
    name = mesh.axis_names[index]
    return name if size == mesh.axis_sizes[index] else f"{name}:({above}){size}"


def device_ids(groups: Lists, mesh: Mesh | None) -> Lists:
    """Positions as the ids of the devices that stand there; as they are without a mesh.

    Raises `NotationError` for a position outside of the mesh.
    """
    if mesh is None:
        return groups
    for group in groups:
        for position in group:
            if not 0 <= position < mesh.size:
                raise NotationError(f"there is no device {position} in the mesh {mesh}", str(group), 0)
    return tuple(tuple(mesh.device_id(position) for position in group) for group in groups)
