"""Programs with known collectives, compiled by XLA for eight simulated devices, read back."""

from __future__ import annotations

import inspect
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

from shardviz.hlo import Collective, HloModule, read_hlo
from shardviz.sharding import Mesh

ORDERS = (None, (3, 1, 4, 0, 5, 7, 2, 6))
MESHES = (
    Mesh(("X", "Y"), (2, 4)),
    Mesh(("X", "Y"), (2, 4), ORDERS[1]),
    Mesh(("A", "one", "B", "C"), (2, 1, 2, 2), ORDERS[1]),
)


def jax_mesh(mesh: Mesh) -> jax.sharding.Mesh:
    devices = np.array(jax.devices())[list(mesh.device_order or range(mesh.size))].reshape(mesh.axis_sizes)
    return jax.sharding.Mesh(devices, mesh.axis_names, axis_types=(AxisType.Auto,) * len(mesh.axis_names))


def compiled(mesh: Mesh, op: str, axes: tuple[str, ...]) -> HloModule:
    ops = {
        "psum": lambda x: lax.psum(x, axes),
        "all_gather": lambda x: lax.all_gather(x, axes, axis=1, tiled=True),
        "psum_scatter": lambda x: lax.psum_scatter(x, axes, scatter_dimension=1, tiled=True),
        "all_to_all": lambda x: lax.all_to_all(x, axes, 0, 1, tiled=True),
        "ppermute": lambda x: lax.ppermute(
            x, axes[0], [(i, i + 1) for i in range(mesh.axis_size(axes[0]) - 1)]
        ),
    }
    return of_shard_map(mesh, ops[op])


def of_shard_map(mesh, function, shape=(64, 64)) -> HloModule:
    spec = P(mesh.axis_names)
    mapped = jax.shard_map(function, mesh=jax_mesh(mesh), in_specs=spec, out_specs=spec, check_vma=False)
    text = jax.jit(mapped).lower(jax.ShapeDtypeStruct(shape, jnp.float32)).compile().as_text()
    return read_hlo(text, mesh)


def only(module: HloModule) -> Collective:
    assert module.unread == ()
    assert (module.num_partitions, module.replica_count, module.is_scheduled) == (8, 1, True)
    (collective,) = module.collectives
    return collective


CASES = [
    (mesh, axes)
    for mesh in MESHES
    for axes in (
        [("X",), ("Y",), ("X", "Y"), ("Y", "X")]
        if "X" in mesh.axis_names
        else [("C", "A"), ("one", "B"), ("A", "B")]
    )
]


