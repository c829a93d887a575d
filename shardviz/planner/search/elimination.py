"""The choice of one value for each variable that makes a sum of tables least, by eliminating one at a time.

Each table is over a few variables. A variable is eliminated by adding the tables that have it and keeping,
for each choice of their other variables, the least; so the answer is exact, in time and memory that grow with
the largest table on the way and not with the number of all choices (Bertelè and Brioschi, "Nonserial Dynamic
Programming", 1972).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

MAX_ENTRIES = 20_000_000
"""Entries of a table on the way: a few hundred megabytes."""
Table = NDArray[np.float64]


class TooWideError(Exception):
    """A table on the way would have more than `MAX_ENTRIES`."""


@dataclass(frozen=True)
class Factor:
    """A table over variables, by their names in the order of its dimensions."""

    variables: tuple[str, ...]
    table: Table


def least(factors: Sequence[Factor], sizes: Mapping[str, int]) -> tuple[float, dict[str, int]]:
    """The least sum, and the index of the value of each variable; of equals the first.

    `sizes` are the numbers of values. Raises `TooWideError`.
    """
    left = list(factors)
    waiting = list(sizes)
    eliminated: list[tuple[str, tuple[str, ...], NDArray[np.intp]]] = []
    while waiting:
        name = min(waiting, key=lambda each: (_width(each, left, sizes), waiting.index(each)))
        waiting.remove(name)
        own = [factor for factor in left if name in factor.variables]
        left = [factor for factor in left if name not in factor.variables]
        others = tuple(dict.fromkeys(v for factor in own for v in factor.variables if v != name))
        if prod(sizes[each] for each in (*others, name)) > MAX_ENTRIES:
            raise TooWideError
        total = np.zeros([sizes[each] for each in (*others, name)])
        for factor in own:
            total += _broadcast(factor, (*others, name))
        eliminated.append((name, others, total.argmin(axis=-1)))
        left.append(Factor(others, total.min(axis=-1)))
    chosen: dict[str, int] = {}
    for name, others, best in reversed(eliminated):
        chosen[name] = int(best[tuple(chosen[other] for other in others)])
    return float(sum(factor.table for factor in left)), chosen


def _width(name: str, factors: Sequence[Factor], sizes: Mapping[str, int]) -> int:
    """Entries of the table that eliminating a variable makes."""
    around = {each for factor in factors if name in factor.variables for each in factor.variables}
    return prod(sizes[each] for each in around | {name})


def _broadcast(factor: Factor, variables: tuple[str, ...]) -> Table:
    """The table with its dimensions in the order of `variables`, of size 1 where it lacks one."""
    order = [factor.variables.index(each) for each in variables if each in factor.variables]
    shape = [
        factor.table.shape[factor.variables.index(each)] if each in factor.variables else 1
        for each in variables
    ]
    return factor.table.transpose(order).reshape(shape)
