"""The lines of `shardviz.hardware.gpu_times`, fitted to what was measured.

    python tests/benchmarks/nccl_fit.py [GPU/OPERATION …]

Of each collective of each GPU one, two or three lines are fitted, by the least mean of the absolute logarithm
of ours over measured, so that twice as long and half as long are as wrong and single slow runs count little.
A further line stays where it lowers that by 7 %. The first two sizes count 0.3: they were measured cold.
Lines fitted to one half of the sizes are compared with the other half, and the other way round.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections import defaultdict

import numpy as np
from measured_gpus import measured_times
from scipy.optimize import minimize

from shardviz.hardware.chips import GPUS
from shardviz.hardware.gpu_times import EXCHANGE, NCCL, PERMUTE

WORTH = 0.93
"""A further line stays where the error is less than this part of that without it."""
TRIES = 6
FACTORS = {"all-reduce": 2}
Points = list[tuple[int, int, float]]
"""Devices, bytes, seconds."""


def ours(
    constants: np.ndarray, op: str, devices: np.ndarray, size: np.ndarray, link: float, at_once: int
) -> np.ndarray:
    """Microseconds by the constants: logarithms, but shares and the ramp as logits."""
    moves = op in (PERMUTE, EXCHANGE)
    sent = size * (1 if moves else FACTORS.get(op, 1) * (devices - 1) / devices)
    share, ramp, *lines = constants
    ramp = 0 if moves else 1 / (1 + math.exp(-ramp))
    micro = sent / link * 1e6 * (devices + ramp) / devices / math.exp(share)
    least = np.full(len(sent), np.inf)
    count = len(lines) // 3
    for number in range(count):
        start, hop, part = lines[3 * number : 3 * number + 3]
        is_last = number == count - 1
        latency = math.exp(start) + (0 if moves else math.exp(hop) * np.maximum(devices - at_once, 0))
        bandwidth = micro if is_last else micro * (1 + math.exp(-part))
        pieces = moves and is_last
        least = np.minimum(least, np.maximum(latency, bandwidth) if pieces else latency + bandwidth)
    return least


def fit(op: str, points: Points, link: float, count: int, at_once: int) -> tuple[float, np.ndarray]:
    """The error and the constants of so many lines."""
    devices, size, seconds = (np.array(column, float) for column in zip(*points, strict=True))
    weight = np.where(size < 4096, 0.3, 1.0)

    def error(constants: np.ndarray) -> float:
        if np.any(np.abs(constants) > 12):
            return 9.0
        off = np.log(ours(constants, op, devices, size, link, at_once) / seconds / 1e6)
        return float(np.average(np.hypot(off, 0.03), weights=weight))

    found: list[tuple[float, np.ndarray]] = []
    for seed in range(TRIES):
        lines = [value for n in range(count) for value in (math.log(10 * 2.5**n), -0.7, -2.5 + 1.5 * n)]
        constants = np.array([-0.3, -0.5, *lines]) + np.random.default_rng(seed).normal(0, 0.4, 2 + 3 * count)
        for _ in range(3):
            best = minimize(error, constants, method="Nelder-Mead", options={"maxfev": 5000, "fatol": 1e-5})
            constants = best.x
        found.append((best.fun, constants))
    return min(found, key=lambda one: one[0])


def best_fit(op: str, points: Points, link: float, at_once: int) -> np.ndarray:
    """The constants of as many lines as are worth it."""
    best = fit(op, points, link, 1, at_once)
    for count in (2, 3):
        more = fit(op, points, link, count, at_once)
        best = more if more[0] < WORTH * best[0] else best
    return best[1]


def off(constants: np.ndarray, op: str, points: Points, link: float, at_once: int) -> np.ndarray:
    """Of each point how far ours is from it, as a part of it."""
    devices, size, seconds = (np.array(column, float) for column in zip(*points, strict=True))
    return np.abs(ours(constants, op, devices, size, link, at_once) / seconds / 1e6 - 1)


def main() -> None:
    groups: dict[tuple[str, str], Points] = defaultdict(list)
    for chip, op, devices, size, seconds in measured_times():
        groups[GPUS[chip].nccl, op].append((devices, size, seconds))
    wanted = sys.argv[1:]
    for (chip, op), points in groups.items():
        if wanted and f"{chip}/{op}" not in wanted:
            continue
        link, at_once = GPUS[chip].link, NCCL[chip][op].at_once
        constants = best_fit(op, points, link, at_once)
        share, ramp, *lines = constants
        whole = math.exp(share)
        shown = []
        for start, hop, part in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
            reached = whole if len(shown) == len(lines) // 3 - 1 else whole / (1 + math.exp(-part))
            each = 0 if op in (PERMUTE, EXCHANGE) else math.exp(hop)
            shown.append(f" | {math.exp(start):.3g} {each:.2g} {reached:.2g}")
        print(f"{chip} {op} | {1 / (1 + math.exp(-ramp)):.1g} | {at_once}{''.join(shown)}")
        sizes = sorted({size for _, size, _ in points})
        halves = [[point for point in points if point[1] in sizes[first::2]] for first in (0, 1)]
        others = [
            off(best_fit(op, half, link, at_once), op, other, link, at_once)
            for half, other in zip(halves, reversed(halves), strict=True)
        ]
        whole_fit = off(constants, op, points, link, at_once)
        for what, errors in (("all", whole_fit), ("held back", np.concatenate(others))):
            median, most = statistics.median(errors), np.quantile(errors, 0.9)
            print(f"    {what}: median {median:.1%}, 90 % within {most:.1%}", flush=True)


if __name__ == "__main__":
    main()
