"""The messages of a round and their routes over a torus: shortest paths, one axis after the other, the major
first.

To the device opposite on an even ring a message from an even coordinate goes up, one from an odd coordinate
down, so that both directions carry the same when all devices send."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shardviz.collectives.schedule import Sends
from shardviz.collectives.values import Ints
from shardviz.errors import QuestionError
from shardviz.hardware.topology import Hierarchy, LinkedLevel, Switch, Topology, Torus

MAX_BYTES = 2**62
"""Sums of a round's bytes stay within 64 bits."""


@dataclass(frozen=True)
class Messages:
    """Message k goes from device `src[k]` to `dst[k]` and carries `bytes[k]`."""

    src: Ints
    dst: Ints
    bytes: Ints

    def __len__(self) -> int:
        return len(self.src)

    def same(self, other: Messages) -> bool:
        pairs = ((self.src, other.src), (self.dst, other.dst), (self.bytes, other.bytes))
        return all(np.array_equal(mine, theirs) for mine, theirs in pairs)

    def merged(self) -> Messages:
        """One message for each pair of devices, in the order in which the pairs first occur."""
        pair = self.src * (int(self.dst.max(initial=0)) + 1) + self.dst
        follows = pair[1:] == pair[:-1]
        if follows.any():
            # What stands side by side is merged without sorting: often that is all of it.
            first = np.concatenate(([0], np.flatnonzero(~follows) + 1))
            return Messages(self.src[first], self.dst[first], np.add.reduceat(self.bytes, first)).merged()
        in_order = np.sort(pair)
        if not (in_order[1:] == in_order[:-1]).any():
            return self
        _, first, inverse = np.unique(pair, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        first = first[order]
        return Messages(self.src[first], self.dst[first], sums(rank[inverse], self.bytes, len(first)))


def messages(sends: Sends, chunks: int, chunk_bytes: int | Ints) -> Messages:
    """The message of each entry of a round, data being cut into `chunks` of `chunk_bytes` (one or each). What
    a member sends to itself is left out. Raises `QuestionError` for more bytes than 64 bits can count."""
    largest = int(np.max(chunk_bytes))
    if largest * sends.span * max(len(sends), 1) >= MAX_BYTES:
        problem = f"{len(sends):,} sends of chunks of {largest:,} bytes in one round are too many to count"
        raise QuestionError(problem, "use smaller arrays")
    abroad = sends.src != sends.dst
    src, dst, chunk = sends.src, sends.dst, sends.chunk
    if not abroad.all():
        src, dst, chunk = src[abroad], dst[abroad], chunk[abroad]
    if not isinstance(chunk_bytes, np.ndarray):
        return Messages(src, dst, np.full(len(src), chunk_bytes * sends.span, dtype=np.int64))
    # The sum of the sizes of all chunks before each, for two turns, as the chunks go round.
    before = np.concatenate(([0], np.cumsum(np.tile(chunk_bytes, 2))))
    chunk = chunk % chunks
    return Messages(src, dst, before[chunk + sends.span] - before[chunk])


def sums(place: Ints, weights: Ints, size: int) -> Ints:
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, place, weights)
    return total


class RouteSegment(NamedTuple):
    """The part of all messages' ways that leads along one axis of the torus, one number a message. A message
    enters the axis at the coordinate `begin` of the line (`outer`, `inner`), the numbers of the axes before
    and after it, and makes `hops` hops: above 0 towards larger coordinates, below 0 towards smaller ones."""

    axis: int
    outer: Ints
    inner: Ints
    begin: Ints
    hops: Ints


