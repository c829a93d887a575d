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
which stand in `tests/benchmarks` beside `nccl_fit.py` and `matmul_fit.py`; other GPUs go by the nearest of
these. The f8 of the H100 is not among them, as it lies above its published peak."""

from __future__ import annotations

from typing import NamedTuple

from shardviz.text_tables import rows_beside
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
_LIKE = {
    EXCHANGE: PERMUTE,
    "ragged-all-to-all": "all-to-all",
    "collective-broadcast": "all-gather",
    "send": PERMUTE,
    "recv": PERMUTE,
}
"""Operations that nobody has measured, of a GPU or of any, by those whose figures stand in."""


def _read_ways() -> dict[str, dict[str, Ways]]:
    found: dict[str, dict[str, Ways]] = {}
    for of, ramp, at_once, *lines in rows_beside(__file__, "nccl_ways.txt"):
        chip, op = of.split()
        figures = ([float(figure) for figure in line.split()] for line in lines)
        own = tuple(Line(start * 1e-6, hop * 1e-6, share) for start, hop, share in figures)
        found.setdefault(chip, {})[op] = Ways(own, float(ramp), int(at_once))
    return found


NCCL = _read_ways()
"""By the GPUs that were measured and HLO's operation."""


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
MULTIPLIED_AS = {"f16": "bf16", "f8e5m2": "f8e4m3fn"}
