"""Profiles as JAX writes them: `XSpace`, a protocol buffer, in files that end in ``.xplane.pb``.

The message is XLA's ``tsl/profiler/protobuf/xplane.proto``: planes (a device, the host) with lines (a thread,
a stream) with events; names of events and of stats stand once in tables of their plane. It is read where it
lies: `jax.profiler.ProfileData`, against which the tests hold this, takes nine times the file's size, and
leaves out the stats of the tables, where every platform has the programs themselves."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import compress, islice, repeat

import numpy as np

from shardviz.profiles.device_trace import SKIPPED, STATS, ProgramRecord, TraceEvent, is_read, program_number
from shardviz.profiles.wire_format import (
    INT64,
    LENGTH,
    LONGER,
    REFERENCE,
    UINT64,
    Bytes,
    event_groups,
    fields,
    find,
    signed,
    text,
    varint,
)

Stat = str | int | float
_Events = tuple[list[int], list[int], list[int], list[Mapping[str, Stat]]]
"""The numbers of their names, when they start and end in picoseconds, and their stats."""
_PLANES, _HOSTNAMES = 1, 4
_PLANE_NAME, _LINES, _EVENT_NAMES, _STAT_NAMES, _PLANE_STATS = 2, 3, 4, 5, 6
_LINE_NAME, _TIMESTAMP_NS, _EVENTS = 2, 3, 4
_METADATA_NAME, _METADATA_STATS = 2, 5
_EVENTS_KEY = _EVENTS << 3 | LENGTH
_ID, _OFFSET, _DURATION, _STATS = 1, 2, 3, 4
_DOUBLE, _STRING, _BYTES = 2, 5, 6
"""The fields of a stat's value that are not whole numbers."""
AT_ONCE = 32768
"""Events that are read together."""
PROTOS = "/host:metadata"
"""The plane of the programs, each an event's metadata with the stat "Hlo Proto"."""
_DEVICE_ASSIGNMENT, _COMPUTATION_DEVICES = 15, 3
"""`HloModuleProto.device_assignment` and, in it, the devices of each partition, one for each replica."""


@dataclass
class _Plane:
    """A plane's tables, where its lines are, and where it stops."""

    stop: int
    name: str = ""
    lines: list[tuple[int, int]] = field(default_factory=list)
    events: dict[int, tuple[int, int]] = field(default_factory=dict)
    stats: dict[int, str] = field(default_factory=dict)
    own_stats: list[tuple[int, int]] = field(default_factory=list)


def xplane_events(data: Bytes, on_progress: Callable[[int], None]) -> Iterator[TraceEvent]:
    """The events of a profile that say something of devices; progress is told in bytes. Raises `ValueError`
    for bytes that are not such a message, or that break off."""
    for plane in _planes(data):
        if plane.name.startswith(("/host:", "/device:")) and plane.name != PROTOS:
            yield from _events(data, plane, on_progress)
        on_progress(plane.stop)


def programs(data: Bytes) -> list[ProgramRecord]:
    """The programs that a profile brings with it; none where it was taken without them."""
    records = []
    for plane in (plane for plane in _planes(data) if plane.name == PROTOS):
        for key, (first, last) in plane.events.items():
            # ``jit_step(12)``
            name, _, number = _string(data, first, last, _METADATA_NAME).removesuffix(")").rpartition("(")
            program_id = program_number(int(number) if number.lstrip("-").isdecimal() else key)
            for field_number, begin, end in fields(data, first, last):
                is_stat = field_number == _METADATA_STATS
                if is_stat and (hlo := _message(data, begin, end, plane, "Hlo Proto")):
                    module = find(data, *hlo, 1)  # HloProto.hlo_module
                    if proto := data[slice(*module)] if module else b"":
                        records.append(ProgramRecord(name, program_id, proto, module_devices(proto)))
    return records


def device_ids(data: Bytes) -> dict[str, int]:
    """The numbers of devices among those of all hosts, by the names of their planes, of TPUs alone."""
    ids = {}
    for plane in _planes(data):
        for first, last in plane.own_stats:
            # A message of XLA's ``steps_db.proto``, and in it the number among the devices of all hosts.
            if details := _message(data, first, last, plane, "core_details"):
                ids[plane.name] = _number(data, *details, 6)
    return ids


