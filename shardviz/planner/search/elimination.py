"""The choice of one value for each variable that makes a sum of tables least, by eliminating one at a time.

Each table is over a few variables. A variable is eliminated by adding the tables that have it and keeping,
for each choice of their other variables, the least; so the answer is exact, in time and memory that grow with
the largest table on the way and not with the number of all choices (Bertelè and Brioschi, "Nonserial Dynamic
Programming", 1972).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

MAX_ENTRIES = 2_000_000
"""Entries of a table on the way: some tens of megabytes."""
Table = NDArray[np.float64]


class TooWideError(Exception):
    """A table on the way would have too many entries."""


@dataclass(frozen=True)
class Factor:
    """A table over variables, by their names in the order of its dimensions."""

    variables: tuple[str, ...]
    table: Table


def elimination_order(scopes: Iterable[Sequence[str]], sizes: Mapping[str, int]) -> tuple[str, ...]:
    """The variables, each time the one whose elimination makes the smallest table; of equals the first.

    `scopes` are the variables of each table, `sizes` the numbers of values of all.
    """
    around: dict[str, set[str]] = {name: set() for name in sizes}
    for scope in scopes:
        for name in scope:
            around[name].update(scope)
    for name, others in around.items():
        others.discard(name)
    width = {name: _entries(name, others, sizes) for name, others in around.items()}
    found: list[str] = []
    while width:
        name = min(width, key=width.__getitem__)
        del width[name]
        found.append(name)
        others = around.pop(name)
        for other in others:
            around[other] |= others
            around[other] -= {name, other}
            width[other] = _entries(other, around[other], sizes)
    return tuple(found)


def _entries(name: str, others: Iterable[str], sizes: Mapping[str, int]) -> int:
    return prod((sizes[other] for other in others), start=sizes[name])


def least(
    factors: Sequence[Factor], sizes: Mapping[str, int], max_entries: int = MAX_ENTRIES
) -> tuple[float, dict[str, int]]:
    """The least sum, and the index of the value of each variable; of equals the first.

    `sizes` are the numbers of values. Raises `TooWideError` for a table of more than `max_entries`.
    """
    left = list(factors)
    eliminated: list[tuple[str, tuple[str, ...], NDArray[np.intp]]] = []
    for name in elimination_order((factor.variables for factor in factors), sizes):
        own = [factor for factor in left if name in factor.variables]
        left = [factor for factor in left if name not in factor.variables]
        others = tuple(dict.fromkeys(v for factor in own for v in factor.variables if v != name))
        if _entries(name, others, sizes) > max_entries:
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


def _broadcast(factor: Factor, variables: tuple[str, ...]) -> Table:
    """The table with its dimensions in the order of `variables`, of size 1 where it lacks one."""
    order = [factor.variables.index(each) for each in variables if each in factor.variables]
    shape = [
        factor.table.shape[factor.variables.index(each)] if each in factor.variables else 1
        for each in variables
    ]
    return factor.table.transpose(order).reshape(shape)
