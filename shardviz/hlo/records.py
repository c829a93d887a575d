"""An instruction → its `Collective`: who takes part, what moves, along which axes."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from shardviz.errors import NotationError
from shardviz.hlo.collective import RAGGED, Collective
from shardviz.hlo.groups.group_text import axes_by_name, check_ids, parse_pairs, parse_replica_groups
from shardviz.hlo.groups.members import Members, members_of_groups, members_of_pairs
from shardviz.hlo.groups.replica_groups import Lists, ReplicaGroups
from shardviz.hlo.groups.slice_positions import SlicePositions
from shardviz.hlo.schedule.slices import Crossing, record_between
from shardviz.hlo.text.computation import Computation, line_at
from shardviz.hlo.text.instruction import Instruction, open_instruction, operand_names
from shardviz.hlo.text.shape import arrays, parse_shape
from shardviz.hlo.text.transfer import Transfer, base_op, transfer_of
from shardviz.sharding import Mesh

_FUSED_SCATTER = re.compile(r"all-reduce-scatter(?:\.(?:\d+|clone))*+")
_WITHOUT_GLOBAL_IDS = ("all-to-all", RAGGED, "collective-broadcast")


@dataclass(frozen=True)
class DeviceNumbers:
    """How a module numbers its devices: within a slice by replica and partition, then slice by slice.

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
        crossing: Crossing | None,
    ) -> Collective:
        """The record that instructions of one kind in the computation `home` share, but for their names.

        Of a send that is a `crossing` it is that of the collective between slices.

        Raises `NotationError` when the instruction cannot be read.
        """
        if base_op(instruction.opcode) == RAGGED:
            instruction = self._with_sent_shape(instruction, home)
        fused = home if home.name.startswith("all-reduce-scatter") else None
        key = (
            instruction.kind,
            fused and fused.name,
            crossing and (crossing.op, crossing.recv.shape, crossing.target),
        )
        record = self._known.get(key)
        if record is None:
            record = self._known[key] = (
                record_between(crossing, self._numbers.per_slice, self._numbers.slices, self._mesh)
                if crossing
                else self._record(instruction, fused)
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
        transfer = transfer_of(instruction, members.size)
        if op == "all-reduce" and home and _FUSED_SCATTER.fullmatch(home.name):
            op, transfer = "reduce-scatter", self._fused_scatter(transfer, home)
        record = members.record(op, instruction.name, transfer)
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

    def _fused_scatter(self, reduced: Transfer, home: Computation) -> Transfer:
        """A TPU's fused reduce-scatter: an all-reduce whose computation returns only this device's part."""
        root = self._text.find("ROOT ", home.start, home.stop)
        start, stop = line_at(self._text, max(root, 0))
        opened = open_instruction(self._text[start:stop])
        results = tuple(arrays(parse_shape(opened[1]))) if opened and root >= 0 else ()
        if not results:
            return reduced
        before, after = reduced.operands[0].sizes, results[0].sizes
        differing = [dim for dim, (a, b) in enumerate(zip(before, after, strict=False)) if a != b]
        return Transfer(reduced.operands, results, differing[0] if len(differing) == 1 else None)
