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
which with its own add up to what the value costs by itself. One array after the other, and back, takes what
its values cost at least in all its stars and gives it to those that come later, which raises the bound
(sequential reweighted message passing: Kolmogorov 2015). A value with which the bound is more than a sum that
is known is in no best choice (reduced cost fixing)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_ENTRIES = 6_000_000
"""Entries of a table on the way: some 50 megabytes."""
SWEEPS = (1, 2, 4, 8, 16, 32)
"""Rounds of better prices, until a sum meets the bound or few enough values are left."""
SMALL = 1_000_000
"""Entries of a table that are few enough not to look for better prices first."""
ROUNDING = 1e-13
"""The part of a sum by which a bound may be wrong."""
CLOSE = 1e-6
"""A sum within this part of its bound is taken for the least."""
Table = NDArray[np.float64]
Numbers = NDArray[np.intp]


class TooWideError(Exception):
    """A table on the way would have too many entries."""


class Factor(NamedTuple):
    """A table over variables, by their names in the order of its dimensions. Where values of the first share
    a row of it, `rows` has the row of each."""

    variables: tuple[str, ...]
    table: Table
    rows: Numbers | None = None


def elimination_order(
    scopes: Iterable[Sequence[str]], sizes: Mapping[str, int], most: float = inf
) -> tuple[str, ...]:
    """The variables, each time the one whose elimination makes the smallest table of all. Raises
    `TooWideError` for one of more than `most` entries."""
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
        if width.pop(name) > most:
            raise TooWideError
        order.append(name)
        others = around.pop(name)
        for other in others:
            around[other] |= others
            around[other] -= {name, other}
            width[other] = _entries(other, around[other], sizes)
    return tuple(order)


def _entries(name: str, others: Iterable[str], sizes: Mapping[str, int]) -> int:
    return prod((sizes[other] for other in others), start=sizes[name])


class Elimination:
    """The elimination of variables from many sums at once, whose tables are over the same `scopes`; `sizes`
    are the numbers of values. `entries` are those of all its tables of one sum. Raises as
    `elimination_order` does."""

    def __init__(self, scopes: Sequence[Sequence[str]], sizes: Mapping[str, int], most: float = inf) -> None:
        # Arrays have few dimensions: variables with one value take none.
        self._single = [name for name, size in sizes.items() if size == 1]
        self._sizes = sizes = {name: size for name, size in sizes.items() if size > 1}
        self._scopes = [tuple(name for name in scope if name in sizes) for scope in scopes]
        left = dict(enumerate(self._scopes))
        self.entries = 0
        # Each variable, and those over which its least is left; of the tables that have it the numbers, the
        # order of their dimensions and the places where they lack one.
        self._steps: list[
            tuple[str, tuple[str, ...], list[tuple[int, list[int], tuple[slice | None, ...]]]]
        ] = []
        for name in elimination_order(self._scopes, sizes, most):
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
            self._steps.append((name, others, taken))
            count = _entries(name, others, sizes)
            self.entries += count
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
    elimination = Elimination([factor.variables for factor in factors], sizes, max_entries)
    total, chosen = elimination.least(factor.table[None] for factor in factors)
    return float(total[0]), {name: int(index[0]) for name, index in chosen.items()}


def least_of_stars(factors: Sequence[Factor], sizes: Mapping[str, int]) -> tuple[float, dict[str, int]]:
    """The least sum of tables and the index of the value of each variable, where each table is over one
    variable, or over the middle of a star and one around it. Raises `TooWideError`."""
    left = {name: np.arange(size) for name, size in sizes.items()}
    for (name, *others), table, _ in factors:
        if not others:
            left[name] = left[name][np.isfinite(table[left[name]])]
    bounds = DualBounds(factors, left)
    least_known, best = inf, dict[str, int]()
    for sweeps in SWEEPS:
        for _ in range(sweeps):
            bounds.sweep()
        known, chosen = bounds.choice()
        if known < least_known:
            least_known, best = known, {name: int(left[name][index]) for name, index in chosen.items()}
        allowed = least_known - bounds.bound + ROUNDING * abs(least_known)
        if allowed <= CLOSE * abs(least_known):
            return bounds.bound, best
        kept = {name: np.flatnonzero(excess <= allowed) for name, excess in bounds.excess().items()}
        left = {name: values[kept[name]] for name, values in left.items()}
        counts = {name: len(values) for name, values in left.items()}
        with suppress(TooWideError):
            most = MAX_ENTRIES if sweeps == SWEEPS[-1] else SMALL
            total, chosen = least([*_within(factors, left)], counts, most)
            return total, {name: int(left[name][index]) for name, index in chosen.items()}
        bounds.keep(kept)
    raise TooWideError


def _within(factors: Iterable[Factor], left: Mapping[str, Numbers]) -> Iterator[Factor]:
    """The tables of the values that are left, a row for each."""
    for names, table, rows in factors:
        first, *others = (left[name] for name in names)
        yield Factor(names, table[np.ix_(first if rows is None else rows[first], *others)])


class _Edge:
    """A variable in a star: what its values cost with those of the middle, each of which has one of the
    `rows`, and their `price` in this star. `low` is the least of both for each value of the middle."""

    def __init__(self, table: Table, rows: Numbers, price: Table) -> None:
        counts = np.bincount(rows, minlength=len(table))
        used = counts > 0
        self.table, self.rows, self.price = table[used], (np.cumsum(used) - 1)[rows], price
        self._order = np.argsort(self.rows, kind="stable")
        self._starts = np.cumsum(counts[used]) - counts[used]
        self.reprice(0.0)

    def of_other(self, of_middle: Table) -> Table:
        """The least of the star for each value of the variable, by that for each value of the middle."""
        by_row = np.minimum.reduceat((of_middle - self.low)[self._order], self._starts)
        lowest: Table = (by_row[:, None] + self.table).min(axis=0) + self.price
        return lowest

    def reprice(self, more: Table | float) -> None:
        self.price = self.price + more
        self.low: Table = (self.table + self.price).min(axis=1)[self.rows]

    def kept(self, of_middle: Numbers, of_other: Numbers) -> _Edge:
        return _Edge(self.table[:, of_other], self.rows[of_middle], self.price[of_other])


