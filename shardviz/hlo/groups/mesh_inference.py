"""The mesh that the groups of a module seem to be made for, where nobody says which one it was.

A group along axes of a mesh is a nest of loops over positions. Each loop (size, stride) cuts the row-major
numbering of the devices at `stride` and at ``size * stride``; the places where all the groups cut it are the
borders between axes. A mesh explains them when each place divides the next.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from shardviz.errors import NotationError
from shardviz.hlo.collective import Collective
from shardviz.hlo.groups.group_text import mesh_axes, mesh_of_sharding
from shardviz.hlo.groups.loops import Loop, pieces, row_major
from shardviz.hlo.groups.replica_groups import Lists, ReplicaGroups
from shardviz.hlo.mlir.tensor_sharding import mesh_literals
from shardviz.hlo.records import DeviceNumbers
from shardviz.hlo.text.instruction import Instruction
from shardviz.sharding import Mesh
from shardviz.sharding.mesh import MAX_DEVICES, is_axis_name

_UNNAMED = re.compile(r"axis_\d+")
Axes = tuple[tuple[str, int], ...]


def written_meshes(text: str, header: str) -> list[Axes]:
    """The meshes that a module's header and its first sharding write out, where they can be read."""
    try:
        return [*mesh_literals(header), mesh_of_sharding(text)]
    except NotationError:
        return []


def mesh_of_instructions(
    instructions: Iterable[Instruction], numbers: DeviceNumbers, written: Iterable[Axes] = ()
) -> Mesh | None:
    """The coarsest mesh whose axes, or parts of axes, explain the groups of all collectives.

    Sizes and names are those of a mesh that is `written` or that the groups write out, where that explains
    all groups; else the axes are called axis_0, axis_1, …, as XLA does. None when there are no groups, when
    some follow no axes, or when no mesh has the axes of all. A permute has a say where its pairs link devices
    to rings or chains that are such groups.
    """
    cases: dict[tuple[str | None, ...], Instruction] = {}
    for each in instructions:
        attributes = each.attributes
        cases.setdefault(
            (
                attributes.get("replica_groups"),
                attributes.get("source_target_pairs"),
                attributes.get("use_global_device_ids"),
                "channel" if "channel_id" in attributes else None,
                each.opcode,
            ),
            each,
        )
    groups, permutes, named = [], [], [*written]
    total = numbers.total
    for each in cases.values():
        if each.opcode.startswith(("send", "recv")):
            continue
        try:
            if each.opcode.startswith("collective-permute"):
                permutes.append(numbers.pairs(each))
            else:
                groups.append(numbers.groups(each))
                named.append(mesh_axes(each.attributes.get("replica_groups", "")) or ())
        except NotationError:
            continue
    if not numbers.is_known:
        highest = [i for pairs in permutes for pair in pairs for i in pair]
        sizes = [math.prod(size for _, size in axes) for axes in named]
        total = max([*(found.total for found in groups), *(i + 1 for i in highest), *sizes], default=0)
    if numbers.slices is not None:
        groups.append(numbers.slices.across())
    return mesh_of_groups(total, groups, permutes, named)


def mesh_of_collectives(collectives: Iterable[Collective]) -> Mesh | None:
    """The same for records that were read without a mesh, as far as their groups are listed."""
    listed = {(each.op == "collective-permute", each.groups) for each in collectives if each.groups}
    ids = [i for _, groups in listed for group in groups for i in group]
    return mesh_of_groups(
        max(ids, default=-1) + 1,
        [ReplicaGroups(lists=groups) for is_permute, groups in listed if not is_permute],
        [groups for is_permute, groups in listed if is_permute],
    )


def mesh_of_groups(
    devices: int, groups: Iterable[ReplicaGroups], permutes: Iterable[Lists] = (), named: Iterable[Axes] = ()
) -> Mesh | None:
    """The same for groups and pairs of positions, and for meshes that are written out, as (name, size)."""
    if not 0 < devices <= MAX_DEVICES:
        return None
    nests: set[tuple[Loop, ...]] = set()
    for each in groups:
        if each.size <= 1:
            continue
        nest = each.member_loops if each.total == devices else None
        if nest is None:
            return None
        nests.add(nest)
    named = {axes for axes in map(_without_ones, named) if axes and _fits(axes, devices)}
    permutes = [*permutes]
    rings = {nest for pairs in permutes if (nest := _ring(pairs, devices)) is not None}
    if not nests and not permutes and not named:
        return None
    cuts = _cuts(nests, {1, devices})
    for axes in sorted(named, key=_preference):
        sizes = tuple(size for _, size in axes)
        own = not _is_unnamed(axes)
        if all(_explains(sizes, nest) for nest in nests) and (own or cuts <= _cuts([row_major(sizes)], {1})):
            return Mesh(tuple(name for name, _ in axes), sizes)
    if not _is_chain(cuts):
        return None
    for ring in sorted(rings, key=lambda nest: (-math.prod(size for size, _ in nest), nest)):
        finer = _cuts([ring], cuts)
        if _is_chain(finer):
            cuts = finer
    sizes = tuple(high // low for low, high in pairwise(sorted(cuts)))[::-1] or (1,)
    return Mesh(tuple(f"axis_{i}" for i in range(len(sizes))), sizes)


def _preference(axes: Axes) -> tuple[bool, int, Axes]:
    """Names that somebody chose come before XLA's own, more axes before fewer."""
    return _is_unnamed(axes), -len(axes), axes


def _without_ones(axes: Axes) -> Axes:
    """XLA's own axes of size 1 say nothing."""
    return tuple(axis for axis in axes if axis[1] > 1) if _is_unnamed(axes) else axes


def _is_unnamed(axes: Axes) -> bool:
    return any(_UNNAMED.fullmatch(name) for name, _ in axes)


def _fits(axes: Axes, devices: int) -> bool:
    names = [name for name, _ in axes]
    return (
        math.prod(size for _, size in axes) == devices
        and len(set(names)) == len(names)
        and all(map(is_axis_name, names))
    )


def _explains(sizes: Sequence[int], nest: Sequence[Loop]) -> bool:
    return all(pieces(loop, sizes) is not None for loop in nest)


def _cuts(nests: Iterable[Sequence[Loop]], known: set[int]) -> set[int]:
    return known | {place for nest in nests for size, stride in nest for place in (stride, size * stride)}


def _is_chain(cuts: set[int]) -> bool:
    return all(high % low == 0 for low, high in pairwise(sorted(cuts)))


def _ring(pairs: Lists, devices: int) -> tuple[Loop, ...] | None:
    """The nest of the devices that a permute's pairs link to one another, where all are linked alike."""
    # Groups of one size, two devices or more, need at least as many pairs as half the devices.
    if 2 * len(pairs) < devices or any(not 0 <= i < devices for pair in pairs for i in pair):
        return None
    heads = list(range(devices))

    def head(i: int) -> int:
        while heads[i] != i:
            heads[i] = i = heads[heads[i]]
        return i

    for source, target in pairs:
        a, b = head(source), head(target)
        heads[max(a, b)] = min(a, b)
    linked: dict[int, list[int]] = defaultdict(list)
    for i in range(devices):
        linked[head(i)].append(i)
    if len(linked) == devices:
        return None
    return ReplicaGroups(lists=tuple(map(tuple, linked.values()))).member_loops
