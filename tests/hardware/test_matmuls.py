"""Matmuls on GPUs against the times that were measured of them."""

import math
import statistics

import pytest

from shardviz.hardware.chips import CHIPS, GPUS, TPUS
from shardviz.hardware.gpu_times import MATMULS
from tests.benchmarks.measured_gpus import measured_matmuls, moved_bytes

POINTS = [
    (
        chip,
        dtype,
        sizes,
        (GPUS[chip].device.matmul_seconds(2 * math.prod(sizes), moved_bytes(dtype, sizes), dtype) or 0)
        / seconds
        - 1,
    )
    for chip, dtype, sizes, seconds in measured_matmuls()
]
"""GPU, type, sizes, and ours over measured less 1."""
CLASSES = {
    "batch": lambda sizes: sizes[0] > 1,
    "skinny": lambda sizes: sizes[0] == 1 and min(sizes[1:]) <= 512,
    "large": lambda sizes: sizes[0] == 1 and min(sizes[1:]) > 512,
}


def test_all_that_was_measured_is_read():
    assert len(POINTS) == 1080
    assert {(chip, dtype) for chip, dtype, *_ in POINTS} == {
        (c, d) for c, own in MATMULS.items() for d in own
    }


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize(("chip", "dtype"), [(chip, dtype) for chip, own in MATMULS.items() for dtype in own])
def test_every_class_of_shapes_is_met_without_a_bias(chip, dtype, kind):
    off = [each for c, d, sizes, each in POINTS if (c, d) == (chip, dtype) and CLASSES[kind](sizes)]
    assert statistics.median(map(abs, off)) < 0.125
    assert abs(statistics.median(off)) < 0.1


def test_two_halves_take_longer_than_the_whole():
    for name, gpu in GPUS.items():
        whole, half = (gpu.device.matmul_seconds(2 * n * 4096**2, 2 * n * 8192, "bf16") for n in (4096, 2048))
        assert whole is not None
        assert half is not None
        assert whole < 2 * half or not gpu.device.matmuls, name


def test_what_was_not_measured_reaches_the_peak():
    assert not any(chip.device.matmuls for chip in TPUS.values())
    assert CHIPS["v5e"].device.matmul_seconds(1.97e14, 1e9, "bf16") == 1
    assert GPUS["a100"].device.matmul_seconds(3.12e14, 1e9, "bf16") == 1
    assert GPUS["h100"].device.matmul_seconds(1.979e15, 1e9, "f8e4m3fn") == 1
    assert GPUS["h100"].device.matmul_seconds(1e9, 1e9, "f64") is None


@pytest.mark.parametrize(("least", "bound"), [(1e-6, "latency"), (1e-4, "compute")])
def test_a_measured_start_bounds_a_matmul_that_the_roofline_takes_less_for(least, bound):
    assert MATMULS["h100"]["bf16"].bound(least, "compute") == bound
