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
SWEEPS = (1, 2, 4, 8, 16, 32, 64)
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
    factors: Sequence[Factor], left: Mapping[str, Numbers], max_entries: int = MAX_ENTRIES
) -> tuple[float, dict[str, int]]:
    """The least sum of the values that are `left`, and the value of each variable; of equals the first.
    Raises `TooWideError` for a table of more than `max_entries`."""
    sizes = {name: len(values) for name, values in left.items()}
    elimination = Elimination([factor.variables for factor in factors], sizes, max_entries)
    total, chosen = elimination.least(_within(factors, left))
    return float(total[0]), {name: int(left[name][index[0]]) for name, index in chosen.items()}


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
        with suppress(TooWideError):
            return least(factors, left, MAX_ENTRIES if sweeps == SWEEPS[-1] else SMALL)
        bounds.keep(kept)
    raise TooWideError


def _within(factors: Iterable[Factor], left: Mapping[str, Numbers]) -> Iterator[Table]:
    """The tables of the values that are left, a row for each, as one sum."""
    for names, table, rows in factors:
        first, *others = (left[name] for name in names)
        first = first if rows is None else rows[first]
        yield table[np.ix_(first, *others)][None]


class _Neighbour:
    """A variable in all its stars: `table` has the rows of one star after the other, from `begins` on, in
    which values of the middles cost as much with each of its own; `at` are the places of these values, row
    after row, from `starts` on. `price` is that of its own values by star, `low` the least of both by row."""

    def __init__(self, table: Table, stars: Numbers, at: Numbers, rows: Numbers, price: Table) -> None:
        order = np.argsort(rows, kind="stable")
        counts = np.bincount(rows, minlength=len(table))
        used = np.flatnonzero(counts)
        self.table, self.at, self.price, self._counts = table[used], at[order], price, counts[used]
        self._starts = np.cumsum(self._counts) - self._counts
        self._stars = stars[used]
        self._begins = np.searchsorted(self._stars, np.arange(len(price)))
        self.low = np.zeros(len(used))

    def costs(self, of_middles: Table) -> Table:
        """The least of each star for each value of the variable, by that for each value of the middles."""
        by_row = np.minimum.reduceat(of_middles[self.at], self._starts) - self.low
        return np.minimum.reduceat(by_row[:, None] + self.table, self._begins) + self.price

    def reprice(self, more: Table, of_middles: Table) -> None:
        self.price = self.price + more
        low = np.minimum.reduce(self.table + self.price[self._stars], axis=1)
        of_middles[self.at] += np.repeat(low - self.low, self._counts)
        self.low = low

    def choose(self, value: int, of_middles: Table) -> None:
        """Leave out its other values."""
        cost = self.table[:, value] + self.price[self._stars, value] - self.low
        of_middles[self.at] += np.repeat(cost, self._counts)

    def kept(self, places: Numbers, values: Numbers) -> _Neighbour:
        """With these of its values, and those of the middles that have a place still."""
        rows, at = np.repeat(np.arange(len(self.table)), self._counts), places[self.at]
        return _Neighbour(
            self.table[:, values], self._stars, at[at >= 0], rows[at >= 0], self.price[:, values]
        )


