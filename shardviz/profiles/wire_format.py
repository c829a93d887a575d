"""The fields of a protocol buffer (https://protobuf.dev/programming-guides/encoding), as they stand in its
bytes; those of thousands of events of a profile at once.

An event is a message with the number of its name, its offset and its duration, which are left out where they
are 0, and its stats, each a message of the stat's number and a value. A profile has tens of millions: numpy
reads a field of all of them together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from mmap import mmap

import numpy as np
from numpy.typing import NDArray

Bytes = bytes | mmap
"""A message, or a file of one: parts of both are `bytes`."""
LONGER = "a field that is longer than its message"
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
"""Wire types; the others are no longer written."""


def varint(data: Bytes, at: int) -> tuple[int, int]:
    """The number at a place, and the place after it. Raises `IndexError` where the bytes end before."""
    byte = data[at]
    if byte < 128:
        return byte, at + 1
    result, shift = byte & 127, 7
    while True:
        at += 1
        byte = data[at]
        result |= (byte & 127) << shift
        if byte < 128:
            return result, at + 1
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def signed(number: int) -> int:
    """A number of 64 bits as an ``int64``, of which the negative ones are written as large ones."""
    return number - (1 << 64) if number >> 63 else number


def fields(data: Bytes, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """The fields between two places: number, start and stop of the value. Raises `ValueError` for others."""
    at = start
    try:
        while at < stop:
            key, at = varint(data, at)
            kind = key & 7
            if kind == LENGTH:
                size, at = varint(data, at)
                after = at + size
            elif kind == VARINT:
                after = varint(data, at)[1]
            elif kind == FIXED64:
                after = at + 8
            elif kind == FIXED32:
                after = at + 4
            else:
                raise ValueError(f"a field of the unknown kind {kind}")
            if after > stop or not key >> 3:
                raise ValueError(LONGER)
            yield key >> 3, at, after
            at = after
    except IndexError:
        raise ValueError("a message that breaks off") from None


def find(data: Bytes, start: int, stop: int, number: int) -> tuple[int, int] | None:
    """Where the value of the first field of a number is, None where there is none."""
    return next(((at, after) for key, at, after in fields(data, start, stop) if key == number), None)


def text(data: Bytes, start: int, stop: int) -> str:
    return data[start:stop].decode(errors="replace")


Numbers = NDArray[np.uint64]
Places = NDArray[np.int64]
ID_KEY, OFFSET_KEY, DURATION_KEY, STATS_KEY = 0x08, 0x10, 0x18, 0x22
"""The keys of an event's fields, numbers 1 to 3 and messages of number 4; of a stat's number the first."""
UINT64, INT64, REFERENCE = 3, 4, 7
"""The fields of a stat's value that are numbers; the last one is that of a string in the plane's table."""


EventGroup = tuple[list[int], list[int], list[int], dict[tuple[int, int], list[int]]]
"""Events that have the same stats: their ids, starts and ends, in picoseconds, and a column for each stat, by
its number and the field of its value."""


def event_groups(
    data: bytes,
    starts: Sequence[int],
    stops: Sequence[int],
    names: Numbers,
    wanted: Sequence[int],
    begin: int,
) -> tuple[list[EventGroup], list[int]]:
    """The events at places of `data` that have one of these `names`, with the stats that are `wanted`; their
    times count from `begin`, in picoseconds. Beside them, by their numbers, those that are written otherwise
    than XLA does: they may be read one by one."""
    # What is past the last event is read, but not used.
    buffer = np.frombuffer(data + bytes(32), np.uint8)
    at, stop = np.array(starts, np.int64), np.array(stops, np.int64)
    is_odd = buffer[at] != ID_KEY
    ids, at = _varints(buffer, at + 1)
    kept = np.flatnonzero(~is_odd & np.isin(ids, names))
    at, stop, ids = at[kept], stop[kept], ids[kept]
    offsets, at = _optional(buffer, at, stop, OFFSET_KEY)
    durations, at = _optional(buffer, at, stop, DURATION_KEY)
    values = {stat: np.zeros(len(kept), np.uint64) for stat in wanted}
    kinds = np.zeros(len(kept), np.int64)
    rest = np.flatnonzero(at < stop)
    while rest.size:
        key_at = at[rest]
        size, stat_at = _varints(buffer, key_at + 1)
        is_stat = (buffer[key_at] == STATS_KEY) & (buffer[stat_at] == ID_KEY)
        if not is_stat.all():
            is_odd[kept[rest[~is_stat]]] = True
            rest, size, stat_at = rest[is_stat], size[is_stat], stat_at[is_stat]
        stats, value_at = _varints(buffer, stat_at + 1)
        kind = _KIND_OF[buffer[value_at]]
        for number, stat in enumerate(wanted):
            of_stat = np.flatnonzero(stats == stat)
            if of_stat.size:
                rows = rest[of_stat]
                values[stat][rows] = _varints(buffer, value_at[of_stat] + 1)[0]
                kinds[rows] |= kind[of_stat] << 2 * number
                is_odd[kept[rows[kind[of_stat] == 0]]] = True
        at[rest] = stat_at + np.minimum(size, len(buffer)).astype(np.int64)
        rest = rest[at[rest] < stop[rest]]
    is_odd[kept[at != stop]] = True
    kinds[is_odd[kept]] = -1
    groups = []
    for code in np.unique(kinds[kinds >= 0]).tolist():
        rows = np.flatnonzero(kinds == code)
        columns = {}
        for number, stat in enumerate(wanted):
            field = _FIELDS[code >> 2 * number & 3]
            if field:
                column = values[stat][rows]
                columns[stat, field] = (column.view(np.int64) if field == INT64 else column).tolist()
        begins = offsets[rows].view(np.int64) + begin
        ends = begins + np.maximum(durations[rows].view(np.int64), 0)
        groups.append((ids[rows].tolist(), begins.tolist(), ends.tolist(), columns))
    return groups, np.flatnonzero(is_odd).tolist()


_FIELDS = (0, UINT64, INT64, REFERENCE)
_KIND_OF = np.zeros(256, np.int64)
_KIND_OF[[field << 3 | VARINT for field in _FIELDS[1:]]] = range(1, len(_FIELDS))


def _varints(buffer: NDArray[np.uint8], at: Places) -> tuple[Numbers, Places]:
    """The numbers at places, and the places after them."""
    byte = buffer[at]
    result, after, shift = (byte & 127).astype(np.uint64), at + 1, 7
    more = np.flatnonzero(byte >= 128)
    while more.size and shift <= 63:
        byte = buffer[after[more]]
        result[more] |= (byte & 127).astype(np.uint64) << np.uint64(shift)
        after[more] += 1
        more, shift = more[byte >= 128], shift + 7
    return result, after


def _optional(buffer: NDArray[np.uint8], at: Places, stop: Places, key: int) -> tuple[Numbers, Places]:
    """The numbers of a field that may be left out, as 0 is."""
    result, after = np.zeros(len(at), np.uint64), at.copy()
    has = np.flatnonzero((at < stop) & (buffer[at] == key))
    result[has], after[has] = _varints(buffer, at[has] + 1)
    return result, after
