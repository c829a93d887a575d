"""A mesh of the eight simulated devices, in an order of its own."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax.sharding import AxisType

ORDER = (3, 1, 4, 0, 5, 7, 2, 6)


@pytest.fixture
def mesh() -> jax.sharding.Mesh:
    """X=2,Y=4 in an order that is not the devices' own."""
    devices = np.array(jax.devices())[list(ORDER)].reshape(2, 4)
    return jax.sharding.Mesh(devices, ("X", "Y"), axis_types=(AxisType.Auto,) * 2)
