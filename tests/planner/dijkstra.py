"""The least costs of all states of an array, one after the other (Dijkstra), to hold every search against."""

from __future__ import annotations

import heapq
from itertools import count

from shardviz.planner.states.moves import STAGES
from shardviz.sharding import array_bytes


def least_costs(space, kind, prices, sources, pending=None):
    """State → the least cost of moves from the sources to it; with `pending`, over which axes sums may be
    pending, from it to the sources."""
    fitting = {}

    def size(node):
        pieces = [-(-whole // parts) for whole, parts in zip(kind.shape, node.parts, strict=True)]
        return array_bytes(pieces, kind.dtype)

    def fits(node):
        if node not in fitting:
            dims = zip(kind.shape, node.parts, node.state[0], strict=True)
            fitting[node] = all(
                n % parts == 0 or (d, own) in kind.uneven for d, (n, parts, own) in enumerate(dims)
            )
        return fitting[node]

    found, serial = {}, count()
    waiting = [(cost, next(serial), space.node(state)) for state, cost in sources.items()]
    heapq.heapify(waiting)
    while waiting:
        cost, _, node = heapq.heappop(waiting)
        if node.state in found:
            continue
        found[node.state] = cost
        for stage in range(len(STAGES)):
            moves = space.moves(node, stage, pending)
            for move in moves:
                if move.other.state not in found and fits(move.other):
                    ends = (size(node), size(move.other))
                    price = prices.move(move.op, move.axes, *(ends if pending is None else ends[::-1]))
                    heapq.heappush(waiting, (cost + price, next(serial), move.other))
    return found
