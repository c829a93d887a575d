"""The numbers of a module's devices, where those devices stand in the mesh, and what mesh that seems to be.

The module of a program on several TPU slices is that of one slice: its groups count the slice's own devices.

Where neither the user nor the text names a mesh, its groups tell: a group along axes of a mesh is a nest of
loops over positions. Each loop (size, stride) cuts the row-major numbering of the devices at `stride` and at
``size * stride``; the places where all the groups cut it are the borders between axes. A mesh explains them
when each place divides the next."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise

from shardviz.errors import NotationError, QuestionError, plural
from shardviz.hlo.collective import RAGGED, Collective
from shardviz.hlo.mlir.attributes import mesh_literals
from shardviz.hlo.replica_groups import (
    Lists,
    ReplicaGroups,
    WrittenMesh,
    check_ids,
    linked,
    mesh_of_sharding,
    parse_pairs,
    parse_replica_groups,
    placed_lists,
    written_mesh,
)
from shardviz.hlo.text.instruction import Instruction
from shardviz.hlo.text.opcodes import base_op
from shardviz.sharding import Mesh
from shardviz.sharding.digits import Digit, Nest, length, pieces, row_major
from shardviz.sharding.mesh import MAX_DEVICES, is_axis_name

_UNNAMED = re.compile(r"axis_\d+")
_WITHOUT_GLOBAL_IDS = ("all-to-all", RAGGED, "collective-broadcast")


@dataclass(frozen=True)
class DeviceNumbers:
    """A module's numbers of its devices: within a slice by replica and partition, then slice by slice.

    `slices` has the positions in the mesh of each slice's devices, a group for each; None where the numbers
    are positions. Without `is_known`, where no header says how many devices there are, the groups say what
    there is to know. `orders` counts those in which the text has the devices of its mesh: with several, only
    the axes that groups name themselves are known."""

    partitions: int
    replicas: int
    slices: ReplicaGroups | None = None
    is_known: bool = True
    orders: int = 1

    @property
    def per_slice(self) -> int:
        return self.partitions * self.replicas

    @property
    def total(self) -> int:
        return self.per_slice * (self.slices.count if self.slices else 1)

    def groups(self, instruction: Instruction) -> ReplicaGroups:
        """The groups of a collective, as positions. Raises `NotationError` when they cannot be read."""
        channel, use_global = instruction.form.has_channel, None
        if base_op(instruction.opcode) in _WITHOUT_GLOBAL_IDS:
            everyone = self.partitions if channel else self.replicas
        else:
            use_global = instruction.attributes.get("use_global_device_ids") == "true"
            everyone = self.per_slice if use_global and channel else self.replicas
        text = instruction.attributes.get("replica_groups", "{}")
        groups = parse_replica_groups(text, everyone)
        if self.is_known:
            if groups.total <= everyone:
                groups = groups.on_devices(
                    self.replicas, self.partitions, channel=channel, use_global=use_global
                )
            check_ids(text, groups.highest, self.per_slice)
        return groups.placed(self.slices) if self.slices else groups

    def pairs(self, instruction: Instruction) -> Lists:
        """The pairs of a permute, as positions. Raises `NotationError` when they cannot be read."""
        text = instruction.attributes.get("source_target_pairs", "{}")
        pairs = parse_pairs(text)
        if self.is_known:
            check_ids(text, max((i for pair in pairs for i in pair), default=-1), self.per_slice)
        return placed_lists(pairs, self.slices) if self.slices else pairs

    def positions(self, lists: Lists, mesh: Mesh) -> Lists:
        """Numbers that count slice by slice as positions in a mesh. Raises `NotationError` for a number that
        the mesh lacks."""
        if mesh.device_order is not None:
            where = {number: position for position, number in enumerate(mesh.device_order)}
        else:
            where = dict(enumerate(sum(self.slices.expand(), ()) if self.slices else range(mesh.size)))
        for group in lists:
            for number in group:
                if number not in where:
                    raise NotationError(f"there is no device {number} in the mesh {mesh}", str(group), 0)
        return tuple(tuple(where[number] for number in group) for group in lists)


def across(slices: ReplicaGroups) -> ReplicaGroups:
    """The groups of a collective between slices: the devices of one number, one of each slice."""
    if slices.lists is None:
        return ReplicaGroups(slices.inner, slices.outer)
    return ReplicaGroups(lists=tuple(zip(*slices.lists, strict=True)))


def reordered(order: Sequence[int]) -> ReplicaGroups:
    """The positions of the devices, as of one slice, in a mesh that has device ``order[p]`` at position p."""
    return ReplicaGroups.of_lists((tuple(sorted(range(len(order)), key=order.__getitem__)),))


def slice_positions(num_slices: int, devices_per_slice: int, slices: Sequence[int] | None) -> ReplicaGroups:
    """The positions of the devices of `num_slices` slices; `slices` has the slice of each position. Without
    it the slices follow one another, as JAX's hybrid meshes have them by default. Raises `QuestionError` when
    `slices` does not give each slice its devices."""
    if slices is None:
        return ReplicaGroups((Digit(num_slices, devices_per_slice),), (Digit(devices_per_slice, 1),))
    members: dict[int, list[int]] = defaultdict(list)
    for position, number in enumerate(slices):
        members[number].append(position)
    places = tuple(tuple(members[number]) for number in sorted(members))
    if len(places) != num_slices or any(len(where) != devices_per_slice for where in places):
        problem = f"the devices are not on {plural(num_slices, 'slice')} of {devices_per_slice}"
        raise QuestionError(problem, "give the slice of each position of the mesh")
    return ReplicaGroups.of_lists(places)


def program_mesh(
    written: Iterable[WrittenMesh],
    instructions: Collection[Instruction],
    numbers: DeviceNumbers,
    given: Mesh | None,
    *,
    infer: bool,
) -> tuple[Mesh | None, DeviceNumbers]:
    """The mesh of a program, and how its numbers are positions there. It is the one `given`, in the order in
    which the text writes that out, or else what `infer` asks for. The text has the meshes that are `written`
    outside of groups, and those of the `instructions`. Where it has the mesh in several orders, none of which
    counts up, no position is known (`DeviceNumbers.orders`)."""
    if given is None and not infer:
        return None, numbers
    written = [*written]
    for text in dict.fromkeys(line.attributes.get("replica_groups", "") for line in instructions):
        with suppress(NotationError):
            written += filter(None, [written_mesh(text)])
    mesh = given or _mesh_of_instructions(instructions, numbers, written)
    may_have_orders = (given or mesh is None) and numbers.slices is None
    if may_have_orders and (given is None or given.device_order is None):
        ordered = {mesh.axes for mesh in written if mesh.order is not None and _fits(mesh, numbers.per_slice)}
        if mesh is None and len(ordered) == 1:
            mesh = Mesh(*zip(*ordered.pop(), strict=True))
        orders = {header.order for header in written if mesh and header.axes == tuple(mesh.shape.items())}
        if mesh is not None and len(orders) == 1:
            mesh = replace(mesh, device_order=orders.pop())
        elif None not in orders:
            numbers = replace(numbers, orders=max(1, len(orders)))
    if mesh is None or mesh == given or mesh.device_order is None:
        return mesh, numbers
    return mesh, replace(numbers, slices=reordered(mesh.device_order))


def written_meshes(header: str, text: str, sharding: int) -> list[WrittenMesh]:
    """The meshes that a module's header and its first sharding write out, where they can be read. A mesh
    without axes names one device, such as a callback's, and is none of the program. The sharding stands at a
    position in the text, -1 where it has none."""
    try:
        meshes = [WrittenMesh(tuple(sizes.items()), order) for sizes, order in mesh_literals(header) if sizes]
        sharded = mesh_of_sharding(text, sharding) if sharding >= 0 else None
    except NotationError:
        return []
    return meshes if sharded is None else [*meshes, sharded]


def _mesh_of_instructions(
    instructions: Iterable[Instruction], numbers: DeviceNumbers, written: Iterable[WrittenMesh]
) -> Mesh | None:
    """The coarsest mesh whose axes, or parts of axes, explain the groups of all collectives: one that is
    `written`, else with the axes axis_0, axis_1, …, as XLA calls them. None without groups, or where no mesh
    has the axes of all. A permute counts whose pairs link devices to rings or chains that are such groups."""
    keys = ("replica_groups", "source_target_pairs", "use_global_device_ids")
    cases = {
        (*map(line.attributes.get, keys), line.form.has_channel, line.opcode): line for line in instructions
    }
    groups, permutes = [], []
    for case in cases.values():
        with suppress(NotationError):
            if case.opcode.startswith("collective-permute"):
                permutes.append(numbers.pairs(case))
            elif not case.opcode.startswith(("send", "recv")):
                groups.append(numbers.groups(case))
    total = numbers.total
    if not numbers.is_known:
        highest = [i + 1 for pairs in permutes for pair in pairs for i in pair]
        named = [mesh.size for mesh in written]
        total = max([*(group.total for group in groups), *highest, *named], default=0)
    if numbers.slices is not None:
        groups.append(across(numbers.slices))
        written = [mesh for mesh in written if mesh.order is None]
    return mesh_of_groups(total, groups, permutes, written)


def mesh_of_collectives(collectives: Iterable[Collective], devices: int) -> Mesh | None:
    """The same for records that were read without a mesh, as far as their groups are listed. There are so
    many `devices`, or as many as the groups name."""
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
    permutes: Sequence[Lists] = (),
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
    groups = [group for group in groups if group.size > 1]
    if any(group.total != devices for group in groups):
        return None
    nests = {group.member_loops for group in groups}
    cuts = _cuts([nest for nest in nests if nest is not None], {1, devices})
    # XLA's own axes of size 1 say nothing.
    distinct = {
        mesh._replace(axes=tuple(axis for axis in mesh.axes if axis[1] > 1)) if _is_unnamed(mesh) else mesh
        for mesh in written
    }
    meshes = [mesh for mesh in distinct if mesh.axes and _fits(mesh, devices)]
    # Names that somebody chose come before XLA's own, devices that count up before others, more axes before
    # fewer.
    for mesh in sorted(
        meshes, key=lambda mesh: (_is_unnamed(mesh), mesh.order is not None, -len(mesh.axes), mesh)
    ):
        names, sizes = zip(*mesh.axes, strict=True)
        placed = nests
        if mesh.order is not None:
            positions = reordered(mesh.order)
            placed = {group.placed(positions).member_loops for group in groups}
        is_explained = all(
            nest is not None and all(pieces(loop, sizes) is not None for loop in nest) for nest in placed
        )
        if is_explained and (not _is_unnamed(mesh) or cuts <= _cuts([row_major(sizes)], {1})):
            return Mesh(names, sizes, mesh.order)
    if None in nests or not _is_chain(cuts) or not (nests or permutes or meshes):
        return None
    rings = {nest for pairs in permutes if (nest := _ring(pairs, devices)) is not None}
    for ring in sorted(rings, key=lambda nest: (-length(nest), nest)):
        finer = _cuts([ring], cuts)
        if _is_chain(finer):
            cuts = finer
    sizes = tuple(high // low for low, high in pairwise(sorted(cuts)))[::-1] or (1,)
    return Mesh(tuple(f"axis_{i}" for i in range(len(sizes))), sizes)


def _is_unnamed(mesh: WrittenMesh) -> bool:
    return any(_UNNAMED.fullmatch(name) for name, _ in mesh.axes)


def _fits(mesh: WrittenMesh, devices: int) -> bool:
    """Return whether it can be the mesh of so many devices; an order that is not XLA's is the user's."""
    names = [name for name, _ in mesh.axes]
    if mesh.order is not None and (_is_unnamed(mesh) or sorted(mesh.order) != list(range(devices))):
        return False
    return mesh.size == devices and len({*names}) == len(names) and all(map(is_axis_name, names))


def _cuts(nests: Iterable[Sequence[Digit]], known: set[int]) -> set[int]:
    return known | {index for nest in nests for size, stride in nest for index in (stride, size * stride)}


def _is_chain(cuts: set[int]) -> bool:
    return all(high % low == 0 for low, high in pairwise(sorted(cuts)))


def _ring(pairs: Lists, devices: int) -> Nest | None:
    """The nest of the devices that a permute's pairs link to one another, where all are linked alike."""
    # Groups of one size, two devices or more, need at least as many pairs as half the devices.
    if 2 * len(pairs) < devices or any(not 0 <= i < devices for pair in pairs for i in pair):
        return None
    groups = ReplicaGroups(lists=tuple(map(tuple, linked(pairs))))
    return groups.member_loops if groups.size > 1 and groups.total == devices else None
