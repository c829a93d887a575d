"""The mesh that the groups of a module seem to be made for, where neither the user nor the text names one.

A group along axes of a mesh is a nest of loops over positions. Each loop (size, stride) cuts the row-major
numbering of the devices at `stride` and at ``size * stride``; the places where all the groups cut it are the
borders between axes. A mesh explains them when each place divides the next.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from shardviz.errors import NotationError
from shardviz.hlo.collective import Collective
from shardviz.hlo.groups.device_numbers import DeviceNumbers, across, reordered
from shardviz.hlo.groups.group_text import WrittenMesh, mesh_of_sharding, written_mesh
from shardviz.hlo.groups.replica_groups import Lists, ReplicaGroups, linked
from shardviz.hlo.mlir.attributes import mesh_literals
from shardviz.hlo.text.instruction import Instruction
from shardviz.sharding import Mesh
from shardviz.sharding.digits import Digit, Nest, length, pieces, row_major
from shardviz.sharding.mesh import MAX_DEVICES, is_axis_name

_UNNAMED = re.compile(r"axis_\d+")


def program_mesh(
    written: Sequence[WrittenMesh],
    instructions: Collection[Instruction],
    numbers: DeviceNumbers,
    given: Mesh | None,
    *,
    infer: bool,
) -> tuple[Mesh | None, DeviceNumbers]:
    """The mesh of a program, and how its numbers are positions there.

    It is the one `given`, in the order in which the text writes that out, or else what `infer` asks for.
    The text has the meshes that are `written` outside of groups, and those of the `instructions`.
    Where it writes the mesh out in several orders, none of which counts up, no position is known
    (`DeviceNumbers.orders`).
    """
    mesh = given
    if given is None and infer:
        mesh = mesh_of_instructions(instructions, numbers, written)
    may_have_orders = (given or (infer and mesh is None)) and numbers.slices is None
    if may_have_orders and (given is None or given.device_order is None):
        written = [*written, *meshes_of_groups(instructions)]
        ordered = {each.axes for each in written if each.order is not None and _fits(each, numbers.total)}
        if mesh is None and len(ordered) == 1:
            mesh = Mesh(*zip(*ordered.pop(), strict=True))
        orders = {each.order for each in written if mesh and each.axes == tuple(mesh.shape.items())}
        if mesh is not None and len(orders) == 1:
            mesh = replace(mesh, device_order=orders.pop())
        elif None not in orders:
            numbers = replace(numbers, orders=max(1, len(orders)))
    if mesh is None or mesh == given or mesh.device_order is None:
        return mesh, numbers
    return mesh, replace(numbers, slices=reordered(mesh.device_order))


def written_meshes(header: str, text: str, sharding: int) -> list[WrittenMesh]:
    """The meshes that a module's header and its first sharding write out, where they can be read.

    A mesh without axes names one device, such as a callback's, and is none of the program.
    The sharding stands at a position in the text, -1 where it has none.
    """
    try:
        found = [WrittenMesh(tuple(sizes.items()), order) for sizes, order in mesh_literals(header) if sizes]
        sharded = mesh_of_sharding(text, sharding) if sharding >= 0 else None
    except NotationError:
        return []
    return found if sharded is None else [*found, sharded]


def meshes_of_groups(instructions: Iterable[Instruction]) -> list[WrittenMesh]:
    """The meshes that the groups of collectives write out, each once, where they can be read."""
    found = []
    for text in dict.fromkeys(each.attributes.get("replica_groups", "") for each in instructions):
        try:
            mesh = written_mesh(text)
        except NotationError:
            continue
        found += [mesh] if mesh is not None else []
    return found


def mesh_of_instructions(
    instructions: Collection[Instruction], numbers: DeviceNumbers, written: Iterable[WrittenMesh] = ()
) -> Mesh | None:
    """The coarsest mesh whose axes, or parts of axes, explain the groups of all collectives.

    Sizes and names are those of a mesh that is `written` or that the groups write out, where that explains
    all groups; else the axes are called axis_0, axis_1, …, as XLA does. None when there are no groups, when
    some follow no axes, or when no mesh has the axes of all. A permute has a say where its pairs link devices
    to rings or chains that are such groups.
    """
    keys = ("replica_groups", "source_target_pairs", "use_global_device_ids")
    cases = {
        (*map(each.attributes.get, keys), bool(each.channel), each.opcode): each for each in instructions
    }
    groups, permutes = [], []
    written = [*written, *meshes_of_groups(instructions)]
    total = numbers.total
    for each in cases.values():
        if each.opcode.startswith(("send", "recv")):
            continue
        try:
            if each.opcode.startswith("collective-permute"):
                permutes.append(numbers.pairs(each))
            else:
                groups.append(numbers.groups(each))
        except NotationError:
            continue
    if not numbers.is_known:
        highest = [i for pairs in permutes for pair in pairs for i in pair]
        sizes = [each.size for each in written]
        total = max([*(found.total for found in groups), *(i + 1 for i in highest), *sizes], default=0)
    if numbers.slices is not None:
        groups.append(across(numbers.slices))
        written = [each for each in written if each.order is None]
    return mesh_of_groups(total, groups, permutes, written)


def mesh_of_collectives(collectives: Iterable[Collective], devices: int) -> Mesh | None:
    """The same for records that were read without a mesh, as far as their groups are listed.

    There are so many `devices`, or as many as the groups name.
    """
    listed = {(each.op == "collective-permute", each.groups) for each in collectives if each.groups}
    ids = [i for _, groups in listed for group in groups for i in group]
    return mesh_of_groups(
        max([devices - 1, *ids]) + 1,
        [ReplicaGroups(lists=groups) for is_permute, groups in listed if not is_permute],
        [groups for is_permute, groups in listed if is_permute],
    )


def mesh_of_groups(
    devices: int,
    groups: Iterable[ReplicaGroups],
    permutes: Iterable[Lists] = (),
    written: Iterable[WrittenMesh] = (),
) -> Mesh | None:
    """The same for groups and pairs of XLA's numbers, and for meshes that are written out."""
    # On 8 devices {0,1,2,3},{4,5,6,7} is the loop (4, 1): it begins at stride 1 and ends at 4, and so the
    # mesh has a border at 4: (2, 4). {0,4},{1,5},… is (2, 4): from 4 to 8, which asks for no new border;
    # with {0,2},{1,3},… which is (2, 2), from 2 to 4, there is one at 2, and the mesh is (2, 2, 2). Borders
    # at 1, 2, 4, 8 are axes of 8/4, 4/2 and 2/1. Groups of 2 and of 3 among 6 devices may ask for 2 and for
    # 3, of which neither divides the other: then no mesh has the axes of both. Permutes only refine: a ring
    # over a part of an axis is as likely as an axis of its own, so that the longest are asked first.
    if not 0 < devices <= MAX_DEVICES:
        return None
    groups = [each for each in groups if each.size > 1]
    if any(each.total != devices for each in groups):
        return None
    nests = {each.member_loops for each in groups}
    permutes = [*permutes]
    cuts = _cuts([nest for nest in nests if nest is not None], {1, devices})
    found = [mesh for mesh in {*map(_without_ones, written)} if mesh.axes and _fits(mesh, devices)]
    # Names that somebody chose come before XLA's own, devices that count up before others, more axes before
    # fewer.
    for mesh in sorted(
        found, key=lambda each: (_is_unnamed(each), each.order is not None, -len(each.axes), each)
    ):
        names, sizes = zip(*mesh.axes, strict=True)
        placed = nests
        if mesh.order is not None:
            positions = reordered(mesh.order)
            placed = {each.placed(positions).member_loops for each in groups}
        if _explains(sizes, placed) and (not _is_unnamed(mesh) or cuts <= _cuts([row_major(sizes)], {1})):
            return Mesh(names, sizes, mesh.order)
    if None in nests or not _is_chain(cuts) or not (nests or permutes or found):
        return None
    rings = {nest for pairs in permutes if (nest := _ring(pairs, devices)) is not None}
    for ring in sorted(rings, key=lambda nest: (-length(nest), nest)):
        finer = _cuts([ring], cuts)
        if _is_chain(finer):
            cuts = finer
    sizes = tuple(high // low for low, high in pairwise(sorted(cuts)))[::-1] or (1,)
    return Mesh(tuple(f"axis_{i}" for i in range(len(sizes))), sizes)


def _without_ones(mesh: WrittenMesh) -> WrittenMesh:
    """XLA's own axes of size 1 say nothing."""
    return mesh._replace(axes=tuple(axis for axis in mesh.axes if axis[1] > 1)) if _is_unnamed(mesh) else mesh


def _is_unnamed(mesh: WrittenMesh) -> bool:
    return any(_UNNAMED.fullmatch(name) for name, _ in mesh.axes)


def _fits(mesh: WrittenMesh, devices: int) -> bool:
    """Return whether it can be the mesh of so many devices; an order that is not XLA's is the user's."""
    names = [name for name, _ in mesh.axes]
    if mesh.order is not None and (_is_unnamed(mesh) or sorted(mesh.order) != list(range(devices))):
        return False
    return mesh.size == devices and len({*names}) == len(names) and all(map(is_axis_name, names))


def _explains(sizes: Sequence[int], nests: Iterable[Nest | None]) -> bool:
    return all(nest is not None and all(pieces(loop, sizes) is not None for loop in nest) for nest in nests)


def _cuts(nests: Iterable[Sequence[Digit]], known: set[int]) -> set[int]:
    return known | {place for nest in nests for size, stride in nest for place in (stride, size * stride)}


def _is_chain(cuts: set[int]) -> bool:
    return all(high % low == 0 for low, high in pairwise(sorted(cuts)))


def _ring(pairs: Lists, devices: int) -> Nest | None:
    """The nest of the devices that a permute's pairs link to one another, where all are linked alike."""
    # Groups of one size, two devices or more, need at least as many pairs as half the devices.
    if 2 * len(pairs) < devices or any(not 0 <= i < devices for pair in pairs for i in pair):
        return None
    groups = ReplicaGroups(lists=tuple(map(tuple, linked(pairs))))
    return groups.member_loops if groups.size > 1 and groups.total == devices else None
