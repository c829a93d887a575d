"""The steps of a profile: those that the program marked, else the runs of its main program."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from shardviz.profiles.device_trace import NO_RUN, DeviceTrace
from shardviz.profiles.trace_event import Program

StepOf = Callable[[int, int], int | None]
"""The number of the step that a run belongs to, or that a time is in."""


def main_program(devices: Sequence[DeviceTrace]) -> Program | None:
    """The program that runs longest on all devices; None where no operation names its program."""
    found: defaultdict[Program, int] = defaultdict(int)
    for device in devices:
        programs = [each.program if each.module else None for each in device.instruction_table]
        for number, start, end in zip(device.instructions, device.starts, device.ends, strict=True):
            if (program := programs[number]) is not None:
                found[program] += end - start
    return max(found, key=lambda each: found[each], default=None)


def are_marked(devices: Sequence[DeviceTrace]) -> bool:
    """True where the program marked its steps, with `jax.profiler.StepTraceAnnotation`."""
    return any(device.step_spans or device.steps_of_runs for device in devices)


def step_rule(device: DeviceTrace, main: Program | None, marked: bool, runs: Mapping[int, int]) -> StepOf:
    """The rule by which a device's operations belong to steps.

    Without marks each run of the main program is a step, as `runs_in_order` numbers them; where the trace
    does not tell runs apart, all of it is one.
    """
    if device.step_spans:
        begins = [start for _, start, _ in device.step_spans]

        def by_time(_: int, time: int) -> int | None:
            place = bisect_right(begins, time) - 1
            return device.step_spans[place][0] if place >= 0 and time < device.step_spans[place][2] else None

        return by_time
    if marked:
        return lambda run, _: device.steps_of_runs.get(run)
    if main is None:
        return lambda *_: 0
    return lambda run, _: runs.get(run)


def runs_in_order(devices: Sequence[DeviceTrace], main: Program | None) -> dict[str, dict[int, int]]:
    """The runs of a program by host, numbered in the order in which a host's devices begin them.

    A profile may begin when some devices are in a run that others have ended.
    """
    begins: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for device in devices:
        found = begins[device.host]
        for run, start in zip(device.runs, device.starts, strict=True):
            if run != NO_RUN and device.run_table[run].program == main:
                found[run] = min(found.get(run, start), start)
    return {
        host: {run: number for number, run in enumerate(sorted(found, key=found.__getitem__))}
        for host, found in begins.items()
    }
