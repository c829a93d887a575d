"""The numbers of a module's devices, and where those devices stand in the mesh.

The module of a program on several TPU slices is that of one slice: its groups count the slice's own devices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from shardviz.errors import NotationError, QuestionError, plural
from shardviz.hlo.collective import RAGGED
from shardviz.hlo.groups.group_text import check_ids, parse_pairs, parse_replica_groups
from shardviz.hlo.groups.replica_groups import Lists, ReplicaGroups, placed_lists
from shardviz.hlo.text.instruction import Instruction
from shardviz.hlo.text.opcodes import base_op
from shardviz.sharding import Mesh
from shardviz.sharding.digits import Digit

_WITHOUT_GLOBAL_IDS = ("all-to-all", RAGGED, "collective-broadcast")


@dataclass(frozen=True)
class DeviceNumbers:
    """A module's numbers of its devices: within a slice by replica and partition, then slice by slice.

    `slices` has the positions in the mesh of each slice's devices, a group for each; None where the numbers
    are positions. Without `is_known`, where no header says how many devices there are, the groups say what
    there is to know. `orders` counts those in which the text has the devices of its mesh: with several, only
    the axes that groups name themselves are known.
    """

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
        channel = bool(instruction.channel)
        has_no_global = base_op(instruction.opcode) in _WITHOUT_GLOBAL_IDS
        use_global = instruction.attributes.get("use_global_device_ids") == "true"
        if has_no_global:
            everyone = self.partitions if channel else self.replicas
        else:
            everyone = self.per_slice if use_global and channel else self.replicas
        text = instruction.attributes.get("replica_groups", "{}")
        groups = parse_replica_groups(text, everyone)
        if self.is_known:
            if groups.total <= everyone:
                mode = None if has_no_global else use_global
                groups = groups.on_devices(self.replicas, self.partitions, channel=channel, use_global=mode)
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
        """Numbers that count slice by slice as positions in a mesh.

        Raises `NotationError` for a number that the mesh lacks.
        """
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
    where = [0] * len(order)
    for position, device in enumerate(order):
        where[device] = position
    return ReplicaGroups.of_lists((tuple(where),))


def slice_positions(
    num_slices: int, devices_per_slice: int, slices: Sequence[int] | None = None
) -> ReplicaGroups:
    """The positions of the devices of `num_slices` slices; `slices` has the slice of each position.

    Without it the slices follow one another, as JAX's hybrid meshes have them by default. Raises
    `QuestionError` when `slices` does not give each slice its devices.
    """
    if slices is None:
        return ReplicaGroups((Digit(num_slices, devices_per_slice),), (Digit(devices_per_slice, 1),))
    members: dict[int, list[int]] = defaultdict(list)
    for position, number in enumerate(slices):
        members[number].append(position)
    places = tuple(tuple(members[number]) for number in sorted(members))
    if len(places) != num_slices or any(len(where) != devices_per_slice for where in places):
        raise QuestionError(
            f"the devices are not on {plural(num_slices, 'slice')} of {devices_per_slice}",
            "give the slice of each position of the mesh",
        )
    return ReplicaGroups.of_lists(places)
