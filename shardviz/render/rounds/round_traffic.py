"""The traffic of one round: from and to every member, over every link, and in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from rich.text import Text

from shardviz.collectives.schedule import Pattern, Sends
from shardviz.collectives.values import Bools, Ints
from shardviz.errors import joined, plural
from shardviz.hardware.routes import RouteSegment, route_segments
from shardviz.hardware.topology import Switch, Torus
from shardviz.render.lines import GAP, bar
from shardviz.stepping.collective_run import CollectiveRun
from shardviz.units import human_bytes

MAX_DRAWN = 32
"""Links, and rounds, of which each link's bytes are drawn."""
LONGEST = len("1.33 MiB")
"""Columns of a number that changes from round to round."""
MAX_FOLLOWED = 2**15
"""Messages between others than neighbours of which every link tells what they carry; of more none does."""


@dataclass(frozen=True)
class Moves:
    """Entry k are the `span` consecutive chunks from `first[k]` on, modulo all `chunks`, which go to or come
    from member `others[k]`."""

    first: list[int]
    others: list[int]
    span: int
    chunks: int

    def __len__(self) -> int:
        return len(self.first)

    @property
    def listed(self) -> list[int]:
        if self.span == 1:
            return list(dict.fromkeys(self.first))
        if len(self.first) == 1 and self.first[0] + self.span <= self.chunks:
            return list(range(self.first[0], self.first[0] + self.span))
        every = ((first + step) % self.chunks for first in self.first for step in range(self.span))
        return list(dict.fromkeys(every))


class RoundTraffic:
    """Round `number` of a run, of which 0 moves nothing; empty chunks are left out. Messages take the ways of
    `hardware.routes`. The switch is the member after the last."""

    def __init__(self, run: CollectiveRun, number: int) -> None:
        self._topology = run.links.topology.flat
        self._size = run.schedule.pattern.group_size
        self._all = run.schedule.chunks
        nothing = np.zeros(0, dtype=np.int64)
        self._sends = Sends(nothing, nothing, nothing, nothing.astype(bool))
        if number:
            self._sends = carried(run, run.schedule.round(number))
        self.chunks = cache(self._chunks)

    def sent(self, member: int) -> Moves:
        return Moves(*self._sent_by(member), self._sends.span, self._all)

    def received(self, member: int) -> Moves:
        return Moves(*self._received_by(member), self._sends.span, self._all)

    def _chunks(self, origin: int, target: int) -> list[int]:
        """The chunks on the link from one member to its neighbour; none where messages are too many."""
        if isinstance(self._topology, Switch):
            return (self.sent(origin) if target == self._size else self.received(target)).listed
        if self._is_direct:
            chunks, others = self._sent_by(origin)
            here = [chunk for chunk, other in zip(chunks, others, strict=True) if other == target]
        elif len(self._sends) > MAX_FOLLOWED:
            return []
        else:
            here = self._sends.chunk[self._on(origin, target)].tolist()
        return Moves(here, [target] * len(here), self._sends.span, self._all).listed

    @cached_property
    def _sent_by(self) -> LookUp:
        return _by_member(self._sends.src, self._sends.dst, self._sends.chunk, self._size)

    @cached_property
    def _received_by(self) -> LookUp:
        return _by_member(self._sends.dst, self._sends.src, self._sends.chunk, self._size)

    @cached_property
    def _segments(self) -> dict[int, RouteSegment]:
        assert isinstance(self._topology, Torus)
        return {part.axis: part for part in route_segments(self._topology, self._sends.src, self._sends.dst)}

    @cached_property
    def _is_direct(self) -> bool:
        hops = [abs(part.hops) for part in self._segments.values()]
        return not hops or bool((np.sum(hops, axis=0) == 1).all())

    def _on(self, origin: int, target: int) -> Bools:
        """A flag for each message, True if it goes over the link of two neighbours on a torus."""
        assert isinstance(self._topology, Torus)
        (link,) = route_segments(self._topology, np.array([origin]), np.array([target]))
        part = self._segments.get(link.axis)
        if part is None:
            return np.zeros(len(self._sends), dtype=bool)
        passed = (part.begin - link.begin) * -link.hops % self._topology.dims[link.axis]
        on_link: Bools = (part.outer == link.outer) & (part.inner == link.inner)
        return on_link & (passed < part.hops * link.hops)


LookUp = Callable[[int], tuple[list[int], list[int]]]
"""The chunks of a member in a round, and whom each goes to or comes from."""


def _by_member(members: Ints, others: Ints, chunks: Ints, size: int) -> LookUp:
    first = np.zeros(size + 1, dtype=np.int64)
    first[1:] = np.bincount(members, minlength=size).cumsum()
    # Numbers of two bytes, which most groups have, are sorted by their digits.
    order = np.argsort(members.astype(np.min_scalar_type(size - 1)), kind="stable")
    chunks, others = chunks[order], others[order]

    def of(member: int) -> tuple[list[int], list[int]]:
        mine = slice(first[member], first[member + 1])
        return chunks[mine].tolist(), others[mine].tolist()

    return of


