"""Collective matmuls written by hand, compiled by XLA for simulated devices, and what is none."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AxisType, PartitionSpec as P

from shardviz.hlo import HloModule, read_hlo
from shardviz.hlo.collective_matmuls import ring_pairs
from shardviz.sharding import Mesh

MESH = Mesh(("X", "Y"), (2, 4))
N = 4
LEFT = [(device, (device - 1) % N) for device in range(N)]
RIGHT = [(device, (device + 1) % N) for device in range(N)]
GATHERED = (P("X", "Y"), P(None, "Y"))
SCATTERED = (P("X", "Y"), P("Y", None))


def chunk(array, index, axis=0):
    size = array.shape[axis] // N
    return lax.dynamic_slice_in_dim(array, index % N * size, size, axis)


def gathering(unroll):
    """The example of the scaling book: A[B_X, D_Y] · W[D, F_Y], A goes around to the left."""

    def function(lhs, rhs):
        index = lax.axis_index("Y")

        def step(i, carry):
            total, lhs = carry
            update = lhs @ chunk(rhs, index + i)
            return total + update, lax.ppermute(lhs, "Y", LEFT)

        total = jnp.zeros((lhs.shape[0], rhs.shape[1]), lhs.dtype)
        total, lhs = lax.fori_loop(0, N - 1, step, (total, lhs), unroll=unroll)
        return total + lhs @ chunk(rhs, index + N - 1)

    return function


def both_ways(lhs, rhs):
    """The upper half of A goes around to the left, the lower half to the right."""
    index, half = lax.axis_index("Y"), lhs.shape[0] // 2
    up, down = lhs[:half], lhs[half:]
    above = below = jnp.zeros((half, rhs.shape[1]), lhs.dtype)
    for i in range(N):
        above, below = above + up @ chunk(rhs, index + i), below + down @ chunk(rhs, index - i)
        if i < N - 1:
            up, down = lax.ppermute(up, "Y", LEFT), lax.ppermute(down, "Y", RIGHT)
    return jnp.concatenate([above, below])


def half_the_way(lhs, rhs):
    """A goes two steps to the left and one to the right."""
    index = lax.axis_index("Y")
    total, up, down = lhs @ chunk(rhs, index), lhs, lhs
    for i in range(1, N - 1):
        up = lax.ppermute(up, "Y", LEFT)
        total = total + up @ chunk(rhs, index + i)
    return total + lax.ppermute(down, "Y", RIGHT) @ chunk(rhs, index - 1)


def layers(lhs, rhs):
    """Three times, one after the other: no array goes further around for that."""
    return lax.fori_loop(0, 3, lambda _, lhs: half_the_way(lhs, rhs)[:, :32], lhs)


def gathering_layers(lhs, rhs):
    """The last matmul of each gather stands in the loop over the layers, its permutes in one within."""
    return lax.fori_loop(0, 3, lambda _, lhs: gathering(False)(lhs, rhs)[:, :32], lhs)


def scattering(unroll):
    """A[B_X, D_Y] · W[D_Y, F] -> [B_X, F_Y]: the sums go around to the right."""

    def function(lhs, rhs):
        index = lax.axis_index("Y")

        def step(i, total):
            return lax.ppermute(total, "Y", RIGHT) + lhs @ chunk(rhs, index + N - 1 - i, axis=1)

        return lax.fori_loop(1, N, step, lhs @ chunk(rhs, index + N - 1, axis=1), unroll=unroll)

    return function


def pipeline(lhs, rhs):
    """Every device multiplies what arrives and sends the product on."""
    return lax.fori_loop(0, 6, lambda _, x: lax.ppermute(jnp.tanh(x @ rhs[:32, :32]), "Y", RIGHT), lhs)


def shifted(lhs, rhs):
    return lax.ppermute(lhs @ rhs[:32], "Y", RIGHT)


def handed_on_once(lhs, rhs):
    return lax.ppermute(lhs, "Y", RIGHT) @ rhs[:32] + lhs @ rhs[:32]


def not_around(lhs, rhs):
    total = lhs @ rhs[:32]
    for _ in range(N - 1):
        lhs = lax.ppermute(lhs, "Y", RIGHT[:-1])
        total = total + lhs @ rhs[:32]
    return total


def jacobi(lhs, rhs):
    """What is multiplied is the sum itself."""
    return lax.fori_loop(0, 20, lambda _, u: (u @ rhs[:32, :32] + lax.ppermute(u, "Y", RIGHT)) * 0.1, lhs)


def with_residual(lhs, rhs):
    return lax.fori_loop(0, 6, lambda _, h: lax.ppermute(h + jnp.tanh(h @ rhs[:32, :32]), "Y", RIGHT), lhs)


def gathered_first(lhs, rhs):
    pieces = [lhs]
    for _ in range(N - 1):
        pieces.append(lax.ppermute(pieces[-1], "Y", LEFT))
    return jnp.concatenate(pieces, axis=1) @ rhs


def module_of(function, specs) -> HloModule:
    """Of f32 arrays of 64 × 128 and 128 × 256; a device's part of the first is 32 × 32, 4,096 bytes."""
    axes = (AxisType.Auto,) * 2
    mesh = jax.make_mesh(MESH.axis_sizes, MESH.axis_names, axis_types=axes)
    mapped = jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=P("X", "Y"), check_vma=False)
    shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((64, 128), (128, 256))]
    module = read_hlo(jax.jit(mapped).lower(*shapes).compile().as_text(), MESH)
    assert module.unread == ()
    return module


