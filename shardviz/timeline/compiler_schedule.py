"""The simulation that XLA's latency-hiding scheduler leaves of a program: text → instructions with cycles.

The text is a `ScheduleProto` as protobuf prints it: the module as it was before memory-space assignment, and
for each computation that holds asynchronous operations when each instruction starts and ends. Fields that
are zero are left out. libtpu writes it for ``xla_dump_latency_hiding_schedule``; for GPUs a cycle is 1 µs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from shardviz.errors import NotationError


@dataclass(frozen=True, slots=True)
class ScheduledInstruction:
    """An instruction; `start` and `end` are cycles from the start of its computation.

    `memory` are the bytes of the temporaries that are live after it. `calls` are ids of the computations that
    it runs: the body and the condition of a while, the branches of a conditional. `operands` are ids, of
    what ends an asynchronous operation alone. A text without the module has numbers as names.
    """

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
        return self.opcode.endswith(("-start", "-update")) or self.opcode in _MESSAGES


@dataclass(frozen=True)
class ScheduledComputation:
    """A computation that the scheduler simulated, its `instructions` in the order of the schedule.

    `sum_cycles` are XLA's statistics, which let nothing overlap: the time of every instruction and, by
    collective ("all_gather"), that of every asynchronous one (`wasted`).
    """

    id: int
    name: str
    instructions: tuple[ScheduledInstruction, ...]
    sum_cycles: float
    wasted: tuple[tuple[str, float], ...] = ()

    @property
    def cycles(self) -> float:
        """The length of one run, as it is simulated."""
        return max((each.end for each in self.instructions), default=self.sum_cycles)

    @property
    def busy_cycles(self) -> float:
        """The length of one run in which nothing is waited for: so a loop's body counts in its parent."""
        return self.sum_cycles - sum(cycles for _, cycles in self.wasted)


@dataclass(frozen=True)
class CompilerSchedule:
    """All that the scheduler simulated. `entry` is the name of the entry computation, "" where the text does
    not tell; it is not among the `computations` where it holds no asynchronous operation itself.

    `is_complete` is False where the text breaks off.
    """

    computations: tuple[ScheduledComputation, ...]
    cycles_per_microsecond: float
    entry: str = ""
    is_complete: bool = True

    @property
    def by_id(self) -> dict[int, ScheduledComputation]:
        return {each.id: each for each in self.computations}

    def seconds(self, cycles: float) -> float:
        """The duration of so many cycles."""
        return cycles / self.cycles_per_microsecond * 1e-6


_COMPUTATION = "\n  computations {\n"
_INSTRUCTION = "\n    instructions {\n"
_NAME = re.compile(r'\s*name: "((?:[^"\\]|\\.)*+)"')
_OPCODE = re.compile(r'\n {6}opcode: "([^"\n]*)"')
_ID = re.compile(r"\n {4}id: (\d+)$", re.MULTILINE)
_ENTRY = re.compile(r'^  entry_computation_name: "((?:[^"\\]|\\.)*+)"', re.MULTILINE)
_FIELD = re.compile(
    r'\n  (?:    (?:name: "((?:[^"\\]|\\.)*+)"(?:\n      opcode: "([^"\n]*)")?|id: (\d+)'
    r"|called_computation_ids: (\d+))"
    r'|  (?:name: "((?:[^"\\]|\\.)*+)"|id: (\d+))|entry_computation_name: "((?:[^"\\]|\\.)*+)")(?=\n)'
)
"""Fields by depth: name, opcode, id and calls of an instruction, name and id of a computation."""
_FIELD = re.compile(r"^ *(?:(\w+): ([^\n]*)|(\w+) \{|(\}))$", re.MULTILINE)
_SCHEDULES = "computation_schedules {"
_CALLING = ("while", "conditional", "call")
_ENDS = ("-done", "-update")
_MESSAGES = ("send", "recv")
_WASTED = "_wasted_cycles"
_LOCAL = 2**32 - 1
"""An instruction's id has its computation's above these bits, and its own number in them."""
_DUMMY_CYCLES = 5000.0
"""XLA's latency estimator for GPUs that it has no figures of gives every operation this."""


def read_schedule(text: str) -> CompilerSchedule:
    """The schedule in a text that may break off: what is complete of it.

    Raises `NotationError` for a text without any schedule.
    """
    begin = text.find(_SCHEDULES)
    while begin > 0 and text[begin - 1] != "\n":
        begin = text.find(_SCHEDULES, begin + 1)
    if begin < 0:
        raise NotationError(
            "this is not a schedule of XLA's latency-hiding scheduler",
            text,
            0,
            hint="dump one with xla_dump_latency_hiding_schedule: it has a line computation_schedules {",
        )
    # A program that does not fit is scheduled again: the last simulation of a computation counts.
    simulated = {each.fields.get("computation_id", ""): each for each in _simulated(text, begin)}.values()
    module = _read_module(text[:begin])
    cycles = (_number(each.fields.get("cycles_per_microsecond", "")) for each in simulated)
    return CompilerSchedule(
        tuple(_computation(each, module) for each in simulated),
        next((each for each in cycles if each), 1.0),
        module.entry,
        all(each.is_complete for each in simulated),
    )


