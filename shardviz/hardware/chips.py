"""The figures of chips, TPU generations, GPUs and Trainium, each once and with its source. A peak is that of
dense matrix products, in FLOP/s (OP/s of whole numbers), by HLO's dtype; one that nobody publishes is not
there."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import product

from shardviz.hardware.gpu_times import matmul_time

KIB, MIB, GIB, GB = 2**10, 2**20, 2**30, 10**9

CUBE = 4
"""A slice of v4, v5p or 7x closes to a torus where it is made of whole cubes of this many chips an axis."""
HOST = (2, 2, 1)
"""Chips of a TPU host along x, y and z, in every generation; a smaller slice is a part of one."""
MAX_AXIS = 256
"""Chips along one axis; the TPU compiler has a limit a little above."""

MAX_DEVICES = 2**15
"""Devices of a machine: more than any pod or cluster that is asked about, and described in half a second."""

MAX_GPUS = 2**14
SUGGESTED = 2
"""Slices of one size that are named."""

Peak = tuple[tuple[str, float], ...]
BOOK = '"How to Scale Your Model" (2025)'
ICI_HOP = 1e-6
"""Seconds of one hop between chips ("How to Scale Your Model": about 1 µs)."""
STARTS = {"v5e": 3e-6, "v5p": 4e-6, "v6e": 4.8e-6}
"""Seconds that a collective takes before and after its hops and bytes, of the generations that somebody has
measured; the others take the least, tpu7x v6e's. A v5e's all-gather of 128 KiB over a line of 4 takes 8 µs
("How to Scale Your Model", "Sharded Matrices"), a permute of 1 to 16 KiB to the neighbour 4.5 to 5.5 µs on a
v5p and 5.6 to 5.9 µs on a v6e (github.com/marin-community/marin/issues/6736, 2026)."""
DCN_LATENCY = 1e-6
"""Seconds. Google publishes none, and nobody a measured one: an inter-chip hop's stands in, which is less
than any network's, and answers say so."""
NVLINK_HOP = 0.6e-6
"""Seconds; NCCL 2.30, `tuning.cc`: a hop over NVLink with the protocol LL."""
RCCL_START = 2.1e-5
"""Seconds to start a collective over AMD's GPUs: all-gathers and reduce-scatters of 1 KiB over two MI355X
take 21.8 and 21.9 µs (github.com/pytorch/pytorch/issues/195719, 2026)."""
REACHED = {
    "v4": 0.76, "v5e": 0.87, "v5p": 0.81, "v6e": 0.68, "tpu7x": 0.72, "a100": 0.69, "h100": 0.63,
}  # fmt: skip
"""The part of the speed at peak that the work of published train steps reaches on a chip: the medians of
docs/training-runs.md."""
ALLOCATED = {"v4": 0.46, "v5e": 0.38, "v5p": 0.42, "v6e": 0.38}
"""The most that libtpu allocated beyond what a program holds at once in its order, as a part of that, of 13
programs each (docs/time.md): holes between buffers, rematerialization, on-chip memory. Of other chips nobody
has compared; they take the most of these."""
USUAL_NCCL = "h100"
"""The GPU by which the collectives of one go that nobody has measured."""
TPU_HOST = 2.8e10
"""Bytes per second between a TPU and its host: 5 GiB took a v6e 182 to 202 ms; of others nobody says."""
LAUNCH = 1e-6
"""Seconds to launch a kernel on a GPU, as XLA's cost model has them (openxla/xla, xla/service/gpu/model,
`gpu_performance_model_base.h`)."""
INFINIBAND_HOP = 2.7e-6
"""Seconds; NCCL 2.30, `tuning.cc`: a hop between nodes with the protocol LL."""


def times(sizes: Iterable[int]) -> str:
    """``4x4x8``."""
    return "x".join(map(str, sizes))


def slices_name(chip: str, torus: Iterable[int], slices: int = 1) -> str:
    """Equal slices of a chip, as they stand after `--target`: ``2*v5e:4x4``."""
    return f"{f'{slices}*' * (slices > 1)}{chip}:{times(torus)}"


