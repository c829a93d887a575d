"""The schedule that the compiler simulated, read, and as a timeline: the second teller beside the model.

XLA's latency-hiding scheduler lets asynchronous operations run beside the others, and knows no more than one
figure for each. A loop is one instruction to it, without what its body waits for; here the body is counted
with that, in full. The text is a `ScheduleProto` as protobuf prints it: the module as it was before
memory-space assignment, and for each computation that holds asynchronous operations when each instruction
starts and ends. libtpu writes it for ``xla_dump_latency_hiding_schedule``; for GPUs a cycle is 1 µs."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from shardviz.errors import NotationError
from shardviz.hlo.collective import OPS
from shardviz.hlo.text.opcodes import CONTROL, begins, ends
from shardviz.timeline.program_timeline import (
    COMPUTE,
    LINKS,
    Lane,
    ProgramTimeline,
    SpanKind,
    TimedOp,
    TimeSpan,
)
from shardviz.units import human_bytes

_NONE = "there is no second estimate beside the model"
NOT_SIMULATED = f"{_NONE}: the compiler's scheduler simulates asynchronous operations, and it found none here"
NO_ESTIMATES = "the compiler has no estimates for this GPU: to its scheduler every operation is as long"
NO_SCHEDULER = "this compiler simulates no schedule: those for TPUs and GPUs do"
"""In the place of a second teller."""


@dataclass(frozen=True, slots=True)
class ScheduledInstruction:
    """An instruction; `start` and `end` are cycles from the start of its computation, and `memory` the bytes
    of the temporaries that are live after it. `calls` are ids of the computations that it runs, `operands`
    ids, of what ends an asynchronous operation alone. A text without the module has numbers as names."""

    id: int
    name: str
    opcode: str
    start: float
    end: float
    memory: int = 0
    calls: tuple[int, ...] = ()
    operands: tuple[int, ...] = ()

    @property
    def begins(self) -> bool:
        """Return whether another instruction waits for what it begins."""
        return begins(self.opcode) or self.opcode.endswith("-update")


@dataclass(frozen=True)
class ScheduledComputation:
    """A computation that the scheduler simulated, `instructions` in its order; `cycles` are those of a run,
    `busy_cycles` of one in which nothing is waited for: so a loop's body counts in its parent."""

    id: int
    name: str
    instructions: tuple[ScheduledInstruction, ...]
    cycles: float
    busy_cycles: float


@dataclass(frozen=True)
class CompilerSchedule:
    """All that the scheduler simulated, unless the text breaks off (`is_complete`). `entry` is the name of
    the entry computation, "" where the text does not tell, which may be none of the `computations`."""

    computations: tuple[ScheduledComputation, ...]
    cycles_per_microsecond: float
    entry: str = ""
    is_complete: bool = True

    def seconds(self, cycles: float) -> float:
        return cycles / self.cycles_per_microsecond * 1e-6


_FIELD = re.compile(r"^ *(?:(\w+): ([^\n]*)|(\w+) \{|(\}))$", re.MULTILINE)
_IN_MODULE = re.compile(
    r"^( {2,6})(entry_computation_name|name|opcode|id|operand_ids|called_computation_ids): ([^\n]+)$",
    re.MULTILINE,
)
"""Fields of the module (indented by 2), of its computations (by 4) and of their instructions (by 6)."""
_SCHEDULES = "computation_schedules"


def read_schedule(text: str) -> CompilerSchedule:
    """The complete part of a schedule whose text may break off. Raises `NotationError` for any other text."""
    begin = f"\n{text}".find(f"\n{_SCHEDULES} {{")
    if begin < 0:
        hint = "dump one with xla_dump_latency_hiding_schedule: it has a line computation_schedules {"
        raise NotationError("this is not a schedule of XLA's latency-hiding scheduler", text, 0, hint=hint)
    messages, is_complete = _read_messages(text, begin)
    # A program that does not fit is scheduled again: the last simulation of a computation counts.
    simulated = {message.get("computation_id", ""): message for message in messages}.values()
    entry, names, instructions = _read_module(text[:begin])
    cycles = next(filter(None, (_number(each, "cycles_per_microsecond") for each in simulated)), 1.0)
    computations = tuple(_computation(computation, names, instructions) for computation in simulated)
    return CompilerSchedule(computations, cycles, entry, is_complete)


