"""The time of a collective over GPUs, as NCCL runs it: the quickest of one to three lines over its bytes.

Over n GPUs that share a switch each way of NCCL's (a protocol with an algorithm and its channels) takes

    start + hop · (n − at_once) + V · (n + ramp) / n / (share · w)

V being the bytes that a device sends, w its links' bandwidth, and `share` what of it carries data. Up to
`at_once` members start at the same time, 1 but for NVLink domains; each further one adds a hop. A group of
two reaches less of its links than a large one, which is `ramp`: at most 1, so that more devices never take
less. NCCL takes the way that is the quickest for the size.

    all-gather over 8 H100:  28.3 µs + 9/8 · V / (48 % of w)  or  43.3 µs + 9/8 · V / (87 % of w)

The figures are fitted to times that XLA ships for its cost model, measured with NCCL as XLA calls it on nodes
of H100 and B200 and on NVLink domains of GB200 and GB300 (openxla/xla, xla/service/gpu/model, Apache-2.0):
`measured_times` has them, and `tests/benchmarks/nccl_fit.py` fits again. Other GPUs go by the nearest of
these, at the bandwidth of their own links. Of a network between nodes nobody has published as much: there
bytes take what the links say, and each node adds a hop (NCCL 2.30.7, ``src/graph/tuning.cc``).
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import NamedTuple


class Line(NamedTuple):
    """Seconds to start, seconds for each further device, and the share of the links that carries data."""

    start: float
    hop: float
    share: float


class Ways(NamedTuple):
    """The ways of an operation, with what they share."""

    lines: tuple[Line, ...]
    ramp: float
    at_once: int

    def latency(self, line: Line, members: int) -> float:
        """Seconds to start over so many GPUs."""
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
    """The seconds of start and of bytes of an operation, by HLO's name, over `members` GPUs of each node.

    `like` is a key of `NCCL`. `seconds` are those of a node's bytes at the links' full bandwidth, `outside`
    those of the network's, and `hops` the seconds of messages between nodes.
    """
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
    """The ways of an operation over so many GPUs of a node that are the quickest for some size: seconds to
    start, and the share of the links that is reached."""
    ways = NCCL[like][op]
    starts = sorted((ways.latency(line, members), line.share) for line in ways.lines)
    quickest = [
        way for way in starts if not any(start < way[0] and share >= way[1] for start, share in starts)
    ]
    return [(start, share * members / (members + ways.ramp)) for start, share in quickest]


def measured_times() -> Iterator[tuple[str, str, int, int, float]]:
    """The measured times: GPU, operation by HLO's name, devices of a group, bytes of the larger of operand
    and result, seconds."""
    for line in (files("shardviz.hardware") / "measured_collectives.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            chip, op, devices, *times = line.split()
            for step, micros in enumerate(times):
                yield chip, op, int(devices), SMALLEST << step, float(micros) * 1e-6