def nodes_name(gpu: str, nodes: int, gpus: int) -> str:
    """Equal nodes of so many GPUs each: ``h100:8``, ``h100:2x8``."""
    return f"{gpu}:{f'{nodes}x' * (nodes > 1)}{gpus}"


@dataclass(frozen=True)
class DeviceFigures:
    """The figures of one JAX device; one that nobody publishes is None.

    `peak` is by HLO's dtype. `hbm_bytes` are those of the data sheet, `usable_bytes` those that the compiler
    allows a program, `host` the bytes per second to the host's memory, one way, `on_chip_bytes` the memory
    next to the matrix units (VMEM; a GPU's second-level cache), `launch` the seconds to launch a kernel.
    Matmuls take the time of `matmuls`, a key of `MATMULS`, or with "" that at the peak."""

    peak: Peak
    hbm_bytes: int | None = None
    usable_bytes: int | None = None
    hbm_bandwidth: float | None = None
    on_chip_bytes: int | None = None
    clock: float | None = None
    host: float | None = None
    matmuls: str = ""
    launch: float | None = None

    @property
    def limit_bytes(self) -> int | None:
        return self.hbm_bytes if self.usable_bytes is None else self.usable_bytes

    def flops_per_second(self, dtype: str, passes: int = 1) -> float | None:
        """The peak in a dtype, if known. Matrix units without one in f32, as those of TPUs, multiply its
        parts in bf16: once by default, `passes` times for a higher precision (`jax.lax.Precision`)."""
        peaks = dict(self.peak)
        return peaks["bf16"] / passes if self.in_bf16_passes(dtype) else peaks.get(dtype)

    def matmul_seconds(self, flops: float, moved: float, dtype: str, passes: int = 1) -> float | None:
        """Seconds of one matmul that moves so many bytes, beside those of HBM; at the peak unless
        measured."""
        peak = self.flops_per_second(dtype, passes)
        time = matmul_time(self.matmuls, dtype)
        if peak is None or time is None:
            return peak and flops / peak
        return time.start + flops / (time.share * peak) + moved / time.bandwidth

    def pass_seconds(self, moved: float) -> float | None:
        """Seconds of other work, which passes so many bytes through HBM."""
        launch = (self.launch or 0.0) if moved else 0.0
        return None if self.hbm_bandwidth is None else launch + moved / self.hbm_bandwidth

    def in_bf16_passes(self, dtype: str) -> bool:
        peaks = dict(self.peak)
        return dtype == "f32" and dtype not in peaks and "bf16" in peaks