def _read_messages(text: str, begin: int) -> tuple[list[dict[str, Any]], bool]:
    """The computations' messages, their values still text, and True where the last one is complete; of one
    that breaks off there are the parts that are complete."""
    open_: list[tuple[str, dict[str, Any]]] = [("", {})]
    for key, value, opened, closed in _FIELD.findall(text, begin):
        if key:
            open_[-1][1][key] = value
        elif opened:
            open_.append((opened, {}))
        elif closed and len(open_) > 1:
            name, message = open_.pop()
            open_[-1][1].setdefault(name, []).append(message)
    messages: list[dict[str, Any]] = open_[0][1].get(_SCHEDULES, [])
    broken = [message for name, message in open_[1:2] if name == _SCHEDULES]
    return messages + broken, not broken


def _read_module(text: str) -> tuple[str, dict[int, str], dict[int, dict[str, list[str]]]]:
    """The entry's name, the names of computations and the fields of instructions by their ids."""
    entry = name = ""
    computations: dict[int, str] = {}
    instructions: dict[int, dict[str, list[str]]] = {}
    fields: dict[str, list[str]] = {}
    # The module is a hundred times as long as the simulation: only lines that matter are looked at.
    for indent, key, written in _IN_MODULE.findall(text):
        value = written.strip('"')
        match len(indent), key:
            case 2, "entry_computation_name":
                entry = value
            case 4, "name":
                name = value
            case 4, "id" if value.isdecimal():
                computations[int(value)] = name
            case 6, "name":
                fields = {"name": [value]}
            case 6, "id" if value.isdecimal():
                instructions[int(value)] = fields
            case 6, _:
                fields.setdefault(key, []).append(value)
    return entry, computations, instructions


def _computation(
    simulated: dict[str, Any], names: dict[int, str], instructions: dict[int, dict[str, list[str]]]
) -> ScheduledComputation:
    id_ = int(_number(simulated, "computation_id"))
    scheduled = []
    for instruction in simulated.get("instructions", ()):
        number = int(_number(instruction, "id"))
        start, end = (_number(instruction, f"{when}_timestamp_cycles") for when in ("start", "end"))
        fields = instructions.get(number, {})
        opcode = fields.get("opcode", [""])[0]
        calls = fields.get("called_computation_ids", []) if opcode in CONTROL else []
        operands = fields.get("operand_ids", []) if ends(opcode) else []
        scheduled.append(
            ScheduledInstruction(
                number,
                # An id has its computation's above these bits, and its own number in them.
                fields.get("name", [f"{number & (2**32 - 1)}"])[0],
                opcode,
                start,
                max(start, end),
                int(_number(instruction, "memory_usage_after")),
                tuple(int(called) for called in calls if called.isdecimal()),
                tuple(int(operand) for operand in operands if operand.isdecimal()),
            )
        )
    # XLA's statistics let nothing overlap: the cycles of all instructions, and by collective what is waited.
    statistics = simulated.get("scheduler_statistics", [{}])[-1]
    total = _number(statistics, "total_cycles")
    waited = {key for key in statistics if key.endswith("_wasted_cycles")} - {"total_wasted_cycles"}
    busy = total - sum(_number(statistics, key) for key in waited)
    cycles = max((instruction.end for instruction in scheduled), default=total)
    return ScheduledComputation(id_, names.get(id_, ""), tuple(scheduled), cycles, busy)


def _number(message: dict[str, Any], field: str) -> float:
    """A field's value; 0, as for one that is left out, where it is not a positive number."""
    try:
        number = float(message.get(field, 0.0))
    except ValueError:
        return 0.0
    return number if 0 < number < math.inf else 0.0


def is_dummy(schedule: CompilerSchedule) -> bool:
    """Return whether XLA has no estimates for this GPU, as for an A100: all operations take 5,000 cycles."""
    every = (instruction for computation in schedule.computations for instruction in computation.instructions)
    lasting = {each.end - each.start for each in every if each.end - each.start > 1}
    return schedule.cycles_per_microsecond == 1 and lasting == {5000.0}


