"""Sharded arrays: what they refuse, shards and bytes."""

from __future__ import annotations

import pytest

from shardviz.errors import QuestionError
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray, shard_shape

MESH = Mesh(("X", "Y"), (2, 4))
A = ShardedArray("A", ("b", "d"), (8, 2048), "bf16", PartitionSpec((("X",), ("Y",))))

REFUSED = [
    (("A", ("b",), (8, 4), "f32", None), "A has 1 dimension but 2 sizes", "one size for each"),
    (("A", ("b",), (-8,), "f32", None), "dimension b of A has size -8", "0 or more"),
    (("A", ("b", "c"), (2**40, 2**40), "f32", None), "A would have more than 2^62 elements", "smaller"),
    (("A", ("b",), (8,), "f31", None), "unknown dtype 'f31'", "bf16"),
    (("A", ("b",), (8,), "bfloat16", None), "unknown dtype 'bfloat16'", "bf16"),
    (
        ("A", ("b", "d"), (8, 8), "f32", PartitionSpec((("X",),))),
        "the spec P('X') has 1 entry but A has 2 dimensions",
        "one entry for each dimension",
    ),
]


@pytest.mark.parametrize(("arguments", "message", "hint"), REFUSED)
def test_an_array_says_what_is_wrong(arguments, message, hint):
    with pytest.raises(QuestionError) as caught:
        ShardedArray(*arguments)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_huge_sizes_are_refused_without_being_written_out():
    with pytest.raises(QuestionError, match="A would have more than"):
        ShardedArray("A", ("b",), (10**5000,), "f32", None)


def test_an_open_spec_is_not_decided():
    with pytest.raises(QuestionError, match="the sharding of A is not decided") as caught:
        A.with_spec(None).bytes_per_device(MESH)
    assert caught.value.hint == "give a spec for A"


def test_bytes_of_the_whole_and_of_a_shard():
    assert (A.rank, A.elements, A.nbytes) == (2, 16384, 32768)
    assert A.shard_shape(MESH) == (4, 512)
    assert A.bytes_per_device(MESH) == 4096
    assert A.replicas(MESH) == 1


@pytest.mark.parametrize(
    ("spec", "replicas"),
    [
        (PartitionSpec(((), ())), 8),
        (PartitionSpec((("X",), ())), 4),
        (PartitionSpec(((), ("Y",))), 2),
        (PartitionSpec(((), ()), ("Y",)), 2),
        (PartitionSpec((("Y", "X"), ())), 1),
    ],
)
def test_replicas_hold_the_same_data(spec, replicas):
    assert A.with_spec(spec).replicas(MESH) == replicas


def test_shards_of_a_dimension_that_does_not_divide_are_padded():
    assert shard_shape((9, 3), PartitionSpec((("Y",), ("X",))), MESH) == (3, 2)


def test_an_array_without_elements():
    empty = ShardedArray("E", ("b", "d"), (0, 8), "f32", PartitionSpec((("X",), ())))
    assert (empty.elements, empty.shard_shape(MESH), empty.bytes_per_device(MESH)) == (0, (0, 8), 0)
