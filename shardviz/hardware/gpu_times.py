"""The times of GPUs as they were measured: collectives, as NCCL runs them, and matmuls.

Over n GPUs that share a switch each way of NCCL's (a protocol with an algorithm and its channels) takes

    start + hop · (n − at_once) + V · (n + ramp) / n / (share · w)

V being the bytes that a device sends, w its links' bandwidth, and `share` what of it carries data. Up to
`at_once` members start at the same time, 1 but for NVLink domains; each further one adds a hop. A group of
two reaches less of its links than a large one, which is `ramp`. NCCL takes the way that is the quickest for
the size. Of a network between nodes nobody has published as much: there bytes take what the links say, and
each node adds a hop (NCCL 2.30.7, ``src/graph/tuning.cc``). A matmul takes

    start + FLOPs / (share of the peak) + bytes of operands and result / bandwidth

whose bytes pass between the cores and the second-level cache, faster than HBM. The figures are fitted to the
times that XLA ships for its cost model, of NCCL and cuBLAS (openxla/xla, xla/service/gpu/model, Apache-2.0),
by `nccl_fit.py` and `matmul_fit.py` of `tests/benchmarks`; other GPUs go by the nearest of these. The f8 of
the H100 is not among them, as it lies above its published peak."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from shardviz.units import seconds


class Line(NamedTuple):
    """Seconds to start, seconds for each further device, and the share of the links that carries data."""

    start: float
    hop: float
    share: float


class Ways(NamedTuple):
    lines: tuple[Line, ...]
    ramp: float
    at_once: int

    def latency(self, line: Line, members: int) -> float:
        return line.start + line.hop * max(0, members - self.at_once)


PERMUTE, EXCHANGE = "collective-permute", "pairwise-exchange"
"""A permute, round a ring where it was measured, and one in which pairs swap."""
SMALLEST = 1024
"""Bytes of the first size that was measured."""
_LIKE = {
    EXCHANGE: PERMUTE,
    "ragged-all-to-all": "all-to-all",
    "collective-broadcast": "all-gather",
    "send": PERMUTE,
    "recv": PERMUTE,
}
"""Operations that nobody has measured, of a GPU or of any, by those whose figures stand in."""


def _ways(ramp: float, *lines: tuple[float, float, float], at_once: int = 1) -> Ways:
    return Ways(tuple(Line(start * 1e-6, hop * 1e-6, share) for start, hop, share in lines), ramp, at_once)


NCCL = {
    "h100": {
        "all-gather": _ways(1, (10.1, 2.6, 0.48), (27.9, 2.2, 0.87)),
        "all-reduce": _ways(1, (12.8, 3.4, 0.52), (64.4, 0, 0.9)),
        "reduce-scatter": _ways(1, (8.33, 2.8, 0.0084), (3.73, 13, 0.077), (20.5, 1.5, 0.69)),
        "all-to-all": _ways(0.4, (21.2, 1.8, 0.11), (48.3, 0, 0.78)),
        PERMUTE: _ways(0, (11.7, 0, 0.042), (24.3, 0, 0.18), (999, 0, 0.64)),
        EXCHANGE: _ways(0, (11.8, 0, 0.063), (25.3, 0, 0.27), (1020, 0, 0.64)),
    },
    "b200": {
        "all-gather": _ways(1, (20.6, 1.9, 0.3), (32.6, 0.83, 0.74)),
        "all-reduce": _ways(1, (18.8, 4.4, 0.27), (45, 5.4, 0.77)),
        "reduce-scatter": _ways(1, (28.7, 1.4, 0.73)),
        "all-to-all": _ways(1, (22.6, 3.5, 0.024), (37.2, 0, 0.37), (74.6, 0, 0.73)),
        PERMUTE: _ways(0, (15.7, 0, 0.013), (29.2, 0, 0.096), (887, 0, 0.59)),
    },
    "gb200": {
        "all-gather": _ways(0.4, (18.1, 1.4, 0.35), (35.1, 1.1, 0.76), at_once=8),
        "all-reduce": _ways(1, (55.8, 0, 0.46), (11.3, 2.4, 0.52), (100, 3.5, 1)),
        "reduce-scatter": _ways(0.4, (18, 1.4, 0.28), (38.9, 1.3, 0.79), at_once=8),
        "all-to-all": _ways(0.3, (12.2, 0.83, 0.18), (31.1, 0.51, 0.71), at_once=16),
        PERMUTE: _ways(0, (10.3, 0, 0.0061), (48.1, 0, 0.029), (763, 0, 0.74)),
    },
}
"""The ramp and the lines, starts and hops in µs, by the GPUs that were measured and HLO's operation."""


