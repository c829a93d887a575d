"""Layouts: which device holds which slice, judged by `NamedSharding.devices_indices_map`."""

from __future__ import annotations

import random
import re
from itertools import pairwise, permutations, product

import pytest

from shardviz.errors import QuestionError
from shardviz.sharding import Layout, Mesh, PartitionSpec, ShardedArray, Uneven

MESH = Mesh(("X", "Y"), (2, 4))


def layout(shape, dims, mesh=MESH, unreduced=()):
    names = tuple("abcdefghi"[: len(shape)])
    return Layout(ShardedArray("A", names, tuple(shape), "f32", PartitionSpec(dims, unreduced)), mesh)


def all_specs(axes, rank):
    """Every placement of every subset of the axes on `rank` dimensions, in every order."""
    for count in range(len(axes) + 1):
        for chosen in permutations(axes, count):
            for cuts in product(range(count + 1), repeat=max(0, rank - 1)):
                bounds = (0, *cuts, count)
                if rank and list(bounds) == sorted(bounds):
                    yield tuple(chosen[start:stop] for start, stop in pairwise(bounds))
    if not rank:
        yield ()


def random_layout(draw, sizes, order=None, uneven=False):
    names = tuple("XYZW"[: len(sizes)])
    mesh = Mesh(names, sizes, order)
    rank = draw.randrange(1, 5)
    dims = [[] for _ in range(rank)]
    unreduced = []
    for axis in draw.sample(names, len(names)):
        place = draw.randrange(rank + 2)
        if place < rank:
            dims[place].append(axis)
        elif place == rank and uneven:
            unreduced.append(axis)
    spec = PartitionSpec(tuple(map(tuple, dims)), tuple(unreduced))
    shape = [draw.randrange(1, 4) * parts for parts in spec.parts(mesh)]
    if uneven:
        shape = [max(0, size + draw.randrange(-2, 3)) for size in shape]
    return layout(shape, spec.dims, mesh, spec.unreduced)


def as_jax(one):
    import jax
    import numpy as np

    devices = np.array(jax.devices())
    if one.mesh.device_order is not None:
        devices = devices[list(one.mesh.device_order)]
    mesh = jax.sharding.Mesh(devices.reshape(one.mesh.axis_sizes), one.mesh.axis_names)
    entries = [dim or None for dim in one.spec.dims]
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*entries))


def by_jax(one):
    """Device id → (start, stop) of each dimension, as JAX says."""
    return {
        device.id: tuple(piece.indices(size)[:2] for piece, size in zip(slices, one.array.shape, strict=True))
        for device, slices in as_jax(one).devices_indices_map(one.array.shape).items()
    }


def by_us(one):
    return {device.id: device.slices for device in one if one.spec.only_device in (None, device.id)}


@pytest.mark.parametrize(("rank", "count"), [(0, 1), (1, 5), (2, 11), (3, 19)])
def test_every_spec_on_two_axes_is_where_jax_puts_it(rank, count):
    specs = list(dict.fromkeys(all_specs(("X", "Y"), rank)))
    assert len(specs) == count
    for dims in specs:
        one = layout((8, 16, 24)[:rank], dims)
        assert by_us(one) == by_jax(one), dims
        assert one.shard_shape == as_jax(one).shard_shape(one.array.shape)


@pytest.mark.parametrize("sizes", [(8,), (2, 4), (4, 2), (2, 2, 2), (1, 4, 2), (2, 1, 2, 2)])
def test_random_specs_on_permuted_devices_are_where_jax_puts_them(sizes):
    draw = random.Random(str(sizes))
    for _ in range(40):
        one = random_layout(draw, sizes, tuple(draw.sample(range(8), 8)))
        assert by_us(one) == by_jax(one), one
        assert [device.id for device in one] == list(one.mesh.device_order)


def test_single_positions_equal_the_arrays_of_all():
    draw = random.Random(3)
    for _ in range(150):
        sizes = tuple(draw.randrange(1, 4) for _ in range(draw.randrange(1, 5)))
        one = random_layout(draw, sizes, uneven=True)
        devices = list(one)
        assert len(one) == len(devices) == one.mesh.size
        assert one.shards().tolist() == [device.shard for device in devices]
        assert one.bounds().tolist() == [[list(bounds) for bounds in device.slices] for device in devices]


def test_equal_numbers_mean_equal_data():
    draw = random.Random(4)
    for _ in range(100):
        sizes = tuple(draw.randrange(1, 4) for _ in range(draw.randrange(1, 5)))
        one = random_layout(draw, sizes, uneven=True)
        data = [(one.block(position), one.partial(position)) for position in range(len(one))]
        numbers = [device.shard for device in one]
        assert len(set(zip(numbers, data, strict=True))) == len(set(numbers)) == len(set(data))
        assert len(set(numbers)) == one.num_shards
        assert {numbers.count(number) for number in numbers} == {one.replicas}
        assert set(numbers) == set(range(one.num_shards))


def test_equal_slices_have_equal_numbers_where_the_parts_divide():
    draw = random.Random(5)
    for _ in range(100):
        sizes = tuple(draw.randrange(1, 4) for _ in range(draw.randrange(1, 5)))
        one = random_layout(draw, sizes)
        assert len({(d.slices, d.shard) for d in one}) == len({d.slices for d in one}) == one.num_shards


def test_partial_sums_are_different_data_on_the_same_slices():
    one = layout((8, 4), (("X",), ()), unreduced=("Y",))
    assert (one.num_shards, one.replicas) == (8, 1)
    assert {device.slices for device in one} == {((0, 4), (0, 4)), ((4, 8), (0, 4))}
    assert [one.partial(position) for position in range(8)] == [0, 1, 2, 3, 0, 1, 2, 3]
    assert [device.shard for device in one] == list(range(8))