MAX_DEPTH = 20
"""Loops within one another, followed at most."""
_NEGLIGIBLE = 1.0
"""Cycles of what only names or indexes data; every instruction has at least these."""


def scheduler_timeline(schedule: CompilerSchedule, model: ProgramTimeline, text: str = "") -> ProgramTimeline:
    """The scheduler's simulation with the lanes, the lines and the loops of the model's timeline; `text` is
    the final module. The scheduler tells how long an asynchronous operation takes by how long the device
    waits for it. One that it does not wait for takes as long as others of its kind and size; without such,
    its `seconds` are None, and it is drawn until it is asked for."""
    drawer = _Drawer(schedule, model, text)
    seconds = drawer.all()
    lanes = [*drawer.lanes]
    busy: defaultdict[Lane, float] = defaultdict(float)
    exposed: defaultdict[Lane, float] = defaultdict(float)
    for op in drawer.ops:
        times = 1 if op.runs is None else op.runs
        busy[lanes[op.lane]] += (op.seconds or 0.0) * times
        exposed[lanes[op.lane]] += op.exposed * times
    moving = [lane for lane in lanes if lane.kind != "compute"]
    return ProgramTimeline(
        title=model.title,
        machine=f"{model.machine}, the compiler's scheduler",
        lanes=tuple(lanes),
        ops=tuple(sorted(drawer.ops, key=lambda op: op.start)),
        spans=tuple(drawer.spans),
        seconds=seconds,
        drawn_seconds=drawer.end,
        compute_seconds=busy[COMPUTE],
        communication_seconds=tuple((lane.name, busy[lane]) for lane in moving),
        exposed_seconds=tuple((lane.name, exposed[lane]) for lane in moving),
        flops=model.flops,
        utilisation=model.utilisation * model.seconds / seconds if model.utilisation and seconds else None,
        unknown=tuple(drawer.unknown),
        notes=tuple(drawer.notes),
    )


@dataclass(frozen=True)
class _Transfer:
    """An asynchronous operation, start to done; in the `waited` cycles the device does nothing else."""

    started: ScheduledInstruction
    done: ScheduledInstruction
    waited: float

    @property
    def cycles(self) -> float | None:
        """As long as it takes; None where it may be done earlier than it is asked for."""
        return self.done.start - self.started.end if self.waited else None


def _transfers(home: ScheduledComputation) -> list[_Transfer]:
    """The asynchronous operations of a computation. While the device is idle it waits for the first of those
    under way that is asked for afterwards."""
    open_: dict[int, ScheduledInstruction] = {}
    pairs: list[tuple[ScheduledInstruction, ScheduledInstruction]] = []
    for instruction in home.instructions:
        begun = next((open_.pop(id_) for id_ in instruction.operands if id_ in open_), None)
        if instruction.begins:
            open_[instruction.id] = begun or instruction
        elif instruction.opcode.endswith("-done") and begun is not None:
            pairs.append((begun, instruction))
    waited: defaultdict[int, float] = defaultdict(float)
    before, number = 0.0, 0
    for instruction in home.instructions:
        idle = instruction.start - before
        while number < len(pairs) and pairs[number][1].start < instruction.start:
            number += 1
        if idle > _NEGLIGIBLE:
            under_way = (index for index in range(number, len(pairs)) if pairs[index][0].end <= before)
            if (index := next(under_way, None)) is not None:
                waited[index] += idle
        before = max(before, instruction.end)
    return [_Transfer(*pair, waited[index]) for index, pair in enumerate(pairs)]


