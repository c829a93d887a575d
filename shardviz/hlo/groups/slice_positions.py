"""Where the devices of each TPU slice stand in a mesh that spans several of them, or has its own order.

The module of a program on several slices is that of one slice: its groups count the slice's own devices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from shardviz.errors import QuestionError, plural
from shardviz.hlo.groups.loops import Loop, ids, nest_of, through
from shardviz.hlo.groups.replica_groups import Lists, ReplicaGroups, check_listable


@dataclass(frozen=True)
class SlicePositions:
    """Device k of slice s stands at position ``first[s] + offset[k]`` of the mesh.

    `firsts` and `offsets` are nests of loops; slices that are no such pattern are `lists` of positions.
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
        check_listable(groups.total * self.num_slices)
        return ReplicaGroups(lists=self._everywhere(groups.expand()))

    def pairs_within(self, pairs: Lists) -> Lists:
        """The pairs of a permute within a slice, as positions, once for each slice."""
        check_listable(2 * len(pairs) * self.num_slices)
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
    """Where the devices of a program on one slice stand, whose mesh has device ``order[p]`` at position p."""
    where = [0] * len(order)
    for position, device in enumerate(order):
        where[device] = position
    offsets = nest_of(where) if where[:1] == [0] else None
    return SlicePositions(1, lists=(tuple(where),)) if offsets is None else SlicePositions(1, (), offsets)


def slice_positions(
    num_slices: int, devices_per_slice: int, slices: Sequence[int] | None = None
) -> SlicePositions:
    """Where the devices of `num_slices` slices stand; `slices` has the slice of each position.

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
            "say for each position of the mesh on which slice it is",
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
