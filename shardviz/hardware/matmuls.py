"""The time of a matmul on a GPU as it was measured: a start, FLOPs at a share of the peak, and bytes.

    b · m · n · k of bf16 on an H100:  5.7 µs + FLOPs / (85 % of the peak) + bytes / (15 TB/s)

The bytes are those of operands and result; they pass between the cores and the second-level cache, faster
than HBM, whose own time a matmul takes at least. The figures are fitted to times that XLA ships for its cost
model, those of cuBLAS on H100 and B200 (openxla/xla, xla/service/gpu/model, Apache-2.0): `measured_matmuls`
has them, and `tests/benchmarks/matmul_fit.py` fits again. The f8 of the H100 are not among them, as they lie
above its published peak.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import NamedTuple

from shardviz.units import seconds


class MatmulTime(NamedTuple):
    """Seconds to start, the share of the peak that is reached, and bytes a second on the chip."""

    start: float
    share: float
    bandwidth: float

    def bound(self, least: float, otherwise: str) -> str:
        """The bound of a matmul that takes `least` seconds by the roofline, and is bound `otherwise` there:
        latency where the start alone takes longer."""
        return "latency" if least < self.start else otherwise

    @property
    def words(self) -> str:
        """``5.7 µs to start and 85% of the peak, as matmuls were measured``."""
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
_LIKE = {"f16": "bf16", "f8e5m2": "f8e4m3fn"}
"""Types that take the same time."""


def matmul_time(like: str, dtype: str) -> MatmulTime | None:
    """The constants of a GPU, a key of `MATMULS` or "", in a type; None where nobody has measured it."""
    return MATMULS.get(like, {}).get(_LIKE.get(dtype, dtype))


def moved_bytes(dtype: str, sizes: tuple[int, ...]) -> int:
    """The bytes of operands and result of a matmul of sizes b, m, n and k; that of f8 is bf16."""
    b, m, n, k = sizes
    width = {"f32": 4, "bf16": 2}.get(dtype, 1)
    return b * ((m * k + k * n) * width + m * n * max(width, 2))


def measured_matmuls() -> Iterator[tuple[str, str, tuple[int, ...], float]]:
    """The measured times: GPU, type, the sizes b, m, n and k, seconds."""
    for line in (files("shardviz.hardware") / "measured_matmuls.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            chip, dtype, b, m, *points = line.split()
            for point in points:
                n, k, rate = re.split("[/:]", point)
                sizes = int(b), int(m), int(n), int(k)
                yield chip, dtype, sizes, 2 * math.prod(sizes) / float(rate) / 1e12
