"""Groups of devices as strided ids, the mesh axes that they run along, and how HLO text writes them.

Groups are two nests of digits (`sharding.digits`): ``{{0,4},{1,5},{2,6},{3,7}}`` has the first ids ((4, 1))
and the members ((2, 4)), which on a mesh X=2, Y=4 is the digit of X. A text writes them in three ways:

1. lists ``{{0,1},{2,3}}``; ``{}`` is one group of all
2. iota ``[G,S]<=[d1,...,dk]T(perm)``: ``arange(d).reshape(d1, ..., dk).transpose(perm).reshape(G, S)``
3. mesh axes ``mesh['a'=2,'b'=4] {'b'}``, with sub-axes ``'b':(pre)size`` and ``device_ids=(...)``; a name
   in quotes may hold anything else

The formats are those of XLA's `CollectiveDeviceList`, `IotaTileAssignment` and `MeshAndAxis`.

XLA numbers the devices of a program by their row-major position in the mesh, whatever their ids are: with
``Mesh(numpy.array(jax.devices())[[3, 1, 4, 0, 5, 7, 2, 6]].reshape(2, 4), ...)`` the groups over the second
axis still read ``{{0,1,2,3},{4,5,6,7}}``. So positions are matched with axes, never the names in the text,
and only what is shown to the user is translated into device ids."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, chain
from operator import mul
from typing import NamedTuple

from shardviz.errors import NotationError
from shardviz.sharding import Mesh
from shardviz.sharding.axis_parts import SubAxis
from shardviz.sharding.digits import (
    AxisSizes,
    Digit,
    Nest,
    axes_of_digits,
    cut,
    length,
    merged,
    nest_of,
    numbers,
    part_digits,
    part_name,
    through,
    transposed,
)

MAX_LISTED_IDS = 4096
"""Groups of more ids than this are not listed in a `Collective`."""
MAX_IRREGULAR = 2**18
"""Ids of lists, as a text writes them out or as groups are kept that are not a nest of loops: more than twice
those of any cluster, and XLA itself writes long ones as an iota."""

Lists = tuple[tuple[int, ...], ...]
ONE = Digit(1, 1)
MAX_IDS = 2**40
"""More ids than any program has; larger numbers in a text are nonsense."""

Axes = tuple[tuple[str, int], ...]
_QUOTED = r"'[^'\n]*+'|\"[^\"\n]*+\""
_AXES = rf"mesh\w*+\[(?:{_QUOTED}|[^'\"\]])*+\]"
_ORDER = r"device_ids=\(?(?:\[[\d, ]*+\](?:T\([\d, ]*+\))?|[\d, ]*+)\)?"
_USED = rf"\{{(?:{_QUOTED}|[^'\"}}])*+\}}"
GROUPS: str = (
    r"\[[\d,\s]*+\]\s*+<=\s*+\[[\d,\s]*+\](?:\s*+T\s*+\([\d,\s]*+\))?"
    rf"|{_AXES},?\s*+(?:{_ORDER},?\s*+)?{_USED}"
)
"""The second and the third form, to be found in a line."""
LISTED_GROUPS: str = r"\{(?:[^{}]++|\{[^{}]*+\})*+\}"
"""The first form."""
_IOTA = re.compile(r"\[([\d, ]*)\]<=\[([\d, ]*)\](?:T\(([\d, ]*)\))?")
_MESH = re.compile(rf"({_AXES}),?\s*+({_ORDER})?,?\s*+({_USED})")
_NAME = rf"({_QUOTED}|[^'\"=,:\s{{}}\[\]]++)"
_MESH_AXIS = re.compile(rf"\s*+{_NAME}\s*+=\s*+(\d{{1,15}})\s*+(?:,|$)")
_AXIS = re.compile(rf"\s*+{_NAME}\s*+(?::\s*+\((\d{{1,15}})\)\s*+(\d{{1,15}})\s*+)?(?:,|$)")
_END = re.compile(r"\s*+\Z")
_SHARDING_MESH = re.compile(rf" sharding=\{{({_AXES}),? *+({_ORDER})?")
_DEVICE_IDS = re.compile(r"\[([\d, ]*)\](?:T\(([\d, ]*)\))?")


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


class WrittenMesh(NamedTuple):
    """A mesh that a text writes out: names and sizes of its axes, and XLA's numbers of its devices. `order`
    has the number at each row-major position; None where they count up."""

    axes: Axes
    order: tuple[int, ...] | None = None

    @property
    def size(self) -> int:
        """The number of its devices."""
        return math.prod(size for _, size in self.axes)


@lru_cache(maxsize=256)
def parse_replica_groups(text: str, devices: int) -> ReplicaGroups:
    """Groups in any of the three forms; `devices` is how many ``{}`` means. Raises `NotationError` for text
    that is none of them, and for an iota or a mesh that does not multiply out."""
    text = text.strip()
    if text.startswith("{"):
        return _listed(text, devices)
    if match := _IOTA.fullmatch("".join(text.split())):
        return _iota(text, *match.groups())
    if match := _MESH.fullmatch(text):
        sizes = dict(axes := _named_sizes(text, match[1]))
        if len(sizes) < len(axes):
            raise _unreadable(text)
        groups = axis_groups(_used_axes(text, sizes, match[3]), sizes)
        return groups if match[2] is None else groups.placed(_device_order(text, match[2], groups.total))
    raise _unreadable(text)


def parse_pairs(text: str) -> Lists:
    """``{{0,1},{1,2}}`` as (source, target) pairs; `NotationError` for anything else."""
    pairs = _lists(text.strip())
    if any(len(pair) != 2 for pair in pairs):
        raise NotationError("a permute has pairs of a source and a target", text, 0, len(text))
    return pairs


def written_mesh(text: str) -> WrittenMesh | None:
    """The mesh of the third form; None for another. Raises `NotationError` when it cannot be read."""
    match = _MESH.fullmatch(text.strip())
    return _written(text, match[1], match[2]) if match else None


def mesh_of_sharding(text: str, start: int) -> WrittenMesh | None:
    """The mesh of an attribute ``sharding={mesh['x'=2,'y'=4], [{'x'}, {}]}`` at `start`; None for another.
    Raises `NotationError` when it cannot be read."""
    match = _SHARDING_MESH.match(text, start)
    return _written(match[0][:60], match[1], match[2]) if match else None


def axes_by_name(text: str, sizes: AxisSizes) -> tuple[str, ...]:
    """The axes that groups of the third form name, a part as ``y:(2)2``; none where theirs is another mesh.
    Raises `NotationError` when they cannot be read."""
    match = _MESH.fullmatch(text.strip())
    if match is None or _named_sizes(text, match[1]) != tuple(sizes.items()):
        return ()
    return tuple(part_name(part, sizes) for part in _used_axes(text, sizes, match[3]))


def check_ids(text: str, highest: int, devices: int) -> None:
    """Raise `NotationError` when the largest id in `text`, groups or pairs, is not one of so many devices."""
    if highest < devices:
        return
    match = re.search(rf"(?<!\d){highest}(?!\d)", text)
    start, stop = match.span() if match else (0, len(text))
    raise NotationError(f"there is no device {highest} among the {devices} of the program", text, start, stop)


def _listed(text: str, devices: int) -> ReplicaGroups:
    lists = _lists(text)
    if not any(lists):
        # XLA takes ``{}``, ``{{}}`` and ``{{},{}}`` for one group of all.
        return one_group(devices)
    if not all(lists):
        raise NotationError("a group has no devices", text, 0, len(text))
    i, times = Counter(chain.from_iterable(lists)).most_common(1)[0]
    if times > 1:
        raise NotationError(f"device {i} appears twice", text, 0, len(text))
    return ReplicaGroups.of_lists(lists)


def _lists(text: str) -> Lists:
    body = text[1:-1].strip()
    if not (text.startswith("{") and text.endswith("}")):
        raise _unreadable(text)
    if not body:
        return ()
    if not (body.startswith("{") and body.endswith("}")):
        raise _unreadable(text)
    check_listable(body.count(",") + 1, text)
    parts = re.split(r"\}\s*+,\s*+\{", body[1:-1])
    try:
        lists = tuple(tuple(map(int, part.split(","))) if part.strip() else () for part in parts)
    except ValueError:
        raise _unreadable(text) from None
    if (negative := body.find("-")) >= 0:
        raise NotationError("no device has a negative number", text, text.find(body) + negative)
    return lists


def _iota(text: str, shape: str, dims: str, perm: str | None) -> ReplicaGroups:
    sizes = _numbers(text, shape)
    if len(sizes) != 2:
        raise NotationError("an iota of groups has the shape [groups,size]", text, 0, len(text))
    nest = _transposed(text, dims, perm)
    if math.prod(sizes) != length(nest):
        problem = f"{sizes[0]} groups of {sizes[1]} are not the {length(nest)} ids of the iota"
        raise NotationError(problem, text, 0, len(text))
    halves = cut(nest, sizes[0])
    if halves is not None:
        return ReplicaGroups(*map(merged, halves))
    check_listable(length(nest), text)
    flat = numbers(nest)
    return ReplicaGroups(lists=tuple(tuple(flat[i : i + sizes[1]]) for i in range(0, len(flat), sizes[1])))


def _transposed(text: str, dims: str, perm: str | None) -> Nest:
    sizes = _numbers(text, dims)
    order = list(range(len(sizes))) if perm is None else _numbers(text, perm, least=0)
    if sorted(order) != list(range(len(sizes))):
        problem = f"T({perm}) is not a permutation of the {len(sizes)} dimensions"
        raise NotationError(problem, text, 0, len(text))
    return transposed(sizes, order)


def _written(text: str, axes: str, order: str | None) -> WrittenMesh:
    mesh = WrittenMesh(_named_sizes(text, axes))
    if order is None:
        return mesh
    check_listable(mesh.size, text)
    (listed,) = _device_order(text, order, mesh.size).expand()
    return mesh if listed == tuple(range(mesh.size)) else mesh._replace(order=listed)


def _device_order(text: str, device_ids: str, total: int) -> ReplicaGroups:
    """``device_ids=(3,1,0,2)``, or ``device_ids=([4,2]T(1,0))`` as a nest of loops over ids: one group."""
    body = device_ids.removeprefix("device_ids=").removeprefix("(").strip()
    iota = _DEVICE_IDS.match(body)
    if iota is None or (iota[2] is None and iota[1].count(",") + 1 == total > 1):
        order = _numbers(text, iota[1] if iota else body.removesuffix(")"), least=0)
        if sorted(order) != list(range(total)):
            raise NotationError(f"device_ids are not a permutation of {total} devices", text, 0, len(text))
        return ReplicaGroups(lists=(tuple(order),))
    nest = _transposed(text, *iota.groups())
    if length(nest) != total:
        raise NotationError(f"device_ids are not {total} devices", text, 0, len(text))
    return ReplicaGroups(inner=nest)


def _named_sizes(text: str, axes: str) -> Axes:
    """``mesh['x'=2,'y'=4]`` as names and sizes."""
    items = _items(text, _MESH_AXIS, axes[axes.index("[") + 1 : -1])
    named_sizes = tuple((_axis_name(axis[1]), int(axis[2])) for axis in items)
    _numbers(text, ",".join(str(size) for _, size in named_sizes))
    return named_sizes


def _used_axes(text: str, sizes: AxisSizes, used: str) -> Iterator[SubAxis]:
    """The axes of a mesh that ``{'x','y':(2)2}`` takes, or parts of them."""
    for axis in _items(text, _AXIS, used[1:-1]):
        name = _axis_name(axis[1])
        if name not in sizes:
            # XLA's parser takes the number of an axis for its name, where no axis is called that.
            numbered = dict(zip(map(str, range(len(sizes))), sizes, strict=True))
            if name not in numbered:
                raise _unreadable(text)
            name = numbered[name]
        before, size = (1, sizes[name]) if axis[2] is None else (int(axis[2]), int(axis[3]))
        if before * size < 1 or sizes[name] % (before * size):
            problem = f"axis {name} of size {sizes[name]} has no part ({before}){size}"
            raise NotationError(problem, text, 0, len(text))
        yield SubAxis(name, before, size)


def _items(text: str, pattern: re.Pattern[str], body: str) -> Iterator[re.Match[str]]:
    """The items between the commas of a list; `NotationError` for one that does not match `pattern`."""
    position = 0
    while not _END.match(body, position):
        item = pattern.match(body, position)
        if item is None:
            raise _unreadable(text)
        yield item
        position = item.end()


def _axis_name(quoted: str) -> str:
    """The name of an axis; ``batch_dim`` for ``'batch dim'``, as specs have no spaces within names."""
    name = quoted.strip("'\"")
    return "_".join(name.split()) if " " in name else name


def _numbers(text: str, body: str, least: int = 1) -> list[int]:
    parts = [part.strip() for part in body.split(",")] if body.strip() else []
    if any(not part.isdigit() or len(part) > 15 or int(part) < least for part in parts):
        raise _unreadable(text)
    values = list(map(int, parts))
    if least and any(product > MAX_IDS for product in accumulate(values, mul)):
        raise NotationError("more devices than any program has", text, 0, len(text))
    return values


def _unreadable(text: str) -> NotationError:
    hint = "write {{0,1},{2,3}}, [2,2]<=[4] or mesh['x'=2,'y'=2] {'y'}"
    return NotationError("these are not replica groups", text, 0, len(text), hint)
