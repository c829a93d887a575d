"""The places of a group's devices on a page, so that those that are linked are neighbours there.

A ring is a loop of two rows, or of more where two would be too wide: it uses nearly all columns of the page.
A line winds down the page; the last two axes of a torus are columns and rows. What goes around, and has no
neighbour to be drawn to, leaves the page on one side and comes back on the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from shardviz.collectives.values import Ints
from shardviz.hardware.topology import Switch, Topology, Torus

Pair = tuple[int, int]
"""Two linked members, the left or the upper one first."""
NOBODY = -1


@dataclass(frozen=True, eq=False)
class DeviceMap:
    """The `members` of a group in a `grid` of rows and columns, whose neighbours are linked."""

    members: int
    grid: Ints

    @cached_property
    def rows(self) -> int:
        return len(self.grid)

    @cached_property
    def columns(self) -> int:
        return int(self.grid.shape[1])

    @cached_property
    def _places(self) -> list[list[int]]:
        """The grid as lists, of which a place is found many times faster."""
        found: list[list[int]] = self.grid.tolist()
        return found

    def member(self, row: int, column: int) -> int | None:
        """The member at a place; None for nobody, and beyond the edges."""
        places = self._places
        if not (0 <= row < len(places) and 0 <= column < len(places[row])):
            return None
        found = places[row][column]
        return None if found == NOBODY else found

    def place(self, member: int) -> tuple[int, int]:
        """The row and the column of a member."""
        return divmod(int((self.grid == member).argmax()), self.columns)

    def across(self, row: int, gap: int) -> Pair | None:
        """The pair linked over gap `gap` of a row, which is left of column `gap`; 0 and `columns` are the
        edges of the page."""
        return self._neighbours(self.member(row, gap - 1), self.member(row, gap))

    def down(self, gap: int, column: int) -> Pair | None:
        """The same for the gap above row `gap`."""
        return self._neighbours(self.member(gap - 1, column), self.member(gap, column))

    def corner(self, _row: int, _gap: int) -> bool:
        """True if the link over a gap of a row turns up behind it, to the device above the next column."""
        return False

    def linked(self, _one: int, _other: int) -> bool:
        """True if two that stand beside one another are linked."""
        return True

    def _neighbours(self, one: int | None, other: int | None) -> Pair | None:
        if one is None or other is None or not self.linked(one, other):
            return None
        return one, other


class RingMap(DeviceMap):
    """A ring: along the first row, back and forth over the others, and up the first column. The last two rows
    may be shorter. The last row of an odd ring has one device less than the one above, so that its end turns
    up at a corner."""

    def across(self, row: int, gap: int) -> Pair | None:
        if self.corner(row, gap):
            return int(self.grid[row, gap - 1]), int(self.grid[row - 1, gap])
        return super().across(row, gap)

    def down(self, gap: int, column: int) -> Pair | None:
        if self.corner(gap, column):
            return int(self.grid[gap - 1, column]), int(self.grid[gap, column - 1])
        return super().down(gap, column)

    def corner(self, row: int, gap: int) -> bool:
        if self.members % 2 == 0 or row != self.rows - 1 or not 0 < gap < self.columns:
            return False
        ends = self.member(row, gap), self.member(row, gap - 1), self.member(row - 1, gap)
        return ends[0] is None and None not in ends[1:]

    def linked(self, one: int, other: int) -> bool:
        return abs(one - other) in (1, self.members - 1)


@dataclass(frozen=True, eq=False)
class LineMap(DeviceMap):
    """A line that winds down the page; `closed` where its ends are linked, around the page's edges."""

    closed: bool

    def across(self, row: int, gap: int) -> Pair | None:
        last = self.members - 1
        if self.closed and (row, gap) == (0, 0):
            return last, 0
        end_row, end = self.place(last)
        if self.closed and row == end_row and gap == (end if end_row % 2 else end + 1):
            return (0, last) if end_row % 2 else (last, 0)
        return super().across(row, gap)

    def linked(self, one: int, other: int) -> bool:
        return abs(one - other) == 1


