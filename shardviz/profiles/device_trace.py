"""The operations of each device of a trace, on each platform.

- CPU (`jax.profiler` on simulated devices): events on the host's threads that name an ``hlo_op`` and a
  ``device_ordinal``. Some run on after the event: their end is that of the event ``end: NAME``, whose ``_c``
  is their ``_p``.
- TPU: planes ``/device:TPU:N`` with the lines XLA Ops, Async XLA Ops, XLA Modules and Steps (XLA's
  ``tsl/profiler/utils/xplane_schema.cc``); some devices lack the second. An operation's name is its whole
  line of HLO. Each device counts its ``run_id`` for itself.
- GPU: planes ``/device:GPU:N`` with a line for each stream; kernels name the ``hlo_op`` that they are for.
  So do the calls of ROCm that launch them, on the host's threads, which have no ``device_ordinal``."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from types import MappingProxyType
from typing import NamedTuple

from shardviz.hlo.replica_groups import GROUPS, LISTED_GROUPS


class TraceEvent(NamedTuple):
    """Something that ran: on a device or the host ("/device:TPU:0", "/host:CPU"), in a `line` of it ("XLA
    Ops", a thread). `start` and `end` are picoseconds on one clock for all of a host's devices; `stats` are
    what the profiler says of it, by its names: "hlo_op", "run_id"."""

    plane: str
    line: str
    name: str
    start: int
    end: int
    stats: Mapping[str, str | int | float]


def program_number(number: object) -> int:
    """A program's number, 0 where none is told: a TPU's has 64 bits, which some stats have with a sign."""
    return number % 2**64 if isinstance(number, int) else 0


Program = tuple[str, int]
"""A program: its module's name and its number."""


class ProgramRecord(NamedTuple):
    """A program that a trace brings with it, by the number that events know it by: XLA's serialized
    `HloModuleProto`, and the devices that run it, a row for each replica; nothing where it does not say."""

    name: str
    program_id: int
    proto: bytes
    device_ids: tuple[tuple[int, ...], ...] = ()

    @property
    def program(self) -> Program:
        return self.name, self.program_id


NUMBERS = frozenset(
    ("program_id", "run_id", "device_ordinal", "step_num", "flops", "bytes_accessed", "_p", "_c")
)
STATS = NUMBERS | {"hlo_op", "hlo_module", "hlo_category"}
"""The stats that are read."""
SKIPPED = ("$", "ThreadpoolListener::", "ThunkExecutor::")
"""What the names of events begin with that say nothing of devices: calls of Python, the threads' own."""


DEVICE_LINES = frozenset(("Steps", "XLA Modules", "XLA Ops", "Async XLA Ops"))


def is_read(plane: str, line: str) -> bool:
    """True for a line that may have something about devices: not one of XLA's views of others. A CPU's
    operations run on any of the host's threads."""
    is_of_device = line in DEVICE_LINES or line.startswith("Stream #")
    return plane.startswith("/host:") or (plane.startswith("/device:") and is_of_device)


_DEVICE = re.compile(r"/device:([A-Z]+):(\d+)$")
_HLO_LINE = re.compile(r"%?([^\s=,(){}]+) = (?:\S.*?) ([a-z][a-z0-9-]*)\(")
_ENDED = re.compile(r"[^%]*%([^\s,(){}]+)")
_MODULE = re.compile(r"(.+)\((-?\d+)\)$")
"""``jit_step(12)``: a module's name and its program's number."""
HOST_COPY, HBM_COPY, PEER_COPY, SOME_COPY = "host-copy", "hbm-copy", "peer-copy", "memcpy"
"""Stand for the opcodes of copies on a GPU's streams, which are not instructions."""
_ON_STREAMS = {
    "nccl": re.compile(r"nccl", re.IGNORECASE),
    HOST_COPY: re.compile(r"^(?:Memcpy(?:H2D|D2H)|Copy(?:HostToDevice|DeviceToHost))"),
    HBM_COPY: re.compile(r"^(?:MemcpyD2D|[Mm]emset|FillBuffer|__amd_rocclr_fillBuffer)"),
    PEER_COPY: re.compile(r"^MemcpyP2P"),
    SOME_COPY: re.compile(r"^(?:[Mm]emcpy|Copy[A-Z]\w*To[A-Z]|__amd_rocclr_copyBuffer)"),
}
"""What runs on a GPU's streams beside XLA's kernels, by how CUPTI and ROCm call it. ROCm calls a copy to
another GPU as it does one within a GPU."""
_REPLICA_GROUPS = re.compile(rf" replica_groups=({LISTED_GROUPS}|{GROUPS})")
NO_RUN = -1


class TracedInstruction(NamedTuple):
    """An instruction as a trace names it. `opcode` is HLO's where the trace tells it, else "", and `awaited`
    the operation that a ``-done`` ends. `is_async` marks a span of XLA's line of asynchronous operations,
    `with_host` a copy from or to the host. `replica_groups` is the attribute of a collective's text."""

    name: str
    program: Program
    opcode: str = ""
    awaited: str = ""
    is_async: bool = False
    replica_groups: str = ""
    with_host: bool = False


class ProgramRun(NamedTuple):
    """A run of a program on all of a host's devices, which `run_id` tells from others: on a TPU by their
    order, elsewhere as the trace numbers them, None where it does not."""

    program: Program
    run_id: int | None


@dataclass
class DeviceTrace:
    """A device's operations: entry i of `starts`, `ends` (picoseconds), `instructions` and `runs` is one; the
    tables have what the entries number (`NO_RUN` is outside of any), the same for all devices of a host.

    `kind` is "CPU", "TPU" or "GPU" and `number` counts a host's devices of it; `host` is "" for the only one.
    `device_id` is the number among the devices of all hosts, None where the trace does not tell. `step_spans`
    are (number, start, end) where the device's own line of steps has them."""

    kind: str
    number: int
    host: str = ""
    starts: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q"))
    instructions: array[int] = field(default_factory=lambda: array("l"))
    runs: array[int] = field(default_factory=lambda: array("l"))
    instruction_table: Sequence[TracedInstruction] = ()
    run_table: Sequence[ProgramRun] = ()
    step_spans: Sequence[tuple[int, int, int]] = ()
    steps_of_runs: dict[int, int] = field(default_factory=dict)
    device_id: int | None = None

    @property
    def name(self) -> str:
        """``TPU 3``, with its host where there are several."""
        return f"{self.host} {self.kind} {self.number}".lstrip()

    def append(self, start: int, end: int, instruction: int, run: int) -> None:
        self.starts.append(start)
        self.ends.append(end)
        self.instructions.append(instruction)
        self.runs.append(run)


class _ModuleRun(NamedTuple):
    """A run of a program on one device, in picoseconds, with the number that the device gives it."""

    start: int
    end: int
    program: Program
    run_id: int | None


_Device = tuple[str, int]
"""Kind and number."""


class TraceReading:
    """Takes a trace's events one after the other, in any order of lines, and sorts them by device."""

    def __init__(self, events: Iterable[TraceEvent]) -> None:
        self._devices: dict[_Device, DeviceTrace] = {}
        # The runs of modules, where the device has a line of them.
        self._modules: defaultdict[_Device, list[_ModuleRun]] = defaultdict(list)
        self._steps: defaultdict[_Device, list[tuple[int, int, int]]] = defaultdict(list)
        self._instructions: dict[TracedInstruction, int] = defaultdict(count().__next__)
        # The numbers of instructions and of runs, by what events say of them.
        self._known: dict[tuple[object, ...], int] = {}
        self._known_runs: dict[tuple[object, ...], int] = {}
        self._runs: dict[ProgramRun, int] = defaultdict(count().__next__)
        # Operations whose end is another event, by what joins the two.
        self._begun: dict[int, tuple[DeviceTrace, int]] = {}
        self._ended: dict[int, int] = {}
        # Steps that the user's program marked: the thread, start, end, the step's number.
        self._marks: list[tuple[str, int, int, int]] = []
        # Times and threads at which a run was begun, its run's number, and the device that counts so.
        self._launches: list[tuple[int, str, int, object]] = []
        # The runs that have a number, on a device and on any (None).
        self._by_number: defaultdict[tuple[object, int], set[int]] = defaultdict(set)
        # True where the CPU's asynchronous operations look shorter than they are.
        self.lacks_ends = False
        for event in events:
            if event.plane.startswith("/host:"):
                self._of_host(event)
            elif device := _DEVICE.match(event.plane):
                self._of_device((device[1], int(device[2])), event)

    def devices(self, host: str, device_ids: Mapping[str, int] = MappingProxyType({})) -> list[DeviceTrace]:
        """The devices by kind and number. `host` is the name by which they are told from other hosts', and
        `device_ids` has the numbers among the devices of all hosts by the names of planes."""
        self._assign_runs()
        steps_of_runs, has_numbers = self._steps_of_runs(), any(run.run_id is not None for run in self._runs)
        for (kind, number), trace in self._devices.items():
            steps = self._steps[kind, number]
            if kind == "GPU" and not steps and not has_numbers:
                # No run tells which step began it: what runs while a step lasts is its own.
                steps = [(step, start, end) for _, start, end, step in self._marks]
            trace.host, trace.device_id = host, device_ids.get(f"/device:{kind}:{number}")
            trace.instruction_table, trace.run_table = tuple(self._instructions), tuple(self._runs)
            trace.step_spans = tuple(sorted(steps, key=lambda span: span[1]))
            trace.steps_of_runs = steps_of_runs
        return [self._devices[device] for device in sorted(self._devices)]

    def _device(self, device: _Device) -> DeviceTrace:
        if device not in self._devices:
            self._devices[device] = DeviceTrace(*device)
        return self._devices[device]

    def _of_host(self, event: TraceEvent) -> None:
        stats = event.stats
        if "hlo_op" in stats and "device_ordinal" in stats:
            trace = self._device(("CPU", _int(stats["device_ordinal"]) or 0))
            name, told = stats["hlo_op"], (stats.get("hlo_module", ""), stats.get("program_id"))
            program, run_id = (str(told[0]), program_number(told[1])), stats.get("run_id")
            instruction = self._known.get((name, *told))
            if instruction is None:
                traced = TracedInstruction(str(name), program)
                instruction = self._known[name, *told] = self._instructions[traced]
            run = self._known_runs.get((run_id, *told))
            if run is None:
                traced_run = ProgramRun(program, _int(run_id))
                run = self._known_runs[run_id, *told] = self._runs[traced_run]
                if traced_run.run_id is not None:
                    self._by_number[None, traced_run.run_id].add(run)
            end = event.end
            joined = _int(stats.get("_p"))
            if joined is None:
                self.lacks_ends = True
            elif joined in self._ended:
                end = max(end, self._ended.pop(joined))
            else:
                self._begun[joined] = trace, len(trace.starts)
            trace.append(event.start, end, instruction, run)
        elif event.name.startswith("end: "):
            joined = _int(stats.get("_c"))
            if joined in self._begun:
                trace, index = self._begun.pop(joined)
                trace.ends[index] = max(trace.ends[index], event.end)
            elif joined is not None:
                self._ended[joined] = event.end
        elif "step_num" in stats:
            self._marks.append((event.line, event.start, event.end, _int(stats["step_num"]) or 0))
        elif "run_id" in stats:
            ordinal = stats.get("device_ordinal")
            self._launches.append((event.start, event.line, _int(stats["run_id"]) or 0, ordinal))

    def _of_device(self, device: _Device, event: TraceEvent) -> None:
        stats, line = event.stats, event.line
        if line == "Steps":
            number = stats.get("step_num", event.name)
            if str(number).lstrip("-").isdecimal():
                self._device(device)
                self._steps[device].append((int(number), event.start, event.end))
        elif line == "XLA Modules":
            self._device(device)
            named = _MODULE.match(event.name)
            number = program_number(int(named[2]) if named else stats.get("program_id"))
            program = (named[1] if named else event.name), number
            run = _ModuleRun(event.start, event.end, program, _int(stats.get("run_id")))
            self._modules[device].append(run)
        elif event.end >= event.start:
            module = str(stats.get("hlo_module", ""))
            key = line, event.name, module, (stats.get("hlo_op"), stats.get("program_id"))
            instruction = self._known.get(key)
            if instruction is None:
                instruction = self._known[key] = self._instructions[_of_event(event, module)]
            run_number = NO_RUN
            if module and line.startswith("Stream"):
                program = module, program_number(stats.get("program_id"))
                run_number = self._runs[ProgramRun(program, _int(stats.get("run_id")))]
            self._device(device).append(event.start, event.end, instruction, run_number)

    def _assign_runs(self) -> None:
        """Give each operation the run of a module during which it starts, and that one's name, where the
        device has a line of these: its operations name their program by its number alone, or not at all."""
        sorted_modules = {device: sorted(modules) for device, modules in self._modules.items()}
        orders = _joined_runs(sorted_modules)
        for device, modules in sorted_modules.items():
            runs = []
            for module, order in zip(modules, orders[device], strict=True):
                runs.append(self._runs[ProgramRun(module.program, order)])
                if module.run_id is not None:
                    self._by_number[None, module.run_id].add(runs[-1])
                    self._by_number[device[1], module.run_id].add(runs[-1])
            trace, table = self._devices[device], [*self._instructions]
            begins = [module.start for module in modules]
            changed: dict[tuple[int, Program], int] = {}
            for index, start in enumerate(trace.starts):
                at = bisect_right(begins, start) - 1
                if at < 0 or start >= modules[at].end:
                    continue
                trace.runs[index] = runs[at]
                key = trace.instructions[index], modules[at].program
                if key not in changed:
                    changed[key] = self._instructions[table[key[0]]._replace(program=key[1])]
                trace.instructions[index] = changed[key]

    def _steps_of_runs(self) -> dict[int, int]:
        """The step of each run: the one during which it was begun, on the thread that marked the step, or on
        another, where the marking thread has no word of it. Events of its end may be in a later step."""
        marks = sorted(self._marks, key=lambda event: event[1])
        of_thread: defaultdict[str, list[tuple[str, int, int, int]]] = defaultdict(list)
        for mark in marks:
            of_thread[mark[0]].append(mark)
        own: dict[int, int] = {}
        other: dict[int, int] = {}
        for time, thread, run_id, ordinal in sorted(self._launches, key=lambda event: event[0]):
            runs = self._by_number.get((ordinal, run_id)) or self._by_number.get((None, run_id), set())
            for step_of, known in ((own, of_thread[thread]), (other, marks)):
                # The last mark that began before, if it lasts until then.
                at = bisect_right(known, time, key=lambda event: event[1]) - 1
                if at >= 0 and time <= known[at][2] and len(runs) == 1:
                    step_of.setdefault(next(iter(runs)), known[at][3])
        return other | own


def _joined_runs(found: Mapping[_Device, Sequence[_ModuleRun]]) -> dict[_Device, list[int]]:
    """The number of each run of a device among its program's, the same on all devices for one launch: each
    device's are shifted against those of the device with most so that runs overlap as long as they can, as a
    profile may begin between their first runs."""
    by_program: defaultdict[Program, defaultdict[_Device, list[int]]] = defaultdict(lambda: defaultdict(list))
    for device, modules in found.items():
        for index, module in enumerate(modules):
            by_program[module.program][device].append(index)
    orders = {device: [0] * len(modules) for device, modules in found.items()}
    for places in by_program.values():
        most = max(places, key=lambda device: len(places[device]))
        reference = [found[most][index] for index in places[most]]
        for device, own in places.items():
            shift = _shift([found[device][index] for index in own], reference)
            for number, index in enumerate(own):
                orders[device][index] = number + shift
    return orders


def _shift(own: Sequence[_ModuleRun], reference: Sequence[_ModuleRun]) -> int:
    """By how many runs a device began later than the reference; 0 where nothing tells."""
    begins = [run.start for run in reference]
    shifts = {0}
    for index in (0, len(own) // 2, len(own) - 1):
        last = bisect_right(begins, own[index].end) - 1 - index
        shifts |= {last, last - 1}

    def overlap(shift: int) -> int:
        first = max(-shift, 0)
        pairs = zip(own[first:], reference[max(shift, 0) :], strict=False)
        return sum(max(min(a.end, b.end) - max(a.start, b.start), 0) for a, b in pairs)

    return max(sorted(shifts, key=abs), key=overlap)


def _of_event(event: TraceEvent, module: str) -> TracedInstruction:
    stats = event.stats
    program, is_async = (module, program_number(stats.get("program_id"))), event.line == "Async XLA Ops"
    line = str(stats.get("long_name", event.name))
    name = str(stats.get("hlo_op", event.name))
    if written := _HLO_LINE.match(line):
        ended = _ENDED.match(line, written.end()) if written[2].endswith("-done") else None
        groups = _REPLICA_GROUPS.search(line, written.end())
        # The memory space of the host in a shape's layout.
        told = is_async, groups[1] if groups else "", re.search(r"[:)]S\(5\)", line) is not None
        return TracedInstruction(written[1], program, written[2], ended[1] if ended else "", *told)
    opcode = "" if "hlo_op" in stats else str(stats.get("hlo_category", ""))
    if event.line.startswith("Stream"):
        opcode = next((what for what, named in _ON_STREAMS.items() if named.search(event.name)), "")
    return TracedInstruction(name, program, opcode, is_async=is_async)


def _int(value: object) -> int | None:
    return value if isinstance(value, int) else None
