"""The links that join the members of a group, as the machine has them or as they were given. Members are
numbered along the links, as libraries number them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from shardviz.hardware.collective_time import CollectiveTime, Pairs, collective_time
from shardviz.hardware.links import LinkLevel, LinkSpec, link_as_given
from shardviz.hardware.machine import Machine, PlacedMesh
from shardviz.hardware.topology import Hierarchy, LinkedLevel, Switch, Topology, Torus, topology_for
from shardviz.sharding.axis_parts import axis_part


@dataclass(frozen=True)
class Links:
    """The links of a group: `topology` for its rounds, `levels` for closed forms. `spec` are the figures of a
    link; of several levels the slowest one's. `machine` has such links; None where their figures were
    given."""

    topology: Topology
    spec: LinkSpec
    levels: tuple[LinkLevel, ...]
    machine: Machine | None = None

    def collective_time(self, op: str, size: int, pairs: Pairs | None = None) -> CollectiveTime:
        """The time of a collective, by HLO's name: as measured on the machine, else by formula."""
        measured = () if self.machine is None else self.machine.measured
        return collective_time(op, size, self.levels, pairs=pairs, measured=measured)

    def reached_by(self, time: CollectiveTime) -> Links:
        """The links as a collective of this time uses them: as measured, and over GPUs as NCCL does, it takes
        its start, with all latency, and reaches a part of the bandwidth. NCCL's part is that of the links
        within a node."""
        if not (time.is_measured or any(level.nccl for level in self.levels)):
            return self

        whole = [_effective(tier) for tier in self.levels if tier.kind == "network" and not time.is_measured]

        def used(spec: LinkSpec) -> LinkSpec:
            reached = 1.0 if spec in whole else time.reached
            return LinkSpec(0.0, spec.bandwidth * reached, time.latency_seconds)

        topology = self.topology
        if isinstance(topology, Hierarchy):
            levels = tuple(replace(level, spec=used(level.spec)) for level in topology.levels)
            topology = replace(topology, levels=levels)
        return replace(self, topology=topology, spec=used(self.spec))

    @property
    def assumed(self) -> bool:
        return self.machine is not None and self.machine.assumed

    @property
    def each(self) -> str:
        """``v5p link``, ``device over DCN``, ``mi300x, over 7 links,``; ``link`` of given figures."""
        if self.machine is None:
            return "link"
        slowest = next((level for level in self.levels if _effective(level) == self.spec), None)
        if slowest is not None and slowest.kind == "network":
            return f"device over {slowest.name}"
        if slowest is not None and slowest.peers > 1:
            return f"{self.machine.chip}, over {slowest.peers} links,"
        return f"{self.machine.chip} link"


def group_links(
    placed: PlacedMesh,
    axes: Sequence[str],
    dims: tuple[int, ...],
    topology: str | None = None,
    latency: str | None = None,
    bandwidth: str | None = None,
) -> Links:
    """The links of a group along the mesh axes `axes`, of the sizes `dims`. What is given as text stands for
    what the machine has: a topology, and the figures of all links. Raises `QuestionError`."""
    levels = placed.group_levels(tuple(axes))
    machine: Machine | None = placed.machine
    # A group of one device has no links; its figures are those of the machine's first ones.
    slowest = link_as_given(placed.machine.family.usual_link, latency, bandwidth)
    if latency is not None or bandwidth is not None:
        machine = None
        levels = tuple(replace(level, spec=link_as_given(level.spec, latency, bandwidth)) for level in levels)
    if levels:
        slowest = _slowest(levels)
    is_part = any(axis_part(axis) is not None for axis in axes)
    # Every axis of the assumed machine is a ring, but a part of one is not.
    if topology is None and (is_part or not placed.machine.assumed):
        own = _topology(levels, math.prod(dims))
        if len(axes) == 1 and isinstance(own, Torus) and own.dims == (2, 2):
            # Two by two are a ring of four, in the order in which a ring's neighbours are linked.
            own = Torus((4,), (True,))
        return Links(own, slowest, levels, machine)
    chosen = topology_for(topology, dims)
    if topology is not None:
        levels = levels_of(chosen, slowest, tuple(axes))
    return Links(chosen, slowest, levels, machine)


def _effective(level: LinkLevel) -> LinkSpec:
    """A link between neighbours of the group, its bandwidth shared with the groups in between."""
    ways = 2 if level.kind == "ring" and level.size == 2 and level.hops > 1 else level.peers
    return replace(level.spec, latency=level.spec.latency * level.hops, bandwidth=ways * level.one_way)


def _topology(levels: tuple[LinkLevel, ...], members: int) -> Topology:
    """The topology of a placed group, named from the outermost level on: ``network of 2 × switch with 8``."""
    grid = [level for level in levels if level.is_torus]
    closes = tuple(level.kind == "ring" for level in grid)
    torus = Torus(tuple(level.size for level in grid) or (1,), closes or (True,))
    if len(grid) == len(levels):
        return torus
    if len(levels) == 1:
        return Switch(members)
    outer, nodes, inner = (
        [level for level in levels if level.kind == kind] for kind in ("network", "switch", "chip")
    )
    blocks, cores = (math.prod(level.size for level in own) for own in (outer, inner))
    parts, names = [], [f"{level.name} of {level.size}" for level in outer]
    flat: Torus | Switch = Switch(members)
    if outer:
        parts.append(LinkedLevel(Switch(members), _slowest(outer), members // blocks))
    if grid:
        copies = Torus((blocks, *torus.dims), (False, *torus.wrap))
        flat = Torus((*copies.dims, cores), (*copies.wrap, False))
        parts.append(LinkedLevel(copies, _slowest(grid), cores, cores))
        names.append(str(torus))
    if nodes:
        parts.append(LinkedLevel(Switch(members), _slowest(nodes), cores))
        names += [f"switch with {level.size}" for level in nodes]
    if inner:
        parts.append(LinkedLevel(Switch(members), _slowest(inner), 1))
        names += [f"{level.size} cores" for level in inner]
    return Hierarchy(tuple(parts), " × ".join(names), flat)


def _slowest(levels: Sequence[LinkLevel]) -> LinkSpec:
    return min(map(_effective, levels), key=lambda spec: (spec.bandwidth, -spec.latency))


def levels_of(topology: Topology, spec: LinkSpec, axes: tuple[str, ...]) -> tuple[LinkLevel, ...]:
    """The levels of links that were given by name or size."""
    if not isinstance(topology, Torus):
        return (LinkLevel("network", topology.devices, spec, "the switch"),)
    names = axes if len(axes) == len(topology.dims) else tuple(f"axis {n}" for n in range(len(topology.dims)))
    if len(topology.dims) == 1:
        names = ("all devices",) if len(axes) > 1 else axes
    return tuple(
        LinkLevel("ring" if wrap else "line", size, spec, name)
        for size, wrap, name in zip(topology.dims, topology.wrap, names, strict=True)
        if size > 1
    )