class DualBounds:
    """The stars of a sum of tables, of the values that are `left`, with prices that can be made better."""

    def __init__(self, factors: Sequence[Factor], left: Mapping[str, Numbers]) -> None:
        # What is not possible costs more than all that is.
        most = 1.0 + sum(
            float(factor.table[np.isfinite(factor.table)].max(initial=0.0)) for factor in factors
        )
        self._single = {name: np.zeros(len(values)) for name, values in left.items()}
        joint: dict[tuple[str, str], list[tuple[Table, Numbers]]] = {}
        for (name, *others), table, rows in factors:
            own = left[name] if rows is None else rows[left[name]]
            if not others:
                self._single[name] += np.minimum(table[own], most)
            # Of a variable with one value a table is over the other alone.
            elif len(own) == 1:
                self._single[others[0]] += np.minimum(table[own[0], left[others[0]]], most)
            elif len(left[others[0]]) == 1:
                self._single[name] += np.minimum(table[own, left[others[0]][0]], most)
            else:
                joint.setdefault((name, others[0]), []).append((table[:, left[others[0]]], own))
        around: dict[str, list[str]] = {}
        self._edges: dict[str, dict[str, _Edge]] = {}
        for (middle, other), tables in joint.items():
            around.setdefault(other, []).append(middle)
            (table, rows), *more = tables
            if more:
                alike, number = np.unique([own for _, own in tables], axis=1, return_inverse=True)
                table = sum(each[own] for (each, _), own in zip(tables, alike, strict=True))
                rows = number.ravel()
            price = np.zeros(len(left[other]))
            self._edges.setdefault(middle, {})[other] = _Edge(np.minimum(table, most), rows, price)
        self._around = around
        # The parts that the stars of a variable get, forth and back: equal ones, of as many as the most that
        # have a variable after it or before it.
        place = {name: number for number, name in enumerate(around)}
        ends = {middle: [*map(place.__getitem__, edges)] for middle, edges in self._edges.items()}
        self._weights = []
        for later in (True, False):
            weights = {}
            for name, middles in around.items():
                after = [max(ends[middle]) > place[name] for middle in middles]
                before = [min(ends[middle]) < place[name] for middle in middles]
                many = max(sum(after), sum(before), 1)
                weights[name] = [own / many for own in (after if later else before)]
            self._weights.append(weights)

    @property
    def bound(self) -> float:
        """A number that no sum is less than."""
        alone = [table for name, table in self._single.items() if name not in self._edges]
        return sum(float(values.min()) for values in (*map(self._of_middle, self._edges), *alone))

    def sweep(self) -> None:
        """Take what the values of each variable cost at least from its stars, forth and back, and give it to
        those with a variable that comes later."""
        for names, weights in zip((self._around, reversed(self._around)), self._weights, strict=True):
            for name in names:
                middles = self._around[name]
                costs = [self._edges[middle][name].of_other(self._of_middle(middle)) for middle in middles]
                total = sum(costs, start=self._single[name])
                for middle, cost, weight in zip(middles, costs, weights[name], strict=True):
                    self._edges[middle][name].reprice(weight * total - cost)
                self._single[name] = total * (1 - sum(weights[name]))

    def keep(self, kept: Mapping[str, Numbers]) -> None:
        """Leave out all other values."""
        self._single = {name: table[kept[name]] for name, table in self._single.items()}
        self._edges = {
            middle: {name: edge.kept(kept[middle], kept[name]) for name, edge in edges.items()}
            for middle, edges in self._edges.items()
        }

    def choice(self) -> tuple[float, dict[str, int]]:
        """A sum that comes near the bound, with the index of the value of each variable: of one after the
        other the value with which the bound is least, those before it as chosen."""
        of_middle = {middle: self._of_middle(middle) for middle in self._edges}
        chosen = {}
        for name, middles in self._around.items():
            edges = [self._edges[middle][name] for middle in middles]
            costs = [edge.of_other(of_middle[middle]) for middle, edge in zip(middles, edges, strict=True)]
            chosen[name] = best = int(sum(costs, start=self._single[name]).argmin())
            for middle, edge in zip(middles, edges, strict=True):
                of_middle[middle] += edge.table[edge.rows, best] + edge.price[best] - edge.low
        known = sum(float(self._single[name][best]) for name, best in chosen.items())
        lone = {name: table for name, table in self._single.items() if name not in chosen}
        chosen |= {name: int(table.argmin()) for name, table in (lone | of_middle).items()}
        return known + sum(float(table.min()) for table in (lone | of_middle).values()), chosen

    def excess(self) -> dict[str, Table]:
        """For each variable and value by how much the bound is more with that value."""
        of_middle = {middle: self._of_middle(middle) for middle in self._edges}
        by_variable = {}
        for name, single in self._single.items():
            if name in self._around:
                edges = ((self._edges[middle][name], of_middle[middle]) for middle in self._around[name])
                more = (edge.of_other(own) - own.min() for edge, own in edges)
                by_variable[name] = sum(more, start=single - single.min())
            else:
                own = of_middle.get(name, single)
                by_variable[name] = own - own.min()
        return by_variable

    def _of_middle(self, middle: str) -> Table:
        """The least of a star for each value of its middle."""
        return sum((edge.low for edge in self._edges[middle].values()), start=self._single[middle])
