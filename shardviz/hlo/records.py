"""An instruction → its `Collective`: the devices that take part, what moves, along which axes.

HLO prints the shape of a result, and that of an operand only on request. A collective's operands follow from
the result, the size of the groups and the rules of each opcode, so that no other line has to be read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from shardviz.errors import NotationError
from shardviz.hlo.collective import RAGGED, Collective
from shardviz.hlo.device_numbers import DeviceNumbers
from shardviz.hlo.replica_groups import (
    MAX_LISTED_IDS,
    Lists,
    ReplicaGroups,
    axes_by_name,
    device_ids,
    group_axes,
    pair_axes,
)
from shardviz.hlo.text.cross_slice import CrossSliceTransfer, device_numbers
from shardviz.hlo.text.instruction import Computation, Instruction
from shardviz.hlo.text.instructions import Instructions
from shardviz.hlo.text.opcodes import base_op
from shardviz.hlo.text.shapes import ArrayShape, arrays, parse_shape, parse_shapes
from shardviz.sharding import Mesh

_DIMENSION = re.compile(r"\d{1,3}")
_SLICE = re.compile(r"\{([^{}]*)\}")
_FUSED_SCATTER = re.compile(r"all-reduce-scatter(?:\.(?:\d+|clone))*+")


@dataclass(frozen=True)
class CollectiveShapes:
    """Per-device arrays of a collective; `dim` is gathered, scattered or replicated, `split_dim` split."""

    operands: tuple[ArrayShape, ...]
    results: tuple[ArrayShape, ...]
    dim: int | None = None
    split_dim: int | None = None


@dataclass(frozen=True)
class Members:
    """The devices that take part: how many in a group, the axes that the groups follow, and the groups' ids,
    None where there are too many to list; `count` of the groups is 0 where that is unknown."""

    size: int
    axes: tuple[str, ...] = ()
    groups: Lists | None = None
    count: int = 0

    def record(self, op: str, name: str, shapes: CollectiveShapes) -> Collective:
        """The collective `op` of these members, by the name of its instruction."""
        operand, result = (
            sum(shape.nbytes for shape in those) for those in (shapes.operands, shapes.results)
        )
        larger = operand if op == RAGGED else max(operand, result)
        return Collective(
            op=op,
            name=name,
            axes=self.axes,
            groups=self.groups,
            operand_shape=shapes.operands[0].sizes,
            result_shape=shapes.results[0].sizes,
            dtype=shapes.results[0].dtype,
            bytes=larger,
            wire_bytes=wire_bytes(op, self.size, larger, operand),
            arrays=len(shapes.results),
            dim=shapes.dim,
            split_dim=shapes.split_dim,
            group_size=self.size,
            group_count=self.count,
        )


@lru_cache(maxsize=64)
def members_of_pairs(pairs: Lists, mesh: Mesh | None) -> Members:
    """The members of a permute, whose groups are (source, target) positions."""
    size = 2 if any(source != target for source, target in pairs) else 1
    listed = device_ids(pairs, mesh) if 2 * len(pairs) <= MAX_LISTED_IDS else None
    return Members(size, pair_axes(pairs, mesh) if mesh else (), listed, len(pairs))


@lru_cache(maxsize=64)
def members_of_groups(groups: ReplicaGroups, mesh: Mesh | None) -> Members:
    """The members of any other collective."""
    listed = device_ids(groups.expand(), mesh) if groups.total <= MAX_LISTED_IDS else None
    return Members(groups.size, group_axes(groups, mesh) if mesh else (), listed, groups.count)


def wire_bytes(op: str, group_size: int, larger: int, operand: int) -> int:
    """Bytes one device must send at least, for a collective over groups of `group_size`. `larger` is the
    larger of a device's operand and result in bytes. (N-1)/N of it for a gather, a scatter and an all-to-all,
    twice that for an all-reduce, rounded up; the operand for a permute: the lower bounds of Chan et al.,
    "Collective communication: theory, practice, and experience" (2007)."""
    if op in ("slice", "recv") or group_size <= 1:
        return 0
    if op in ("collective-permute", "send", "collective-broadcast"):
        return operand
    if op == "all-reduce":
        return -(-2 * larger * (group_size - 1) // group_size)
    return -(-larger * (group_size - 1) // group_size)


def _resized(operands: tuple[ArrayShape, ...], results: tuple[ArrayShape, ...]) -> CollectiveShapes:
    """These operands and results, and the dimension that changes its size, if it is one."""
    sizes = zip(operands[0].sizes, results[0].sizes, strict=False)
    changed = [dim for dim, (before, after) in enumerate(sizes) if before != after]
    return CollectiveShapes(operands, results, changed[0] if len(changed) == 1 else None)


class Records:
    """The records of one module. Instructions that differ in name only share their work."""

    def __init__(self, lines: Instructions, numbers: DeviceNumbers, mesh: Mesh | None) -> None:
        self._lines = lines
        self._numbers = numbers
        self._mesh = mesh
        self._known: dict[tuple[object, ...], Collective] = {}

    def of(self, instruction: Instruction, transfer: CrossSliceTransfer | None) -> Collective:
        """The record of an instruction, or of the collective between slices that a send is, but for its name.
        Raises `NotationError` when the instruction cannot be read."""
        home = instruction.home
        sent = self._sent_shape(instruction) if base_op(instruction.opcode) == RAGGED else ""
        fused = home if home.name.startswith("all-reduce-scatter") else None
        key = (
            instruction.form,
            instruction.written_operands,
            sent,
            fused and fused.name,
            transfer and (transfer.op, transfer.recv.shape, transfer.target),
        )
        if key not in self._known:
            self._known[key] = (
                self._between_slices(transfer) if transfer else self._record(instruction, fused, sent)
            )
        return self._known[key]

    def _record(self, instruction: Instruction, home: Computation | None, sent: str) -> Collective:
        op = base_op(instruction.opcode)
        if op in ("send", "recv"):
            members = Members(2)
        elif op == "collective-permute":
            members = members_of_pairs(self._numbers.pairs(instruction), self._mesh)
        else:
            members = members_of_groups(self._numbers.groups(instruction), self._mesh)
        if self._mesh is not None and self._numbers.orders > 1:
            # The positions of the others' devices are unknown.
            groups = instruction.attributes.get("replica_groups", "")
            members = replace(members, axes=axes_by_name(groups, self._mesh.shape))
        shapes = collective_shapes(instruction, members.size, sent)
        if op == "all-reduce" and home and _FUSED_SCATTER.fullmatch(home.name):
            # A TPU's fused reduce-scatter, whose computation returns only this device's part.
            op, root = "reduce-scatter", self._lines.root(home)
            if root is not None and (results := tuple(arrays(parse_shape(root.shape)))):
                shapes = _resized(shapes.operands, results)
        record = members.record(op, instruction.name, shapes)
        is_host = instruction.attributes.get("is_host_transfer") == "true"
        return record.having(is_host_transfer=True, wire_bytes=0) if is_host else record

    def _sent_shape(self, instruction: Instruction) -> str:
        """The shape of what a ragged all-to-all sends, which its result, a buffer, does not tell."""
        names = instruction.operands
        if instruction.has_operand_shapes or instruction.opcode != RAGGED or not names:
            return ""
        made = self._lines.operand(instruction, 0)
        if made is None:
            written = instruction.operand_text
            start = written.find(names[0])
            problem = "the shape of what is sent is not in the text"
            raise NotationError(problem, written, start, start + len(names[0]))
        return made.shape

    def _between_slices(self, transfer: CrossSliceTransfer) -> Collective:
        """The collective that a send and a recv are; its groups are device ids, or numbers without a mesh."""
        lists = device_numbers(transfer.target, self._numbers.per_slice)
        if self._mesh is not None:
            lists = self._numbers.positions(lists, self._mesh)
        if transfer.op == "collective-permute":
            members = members_of_pairs(lists, self._mesh)
        else:
            members = members_of_groups(ReplicaGroups(lists=lists), self._mesh)
        shapes = _resized(
            collective_shapes(transfer.send, members.size).results,
            collective_shapes(transfer.recv, members.size).results,
        )
        return replace(members.record(transfer.op, transfer.send.name, shapes), between_slices=True)


def collective_shapes(instruction: Instruction, group_size: int, sent: str = "") -> CollectiveShapes:
    """The arrays of a collective over groups of `group_size`; `sent` is the shape of its operand, if known.
    Raises `NotationError` when the instruction's shape cannot be one of its opcode's."""
    shape = parse_shape(instruction.shape)
    op = base_op(instruction.opcode)
    given: tuple[ArrayShape, ...] = ()
    results = tuple(arrays(shape))
    if op in ("send", "recv"):
        results = results[:1]
    elif instruction.opcode.endswith("-start") and isinstance(shape, list):
        # (operands, results, contexts ...). An all-reduce's own start has its results alone, an array for
        # each operand; one that is wrapped in an async-start is printed by the same name.
        is_result = len(results) <= len(instruction.operands) if op == "all-reduce" else len(shape) < 2
        if not is_result:
            given, results = tuple(arrays(shape[0])), tuple(arrays(shape[1]))
    if instruction.has_operand_shapes:
        sent = instruction.operand_text
    given = tuple(array for shape in parse_shapes(sent) for array in arrays(shape)) or given
    if op == RAGGED:
        given = given[:1]
    if not results:
        problem = f"{instruction.opcode} of no arrays"
        raise NotationError(problem, instruction.shape, 0, len(instruction.shape))
    if "slice_sizes" in instruction.attributes:
        slices = tuple(_slices(instruction.attributes["slice_sizes"], results))
        return CollectiveShapes(slices, slices)
    written = _DIMENSION.match(instruction.attributes.get("dimensions", "").strip())
    dim = int(written[0]) if written else None
    if dim is not None and any(dim >= len(result.sizes) for result in results):
        dim = None
    if op == "all-to-all":
        # The array form splits and joins the same dimension; a tuple's elements are already the parts.
        return CollectiveShapes(given or results, results, dim, dim)
    if dim is None or op not in ("all-gather", "reduce-scatter"):
        return CollectiveShapes(given or results, results)
    if not given and group_size > 0:
        # The group has one such dimension of a gather's result, and the other way round.
        parts, wholes = (group_size, 1) if op == "all-gather" else (1, group_size)
        given = tuple(result.resized(dim, -(-result.sizes[dim] * wholes // parts)) for result in results)
    return CollectiveShapes(given or results, results, dim)


def _slices(sizes: str, buffers: Sequence[ArrayShape]) -> Iterator[ArrayShape]:
    """The slices of its `buffers` that a permute in place sends: ``{1,64},{2,64}`` are two."""
    slices = [match[1] for match in _SLICE.finditer(sizes)]
    if len(slices) != len(buffers) and len({buffer.dtype for buffer in buffers}) > 1:
        raise NotationError("slices of arrays of several types cannot be told apart", sizes, 0, len(sizes))
    for number, slice_ in enumerate(slices):
        dtype = buffers[number % len(buffers)].dtype
        (shape,) = arrays(parse_shape(f"{dtype}[{slice_}]"))
        yield shape
