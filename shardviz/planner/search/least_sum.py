"""The choice of one value for each variable that makes a sum of tables least.

`least` eliminates one variable after the other: it adds the tables that have it and keeps, for each choice of
their other variables, the least; so the answer is exact, in time and memory that grow with the largest table
on the way (Bertelè and Brioschi, "Nonserial Dynamic Programming", 1972). Of f(a, b) + g(b, c) + h(c),
where a and b have 9 values and c has 4, c goes first: of g + h the least over c is left, a table over b. With
f that makes one over a and b, of which the least over a is left, and its least over b is the answer: 126
entries in place of 324 sums.

`least_of_stars` leaves out most values first. The sum is taken apart into stars: a variable that chooses how
a statement's work is split, and the variables of the statement's arrays around it. The least of each star,
added up, is a bound on the least sum. Each array has a price for each of its values in each of its stars,
which add up to what the value costs by itself. They are changed until the stars agree, which raises the bound
(block coordinate ascent on the dual: Globerson and Jaakkola, "Fixing Max-Product", 2007). A value with which
the bound is more than a sum that is known is in no best choice (reduced cost fixing)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_ENTRIES = 2_000_000
"""Entries of a table on the way: some tens of megabytes."""
SWEEPS = (1, 2, 4, 8, 16, 32)
"""Rounds of better prices, until a sum meets the bound or few enough values are left."""
SMALL = 100_000
"""Entries of a table that are few enough not to look for better prices first."""
ROUNDING = 1e-13
"""The part of a sum by which a bound may be wrong."""
Table = NDArray[np.float64]


class TooWideError(Exception):
    """A table on the way would have too many entries."""


class Factor(NamedTuple):
    """A table over variables, by their names in the order of its dimensions."""

    variables: tuple[str, ...]
    table: Table


def elimination_order(scopes: Iterable[Sequence[str]], sizes: Mapping[str, int]) -> tuple[str, ...]:
    """The variables, each time the one whose elimination makes the smallest table of all."""
    around: dict[str, set[str]] = {name: set() for name in sizes}
    for scope in scopes:
        for name in scope:
            around[name].update(scope)
    for name, others in around.items():
        others.discard(name)
    width = {name: _entries(name, others, sizes) for name, others in around.items()}
    order: list[str] = []
    while width:
        name = min(width, key=width.__getitem__)
        del width[name]
        order.append(name)
        others = around.pop(name)
        for other in others:
            around[other] |= others
            around[other] -= {name, other}
            width[other] = _entries(other, around[other], sizes)
    return tuple(order)


def _entries(name: str, others: Iterable[str], sizes: Mapping[str, int]) -> int:
    return prod((sizes[other] for other in others), start=sizes[name])


class _Step(NamedTuple):
    """The elimination of a variable, of which the least is left over the `others`: the numbers of the tables
    that have it, the order of their dimensions and the places where they lack one."""

    name: str
    others: tuple[str, ...]
    taken: list[tuple[int, list[int], tuple[slice | None, ...]]]


class Elimination:
    """The elimination of variables from many sums at once, whose tables are over the same `scopes`; `sizes`
    are the numbers of values. `entries` are those of all its tables of one sum, `largest` of the largest."""

    def __init__(self, scopes: Sequence[Sequence[str]], sizes: Mapping[str, int]) -> None:
        # Arrays have few dimensions: variables with one value take none.
        self._single = [name for name, size in sizes.items() if size == 1]
        self._sizes = sizes = {name: size for name, size in sizes.items() if size > 1}
        self._scopes = [tuple(name for name in scope if name in sizes) for scope in scopes]
        left = dict(enumerate(self._scopes))
        self.entries = self.largest = 0
        self._steps: list[_Step] = []
        for name in elimination_order(self._scopes, sizes):
            own = {number: scope for number, scope in left.items() if name in scope}
            others = tuple(dict.fromkeys(each for scope in own.values() for each in scope if each != name))
            taken = []
            for number, scope in own.items():
                del left[number]
                # With its dimensions in the order of the total, of size 1 where it lacks one.
                order = [1 + scope.index(each) for each in (*others, name) if each in scope]
                places = (slice(None) if each in scope else None for each in (*others, name))
                taken.append((number, [0, *order], (slice(None), *places)))
            left[len(scopes) + len(self._steps)] = others
            self._steps.append(_Step(name, others, taken))
            count = _entries(name, others, sizes)
            self.entries, self.largest = self.entries + count, max(self.largest, count)
        self._left = [*left]

    def least(self, tables: Iterable[Table]) -> tuple[Table, dict[str, NDArray[np.intp]]]:
        """The least of each sum, and for it the index of the value of each variable; of equals the first. The
        first dimension of each table is that of the sums."""
        left = dict(enumerate(tables))
        count = len(left[0]) if left else 1
        for number, scope in enumerate(self._scopes):
            left[number] = left[number].reshape(count, *map(self._sizes.__getitem__, scope))
        eliminated: list[tuple[str, tuple[str, ...], NDArray[np.intp]]] = []
        for name, others, taken in self._steps:
            own = [left.pop(number).transpose(order)[places] for number, order, places in taken]
            first, *rest = own or [np.zeros((count, self._sizes[name]))]
            total = sum(rest, start=first)
            left[len(self._scopes) + len(eliminated)] = total.min(axis=-1)
            eliminated.append((name, others, total.argmin(axis=-1)))
        every = np.arange(count)
        chosen = {name: np.zeros(count, np.intp) for name in self._single}
        for name, others, best in reversed(eliminated):
            chosen[name] = best[(every, *(chosen[other] for other in others))]
        return sum((left[number] for number in self._left), start=np.zeros(count)), chosen


def least(
    factors: Sequence[Factor], sizes: Mapping[str, int], max_entries: int = MAX_ENTRIES
) -> tuple[float, dict[str, int]]:
    """The least sum, and the index of the value of each variable; of equals the first. `sizes` are the
    numbers of values. Raises `TooWideError` for a table of more than `max_entries`."""
    elimination = Elimination([factor.variables for factor in factors], sizes)
    if elimination.largest > max_entries:
        raise TooWideError
    total, chosen = elimination.least(factor.table[None] for factor in factors)
    return float(total[0]), {name: int(index[0]) for name, index in chosen.items()}


def least_of_stars(factors: Sequence[Factor], sizes: Mapping[str, int]) -> tuple[float, dict[str, int]]:
    """The least sum of tables and the index of the value of each variable, where each table is over one
    variable, or over the middle of a star and one around it. Raises `TooWideError`."""
    bounds = DualBounds(factors, sizes)
    for sweeps in SWEEPS:
        for _ in range(sweeps):
            bounds.sweep()
        known, chosen = bounds.choice()
        allowed = known - bounds.bound + ROUNDING * abs(known)
        if allowed <= 2 * ROUNDING * abs(known):
            return known, chosen
        kept = {name: np.flatnonzero(excess <= allowed) for name, excess in bounds.excess().items()}
        own = [Factor(names, table[np.ix_(*(kept[name] for name in names))]) for names, table in factors]
        counts = {name: len(values) for name, values in kept.items()}
        with suppress(TooWideError):
            total, chosen = least(own, counts, MAX_ENTRIES if sweeps == SWEEPS[-1] else SMALL)
            return total, {name: int(kept[name][index]) for name, index in chosen.items()}
    raise TooWideError


class _Edge:
    """A variable in a star: what its values cost with those of the middle, and their `price` in this star.
    `low` is the least of both for each value of the middle."""

    def __init__(self, table: Table, price: Table) -> None:
        self.table, self.price = table, price
        self.low: Table = (table + price).min(axis=1)

    def of_other(self, of_middle: Table) -> Table:
        """The least of the star for each value of the variable, by that for each value of the middle."""
        lowest: Table = ((of_middle - self.low)[:, None] + self.table).min(axis=0) + self.price
        return lowest

    def reprice(self, more: Table) -> None:
        self.price = self.price + more
        self.low = (self.table + self.price).min(axis=1)


class DualBounds:
    """The stars of a sum of tables, with prices that can be made better."""

    def __init__(self, factors: Sequence[Factor], sizes: Mapping[str, int]) -> None:
        # What is not possible costs more than all that is.
        most = 1.0 + sum(
            float(factor.table[np.isfinite(factor.table)].max(initial=0.0)) for factor in factors
        )
        self._single = {name: np.zeros(size) for name, size in sizes.items()}
        joint: dict[tuple[str, str], Table] = {}
        for factor in factors:
            table, names = np.minimum(factor.table, most), factor.variables
            if len(names) == 2 and 1 in table.shape:
                # Of a variable with one value a table is over the other alone.
                names, table = (names[1:], table[0]) if len(table) == 1 else (names[:1], table[:, 0])
            if len(names) == 1:
                self._single[names[0]] += table
            else:
                middle, other = names
                joint[middle, other] = joint.get((middle, other), 0.0) + table
        around: dict[str, list[str]] = {}
        for middle, other in joint:
            around.setdefault(other, []).append(middle)
        self._edges: dict[str, dict[str, _Edge]] = {}
        for (middle, other), table in joint.items():
            price = self._single[other] / len(around[other])
            self._edges.setdefault(middle, {})[other] = _Edge(table, price)
        self._around = around

    @property
    def bound(self) -> float:
        """A number that no sum is less than."""
        alone = [table for name, table in self._single.items() if name not in {*self._edges, *self._around}]
        return sum(float(values.min()) for values in (*map(self._of_middle, self._edges), *alone))

    def sweep(self) -> None:
        """Have the stars of each variable agree on what its values cost at least, forth and back."""
        for name in (*self._around, *reversed(self._around)):
            middles = self._around[name]
            costs = [self._edges[middle][name].of_other(self._of_middle(middle)) for middle in middles]
            mean = sum(costs) / len(costs)
            for middle, cost in zip(middles, costs, strict=True):
                self._edges[middle][name].reprice(mean - cost)

    def choice(self) -> tuple[float, dict[str, int]]:
        """A sum that comes near the bound, with the index of the value of each variable: of one after the
        other the value with which the bound is least, those before it as chosen."""
        of_middle = {middle: self._of_middle(middle) for middle in self._edges}
        chosen = {}
        for name, middles in self._around.items():
            edges = [self._edges[middle][name] for middle in middles]
            costs = [edge.of_other(of_middle[middle]) for middle, edge in zip(middles, edges, strict=True)]
            chosen[name] = best = int(np.sum(costs, axis=0).argmin())
            for middle, edge in zip(middles, edges, strict=True):
                of_middle[middle] += edge.table[:, best] + edge.price[best] - edge.low
        lone = {name: table for name, table in self._single.items() if name not in chosen}
        chosen |= {name: int(table.argmin()) for name, table in (lone | of_middle).items()}
        return sum(float(table.min()) for table in (lone | of_middle).values()), chosen

    def excess(self) -> dict[str, Table]:
        """For each variable and value by how much the bound is more with that value."""
        of_middle = {middle: self._of_middle(middle) for middle in self._edges}
        by_variable = {}
        for name, single in self._single.items():
            if name in self._around:
                edges = ((self._edges[middle][name], of_middle[middle]) for middle in self._around[name])
                more = (edge.of_other(own) - own.min() for edge, own in edges)
                by_variable[name] = sum(more, start=np.zeros(len(single)))
            else:
                own = of_middle.get(name, single)
                by_variable[name] = own - own.min()
        return by_variable

    def _of_middle(self, middle: str) -> Table:
        """The least of a star for each value of its middle."""
        return sum((edge.low for edge in self._edges[middle].values()), start=self._single[middle])
