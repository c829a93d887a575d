"""HLO text → its collectives, with how often each runs and along which mesh axes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from shardviz.errors import NotationError, QuestionError, quote
from shardviz.hlo.call_graph import CallGraph, program_order, run_counts
from shardviz.hlo.collective import Collective
from shardviz.hlo.computation import Computation, Computations, line_at
from shardviz.hlo.group_text import parse_pairs, parse_replica_groups
from shardviz.hlo.instruction import Instruction, open_instruction, parse_instruction
from shardviz.hlo.instruction_origin import InstructionOrigins
from shardviz.hlo.members import Members, members_of_groups, members_of_pairs
from shardviz.hlo.replica_groups import ReplicaGroups
from shardviz.hlo.shape import arrays, parse_shape
from shardviz.hlo.source import StackFrames, source_of
from shardviz.hlo.transfer import Transfer, base_op, transfer_of
from shardviz.sharding import Mesh

MAX_UNREAD = 100
"""No more complaints than this about one text."""

_CANDIDATE = re.compile(
    r" (?:all-(?:gather|reduce|to-all)|reduce-scatter|collective-(?:permute|broadcast)|ragged-all-to-all"
    r"|send|recv)(?:-start)?\("
)
_MODULE = re.compile(r"HloModule\s+([^\s,]+)")
_HEADER_NUMBER = {key: re.compile(rf"\b{key}=(\d{{1,12}})") for key in ("num_partitions", "replica_count")}
_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?[\w.-]+ = \(?[a-z][a-z0-9]*\[", re.MULTILINE)
_FUSED_SCATTER = re.compile(r"all-reduce-scatter[.\d]*")
_DECISIVE = (
    "replica_groups",
    "source_target_pairs",
    "dimensions",
    "use_global_device_ids",
)
_WITHOUT_GLOBAL_IDS = ("all-to-all", "ragged-all-to-all", "collective-broadcast")


@dataclass(frozen=True)
class HloModule:
    """A module and its collectives in program order, each once with its `count`.

    With `is_scheduled` that order is the schedule. `unread` says, a sentence each, what of the text could
    not be read.
    """

    name: str
    num_partitions: int
    replica_count: int
    is_scheduled: bool
    collectives: tuple[Collective, ...]
    unread: tuple[str, ...] = ()


def is_hlo(text: str) -> bool:
    """Whether a text looks like HLO: a module's header, or at least an instruction."""
    return _MODULE.search(text) is not None or _INSTRUCTION.search(text) is not None


def read_hlo(text: str, mesh: Mesh | None = None) -> HloModule:
    """The collectives in HLO text as XLA prints it, before or after any pass.

    With a `mesh`, each collective gets the axes that its groups follow, and its groups are ids of that
    mesh's devices (`Mesh.device_order`); without one they are XLA's own numbers, positions in the
    module's device assignment. A collective in a loop counts as often as the loop is known to run, in a
    called computation once for each call, in a branch once. A start and its done are one.

    Text that is cut off or damaged gives what can be read; `HloModule.unread` tells the rest. Raises
    `NotationError` for a text that is no HLO, `QuestionError` when the mesh has another number of devices.
    """
    if not is_hlo(text):
        raise NotationError(
            "this is not HLO text",
            text,
            0,
            hint="HLO begins with HloModule; print one with compiled.as_text()",
        )
    return _Reader(text, mesh).read()


