"""Groups of devices as strided ids, and the mesh axes that they run along.

A `Loop` is (size, stride). A nest of them, major first, stands for the ids ``sum(i_k * stride_k)`` in
row-major order of the indices: ``((2, 4), (4, 1))`` is 0 … 7, ``((4, 1), (2, 4))`` is 0, 4, 1, 5, 2, 6, 3, 7.
So a million ids stay a few numbers. Groups are two nests: ``{{0,4},{1,5},{2,6},{3,7}}`` has the first ids
((4, 1)) and the members ((2, 4)). On a mesh X=2, Y=4, whose positions are the nest ((2, 4), (4, 1)), the
members' loop is that of X; (2, 2) would be the major half of Y, written ``Y:(1)2``.

XLA numbers the devices of a program by their row-major position in the mesh, whatever their ids are: with
``Mesh(numpy.array(jax.devices())[[3, 1, 4, 0, 5, 7, 2, 6]].reshape(2, 4), ...)`` the groups over the second
axis still read ``{{0,1,2,3},{4,5,6,7}}``. So positions are matched with axes, never the names in the text,
and only what is shown to the user is translated into device ids.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from shardviz.errors import NotationError
from shardviz.sharding import Mesh
from shardviz.sharding.axis_parts import SubAxis

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

    @classmethod
    def of_lists(cls, lists: Lists) -> ReplicaGroups:
        """Groups that are listed, as nests where they are nests in this order."""
        groups = cls(lists=lists)
        inner, outer = groups.member_loops, nest_of([group[0] for group in lists if group])
        is_nest = inner is not None and outer is not None and list(lists[0]) == ids(inner)
        return cls(outer or (), inner or ()) if is_nest else groups

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
        if channel and use_global:
            return self
        if channel and use_global is None:
            return self._spread(1, (replicas, partitions), (1, 1))
        every = (partitions, 1)
        return self._spread(partitions, (1, 1), every) if channel else self._spread(partitions, every, (1, 1))

    def _spread(self, scale: int, copies: Loop, filling: Loop) -> ReplicaGroups:
        """Every id times `scale`, with those of the loop `filling` behind it, and every group once for each
        id of the loop `copies`."""
        if scale == copies[0] == filling[0] == 1:
            return self
        if self.lists is None:
            outer, inner = (
                tuple((size, stride * scale) for size, stride in nest) for nest in (self.outer, self.inner)
            )
            return ReplicaGroups(merge((copies, *outer)), merge((*inner, filling)))
        check_listable(self.total * copies[0] * filling[0], str(self.lists[0]))
        return ReplicaGroups(
            lists=tuple(
                tuple(first + i * scale + more for i in group for more in ids([filling]))
                for first in ids([copies])
                for group in self.lists
            )
        )

    def placed(self, places: ReplicaGroups) -> ReplicaGroups:
        """The groups of numbers as groups of positions, once for each group of `places`, which has the
        position of every number: an order of devices is one such group, the slices of a TPU are several."""
        if self.lists is None and places.lists is None:
            outer, inner = through(self.outer, places.inner), through(self.inner, places.inner)
            if outer is not None and inner is not None:
                return ReplicaGroups((*places.outer, *outer), inner)
        check_listable(self.total * places.count, f"{self.count:,} groups")
        return ReplicaGroups(lists=placed_lists(self.expand(), places))


def placed_lists(groups: Lists, places: ReplicaGroups) -> Lists:
    """The same for lists, such as the pairs of a permute."""
    check_listable(sum(map(len, groups)) * places.count, f"{len(groups):,} pairs")
    # An id that a slice does not have stays what it is: it is refused where ids are looked at.
    return tuple(
        tuple(where[i] if 0 <= i < len(where) else i for i in group)
        for where in places.expand()
        for group in groups
    )


def one_group(count: int) -> ReplicaGroups:
    """All of 0 … count-1 together."""
    return ReplicaGroups(inner=((count, 1),))


def linked(pairs: Iterable[Sequence[int]]) -> list[list[int]]:
    """The devices that pairs link to one another, such as those of each ring, in ascending order."""
    heads: dict[int, int] = {}

    def head(i: int) -> int:
        while heads.setdefault(i, i) != i:
            heads[i] = i = heads[heads[i]]
        return i

    for source, target in pairs:
        a, b = head(source), head(target)
        heads[max(a, b)] = min(a, b)
    found: dict[int, list[int]] = defaultdict(list)
    for i in sorted(heads):
        found[head(i)].append(i)
    return list(found.values())


def check_listable(total: int, text: str) -> None:
    """Raise `NotationError` when that many ids, of groups as `text` has them, are too many for lists."""
    if total > MAX_IRREGULAR:
        problem = f"{total:,} device numbers are more than the {MAX_IRREGULAR:,} that are read one by one,"
        raise NotationError(problem, text, 0)


AxisSizes = Mapping[str, int]


def part_name(part: SubAxis, sizes: AxisSizes) -> str:
    """``Y:(1)2``, or the name alone of a part that is the whole axis."""
    return part.axis if part.size == sizes[part.axis] else str(part)


def part_loops(axes: Iterable[SubAxis], sizes: AxisSizes) -> list[Loop]:
    """The loop that each axis, or part of one, is in the row-major numbering of a mesh of those `sizes`."""
    loops = dict(zip(sizes, row_major(tuple(sizes.values())), strict=True))
    return [(size, loops[axis][1] * (loops[axis][0] // (before * size))) for axis, before, size in axes]


def axis_groups(axes: Iterable[SubAxis], sizes: AxisSizes) -> ReplicaGroups:
    """The groups of a collective over `axes`, as positions in a mesh of those `sizes`.

    Raises `NotationError` when the axes overlap.
    """
    inner = part_loops(axes, sizes)
    outer: list[Loop] = []
    top = math.prod(sizes.values())
    for size, stride in sorted((loop for loop in inner if loop[0] > 1), key=lambda loop: -loop[1]):
        if top % (size * stride):
            raise NotationError("the axes of a group overlap", str(inner), 0)
        outer.append((top // (size * stride), size * stride))
        top = stride
    outer.append((top, 1))
    return ReplicaGroups(merge(outer), merge(inner))


def group_axes(groups: ReplicaGroups, mesh: Mesh) -> tuple[str, ...]:
    """The axes over which ids vary within a group, in the order in which they vary, major first.

    Groups of single devices, groups that leave out devices and groups that follow no axes give ().
    """
    nest = groups.member_loops if groups.size > 1 and groups.total == mesh.size else ()
    found = [pieces(loop, mesh.axis_sizes) for loop in nest or ()]
    if None in found:
        return ()
    parts = (part for parts in found for part in parts or ())
    return tuple(part_name(SubAxis(mesh.axis_names[i], *part), mesh.shape) for i, *part in parts)


def pair_axes(pairs: Iterable[tuple[int, ...]], mesh: Mesh) -> tuple[str, ...]:
    """The axes along which the source and the target of some pair differ, in the mesh's order."""
    moved: set[str] = set()
    for source, target in pairs:
        if not (0 <= source < mesh.size and 0 <= target < mesh.size):
            return ()
        if source != target:
            places = zip(mesh.axis_names, mesh.coords(source), mesh.coords(target), strict=True)
            moved.update(name for name, a, b in places if a != b)
    return tuple(name for name in mesh.axis_names if name in moved)


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
