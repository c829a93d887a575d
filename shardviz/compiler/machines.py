"""The hardware behind a target: slices of TPUs, or nodes of GPUs, and what the compilers call it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

from shardviz.compiler.messages import Machine
from shardviz.errors import plural
from shardviz.hardware.chips import HOST, Gpu, TpuChip

if TYPE_CHECKING:
    from shardviz.compiler.messages import ProcessName

SUGGESTED = 2


@dataclass(frozen=True)
class TpuSlices:
    """`slices` equal slices of one generation, joined by the data-center network; `torus` are the sizes of
    each, in chips."""

    chip: TpuChip
    torus: tuple[int, ...]
    slices: int = 1
    process: ClassVar[ProcessName] = "tpu"

    @property
    def name(self) -> str:
        """As it stands after `--target`."""
        many = f"{self.slices}*" if self.slices > 1 else ""
        return f"{many}{self.chip.name}:{times(self.torus)}"

    @property
    def description(self) -> str:
        one = f"{plural(math.prod(self.torus), 'chip')} of {self.chip.device_kind}"
        return f"XLA for {self.slices} slices of {one}" if self.slices > 1 else f"XLA for {one}"

    @property
    def devices(self) -> int:
        return self.slices * math.prod(self.torus) * self.chip.devices_per_chip

    @property
    def linked(self) -> TpuChip | None:
        """The chip whose links join all devices; None for several slices."""
        return self.chip if self.slices == 1 else None

    @property
    def made_of(self) -> str:
        """Why that many devices; "" where each chip is one."""
        each = self.chip.devices_per_chip
        return (
            "" if each == 1 else f" ({plural(self.slices * math.prod(self.torus), 'chip')} of {each} devices)"
        )

    @property
    def machine(self) -> Machine:
        """For the child: what the TPU compiler is told."""
        options: list[tuple[str, Any]] = []
        if self.slices > 1:
            options.append(("num_slices", self.slices))
        if any(size % host for size, host in zip(self.torus, HOST, strict=False)):
            # Releases of libtpu before 0.0.52 take a part of a host only as hosts of one chip.
            options.append(("chips_per_host_bounds", (1, 1, 1)))
        if self.chip.name == "v4":
            options.append(("chip_config_name", "megacore"))
        return Machine("tpu", f"{self.chip.name}:{times(self.torus)}", tuple(options))

    def of_size(self, devices: int) -> list[str]:
        """Names of the same chip with that many devices: the most compact, the whole pod at most."""
        found = []
        for slices in dict.fromkeys((self.slices, 1)):
            chips, rest = divmod(devices, slices * self.chip.devices_per_chip)
            if rest or not chips:
                continue
            found += [TpuSlices(self.chip, torus, slices).name for torus in tori(self.chip, chips)]
        return found[:SUGGESTED]


@dataclass(frozen=True)
class GpuNodes:
    """`nodes` equal nodes of `gpus` each."""

    chip: Gpu
    nodes: int
    gpus: int
    process: ClassVar[ProcessName] = "cuda"
    made_of: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """As it stands after `--target`."""
        many = f"{self.nodes}x" if self.nodes > 1 else ""
        return f"{self.chip.name}:{many}{self.gpus}"

    @property
    def description(self) -> str:
        where = f"{self.nodes} nodes of " if self.nodes > 1 else ""
        return f"XLA for {where}{self.gpus} {self.chip.name.upper()}"

    @property
    def devices(self) -> int:
        return self.nodes * self.gpus

    @property
    def linked(self) -> Gpu | None:
        """The GPU whose links join all devices, through a switch; None for several nodes."""
        return self.chip if self.nodes == 1 else None

    @property
    def machine(self) -> Machine:
        """For the child: what the GPU compiler is told."""
        return Machine("cuda", f"1x{self.nodes}x{self.gpus}", (("gpu", self.chip.name),))

    def of_size(self, devices: int) -> list[str]:
        """The name with that many devices, in whole nodes."""
        if devices <= self.chip.node:
            return [GpuNodes(self.chip, 1, devices).name]
        nodes, rest = divmod(devices, self.chip.node)
        return [] if rest else [GpuNodes(self.chip, nodes, self.chip.node).name]


Machines = TpuSlices | GpuNodes


def tori(chip: TpuChip, chips: int) -> list[tuple[int, ...]]:
    """Sizes of a slice of so many chips, the most compact first; none where no pod is that large."""
    if chips > chip.pod:
        return []
    divisors = [size for size in range(1, chips + 1) if chips % size == 0]
    found = set()
    for sizes in product(divisors, repeat=chip.rank - 1):
        rest, missing = divmod(chips, math.prod(sizes))
        # In rising order, but flat slices in z: 2x4, 2x2x4, 4x4x1.
        axes = sorted((*sizes, rest), key=lambda size: (size == 1 and chip.rank == 3, size))
        torus = tuple(axes)
        if (
            not missing
            and chip.split_host(torus) is None
            and chip.fits_a_pod(torus)
            and chip.has_routes(torus)
        ):
            found.add(torus)
    return sorted(found, key=lambda torus: (max(torus), torus))


def times(sizes: tuple[int, ...]) -> str:
    """``4x4x8``."""
    return "x".join(map(str, sizes))


def parts_by_slice(sizes: Sequence[int], slices: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of each axis, its size within a slice and across the slices: the leading axes lie across them.

    >>> parts_by_slice((4, 8), 2)
    ((2, 8), (2, 1))
    """
    across: list[int] = []
    for size in sizes:
        across.append(math.gcd(size, slices // math.prod(across)))
    return tuple(size // part for size, part in zip(sizes, across, strict=True)), tuple(across)