@pytest.mark.parametrize(
    ("function", "specs", "op", "directions", "hops", "whole"),
    [
        (gathering(True), GATHERED, "all-gather", 1, 3, 32 * 128),
        (gathering(False), GATHERED, "all-gather", 1, 3, 32 * 128),
        (both_ways, GATHERED, "all-gather", 2, 3, 32 * 128),
        (scattering(True), SCATTERED, "reduce-scatter", 1, 3, 32 * 256),
        (scattering(False), SCATTERED, "reduce-scatter", 1, 3, 32 * 256),
    ],
    ids=["gather", "gather in a loop", "gather both ways", "scatter", "scatter in a loop"],
)
def test_collective_matmuls(function, specs, op, directions, hops, whole):
    module = module_of(function, specs)
    (found,) = module.collective_matmuls
    assert (found.op, found.axes, found.group_size, found.directions) == (op, ("Y",), N, directions)
    assert (found.bytes, found.wire_bytes) == (4 * whole, 4 * whole * hops // N)
    assert found.permutes == tuple(each.name for each in module.collectives)
    assert {each.op for each in module.collectives} == {"collective-permute"}
    assert len(found.matmuls) >= 2
    assert found.source.split(":")[0].endswith("test_collective_matmuls.py")


NONE = [pipeline, shifted, handed_on_once, not_around, jacobi, with_residual, gathered_first]


@pytest.mark.parametrize(("function", "directions", "permutes"), [(layers, 2, 3), (gathering_layers, 1, 1)])
def test_in_a_loop_over_layers(function, directions, permutes):
    (found,) = module_of(function, GATHERED).collective_matmuls
    assert (found.op, found.group_size) == ("all-gather", N)
    assert (found.directions, len(found.permutes)) == (directions, permutes)
    assert (found.bytes, found.wire_bytes) == (4 * 32 * 128, 3 * 3 * 4 * 32 * 32)


@pytest.mark.parametrize("function", NONE)
def test_permutes_that_are_no_collective_matmul(function):
    module = module_of(function, GATHERED)
    assert {each.op for each in module.collectives} == {"collective-permute"}
    assert module.collective_matmuls == ()


@pytest.mark.parametrize(
    ("pairs", "is_ring"),
    [
        ("{{0,1},{1,2},{2,3},{3,0}}", True),
        ("{{0,2},{2,0},{1,3},{3,1}}", True),
        ("{{0,1},{1,0},{2,3},{3,4},{4,2}}", False),
        ("{{0,1},{1,2},{2,3}}", False),
        ("{{0,1},{1,0},{1,2},{2,1}}", False),
        ("{{0,0},{1,1}}", False),
        ("{}", False),
        ("", False),
        ("{{0,1,2}}", False),
    ],
)
def test_rings(pairs, is_ring):
    assert bool(ring_pairs(pairs)) == is_ring


MEETING = """HloModule m, is_scheduled=true, num_partitions=4

%cond (s: (s32[], f32[8,8], f32[8,8], f32[8,8])) -> pred[] {
  %s.1 = (s32[], f32[8,8], f32[8,8], f32[8,8]) parameter(0)
  %n = s32[] constant(2)
  %i.1 = s32[] get-tuple-element(%s.1), index=0
  ROOT %less = pred[] compare(%i.1, %n), direction=LT
}

%body (s: (s32[], f32[8,8], f32[8,8], f32[8,8])) -> (s32[], f32[8,8], f32[8,8], f32[8,8]) {
  %s = (s32[], f32[8,8], f32[8,8], f32[8,8]) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %x = f32[8,8] get-tuple-element(%s), index=3
  %left = f32[8,8] get-tuple-element(%s), index=1
  %to-left = f32[8,8] collective-permute(%left), channel_id=1, source_target_pairs={{0,3},{1,0},{2,1},{3,2}}
  %dot.1 = f32[8,8] dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %sum.1 = f32[8,8] add(%dot.1, %to-left)
  %right = f32[8,8] get-tuple-element(%s), index=2
  %to-right = f32[8,8] collective-permute(%right), channel_id=2, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
  %dot.2 = f32[8,8] dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %sum.2 = f32[8,8] add(%dot.2, %to-right)
  ROOT %state = (s32[], f32[8,8], f32[8,8], f32[8,8]) tuple(%next, %sum.1, %sum.2, %x)
}

ENTRY %main (p: f32[8,8]) -> f32[8,8] {
  %p = f32[8,8] parameter(0)
  %zero = s32[] constant(0)
  %zeros = f32[8,8] broadcast(%zero), dimensions={}
  %init = (s32[], f32[8,8], f32[8,8], f32[8,8]) tuple(%zero, %zeros, %zeros, %p)
  %loop = (s32[], f32[8,8], f32[8,8], f32[8,8]) while(%init), condition=%cond, body=%body
  %a = f32[8,8] get-tuple-element(%loop), index=1
  %b = f32[8,8] get-tuple-element(%loop), index=2
  %closing = f32[8,8] collective-permute(%b), channel_id=3, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
#  ROOT %sum = f32[8,8] add(%whole, %closing)
}
"""
FETCHED = """  %copy-start = (f32[8,8], f32[8,8], u32[]) copy-start(%a)
  %copy-done = f32[8,8] copy-done(%copy-start)
  %slice-start.1 = ((f32[8,8]), f32[4,8], s32[]) slice-start(%copy-done), slice={[0:4], [0:8]}
  %slice-start.2 = ((f32[8,8]), f32[4,8], s32[]) slice-start(%copy-done), slice={[4:8], [0:8]}
  %slice-done.1 = f32[4,8] slice-done(%slice-start.1)
  %slice-done.2 = f32[4,8] slice-done(%slice-start.2)
  %whole = f32[8,8] custom-call(%slice-done.1, %slice-done.2), custom_call_target="ConcatBitcast"
"""


@pytest.mark.parametrize("fetched", ["  %whole = f32[8,8] bitcast(%a)\n", FETCHED])
def test_the_permute_that_closes_a_ring_behind_its_loop(fetched):
    """It brings the sum of one direction to that of the other, which may be fetched in parts."""
    (found,) = read_hlo(MEETING.replace("#", fetched)).collective_matmuls
    assert (found.op, found.directions, found.permutes) == (
        "reduce-scatter",
        2,
        ("to-left", "to-right", "closing"),
    )
    assert (found.matmuls, found.wire_bytes) == (("dot.1", "dot.2"), 5 * 256)


GATHERED_BY_HAND = """HloModule m, is_scheduled=true, num_partitions=3

ENTRY %main (p: f32[8,8], w: f32[8,8]) -> f32[8,8] {
  %a = f32[8,8] parameter(0)
  %w = f32[8,8] parameter(1)
  %first = f32[8,8] collective-permute(%a), channel_id=1, source_target_pairs={{0,1},{1,2},{2,0}}
  %second = f32[8,8] collective-permute(%first), channel_id=2, source_target_pairs={{0,1},{1,2},{2,0}}
#  %dot.1 = f32[8,8] dot(%whole, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %dot.2 = f32[8,8] dot(%first, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %dot.3 = f32[8,8] dot(%second, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %sum = f32[8,8] fusion(%dot.1, %dot.2, %dot.3), kind=kLoop, calls=%sums
}
"""


@pytest.mark.parametrize("fetched", ["  %whole = f32[8,8] bitcast(%a)\n", FETCHED])
def test_a_ring_whose_own_piece_is_multiplied_as_it_was_fetched(fetched):
    """The first layer's own piece is an argument, which XLA fetches in parts for its matmul."""
    (found,) = read_hlo(GATHERED_BY_HAND.replace("#", fetched)).collective_matmuls
    assert (found.op, found.permutes, found.matmuls) == (
        "all-gather",
        ("first", "second"),
        ("dot.1", "dot.2", "dot.3"),
    )
