"""Chips: TPU generations, GPUs and Trainium, whose figures stand in `chips.toml`, each once and with its
source, as those of a machine in its file."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from shardviz.errors import QuestionError
from shardviz.hardware.gpu_times import MATMULS, MULTIPLIED_AS, MatmulTime
from shardviz.hardware.quantities import BANDWIDTH, CLOCK, LATENCY, PEAK, SIZE, figure
from shardviz.sharding import canonical_dtype
from shardviz.strict_table import StrictTable

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
DCN_LATENCY = 1e-6
"""Seconds. Google publishes none, and nobody a measured one: an inter-chip hop's stands in, which is less
than any network's, and answers say so."""
NVLINK_HOP = 0.6e-6
"""Seconds; NCCL 2.30, `tuning.cc`: a hop over NVLink with the protocol LL."""
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

    `peak` is that of dense matrix products, in FLOP/s (OP/s of whole numbers), by HLO's dtype. `hbm_bytes`
    are those of the data sheet, `usable_bytes` those that the compiler allows a program, `host` the bytes per
    second to the host's memory, one way, `on_chip_bytes` the memory next to the matrix units (VMEM; a GPU's
    second-level cache), `launch` the seconds to launch a kernel. Matmuls take the time of `matmuls`, a key of
    `MATMULS`, or with "" that at the peak."""

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

    def matmul_time(self, dtype: str) -> MatmulTime | None:
        """The constants of matmuls in a type; None where nobody has measured them."""
        return MATMULS[self.matmuls].get(MULTIPLIED_AS.get(dtype, dtype)) if self.matmuls else None

    def matmul_seconds(self, flops: float, moved: float, dtype: str, passes: int = 1) -> float | None:
        """Seconds of one matmul that moves so many bytes, beside those of HBM; at the peak unless
        measured."""
        peak = self.flops_per_second(dtype, passes)
        time = self.matmul_time(dtype)
        if peak is None or time is None:
            return peak and flops / peak
        return time.start + flops / (time.share * peak) + moved / time.bandwidth

    def pass_seconds(self, moved: float) -> float | None:
        """Seconds of other work, which passes so many bytes through HBM."""
        launch = (self.launch or 0.0) * (moved > 0)
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
    start: float
    between_cores: float = 0.0
    ring: int | None = None
    cores: int = 2
    source: str = f"{BOOK}; on-chip memory: jax 0.10.2, tpu_info; clock and usable HBM: libtpu 0.0.52 (2026)"
    longest: tuple[tuple[int, int], ...] = ()

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
    network: float
    device: DeviceFigures
    source: str
    link: float | None = None
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


DEVICE_FIGURES = {
    "hbm": (SIZE, "hbm_bytes"),
    "usable_hbm": (SIZE, "usable_bytes"),
    "on_chip": (SIZE, "on_chip_bytes"),
    "hbm_bandwidth": (BANDWIDTH, "hbm_bandwidth"),
    "clock": (CLOCK, "clock"),
    "host": (BANDWIDTH, "host"),
    "launch": (LATENCY, "launch"),
}
"""The figures of a device by key, with their fields of `DeviceFigures`."""
DEVICE_KEYS = (*DEVICE_FIGURES, "peak", "matmuls")


def read_device(table: StrictTable, before: DeviceFigures) -> DeviceFigures:
    """The figures of a table, over others. Raises what the table makes."""
    table.only(DEVICE_KEYS)
    peak = dict(before.peak)
    if "peak" in table:
        own = table.table("peak")
        for key in own.values:
            try:
                dtype = canonical_dtype(key)
            except QuestionError as error:
                own.fail(key, error.message, error.hint)
            peak[dtype] = figure(own, key, PEAK)
    # Of a peak that somebody gives nobody has measured a share.
    matmuls = "" if "peak" in table else before.matmuls
    if "matmuls" in table:
        matmuls = table.line("matmuls", 60)
    if matmuls and matmuls not in MATMULS:
        table.fail(
            "matmuls", "nobody has measured its matmuls", f"write {' or '.join(MATMULS)}, or leave it out"
        )
    figures: dict[str, Any] = {
        field: int(value) if quantity is SIZE else value
        for key, (quantity, field) in DEVICE_FIGURES.items()
        if key in table
        for value in [figure(table, key, quantity)]
    }
    device = replace(before, peak=tuple(peak.items()), matmuls=matmuls, **figures)
    if device.hbm_bytes is not None and (device.usable_bytes or 0) > device.hbm_bytes:
        if "usable_hbm" in table:
            table.fail("usable_hbm", "it is more than the HBM", "write the part that a program may use")
        return replace(device, usable_bytes=None)
    return device


def _shipped() -> Iterator[TpuChip | Gpu]:
    """The chips of `chips.toml`."""
    text = Path(__file__).with_name("chips.toml").read_text("utf-8")
    for name, row in tomllib.loads(text).items():
        table = StrictTable(row, lambda key, reason, hint: QuestionError(f"{key}: {reason}", hint), name)
        rates = {"link": BANDWIDTH, "network": BANDWIDTH, "between_cores": BANDWIDTH, "start": LATENCY}
        own = row | {key: figure(table, key, quantity) for key, quantity in rates.items() if key in table}
        own["device"] = read_device(table.table("device"), DeviceFigures(()))
        kind: Any = TpuChip if "pod" in table else Gpu
        yield kind(name, **{key: _frozen(value) for key, value in own.items()})


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


CHIPS = {chip.name: chip for chip in _shipped()}
TPUS = {name: chip for name, chip in CHIPS.items() if isinstance(chip, TpuChip)}
"""Every generation that the TPU compiler knows, the oldest first."""
GPUS = {name: chip for name, chip in CHIPS.items() if isinstance(chip, Gpu)}
TPU_ALIASES = {"v5": "v5p", "v5litepod": "v5e", "v5lite": "v5e", "7x": "tpu7x", "v7x": "tpu7x", "v4p": "v4"}
COMPILED = frozenset((*TPUS, *(gpu.name for gpu in GPUS.values() if gpu.cores)))