def hostname(data: Bytes) -> str:
    """The machine on which it was taken, "" where it does not say."""
    return _string(data, 0, len(data), _HOSTNAMES)


def _planes(data: Bytes) -> Iterator[_Plane]:
    for field_number, start, stop in fields(data, 0, len(data)):
        if field_number != _PLANES:
            continue
        plane = _Plane(stop)
        for number, begin, end in fields(data, start, stop):
            if number == _PLANE_NAME:
                plane.name = text(data, begin, end)
            elif number == _LINES:
                plane.lines.append((begin, end))
            elif number == _PLANE_STATS:
                plane.own_stats.append((begin, end))
            elif number in (_EVENT_NAMES, _STAT_NAMES):
                # An entry of a map: its key and its value.
                key, value = _number(data, begin, end, 1), find(data, begin, end, 2) or (end, end)
                if number == _EVENT_NAMES:
                    plane.events[key] = value
                else:
                    plane.stats[key] = _string(data, *value, _METADATA_NAME)
        yield plane


def _string(data: Bytes, start: int, stop: int, number: int) -> str:
    """The string in a field, "" where it is left out."""
    span = find(data, start, stop, number)
    return text(data, *span) if span else ""


def _number(data: Bytes, start: int, stop: int, number: int) -> int:
    """The number in a field; one that is 0, as that of the first device, is left out."""
    span = find(data, start, stop, number)
    return varint(data, span[0])[0] if span else 0


def _message(data: Bytes, start: int, stop: int, plane: _Plane, name: str) -> tuple[int, int] | None:
    """Where the message in a stat of this name is, None where it is another stat."""
    is_other = plane.stats.get(_number(data, start, stop, 1), "") != name
    return None if is_other else find(data, start, stop, _BYTES) or (stop, stop)


def with_devices(text: str, device_ids: tuple[tuple[int, ...], ...]) -> str:
    """A module's text with the number of its devices in the header: a serialized module has it elsewhere."""
    head, newline, rest = text.partition("\n")
    partitions = len(device_ids[0]) if device_ids else 0
    for key, count in (("replica_count", len(device_ids)), ("num_partitions", partitions)):
        if count > 1 and f"{key}=" not in head:
            head += f", {key}={count}"
    return head + newline + rest


def module_devices(proto: bytes) -> tuple[tuple[int, ...], ...]:
    """The devices of a `HloModuleProto`, a row for each replica with one for each partition."""
    columns: list[list[int]] = []
    for number, start, stop in fields(proto, 0, len(proto)):
        if number != _DEVICE_ASSIGNMENT:
            continue
        for part, first, last in fields(proto, start, stop):
            if part == _COMPUTATION_DEVICES:
                columns.append([])
                for _, at, end in fields(proto, first, last):
                    while at < end:
                        device, at = varint(proto, at)
                        columns[-1].append(device)
    return tuple(zip(*columns, strict=False))


def _events(data: Bytes, plane: _Plane, on_progress: Callable[[int], None]) -> Iterator[TraceEvent]:
    names = {key: _string(data, *value, _METADATA_NAME) for key, value in plane.events.items()}
    reader = _EventReader(plane)
    for key, (start, stop) in plane.events.items():
        if not names[key].startswith(SKIPPED):
            stats = [data[a:b] for number, a, b in fields(data, start, stop) if number == _METADATA_STATS]
            reader.of_all[key] = dict(filter(None, map(reader.stat, stats)))
    is_host = plane.name.startswith("/host:")
    for start, stop in plane.lines:
        line, begin = _line_head(data, start, stop)
        if not is_read(plane.name, line):
            continue
        places = _event_places(data, start, stop)
        while piece := [*islice(places, AT_ONCE)]:
            for keys, starts, ends, said in reader.events(data, piece, begin):
                called = [names[key] for key in keys]
                events = map(partial(TraceEvent, plane.name, line), called, starts, ends, said)
                yield from compress(events, said) if is_host else events
            on_progress(piece[-1][1])
        on_progress(stop)


