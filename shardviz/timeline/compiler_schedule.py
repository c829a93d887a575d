"""The simulation that XLA's latency-hiding scheduler leaves of a program: text → instructions with cycles.

The text is a `ScheduleProto` as protobuf prints it: the module as it was before memory-space assignment, and
for each computation that holds asynchronous operations when each instruction starts and ends. libtpu writes
it for ``xla_dump_latency_hiding_schedule``; for GPUs a cycle is 1 µs.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from shardviz.errors import NotationError
from shardviz.hlo.text.opcodes import CONTROL, begins, ends


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
    """A computation that the scheduler simulated, its `instructions` in the order of the schedule. XLA's
    statistics let nothing overlap: `sum_cycles` are those of all instructions, `wasted` by collective
    ("all_gather") those of asynchronous ones."""

    id: int
    name: str
    instructions: tuple[ScheduledInstruction, ...]
    sum_cycles: float
    wasted: tuple[tuple[str, float], ...] = ()

    @property
    def cycles(self) -> float:
        """The length of one run, as it is simulated."""
        return max((instruction.end for instruction in self.instructions), default=self.sum_cycles)

    @property
    def busy_cycles(self) -> float:
        """The length of one run in which nothing is waited for: so a loop's body counts in its parent."""
        return self.sum_cycles - sum(cycles for _, cycles in self.wasted)


@dataclass(frozen=True)
class CompilerSchedule:
    """All that the scheduler simulated, unless the text breaks off (`is_complete`). `entry` is the name of
    the entry computation, "" where the text does not tell, which may be none of the `computations`."""

    computations: tuple[ScheduledComputation, ...]
    cycles_per_microsecond: float
    entry: str = ""
    is_complete: bool = True

    def seconds(self, cycles: float) -> float:
        """The duration of so many cycles."""
        return cycles / self.cycles_per_microsecond * 1e-6


_FIELD = re.compile(r"^ *(?:(\w+): ([^\n]*)|(\w+) \{|(\}))$", re.MULTILINE)
_IN_MODULE = re.compile(
    r"^( {2,6})(entry_computation_name|name|opcode|id|operand_ids|called_computation_ids): ([^\n]+)$",
    re.MULTILINE,
)
"""Fields of the module (indented by 2), of its computations (by 4) and of their instructions (by 6)."""
_SCHEDULES = "computation_schedules"
_WASTED = "_wasted_cycles"


def read_schedule(text: str) -> CompilerSchedule:
    """The schedule in a text that may break off: what is complete of it. Raises `NotationError` for a text
    without any."""
    found = re.search(rf"^{_SCHEDULES} \{{", text, re.MULTILINE)
    if found is None:
        hint = "dump one with xla_dump_latency_hiding_schedule: it has a line computation_schedules {"
        raise NotationError("this is not a schedule of XLA's latency-hiding scheduler", text, 0, hint=hint)
    messages, is_complete = _read_messages(text, found.start())
    # A program that does not fit is scheduled again: the last simulation of a computation counts.
    simulated = {message.get("computation_id", ""): message for message in messages}.values()
    entry, names, instructions = _read_module(text[: found.start()])
    cycles = next(filter(None, (_number(each, "cycles_per_microsecond") for each in simulated)), 1.0)
    computations = tuple(_computation(each, names, instructions) for each in simulated)
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
    for each in simulated.get("instructions", ()):
        number = int(_number(each, "id"))
        start, end = (_number(each, f"{when}_timestamp_cycles") for when in ("start", "end"))
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
                int(_number(each, "memory_usage_after")),
                tuple(int(called) for called in calls if called.isdecimal()),
                tuple(int(operand) for operand in operands if operand.isdecimal()),
            )
        )
    statistics = simulated.get("scheduler_statistics", [{}])[-1]
    wasted = (
        (key.removesuffix(_WASTED), _number(statistics, key))
        for key in statistics
        if key.endswith(_WASTED) and key != f"total{_WASTED}"
    )
    return ScheduledComputation(
        id_,
        names.get(id_, ""),
        tuple(scheduled),
        _number(statistics, "total_cycles"),
        tuple((op, cycles) for op, cycles in wasted if cycles),
    )


def _number(message: dict[str, Any], field: str) -> float:
    """A field's value; 0, as for one that is left out, where it is not a positive number."""
    try:
        number = float(message.get(field, 0.0))
    except ValueError:
        return 0.0
    return number if 0 < number < math.inf else 0.0


def is_dummy(schedule: CompilerSchedule) -> bool:
    """Return whether XLA has no estimates for this GPU, as for an A100: then every operation takes 5,000
    cycles."""
    every = (instruction for computation in schedule.computations for instruction in computation.instructions)
    lasting = {each.end - each.start for each in every if each.end - each.start > 1}
    return schedule.cycles_per_microsecond == 1 and lasting == {5000.0}