def nccl_time(
    like: str, op: str, members: int, seconds: float, outside: float, hops: float
) -> tuple[float, float]:
    """Seconds of start and of bytes of HLO's operation `op` over `members` GPUs of each node, which go by
    `like`, a key of `NCCL`. `seconds` are those of a node's bytes at the links' full bandwidth, `outside`
    those of the network's, and `hops` the seconds of messages between nodes."""
    op = op if op in NCCL[like] else _LIKE[op]
    ways, times = NCCL[like][op], []
    for line in ways.lines:
        bandwidth = max(seconds * (members + ways.ramp) / members / line.share, outside)
        latency = ways.latency(line, members) + hops
        if op in (PERMUTE, EXCHANGE) and line is ways.lines[-1]:
            # Large messages go in pieces, and all but the first are on their way while others start.
            latency = max(0.0, latency - bandwidth)
        times.append((latency, bandwidth))
    return min(times, key=sum)


def ways_over(like: str, op: str, members: int) -> list[tuple[float, float]]:
    """The ways of an operation that are the quickest for some size: seconds to start, the share of the
    links."""
    ways = NCCL[like][op]
    starts = sorted((ways.latency(line, members), line.share) for line in ways.lines)
    quickest = [
        way for way in starts if not any(start < way[0] and share >= way[1] for start, share in starts)
    ]
    return [(start, share * members / (members + ways.ramp)) for start, share in quickest]


def measured_times() -> Iterator[tuple[str, str, int, int, float]]:
    """The measured times: GPU, HLO's operation, devices of a group, bytes of the larger side, seconds."""
    for line in Path(__file__).with_name("measured_collectives.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            chip, op, devices, *times = line.split()
            for step, micros in enumerate(times):
                yield chip, op, int(devices), SMALLEST << step, float(micros) * 1e-6


class MatmulTime(NamedTuple):
    """Seconds to start, the share of the peak that is reached, and bytes a second on the chip."""

    start: float
    share: float
    bandwidth: float

    def bound(self, least: float, otherwise: str) -> str:
        """The bound of a matmul of `least` seconds by the roofline: latency where the start alone is
        longer."""
        return "latency" if least < self.start else otherwise

    @property
    def words(self) -> str:
        return f"{seconds(self.start)} to start and {self.share:.0%} of the peak, as matmuls were measured"


MATMULS = {
    "h100": {"bf16": MatmulTime(5.7e-6, 0.85, 1.5e13), "f32": MatmulTime(7e-6, 0.91, 4e12)},
    "b200": {
        "bf16": MatmulTime(5.9e-6, 0.71, 2.6e13),
        "f32": MatmulTime(7.5e-6, 0.77, 2e13),
        "f8e4m3fn": MatmulTime(5.8e-6, 0.87, 1.1e13),
    },
}
"""By the GPU and the type that were measured; f32 is multiplied as TF32."""
_MULTIPLIED_AS = {"f16": "bf16", "f8e5m2": "f8e4m3fn"}


def matmul_time(like: str, dtype: str) -> MatmulTime | None:
    """The constants of a GPU, a key of `MATMULS` or "", in a type; None where nobody has measured it."""
    return MATMULS.get(like, {}).get(_MULTIPLIED_AS.get(dtype, dtype))


def moved_bytes(dtype: str, sizes: tuple[int, ...]) -> int:
    """The bytes of operands and result of a matmul of sizes b, m, n and k; that of f8 is bf16."""
    b, m, n, k = sizes
    width = {"f32": 4, "bf16": 2}.get(dtype, 1)
    return b * ((m * k + k * n) * width + m * n * max(width, 2))


def measured_matmuls() -> Iterator[tuple[str, str, tuple[int, ...], float]]:
    """The measured times: GPU, type, the sizes b, m, n and k, seconds."""
    for line in Path(__file__).with_name("measured_matmuls.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            chip, dtype, b, m, *points = line.split()
            for point in points:
                n, k, rate = re.split("[/:]", point)
                sizes = int(b), int(m), int(n), int(k)
                yield chip, dtype, sizes, 2 * math.prod(sizes) / float(rate) / 1e12