def test_a_dimension_that_does_not_divide_is_padded_at_its_end():
    one = layout((5, 8), (("Y",), ("X",)))
    assert one.uneven == (Uneven(dim=0, size=5, parts=4, shard_size=2, padding=3),)
    assert one.shard_shape == (2, 4)
    assert [one.slices((block, 0))[0] for block in range(4)] == [(0, 2), (2, 4), (4, 5), (5, 5)]


def test_jax_refuses_what_is_called_uneven():
    draw = random.Random(6)
    refused = 0
    for _ in range(60):
        one = random_layout(draw, (2, 4), uneven=True)
        if not one.uneven:
            continue
        with pytest.raises(ValueError, match="divi"):
            as_jax(one).devices_indices_map(one.array.shape)
        refused += 1
    assert refused > 10


def test_more_devices_than_elements_leaves_some_with_nothing():
    one = layout((2,), (("X", "Y"),))
    assert [device.slices[0] for device in one] == [(0, 1), (1, 2)] + [(2, 2)] * 6


@pytest.mark.parametrize("shape", [(0,), (0, 8)])
def test_an_array_without_elements_has_empty_slices(shape):
    one = layout(shape, (("X",), *((),) * (len(shape) - 1)))
    assert {device.slices[0] for device in one} == {(0, 0)}
    assert one.uneven == ()


def test_rank_eight_is_shown_and_rank_nine_is_not():
    dims = (("X",), *((),) * 6, ("Y",))
    one = layout((2, 1, 1, 1, 1, 1, 1, 4), dims)
    assert one[7].slices == ((1, 2), *((0, 1),) * 6, (3, 4))
    with pytest.raises(QuestionError) as caught:
        layout((2,) * 9, ((),) * 9)
    assert caught.value.message == "A has 9 dimensions"
    assert caught.value.hint == "layouts show up to 8"


@pytest.mark.parametrize(
    ("dims", "message"),
    [((("Q",), ()), "unknown mesh axis 'Q'"), ((("X",), ("Y", "Z")), "unknown mesh axis 'Z'")],
)
def test_a_spec_must_fit_the_mesh(dims, message):
    with pytest.raises(QuestionError) as caught:
        layout((8, 8), dims)
    assert caught.value.message == message
    assert caught.value.hint == "this mesh has the axes X, Y"


def test_an_undecided_array_has_no_layout():
    with pytest.raises(QuestionError, match="the sharding of A is not decided"):
        Layout(ShardedArray("A", ("a",), (8,), "f32", None), MESH)


def test_sixty_five_thousand_devices():
    mesh = Mesh(("X", "Y", "Z"), (64, 32, 32))
    one = layout((4096, 2048), (("Z", "X"), ("Y",)), mesh)
    shards, bounds = one.shards(), one.bounds()
    assert (shards.shape, bounds.shape) == ((65536,), (65536, 2, 2))
    assert len(set(shards.tolist())) == one.num_shards == 65536
    for position in (0, 1, 40_000, 65_535):
        device = one[position]
        assert device.shard == shards[position]
        assert device.slices == tuple(map(tuple, bounds[position].tolist()))


def test_a_mesh_of_a_billion_devices_answers_for_one_position():
    mesh = Mesh(("X", "Y"), (2**15, 2**15))
    one = layout((2**15, 2**16), (("X",), ("Y",)), mesh)
    last = one[mesh.size - 1]
    assert last.slices == ((2**15 - 1, 2**15), (2**16 - 2, 2**16))
    assert last.shard == 2**30 - 1


@pytest.mark.parametrize("order", [None, (5, 2, 7, 0, 1, 6, 3, 4)])
def test_an_array_on_one_device(order):
    """The others hold nothing: JAX's `SingleDeviceSharding` does not name them."""
    import jax

    spec = PartitionSpec(((), ()), devices=(3,))
    one = Layout(ShardedArray("A", ("a", "b"), (4, 6), "f32", spec), Mesh(("X", "Y"), (2, 4), order))
    theirs = jax.sharding.SingleDeviceSharding(jax.devices()[3]).devices_indices_map((4, 6))
    assert [device.id for device in theirs] == [3]
    assert by_us(one) == {3: ((0, 4), (0, 6))}
    assert (one.replicas, one.num_shards, one.shard_shape, one.bytes_per_device) == (1, 1, (4, 6), 96)
    assert [device.slices for device in one if device.id != 3] == [((0, 0), (0, 0))] * 7
    assert [shard.shard for shard in one] == one.shards().tolist()
    assert [device.slices for device in one] == [tuple(map(tuple, each)) for each in one.bounds().tolist()]


@pytest.mark.parametrize("dims", list(all_specs(("X", "Y"), 2)))
def test_another_order_of_the_devices_is_a_mesh_in_that_order(dims):
    order = (5, 2, 7, 0, 1, 6, 3, 4)
    array = ShardedArray("A", ("a", "b"), (8, 16), "f32", PartitionSpec(dims, devices=order))
    given = layout((8, 16), dims, Mesh(("X", "Y"), (2, 4), order))
    assert by_us(Layout(array, MESH)) == by_jax(given)


@pytest.mark.parametrize(
    ("devices", "dims", "said"),
    [
        ((8,), ((), ()), "the mesh X=2,Y=4 has no device 8"),
        ((0, 1), ((), ()), "the device order is not a permutation of the 8 devices"),
        ((3,), (("X",), ()), "an array on device 3 alone is split in P('X', None) on device 3"),
    ],
)
def test_devices_that_hold_no_array(devices, dims, said):
    with pytest.raises(QuestionError, match=re.escape(said)):
        PartitionSpec(dims, devices=devices).check(MESH, 2)
