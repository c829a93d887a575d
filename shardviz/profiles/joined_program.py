"""A program's text, joined with a trace by the names of instructions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from shardviz.hardware.machine import Machine, assumed_machine
from shardviz.hlo.collective import OPS, Collective
from shardviz.hlo.module import HloModule, Reader
from shardviz.hlo.replica_groups import GROUPS, LISTED_GROUPS
from shardviz.hlo.text.opcodes import base_op
from shardviz.profiles.device_trace import HBM_COPY, HOST_COPY, PEER_COPY, SOME_COPY, TracedInstruction
from shardviz.sharding import Mesh
from shardviz.timeline.of_program import timed_program
from shardviz.timeline.program_timeline import COMPUTE, COPIES, HOST, LINKS, Lane, ProgramTimeline, TimedOp

Role = Literal["work", "begins", "ends", "frame"]
"""An operation does its work while it runs, begins or ends what runs beside others, or is the frame around
those that run in it."""
ANY_OPS = ("async", "async-collective")
"""The opcode, and a TPU's name of a fusion, that begin and end collectives of any kind."""
_COLLECTIVES = frozenset((*OPS, "nccl", *ANY_OPS)) - {"slice"}
_COPIES = frozenset(("copy-start", "slice-start", "dynamic-slice-start", "dynamic-update-slice-start"))
_ON_STREAMS = {HOST_COPY: HOST, HBM_COPY: COPIES, PEER_COPY: LINKS, SOME_COPY: Lane("copy", "copies")}
"""The lanes of a GPU's copies."""
_OF_JAX = dict.fromkeys(("psum", "psum_invariant", "pmax", "pmin"), "all-reduce")
_OF_JAX |= dict.fromkeys(("psum_scatter", "reduce_scatter"), "reduce-scatter")
_OF_JAX |= dict.fromkeys(("all_gather", "all_gather_invariant"), "all-gather")
_OF_JAX |= {"all_to_all": "all-to-all", "ragged_all_to_all": "ragged-all-to-all"}
_OF_JAX |= {"ppermute": "collective-permute", "pbroadcast": "collective-broadcast"}
"""JAX's names of collectives, which shard_map's instructions have."""
_LINE_NAME = re.compile(r"\s*(?:ROOT\s+)?%?([^\s=,(){}]+) = ")
_NUMBER = re.compile(r"(?:\.\d+|\.clone|\.remat\d*)+$")


@dataclass(frozen=True)
class InstructionFacts:
    """The kind of an operation: `op` is HLO's opcode without -start and -done, or "matmul", and `awaited` the
    name of what it ends. Where the text is there, `timed` is the same operation as it was predicted and
    `collective` the collective that it is."""

    op: str
    lane: Lane
    role: Role = "work"
    awaited: str = ""
    timed: TimedOp | None = None
    collective: Collective | None = None

    @property
    def is_communication(self) -> bool:
        """True for what moves data between devices."""
        return self.lane.kind in ("axis", "network")


@dataclass(frozen=True)
class JoinedProgram:
    """The text of a program with what is predicted of it on the `machine` that was named; without one only
    the prediction's lanes and its names of collectives count. `device_ids` are those at the text's positions,
    and `lost` names the collectives whose groups nobody knows."""

    text: str
    module: HloModule
    predicted: ProgramTimeline
    machine: Machine | None
    device_ids: tuple[int, ...] = ()
    lost: frozenset[str] = frozenset()

    @cached_property
    def collectives(self) -> dict[str, Collective]:
        return {collective.name: collective for collective in self.module.collectives}

    @cached_property
    def ops(self) -> dict[str, TimedOp]:
        return {op.name: op for op in self.predicted.ops}

    @cached_property
    def lines(self) -> dict[str, tuple[str, str]]:
        """The opcode and the first operand of every instruction, by its name."""
        lines = Reader(self.text, None, None).lines
        by_name = {}
        for home in lines.computations.all:
            for line in lines.of(home):
                ends = line.opcode.endswith(("-done", "-update"))
                names = line.operands if ends else ()
                by_name[line.name] = line.opcode, names[0] if names else ""
        return by_name

    def facts(self, timed: TimedOp, role: Role, awaited: str = "") -> InstructionFacts:
        record = self.collectives.get(timed.collective)
        return InstructionFacts(timed.op, self.predicted.lanes[timed.lane], role, awaited, timed, record)


