"""Which elements of an array every device holds, as JAX itself says. Loaded when it is asked."""

from __future__ import annotations

import jax

from shardviz.compiler.child import xla
from shardviz.compiler.child.program import jax_dtype, named_sharding
from shardviz.compiler.child.refusal import words_of
from shardviz.compiler.messages import AskLayout, LayoutOutput


def layout(request: AskLayout) -> LayoutOutput:
    """What JAX says of the array, on simulated devices. What it refuses is an answer too."""
    try:
        return _layout(request)
    except Exception as error:
        return LayoutOutput(error=words_of(error))


def _layout(request: AskLayout) -> LayoutOutput:
    array = request.array
    assert array.spec is not None
    mesh = xla.simulated_mesh(request)
    sharding = named_sharding(mesh, array.spec)
    indices = sharding.devices_indices_map(array.shape)
    devices = []
    for device in mesh.devices.flat:
        bounds = (part.indices(size)[:2] for part, size in zip(indices[device], array.shape, strict=True))
        devices.append((device.id, tuple(bounds)))
    bits = jax.dtypes.itemsize_bits(jax_dtype(array.dtype))
    return LayoutOutput(tuple(sharding.shard_shape(array.shape)), bits, tuple(devices))
