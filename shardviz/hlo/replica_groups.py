"""Groups of devices as strided ids, and the mesh axes that they run along.

Groups are two nests of digits (`sharding.digits`): ``{{0,4},{1,5},{2,6},{3,7}}`` has the first ids ((4, 1))
and the members ((2, 4)), which on a mesh X=2, Y=4 is the digit of X.

XLA numbers the devices of a program by their row-major position in the mesh, whatever their ids are: with
``Mesh(numpy.array(jax.devices())[[3, 1, 4, 0, 5, 7, 2, 6]].reshape(2, 4), ...)`` the groups over the second
axis still read ``{{0,1,2,3},{4,5,6,7}}``. So positions are matched with axes, never the names in the text,
and only what is shown to the user is translated into device ids."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from shardviz.errors import NotationError
from shardviz.sharding import Mesh
from shardviz.sharding.axis_parts import SubAxis
from shardviz.sharding.digits import (
    AxisSizes,
    Digit,
    Nest,
    axes_of_digits,
    length,
    merged,
    nest_of,
    numbers,
    part_digits,
    through,
)

MAX_LISTED_IDS = 4096
"""Groups of more ids than this are not listed in a `Collective`."""
MAX_IRREGULAR = 2**18
"""Ids of lists, as a text writes them out or as groups are kept that are not a nest of loops: more than twice
those of any cluster, and XLA itself writes long ones as an iota."""

Lists = tuple[tuple[int, ...], ...]
ONE = Digit(1, 1)


@dataclass(frozen=True)
class ReplicaGroups:
    """`count` groups of `size` ids: either `lists`, or the nests `outer` over groups and `inner` within one.
    Groups of unequal length are lists, and `size` is the longest."""

    outer: Nest = ()
    inner: Nest = ()
    lists: Lists | None = None

    @classmethod
    def of_lists(cls, lists: Lists) -> ReplicaGroups:
        """Groups that are listed, as nests where they are nests in this order."""
        groups = cls(lists=lists)
        inner, outer = groups.member_loops, nest_of([group[0] for group in lists if group])
        is_nest = inner is not None and outer is not None and list(lists[0]) == numbers(inner)
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
        members = numbers(self.inner)
        return tuple(tuple(base + member for member in members) for base in numbers(self.outer))

    @cached_property
    def member_loops(self) -> Nest | None:
        """The nest that every group runs through from its own first id. Lists whose groups are no such nest
        in the order given are tried in ascending order. None when they are not a nest either, or not a
        partition of 0 … total-1 into groups of one size."""
        if self.lists is None:
            return merged(self.inner)
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
        """The groups as device numbers ``replica * partitions + partition``. The ids of the text are, by
        `channel` (a channel_id is there) and `use_global` (use_global_device_ids; None for ops without it),
        replicas, partitions, replicas with all their partitions, or already device numbers, as in XLA's
        `GetCollectiveOpGroupMode`."""
        if channel and use_global:
            return self
        if channel and use_global is None:
            return self._spread(1, Digit(replicas, partitions), ONE)
        every = Digit(partitions, 1)
        return self._spread(partitions, ONE, every) if channel else self._spread(partitions, every, ONE)

    def _spread(self, scale: int, copies: Digit, filling: Digit) -> ReplicaGroups:
        """Every id times `scale`, with those of `filling` behind it; each group once for each of `copies`."""
        if scale == copies.size == filling.size == 1:
            return self
        if self.lists is None:
            outer, inner = (
                tuple(Digit(size, stride * scale) for size, stride in nest)
                for nest in (self.outer, self.inner)
            )
            return ReplicaGroups(merged((copies, *outer)), merged((*inner, filling)))
        check_listable(self.total * copies.size * filling.size, str(self.lists[0]))
        return ReplicaGroups(
            lists=tuple(
                tuple(first + i * scale + more for i in group for more in numbers([filling]))
                for first in numbers([copies])
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
    return ReplicaGroups(inner=(Digit(count, 1),))


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
    groups: dict[int, list[int]] = defaultdict(list)
    for i in sorted(heads):
        groups[head(i)].append(i)
    return list(groups.values())


def check_listable(total: int, text: str) -> None:
    """Raise `NotationError` when that many ids, of groups as `text` has them, are too many for lists."""
    if total > MAX_IRREGULAR:
        problem = f"{total:,} device numbers are more than the {MAX_IRREGULAR:,} that are read one by one,"
        raise NotationError(problem, text, 0)


def axis_groups(axes: Iterable[SubAxis], sizes: AxisSizes) -> ReplicaGroups:
    """The groups over `axes`, as positions in a mesh. Raises `NotationError` when the axes overlap."""
    inner = part_digits(axes, sizes)
    outer: list[Digit] = []
    top = math.prod(sizes.values())
    for size, stride in sorted((digit for digit in inner if digit.size > 1), key=lambda digit: -digit.stride):
        if top % (size * stride):
            raise NotationError("the axes of a group overlap", str(inner), 0)
        outer.append(Digit(top // (size * stride), size * stride))
        top = stride
    outer.append(Digit(top, 1))
    return ReplicaGroups(merged(outer), merged(inner))


def group_axes(groups: ReplicaGroups, mesh: Mesh) -> tuple[str, ...]:
    """The axes over which ids vary within a group, in the order in which they vary, major first. Groups of
    single devices, groups that leave out devices and groups that follow no axes give ()."""
    if groups.size <= 1 or groups.total != mesh.size or groups.member_loops is None:
        return ()
    return axes_of_digits(groups.member_loops, mesh.shape) or ()


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
    """Positions as the ids of the devices that stand there; as they are without a mesh. Raises
    `NotationError` for a position outside of the mesh."""
    if mesh is None:
        return groups
    for group in groups:
        for position in group:
            if not 0 <= position < mesh.size:
                raise NotationError(f"there is no device {position} in the mesh {mesh}", str(group), 0)
    return tuple(tuple(mesh.device_id(position) for position in group) for group in groups)