@pytest.mark.parametrize(
    ("op", "name", "operand", "grows", "wire"),
    [
        # local shards are 8 x 64 floats: 2,048 bytes
        ("psum", "all-reduce", (8, 64), (1, 1), lambda n, size: 2 * (n - 1) * size // n),
        ("all_gather", "all-gather", (8, 64), (1, "n"), lambda n, size: (n - 1) * size),
        ("psum_scatter", "reduce-scatter", (8, 64), (1, "1/n"), lambda n, size: (n - 1) * size // n),
    ],
)
@pytest.mark.parametrize(("mesh", "axes"), CASES[::3], ids=str)
def test_one_collective(mesh, axes, op, name, operand, grows, wire):
    found = only(compiled(mesh, op, axes))
    n = mesh.group_size(axes)
    scale = {1: lambda size: size, "n": lambda size: size * n, "1/n": lambda size: size // n}
    result = tuple(scale[factor](size) for factor, size in zip(grows, operand, strict=True))
    assert (found.op, found.operand_shape, found.result_shape, found.dtype) == (name, operand, result, "f32")
    assert found.axes == tuple(axis for axis in axes if mesh.axis_size(axis) > 1)
    assert set(found.groups) == set(mesh.replica_groups(axes))
    assert found.bytes == 4 * max(np.prod(operand), np.prod(result))
    assert found.wire_bytes == wire(n, 2048)
    assert (found.group_size, found.count, found.arrays) == (n, 1, 1)
    assert found.dim == (None if op == "psum" else 1)


@pytest.mark.parametrize(("mesh", "axes"), CASES[::3], ids=str)
def test_all_to_all(mesh, axes):
    found = only(compiled(mesh, "all_to_all", axes))
    n = mesh.group_size(axes)
    assert (found.op, found.bytes, found.wire_bytes) == ("all-to-all", 2048, 2048 * (n - 1) // n)
    assert found.axes == tuple(axis for axis in axes if mesh.axis_size(axis) > 1)
    assert set(found.groups) == set(mesh.replica_groups(axes))
    assert np.prod(found.operand_shape) * found.arrays == 8 * 64


@pytest.mark.parametrize(
    ("mesh", "axis"), [(MESHES[0], "Y"), (MESHES[1], "X"), (MESHES[1], "Y"), (MESHES[2], "B")]
)
def test_permute(mesh, axis):
    found = only(compiled(mesh, "ppermute", (axis,)))
    expected = {(a, b) for group in mesh.replica_groups((axis,)) for a, b in pairwise(group)}
    assert (found.op, found.axes, set(found.groups)) == ("collective-permute", (axis,), expected)
    assert (found.bytes, found.wire_bytes, found.operand_shape) == (2048, 2048, (8, 64))


@pytest.mark.parametrize("order", ORDERS)
def test_partition_ids_are_mesh_positions(order):
    """What the reader takes for granted of XLA: the data itself shows which device is partition i."""
    mesh = Mesh(("X",), (8,), order)
    spec = NamedSharding(jax_mesh(mesh), P("X"))
    array = jax.device_put(np.arange(8), spec)
    gathered = jax.shard_map(
        lambda x: lax.axis_index("X").reshape(1) * 10 + x,
        mesh=jax_mesh(mesh),
        in_specs=P("X"),
        out_specs=P("X"),
    )(array)
    by_device = {shard.device.id: int(shard.data[0]) for shard in gathered.addressable_shards}
    assert by_device == {mesh.device_id(i): 11 * i for i in range(8)}


def test_loops_branches_and_sources():
    mesh = MESHES[0]

    def step(x):
        def body(carry, _):
            def inner(value, _):
                return lax.psum(value, "X") * 0.5, None

            carry, _ = lax.scan(inner, carry, None, length=3)
            return lax.ppermute(carry, "Y", [(0, 1), (1, 0)]), None

        x, _ = lax.scan(body, x, None, length=5)
        x = lax.while_loop(lambda v: v.sum() < 100, lambda v: lax.psum(v, "Y"), x)
        return lax.cond(x[0, 0] > 0, lambda v: lax.all_gather(v, "X", tiled=True)[:8], lambda v: v, x)

    module = of_shard_map(mesh, step)
    assert [(c.op, c.axes, c.count) for c in module.collectives] == [
        ("all-reduce", ("X",), 15),
        ("collective-permute", ("Y",), 5),
        ("all-reduce", ("Y",), None),
        ("all-gather", ("X",), 1),
    ]
    lines, first = inspect.getsourcelines(test_loops_branches_and_sources)
    for collective, call in zip(module.collectives, ("psum", "ppermute", "psum", "all_gather"), strict=True):
        file, _, line = collective.source.rpartition(":")
        assert file == __file__
        assert f"lax.{call}(" in lines[int(line) - first]


def test_a_loop_counts_like_its_unrolled_program():
    mesh = MESHES[0]

    def layers(unroll):
        def body(x, _):
            return lax.all_gather(lax.psum_scatter(x, "Y", tiled=True), "Y", tiled=True) + 1.0, None

        return of_shard_map(mesh, lambda x: lax.scan(body, x, None, length=4, unroll=unroll)[0])

    def totals(module):
        found: dict[tuple[str, tuple[str, ...]], int] = {}
        for c in module.collectives:
            found[c.op, c.axes] = found.get((c.op, c.axes), 0) + c.bytes * (c.count or 0)
        return found

    rolled, unrolled = layers(1), layers(4)
    assert len(unrolled.collectives) == 4 * len(rolled.collectives)
    assert (
        totals(rolled) == totals(unrolled) == {("reduce-scatter", ("Y",)): 8192, ("all-gather", ("Y",)): 8192}
    )


@pytest.mark.parametrize("mesh", MESHES[:2], ids=str)
@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        ((P("X", "Y"), P("Y", None), P("X", None)), [("all-reduce", ("Y",), 131072)]),
        ((P("X", "Y"), P("Y", None), P("X", "Y")), [("all-reduce", ("Y",), 131072)]),
        ((P("X", "Y"), P(None, "Y"), P("X", "Y")), [("all-gather", ("Y",), 32768)]),
        ((P("X", None), P(None, "Y"), P("X", "Y")), []),
    ],
    ids=str,
)
def test_matmuls(mesh, specs, expected):
    a, w, out = (NamedSharding(jax_mesh(mesh), spec) for spec in specs)
    text = (
        jax.jit(lambda a, w: jnp.einsum("bd,df->bf", a, w), out_shardings=out)
        .lower(
            jax.ShapeDtypeStruct((8, 2048), jnp.bfloat16, sharding=a),
            jax.ShapeDtypeStruct((2048, 8192), jnp.bfloat16, sharding=w),
        )
        .compile()
        .as_text()
    )
    found = read_hlo(text, mesh)
    # The CPU compiler promotes bf16 to f32, but need not do so before it gathers.
    assert [(c.op, c.axes) for c in found.collectives] == [(op, axes) for op, axes, _ in expected]
    for c, (_, _, nbytes) in zip(found.collectives, expected, strict=True):
        assert c.bytes in (nbytes, nbytes * 2)
        assert c.dtype in ("f32", "bf16")
