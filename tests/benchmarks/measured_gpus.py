"""The times of GPUs that XLA ships for its cost model, to which the constants of `gpu_times` are fitted."""

import math
import re
from collections.abc import Iterator
from pathlib import Path

SMALLEST = 1024
"""Bytes of the first size of a line of collectives; each further one is twice as large."""


def measured_times() -> Iterator[tuple[str, str, int, int, float]]:
    """The measured times: GPU, HLO's operation, devices of a group, bytes of the larger side, seconds."""
    for line in Path(__file__).with_name("measured_collectives.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            chip, op, devices, *times = line.split()
            for step, micros in enumerate(times):
                yield chip, op, int(devices), SMALLEST << step, float(micros) * 1e-6


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
