"""The least sum of stars, against elimination without bounds and against trying all choices."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from shardviz.planner.search import least_sum
from shardviz.planner.search.least_sum import DualBounds, Factor, least, least_of_stars

MIDDLES, OTHERS = ["#0", "#1", "#2", "#3"], "abcd"


def random_stars(rng):
    """Stars over shared variables, with impossible pairs and many equal sums."""
    sizes = {name: int(rng.integers(1, 5)) for name in (*OTHERS, *MIDDLES)}
    factors = [Factor((name,), rng.integers(0, 9, sizes[name]).astype(float)) for name in sizes]
    for middle in MIDDLES:
        for other in rng.permutation(list(OTHERS))[: rng.integers(1, 4)]:
            table = rng.integers(0, 9, (sizes[middle], sizes[str(other)])).astype(float)
            table[rng.random(table.shape) < 0.1] = np.inf
            factors.append(Factor((middle, str(other)), table))
    return factors, sizes


def total(factors, chosen):
    return sum(float(each.table[tuple(chosen[name] for name in each.variables)]) for each in factors)


@pytest.mark.parametrize("seed", range(80))
def test_it_is_the_least_of_all_choices(seed):
    factors, sizes = random_stars(np.random.default_rng(seed))
    expected, _ = least(factors, sizes)
    if not np.isfinite(expected):
        return
    found, chosen = least_of_stars(factors, sizes)
    assert found == pytest.approx(expected, rel=1e-12)
    assert total(factors, chosen) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_no_choice_is_less_than_its_bound(seed):
    """With any prices: the bound, and with each value the bound and its excess."""
    factors, sizes = random_stars(np.random.default_rng(seed))
    factors = [Factor(each.variables, np.minimum(each.table, 100.0)) for each in factors]
    sizes = {name: min(size, 3) for name, size in sizes.items()}
    factors = [
        Factor(each.variables, each.table[tuple(slice(sizes[name]) for name in each.variables)])
        for each in factors
    ]
    bounds = DualBounds(factors, sizes)
    for _ in range(3):
        excess, bound = bounds.excess(), bounds.bound
        for values in product(*map(range, sizes.values())):
            chosen = dict(zip(sizes, values, strict=True))
            found = total(factors, chosen) + 1e-9
            assert all(found >= bound + excess[name][value] for name, value in chosen.items())
        bounds.sweep()
        assert bounds.bound >= bound - 1e-9


def test_it_stays_the_least_where_bounds_are_not_met(monkeypatch):
    """With poor prices the values that are left are eliminated."""
    monkeypatch.setattr(least_sum, "SWEEPS", (0,))
    for seed in range(20):
        factors, sizes = random_stars(np.random.default_rng(seed))
        expected, _ = least(factors, sizes)
        if np.isfinite(expected):
            assert least_of_stars(factors, sizes)[0] == pytest.approx(expected, rel=1e-12)