def empty_chunks(run: CollectiveRun) -> Bools | None:
    """A flag for each chunk, True if it is empty; None where none is, and where all are."""
    if isinstance(run.chunk_bytes, int):
        return None
    empty = run.chunk_bytes == 0
    return empty if empty.any() and not empty.all() else None


def carried(run: CollectiveRun, sends: Sends) -> Sends:
    """The sends of a round without those of empty chunks."""
    empty = empty_chunks(run)
    if empty is None:
        return sends
    sends = sends.expanded(run.schedule.chunks)
    kept = ~empty[sends.chunk]
    return Sends(sends.src[kept], sends.dst[kept], sends.chunk[kept], sends.reduce[kept])


def link_lines(run: CollectiveRun, group: int, number: int, width: int) -> list[Text]:
    """``links 0→1 ████████ 4 MiB``: a round's bytes on each link, with a bar; nothing for many links."""
    links, rounds = run.links.topology.links, run.schedule.rounds
    if not 0 < links <= MAX_DRAWN or not 0 < rounds <= MAX_DRAWN:
        return []
    named = [*(str(run.mesh.device_id(position)) for position in run.groups[group]), "switch"]
    loads = [run.timeline.link_bytes(round_number).tolist() for round_number in range(1, rounds + 1)]
    most = max(map(max, loads))
    cells = []
    for link in range(links):
        ends = "→".join(named[min(node, len(named) - 1)] for node in run.links.topology.ends(link))
        size = loads[number - 1][link] if number else 0
        words = human_bytes(size).rjust(LONGEST) if size else ""
        drawn = bar(size, most, 8).ljust(8, "·")
        cells.append(f"{ends} {drawn} {words}".ljust(len(ends) + 8 + LONGEST + 2))
    longest = max(map(len, cells))
    a_line = max(1, (width - 7 + GAP) // (longest + GAP))
    lines = [Text.assemble((f"{'' if start else 'links':7}", "dim")) for start in range(0, links, a_line)]
    for number, cell in enumerate(cells):
        lines[number // a_line].append(cell.ljust(longest + GAP))
    return lines


def round_words(run: CollectiveRun, number: int) -> str:
    """``each sends 1 chunk to the next, 4 B``: the bytes are the most that one device sends."""
    sends = carried(run, run.schedule.round(number))
    words = sends_line(sends, run.schedule.pattern, run.operation.axes)
    if not len(sends):
        return words
    sent = run.timeline.sent_bytes(number)
    senders, most = len(_different(sends.src)), int(sent.max())
    bound = "" if int(sent.sum()) == most * senders else "at most "
    return f"{words}, {bound}{human_bytes(most)}"


def sends_line(sends: Sends, pattern: Pattern, axes: Sequence[str]) -> str:
    """``each sends 1 chunk to the next``, ``0→1, 2→3``: members, not devices, of a group over `axes`."""
    if not len(sends):
        return "nothing is sent"
    n = pattern.group_size
    messages, counts = np.unique(sends.src * n + sends.dst, return_counts=True)
    src, dst = np.divmod(messages, n)
    counts = counts * sends.span
    most, least = int(counts.max()), int(counts.min())
    what = plural(most, "chunk") if most == least else f"{least:,} to {most:,} chunks"
    everyone = len(_different(src)) == n
    if everyone and len(src) == n * (n - 1) and n > 2:
        return f"each sends {what} to every other"
    if everyone:
        where = _along(src, dst, pattern.dims, axes)
        if not where and len(apart := _different(src ^ dst)) == 1:
            distance = int(apart[0])
            where = f"pairs {distance} apart swap {{}}" if n > 2 else "the two swap {}"
            if distance & (distance - 1):
                where = f"partners (number xor {distance}) swap {{}}"
        if where := where or _around(src, dst, n):
            return where.format(what)
    if len(src) <= 8:
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
    different = _different(np.ravel_multi_index(tuple(steps % np.array(dims)[:, None]), dims))
    moved = np.array(np.unravel_index(different, dims)).T.tolist()
    if len(moved) * math.prod(dims) != len(src) or any(sum(map(bool, step)) != 1 for step in moved):
        return ""
    directions = []
    for step in moved:
        dim = next(i for i, offset in enumerate(step) if offset)
        directions.append(f"{_shift(_signed(step[dim], dims[dim]), dims[dim])} along {axes[dim]}")
    return f"each sends {{}} {_listed(directions)}"


def _around(src: Ints, dst: Ints, n: int) -> str:
    """The distance at which all members send, around the whole group."""
    shifts = [_signed(int(shift), n) for shift in _different((dst - src) % n)]
    if len(shifts) * n != len(src):
        return ""
    if n > 2 and sorted(shifts) == [-1, 1]:
        return "each sends {} to either neighbour"
    return f"each sends {{}} {_listed([_shift(shift, n) for shift in sorted(shifts, key=abs)])}"


def _different(numbers: Ints) -> Ints:
    """The different numbers of many that are small and not below 0: many times faster than NumPy's unique."""
    return np.flatnonzero(np.bincount(numbers))


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
    return joined(words)
