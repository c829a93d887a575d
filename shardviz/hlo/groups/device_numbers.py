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
from shardviz.hlo.groups.replica_groups import (
    Lists,
    Loop,
    ReplicaGroups,
    check_listable,
    ids,
    nest_of,
    through,
)
from shardviz.hlo.text.instruction import Instruction
from shardviz.hlo.text.opcodes import base_op
from shardviz.sharding import Mesh

_WITHOUT_GLOBAL_IDS = ("all-to-all", RAGGED, "collective-broadcast")


@dataclass(frozen=True)
class DeviceNumbers:
    """A module's numbers of its devices: within a slice by replica and partition, then slice by slice.

    Without `is_known`, where no header says how many there are, the groups say what there is to know.
    `orders` counts those in which the text has the devices of its mesh: with several, only the axes that
    groups name themselves are known.
    """

    partitions: int
    replicas: int
    slices: SlicePositions | None = None
    is_known: bool = True
    orders: int = 1

    @property
    def per_slice(self) -> int:
        return self.partitions * self.replicas

    @property
    def total(self) -> int:
        return self.per_slice * (self.slices.num_slices if self.slices else 1)

    def groups(self, instruction: Instruction) -> ReplicaGroups:
        """The groups of a collective, as positions. Raises `NotationError` when they cannot be read."""
        attributes = instruction.attributes
        channel = bool(instruction.channel)
        use_global = attributes.get("use_global_device_ids") == "true"
        partitions, replicas = self.partitions, self.replicas
        has_no_global = base_op(instruction.opcode) in _WITHOUT_GLOBAL_IDS
        if use_global and channel and not has_no_global:
            everyone = partitions * replicas
        else:
            everyone = partitions if channel and has_no_global else replicas
        text = attributes.get("replica_groups", "{}")
        groups = parse_replica_groups(text, everyone)
        if self.is_known:
            if groups.total <= everyone:
                mode = None if has_no_global else use_global
                groups = groups.on_devices(replicas, partitions, channel=channel, use_global=mode)
            check_ids(text, groups.highest, self.per_slice)
        return self.slices.within(groups) if self.slices else groups

    def pairs(self, instruction: Instruction) -> Lists:
        """The pairs of a permute, as positions. Raises `NotationError` when they cannot be read."""
        text = instruction.attributes.get("source_target_pairs", "{}")
        pairs = parse_pairs(text)
        if self.is_known:
            check_ids(text, max((i for pair in pairs for i in pair), default=-1), self.per_slice)
        return self.slices.pairs_within(pairs) if self.slices else pairs

    def positions(self, lists: Lists, mesh: Mesh) -> Lists:
        """Numbers that count slice by slice as positions in a mesh.

        Raises `NotationError` for a number that the mesh lacks.
        """
        if mesh.device_order is not None:
            where = {number: position for position, number in enumerate(mesh.device_order)}
        else:
            ordered = sum(self.slices.places, ()) if self.slices else range(mesh.size)
            where = dict(enumerate(ordered))
        for group in lists:
            for number in group:
                if number not in where:
                    raise NotationError(f"there is no device {number} in the mesh {mesh}", str(group), 0)
        return tuple(tuple(where[number] for number in group) for group in lists)


@dataclass(frozen=True)
class SlicePositions:
    """Device k of slice s stands at position ``first[s] + offset[k]`` of the mesh.

    `firsts` and `offsets` are nests of loops; slices without such a pattern are `lists` of positions.
    """

    num_slices: int
    firsts: tuple[Loop, ...] = ()
    offsets: tuple[Loop, ...] = ()
    lists: Lists | None = None

    def within(self, groups: ReplicaGroups) -> ReplicaGroups:
        """Groups of one slice's devices, as positions, once for each slice."""
        if groups.lists is None and self.lists is None:
            outer, inner = through(groups.outer, self.offsets), through(groups.inner, self.offsets)
            if outer is not None and inner is not None:
                return ReplicaGroups((*self.firsts, *outer), inner)
        check_listable(groups.total * self.num_slices, f"{groups.count:,} groups")
        return ReplicaGroups(lists=self._everywhere(groups.expand()))

    def pairs_within(self, pairs: Lists) -> Lists:
        """The pairs of a permute within a slice, as positions, once for each slice."""
        check_listable(2 * len(pairs) * self.num_slices, f"{len(pairs):,} pairs")
        return self._everywhere(pairs)

    def across(self) -> ReplicaGroups:
        """The groups of a collective between slices: the devices of one number, one of each slice."""
        if self.lists is None:
            return ReplicaGroups(self.offsets, self.firsts)
        return ReplicaGroups(lists=tuple(zip(*self.lists, strict=True)))

    @property
    def places(self) -> Lists:
        """The positions of each slice's devices."""
        return self.lists or tuple(
            tuple(first + offset for offset in ids(self.offsets)) for first in ids(self.firsts)
        )

    def _everywhere(self, groups: Lists) -> Lists:
        # An id that a slice does not have stays what it is: it is refused where ids are looked at.
        return tuple(
            tuple(where[i] if 0 <= i < len(where) else i for i in group)
            for where in self.places
            for group in groups
        )


def reordered(order: Sequence[int]) -> SlicePositions:
    """The positions of the devices of one slice in a mesh that has device ``order[p]`` at position p."""
    where = [0] * len(order)
    for position, device in enumerate(order):
        where[device] = position
    offsets = nest_of(where) if where[:1] == [0] else None
    return SlicePositions(1, lists=(tuple(where),)) if offsets is None else SlicePositions(1, (), offsets)


def slice_positions(
    num_slices: int, devices_per_slice: int, slices: Sequence[int] | None = None
) -> SlicePositions:
    """The positions of the devices of `num_slices` slices; `slices` has the slice of each position.

    Without it the slices follow one another, as JAX's hybrid meshes have them by default. Raises
    `QuestionError` when `slices` does not give each slice its devices.
    """
    if slices is None:
        return SlicePositions(num_slices, ((num_slices, devices_per_slice),), ((devices_per_slice, 1),))
    members: dict[int, list[int]] = defaultdict(list)
    for position, number in enumerate(slices):
        members[number].append(position)
    places = [members[number] for number in sorted(members)]
    if len(places) != num_slices or any(len(where) != devices_per_slice for where in places):
        raise QuestionError(
            f"the devices are not on {plural(num_slices, 'slice')} of {devices_per_slice}",
            "give the slice of each position of the mesh",
        )
    firsts = [where[0] for where in places]
    offsets = nest_of([position - firsts[0] for position in places[0]])
    heads = nest_of([first - firsts[0] for first in firsts])
    expected = [] if offsets is None else ids(offsets)
    alike = all(
        [position - first for position in where] == expected
        for where, first in zip(places, firsts, strict=True)
    )
    if offsets is None or heads is None or firsts[0] or not alike:
        return SlicePositions(num_slices, lists=tuple(map(tuple, places)))
    return SlicePositions(num_slices, heads, offsets)