def join_program(
    text: str,
    mesh: Mesh | None,
    machine: Machine | None,
    device_ids: tuple[int, ...] = (),
    lost: frozenset[str] = frozenset(),
) -> JoinedProgram:
    """Read a program's text, on a mesh of its size, and predict it. Raises what `timed_program` raises."""
    devices = Reader(text, None, None).numbers.total
    given = mesh if mesh is not None and mesh.size == devices else None
    priced = machine or assumed_machine()
    module, predicted = timed_program(text, priced, mesh=given, infer=True, origins=True)
    return JoinedProgram(text, module, predicted, machine, device_ids, lost)


def with_groups(text: str, said: Mapping[str, str]) -> tuple[str, frozenset[str]]:
    """A stored module's text with the groups that its collectives' events have, by names of instructions, and
    the names of those whose groups nobody knows: they are made unreadable.

    XLA's message of a module has changed: today's reader loses an older one's groups, and prints
    ``replica_groups={}`` beside ``use_global_device_ids=true``, which XLA's verifier refuses."""
    lost = []

    def known(written: re.Match[str]) -> str:
        stop = text.find("\n", written.end())
        name = _LINE_NAME.match(text, text.rfind("\n", 0, written.start()) + 1)
        groups = said.get(name[1], "") if name else ""
        is_global = text.find(" use_global_device_ids=true", written.end(), stop) >= 0
        if not groups and written[1] == "{}" and is_global:
            groups = "{lost}"
            lost.extend([name[1]] if name else [])
        return f" replica_groups={groups or written[1]}"

    return re.sub(rf" replica_groups=({LISTED_GROUPS}|{GROUPS})", known, text), frozenset(lost)


def facts_of(instruction: TracedInstruction, program: JoinedProgram | None) -> InstructionFacts:
    """The kind of a traced instruction: by the program's text, else by the trace, else by its name."""
    opcode, awaited = instruction.opcode, instruction.awaited
    is_on_stream = opcode in _ON_STREAMS
    if program is not None:
        opcode, awaited = program.lines.get(instruction.name, (opcode, awaited))
        timed = program.ops.get(instruction.name)
        if timed is not None and timed.collective not in program.collectives and is_on_stream:
            return InstructionFacts("memcpy", _ON_STREAMS[instruction.opcode], timed=timed)
        if timed is not None:
            return program.facts(timed, "begins" if timed.is_async else "work")
    # The opcode that the name tells, ``all-reduce-start`` of ``all-reduce-start.3``, or JAX's.
    stem = _NUMBER.sub("", instruction.name)
    named = _OF_JAX.get(stem, stem)
    opcode = named if not opcode or named.startswith("async-collective-") else opcode
    copies = HOST if instruction.with_host else COPIES
    if opcode in ("while", "conditional", "call"):
        return InstructionFacts(opcode, COMPUTE, "frame")
    base = opcode.removesuffix("-done").removesuffix("-update")
    if base != opcode:
        if program is not None and awaited in program.ops:
            return program.facts(program.ops[awaited], "ends", awaited)
        lane = LINKS if base in _COLLECTIVES else copies if f"{base}-start" in _COPIES else COMPUTE
        return InstructionFacts(base, lane, "ends", awaited)
    base = base_op(opcode)
    role: Role = "begins" if base != opcode else "work"
    if base in _COLLECTIVES:
        return InstructionFacts(base, LINKS, role)
    if opcode in _COPIES:
        return InstructionFacts(base, copies, "begins")
    if opcode in _ON_STREAMS:
        return InstructionFacts("memcpy", _ON_STREAMS[opcode])
    if opcode in ("infeed", "outfeed"):
        return InstructionFacts(opcode, HOST)
    if "convolution" in opcode or opcode in ("dot", "gemm"):
        return InstructionFacts("matmul", COMPUTE)
    return InstructionFacts(opcode, COMPUTE)
