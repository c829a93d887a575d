"""An event of a trace, as every form of trace has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class TraceEvent(NamedTuple):
    """Something that ran.

    `plane` is the device or the host ("/device:TPU:0", "/host:CPU"), `line` a row of it ("XLA Ops", a
    thread). `start` and `end` are picoseconds on one clock for all of a host's devices. `stats` are what the
    profiler says of it, by its names: "hlo_op", "run_id".
    """

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
    """A program that a trace brings with it.

    `program_id` is the number that events know it by, `proto` XLA's serialized `HloModuleProto`, and
    `device_ids` the devices that run it, a row for each replica; nothing where it does not say.
    """

    name: str
    program_id: int
    proto: bytes
    device_ids: tuple[tuple[int, ...], ...] = ()

    @property
    def program(self) -> Program:
        return self.name, self.program_id


STATS = frozenset(
    (
        "hlo_op",
        "hlo_module",
        "hlo_category",
        "program_id",
        "run_id",
        "device_ordinal",
        "step_num",
        "_p",
        "_c",
        "flops",
        "bytes_accessed",
    )
)
"""The stats that are read."""
SKIPPED = ("$", "ThreadpoolListener::", "ThunkExecutor::")
"""What the names of events begin with that say nothing of devices: calls of Python, the threads' own."""


def is_read(plane: str, line: str) -> bool:
    """True for a line that may have something about devices: not one of XLA's views of others. A CPU's
    operations run on any of the host's threads."""
    if plane.startswith("/host:"):
        return True
    if not plane.startswith("/device:"):
        return False
    return line in DEVICE_LINES or line.startswith("Stream #")


DEVICE_LINES = frozenset(("Steps", "XLA Modules", "XLA Ops", "Async XLA Ops"))