def route_segments(torus: Torus, src: Ints, dst: Ints) -> tuple[RouteSegment, ...]:
    """The ways of messages from `src` to `dst`: a segment for every axis along which any of them moves."""
    segments = []
    for axis, size in enumerate(torus.dims):
        stride = torus.stride(axis)
        begin, end = src // stride % size, dst // stride % size
        hops = end - begin
        if not hops.any():
            continue
        if torus.is_ring(axis):
            up = hops % size
            goes_up = (2 * up < size) | ((2 * up == size) & (begin % 2 == 0))
            hops = np.where(goes_up, up, up - size)
        # Earlier axes have been passed already, later ones not yet.
        segments.append(RouteSegment(axis, dst // (stride * size), src % stride, begin, hops))
    return tuple(segments)


def links_at(torus: Torus, part: RouteSegment, step: Ints | int) -> Ints:
    up = part.hops > 0
    segments, stride = torus.segments(part.axis), torus.stride(part.axis)
    segment = np.where(up, part.begin + step, part.begin - 1 - step) % segments
    first = np.where(up, torus.first_link(part.axis, True), torus.first_link(part.axis, False))
    link: Ints = first + (part.outer * segments + segment) * stride + part.inner
    return link


def links_in_order(torus: Torus, segments: Iterable[RouteSegment]) -> tuple[Ints, Ints]:
    """The hops of each message, and the links of all their routes, one message after the other."""
    counts = [abs(part.hops) for part in segments]
    hops: Ints = np.sum(counts, axis=0)
    begin = hops.cumsum() - hops
    links: Ints = np.empty(int(hops.sum()), dtype=np.int64)
    for part, count in zip(segments, counts, strict=True):
        for step in range(int(count.max())):
            moving = np.flatnonzero(count > step)
            own = RouteSegment(part.axis, *(column[moving] for column in part[1:]))
            links[begin[moving] + step] = links_at(torus, own, step)
        begin += count
    return hops, links


def messages_by_level(
    levels: Iterable[LinkedLevel], messages: Messages
) -> Iterator[tuple[LinkedLevel, Messages]]:
    """Each level with the messages that it carries between its nodes."""
    left = np.ones(len(messages), dtype=bool)
    for level in levels:
        chosen = left & (messages.src // level.block != messages.dst // level.block)
        left &= ~chosen
        src, dst = messages.src[chosen] // level.shared, messages.dst[chosen] // level.shared
        yield level, Messages(src, dst, messages.bytes[chosen])


def link_loads(topology: Topology, src: Ints, dst: Ints, weights: Ints) -> Ints:
    """The sum of the `weights` (bytes, or ones) of all messages that cross each link."""
    if isinstance(topology, Hierarchy):
        by_level = messages_by_level(topology.levels, Messages(src, dst, weights))
        return np.concatenate(
            [link_loads(level.topology, own.src, own.dst, own.bytes) for level, own in by_level]
        )
    if isinstance(topology, Switch):
        return np.concatenate([sums(device, weights, topology.devices) for device in (src, dst)])
    assert isinstance(topology, Torus)
    return segment_loads(topology, route_segments(topology, src, dst), weights)


def segment_loads(topology: Torus, segments: Iterable[RouteSegment], weights: Ints) -> Ints:
    loads = np.zeros(topology.links, dtype=np.int64)
    for part in segments:
        for up in (True, False):
            first = topology.first_link(part.axis, up)
            loads[first : first + topology.links_along(part.axis)] = _along(topology, part, up, weights)
    return loads


def _along(torus: Torus, part: RouteSegment, up: bool, weights: Ints) -> Ints:
    """Loads of the links of one direction along one axis, in the order of their numbers. A message adds its
    weight where its run of segments begins and takes it back where it ends; the sum up to a segment is its
    load. Runs around a ring go on in a second turn."""
    moving = np.flatnonzero(part.hops > 0 if up else part.hops < 0)
    if not len(moving):
        return np.zeros(1, dtype=np.int64)
    outer, inner, begin, hops = (column[moving] for column in (part.outer, part.inner, part.begin, part.hops))
    segments, stride = torus.segments(part.axis), torus.stride(part.axis)
    start = begin if up else (begin + hops) % torus.dims[part.axis]
    lines, width = torus.links_along(part.axis) // segments, 2 * segments + 1
    indices = (outer * stride + inner) * width + start
    # One-dimensional places: NumPy adds at those many times faster.
    steps = sums(indices, weights[moving], lines * width)
    np.subtract.at(steps, indices + abs(hops), weights[moving])
    turns = steps.reshape(lines, width).cumsum(axis=1)
    total = turns[:, :segments] + turns[:, segments : 2 * segments]
    in_order: Ints = total.reshape(-1, stride, segments).transpose(0, 2, 1).reshape(-1)
    return in_order
