"""The same links, ways and queues as in `shardviz.hardware`, as plainly as they can be written."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from fractions import Fraction
from types import SimpleNamespace

import pytest

from shardviz.hardware.topology import Topology, Torus


def neighbours(topology: Topology) -> dict[int, set[int]]:
    """The nodes to which links lead from each node."""
    found: dict[int, set[int]] = {}
    for link in range(topology.links):
        begin, end = topology.ends(link)
        found.setdefault(begin, set()).add(end)
    return found


def distances(topology: Topology, begin: int) -> dict[int, int]:
    """How many links lie between a node and every other, at least."""
    known, queue, linked = {begin: 0}, deque([begin]), neighbours(topology)
    while queue:
        node = queue.popleft()
        for other in linked.get(node, ()):
            if other not in known:
                known[other] = known[node] + 1
                queue.append(other)
    return known


def way(torus: Torus, src: int, dst: int) -> list[tuple[int, int]]:
    """The links (begin, end) of a message, hop by hop."""
    here, target = coordinates(torus, src), coordinates(torus, dst)
    links = []
    for axis, size in enumerate(torus.dims):
        up = (target[axis] - here[axis]) % size
        step = 1 if target[axis] > here[axis] else -1
        if torus.wrap[axis] and size > 2:
            half = Fraction(size, 2)
            step = 1 if up < half or (up == half and here[axis] % 2 == 0) else -1
        while here[axis] != target[axis]:
            begin = number(torus, here)
            here[axis] = (here[axis] + step) % size
            links.append((begin, number(torus, here)))
    return links


def coordinates(torus: Torus, device: int) -> list[int]:
    found = []
    for size in reversed(torus.dims):
        device, coordinate = divmod(device, size)
        found.append(coordinate)
    return found[::-1]


def number(torus: Torus, coordinates: list[int]) -> int:
    device = 0
    for size, coordinate in zip(torus.dims, coordinates, strict=True):
        device = device * size + coordinate
    return device


def arrivals(
    torus: Torus, messages: list[tuple[int, int, int]], latency: Fraction, bandwidth: Fraction
) -> list[tuple[Fraction, bool]]:
    """When each message (src, dst, bytes) arrives and whether it waited: one event after the other."""
    ways = [way(torus, src, dst) for src, dst, _ in messages]
    free: dict[tuple[int, int], Fraction] = {}
    events = [(Fraction(0), message, 0) for message in range(len(messages))]
    heapq.heapify(events)
    done = [(Fraction(0), False)] * len(messages)
    while events:
        now, message, hop = heapq.heappop(events)
        if hop == len(ways[message]):
            done[message] = (now, done[message][1])
            continue
        link, size = ways[message][hop], messages[message][2]
        start = max(now, free.get(link, Fraction(0))) if size else now
        if size:
            free[link] = start + size / bandwidth
        done[message] = (now, done[message][1] or start > now)
        heapq.heappush(events, (start + size / bandwidth + latency, message, hop + 1))
    return done


def link_bytes(torus: Torus, messages: list[tuple[int, int, int]]) -> Counter[tuple[int, int]]:
    """Bytes by link."""
    loads: Counter[tuple[int, int]] = Counter()
    for src, dst, size in messages:
        for link in way(torus, src, dst):
            loads[link] += size
    return loads


def through_switch(messages: list[tuple[int, int, int]]) -> tuple[int, int]:
    """Bytes one after the other until all messages are through a switch, and how many wait."""
    up: Counter[int] = Counter()
    down: Counter[int] = Counter()
    begins = []
    for index, (src, dst, size) in enumerate(messages):
        if size:
            begins.append((up[src], index, dst, size))
            up[src] += size
    last = waiting = 0
    for begin, _, dst, size in sorted(begins):
        leave = max(begin, down[dst])
        down[dst] = leave + size
        last = max(last, down[dst])
        waiting += leave > 0
    return last, waiting


@pytest.fixture(scope="session")
def plainly() -> SimpleNamespace:
    """All of the functions above."""
    return SimpleNamespace(
        distances=distances, way=way, arrivals=arrivals, link_bytes=link_bytes, through_switch=through_switch
    )
