"""Schedules that libtpu writes, for chips that are not here: what overlaps, how, and between which slices."""

from __future__ import annotations

import os
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import topologies
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

from shardviz.hlo import HloModule, read_hlo
from shardviz.render.palette import PLAIN
from shardviz.render.programs.collective_rows import rows_of
from shardviz.sharding import Mesh
from tests.conftest import one_in

TWO_BY_FOUR = Mesh(("X", "Y"), (2, 4))
ACROSS = {"num_slices": 2, "chips_per_host_bounds": (2, 2, 1)}


@cache
def devices(name: str, slices: int = 1) -> np.ndarray:
    os.environ.update(TPU_SKIP_MDS_QUERY="1", ALLOW_MULTIPLE_LIBTPU_LOAD="1")
    options = ACROSS if slices == 2 else {}
    topology = topologies.get_topology_desc(platform="tpu", topology_name=name, **options)
    return np.array(sorted(topology.devices, key=lambda device: device.id))


def jax_mesh(name: str, mesh: Mesh, slices: int = 1) -> jax.sharding.Mesh:
    order = list(mesh.device_order or range(mesh.size))
    chips = devices(name, slices)[order].reshape(mesh.axis_sizes)
    return jax.sharding.Mesh(chips, mesh.axis_names, axis_types=(AxisType.Auto,) * chips.ndim)


def compiled(function, chips: jax.sharding.Mesh, arrays, out=None) -> str:
    """The final text of a function of bf16 arrays, each (shape, spec)."""
    arguments = [
        jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(chips, spec))
        for shape, spec in arrays
    ]
    options = {} if out is None else {"out_shardings": NamedSharding(chips, out)}
    return jax.jit(function, **options).lower(*arguments).compile().as_text()


def matmul(name: str, mesh: Mesh, specs, sizes) -> HloModule:
    b, d, f = sizes
    text = compiled(jnp.matmul, jax_mesh(name, mesh), [((b, d), specs[0]), ((d, f), specs[1])], P("X", "Y"))
    module = read_hlo(text, mesh)
    assert (module.unread, module.num_slices) == ((), 1)
    return module


BOOK = (P("X", "Y"), P(None, "Y"))


def test_the_books_collective_matmul():
    """A[B_X, D_Y] · W[D, F_Y]: the all-gather of bf16[512, 2048] along Y becomes three permutes."""
    module = matmul("v5e:2x4", TWO_BY_FOUR, BOOK, (1024, 2048, 8192))
    (found,) = module.collective_matmuls
    assert (found.op, found.axes, found.group_size, found.directions) == ("all-gather", ("Y",), 4, 2)
    assert (found.bytes, found.wire_bytes) == (512 * 2048 * 2, 3 * 512 * 512 * 2)
    assert found.permutes == tuple(each.name for each in module.collectives)
    assert {each.op for each in module.collectives} == {"collective-permute"}
    assert len(found.matmuls) == 2
    during = {work.name for each in module.collectives for work in each.overlapped if work.op == "matmul"}
    assert during
    assert during <= {*found.matmuls}


def test_a_collective_matmul_in_a_loop():
    """Eight devices on the ring: one permute in front of the loop, four in its body, two ways around."""
    module = matmul("v5e:4x4", Mesh(("X", "Y"), (2, 8)), BOOK, (1024, 2048, 8192))
    (found,) = module.collective_matmuls
    assert (found.op, found.axes, found.group_size, found.directions) == ("all-gather", ("Y",), 8, 2)
    assert found.bytes == 512 * 2048 * 2
    assert found.permutes == tuple(each.name for each in module.collectives)
    hops = [each.count for each in module.collectives]
    assert None not in hops
    assert found.wire_bytes == sum(hops) * 512 * 256 * 2
    assert sum(hops) >= 7


@pytest.mark.slow
def test_collective_matmuls_in_a_loop_over_layers():
    """Of bf16[4096, 4096] each: a permute outside the ring's loop, four in it, which runs twice."""
    axis = Mesh(("X",), (8,))
    chips = jax_mesh("v5e:2x4", axis)
    kept = NamedSharding(chips, P("X", None))

    def layers(x, into, out):
        def layer(x, weights):
            x = jax.nn.gelu(x @ weights[0]) @ weights[1]
            return lax.with_sharding_constraint(x, kept), None

        return lax.scan(layer, x, (into, out))[0]

    weights = [((3, 4096, 16384), P(None, None, "X")), ((3, 16384, 4096), P(None, "X", None))]
    module = read_hlo(compiled(layers, chips, [((4096, 4096), kept.spec), *weights], kept.spec), axis)
    found = module.collective_matmuls
    assert [(each.op, each.directions, each.group_size) for each in found] == [
        ("all-gather", 2, 8),
        ("reduce-scatter", 2, 8),
    ]
    assert {name for each in found for name in each.permutes} == {each.name for each in module.collectives}
    for each in found:
        assert (len(each.permutes), len(each.matmuls)) == (5, 2)
        assert each.bytes == 4096 * 4096 * 2
        assert each.wire_bytes == 3 * (1 + 4 * 2) * each.bytes // 8


