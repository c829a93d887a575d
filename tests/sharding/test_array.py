"""Sharded arrays: what they refuse, shards and bytes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from shardviz.errors import QuestionError
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray, array_bytes, canonical_dtype, shard_shape
from shardviz.sharding.array import BITS, other_names

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


NUMPY = ["bool", "float16", "float32", "float64", "complex64", "complex128"] + [
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
]
WHOLE_BYTES = ["bfloat16"] + [
    name
    for name in dir(ml_dtypes)
    if name.startswith("float8_") and isinstance(getattr(ml_dtypes, name), type)
]
PACKED = [("int4", 4), ("uint4", 4), ("int2", 2), ("uint2", 2), ("float4_e2m1fn", 4)]

NAMES = [
    ("bf16", "bf16"),
    ("bfloat16", "bf16"),
    (" BF16 ", "bf16"),
    ("float32", "f32"),
    ("float", "f32"),
    ("double", "f64"),
    ("half", "f16"),
    ("bool", "pred"),
    ("i1", "pred"),
    ("i32", "s32"),
    ("int32", "s32"),
    ("uint8", "u8"),
    ("s4", "s4"),
    ("float8_e4m3fn", "f8e4m3fn"),
    ("f8E4M3FN", "f8e4m3fn"),
    ("f8e8m0fnu", "f8e8m0fnu"),
    ("float4_e2m1fn", "f4e2m1fn"),
    ("complex64", "c64"),
]


@pytest.mark.parametrize(("name", "hlo"), NAMES)
def test_every_library_s_name_becomes_hlo_s(name, hlo):
    assert canonical_dtype(name) == hlo


@pytest.mark.parametrize("name", NUMPY)
def test_bytes_are_numpy_s(name):
    assert array_bytes((3, 5), canonical_dtype(name)) == np.zeros((3, 5), name).nbytes


@pytest.mark.parametrize("name", WHOLE_BYTES)
def test_bytes_are_those_of_ml_dtypes(name):
    assert array_bytes((3, 5), canonical_dtype(name)) == 15 * np.dtype(getattr(ml_dtypes, name)).itemsize


@pytest.mark.parametrize(("name", "bits"), PACKED)
def test_types_under_a_byte_are_packed(name, bits):
    assert BITS[canonical_dtype(name)] == bits
    assert array_bytes((3, 5), canonical_dtype(name)) == -(-15 * bits // 8)


def test_ml_dtypes_has_eight_bit_floats_to_judge_by():
    assert len(WHOLE_BYTES) > 6


@pytest.mark.parametrize(("shape", "size"), [((), 2), ((0, 7), 0), ((2, 3), 12)])
def test_bytes_of_a_shape(shape, size):
    assert array_bytes(shape, "bf16") == size


@pytest.mark.parametrize("name", ["", "f31", "bf", "x" * 500, "f32\x00", "int"])
def test_an_unknown_name_is_shown(name):
    with pytest.raises(QuestionError) as caught:
        canonical_dtype(name)
    assert caught.value.message.startswith("unknown dtype '")
    assert len(caught.value.message) < 100
    assert "bf16" in caught.value.hint


@pytest.mark.parametrize("dtype", BITS)
def test_other_names_of_a_dtype_mean_it(dtype):
    assert {canonical_dtype(name) for name in other_names(dtype)} <= {dtype}
