"""The links of a mesh axis, and of a group along several, as its devices lie on the machine.

A group whose devices fill a block of the machine, the same places of a physical dimension at each of its
places on the others, has the links of that block, in any order of its devices. Of all others no more is
known than how many hops neighbours along a mesh axis are apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import ne

from shardviz.hardware.collective_time import collective_time
from shardviz.hardware.machine import LevelKind, LinkLevel, Machine
from shardviz.hardware.placement import AXES, Placement, axis_run
from shardviz.sharding import Mesh

Part = tuple[int, int, int]
"""A physical dimension, how many of its places a group takes, and the steps between them.

The dimensions of a TPU slice are x, y, z, core and slice, those of GPUs node and gpu.
"""
Parts = list[list[Part]]
"""The parts of each mesh axis, the major first."""
AxisLevels = tuple[tuple[str, tuple[LinkLevel, ...]], ...]

_Along = tuple[int, LinkLevel]
"""A physical dimension, and the level of a block along it."""
_Block = tuple[tuple[int, tuple[int, ...]], ...]
"""For each physical dimension that a block has several places of its number and those, from the first on."""

LARGE = 2**40
"""Bytes of a collective that is bound by its links' bandwidth."""


def levels_of_parts(machine: Machine, mesh: Mesh, parts: Parts) -> AxisLevels:
    """The levels of each mesh axis where its parts of the machine are known."""
    return tuple(
        (axis, tuple(_level(machine, *part) for part in own))
        for axis, own in zip(mesh.axis_names, parts, strict=True)
    )


def levels_of_places(machine: Machine, mesh: Mesh, placement: Placement) -> AxisLevels:
    """The levels of each mesh axis where only the places are known."""
    found = []
    is_regular = placement.is_regular(mesh)
    for number, axis in enumerate(mesh.axis_names):
        groups = mesh.groups((axis,))
        levels = levels_of_blocks(machine, placement, groups[:1] if is_regular else groups)
        found.append((axis, (_scattered(machine, mesh, placement, number),) if levels is None else levels))
    return tuple(found)


def _scattered(machine: Machine, mesh: Mesh, placement: Placement, number: int) -> LinkLevel:
    """The level of a mesh axis whose groups fill no blocks."""
    run, size = axis_run(placement, mesh, number), mesh.axis_sizes[number]
    if run.hops is None:
        return machine.between(size)
    if not machine.torus:
        return machine.in_node(size)
    slowest = min(machine.axis_links, key=lambda link: link.bandwidth)
    kind: LevelKind = "ring" if run.is_ring else "line"
    load = _load(machine, placement, mesh.groups((run.axis,)), run.is_ring)
    return LinkLevel(kind, size, slowest, " and ".join(run.along), max(run.hops, 1), load=load)


def _load(machine: Machine, placement: Placement, groups: Iterable[Sequence[int]], closes: bool) -> int:
    """The most messages over a link of the torus when every device sends to its neighbours along a mesh axis,
    on shortest ways, x before y before z; 0 where several devices of a chip send."""
    if machine.devices_per_chip > 1:
        return 0
    import numpy as np

    from shardviz.hardware.routes import link_loads
    from shardviz.hardware.topology import Torus

    slices = 1 + max(place.slice for place in placement.places)
    torus = Torus((slices, *placement.torus), (False, *placement.wrap))
    sends = []
    for group in groups:
        places = [placement.places[position] for position in group]
        chips = [int(np.ravel_multi_index((place.slice, *place.coords), torus.dims)) for place in places]
        pairs = list(pairwise(chips)) + [(chips[-1], chips[0])] * (closes and len(chips) > 2)
        sends += [*pairs, *((after, before) for before, after in pairs)]
    src, dst = np.array(sends).T
    return int(link_loads(torus, src, dst, np.ones(len(src), dtype=np.int64)).max())


def levels_of_blocks(
    machine: Machine, placement: Placement, groups: Iterable[Sequence[int]]
) -> tuple[LinkLevel, ...] | None:
    """The levels of groups of mesh positions that each fill a block, of different blocks the slowest one's;
    None where one group fills none.
    """
    place_of = placement.coordinates
    blocks: dict[_Block, list[tuple[int, ...]]] = {}
    for group in groups:
        places = [place_of[position] for position in group]
        block = _block(places)
        if block is None:
            return None
        blocks.setdefault(block, places)
    found: dict[frozenset[_Along], list[tuple[int, ...]]] = {}
    for block, places in blocks.items():
        found.setdefault(
            frozenset((number, _along(machine, number, values)) for number, values in block), places
        )
    return max(
        (_in_order(machine, *each) for each in found.items()),
        key=lambda levels: _slowness(machine.shared_by_cores(levels)),
    )


def _in_order(
    machine: Machine, block: frozenset[_Along], places: list[tuple[int, ...]]
) -> tuple[LinkLevel, ...]:
    """The levels of a block, the major first: the one along which its devices change least often."""
    columns = [*zip(*places, strict=True)]
    changes = {number: sum(map(ne, columns[number], columns[number][1:])) for number, _ in block}
    rank = len(machine.torus)
    # Where nothing tells them apart slices come first, then z before y, and cores last.
    order = (rank + 1, *reversed(range(rank)), rank) if rank else (0, 1)
    return tuple(
        level for _, level in sorted(block, key=lambda each: (changes[each[0]], order.index(each[0])))
    )


def _slowness(levels: tuple[LinkLevel, ...]) -> tuple[float, ...]:
    """Seconds of large and of empty collectives on the levels."""
    times = [collective_time(op, LARGE, levels) for op in ("all-gather", "all-to-all")]
    return (*(time.bandwidth_seconds for time in times), times[0].latency_seconds)


def _block(places: Sequence[tuple[int, ...]]) -> _Block | None:
    """The block that a group fills, wherever it lies; None where it fills none."""
    found = []
    for number, coords in enumerate(zip(*places, strict=True)):
        distinct = set(coords)
        if len(distinct) > 1:
            first, *others = sorted(distinct)
            found.append((number, (0, *(value - first for value in others))))
    return tuple(found) if math.prod(len(values) for _, values in found) == len(places) else None


def _along(machine: Machine, number: int, values: Sequence[int]) -> LinkLevel:
    """The level of these places of a physical dimension, with the widest step between neighbours.

    No more groups than that have a link to share: each has a member within so many steps of it.
    """
    if number >= len(machine.torus):
        return _level(machine, number, len(values))
    steps = [after - before for before, after in pairwise(values)]
    if not machine.wrap[number]:
        return _level(machine, number, len(values), max(steps))
    *shorter, widest = sorted([*steps, values[0] + machine.torus[number] - values[-1]])
    # Both directions of a ring carry more than a line that leaves out its widest step.
    if widest < 2 * shorter[-1]:
        return replace(_level(machine, number, len(values), widest), kind="ring")
    return replace(_level(machine, number, len(values), shorter[-1]), kind="line")


def _level(machine: Machine, number: int, size: int, step: int = 1) -> LinkLevel:
    """The level of so many places, `step` apart, on a physical dimension."""
    if not machine.torus:
        return machine.between(size) if number == 0 else machine.in_node(size)
    rank = len(machine.torus)
    if number == rank:
        assert machine.core_link is not None
        return LinkLevel("chip", size, machine.core_link, "core")
    if number > rank:
        return machine.between(size)
    is_ring = machine.wrap[number] and size * step == machine.torus[number]
    return LinkLevel("ring" if is_ring else "line", size, machine.axis_links[number], AXES[number], step)
