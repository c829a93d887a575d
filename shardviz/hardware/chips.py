"""The chips that targets can have: TPU generations and NVIDIA GPUs, and how many of them are linked."""

from __future__ import annotations

import math
from dataclasses import dataclass

KIB, MIB, GB, TERA = 2**10, 2**20, 10**9, 10**12

CUBE = 4
"""A slice of v4, v5p or 7x closes to a torus where it is made of whole cubes of this many chips an axis."""
HOST = (2, 2, 1)
"""Chips of a TPU host along x, y and z, in every generation; a smaller slice is a part of one."""
MAX_AXIS = 256
"""Chips along one axis; the TPU compiler has a limit a little above."""


@dataclass(frozen=True)
class TpuChip:
    """One generation of TPUs.

    `name` is what the TPU compiler calls it and `device_kind` what JAX does. A slice of it is a torus of
    `rank` axes and at most `pod` chips. Under JAX a chip shows as `devices_per_chip` devices. `link` are the
    bytes per second of a link to a neighbour, one way. `ring` is the size at which an axis closes to a ring
    by itself; None where a slice closes once all its axes are multiples of `CUBE`. Figures: the hardware
    chapter of "How to Scale Your Model", and for v2 Google's page on TPU v2. `cores` are the TensorCores of a
    chip, which Cloud TPU's types count. `longest` gives for each x the largest y for which the TPU compiler
    finds routes, where it does not find all (tried with libtpu 0.0.52).
    """

    name: str
    device_kind: str
    rank: int
    devices_per_chip: int
    pod: int
    link: float
    ring: int | None = None
    cores: int = 2
    longest: tuple[tuple[int, int], ...] = ()

    @property
    def longest_axis(self) -> int:
        """Chips along an axis at most: pods of 2-D tori are square."""
        return math.isqrt(self.pod) if self.rank == 2 else MAX_AXIS

    def split_host(self, torus: tuple[int, ...]) -> int | None:
        """The axis of a slice that whole hosts, or a part of one, do not fill; None where all are filled.

        So the TPU compiler has it in every generation: 1 or even along x and y, any number along z.
        """
        for axis, (size, host) in enumerate(zip(torus, HOST, strict=False)):
            if size != 1 and size % host:
                return axis
        return None

    def fits_a_pod(self, torus: tuple[int, ...]) -> bool:
        """A slice of these sizes can be a part of a pod."""
        return math.prod(torus) <= self.pod and max(torus) <= self.longest_axis

    def has_routes(self, torus: tuple[int, ...]) -> bool:
        """The TPU compiler finds routes through a slice of these sizes."""
        return not self.longest or torus[1] <= dict(self.longest).get(torus[0], 0)

    def wrap(self, torus: tuple[int, ...]) -> tuple[bool, ...]:
        """For each axis of a slice of the given sizes, True where it closes to a ring."""
        if self.ring is not None:
            return tuple(size == self.ring for size in torus)
        return (all(size % CUBE == 0 for size in torus),) * len(torus)


@dataclass(frozen=True)
class Gpu:
    """One kind of NVIDIA GPU. `node` of them share a switch; `device_kind` is what JAX calls it. `link` are
    the bytes per second of its NVLinks together, one way ("How to Scale Your Model", the chapter on GPUs)."""

    name: str
    device_kind: str
    node: int
    link: float


_V5E_LONGEST = ((1, 16), (2, 8), (4, 16), (6, 8), (8, 16), (10, 1), (12, 2), (14, 4), (16, 16))

TPUS = {
    chip.name: chip
    for chip in (
        TpuChip("v2", "TPU v2", 2, 2, 256, 6e10, ring=16),
        TpuChip("v3", "TPU v3", 2, 2, 1024, 1e11, ring=32),
        TpuChip("v4", "TPU v4", 3, 1, 4096, 4.5e10),
        TpuChip("v5e", "TPU v5 lite", 2, 1, 256, 4.5e10, ring=16, cores=1, longest=_V5E_LONGEST),
        TpuChip("v5p", "TPU v5", 3, 1, 8960, 9e10),
        TpuChip("v6e", "TPU v6 lite", 2, 1, 256, 9e10, ring=16, cores=1),
        TpuChip("tpu7x", "TPU7x", 3, 2, 9216, 9e10),
    )
}
"""Every generation that the TPU compiler knows, the oldest first. v4 pairs its cores to one device."""

TPU_ALIASES = {"v5": "v5p", "v5litepod": "v5e", "v5lite": "v5e", "7x": "tpu7x", "v7x": "tpu7x", "v4p": "v4"}
"""Other names that people use."""

GPUS = {
    gpu.name: gpu
    for gpu in (
        Gpu("a100", "NVIDIA A100-SXM4-80GB", 8, 3e11),
        Gpu("h100", "NVIDIA H100 80GB HBM3", 8, 4.5e11),
        Gpu("h200", "NVIDIA H200", 8, 4.5e11),
        Gpu("b200", "NVIDIA B200", 8, 9e11),
    )
}