@pytest.mark.slow
def test_unrolled_layers_share_the_first_permutes_of_their_rings():
    """XLA sends the zeros that sums begin with once; each layer's two rings read alike."""
    axis = Mesh(("X",), (4,))
    chips = jax_mesh("v5e:2x4", axis)

    def layers(x, *weights):
        for into, out in zip(weights[::2], weights[1::2], strict=True):
            x = lax.with_sharding_constraint(jax.nn.gelu(x @ into) @ out, NamedSharding(chips, P("X", None)))
        return x

    layer = [((2048, 8192), P(None, "X")), ((8192, 2048), P("X", None))]
    module = read_hlo(compiled(layers, chips, [((2048, 2048), P("X", None)), *layer * 2]), axis)
    found = module.collective_matmuls
    whole, sent = 2048 * 2048 * 2, 512 * 2048 * 2
    assert sorted(
        (each.op, len(each.permutes), len(each.matmuls), each.bytes, each.wire_bytes) for each in found
    ) == [
        *[("all-gather", 3, 2, whole, 3 * sent)] * 2,
        *[("reduce-scatter", 5, 2, whole, 5 * sent)] * 2,
    ]
    names = [name for each in found for name in each.permutes]
    assert {*names} == {each.name for each in module.collectives}
    assert len(names) == len(module.collectives) + 2
    rows = rows_of(module.collectives, axis, PLAIN, found)
    assert sum(row.cells[1].plain == "5 permutes both ways, 2 shared" for row in rows) == 2


def test_a_fused_reduce_scatter():
    module = matmul("v5e:2x4", TWO_BY_FOUR, (P("X", "Y"), P("Y", None)), (1024, 2048, 8192))
    (found,) = module.collectives
    assert (found.op, found.axes, found.dim, found.arrays) == ("reduce-scatter", ("Y",), 1, 1)
    assert (found.operand_shape, found.result_shape) == ((512, 8192), (512, 2048))
    assert (found.is_async, found.overlapped) == (False, ())
    assert "scatter" in found.algorithm


def test_a_gather_in_three_fusions_is_one():
    """Two layers whose weights are split over X too: four gathers, one of them beside a matmul."""

    def layers(x, *weights):
        for into, out in zip(weights[::2], weights[1::2], strict=True):
            x = jax.nn.gelu(x @ into) @ out
        return x

    weights = [((1024, 4096), P("X", "Y")), ((4096, 1024), P("Y", "X"))] * 2
    chips = jax_mesh("v5e:2x4", TWO_BY_FOUR)
    text = compiled(layers, chips, [((1024, 1024), P("X", None)), *weights], P("X", None))
    module = read_hlo(text, TWO_BY_FOUR)
    gathers = [each for each in module.collectives if each.op == "all-gather"]
    assert [(each.axes, each.bytes, each.count) for each in gathers] == [(("X",), 1024 * 1024 * 2, 1)] * 4
    assert sum(each.op == "all-reduce" for each in module.collectives) == 2
    assert text.count(" all-gather(") > len(gathers)
    beside = [each for each in gathers if each.is_async]
    assert len(beside) == text.count('custom_call_target="AsyncCollectiveStart"') > 0
    for each in beside:
        matmuls = [work for work in each.overlapped if work.op == "matmul"]
        assert matmuls
        assert all(work.cycles for work in matmuls)
    assert all(each.algorithm for each in module.collectives if not each.is_async)


CROSSING = {
    "all-reduce": lambda x: lax.psum(x, "S"),
    "all-gather": lambda x: lax.all_gather(x, "S", axis=1, tiled=True),
    "reduce-scatter": lambda x: lax.psum_scatter(x, "S", scatter_dimension=1, tiled=True),
    "all-to-all": lambda x: lax.all_to_all(x, "S", 0, 1, tiled=True),
    "collective-permute": lambda x: lax.ppermute(x, "S", [(0, 1), (1, 0)]),
}
WITHIN = {"A": lambda x: lax.psum(x, "A"), "B": lambda x: lax.psum(jnp.sin(x), "B")}
ORDERS = {
    "slices in the middle": (("A", "S", "B"), (2, 2, 2), (0, 1, 4, 5, 2, 3, 6, 7)),
    "in an order of their own": (("S", "A", "B"), (2, 2, 2), (3, 2, 1, 0, 7, 5, 4, 6)),
}


@pytest.mark.parametrize("order", one_in(2, ORDERS))
def test_between_slices_and_within(order):
    """The local shards are bf16[256, 512]: 262,144 bytes."""
    mesh = Mesh(*ORDERS[order])

    def everything(x):
        return [
            function(x * number) for number, function in enumerate([*CROSSING.values(), *WITHIN.values()], 2)
        ]

    spec = P(mesh.axis_names, None)
    chips = jax_mesh("v5e:2x2", mesh, slices=2)
    mapped = jax.shard_map(everything, mesh=chips, in_specs=spec, out_specs=spec, check_vma=False)
    module = read_hlo(compiled(mapped, chips, [((256 * 8, 512), spec)]), mesh)
    assert (module.unread, module.num_slices, module.num_partitions) == ((), 2, 4)

    crossing = {each.op: each for each in module.collectives if each.between_slices}
    assert crossing.keys() == CROSSING.keys()
    pairs = {frozenset(group) for group in mesh.replica_groups(("S",))}
    for each in crossing.values():
        assert (each.axes, each.group_size, each.is_async, each.arrays) == (("S",), 2, True, 1)
        assert {frozenset(group) for group in each.groups} == pairs
    larger = {op: each.bytes // 262_144 for op, each in crossing.items()}
    assert larger == {**dict.fromkeys(CROSSING, 1), "all-gather": 2}
    sent = {op: each.wire_bytes / 262_144 for op, each in crossing.items()}
    expected = {"all-reduce": 1, "all-gather": 1, "reduce-scatter": 0.5, "all-to-all": 0.5}
    assert sent == {**expected, "collective-permute": 1}

    within = [each for each in module.collectives if not each.between_slices]
    assert sorted(each.axes for each in within) == [("A",), ("B",)]
    for each in within:
        assert set(each.groups) == set(mesh.replica_groups(each.axes))
