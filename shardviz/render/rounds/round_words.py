"""One round in words: who sends what to whom, and how much that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from shardviz.collectives import Pattern, Sends
from shardviz.errors import plural
from shardviz.render.rounds.buffer_rows import carried
from shardviz.render.units import human_bytes
from shardviz.stepping.collective_run import CollectiveRun

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

LISTED = 8
"""Messages that are named one by one."""


def round_words(walk: CollectiveRun, number: int) -> str:
    """``each sends 1 chunk to the next, 4 B``: the bytes are the most that one device sends."""
    sends = carried(walk, walk.schedule.round(number))
    words = sends_line(sends, walk.schedule.pattern, walk.operation.axes)
    if not len(sends):
        return words
    load = walk.timeline[number - 1]
    senders = len(set(sends.src.tolist()))
    most = "" if load.bytes == load.device_bytes * senders else "at most "
    return f"{words}, {most}{human_bytes(load.device_bytes)}"


def sends_line(sends: Sends, pattern: Pattern, axes: Sequence[str]) -> str:
    """``each sends 1 chunk to the next``, ``pairs 2 apart swap 2 chunks``, ``0→1, 2→3``.

    `axes` names the dimensions of the group. Members, not devices, are numbered.
    """
    if not len(sends):
        return "nothing is sent"
    n = pattern.group_size
    messages, counts = np.unique(sends.src * n + sends.dst, return_counts=True)
    src, dst = np.divmod(messages, n)
    counts = counts * sends.span
    most, least = int(counts.max()), int(counts.min())
    what = plural(most, "chunk") if most == least else f"{least:,} to {most:,} chunks"
    everyone = len(np.unique(src)) == n
    if everyone and len(src) == n * (n - 1) and n > 2:
        return f"each sends {what} to every other"
    if everyone:
        where = _along(src, dst, pattern.dims, axes) or _swapped(src, dst) or _around(src, dst, n)
        if where:
            return where.format(what)
    if len(src) <= LISTED:
        named = ", ".join(f"{a}→{b}" for a, b in zip(src.tolist(), dst.tolist(), strict=True))
        return f"{named}: {what}" + (" each" if len(src) > 1 and most == least else "")
    named = ", ".join(f"{a}→{b}" for a, b in zip(src[:3].tolist(), dst[:3].tolist(), strict=True))
    return f"{named}, … {plural(len(src), 'message')}: {what}" + (" each" if most == least else "")


def _along(src: Ints, dst: Ints, dims: tuple[int, ...], axes: Sequence[str]) -> str:
    """The receivers, if all members send along one of several axes each: ``to the next along X``."""
    if len(dims) < 2:
        return ""
    steps = np.array(np.unravel_index(dst, dims)) - np.array(np.unravel_index(src, dims))
    # As single numbers: whole columns take long to compare.
    different = np.unique(np.ravel_multi_index(tuple(steps % np.array(dims)[:, None]), dims))
    moved = np.array(np.unravel_index(different, dims)).T.tolist()
    if len(moved) * math.prod(dims) != len(src) or any(sum(map(bool, step)) != 1 for step in moved):
        return ""
    found = []
    for step in moved:
        dim = next(i for i, each in enumerate(step) if each)
        found.append(f"{_shift(_signed(step[dim], dims[dim]), dims[dim])} along {axes[dim]}")
    return f"each sends {{}} {_listed(found)}"


def _swapped(src: Ints, dst: Ints) -> str:
    """The partners, if all members swap with one other."""
    apart = set((src ^ dst).tolist())
    if len(apart) != 1:
        return ""
    distance = apart.pop()
    if distance & (distance - 1):
        return f"partners (number xor {distance}) swap {{}}"
    return f"pairs {distance} apart swap {{}}" if len(src) > 2 else "the two swap {}"


def _around(src: Ints, dst: Ints, n: int) -> str:
    """The distance at which all members send, around the whole group."""
    shifts = [_signed(int(shift), n) for shift in np.unique((dst - src) % n)]
    if len(shifts) * n != len(src):
        return ""
    if n > 2 and sorted(shifts) == [-1, 1]:
        return "each sends {} to either neighbour"
    return f"each sends {{}} {_listed([_shift(shift, n) for shift in sorted(shifts, key=abs)])}"


def _signed(shift: int, size: int) -> int:
    """A shift around `size` places the shorter way: from -size / 2 to size / 2."""
    return shift if 2 * shift <= size else shift - size


def _shift(shift: int, size: int) -> str:
    if size == 2:
        return "to the other"
    if abs(shift) == 1:
        return "to the next" if shift > 0 else "to the one before"
    return f"to the one {abs(shift)} {'after' if shift > 0 else 'before'}"


def _listed(words: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``; of more than four the first three and how many."""
    if len(words) > 4:
        return f"{', '.join(words[:3])} and {len(words) - 3} more"
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else words[0]
