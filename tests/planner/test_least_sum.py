"""The least sum of tables, against trying all choices; of stars also against elimination without bounds."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from shardviz.planner.search import least_sum
from shardviz.planner.search.least_sum import DualBounds, Factor, TooWideError, least, least_of_stars


def least_of(factors, sizes, **more):
    return least(factors, {name: np.arange(size) for name, size in sizes.items()}, **more)


def total(factors, chosen):
    return sum(float(each.table[tuple(chosen[name] for name in each.variables)]) for each in factors)


def random_factors(rng, names, sizes):
    found = []
    for _ in range(rng.integers(1, 8)):
        own = tuple(rng.permutation(names)[: rng.integers(1, 4)])
        found.append(Factor(own, rng.integers(0, 20, [sizes[name] for name in own]).astype(float)))
    return found


@pytest.mark.parametrize("seed", range(60))
def test_elimination_finds_the_least_of_all_choices(seed):
    rng = np.random.default_rng(seed)
    sizes = {name: int(rng.integers(1, 4)) for name in "abcdef"}
    factors = random_factors(rng, list(sizes), sizes)

    choices = (dict(zip(sizes, each, strict=True)) for each in product(*map(range, sizes.values())))
    best = min(total(factors, each) for each in choices)
    found, chosen = least_of(factors, sizes)
    assert found == best == total(factors, chosen)
    assert set(chosen) == set(sizes)


def test_of_equals_the_first_is_chosen():
    assert least_of([Factor(("a",), np.array([1.0, 0.0, 0.0]))], {"a": 3, "b": 2}) == (0.0, {"b": 0, "a": 1})


def test_a_table_that_is_too_large_is_refused():
    with pytest.raises(TooWideError):
        least_of([Factor(("a", "b"), np.zeros((3, 3)))], {"a": 3, "b": 3}, max_entries=8)


def test_variables_with_one_value_take_no_dimension():
    """NumPy's arrays have at most 64."""
    names = [f"v{number}" for number in range(70)]
    sizes = {"a": 3, **dict.fromkeys(names, 1)}
    whole = Factor(("a", *names[:60]), np.array([4.0, 1.0, 2.0]).reshape(3, *[1] * 60))
    pairs = [Factor(("a", name), np.array([[1.0], [2.0], [0.0]])) for name in names[60:]]
    found, chosen = least_of([whole, *pairs], sizes)
    assert (found, chosen["a"]) == (2.0, 2)
    assert set(chosen) == set(sizes)


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


@pytest.mark.parametrize("seed", range(80))
def test_of_stars_it_is_the_least_of_all_choices(seed):
    factors, sizes = random_stars(np.random.default_rng(seed))
    expected, _ = least_of(factors, sizes)
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
    bounds = DualBounds(factors, {name: np.arange(size) for name, size in sizes.items()})
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
        expected, _ = least_of(factors, sizes)
        if np.isfinite(expected):
            assert least_of_stars(factors, sizes)[0] == pytest.approx(expected, rel=1e-12)
