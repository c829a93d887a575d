"""Set up once for all tests: JAX, where a test imports it, sees eight simulated CPU devices."""

from __future__ import annotations

import os
from itertools import product

import pytest

_DEVICES = "--xla_force_host_platform_device_count=8"

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = " ".join(
    [flag for flag in os.environ.get("XLA_FLAGS", "").split() if "device_count" not in flag] + [_DEVICES]
)

MATRIX_SPECS = ("__", "X_", "Y_", "_X", "_Y", "XY", "YX", "(XY)_", "(YX)_", "_(XY)", "_(YX)")
"""Every way to split a matrix over two axes: each on a dimension or on none, in either order."""


@pytest.fixture(scope="session")
def matmul_specs() -> list[str]:
    """All 1,452 specs for a matmul on two axes: 11 for each operand, 11 or the compiler's choice after."""
    results = ("", *(f"->{spec}" for spec in MATRIX_SPECS))
    return [f"{a},{w}{result}" for a, w, result in product(MATRIX_SPECS, MATRIX_SPECS, results)]
