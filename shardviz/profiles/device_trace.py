"""The operations of each device of a trace, on each platform.

- CPU (`jax.profiler` on simulated devices): events on the host's threads that name an ``hlo_op`` and a
  ``device_ordinal``. Some run on after the event: their end is that of the event ``end: NAME``, whose ``_c``
  is their ``_p``.
- TPU: planes ``/device:TPU:N`` with the lines XLA Ops, Async XLA Ops, XLA Modules and Steps (XLA's
  ``tsl/profiler/utils/xplane_schema.cc``). An operation's name is its whole line of HLO.
- GPU: planes ``/device:GPU:N`` with a line for each stream; kernels name the ``hlo_op`` that they are for.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from shardviz.profiles.trace_event import Program, TraceEvent, program_number

_DEVICE = re.compile(r"/device:([A-Z]+):(\d+)$")
_HLO_LINE = re.compile(r"%?([^\s=,(){}]+) = (?:\S.*?) ([a-z][a-z0-9-]*)\(")
_ENDED = re.compile(r"[^%]*%([^\s,(){}]+)")
_MODULE = re.compile(r"(.+)\((-?\d+)\)$")
"""``jit_step(12)``: a module's name and its program's number."""
_KERNEL_OF_NCCL = re.compile(r"nccl", re.IGNORECASE)
_COPY = re.compile(r"[Mm]em(?:cpy|set)")
END = "end: "
"""Before the name of the operation that ends there."""
NO_RUN = -1


class TracedInstruction(NamedTuple):
    """An instruction as a trace names it: its name, its module and its program's number (0: not told).

    `opcode` is HLO's where the trace tells it, else "", and `awaited` the operation that a ``-done`` ends.
    `is_async` marks a span of XLA's line of asynchronous operations, beside which the device does something
    else.
    """

    name: str
    module: str
    program_id: int
    opcode: str = ""
    awaited: str = ""
    is_async: bool = False

    @property
    def program(self) -> Program:
        return self.module, self.program_id


class ProgramRun(NamedTuple):
    """A run of a program on all of a host's devices; `run_id` is None where the trace does not tell runs
    apart."""

    module: str
    program_id: int
    run_id: int | None

    @property
    def program(self) -> Program:
        return self.module, self.program_id


@dataclass(frozen=True)
class DeviceTrace:
    """A device's operations: entry i of `starts`, `ends` (picoseconds), `instructions` and `runs` is one.

    `kind` is "CPU", "TPU" or "GPU" and `number` counts a host's devices of it; `host` is "" for the only one.
    `instruction_table` and `run_table` have what the entries number, the same objects for all devices of a
    host; `NO_RUN` is an operation outside of any. `step_spans` are (number, start, end) where the device's
    own line of steps has them.
    """

    kind: str
    number: int
    host: str
    starts: Sequence[int]
    ends: Sequence[int]
    instructions: Sequence[int]
    runs: Sequence[int]
    instruction_table: Sequence[TracedInstruction]
    run_table: Sequence[ProgramRun]
    step_spans: tuple[tuple[int, int, int], ...] = ()
    steps_of_runs: dict[int, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """``TPU 3``, with its host where there are several."""
        return f"{self.host} {self.kind} {self.number}".lstrip()


@dataclass
class _Columns:
    starts: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q"))
    instructions: array[int] = field(default_factory=lambda: array("l"))
    runs: array[int] = field(default_factory=lambda: array("l"))
    modules: list[tuple[int, int, int]] = field(default_factory=list)
    """Start and end of each run of a module, and the run's number, where the device has a line of them."""
    seen: dict[tuple[str, int], int] = field(default_factory=dict)
    """How many runs of a module without a number there were."""
    steps: list[tuple[int, int, int]] = field(default_factory=list)


