"""Equal, rounding or different: the verdicts of a verification, and that rounding has a bound."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from shardviz.collectives.operations import AllGather, PMax, PMean, PPermute, PSum, PSumScatter
from shardviz.collectives.values import numpy_dtype
from shardviz.collectives.verification import VerificationResult, verify
from shardviz.sharding import Mesh

LINE = Mesh(("i",), (4,))
AXES = ("i",)


def everywhere(values, dtype, devices=4):
    """The same result on every device."""
    return np.array([values] * devices).astype(numpy_dtype(dtype))


def shards(values, dtype):
    return np.array(values).astype(numpy_dtype(dtype))


def test_equal_says_how_many_values():
    same = everywhere([1, 2], "f32")
    assert verify(PSum(AXES), LINE, same, same, same.copy()) == VerificationResult("equal", 8)


def test_rounding_says_how_much_and_where():
    before = shards([[0.1, 1], [0.2, 1], [0.3, 1], [0.4, 1]], "f32")
    ours = everywhere([np.float32(1.0), 4], "f32")
    theirs = ours.copy()
    theirs[2, 0] = np.nextafter(np.float32(1), np.float32(2))
    theirs[3, 0] = np.nextafter(np.nextafter(np.float32(1), np.float32(0)), np.float32(0))
    found = verify(PSum(AXES), LINE, before, ours, theirs)
    assert found == VerificationResult("rounding", 8, 2, 2, 3, (0,), "1.0", "0.9999999")


def test_different_says_where_first_even_where_rounding_comes_before():
    before = shards([[1, 1], [1, 1], [1.1, 1], [0.9, 1]], "f32")
    ours, theirs = everywhere([4, 4], "f32"), everywhere([4, 4], "f32")
    theirs[0, 0] = np.nextafter(np.float32(4), np.float32(5))
    theirs[1, 1] = 5
    found = verify(PSum(AXES), LINE, before, ours, theirs)
    assert (found.verdict, found.differing, found.device, found.index) == ("different", 2, 1, (1,))
    assert (found.ours, found.theirs) == ("4.0", "5.0")


@pytest.mark.parametrize(
    ("operation", "dtype"),
    [
        (PSum(AXES), "s32"),
        (PSum(AXES), "pred"),
        (AllGather(AXES), "f32"),
        (PPermute(AXES, ((0, 1),)), "bf16"),
        (PMax(AXES), "f32"),
    ],
)
def test_no_rounding_where_nothing_is_rounded(operation, dtype):
    kind = "s32" if dtype == "pred" else dtype
    before = shards([[1]] * 4, dtype)
    ours = everywhere([100], kind)
    step = 1 if kind == "s32" else np.spacing(np.float32(100)) * (2**16 if kind == "bf16" else 1)
    theirs = (ours.astype(np.float64) + step).astype(ours.dtype)
    assert (ours != theirs).all()
    assert verify(operation, LINE, before, ours, theirs).verdict == "different"


def test_a_sum_in_another_group_is_no_rounding():
    """The bound is that of the group: large numbers elsewhere do not hide a difference."""
    mesh = Mesh(("x", "y"), (2, 2))
    before = shards([[1.0], [1.0], [1e30], [1e30]], "f32")
    ours = shards([[2], [2], [2e30], [2e30]], "f32")
    theirs = shards([[3], [2], [2e30], [2e30]], "f32")
    assert verify(PSum(("y",)), mesh, before, ours, theirs).verdict == "different"
    assert verify(PSum(("x",)), mesh, before, ours, theirs).verdict == "rounding"


def test_a_scattered_sum_is_bound_by_its_own_addends():
    mesh = Mesh(("i",), (2,))
    before = shards([[0.1, 1e30], [1.9, 1.7e30]], "f32")
    ours = shards([[2.0], [2.7e30]], "f32")
    assert (
        verify(PSumScatter(AXES), mesh, before, ours, shards([[3.0], [2.7e30]], "f32")).verdict == "different"
    )
    near = ours.copy()
    near[0] = np.nextafter(ours[0], np.float32(0))
    assert verify(PSumScatter(AXES), mesh, before, ours, near).verdict == "rounding"


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "f8e4m3fn", "f8e5m2", "f4e2m1fn", "c64"])
@given(st.data())
def test_any_two_orders_of_additions_are_rounding_at_most(dtype, data):
    kind = numpy_dtype(dtype)
    count = data.draw(st.integers(2, 6))
    numbers = st.lists(st.floats(-100, 100), min_size=count, max_size=count)
    with np.errstate(all="ignore"):
        before = np.array(data.draw(numbers)).astype(kind).reshape(count, 1)
        order = data.draw(st.permutations(range(count)))
        results = []
        for way in (range(count), order):
            total = np.zeros(1, kind)
            for member in way:
                total = total + before[member]
            results.append(np.array([total] * count))
        # As XLA for CPU does for narrow types: all in f32, rounded once.
        if dtype not in ("f64", "c64"):
            wide = before.astype(np.float32).sum(0).astype(kind)
            results.append(np.array([wide] * count))
    mesh = Mesh(("i",), (count,))
    for ours in results:
        for theirs in results:
            assert verify(PSum(AXES), mesh, before, ours, theirs).verdict in ("equal", "rounding")


def test_far_apart_is_no_rounding_in_any_float():
    for dtype in ("f32", "f64", "f16", "bf16", "f8e5m2", "c64", "c128"):
        before = shards([[1.0]] * 2, dtype)
        ours, theirs = everywhere([2.0], dtype, 2), everywhere([8.0], dtype, 2)
        assert verify(PSum(AXES), Mesh(AXES, (2,)), before, ours, theirs).verdict == "different"


def test_both_parts_of_complex_numbers_count():
    before = shards([[1 + 0.9j], [1 + 1.1j], [1 + 1j], [1 + 1j]], "c64")
    ours = everywhere([4 + 4j], "c64")
    assert verify(PSum(AXES), LINE, before, ours, everywhere([4 + 5j], "c64")).verdict == "different"
    near = everywhere([4 + 4.0000005j], "c64")
    found = verify(PSum(AXES), LINE, before, ours, near)
    assert (found.verdict, found.ulps) == ("rounding", 1)


def test_ulps_count_the_numbers_between_in_every_float():
    for dtype in ("f32", "f64", "f16", "bf16", "f8e4m3fn", "f8e4m3fnuz", "f4e2m1fn"):
        kind = numpy_dtype(dtype)
        steps = 3
        ours = np.full((4, 1), 1, kind)
        theirs = (ours.view(f"u{kind.itemsize}") + np.array(steps, f"u{kind.itemsize}")).view(kind)
        before = np.full((4, 1), 6, kind)
        found = verify(PSum(AXES), LINE, before, ours, theirs)
        assert found.ulps == steps, dtype
    across = verify(
        PSum(AXES), LINE, shards([[1.0]] * 4, "f64"), everywhere([-4.0], "f64"), everywhere([4.0], "f64")
    )
    assert across.ulps == 2**62


def test_nan_equals_nan_and_zeros_have_no_sign_after_a_reduction():
    before = shards([[np.nan, 0.0]] * 4, "f32")
    ours, theirs = everywhere([np.nan, 0.0], "f32"), everywhere([-np.nan, -0.0], "f32")
    assert verify(PSum(AXES), LINE, before, ours, theirs).verdict == "equal"
    moved = PPermute(AXES, ())
    assert verify(moved, LINE, before, ours[:, :1], theirs[:, :1]).verdict == "equal"
    assert verify(moved, LINE, before, ours, theirs).verdict == "different"


def test_infinity_is_no_rounding_unless_a_partial_sum_may_overflow():
    ours, theirs = everywhere([np.inf], "f16"), everywhere([1.0], "f16")
    small = shards([[1.0]] * 4, "f16")
    assert verify(PSum(AXES), LINE, small, ours, theirs).verdict == "different"
    large = shards([[60000.0], [60000.0], [-60000.0], [-60000.0]], "f16")
    assert verify(PSum(AXES), LINE, large, ours, theirs).verdict == "rounding"
    infinite = shards([[np.inf], [1.0], [1.0], [1.0]], "f16")
    assert verify(PSum(AXES), LINE, infinite, ours, theirs).verdict == "different"


def test_a_mean_may_be_divided_in_two_ways():
    """15 / 7 and 15 * (1 / 7), in f32."""
    mesh = Mesh(AXES, (7,))
    before = np.array([[15], *[[0]] * 6], np.int32)
    ours = np.full((7, 1), np.float32(15) / np.float32(7))
    theirs = np.full((7, 1), np.float32(15) * (np.float32(1) / np.float32(7)))
    found = verify(PMean(AXES), mesh, before, ours, theirs)
    assert (found.verdict, found.ulps) == ("rounding", 1)
    assert verify(PMean(AXES), mesh, before, ours, ours * np.float32(1.001)).verdict == "different"


def test_nan_in_a_maximum_has_a_reason():
    before = shards([[np.nan], [1.0], [2.0], [3.0]], "f32")
    found = verify(PMax(AXES), LINE, before, everywhere([np.nan], "f32"), everywhere([3.0], "f32"))
    assert found.verdict == "different"
    assert found.note.startswith("XLA for CPU passes over NaN here")


def test_results_of_another_kind_are_different():
    ours = everywhere([1, 2], "f32")
    found = verify(PSum(AXES), LINE, ours, ours, everywhere([1, 2], "s32"))
    assert (found.verdict, found.note) == ("different", "ours is float32[2], theirs int32[2]")
    found = verify(PSum(AXES), LINE, ours, ours, everywhere([1], "f32"))
    assert found.note == "ours is float32[2], theirs float32[1]"


def test_every_order_of_small_whole_numbers_is_equal():
    before = shards([[3.0], [-1.0], [2.0], [1.0]], "bf16")
    results = [
        everywhere([sum((before[m] for m in way), np.zeros(1, before.dtype))[0]], "bf16")
        for way in permutations(range(4))
    ]
    assert {verify(PSum(AXES), LINE, before, results[0], each).verdict for each in results} == {"equal"}


@pytest.mark.parametrize(
    ("dtype", "addend", "count", "wrong"),
    [
        ("f8e4m3fn", 1, 8, 0),
        ("f4e2m1fn", 1, 4, 0),
        ("f8e5m2", 1, 4, 5),
        ("bf16", 1, 16, 15),
        ("bf16", 1, 128, 64),
        ("f16", 1, 32, 31),
        ("f32", 0.5, 4096, 2047.5),
        ("f16", 15000, 4, 0),
        ("f32", 1e-40, 4, 0),
    ],
)
def test_sums_that_no_order_rounds_have_no_excuse(
    dtype: str, addend: float, count: int, wrong: float
) -> None:
    mesh = Mesh(("i",), (count,))
    before = shards([[addend]] * count, dtype)
    ours = everywhere([addend * count], dtype, count)
    assert verify(PSum(AXES), mesh, before, ours, everywhere([wrong], dtype, count)).verdict == "different"


def test_overflow_excuses_what_is_infinite_alone() -> None:
    before = shards([[40000.0]] * 4, "f16")
    infinite = everywhere([np.inf], "f16")
    assert verify(PSum(AXES), LINE, before, infinite, everywhere([65504], "f16")).verdict == "rounding"
    before = shards([[16370.0]] * 4, "f16")
    ours = everywhere([65472], "f16")
    assert verify(PSum(AXES), LINE, before, ours, everywhere([-123], "f16")).verdict == "different"
