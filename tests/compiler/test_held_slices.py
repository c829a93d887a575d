"""What JAX says every device holds, against our own layouts: meshes in any order, and refusals."""

from __future__ import annotations

import pytest

from shardviz.notation.mesh import parse_mesh
from shardviz.notation.spec_string import parse_specs
from shardviz.sharding import Layout, Mesh, PartitionSpec, ShardedArray

MESHES = (parse_mesh("X=2,Y=4"), Mesh(("X", "Y"), (2, 2), (3, 1, 0, 2)), parse_mesh("X=1,Y=8"))


@pytest.mark.parametrize("mesh", MESHES, ids=str)
@pytest.mark.parametrize("spec", ["__", "X_", "YX", "(XY)_", "_(YX)"])
def test_jax_holds_what_we_draw(worker, mesh, spec):
    (part,) = parse_specs(spec, mesh.shape)
    array = ShardedArray("A", ("i", "j"), (16, 24), "bf16", part.operands[0])
    layout = Layout(array, mesh)
    held = worker.layout(array, mesh).result()
    assert (held.error, held.bits, held.shard_shape) == ("", 16, layout.shard_shape)
    assert held.devices == tuple((device.id, device.slices) for device in layout)


def test_what_jax_refuses_is_an_answer(worker):
    array = ShardedArray("A", ("i",), (7,), "f32", PartitionSpec((("X",),)))
    held = worker.layout(array, parse_mesh("X=2")).result()
    assert held.error.startswith(("IndivisibleError: ", "ValueError: "))
    assert "should evenly divide" in held.error
    assert held.devices == ()