@dataclass(frozen=True)
class TpuChip:
    """One generation of TPUs: `name` is what the TPU compiler calls it and `device_kind` what JAX does.

    A slice is a torus of `rank` axes and at most `pod` chips, each of `devices_per_chip` JAX devices and as
    many `cores` as Cloud TPU's types count. An axis closes to a ring at the size `ring`, or where that is
    None once all are multiples of `CUBE`. `longest` gives for each x the largest y for which the TPU compiler
    finds routes (libtpu 0.0.52). In bytes per second, one way: `link` to a neighbour, `network` its part of
    the data-center network, `between_cores` what two devices of a chip exchange: six links on TPU7x (Google's
    page on it), of v2 and v3, for which nobody publishes it, a link."""

    name: str
    device_kind: str
    rank: int
    devices_per_chip: int
    pod: int
    link: float
    device: DeviceFigures
    network: float
    between_cores: float = 0.0
    ring: int | None = None
    cores: int = 2
    source: str = f"{BOOK}; on-chip memory: jax 0.10.2, tpu_info; clock and usable HBM: libtpu 0.0.52 (2026)"
    longest: tuple[tuple[int, int], ...] = ()

    @property
    def start(self) -> float:
        like = "v6e" if self.name == "tpu7x" else self.name
        return STARTS.get(like, min(STARTS.values()))

    @property
    def longest_axis(self) -> int:
        """Chips along an axis at most: pods of 2-D tori are square."""
        return math.isqrt(self.pod) if self.rank == 2 else MAX_AXIS

    def split_host(self, torus: tuple[int, ...]) -> int | None:
        """The first axis that whole hosts do not fill: the compiler takes 1 or even along x and y, any along
        z."""
        return next((axis for axis, size in enumerate(torus) if size != 1 and size % HOST[axis]), None)

    def fits_a_pod(self, torus: tuple[int, ...]) -> bool:
        return math.prod(torus) <= self.pod and max(torus) <= self.longest_axis

    def has_routes(self, torus: tuple[int, ...]) -> bool:
        return not self.longest or torus[1] <= dict(self.longest).get(torus[0], 0)

    def wrap(self, torus: tuple[int, ...]) -> tuple[bool, ...]:
        """Return for each axis of a slice whether it closes to a ring."""
        if self.ring is not None:
            return tuple(size == self.ring for size in torus)
        return (all(size % CUBE == 0 for size in torus),) * len(torus)

    def tori(self, chips: int) -> list[tuple[int, ...]]:
        """Sizes of a slice of so many chips, the most compact first; none where no pod is that large."""
        if chips > self.pod:
            return []
        divisors = [size for size in range(1, chips + 1) if chips % size == 0]
        compact = set()
        for sizes in product(divisors, repeat=self.rank - 1):
            rest, missing = divmod(chips, math.prod(sizes))
            # In rising order, but flat slices in z: 2x4, 2x2x4, 4x4x1.
            torus = tuple(sorted((*sizes, rest), key=lambda size: (size == 1 and self.rank == 3, size)))
            fills_hosts = not missing and self.split_host(torus) is None
            if fills_hosts and self.fits_a_pod(torus) and self.has_routes(torus):
                compact.add(torus)
        return sorted(compact, key=lambda torus: (max(torus), torus))

    def names_of_size(self, devices: int, slices: int = 1) -> list[str]:
        """Names of so many slices, or one, with that many devices, the most compact first."""
        names: list[str] = []
        for many in dict.fromkeys((slices, 1)) if devices <= MAX_DEVICES else ():
            chips, rest = divmod(devices, many * self.devices_per_chip)
            if chips and not rest:
                names += [slices_name(self.name, torus, many) for torus in self.tori(chips)]
        return names[:SUGGESTED]


@dataclass(frozen=True)
class Gpu:
    """One kind of GPU, as an SXM or OAM module, or another accelerator of which nodes are made.

    `node` of them share a switch, or where that is `direct` each pair has a link of the `fabric`, and `host`
    of them a host, 0 for all of a node. In bytes per second, one way: `link` to the switch or to another GPU,
    and `network` its part of the network between nodes ("How to Scale Your Model", the chapter on GPUs; A100:
    the data sheet of DGX A100). Its collectives take the times of `nccl`, a key of `NCCL`, with "" those by
    formula, after `start`.

    `peak`: the data sheets; of f32 on NVIDIA's that of TF32, in which XLA multiplies f32 unless another
    precision is asked for. `capability`, `cores`, `fpus` and `shared`, the bytes of a core's shared memory,
    are for XLA's compiler. The clock is that at boost: the data sheets, and the whitepapers of Ampere, Hopper
    and Blackwell."""

    name: str
    device_kind: str
    node: int
    link: float | None
    network: float
    device: DeviceFigures
    source: str
    capability: tuple[int, int] = (0, 0)
    cores: int = 0
    fpus: int = 128
    shared: int = 0
    nccl: str = USUAL_NCCL
    fabric: str = "NVLink"
    direct: bool = False
    start: float = 0.0
    host: int = 0

    def names_of_size(self, devices: int, _slices: int = 1) -> list[str]:
        """The name with that many devices, in whole nodes."""
        if devices > MAX_GPUS:
            return []
        if devices <= self.node:
            return [nodes_name(self.name, 1, devices)]
        nodes, rest = divmod(devices, self.node)
        return [] if rest else [nodes_name(self.name, nodes, self.node)]


def _whole_numbers(peak: float) -> Peak:
    return (("s8", peak), ("u8", peak))


