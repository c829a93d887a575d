"""Collectives as they ran, and who was waited for. A device's own event is as long as it waits for the others
and then sends: what the links took is the time from the last arrival to the last end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from shardviz.hlo.collective import Collective
from shardviz.hlo.replica_groups import linked
from shardviz.profiles.device_operations import PICO, Covered, DeviceStretch
from shardviz.profiles.device_trace import DeviceTrace, Program
from shardviz.profiles.joined_program import InstructionFacts, JoinedProgram


@dataclass(frozen=True)
class CollectiveTiming:
    """A collective's instruction, measured over all its runs; times in seconds, of one run.

    `seconds` is the median from the last arrival to the last end, `least` and `most` the extremes; `waited`
    the mean for which a device waited for the last to arrive, None where that may be one that is not in the
    profile, and `exposed` the mean in which it computed nothing meanwhile. `runs` counts those of all groups
    together, and `groups` the groups that ran it at a time. `last` was the last device most often, in
    `last_share` of the runs. `predicted` are the seconds of the program's `collective` on the machine."""

    name: str
    op: str
    module: str
    seconds: float
    least: float
    most: float
    waited: float | None
    exposed: float
    runs: int
    groups: int
    last: str
    last_share: float
    collective: Collective | None = None
    predicted: float | None = None

    @property
    def axes(self) -> tuple[str, ...]:
        return () if self.collective is None else self.collective.axes

    @property
    def algbw(self) -> float | None:
        """Bytes per second: the collective's bytes over its time, as nccl-tests count it."""
        return self._rate(0 if self.collective is None else self.collective.bytes)

    @property
    def busbw(self) -> float | None:
        """Bytes per second that a device sends at least, which a link's bandwidth bounds."""
        return self._rate(0 if self.collective is None else self.collective.wire_bytes)

    def _rate(self, size: int) -> float | None:
        return size / self.seconds if size and self.seconds else None


@dataclass(frozen=True)
class Straggler:
    """A device that others waited for at a collective: in `times` of `runs`, `seconds` of all that waited."""

    device: str
    collective: str
    times: int
    runs: int
    seconds: float


class _Arrival(NamedTuple):
    """A device's part in one run of a collective, in picoseconds."""

    device: DeviceTrace
    start: int
    end: int
    exposed: int


_Runs = defaultdict[tuple[str, int, int], list[_Arrival]]
"""Of a collective, those who took part in each run, by host, run of the program, and its number in that."""


def collective_timings(
    devices: Sequence[DeviceStretch], programs: Mapping[Program, JoinedProgram]
) -> tuple[tuple[CollectiveTiming, ...], tuple[Straggler, ...]]:
    """The collectives by the time that they leave exposed, and those who were waited for, the most first."""
    timings, stragglers = [], []
    traces = [device.device.trace for device in devices]
    facts, by_collective = _runs(devices)
    for (name, program), runs in by_collective.items():
        fact, joined = facts[name, program], programs.get(program)
        is_lost = joined is not None and name in joined.lost
        groups_of, is_whole = _groups(fact.collective, joined, traces, is_lost)
        # Those who took part in a run by their groups; where there is none, all are in one.
        in_groups: defaultdict[tuple[object, int], list[_Arrival]] = defaultdict(list)
        for run, arrivals in runs.items():
            for arrival in arrivals:
                in_groups[run, groups_of.get(arrival.device.name, 0)].append(arrival)
        groups = in_groups.values()
        seconds, waits = [], []
        waited_for: defaultdict[str, list[int]] = defaultdict(list)
        for group in groups:
            late = max(group, key=lambda arrival: arrival.start)
            seconds.append(max(max(arrival.end for arrival in group) - late.start, 0))
            waits.append(sum(late.start - arrival.start for arrival in group))
            if len(group) > 1 and is_whole:
                waited_for[late.device.name].append(waits[-1])
        most = max(waited_for, key=lambda device: len(waited_for[device]), default="")
        events = sum(map(len, groups))
        timed = None if joined is None or joined.machine is None else fact.timed
        timings.append(
            CollectiveTiming(
                name,
                fact.op,
                program[0],
                median(seconds) * PICO,
                min(seconds) * PICO,
                max(seconds) * PICO,
                waited=sum(waits) * PICO / events if is_whole else None,
                exposed=sum(arrival.exposed for group in groups for arrival in group) * PICO / events,
                runs=len(groups),
                groups=len({tuple(arrival.device.name for arrival in group) for group in groups}),
                last=most,
                last_share=len(waited_for[most]) / len(groups) if most else 0.0,
                collective=fact.collective,
                predicted=None if timed is None else timed.seconds,
            )
        )
        stragglers += [
            Straggler(device, name, len(waited), len(groups), sum(waited) * PICO)
            for device, waited in waited_for.items()
        ]
    timings.sort(key=lambda timing: (-timing.exposed * timing.runs, timing.name))
    stragglers.sort(key=lambda straggler: -straggler.seconds)
    return tuple(timings), tuple(straggler for straggler in stragglers if straggler.seconds > 0)