class TraceReading:
    """Takes a trace's events one after the other, in any order of lines, and sorts them by device."""

    def __init__(self) -> None:
        self._devices: dict[tuple[str, int], _Columns] = {}
        self._instructions: dict[TracedInstruction, int] = {}
        self._known: dict[tuple[object, ...], int] = {}
        self._known_runs: dict[tuple[object, ...], int] = {}
        """The numbers of instructions and of runs, by what events say of them."""
        self._runs: dict[ProgramRun, int] = {}
        self._begun: dict[int, tuple[_Columns, int]] = {}
        """Operations whose end is another event, by what joins the two."""
        self._ended: dict[int, int] = {}
        self._marks: list[tuple[str, int, int, int]] = []
        """Steps that the user's program marked: the thread, start, end, the step's number."""
        self._launches: list[tuple[str, int, int]] = []
        """Threads and times at which a run was begun, and its run's number."""
        self._lacks_ends = False

    def add(self, event: TraceEvent) -> None:
        """Take an event."""
        if event.plane.startswith("/host:"):
            self._of_host(event)
        elif device := _DEVICE.match(event.plane):
            self._of_device((device[1], int(device[2])), event)

    @property
    def notes(self) -> list[str]:
        """Warnings, a sentence each."""
        found = []
        if self._lacks_ends:
            found.append(
                "this form of trace does not tell when operations end that the CPU runs asynchronously: they "
                "look shorter than they are; the .xplane.pb beside it tells"
            )
        return found

    def devices(self, host: str) -> list[DeviceTrace]:
        """The devices by kind and number. `host` is the name by which they are told from other hosts'."""
        for columns in self._devices.values():
            self._assign_runs(columns)
        instructions, runs = tuple(self._instructions), tuple(self._runs)
        steps = self._steps_of_runs(runs)
        found = []
        for (kind, number), columns in sorted(self._devices.items()):
            marks = columns.steps
            if kind == "GPU" and not marks and all(run.run_id is None for run in runs):
                # No run tells which step began it: what runs while a step lasts is its own.
                marks = [(step, start, end) for _, start, end, step in self._marks]
            marked = tuple(sorted(marks, key=lambda each: each[1]))
            found.append(
                DeviceTrace(
                    kind,
                    number,
                    host,
                    columns.starts,
                    columns.ends,
                    columns.instructions,
                    columns.runs,
                    instructions,
                    runs,
                    marked,
                    steps,
                )
            )
        return found

    def _columns(self, device: tuple[str, int]) -> _Columns:
        found = self._devices.get(device)
        if found is None:
            found = self._devices[device] = _Columns()
        return found

    def _of_host(self, event: TraceEvent) -> None:
        stats = event.stats
        if "hlo_op" in stats:
            columns = self._columns(("CPU", _int(stats.get("device_ordinal"))))
            name, told = stats["hlo_op"], (stats.get("hlo_module", ""), stats.get("program_id"))
            instruction = self._known.get((name, *told))
            if instruction is None:
                traced = TracedInstruction(str(name), str(told[0]), program_number(told[1]))
                instruction = self._known[name, *told] = self._instruction(traced)
            run_id = stats.get("run_id")
            run = self._known_runs.get((run_id, *told))
            if run is None:
                traced_run = ProgramRun(str(told[0]), program_number(told[1]), _optional(run_id))
                run = self._known_runs[run_id, *told] = self._run(traced_run)
            end = event.end
            joined = stats.get("_p")
            if joined is None:
                self._lacks_ends = True
            else:
                other = self._ended.pop(_int(joined), None)
                if other is None:
                    self._begun[_int(joined)] = columns, len(columns.starts)
                else:
                    end = max(end, other)
            _append(columns, event.start, end, instruction, run)
        elif event.name.startswith(END):
            if "_c" not in stats:
                return
            joined = _int(stats["_c"])
            begun = self._begun.pop(joined, None)
            if begun is None:
                self._ended[joined] = event.end
            else:
                columns, place = begun
                columns.ends[place] = max(columns.ends[place], event.end)
        elif "step_num" in stats:
            self._marks.append((event.line, event.start, event.end, _int(stats["step_num"])))
        elif "run_id" in stats:
            self._launches.append((event.line, event.start, _int(stats["run_id"])))

    def _of_device(self, device: tuple[str, int], event: TraceEvent) -> None:
        stats, line = event.stats, event.line
        if line == "Steps":
            number = stats.get("step_num", event.name)
            if str(number).lstrip("-").isdecimal():
                self._columns(device).steps.append((int(number), event.start, event.end))
        elif line == "XLA Modules":
            columns = self._columns(device)
            named = _MODULE.match(event.name)
            module = named[1] if named else event.name
            program = program_number(int(named[2]) if named else stats.get("program_id"))
            run_id = _optional(stats.get("run_id"))
            if run_id is None:
                run_id = columns.seen[module, program] = columns.seen.get((module, program), -1) + 1
            run = self._run(ProgramRun(module, program, run_id))
            columns.modules.append((event.start, event.end, run))
        elif event.end >= event.start:
            self._operation(self._columns(device), event)

    def _operation(self, columns: _Columns, event: TraceEvent) -> None:
        stats = event.stats
        module = str(stats.get("hlo_module", ""))
        key = event.line, event.name, module, (stats.get("hlo_op"), stats.get("program_id"))
        instruction = self._known.get(key)
        if instruction is None:
            instruction = self._known[key] = self._instruction(_of_event(event, module))
        run = NO_RUN
        if module and event.line.startswith("Stream"):
            told = ProgramRun(module, program_number(stats.get("program_id")), _optional(stats.get("run_id")))
            run = self._run(told)
        _append(columns, event.start, event.end, instruction, run)

    def _instruction(self, instruction: TracedInstruction) -> int:
        return self._instructions.setdefault(instruction, len(self._instructions))

    def _run(self, run: ProgramRun) -> int:
        return self._runs.setdefault(run, len(self._runs))

    def _assign_runs(self, columns: _Columns) -> None:
        """Give each operation the run of a module during which it starts, and that one's name, where the
        device has a line of these: its operations name their program by its number alone, or not at all."""
        if not columns.modules:
            return
        modules = sorted(columns.modules)
        begins = [start for start, _, _ in modules]
        runs, table = tuple(self._runs), [*self._instructions]
        changed: dict[tuple[int, Program], int] = {}
        for place, start in enumerate(columns.starts):
            at = bisect_right(begins, start) - 1
            if at < 0 or start >= modules[at][1]:
                continue
            run = columns.runs[place] = modules[at][2]
            module, program_id, _ = runs[run]
            key = columns.instructions[place], (module, program_id)
            number = changed.get(key)
            if number is None:
                whole = table[key[0]]._replace(module=module, program_id=program_id)
                number = changed[key] = self._instruction(whole)
            columns.instructions[place] = number

    def _steps_of_runs(self, runs: Sequence[ProgramRun]) -> dict[int, int]:
        """The step of each run: the one during which it was begun, on the thread that marked the step, or on
        another, where the marking thread has no word of it."""
        by_id = {run.run_id: number for number, run in enumerate(runs) if run.run_id is not None}
        marks = sorted(self._marks, key=lambda each: each[1])
        of_thread = {
            thread: [each for each in marks if each[0] == thread] for thread in {each[0] for each in marks}
        }
        own: dict[int, int] = {}
        other: dict[int, int] = {}
        for thread, time, run_id in self._launches:
            for found, known in ((own, of_thread.get(thread, [])), (other, marks)):
                step = _step_at(known, time)
                if step is not None and run_id in by_id:
                    found[by_id[run_id]] = step
        return other | own