class _Reader:
    """One reading of one text."""

    def __init__(self, text: str, mesh: Mesh | None) -> None:
        self.text = text
        self.mesh = mesh
        self.unread: list[str] = []
        module = _MODULE.search(text)
        start, stop = line_at(text, module.start()) if module else (0, 0)
        line = text[start:stop]
        self.name = module[1] if module else ""
        self.has_header = module is not None
        self.partitions = _header_number(line, "num_partitions")
        self.replicas = _header_number(line, "replica_count")
        self.is_scheduled = "is_scheduled=true" in line
        self.frames = StackFrames(text)
        self.computations = Computations(text)
        self.origins = InstructionOrigins(text, self.computations)
        self.known: dict[tuple[str | None, ...], Collective] = {}

    def read(self) -> HloModule:
        devices = self.partitions * self.replicas
        if self.mesh is not None and devices > 1 and self.mesh.size != devices:
            raise QuestionError(
                f"{quote(self.name)} runs on {devices} devices, the mesh {self.mesh} has {self.mesh.size}",
                f"give a mesh of {devices} devices",
            )
        computations = self.computations
        lines = dict(self._candidates())
        homes = {position: computations.around(position) for position in lines}
        positions: dict[int, list[int]] = defaultdict(list)
        for position, home in homes.items():
            positions[home.start].append(position)
        calls = CallGraph(self.text, computations).calls_to(homes.values())
        callers = {computations.around(call.position) for call in calls}
        has_entry, called = computations.has_entry, {call.callee for call in calls}
        roots = sorted(
            home.start
            for home in {*homes.values(), *callers}
            if home.is_entry or not home.name or (not has_entry and home.start not in called)
        )
        counts = run_counts(roots, calls)
        collectives = []
        for home_start, position in program_order(roots, calls, positions):
            record = self._collective(lines[position], homes[position], position, counts.get(home_start, 0))
            if record is not None:
                collectives.append(record)
        self._note_gaps(computations, positions, counts)
        return HloModule(
            self.name,
            self.partitions,
            self.replicas,
            self.is_scheduled,
            tuple(collectives),
            tuple(self.unread[:MAX_UNREAD]),
        )

    def _candidates(self) -> Iterator[tuple[int, Instruction]]:
        """Lines whose own opcode is a collective's, by position."""
        text, position = self.text, 0
        while match := _CANDIDATE.search(text, position):
            start, position = line_at(text, match.start())
            instruction = parse_instruction(text[start:position])
            if instruction is None or not _CANDIDATE.fullmatch(f" {instruction.opcode}("):
                continue
            # A start that is a wrapper has its collective in the computation that it calls.
            if "calls" not in instruction.attributes or _has_groups(instruction):
                yield start, instruction

    def _collective(
        self, instruction: Instruction, home: Computation, position: int, count: int | None
    ) -> Collective | None:
        attributes = instruction.attributes
        fused = home if _FUSED_SCATTER.fullmatch(home.name) else None
        operands = instruction.operands if "[" in instruction.operands else ""
        channel = "channel" if "channel_id" in attributes else ""
        where = fused.name if fused else ""
        key = (
            instruction.opcode,
            instruction.shape,
            operands,
            channel,
            where,
            *map(attributes.get, _DECISIVE),
        )
        try:
            record = self.known.get(key)
            if record is None:
                record = self.known[key] = self._record(instruction, fused)
        except NotationError as error:
            if len(self.unread) < MAX_UNREAD:
                line = self.text.count("\n", 0, position) + 1
                self.unread.append(f"line {line}: {quote(instruction.name)} cannot be read: {error.message}")
            return None
        return replace(
            record,
            name=instruction.name,
            count=count,
            source=source_of(instruction, self.frames),
            origin=self.origins.of(instruction, home),
        )

    def _record(self, instruction: Instruction, fused: Computation | None) -> Collective:
        op = base_op(instruction.opcode)
        if op in ("send", "recv"):
            members = Members(2)
        elif op == "collective-permute":
            pairs = parse_pairs(instruction.attributes.get("source_target_pairs", "{}"))
            members = members_of_pairs(pairs, self.mesh)
        else:
            members = members_of_groups(self._groups(instruction, op), self.mesh)
        transfer = transfer_of(instruction, members.size)
        if fused and op == "all-reduce":
            op, transfer = "reduce-scatter", self._fused_scatter(transfer, fused)
        return members.record(op, instruction.name, transfer)

    def _groups(self, instruction: Instruction, op: str) -> ReplicaGroups:
        attributes = instruction.attributes
        channel = "channel_id" in attributes
        use_global = None if op in _WITHOUT_GLOBAL_IDS else attributes.get("use_global_device_ids") == "true"
        partitions, replicas = self.partitions, self.replicas
        if not self.has_header and self.mesh is not None:
            partitions = self.mesh.size
        if use_global and channel:
            everyone = partitions * replicas
        else:
            everyone = partitions if channel and use_global is None else replicas
        groups = parse_replica_groups(attributes.get("replica_groups", "{}"), everyone)
        if not self.has_header or groups.total > everyone:
            return groups
        return groups.on_devices(replicas, partitions, channel=channel, use_global=use_global)

    def _fused_scatter(self, reduced: Transfer, home: Computation) -> Transfer:
        """A TPU's fused reduce-scatter: an all-reduce whose computation returns only this device's part."""
        root = self.text.find("ROOT ", home.start, home.stop)
        start, stop = line_at(self.text, max(root, 0))
        opened = open_instruction(self.text[start:stop])
        results = tuple(arrays(parse_shape(opened[1]))) if opened and root >= 0 else ()
        if not results:
            return reduced
        before, after = reduced.operands[0].sizes, results[0].sizes
        differing = [dim for dim, (a, b) in enumerate(zip(before, after, strict=False)) if a != b]
        return Transfer(reduced.operands, results, differing[0] if len(differing) == 1 else None)

    def _note_gaps(
        self, computations: Computations, positions: dict[int, list[int]], counts: dict[int, int | None]
    ) -> None:
        idle = sum(len(places) for home, places in positions.items() if home not in counts)
        if idle:
            self.unread.append(f"{idle} collectives stand in computations that nothing calls")
        last = computations.breaks_off()
        if last is not None:
            self.unread.append(f"the text breaks off inside {quote(last)}")


def _header_number(line: str, key: str) -> int:
    match = _HEADER_NUMBER[key].search(line)
    return max(1, int(match[1])) if match else 1


def _has_groups(instruction: Instruction) -> bool:
    return "replica_groups" in instruction.attributes or "source_target_pairs" in instruction.attributes