def _runs(
    devices: Sequence[DeviceStretch],
) -> tuple[dict[tuple[str, Program], InstructionFacts], dict[tuple[str, Program], _Runs]]:
    """The kind of each collective, and its runs, with all devices that took part in each."""
    by_collective: defaultdict[tuple[str, Program], _Runs] = defaultdict(lambda: defaultdict(list))
    facts: dict[tuple[str, Program], InstructionFacts] = {}
    for stretch in devices:
        trace, computed = stretch.device.trace, Covered(stretch.compute)
        seen: Counter[tuple[int, int]] = Counter()
        for transfer in sorted(stretch.transfers):
            fact = stretch.device.facts[transfer.instruction]
            if not fact.is_communication:
                continue
            traced = trace.instruction_table[transfer.instruction]
            key = traced.name, traced.program
            facts.setdefault(key, fact)
            seen[transfer.instruction, transfer.run] += 1
            number = seen[transfer.instruction, transfer.run]
            exposed = transfer.end - transfer.start - computed.within(transfer.start, transfer.end)
            arrival = _Arrival(trace, transfer.start, transfer.end, exposed)
            by_collective[key][trace.host, transfer.run, number].append(arrival)
    return facts, by_collective


def _groups(
    collective: Collective | None, program: JoinedProgram | None, traces: Sequence[DeviceTrace], is_lost: bool
) -> tuple[dict[str, int], bool]:
    """The number of the group that each device is in, by their names, nothing where all are in one; and True
    where the profile has all devices of these groups. One whose group nobody knows is alone in it."""
    alone = {trace.name: -1 - number for number, trace in enumerate(traces)}
    if collective is None or collective.op in ("send", "recv"):
        return (alone, False) if is_lost else ({}, True)
    if collective.group_count < 2:
        return {}, collective.group_size <= len(traces)
    where = None if collective.groups is None else _device_ids(program, traces)
    if where is None:
        return alone, False
    mesh = None if program is None else program.module.mesh
    # Of a mesh with an order of its own the groups are ids already, else positions.
    ids = () if program is None or (mesh and mesh.device_order) else program.device_ids
    is_permute = collective.op == "collective-permute"
    groups = linked(collective.groups or ()) if is_permute else collective.groups or ()
    numbers = {
        ids[position] if position < len(ids) else position: number
        for number, group in enumerate(groups)
        for position in group
    }
    by_name = {name: numbers.get(device, alone[name]) for name, device in where.items()}
    present = {*by_name.values()}
    return by_name, {device for device, number in numbers.items() if number in present} <= {*where.values()}


def _device_ids(program: JoinedProgram | None, traces: Sequence[DeviceTrace]) -> dict[str, int] | None:
    """JAX's number of each device of a program, by their names; None where nobody knows it: a host counts its
    devices from 0, also where the program has others besides."""
    if program is None:
        return {trace.name: trace.number for trace in traces}
    total = program.module.num_partitions * program.module.replica_count
    wanted = {*program.device_ids} or {*range(total)}
    told = {trace.name: trace.device_id for trace in traces if trace.device_id is not None}
    counted = {trace.name: trace.number for trace in traces} if len(traces) >= total else {}
    for ids in (told, counted):
        if len({*ids.values()}) == len(traces) and {*ids.values()} <= wanted:
            return ids
    return None
