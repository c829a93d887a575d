"""Dtypes by HLO's names, and numbers that people wrote."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from shardviz.collectives.values import array_from_numbers, numpy_dtype
from shardviz.compiler.child.program import jax_dtype
from shardviz.errors import QuestionError, ShardvizError
from shardviz.notation.numbers import parse_numbers
from shardviz.sharding import canonical_dtype
from shardviz.sharding.array import BITS

DTYPES = [name for name, bits in BITS.items() if bits]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_dtype_is_that_of_jax_and_keeps_its_name(dtype):
    assert numpy_dtype(dtype) == np.dtype(jax_dtype(dtype))
    assert canonical_dtype(str(numpy_dtype(dtype))) == dtype


@pytest.mark.parametrize("dtype", ["token", "opaque", "f33", ""])
def test_what_is_no_dtype_of_numbers(dtype):
    with pytest.raises(QuestionError, match="dtype"):
        numpy_dtype(dtype)


@pytest.mark.parametrize(
    ("numbers", "dtype", "expected"),
    [
        (["3", "9", " 5", "2"], "s32", [3, 9, 5, 2]),
        (range(4), "s4", [0, 1, 2, 3]),
        ([-8, 7], "s4", [-8, 7]),
        (["3.0", "-1e2"], "s8", [3, -100]),
        ([2**64 - 1, str(2**63)], "u64", [2**64 - 1, 2**63]),
        ([-(2**63)], "s64", [-(2**63)]),
        (["true", "False", "1", 0], "pred", [True, False, True, False]),
        (["true", 2], "f32", [1.0, 2.0]),
        (["0.1", "1e-60"], "f32", [np.float32(0.1), 0.0]),
        (["0.3"], "bf16", [ml_dtypes.bfloat16(0.3)]),
        (["inf", "-Infinity"], "f16", [np.inf, -np.inf]),
        (["1+2j", 3, "4j"], "c64", [1 + 2j, 3, 4j]),
        (["5"], "f4e2m1fn", [4.0]),
        (["2", "0.25"], "f8e8m0fnu", [2.0, 0.25]),
        ([], "f32", []),
    ],
)
def test_numbers_become_an_array(numbers, dtype, expected):
    found = array_from_numbers([*map(str, numbers)], dtype)
    assert found.dtype == numpy_dtype(dtype)
    assert found.shape == (len(expected),)
    assert found.tolist() == expected


def test_nan_stays_where_there_is_one():
    for dtype in ("f16", "bf16", "f8e4m3fn", "c128"):
        assert np.isnan(array_from_numbers(["nan"], dtype)).all()


NUMBER = "number 1 of the data, "


@pytest.mark.parametrize(
    ("number", "dtype", "message", "hint"),
    [
        ("3.5", "s32", NUMBER + "'3.5', does not fit s32, which has whole numbers only", "use --dtype f32"),
        ("nan", "s32", NUMBER + "'nan', does not fit s32, which has whole numbers only", "use --dtype f32"),
        ("300", "s8", NUMBER + "'300', does not fit s8, which holds -128 to 127", "a wider --dtype"),
        (-1, "u32", NUMBER + "'-1', does not fit u32, which holds 0 to 4,294,967,295", "a wider --dtype"),
        ("2", "pred", NUMBER + "'2', does not fit pred, which holds 0 to 1", "a wider --dtype"),
        ("70000", "f16", NUMBER + "'70000', does not fit f16, which ends at 65504", "a wider --dtype"),
        ("100", "f4e2m1fn", NUMBER + "'100', does not fit f4e2m1fn, which ends at 6", "a wider --dtype"),
        ("inf", "f8e4m3fn", NUMBER + "'inf', does not fit f8e4m3fn, which has no infinity", "a wider"),
        ("nan", "f4e2m1fn", NUMBER + "'nan', does not fit f4e2m1fn, which has no NaN", "a wider --dtype"),
        ("0", "f8e8m0fnu", "which holds 5.87747e-39 to 1.70141e+38", "a wider --dtype"),
        ("-2", "f8e8m0fnu", "which holds 5.87747e-39 to 1.70141e+38", "a wider --dtype"),
        ("1+2j", "f32", NUMBER + "'1+2j', does not fit f32, which has real numbers only", "--dtype c64"),
        ("1e39", "c64", NUMBER + "'1e39', does not fit c64, which ends at 3.40282e+38", "a wider --dtype"),
        ("1e400", "f64", NUMBER + "'1e400', does not fit f64, which ends far below it", "a wider --dtype"),
        ("1e400j", "c128", NUMBER + "'1e400j', does not fit c128, which ends far below it", "a wider"),
        (10**400, "f32", "does not fit f32, which ends far below it", "a wider --dtype"),
    ],
)
def test_a_number_that_does_not_fit_is_shown(number, dtype, message, hint):
    with pytest.raises(QuestionError) as caught:
        array_from_numbers([str(number), "1"], dtype)
    assert message in caught.value.message
    assert len(caught.value.message) < 120
    assert hint in caught.value.hint


def test_the_first_that_does_not_fit_is_counted_from_one():
    with pytest.raises(QuestionError, match="number 3 of the data, '300', does not fit s8"):
        array_from_numbers(["1", "2", "300", "400"], "s8")


@given(st.text("0123456789.+-einfaj,", max_size=40), st.sampled_from(DTYPES))
def test_numbers_that_were_read_fit_or_are_a_shardviz_error(text, dtype):
    try:
        numbers = parse_numbers(text).texts
        found = array_from_numbers(numbers, dtype)
    except ShardvizError:
        return
    assert found.shape == (len(numbers),)


@given(st.lists(st.integers(-(2**70), 2**70)), st.sampled_from([name for name in DTYPES if name[0] in "su"]))
def test_integers_arrive_as_they_are_or_not_at_all(numbers, dtype):
    try:
        found = array_from_numbers([*map(str, numbers)], dtype)
    except ShardvizError:
        return
    assert [int(number) for number in found] == numbers
