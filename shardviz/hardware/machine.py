"""Machines: the figures of devices and of the links that join them, by which answers are priced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shardviz.hardware.links import LinkSpec
from shardviz.hardware.placement import Placement

LevelKind = Literal["ring", "line", "switch", "network", "chip"]


@dataclass(frozen=True)
class DeviceFigures:
    """The figures of one JAX device; one that nobody publishes is None.

    `peak` has FLOP/s (OP/s of whole numbers) by HLO's dtype. `hbm_bytes` are those of the data sheet and
    `usable_bytes` those that the compiler allows a program. `hbm_bandwidth` is bytes per second,
    `on_chip_bytes` the memory next to the matrix units (VMEM; a GPU's second-level cache), `clock` hertz.
    """

    peak: tuple[tuple[str, float], ...]
    hbm_bytes: int | None = None
    usable_bytes: int | None = None
    hbm_bandwidth: float | None = None
    on_chip_bytes: int | None = None
    clock: float | None = None

    def flops_per_second(self, dtype: str) -> float | None:
        """The peak in this dtype; None where none is known."""
        return dict(self.peak).get(dtype)


@dataclass(frozen=True)
class LinkLevel:
    """One physical dimension of a group: `size` members joined as `kind` by links of `spec`, one way.

    "ring" and "line": neighbours on a torus axis; "switch": NVLink or the like; "network": between slices or
    nodes, `spec` being what one device has of it; "chip": two devices on one chip. `name` is what people
    call it: "x", "NVLink", "DCN". `hops` are the links between neighbours of the group, above 1 where it
    takes every second chip, and then the links are shared with the groups in between.
    """

    kind: LevelKind
    size: int
    spec: LinkSpec
    name: str
    hops: int = 1


@dataclass(frozen=True)
class Machine:
    """Hardware that prices an answer.

    `name` is a cluster's (``v5p:4x4x8``) or a file's. A slice is a torus of the sizes `torus` in chips, whose
    axes close to rings where `wrap` says so, over links of `axis_links`, one `LinkSpec` for each axis; GPUs
    have no torus but nodes of `node` devices, each with `node_link` to a switch. `network` is what one device
    has of the network between slices or nodes, None where there is none. With `assumed` nobody has named
    a machine: a v5e on which every mesh axis is a ring of its own. `source` says where the figures come from.
    """

    name: str
    chip: str
    device: DeviceFigures
    devices: int
    devices_per_chip: int = 1
    torus: tuple[int, ...] = ()
    wrap: tuple[bool, ...] = ()
    axis_links: tuple[LinkSpec, ...] = ()
    node: int = 0
    node_link: LinkSpec | None = None
    network: LinkSpec | None = None
    slices: int = 1
    assumed: bool = False
    source: str = ""


@dataclass(frozen=True)
class PlacedMesh:
    """A mesh on a machine: for each of its axes the physical dimensions that it lies along, the major first.

    `placement` is None on an assumed machine.
    """

    machine: Machine
    levels: tuple[tuple[str, tuple[LinkLevel, ...]], ...]
    placement: Placement | None = None

    def group_levels(self, axes: tuple[str, ...]) -> tuple[LinkLevel, ...]:
        """The dimensions of a group along these mesh axes; those of size 1 are left out."""
        of_axis = dict(self.levels)
        return tuple(level for axis in axes for level in of_axis[axis] if level.size > 1)
