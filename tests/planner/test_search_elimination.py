"""The least sum of tables, against trying all choices."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from shardviz.planner.search.least_sum import Factor, TooWideError, least


def random_factors(rng, names, sizes):
    found = []
    for _ in range(rng.integers(1, 8)):
        own = tuple(rng.permutation(names)[: rng.integers(1, 4)])
        found.append(Factor(own, rng.integers(0, 20, [sizes[name] for name in own]).astype(float)))
    return found


@pytest.mark.parametrize("seed", range(60))
def test_it_is_the_least_of_all_choices(seed):
    rng = np.random.default_rng(seed)
    sizes = {name: int(rng.integers(1, 4)) for name in "abcdef"}
    factors = random_factors(rng, list(sizes), sizes)

    def total(chosen):
        return sum(float(each.table[tuple(chosen[name] for name in each.variables)]) for each in factors)

    best = min(total(dict(zip(sizes, each, strict=True))) for each in product(*map(range, sizes.values())))
    found, chosen = least(factors, sizes)
    assert found == best == total(chosen)
    assert set(chosen) == set(sizes)


def test_of_equals_the_first_is_chosen():
    assert least([Factor(("a",), np.array([1.0, 0.0, 0.0]))], {"a": 3, "b": 2}) == (0.0, {"b": 0, "a": 1})


def test_a_table_that_is_too_large_is_refused():
    with pytest.raises(TooWideError):
        least([Factor(("a", "b"), np.zeros((3, 3)))], {"a": 3, "b": 3}, max_entries=8)
