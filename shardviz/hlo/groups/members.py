"""Who takes part in a collective, and its record from that and from what they transfer."""

from __future__ import annotations

from dataclasses import dataclass

from shardviz.hlo.collective import RAGGED, Collective, wire_bytes
from shardviz.hlo.groups.axes import device_ids, group_axes, pair_axes
from shardviz.hlo.groups.replica_groups import MAX_LISTED_IDS, Lists, ReplicaGroups
from shardviz.hlo.text.transfer import Transfer
from shardviz.sharding import Mesh


@dataclass(frozen=True)
class Members:
    """Devices in a group, the axes that the groups follow, the ids, None when too many to list, and how many
    groups there are, 0 where nobody knows."""

    size: int
    axes: tuple[str, ...] = ()
    groups: Lists | None = None
    count: int = 0

    def record(self, op: str, name: str, transfer: Transfer) -> Collective:
        """The collective `op` of these members, by the name of its instruction."""
        larger = transfer.operand_bytes if op == RAGGED else transfer.larger_bytes
        return Collective(
            op=op,
            name=name,
            axes=self.axes,
            groups=self.groups,
            operand_shape=transfer.operands[0].sizes,
            result_shape=transfer.results[0].sizes,
            dtype=transfer.results[0].dtype,
            bytes=larger,
            wire_bytes=wire_bytes(op, self.size, larger, transfer.operand_bytes),
            arrays=len(transfer.results),
            dim=transfer.dim,
            split_dim=transfer.split_dim,
            group_size=self.size,
            group_count=self.count,
        )


def members_of_pairs(pairs: Lists, mesh: Mesh | None) -> Members:
    """Of a permute, whose groups are (source, target) positions."""
    size = 2 if any(source != target for source, target in pairs) else 1
    listed = device_ids(pairs, mesh) if 2 * len(pairs) <= MAX_LISTED_IDS else None
    return Members(size, pair_axes(pairs, mesh) if mesh else (), listed, len(pairs))


def members_of_groups(groups: ReplicaGroups, mesh: Mesh | None) -> Members:
    """Of any other collective."""
    listed = device_ids(groups.expand(), mesh) if groups.total <= MAX_LISTED_IDS else None
    return Members(groups.size, group_axes(groups, mesh) if mesh else (), listed, groups.count)