def _event_places(data: Bytes, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Where each event of a line starts and stops. Nearly all of a line are events of less than 128 bytes."""
    at = start
    while at < stop:
        if data[at] == _EVENTS_KEY and at + 1 < stop and (size := data[at + 1]) < 128:
            at += 2
            after = at + size
            if after > stop:
                raise ValueError(LONGER)
            yield at, after
        else:
            number, begin, after = next(fields(data, at, stop))
            if number == _EVENTS:
                yield begin, after
        at = after


def _line_head(data: Bytes, start: int, stop: int) -> tuple[str, int]:
    """A line's name, and the picoseconds at which its clock begins: they stand before its events."""
    name, begin = "", 0
    for number, at, after in fields(data, start, stop):
        if number >= _EVENTS:
            break
        if number == _LINE_NAME:
            name = text(data, at, after)
        elif number == _TIMESTAMP_NS:
            begin = signed(varint(data, at)[0]) * 1000
    return name, begin


class _EventReader:
    """Reads the events of a plane, those that are written as XLA does together, the others one by one;
    `of_all` has the stats that all events of a name share."""

    def __init__(self, plane: _Plane) -> None:
        self.of_all: dict[int, dict[str, Stat]] = {}
        self._wanted = {key: name for key, name in plane.stats.items() if name in STATS}
        self._references = plane.stats

    def events(self, data: Bytes, places: Sequence[tuple[int, int]], begin: int) -> Iterator[_Events]:
        """Those of the events at these places whose names say something, in any order."""
        first = places[0][0]
        starts, stops = ([position - first for position in column] for column in zip(*places, strict=True))
        piece = data[first : first + stops[-1]]
        names = np.fromiter(self.of_all, np.uint64, len(self.of_all))
        groups, others = event_groups(piece, starts, stops, names, [*self._wanted], begin)
        has_common = any(self.of_all.values())
        for ids, begins, ends, given in groups:
            labels = [self._wanted[stat] for stat, _ in given]
            columns = [
                [self._references.get(value, "") for value in column] if field == REFERENCE else column
                for (_, field), column in given.items()
            ]
            rows = zip(*columns, strict=True) if columns else repeat((), len(ids))
            stats: list[Mapping[str, Stat]] = [dict(zip(labels, row, strict=True)) for row in rows]
            if has_common:
                stats = [
                    {**self.of_all[key], **own} if own else self.of_all[key]
                    for key, own in zip(ids, stats, strict=True)
                ]
            yield ids, begins, ends, stats
        for number in others:
            yield from self._event(piece, starts[number], stops[number], begin)

    def _event(self, data: bytes, start: int, stop: int, begin: int) -> Iterator[_Events]:
        """One event; none where its name says nothing."""
        key = offset = duration = 0
        own: dict[str, Stat] = {}
        for number, at, after in fields(data, start, stop):
            if number == _STATS:
                pair = self.stat(data[at:after])
                own |= (pair,) if pair else ()
            elif number == _ID:
                key = varint(data, at)[0]
            elif number == _OFFSET:
                offset = signed(varint(data, at)[0])
            elif number == _DURATION:
                duration = signed(varint(data, at)[0])
        if key in self.of_all:
            begin += offset
            yield [key], [begin], [begin + max(duration, 0)], [{**self.of_all[key], **own}]

    def stat(self, data: bytes) -> tuple[str, Stat] | None:
        """A stat's name and value; None for one that is not wanted."""
        name = None
        for number, start, stop in fields(data, 0, len(data)):
            if number == 1:
                name = self._wanted.get(varint(data, start)[0])
            if name is None:
                return None
            if number == _DOUBLE:
                return name, float(struct.unpack("<d", data[start:stop])[0])
            if number in (UINT64, INT64, REFERENCE):
                value = varint(data, start)[0]
                if number == REFERENCE:
                    return name, self._references.get(value, "")
                return name, value if number == UINT64 else signed(value)
            if number == _STRING:
                return name, text(data, start, stop)
        return None