class _Drawer:
    def __init__(self, schedule: CompilerSchedule, model: ProgramTimeline, text: str) -> None:
        self._schedule = schedule
        self._model = model
        self.ops: list[TimedOp] = []
        self.spans: list[TimeSpan] = []
        # Copies between memories come into the program after the scheduler.
        shared = (lane for lane in model.lanes if lane.kind in ("compute", "axis", "network"))
        self.lanes = {lane: number for number, lane in enumerate(shared)}
        self.unknown: list[str] = []
        self.notes: list[str] = []
        self.end = 0.0
        self._by_id = {home.id: home for home in schedule.computations}
        self._models = {op.name: op for op in reversed(model.ops)}
        # The names that collectives have since they became synchronous, after the scheduler.
        renamed = re.findall(r'^\s*(?:ROOT )?%?([^\s=]+) = .*async_collective_name="([^"\n]*)"', text, re.M)
        self._final = {then: now for now, then in renamed}
        self._transfers = {home.id: _transfers(home) for home in schedule.computations}
        every = [transfer for those in self._transfers.values() for transfer in those]
        self._match_the_rest(every)
        self._cycles = {self._kind(each.started): each.cycles for each in every if each.cycles is not None}

    def all(self) -> float:
        """Draw every computation that no other one runs, and return the seconds of one run of the program."""
        homes, entry = self._schedule.computations, self._schedule.entry
        called = {id_ for home in homes for instruction in home.instructions for id_ in instruction.calls}
        seconds = 0.0
        for home in homes:
            if home.id in called:
                continue
            is_entry = not entry or home.name == entry
            runs = 1 if is_entry else self._runs(home, None)
            begin = self.end
            real, width = self._computation(home, begin, runs, 0 if is_entry else 1)
            took = real * (1 if runs is None else runs)
            seconds += took
            self.end = begin + width
            if not is_entry:
                self.spans.append(TimeSpan("loop", home.name, begin, self.end, runs, 0, took))
        if entry and entry not in (home.name for home in homes):
            self.unknown.append(entry)
            alone = "the scheduler has simulated loops alone, as nothing around them is asynchronous"
            self.notes.append(f"{alone}: the rest is not in its total")
        if not self._schedule.is_complete:
            self.notes.append("the scheduler's text breaks off: the total has what there is of it")
        return seconds

    def _computation(
        self, home: ScheduledComputation, begin: float, runs: int | None, depth: int
    ) -> tuple[float, float]:
        """Draw a computation from `begin` on; the seconds of one run of it, and those on the drawn clock."""
        transfers = {transfer.done.id: transfer for transfer in self._transfers[home.id]}
        started: dict[int, float] = {}
        per_cycle = self._schedule.seconds(1.0)
        extra = drawn = 0.0  # By how much real and drawn times are later than the simulation's.
        for instruction in home.instructions:
            start = begin + drawn + instruction.start * per_cycle
            took = (instruction.end - instruction.start) * per_cycle
            bodies = [self._by_id[id_] for id_ in instruction.calls if id_ in self._by_id]
            if bodies and depth < MAX_DEPTH:
                real, width = self._inner(instruction, bodies, start, took, runs, depth)
                extra += real - took
                drawn += width - took
            elif instruction.begins:
                started[instruction.id] = start + took
            elif (transfer := transfers.get(instruction.id)) is not None:
                begun = started.get(transfer.started.id, start)
                cycles = transfer.cycles or self._cycles.get(self._kind(transfer.started))
                seconds = None if cycles is None else min(self._schedule.seconds(cycles), start - begun)
                end = start if seconds is None else begun + seconds
                waited = self._schedule.seconds(transfer.waited)
                self._op(transfer.started, begun, end, seconds, runs, waited)
            elif instruction.opcode.endswith("-done"):
                continue
            elif instruction.end - instruction.start > _NEGLIGIBLE:
                self._op(instruction, start, start + took, took, runs)
        length = home.cycles * per_cycle
        return length + extra, length + drawn

    def _inner(
        self,
        caller: ScheduledInstruction,
        bodies: list[ScheduledComputation],
        begin: float,
        took: float,
        runs: int | None,
        depth: int,
    ) -> tuple[float, float]:
        """Draw what an instruction runs: the seconds that it really takes, and those on the drawn clock."""
        if caller.opcode == "while":
            body = max(bodies, key=lambda computation: computation.cycles)
            once = self._schedule.seconds(body.busy_cycles)
            # The number of its trips is the model's, else what its time in its parent tells.
            ratio = took / once if once else 0.0
            is_whole = round(ratio) >= 1 and abs(ratio - round(ratio)) <= 0.01 * round(ratio)
            count = self._runs(body, runs) or (round(ratio) if is_whole else None)
            inside = None if count is None or runs is None else count * runs
            real, width = self._computation(body, begin, inside, depth + 1)
            whole = real * (count or 1)
            self.spans.append(TimeSpan("loop", caller.name, begin, begin + width, count, depth, whole))
            if count is None:
                self.notes.append(f"the scheduler does not tell how often {caller.name} runs: counted once")
            return whole, width
        kind: SpanKind = "branch" if caller.opcode == "conditional" else "call"
        drawn: list[tuple[float, str, float, float, list[TimedOp]]] = []
        position = begin
        for body in bodies:
            first = len(self.ops)
            real, width = self._computation(body, position, runs, depth + 1)
            drawn.append((real, body.name, position, position + width, self.ops[first:]))
            position += width
        longest = max(real for real, *_ in drawn)
        taken = next(number for number, (real, *_) in enumerate(drawn) if real == longest)
        for number, (real, name, start, end, ops) in enumerate(drawn):
            is_taken = number == taken
            self.spans.append(TimeSpan(kind, name, start, end, 1, depth, real if is_taken else 0.0))
            for op in () if is_taken else ops:
                op.runs = 0
        return longest, position - begin

    def _runs(self, body: ScheduledComputation, around: int | None) -> int | None:
        """The model's runs of a computation in one run around it; None for one that it does not know."""
        for instruction in body.instructions:
            op = self._like(instruction)
            if op is not None and op.runs is not None and not (around and op.runs % around):
                return op.runs // (around or 1)
        return None

    def _kind(self, started: ScheduledInstruction) -> tuple[str, int]:
        """The operation and its bytes, on which alone the scheduler's figures depend."""
        like = self._like(started)
        return started.opcode, like.bytes if like is not None else 0

    def _match_the_rest(self, transfers: Iterable[_Transfer]) -> None:
        """Give collectives that go by another name in the final module the model's, in order, if as many."""
        rest: defaultdict[str, list[str]] = defaultdict(list)
        for started in (transfer.started for transfer in transfers):
            if self._like(started) is None:
                rest[started.opcode.removesuffix("-start")].append(started.name)
        known = {*self._final.values()}
        if rest:
            known |= {each.name for home in self._schedule.computations for each in home.instructions}
        for opcode, names in rest.items():
            others = [op.name for op in self._model.ops if op.op == opcode and op.name not in known]
            if len(names) == len(others):
                self._final.update(zip(names, others, strict=True))

    def _op(
        self,
        instruction: ScheduledInstruction,
        start: float,
        end: float,
        seconds: float | None,
        runs: int | None,
        waited: float | None = None,
    ) -> None:
        """Draw an operation; one that is `waited` for is asynchronous."""
        like, is_async = self._like(instruction), waited is not None
        opcode = instruction.opcode.removesuffix("-start")
        lane = LINKS if is_async or opcode in OPS else COMPUTE
        if like is not None and (of_model := self._model.lanes[like.lane]) in self.lanes:
            # A fusion may be a collective: the model has looked inside.
            lane = of_model if lane is COMPUTE or of_model.kind != "compute" else lane
        is_transfer = lane.kind != "compute"
        if seconds is None:
            detail = "done before it is asked for; the scheduler does not tell when"
        else:
            cycles = round(seconds / self._schedule.seconds(1.0))
            detail = f"{cycles:,} cycles of the scheduler's simulation"
            if instruction.memory and not is_async:
                detail += f", {human_bytes(instruction.memory)} of temporaries after it"
        op = TimedOp(
            instruction.name,
            opcode,
            self.lanes.setdefault(lane, len(self.lanes)),
            start,
            end,
            seconds,
            "scheduler",
            runs,
            exposed=(seconds or 0.0 if waited is None else waited) if is_transfer or is_async else 0.0,
            bound=lane.name if is_transfer else "compute",
            detail=detail,
            is_async=is_async,
        )
        if like is not None:
            op.name, op.op, op.source = like.name, like.op, like.source
            op.bytes, op.flops = like.bytes, like.flops
        self.ops.append(op)

    def _like(self, instruction: ScheduledInstruction) -> TimedOp | None:
        """The model's operation of the same name, or of the one that the final module has for it."""
        return self._models.get(instruction.name) or self._models.get(self._final.get(instruction.name, ""))
