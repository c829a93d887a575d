"""Traces of a device that are written down: operations as (instruction, start, end, run)."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace

from shardviz.profiles.device_trace import DeviceTrace, ProgramRun, TracedInstruction

Operation = tuple[str, int, int, int]


def device(
    operations: Sequence[Operation], number: int = 0, kind: str = "TPU", asynchronous: Sequence[str] = ()
) -> DeviceTrace:
    """A device whose operations run in the runs 0, 1, … of jit_f; those that are `asynchronous` stand on
    XLA's line of such spans."""
    names = [*dict.fromkeys(name for name, *_ in operations)]
    table = [TracedInstruction(name, ("jit_f", 1), is_async=name in asynchronous) for name in names]
    runs = range(max((run for *_, run in operations), default=0) + 1)
    return DeviceTrace(
        kind,
        number,
        "",
        array("q", [start for _, start, _, _ in operations]),
        array("q", [end for _, _, end, _ in operations]),
        array("l", [names.index(name) for name, *_ in operations]),
        array("l", [run for *_, run in operations]),
        table,
        [ProgramRun(("jit_f", 1), 40 + run) for run in runs],
    )


def on_host(trace: DeviceTrace, host: str) -> DeviceTrace:
    """The same device on another host."""
    return replace(trace, host=host)
