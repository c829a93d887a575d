"""Lines through times: they find what the times were made of, and say where they do not hold."""

from __future__ import annotations

import math
import random
import statistics

import numpy as np
import pytest

from shardviz.devices.fitting import fits
from shardviz.devices.question import Case, Measurement

SIZES = [2**power for power in range(12, 29)]


def rows(times, op="psum", axes=("X",), sizes=SIZES, spread=0.0):
    return [
        Measurement(
            Case(op, axes, 4, size, size // 4, "f32"),
            tuple(time * (1 + spread * share) for share in (-1, -0.5, 0, 0.5, 1)) if spread else (time,),
        )
        for size, time in zip(sizes, times, strict=True)
    ]


def line(latency, bandwidth):
    return [latency + size / bandwidth for size in SIZES]


def only(found):
    (fit,) = found
    return fit


@pytest.mark.parametrize(("latency", "bandwidth"), [(10e-6, 100e9), (1e-3, 1e9), (0.0, 5e9)])
def test_a_line_is_found_again(latency, bandwidth):
    fit = only(fits(rows(line(latency, bandwidth))))
    (regime,) = fit.regimes
    assert regime.latency == pytest.approx(latency, abs=1e-9)
    assert regime.bandwidth == pytest.approx(bandwidth)
    assert fit.held_back == pytest.approx(0, abs=1e-6)
    assert fit.holds
    assert not fit.is_noisy


def test_least_squares_are_numpys():
    """The same problem as numpy solves it: relative errors, with its own covariance."""
    maker = random.Random(1)
    times = [each * maker.uniform(0.97, 1.03) for each in line(20e-6, 50e9)]
    (regime,) = only(fits(rows(sorted(times)))).regimes
    design = np.array([[1 / time, size / time] for size, time in zip(SIZES, sorted(times), strict=True)])
    solved, squares, *_ = np.linalg.lstsq(design, np.ones(len(SIZES)), rcond=None)
    assert [regime.latency, 1 / regime.bandwidth] == pytest.approx(solved)
    covariance = np.linalg.inv(design.T @ design) * squares[0] / (len(SIZES) - 2)
    # The criterion counts logarithms, which are relative errors where these are small.
    assert regime.latency_error == pytest.approx(math.sqrt(covariance[0, 0]), rel=0.05)
    slope_error = regime.bandwidth_error / regime.bandwidth**2
    assert slope_error == pytest.approx(math.sqrt(covariance[1, 1]), rel=0.05)


def test_the_error_covers_the_truth_as_often_as_a_standard_error_does():
    inside = 0
    for seed in range(200):
        maker = random.Random(seed)
        times = [each * maker.gauss(1, 0.02) for each in line(50e-6, 10e9)]
        regime = only(fits(rows(sorted(times)))).regimes[0]
        inside += abs(regime.latency - 50e-6) <= 2 * regime.latency_error
    assert inside >= 180


def test_two_regimes_are_found_where_they_are():
    times = [20e-6 + size / 10e9 if size < 2**20 else 100e-6 + size / 2e9 for size in SIZES]
    fit = only(fits(rows(times)))
    first, second = fit.regimes
    assert (first.latency, first.bandwidth) == (pytest.approx(20e-6), pytest.approx(10e9))
    assert (second.latency, second.bandwidth) == (pytest.approx(100e-6, rel=1e-3), pytest.approx(2e9))
    assert 2**19 < second.start <= 2**20
    assert max(map(fit.off, fit.rows)) < 1e-3
    assert fit.holds


def test_a_further_regime_has_to_be_worth_it():
    maker = random.Random(3)
    times = sorted(each * maker.uniform(0.9, 1.1) for each in line(30e-6, 20e9))
    assert len(only(fits(rows(times))).regimes) == 1


def test_held_back_sizes_are_not_in_the_lines_that_predict_them():
    """Every second size is twice as slow as its line: no line through the others can know."""
    times = [each * (2 if place % 2 else 1) for place, each in enumerate(line(0.0, 1e9))]
    fit = only(fits(rows(times)))
    assert fit.held_back > 0.25
    assert not fit.holds


def test_sizes_that_other_work_slowed_down_do_not_bend_the_line():
    times = line(10e-6, 10e9)
    slow = [each * (30 if place in (2, 5) else 1) for place, each in enumerate(times)]
    fit = only(fits(rows(slow)))
    assert fit.slowed == 2
    assert fit.regimes[0].latency == pytest.approx(10e-6, rel=0.3)
    assert fit.seconds(2**28) == pytest.approx(times[-1], rel=0.05)
    assert fit.holds
    assert not fit.is_noisy


def test_noise():
    fit = only(fits(rows(line(10e-6, 10e9), spread=0.6)))
    assert fit.noise == pytest.approx(0.6)
    assert fit.is_noisy
    row = fit.rows[0]
    low, _, high = np.percentile(row.seconds, [25, 50, 75])
    assert row.noise == pytest.approx((high - low) / statistics.median(row.seconds))


def test_the_noise_of_one_run_is_not_known():
    fit = only(fits(rows(line(10e-6, 10e9))))
    assert fit.rows[0].noise is None
    assert fit.noise is None
    assert not fit.is_noisy


def test_each_operation_and_group_has_lines_of_its_own():
    both = (
        rows(line(10e-6, 1e9))
        + rows(line(20e-6, 2e9), axes=("Y",))
        + rows(line(1e-6, 3e9), op="copy", axes=())
    )
    assert [(fit.op, fit.axes) for fit in fits(both)] == [("psum", ("X",)), ("psum", ("Y",)), ("copy", ())]
    assert fits(rows([1.0], sizes=[4096])) == ()
    assert len(fits(rows([1.0], op="copy", axes=(), sizes=[4096]))) == 1


def test_two_sizes_have_the_line_through_them():
    fit = only(fits(rows([2e-6, 3e-6], sizes=[1000, 2000])))
    assert [fit.seconds(1000), fit.seconds(2000), fit.seconds(3000)] == pytest.approx([2e-6, 3e-6, 4e-6])
    assert fit.held_back is None


def test_a_growth_that_nobody_can_tell_is_none():
    (regime,) = only(fits(rows([5e-6, 5e-6 * (1 + 1e-12)], sizes=[4096, 65536]))).regimes
    assert (regime.latency, regime.bandwidth) == (pytest.approx(5e-6), math.inf)


def test_times_that_do_not_grow_tell_no_bandwidth():
    fit = only(fits(rows([5e-6, 5e-6, 5e-6], sizes=[1000, 2000, 4000])))
    assert fit.regimes[0].bandwidth == math.inf
    assert fit.regimes[0].latency == pytest.approx(5e-6)
