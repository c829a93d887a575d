"""The way of every message over a torus: a shortest path, one axis after the other, the major axis first.

On a ring of even size, both ways to the device opposite are shortest: a message from an even coordinate
goes up, one from an odd coordinate down, so that both directions carry the same when all devices send.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shardviz.hardware.topology import Torus

    Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Leg:
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

    def only(self, chosen: NDArray[np.bool_]) -> Leg:
        """The leg of some of the messages."""
        kept = (each[chosen] for each in (self.outer, self.inner, self.begin, self.hops))
        return Leg(self.axis, *kept)


def legs(torus: Torus, src: Ints, dst: Ints) -> tuple[Leg, ...]:
    """The ways of messages from `src` to `dst`: a leg for every axis along which any of them moves."""
    found = (_leg(torus, axis, src, dst) for axis, size in enumerate(torus.dims) if size > 1)
    return tuple(leg for leg in found if leg)


def _leg(torus: Torus, axis: int, src: Ints, dst: Ints) -> Leg | None:
    import numpy as np

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
    return Leg(axis, outer, inner, begin, hops)


def links_at(torus: Torus, leg: Leg, step: Ints | int) -> Ints:
    """The link over which each message makes one hop of a leg, counted from 0."""
    import numpy as np

    up = leg.hops > 0
    segments, stride = torus.segments(leg.axis), torus.stride(leg.axis)
    segment = np.where(up, leg.begin + step, leg.begin - 1 - step) % segments
    first = np.where(up, torus.first_link(leg.axis, True), torus.first_link(leg.axis, False))
    link: Ints = first + (leg.outer * segments + segment) * stride + leg.inner
    return link


def next_links(torus: Torus) -> Ints:
    """For every link, the one that follows it in the same direction, around the ring."""
    import numpy as np

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
