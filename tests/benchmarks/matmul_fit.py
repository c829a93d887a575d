"""Matmuls on GPUs: ours against every time that was measured, and the fit of `shardviz.hardware.gpu_times`.

    python tests/benchmarks/matmul_fit.py

The three constants of a GPU and a type are those with the least mean of the absolute logarithm of ours over
measured, each class of shapes counting as much as the others. It also prints what constants fitted to one
half of the sizes make of the other half. What `matmuls` has is rounded, and of the H100 the shares lie lower
in a valley of equal errors, nearer to what the largest sizes reach.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from measured_gpus import measured_matmuls, moved_bytes
from nccl_errors import spread

from shardviz.hardware.chips import GPUS

SKINNY = 512
CLASSES = ("skinny", "large", "batch")
"""One matmul with a size of 512 or less, one without, and several at once."""


class Point(NamedTuple):
    chip: str
    dtype: str
    kind: str
    flops: float
    moved: float
    seconds: float
    error: float
    """Ours over measured, less 1."""


@cache
def points() -> tuple[Point, ...]:
    found = []
    for chip, dtype, sizes, seconds in measured_matmuls():
        device, flops, moved = GPUS[chip].device, 2 * math.prod(sizes), moved_bytes(dtype, sizes)
        assert device.hbm_bandwidth is not None
        ours = max(device.matmul_seconds(flops, moved, dtype) or 0.0, moved / device.hbm_bandwidth)
        kind = "batch" if sizes[0] > 1 else "skinny" if min(sizes[1:]) <= SKINNY else "large"
        found.append(Point(chip, dtype, kind, flops, moved, seconds, ours / seconds - 1))
    return tuple(found)


def groups() -> dict[tuple[str, str], list[Point]]:
    found: dict[tuple[str, str], list[Point]] = {}
    for point in points():
        found.setdefault((point.chip, point.dtype), []).append(point)
    return found


def table() -> str:
    """A row for each GPU and type."""
    return "\n".join(f"| {chip} | {dtype} | {cells(own)} |" for (chip, dtype), own in groups().items())


def cells(own: Sequence[Point]) -> str:
    biases = [statistics.median(each.error for each in own if each.kind == kind) for kind in CLASSES]
    return " | ".join([*spread(point.error for point in own), *(f"{bias:+.1%}" for bias in biases)])


def main() -> None:
    import numpy as np
    from scipy.optimize import minimize

    def ours(constants: np.ndarray, flops: np.ndarray, moved: np.ndarray) -> np.ndarray:
        start, rate, bandwidth = np.exp(constants)
        return start * 1e-6 + flops / rate / 1e12 + moved / bandwidth / 1e12

    def fit(own: Sequence[Point]) -> np.ndarray:
        count = Counter(point.kind for point in own)
        flops, moved, seconds = (np.array([point[at] for point in own]) for at in (3, 4, 5))
        weights = [1 / count[point.kind] for point in own]

        def error(constants: np.ndarray) -> float:
            off = np.log(ours(constants, flops, moved) / seconds)
            return float(np.average(np.hypot(off, 0.03), weights=weights))

        constants = np.log([6.0, max(flops / seconds) / 1e12, 12.0])
        for _ in range(5):
            constants = minimize(error, constants, method="Nelder-Mead", options={"maxfev": 4000}).x
        return constants

    for (chip, dtype), own in groups().items():
        peak = (GPUS[chip].device.flops_per_second(dtype) or math.nan) / 1e12
        start, rate, bandwidth = np.exp(fit(own))
        print(f"{chip} {dtype}: {start:.2f} µs, {rate / peak:.2f}, {bandwidth:.1f} TB/s: {cells(own)}")
        others = []
        for first in (0, 1):
            constants = fit(own[first::2])
            for point in own[1 - first :: 2]:
                time = float(ours(constants, np.array(point.flops), np.array(point.moved)))
                others.append(point._replace(error=time / point.seconds - 1))
        print(f"  held back: {cells(others)}")


if __name__ == "__main__":
    main()