@dataclass(frozen=True, eq=False)
class TorusMap(DeviceMap):
    """A torus or a grid: the last axis along a row, the one before it down the rows. Further axes follow
    below, in blocks; their links are not drawn."""

    torus: Torus

    def across(self, row: int, gap: int) -> Pair | None:
        if gap in (0, self.columns):
            if not (0 <= row < self.rows and self.torus.is_ring(self._axes[-1])):
                return None
            return (row + 1) * self.columns - 1, row * self.columns
        return super().across(row, gap)

    def down(self, gap: int, column: int) -> Pair | None:
        above = self._axes[-2]
        height = self.torus.dims[above]
        if gap % height:
            return super().down(gap, column)
        if not self.torus.is_ring(above):
            return None
        # Above a block its last row leads to its first; under the last block the same is drawn again.
        first = gap if gap < self.rows else gap - height
        return (first + height - 1) * self.columns + column, first * self.columns + column

    @property
    def _axes(self) -> list[int]:
        return [axis for axis, size in enumerate(self.torus.dims) if size > 1]


class SwitchMap(DeviceMap):
    """Rows of devices, each linked to the switch above it, which has the number `members`."""

    def across(self, _row: int, _gap: int) -> None:
        return None

    def down(self, gap: int, column: int) -> Pair | None:
        member = self.member(gap, column)
        return None if member is None else (self.members, member)


@lru_cache(maxsize=64)
def device_map(topology: Topology, columns: int) -> DeviceMap:
    """The map of a topology, at most `columns` wide where that is for the map to choose."""
    topology = topology.flat
    n = topology.devices
    columns = max(1, min(columns, n))
    if isinstance(topology, Switch):
        return SwitchMap(n, _in_rows(n, columns))
    assert isinstance(topology, Torus)
    axes = [axis for axis, size in enumerate(topology.dims) if size > 1]
    if len(axes) > 1:
        return TorusMap(n, _in_rows(n, topology.dims[axes[-1]]), topology)
    closed = bool(axes) and topology.is_ring(axes[0])
    if closed and columns > 1:
        return RingMap(n, _in_loop(n, columns))
    winding = _in_rows(n, columns)
    winding[1::2] = winding[1::2, ::-1]
    return LineMap(n, winding, closed)


def _in_rows(members: int, columns: int) -> Ints:
    return np.pad(np.arange(members), (0, -members % columns), constant_values=NOBODY).reshape(-1, columns)


def _in_loop(members: int, columns: int) -> Ints:
    """A loop in pairs of rows, as even as they can be: along the first row, back and forth over the others
    beside the first column, and up that. The last pair may be shorter."""
    while True:
        pairs = -(-members // (2 * columns))
        even = -(-members // (2 * pairs))
        for width in (even, columns):
            # Where the last pair had one device beside the first column's, the loop could not come back.
            if pairs == 1 or width == 2 or members - 2 * width * (pairs - 1) > 2:
                return _loop(members, width)
        columns -= 1


def _loop(members: int, columns: int) -> Ints:
    """The loop in rows of some columns, but for the last two, which share what is left."""
    if columns == 2:
        rows = -(-members // 2)
        grid = np.full((rows, 2), NOBODY)
        grid[0, 0] = 0
        grid[: members - rows, 1] = range(1, members - rows + 1)
        grid[1:, 0] = range(members - 1, members - rows, -1)
        return grid
    pairs = -(-members // (2 * columns))
    left = members - 2 * columns * (pairs - 1)
    full = 2 * (pairs - 1)
    grid = np.full((full + 2, columns), NOBODY)
    grid[0] = range(columns)
    if full:
        between = columns + np.arange((full - 1) * (columns - 1)).reshape(full - 1, columns - 1)
        between[::2] = between[::2, ::-1]
        grid[1:full, 1:] = between
    follows = columns + max(0, full - 1) * (columns - 1)
    upper, lower = -(-left // 2), left // 2
    if full:
        grid[-2, 1:upper] = range(follows, follows + upper - 1)
        follows += upper - 1
    grid[-1, 1:lower] = range(follows + lower - 2, follows - 1, -1)
    grid[1:, 0] = range(members - 1, members - len(grid), -1)
    return grid
