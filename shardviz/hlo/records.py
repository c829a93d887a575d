"""An instruction → its `Collective`: the devices that take part, what moves, along which axes."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from shardviz.errors import NotationError
from shardviz.hlo.collective import RAGGED, Collective, wire_bytes
from shardviz.hlo.groups.device_numbers import DeviceNumbers
from shardviz.hlo.groups.group_text import axes_by_name
from shardviz.hlo.groups.replica_groups import (
    MAX_LISTED_IDS,
    Lists,
    ReplicaGroups,
    device_ids,
    group_axes,
    pair_axes,
)
from shardviz.hlo.text.computation import Computation, line_at
from shardviz.hlo.text.cross_slice import CrossSliceTransfer, device_numbers
from shardviz.hlo.text.instruction import Instruction, open_instruction, operand_names
from shardviz.hlo.text.shapes import CollectiveShapes, arrays, base_op, collective_shapes, parse_shape
from shardviz.sharding import Mesh

_FUSED_SCATTER = re.compile(r"all-reduce-scatter(?:\.(?:\d+|clone))*+")


@dataclass(frozen=True)
class Members:
    """The devices that take part: how many in a group, the axes that the groups follow, and the groups' ids.

    `groups` is None where there are too many ids to list; `count` of the groups is 0 where nobody knows.
    """

    size: int
    axes: tuple[str, ...] = ()
    groups: Lists | None = None
    count: int = 0

    def record(self, op: str, name: str, shapes: CollectiveShapes) -> Collective:
        """The collective `op` of these members, by the name of its instruction."""
        larger = shapes.operand_bytes if op == RAGGED else shapes.larger_bytes
        return Collective(
            op=op,
            name=name,
            axes=self.axes,
            groups=self.groups,
            operand_shape=shapes.operands[0].sizes,
            result_shape=shapes.results[0].sizes,
            dtype=shapes.results[0].dtype,
            bytes=larger,
            wire_bytes=wire_bytes(op, self.size, larger, shapes.operand_bytes),
            arrays=len(shapes.results),
            dim=shapes.dim,
            split_dim=shapes.split_dim,
            group_size=self.size,
            group_count=self.count,
        )


def members_of_pairs(pairs: Lists, mesh: Mesh | None) -> Members:
    """The members of a permute, whose groups are (source, target) positions."""
    size = 2 if any(source != target for source, target in pairs) else 1
    listed = device_ids(pairs, mesh) if 2 * len(pairs) <= MAX_LISTED_IDS else None
    return Members(size, pair_axes(pairs, mesh) if mesh else (), listed, len(pairs))


def members_of_groups(groups: ReplicaGroups, mesh: Mesh | None) -> Members:
    """The members of any other collective."""
    listed = device_ids(groups.expand(), mesh) if groups.total <= MAX_LISTED_IDS else None
    return Members(groups.size, group_axes(groups, mesh) if mesh else (), listed, groups.count)


class Records:
    """The records of one module. Instructions that differ in name only share their work."""

    def __init__(self, text: str, numbers: DeviceNumbers, mesh: Mesh | None) -> None:
        self._text = text
        self._numbers = numbers
        self._mesh = mesh
        self._known: dict[tuple[object, ...], Collective] = {}

    def of(
        self,
        instruction: Instruction,
        home: Computation,
        transfer: CrossSliceTransfer | None,
    ) -> Collective:
        """The record that instructions of one kind in the computation `home` share, but for their names.

        Of a send that is a `transfer` it is that of the collective between slices.

        Raises `NotationError` when the instruction cannot be read.
        """
        if base_op(instruction.opcode) == RAGGED:
            instruction = self._with_sent_shape(instruction, home)
        fused = home if home.name.startswith("all-reduce-scatter") else None
        key = (
            instruction.kind,
            fused and fused.name,
            transfer and (transfer.op, transfer.recv.shape, transfer.target),
        )
        record = self._known.get(key)
        if record is None:
            record = self._known[key] = (
                self._between_slices(transfer) if transfer else self._record(instruction, fused)
            )
        return record

    def _record(self, instruction: Instruction, home: Computation | None) -> Collective:
        op = base_op(instruction.opcode)
        if op in ("send", "recv"):
            members = Members(2)
        elif op == "collective-permute":
            members = members_of_pairs(self._numbers.pairs(instruction), self._mesh)
        else:
            members = members_of_groups(self._numbers.groups(instruction), self._mesh)
        if self._mesh is not None and self._numbers.orders > 1:
            # Where the others' devices stand, nobody says.
            groups = instruction.attributes.get("replica_groups", "")
            members = replace(members, axes=axes_by_name(groups, tuple(self._mesh.shape.items())))
        shapes = collective_shapes(instruction, members.size)
        if op == "all-reduce" and home and _FUSED_SCATTER.fullmatch(home.name):
            op, shapes = "reduce-scatter", self._fused_scatter(shapes, home)
        record = members.record(op, instruction.name, shapes)
        is_to_host = instruction.attributes.get("is_host_transfer") == "true"
        return record.with_host() if is_to_host else record

    def _with_sent_shape(self, instruction: Instruction, home: Computation) -> Instruction:
        """A ragged all-to-all with the shape of what it sends, which its result, a buffer, does not tell."""
        names = operand_names(instruction.operands)
        if "[" in instruction.operands or instruction.opcode != RAGGED or not names:
            return instruction
        defined = re.compile(rf"^[ \t]*+(?:ROOT )?%?{re.escape(names[0])} = ", re.MULTILINE)
        found = defined.search(self._text, home.start, home.stop)
        opened = open_instruction(self._text[slice(*line_at(self._text, found.end()))]) if found else None
        if opened is None:
            sent = instruction.operands.find(names[0])
            raise NotationError(
                "the shape of what is sent is not in the text",
                instruction.operands,
                sent,
                sent + len(names[0]),
            )
        return instruction._replace(operands=f"{opened[1]} {instruction.operands}")

    def _fused_scatter(self, reduced: CollectiveShapes, home: Computation) -> CollectiveShapes:
        """A TPU's fused reduce-scatter: an all-reduce whose computation returns only this device's part."""
        root = self._text.find("ROOT ", home.start, home.stop)
        start, stop = line_at(self._text, max(root, 0))
        opened = open_instruction(self._text[start:stop])
        results = tuple(arrays(parse_shape(opened[1]))) if opened and root >= 0 else ()
        if not results:
            return reduced
        return CollectiveShapes.resized(reduced.operands, results)

    def _between_slices(self, transfer: CrossSliceTransfer) -> Collective:
        """The collective that a send and a recv are; its groups are device ids, or numbers without a mesh."""
        lists = device_numbers(transfer.target, self._numbers.per_slice)
        if self._mesh is not None:
            lists = self._numbers.positions(lists, self._mesh)
        if transfer.op == "collective-permute":
            members = members_of_pairs(lists, self._mesh)
        else:
            members = members_of_groups(ReplicaGroups(lists=lists), self._mesh)
        shapes = CollectiveShapes.resized(
            collective_shapes(transfer.send, members.size).results,
            collective_shapes(transfer.recv, members.size).results,
        )
        return replace(members.record(transfer.op, transfer.send.name, shapes), between_slices=True)
