"""The way of every message over a torus: a shortest path, one axis after the other, the major axis first.

On a ring of even size, both ways to the device opposite are shortest: a message from an even coordinate
goes up, one from an odd coordinate down, so that both directions carry the same when all devices send.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shardviz.hardware.messages import sums
from shardviz.hardware.topology import Switch, Topology, Torus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shardviz.collectives.schedule import Bools, Ints


@dataclass(frozen=True)
class RouteSegment:
    """The part of all messages' ways that leads along one axis of the torus, one number a message.

    A message enters the axis at the coordinate `begin` of the line (`outer`, `inner`), the numbers of the
    axes before and after it, and makes `hops` hops: above 0 towards larger coordinates, below 0 towards
    smaller ones, 0 where it does not move along this axis.
    """

    axis: int
    outer: Ints
    inner: Ints
    begin: Ints
    hops: Ints

    def only(self, chosen: Bools) -> RouteSegment:
        """The leg of some of the messages."""
        kept = (each[chosen] for each in (self.outer, self.inner, self.begin, self.hops))
        return RouteSegment(self.axis, *kept)


def legs(torus: Torus, src: Ints, dst: Ints) -> tuple[RouteSegment, ...]:
    """The ways of messages from `src` to `dst`: a leg for every axis along which any of them moves."""
    found = (_leg(torus, axis, src, dst) for axis, size in enumerate(torus.dims) if size > 1)
    return tuple(leg for leg in found if leg)


def _leg(torus: Torus, axis: int, src: Ints, dst: Ints) -> RouteSegment | None:
    size, stride = torus.dims[axis], torus.stride(axis)
    begin, end = src // stride % size, dst // stride % size
    hops = end - begin
    if not hops.any():
        return None
    # Earlier axes have been passed already, later ones not yet.
    outer, inner = dst // (stride * size), src % stride
    if torus.is_ring(axis):
        up = hops % size
        goes_up = (2 * up < size) | ((2 * up == size) & (begin % 2 == 0))
        hops = np.where(goes_up, up, up - size)
    return RouteSegment(axis, outer, inner, begin, hops)


def links_at(torus: Torus, leg: RouteSegment, step: Ints | int) -> Ints:
    """The link over which each message makes one hop of a leg, counted from 0."""
    up = leg.hops > 0
    segments, stride = torus.segments(leg.axis), torus.stride(leg.axis)
    segment = np.where(up, leg.begin + step, leg.begin - 1 - step) % segments
    first = np.where(up, torus.first_link(leg.axis, True), torus.first_link(leg.axis, False))
    link: Ints = first + (leg.outer * segments + segment) * stride + leg.inner
    return link


def next_links(torus: Torus) -> Ints:
    """For every link, the one that follows it in the same direction, around the ring."""
    following = np.empty(torus.links, dtype=np.int64)
    for axis in range(len(torus.dims)):
        count, segments, stride = torus.links_along(axis), torus.segments(axis), torus.stride(axis)
        if not count:
            continue
        place = np.arange(count)
        segment = place // stride % segments
        for up, step in ((True, 1), (False, -1)):
            first = torus.first_link(axis, up)
            following[first : first + count] = (
                first + place + ((segment + step) % segments - segment) * stride
            )
    return following


def link_loads(topology: Topology, src: Ints, dst: Ints, weights: Ints) -> Ints:
    """The sum of the `weights` (bytes, or ones) of all messages that cross each link."""
    if isinstance(topology, Switch):
        return np.concatenate([sums(device, weights, topology.devices) for device in (src, dst)])
    assert isinstance(topology, Torus)
    return loads_of_legs(topology, legs(topology, src, dst), weights)


def loads_of_legs(topology: Torus, ways: Iterable[RouteSegment], weights: Ints) -> Ints:
    """The same on a torus, for ways that are known."""
    loads = np.zeros(topology.links, dtype=np.int64)
    for leg in ways:
        for up in (True, False):
            first = topology.first_link(leg.axis, up)
            count = topology.links_along(leg.axis)
            loads[first : first + count] = _along(topology, leg, up, weights)
    return loads


def _along(torus: Torus, leg: RouteSegment, up: bool, weights: Ints) -> Ints:
    """Loads of the links of one direction along one axis, in the order of their numbers.

    A message adds its weight where its run of segments begins and takes it back where it ends; the sum up
    to a segment is its load. Runs around a ring go on in a second turn.
    """
    moving = np.flatnonzero(leg.hops > 0 if up else leg.hops < 0)
    if not len(moving):
        return np.zeros(1, dtype=np.int64)
    outer, inner, begin, hops = (each[moving] for each in (leg.outer, leg.inner, leg.begin, leg.hops))
    segments, stride = torus.segments(leg.axis), torus.stride(leg.axis)
    start = begin if up else (begin + hops) % torus.dims[leg.axis]
    lines, width = torus.links_along(leg.axis) // segments, 2 * segments + 1
    place = (outer * stride + inner) * width + start
    # One-dimensional places: NumPy adds at those many times faster.
    steps = sums(place, weights[moving], lines * width)
    np.subtract.at(steps, place + abs(hops), weights[moving])
    turns = steps.reshape(lines, width).cumsum(axis=1)
    total = turns[:, :segments] + turns[:, segments : 2 * segments]
    in_order: Ints = total.reshape(-1, stride, segments).transpose(0, 2, 1).reshape(-1)
    return in_order