class DualBounds:
    """The stars of a sum of tables, of the values that are `left`, with prices that can be made better."""

    def __init__(self, factors: Sequence[Factor], left: Mapping[str, Numbers]) -> None:
        # What is not possible costs more than all that is.
        most = 1.0 + sum(
            float(np.max(factor.table, where=np.isfinite(factor.table), initial=0.0)) for factor in factors
        )
        single = {name: np.zeros(len(values)) for name, values in left.items()}
        joint: dict[str, dict[str, list[tuple[Table, Numbers]]]] = {}
        for (name, *others), table, rows in factors:
            own = left[name] if rows is None else rows[left[name]]
            if not others:
                single[name] += np.minimum(table[own], most)
            else:
                tables = joint.setdefault(others[0], {}).setdefault(name, [])
                tables.append((table[:, left[others[0]]], own))
        self._single = {name: single.pop(name) for name in joint}
        self._sizes = {name: len(values) for name, values in single.items()}
        self._alone = np.concatenate([*single.values(), np.zeros(0)])
        self._around: dict[str, _Neighbour] = {}
        starts = dict(zip(self._sizes, np.cumsum([0, *self._sizes.values()]).tolist(), strict=False))
        for name, stars in joint.items():
            every, of_star, at, its_rows = list[Table](), list[int](), list[Numbers](), list[Numbers]()
            for number, (middle, tables) in enumerate(stars.items()):
                (table, rows), *more = tables
                if more:
                    alike, same = np.unique([own for _, own in tables], axis=1, return_inverse=True)
                    table = sum(each[own] for (each, _), own in zip(tables, alike, strict=True))
                    rows = same.ravel()
                its_rows.append(len(of_star) + rows)
                at.append(starts[middle] + np.arange(len(rows)))
                every.append(np.minimum(table, most))
                of_star += [number] * len(table)
            price = np.zeros((len(stars), len(left[name])))
            table, rows = np.concatenate(every), np.concatenate(its_rows)
            self._around[name] = _Neighbour(table, np.array(of_star), np.concatenate(at), rows, price)
        self._middles = {name: np.array([*map([*self._sizes].index, stars)]) for name, stars in joint.items()}
        # The parts that the stars of a variable get, forth and back: equal ones, of as many as the most that
        # have a variable after it or before it.
        ends: dict[str, list[int]] = {}
        for place, stars in enumerate(joint.values()):
            for middle in stars:
                ends.setdefault(middle, []).append(place)
        self._weights: tuple[dict[str, Table], ...] = {}, {}
        for place, (name, stars) in enumerate(joint.items()):
            sides = np.array([[ends[one][-1] > place, ends[one][0] < place] for one in stars]).T
            for weights, side in zip(self._weights, sides, strict=True):
                weights[name] = side / max(*sides.sum(axis=1), 1)
        self._reset()

    def _reset(self) -> None:
        """The least of all stars, by value of their middles one after the other, from `begins` on."""
        self._begins = np.cumsum([0, *self._sizes.values()])[:-1]
        self._of_middles = self._alone.copy()
        for each in self._around.values():
            each.reprice(np.zeros(1), self._of_middles)

    @property
    def bound(self) -> float:
        """A number that no sum is less than."""
        own = np.minimum.reduceat(self._of_middles, self._begins)
        return float(own.sum()) + sum(float(values.min()) for values in self._single.values())

    def sweep(self) -> None:
        """Take what the values of each variable cost at least from its stars, forth and back, and give it to
        those with a variable that comes later."""
        for names, weights in zip((self._around, reversed(self._around)), self._weights, strict=True):
            for name in names:
                each, weight = self._around[name], weights[name]
                costs = each.costs(self._of_middles)
                total = costs.sum(axis=0) + self._single[name]
                each.reprice(weight[:, None] * total - costs, self._of_middles)
                self._single[name] = total * (1 - weight.sum())

    def keep(self, kept: Mapping[str, Numbers]) -> None:
        """Leave out all other values."""
        starts = zip(self._sizes, self._begins, strict=True)
        left = np.concatenate([start + kept[name] for name, start in starts])
        places = np.full(len(self._alone), -1)
        places[left] = np.arange(len(left))
        self._alone = self._alone[left]
        self._sizes = {name: len(kept[name]) for name in self._sizes}
        self._single = {name: own[kept[name]] for name, own in self._single.items()}
        self._around = {name: each.kept(places, kept[name]) for name, each in self._around.items()}
        self._reset()

    def choice(self) -> tuple[float, dict[str, int]]:
        """A sum that comes near the bound, with the index of the value of each variable: of one after the
        other the value with which the bound is least, those before it as chosen."""
        known, chosen, of_middles = 0.0, dict[str, int](), self._of_middles.copy()
        for name, each in self._around.items():
            single = self._single[name]
            chosen[name] = best = int((each.costs(of_middles).sum(axis=0) + single).argmin())
            each.choose(best, of_middles)
            known += float(single[best])
        for name, own in zip(self._sizes, np.split(of_middles, self._begins[1:]), strict=True):
            chosen[name] = int(own.argmin())
            known += float(own.min())
        return known, chosen

    def excess(self) -> dict[str, Table]:
        """For each variable and value by how much the bound is more with that value."""
        least = np.minimum.reduceat(self._of_middles, self._begins)
        more = self._of_middles - np.repeat(least, [*self._sizes.values()])
        by_variable = dict(zip(self._sizes, np.split(more, self._begins[1:]), strict=True))
        for name, each in self._around.items():
            costs, single = each.costs(self._of_middles), self._single[name]
            stars = least[self._middles[name]][:, None]
            by_variable[name] = (costs - stars).sum(axis=0) + (single - single.min())
        return by_variable
