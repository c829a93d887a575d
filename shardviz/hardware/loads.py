"""How many bytes each directed link carries in one round."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from shardviz.hardware.messages import sums
from shardviz.hardware.routes import legs
from shardviz.hardware.topology import Switch, Topology, Torus

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shardviz.hardware.routes import Leg

    Ints = NDArray[np.int64]


def link_loads(topology: Topology, src: Ints, dst: Ints, weights: Ints) -> Ints:
    """The sum of the `weights` (bytes, or ones) of all messages that cross each link."""
    import numpy as np

    if isinstance(topology, Switch):
        return np.concatenate([sums(device, weights, topology.devices) for device in (src, dst)])
    assert isinstance(topology, Torus)
    return loads_of_legs(topology, legs(topology, src, dst), weights)


def loads_of_legs(topology: Torus, ways: Iterable[Leg], weights: Ints) -> Ints:
    """The same on a torus, for ways that are known."""
    import numpy as np

    loads = np.zeros(topology.links, dtype=np.int64)
    for leg in ways:
        for up in (True, False):
            first = topology.first_link(leg.axis, up)
            count = topology.links_along(leg.axis)
            loads[first : first + count] = _along(topology, leg, up, weights)
    return loads


def _along(torus: Torus, leg: Leg, up: bool, weights: Ints) -> Ints:
    """Loads of the links of one direction along one axis, in the order of their numbers.

    A message adds its weight where its run of segments begins and takes it back where it ends; the sum up
    to a segment is its load. Runs around a ring go on in a second turn.
    """
    import numpy as np

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
