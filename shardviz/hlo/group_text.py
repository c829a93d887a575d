"""The three ways in which HLO text writes the groups of a collective.

1. lists ``{{0,1},{2,3}}``; ``{}`` is one group of all
2. iota ``[G,S]<=[d1,...,dk]T(perm)``: ``arange(d).reshape(d1, ..., dk).transpose(perm).reshape(G, S)``
3. mesh axes ``mesh['a'=2,'b'=4] {'b'}``, with sub-axes ``'b':(pre)size`` and ``device_ids=(...)``; a name
   in quotes may hold anything else

The formats are those of XLA's `CollectiveDeviceList`, `IotaTileAssignment` and `MeshAndAxis`."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate, chain
from operator import mul
from typing import NamedTuple

from shardviz.errors import NotationError
from shardviz.hlo.replica_groups import Lists, ReplicaGroups, axis_groups, check_listable, one_group
from shardviz.sharding.axis_parts import SubAxis
from shardviz.sharding.digits import AxisSizes, Nest, cut, length, merged, numbers, part_name, transposed

MAX_IDS = 2**40
"""More ids than any program has; larger numbers in a text are nonsense."""

Axes = tuple[tuple[str, int], ...]


class WrittenMesh(NamedTuple):
    """A mesh that a text writes out: names and sizes of its axes, and XLA's numbers of its devices. `order`
    has the number at each row-major position; None where they count up."""

    axes: Axes
    order: tuple[int, ...] | None = None

    @property
    def size(self) -> int:
        """The number of its devices."""
        return math.prod(size for _, size in self.axes)


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
