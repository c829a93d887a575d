"""Collectives as they ran: from the last device's arrival to the last one's end, and who was waited for.

A collective's own event is as long as its device waits for the others and then sends: two devices that arrive
at different times tell different times for one transfer. What the links took is the time from the last
arrival to the last end.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from shardviz.hlo.collective import Collective
from shardviz.profiles.device_operations import DeviceStretch
from shardviz.profiles.device_trace import DeviceTrace
from shardviz.profiles.intervals import PICO, Covered
from shardviz.profiles.joined_program import InstructionFacts, JoinedProgram
from shardviz.profiles.trace_event import Program


@dataclass(frozen=True)
class CollectiveTiming:
    """A collective's instruction, measured over all its runs; times in seconds, of one run.

    `seconds` is the median from the last arrival to the last end, `least` and `most` the extremes; `waited`
    the mean for which a device waited for the last to arrive, `exposed` the mean in which it computed nothing
    meanwhile. `runs` counts all runs of a group, and `groups` how many groups ran it at a time. `collective`
    is the program's, with axes, bytes and source, None where there is no text.
    `predicted` are seconds of one run on the machine that was named.
    `last` is the device that was the last one most often, in `last_share` of the runs.
    """

    name: str
    op: str
    module: str
    seconds: float
    least: float
    most: float
    waited: float
    exposed: float
    runs: int
    groups: int
    last: str
    last_share: float
    collective: Collective | None = None
    predicted: float | None = None

    @property
    def axes(self) -> tuple[str, ...]:
        """The mesh axes along which it goes."""
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
    """A device for which others waited at a collective: in `times` of `runs`, `seconds` in all of them, and
    of all devices that waited."""

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


@dataclass
class _Found:
    """The runs of one collective."""

    name: str
    program: Program
    fact: InstructionFacts
    group_ids: Mapping[int, int]
    """The number of the group that each device is in; where there is none, all are in one."""
    seconds: list[int] = field(default_factory=list)
    waited: int = 0
    exposed: int = 0
    events: int = 0
    groups: set[tuple[str, ...]] = field(default_factory=set)
    last: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """By device, for how long others waited in each run in which it was the last."""

    def add(self, group: Sequence[_Arrival]) -> None:
        """Count a run of one group."""
        late = max(group, key=lambda each: each.start)
        waits = [late.start - each.start for each in group]
        self.seconds.append(max(max(each.end for each in group) - late.start, 0))
        self.waited += sum(waits)
        self.exposed += sum(each.exposed for each in group)
        self.events += len(group)
        self.groups.add(tuple(each.device.name for each in group))
        if len(group) > 1:
            self.last[late.device.name].append(sum(waits))


def collective_timings(
    devices: Sequence[DeviceStretch], programs: Mapping[Program, JoinedProgram]
) -> tuple[tuple[CollectiveTiming, ...], tuple[Straggler, ...]]:
    """The collectives by the time that they leave exposed, and those who were waited for, the most first."""
    found: dict[tuple[str, Program], _Found] = {}
    traces = [each.device.trace for each in devices]
    for key, fact, arrivals in _runs(devices):
        if key not in found:
            found[key] = _Found(*key, fact, _group_ids(fact.collective, programs.get(key[1]), traces))
        each = found[key]
        groups: defaultdict[int, list[_Arrival]] = defaultdict(list)
        for arrival in arrivals:
            number = arrival.device.number
            groups[each.group_ids.get(number, ~number if each.group_ids else 0)].append(arrival)
        for group in groups.values():
            each.add(group)
    timings, stragglers = [], []
    for each in found.values():
        program = programs.get(each.program)
        is_priced = program is not None and program.machine is not None and each.fact.timed is not None
        timings.append(_timing(each, each.fact.timed.seconds if is_priced and each.fact.timed else None))
        for device, waits in each.last.items():
            stragglers.append(Straggler(device, each.name, len(waits), len(each.seconds), sum(waits) * PICO))
    timings.sort(key=lambda each: (-each.exposed * each.runs, each.name))
    stragglers.sort(key=lambda each: -each.seconds)
    return tuple(timings), tuple(each for each in stragglers if each.seconds > 0)


def _timing(found: _Found, predicted: float | None) -> CollectiveTiming:
    runs = len(found.seconds)
    last = max(found.last, key=lambda device: len(found.last[device]), default="")
    return CollectiveTiming(
        found.name,
        found.fact.op,
        found.program[0],
        median(found.seconds) * PICO,
        min(found.seconds) * PICO,
        max(found.seconds) * PICO,
        found.waited * PICO / found.events,
        found.exposed * PICO / found.events,
        runs,
        len(found.groups),
        last,
        len(found.last[last]) / runs if last else 0.0,
        found.fact.collective,
        predicted,
    )


def _runs(
    devices: Sequence[DeviceStretch],
) -> Iterator[tuple[tuple[str, Program], InstructionFacts, list[_Arrival]]]:
    """Each run of each collective, with all devices that took part in it.

    In a loop it is an instruction's next event in the same run of the program.
    """
    found: defaultdict[tuple[str, str, Program, int, int], list[_Arrival]] = defaultdict(list)
    facts: dict[tuple[str, Program], InstructionFacts] = {}
    for stretch in devices:
        trace, computed = stretch.device.trace, Covered(stretch.compute)
        seen: Counter[tuple[int, int]] = Counter()
        for each in sorted(stretch.transfers):
            fact = stretch.device.facts[each.instruction]
            if not fact.is_communication:
                continue
            traced = trace.instruction_table[each.instruction]
            key = traced.name, traced.program
            facts.setdefault(key, fact)
            number = seen[each.instruction, each.run]
            seen[each.instruction, each.run] += 1
            exposed = each.end - each.start - computed.within(each.start, each.end)
            arrival = _Arrival(trace, each.start, each.end, exposed)
            found[trace.host, *key, each.run, number].append(arrival)
    for (_, name, program, _, _), arrivals in found.items():
        yield (name, program), facts[name, program], arrivals


def _group_ids(
    collective: Collective | None, program: JoinedProgram | None, traces: Sequence[DeviceTrace]
) -> dict[int, int]:
    """The number of the group that each device is in; nothing where all are in one, or nobody knows."""
    if collective is None or collective.group_count < 2 or collective.op in ("send", "recv"):
        return {}
    if collective.groups is None or len({(each.kind, each.number) for each in traces}) < len(traces):
        # Hosts that count their devices from 0 do not tell who is in a group: then none waits for another.
        return {each.number: each.number for each in traces}
    mesh = None if program is None else program.module.mesh
    # Of a mesh with an order of its own the groups are ids already, else positions.
    ids = () if program is None or (mesh and mesh.device_order) else program.device_ids
    is_permute = collective.op == "collective-permute"
    groups = _joined(collective.groups) if is_permute else collective.groups
    return {
        ids[position] if position < len(ids) else position: number
        for number, group in enumerate(groups)
        for position in group
    }


def _joined(pairs: Sequence[tuple[int, ...]]) -> list[set[int]]:
    """The devices that pairs join, such as those of each ring."""
    found: dict[int, set[int]] = {}
    for pair in pairs:
        joined = set(pair).union(*(found[device] for device in pair if device in found))
        found |= dict.fromkeys(joined, joined)
    return list({id(each): each for each in found.values()}.values())