@dataclass
class _Simulated:
    """The message of one computation, its values still text."""

    fields: dict[str, str]
    instructions: list[dict[str, str]]
    statistics: dict[str, str]
    is_complete: bool = False


def _simulated(text: str, begin: int) -> Iterator[_Simulated]:
    """The computations' messages; of one that breaks off the instructions that are complete."""
    path: list[str] = []
    found = _Simulated({}, [], {})
    fields: dict[str, str] = {}
    for key, value, opened, closed in _FIELD.findall(text, begin):
        if key:
            (found.fields if len(path) < 2 else fields)[key] = value
        elif opened:
            path.append(opened)
            if len(path) == 1:
                found = _Simulated({}, [], {})
            elif len(path) == 2:
                fields = {}
        elif closed and path:
            match [*path]:
                case ["computation_schedules"]:
                    found.is_complete = True
                    yield found
                case ["computation_schedules", "instructions"]:
                    found.instructions.append(fields)
                case ["computation_schedules", "scheduler_statistics"]:
                    found.statistics = fields
            path.pop()
    if path[:1] == ["computation_schedules"]:
        yield found


class _InModule(NamedTuple):
    """An instruction, as the module has it."""

    name: str
    opcode: str
    calls: tuple[int, ...]
    operands: tuple[int, ...]


@dataclass
class _Module:
    """Instructions, and names of computations, by id."""

    entry: str
    computations: dict[int, str]
    instructions: dict[int, _InModule]


def _read_module(text: str) -> _Module:
    """The module in front of the simulation; found by its line breaks, as it is a hundred times as long."""
    entry = _ENTRY.search(text)
    module = _Module(entry[1] if entry else "", {}, {})
    for computation in text.split(_COMPUTATION)[1:]:
        head, *instructions = f"\n{computation}".split(_INSTRUCTION)
        name, id_ = _NAME.match(head), _ID.search(instructions[-1] if instructions else head)
        if name and id_:
            module.computations[int(id_[1])] = name[1]
        for each in instructions:
            name, opcode = _NAME.match(each), _OPCODE.search(each)
            number = _numbers(each, "id")
            if name and number:
                code = opcode[1] if opcode else ""
                calls = _numbers(each, "called_computation_ids") if code in _CALLING else ()
                operands = _numbers(each, "operand_ids") if code.endswith(_ENDS) else ()
                module.instructions[number[0]] = _InModule(name[1], code, calls, operands)
    return module


def _numbers(instruction: str, field: str) -> tuple[int, ...]:
    """The values of a field of an instruction's message."""
    found = []
    line = f"\n      {field}: "
    start = instruction.find(line)
    while start >= 0:
        start += len(line)
        stop = instruction.find("\n", start)
        value = instruction[start : stop if stop >= 0 else len(instruction)]
        if value.isdecimal():
            found.append(int(value))
        start = instruction.find(line, start)
    return tuple(found)


def _computation(found: _Simulated, module: _Module) -> ScheduledComputation:
    id_ = int(_number(found.fields.get("computation_id", "")))
    instructions = []
    for each in found.instructions:
        number = int(_number(each.get("id", "")))
        start, end = (_number(each.get(f"{when}_timestamp_cycles", "")) for when in ("start", "end"))
        name, opcode, calls, operands = module.instructions.get(
            number, _InModule(f"{number & _LOCAL}", "", (), ())
        )
        memory = int(_number(each.get("memory_usage_after", "")))
        instructions.append(
            ScheduledInstruction(number, name, opcode, start, max(start, end), memory, calls, operands)
        )
    statistics = {key: _number(value) for key, value in found.statistics.items()}
    wasted = (
        (key.removesuffix(_WASTED), cycles)
        for key, cycles in statistics.items()
        if key.endswith(_WASTED) and key != f"total{_WASTED}" and cycles
    )
    return ScheduledComputation(
        id_,
        module.computations.get(id_, ""),
        tuple(instructions),
        statistics.get("total_cycles", 0.0),
        tuple(wasted),
    )


def _number(text: str) -> float:
    """A field's value; 0, as for one that is left out, where it is not a positive number."""
    try:
        number = float(text)
    except ValueError:
        return 0.0
    return number if 0 < number < math.inf else 0.0


def is_dummy(schedule: CompilerSchedule) -> bool:
    """Return whether XLA has no estimates for this GPU, as for an A100: all durations are the same."""
    lasting = [
        each.end - each.start
        for computation in schedule.computations
        for each in computation.instructions
        if each.end - each.start > 1
    ]
    return schedule.cycles_per_microsecond == 1 and bool(lasting) and {*lasting} == {_DUMMY_CYCLES}
