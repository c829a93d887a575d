"""The fields of a protocol buffer, as they stand in its bytes.

https://protobuf.dev/programming-guides/encoding: a message is a list of fields, each a key (the field's
number and its wire type) and a value; a message within it is a value with its length before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from mmap import mmap

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
    """The fields between two places: a field's number, where its value starts and where it stops.

    Raises `ValueError` for bytes that are not a message.
    """
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


def text(data: Bytes, start: int, stop: int) -> str:
    """A string between two places."""
    return data[start:stop].decode(errors="replace")
