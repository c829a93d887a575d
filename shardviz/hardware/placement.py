"""The chip of each device of a mesh, and how far neighbours along a mesh axis are apart."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property

from shardviz.sharding import Mesh

AXES = ("x", "y", "z")
Coordinates = tuple[int, ...]
"""The place of a device along each physical dimension."""


@dataclass(frozen=True)
class DeviceCoords:
    """One device: the coordinates of its chip in its slice's torus, its core there, and its slice. A GPU has
    none but its number in its node (`core`); `slice` is then the node."""

    coords: tuple[int, ...]
    core: int = 0
    slice: int = 0


@dataclass(frozen=True)
class Placement:
    """The places of a mesh's devices: `places` by row-major mesh position, `ids` their device ids, from 0.

    `torus` are the sizes of a slice's torus of chips and `wrap` says which of its axes close to a ring; both
    are empty for GPUs. `within` is the noun for the devices of a chip or of a switch ("core", "gpu"), `unit`
    that for those that no network has to join ("slice", "node")."""

    ids: tuple[int, ...]
    places: tuple[DeviceCoords, ...]
    torus: tuple[int, ...] = ()
    wrap: tuple[bool, ...] = ()
    within: str = "core"
    unit: str = "slice"

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The names of the physical dimensions: of the torus, within a chip or node, and between."""
        return (*AXES[: len(self.torus)], self.within, self.unit)

    @property
    def units(self) -> int:
        return len({coords.slice for coords in self.places})

    @cached_property
    def coordinates(self) -> tuple[Coordinates, ...]:
        return tuple((*coords.coords, coords.core, coords.slice) for coords in self.places)

    @property
    def slices(self) -> tuple[int, ...] | None:
        """The slice of each position, where TPU slices run a program each; GPUs' nodes run one together."""
        if self.unit != "slice" or self.units == 1:
            return None
        return tuple(coords.slice for coords in self.places)

    def on(self, mesh: Mesh) -> Mesh:
        return replace(mesh, device_order=self.ids)


@dataclass(frozen=True)
class AxisRun:
    """One mesh axis as it lies on the hardware.

    `along` are the physical dimensions that its devices differ in, the fastest last. `hops` is the most links
    between devices next to one another on the axis, None where they are on different slices or nodes; two
    cores of a chip have none between them, two GPUs of a node one, its switch. `is_ring`: there are three
    devices or more and the last is as near to the first."""

    axis: str
    along: tuple[str, ...]
    hops: int | None
    is_ring: bool


def axis_runs(placement: Placement, mesh: Mesh) -> tuple[AxisRun, ...]:
    return tuple(axis_run(placement, mesh, axis) for axis in mesh.axis_names)


def axis_run(placement: Placement, mesh: Mesh, axis: str) -> AxisRun:
    size, stride = mesh.axis_size(axis), mesh.stride(axis)
    # The pairs of neighbours, and of ends, on all lines along the axis.
    steps: list[tuple[Coordinates, Coordinates]] = []
    closing: list[tuple[Coordinates, Coordinates]] = []
    for position, coords in enumerate(placement.coordinates):
        if position // stride % size < size - 1:
            steps.append((coords, placement.coordinates[position + stride]))
        else:
            closing.append((coords, placement.coordinates[position - (size - 1) * stride]))
    changes = Counter(
        name
        for step in steps
        for name, begin, end in zip(placement.dimensions, *step, strict=True)
        if begin != end
    )
    # What changes more often is faster; where nothing tells them apart, cores come before x, x before y.
    *torus, within, between = placement.dimensions
    order = (within, *torus, between)
    along = tuple(sorted(changes, key=lambda name: (changes[name], -order.index(name))))
    hops = [_hops(*step, placement) for step in steps]
    if None in hops:
        return AxisRun(axis, along, None, False)
    most = max((count for count in hops if count is not None), default=0)
    back = [_hops(*step, placement) for step in closing]
    is_ring = size > 2 and all(count is not None and count <= most for count in back)
    return AxisRun(axis, along, most, is_ring)


def _hops(begin: Coordinates, end: Coordinates, placement: Placement) -> int | None:
    """Links on the shortest way between two devices; None between slices or nodes."""
    if begin[-1] != end[-1]:
        return None
    if not placement.torus:
        return int(begin != end)
    apart = [abs(one - other) for one, other in zip(begin, end, strict=True)]
    ways = zip(apart, placement.torus, placement.wrap, strict=False)
    return sum(min(steps, size - steps) if wrap else steps for steps, size, wrap in ways)
