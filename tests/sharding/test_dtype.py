"""Dtype names and bytes, judged by NumPy and ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from shardviz.errors import QuestionError
from shardviz.sharding import array_bytes, canonical_dtype
from shardviz.sharding.dtype import BITS

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