def _step_at(marks: Sequence[tuple[str, int, int, int]], time: int) -> int | None:
    """The step of the last mark that began before a time, if it lasts until then."""
    place = bisect_right(marks, time, key=lambda each: each[1]) - 1
    return marks[place][3] if place >= 0 and time <= marks[place][2] else None


def _append(columns: _Columns, start: int, end: int, instruction: int, run: int) -> None:
    columns.starts.append(start)
    columns.ends.append(end)
    columns.instructions.append(instruction)
    columns.runs.append(run)


def _of_event(event: TraceEvent, module: str) -> TracedInstruction:
    """The instruction of a device's event."""
    stats = event.stats
    program, is_async = program_number(stats.get("program_id")), event.line == "Async XLA Ops"
    line = str(stats.get("long_name", event.name))
    written = _HLO_LINE.match(line)
    if written is not None:
        ended = _ENDED.match(line, written.end()) if written[2].endswith("-done") else None
        awaited = ended[1] if ended else ""
        return TracedInstruction(written[1], module, program, written[2], awaited, is_async)
    if "hlo_op" in stats:
        opcode = "" if not _KERNEL_OF_NCCL.search(event.name) else "nccl"
        return TracedInstruction(str(stats["hlo_op"]), module, program, opcode)
    opcode = str(stats.get("hlo_category", ""))
    if event.line.startswith("Stream"):
        opcode = "nccl" if _KERNEL_OF_NCCL.search(event.name) else "memcpy" if _COPY.match(event.name) else ""
    return TracedInstruction(event.name, module, program, opcode, is_async=is_async)


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def _optional(value: object) -> int | None:
    return value if isinstance(value, int) else None