def _part_of_chip(
    devices: int,
    *,
    peak: Peak,
    hbm: int,
    hbm_bandwidth: float,
    usable: int | None = None,
    vmem: int | None = None,
    clock: float | None = None,
) -> DeviceFigures:
    """The figures of a device, its part of a chip's `peak`, `hbm` and `hbm_bandwidth`. Of TPUs its own are
    `usable`, the HBM that libtpu 0.0.52 allows a program, `vmem`, as JAX's `tpu_info` has it, and `clock`, by
    the cycles a microsecond in libtpu's schedules."""
    own = tuple((dtype, flops / devices) for dtype, flops in peak)
    host = TPU_HOST if vmem else None
    return DeviceFigures(own, hbm // devices, usable, hbm_bandwidth / devices, vmem, clock, host)


def _tensor_cores(
    half: float, eight: float, tf32: float, has_f8: bool = True, whole: float | None = None
) -> Peak:
    """A GPU's peaks: of 16 bits, of 8 bits, of TF32, and of whole numbers where it is another."""
    f8: Peak = (("f8e4m3fn", eight), ("f8e5m2", eight)) if has_f8 else ()
    return (("bf16", half), ("f16", half), *f8, *_whole_numbers(whole or eight), ("f32", tf32))


def _matrix_cores(half: float, f32: float, *f8: str) -> Peak:
    """The peaks of an AMD GPU: of 16 bits, of f32, and of 8 bits, in types `f8`, twice that of 16."""
    eight = tuple((dtype, 2 * half) for dtype in f8)
    return (("bf16", half), ("f16", half), *eight, *_whole_numbers(2 * half), ("f32", f32))


_with_kernels = partial(DeviceFigures, launch=LAUNCH)


TPUS = {
    chip.name: chip
    for chip in (
        TpuChip(
            "v2", "TPU v2", 2, 2, 256, network=6.25e9, between_cores=6e10, link=6e10, ring=16,
            device=_part_of_chip(2, peak=(("bf16", 4.6e13),),
                hbm=16 * GIB, hbm_bandwidth=7.16e11, usable=int(7.48 * GIB), vmem=16 * MIB, clock=7.0e8),
            source="jax 0.10.2, tpu_info; links: Google's page on TPU v2; network: TPU v3's; "
            "clock and usable HBM: libtpu 0.0.52 (2026)",
        ),
        TpuChip(
            "v3", "TPU v3", 2, 2, 1024, network=6.25e9, between_cores=1e11, link=1e11, ring=32,
            device=_part_of_chip(2, peak=(("bf16", 1.4e14), *_whole_numbers(1.4e14)),
                hbm=32 * GIB, hbm_bandwidth=9.0e11, usable=int(15.48 * GIB), vmem=16 * MIB, clock=9.4e8),
        ),
        TpuChip(
            "v4", "TPU v4", 3, 1, 4096, network=6.25e9, link=4.5e10,
            device=_part_of_chip(1, peak=(("bf16", 2.75e14), *_whole_numbers(2.75e14)),
                hbm=32 * GIB, hbm_bandwidth=1.2e12, usable=int(30.75 * GIB), vmem=32 * MIB, clock=1.05e9),
        ),
        TpuChip(
            "v5e", "TPU v5 lite", 2, 1, 256, network=3.125e9, link=4.5e10, ring=16, cores=1,
            longest=((1, 16), (2, 8), (4, 16), (6, 8), (8, 16), (10, 1), (12, 2), (14, 4), (16, 16)),
            device=_part_of_chip(1, peak=(("bf16", 1.97e14), *_whole_numbers(3.94e14)),
                hbm=16 * GIB, hbm_bandwidth=8.2e11, usable=int(15.75 * GIB), vmem=128 * MIB, clock=1.5e9),
        ),
        TpuChip(
            "v5p", "TPU v5", 3, 1, 8960, network=6.25e9, link=9e10,
            device=_part_of_chip(1, peak=(("bf16", 4.59e14), *_whole_numbers(9.18e14)),
                hbm=96 * GIB, hbm_bandwidth=2.8e12, usable=int(95.73 * GIB), vmem=128 * MIB, clock=1.75e9),
        ),
        TpuChip(
            "v6e", "TPU v6 lite", 2, 1, 256, network=1.25e10, link=9e10, ring=16, cores=1,
            device=_part_of_chip(1, peak=(("bf16", 9.20e14), *_whole_numbers(1.84e15)),
                hbm=32 * GIB, hbm_bandwidth=1.6e12, usable=int(31.24 * GIB), vmem=128 * MIB, clock=1.75e9),
        ),
        TpuChip(
            "tpu7x", "TPU7x", 3, 2, 9216, network=1.25e10, between_cores=5.4e11, link=9e10,
            device=_part_of_chip(2, peak=(("bf16", 2.30e15), ("f8e4m3fn", 4.61e15), ("f8e5m2", 4.61e15)),
                hbm=192 * GIB, hbm_bandwidth=7.4e12, usable=int(94.74 * GIB), vmem=64 * MIB, clock=1.9e9),
        ),
    )
}  # fmt: skip
"""Every generation that the TPU compiler knows, the oldest first. v4 and v5p pair their cores to one device.

The sizes of HBM are in GiB: data sheets say GB, and the compiler allows programs more than so many of these.
"""

TPU_ALIASES = {"v5": "v5p", "v5litepod": "v5e", "v5lite": "v5e", "7x": "tpu7x", "v7x": "tpu7x", "v4p": "v4"}

GPUS = {
    gpu.name: gpu
    for gpu in (
        Gpu(
            "a100", "NVIDIA A100-SXM4-80GB", 8, link=3e11, network=2.5e10,
            device=_with_kernels(_tensor_cores(3.12e14, 6.24e14, 1.56e14, has_f8=False), host=3.2e10,
                hbm_bytes=80 * GB, hbm_bandwidth=2.039e12, on_chip_bytes=40 * MIB, clock=1.41e9),
            capability=(8, 0), cores=108, fpus=64, shared=164 * KIB,
            source="NVIDIA's data sheets of A100 80GB and DGX A100 (2021)",
        ),
        Gpu(
            "h100", "NVIDIA H100 80GB HBM3", 8, link=4.5e11, network=5e10,
            device=_with_kernels(_tensor_cores(9.89e14, 1.979e15, 4.95e14), host=6.4e10, matmuls="h100",
                hbm_bytes=80 * GB, hbm_bandwidth=3.35e12, on_chip_bytes=50 * MIB, clock=1.98e9),
            capability=(9, 0), cores=132, fpus=128, shared=228 * KIB,
            source=f"NVIDIA's data sheet of H100 (2023); links: {BOOK}",
        ),
        Gpu(
            "h200", "NVIDIA H200", 8, link=4.5e11, network=5e10,
            device=_with_kernels(_tensor_cores(9.89e14, 1.979e15, 4.95e14), host=6.4e10, matmuls="h100",
                hbm_bytes=141 * GB, hbm_bandwidth=4.8e12, on_chip_bytes=50 * MIB, clock=1.98e9),
            capability=(9, 0), cores=132, fpus=128, shared=228 * KIB,
            source=f"NVIDIA's data sheet of H200 (2024); links: {BOOK}",
        ),
        Gpu(
            "b200", "NVIDIA B200", 8, link=9e11, network=5e10,
            device=_with_kernels(_tensor_cores(2.25e15, 4.5e15, 1.125e15), host=6.4e10, matmuls="b200",
                hbm_bytes=180 * GB, hbm_bandwidth=8.0e12, on_chip_bytes=126 * MIB, clock=1.965e9),
            capability=(10, 0), cores=148, fpus=128, shared=228 * KIB, nccl="b200",
            source=f"NVIDIA's data sheet of HGX B200 (2025); links: {BOOK}",
        ),
        Gpu(
            "b300", "NVIDIA B300", 8, link=9e11, network=1e11,
            device=_with_kernels(_tensor_cores(2.25e15, 4.5e15, 1.125e15, whole=1.5e14), hbm_bytes=288 * GB,
                hbm_bandwidth=8.0e12, on_chip_bytes=126 * MIB, clock=1.965e9, host=6.4e10, matmuls="b200"),
            capability=(10, 3), cores=148, fpus=128, shared=228 * KIB, nccl="b200",
            source="NVIDIA's data sheet of HGX B300 (2025); links as of B200",
        ),
        Gpu(
            "gb200", "NVIDIA GB200", 72, link=9e11, network=5e10,
            device=_with_kernels(_tensor_cores(2.5e15, 5e15, 1.25e15), host=4.5e11, matmuls="b200",
                hbm_bytes=186 * GB, hbm_bandwidth=8.0e12, on_chip_bytes=126 * MIB, clock=2.062e9),
            capability=(10, 0), cores=152, fpus=128, shared=228 * KIB, nccl="gb200", host=4,
            source=f"NVIDIA's data sheet of GB200 NVL72 (2024); links: {BOOK}; clock: XLA's description",
        ),
        Gpu(
            "gb300", "NVIDIA GB300", 72, link=9e11, network=1e11,
            device=_with_kernels(_tensor_cores(2.5e15, 5e15, 1.25e15, whole=1.65e14), hbm_bytes=288 * GB,
                hbm_bandwidth=8.0e12, on_chip_bytes=126 * MIB, clock=2.07e9, host=4.5e11, matmuls="b200"),
            capability=(10, 3), cores=152, fpus=128, shared=228 * KIB, nccl="gb200", host=4,
            source="NVIDIA's data sheet of GB300 NVL72 (2025); clock: XLA's description",
        ),
        Gpu(
            "mi300x", "AMD Instinct MI300X", 8, link=4.8e10, network=5e10, start=RCCL_START,
            device=_with_kernels(_matrix_cores(1.3074e15, 1.634e14, "f8e4m3fnuz", "f8e5m2fnuz"), host=6.4e10,
                hbm_bytes=192 * GB, hbm_bandwidth=5.325e12, on_chip_bytes=32 * MIB, clock=2.1e9),
            source='AMD\'s data sheet of MI300X (2023); links: AMD, "Understanding RCCL Bandwidth" (2025): '
            "about 48 of their 64 GB/s carry data; network: a NIC of 400 Gb/s for each GPU",
            nccl="", fabric="Infinity Fabric", direct=True,
        ),
        Gpu(
            "mi355x", "AMD Instinct MI355X", 8, link=5.76e10, network=5e10, start=RCCL_START,
            device=_with_kernels(_matrix_cores(2.5166e15, 1.573e14, "f8e4m3fn", "f8e5m2"), host=6.4e10,
                hbm_bytes=288 * GB, hbm_bandwidth=8.0e12, on_chip_bytes=32 * MIB, clock=2.4e9),
            source="AMD's data sheet of MI355X (2025); links: of their 76.8 GB/s the part that carries data "
            "on MI300X; network: a NIC of 400 Gb/s for each GPU",
            nccl="", fabric="Infinity Fabric", direct=True,
        ),
        Gpu(
            "trn1", "AWS Trainium", 32, link=None, network=3.125e9,
            device=_part_of_chip(2, peak=(("bf16", 1.9e14), ("f16", 1.9e14), ("s8", 3.8e14),
                ("f32", 4.75e13)), hbm=32 * GIB, hbm_bandwidth=820 * GIB),
            source="AWS Neuron's documentation of Trainium and Trn1 (2025); a device is a NeuronCore",
            nccl="", fabric="NeuronLink",
        ),
        Gpu(
            "trn2", "AWS Trainium2", 64, link=None, network=6.25e9,
            device=_part_of_chip(4, peak=(("bf16", 6.67e14), ("f16", 6.67e14), ("f8e4m3fn", 1.299e15),
                ("f8e5m2", 1.299e15), ("f32", 1.81e14)), hbm=96 * GIB, hbm_bandwidth=2.9e12),
            source="AWS Neuron's documentation of Trainium2 and Trn2 (2025); a device is two NeuronCores, as "
            "JAX shows them by default",
            nccl="", fabric="NeuronLink",
        ),
    )
}  # fmt: skip

COMPILED = frozenset((*TPUS, *(gpu.name for gpu in GPUS.values() if gpu.cores)))
CHIPS: dict[str, TpuChip | Gpu] = {**TPUS, **GPUS}
