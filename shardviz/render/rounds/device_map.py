"""The places of a group's devices on a page, so that those that are linked are neighbours there.

A ring is a loop of two rows, or of more where two would be too wide; a line winds down the page; the last two
axes of a torus are columns and rows. What goes around, and has no neighbour to be drawn to, leaves the page
on one side and comes back on the other.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from shardviz.hardware import Topology
from shardviz.hardware.topology import Switch, Torus

Pair = tuple[int, int]
"""Two linked members, the left or the upper one first."""


@dataclass(frozen=True)
class DeviceMap(ABC):
    """`members` of a group in `rows` and `columns`."""

    members: int
    rows: int
    columns: int

    @abstractmethod
    def member(self, row: int, column: int) -> int | None:
        """The member at a place; None for nobody, and beyond the edges."""

    @abstractmethod
    def place(self, member: int) -> tuple[int, int]:
        """The row and the column of a member."""

    def across(self, row: int, gap: int) -> Pair | None:
        """The pair linked over gap `gap` of a row, which is left of column `gap`; 0 and `columns` are the
        edges of the page."""
        return self._neighbours(self.member(row, gap - 1), self.member(row, gap))

    def down(self, gap: int, column: int) -> Pair | None:
        """The same for the gap above row `gap`."""
        return self._neighbours(self.member(gap - 1, column), self.member(gap, column))

    def corner(self, row: int, gap: int) -> bool:
        """True if the link over a gap of a row turns up behind it, to the device above the next column."""
        del row, gap
        return False

    @abstractmethod
    def linked(self, one: int, other: int) -> bool:
        """True if two that stand beside one another are linked."""

    def _neighbours(self, one: int | None, other: int | None) -> Pair | None:
        if one is None or other is None or not self.linked(one, other):
            return None
        return one, other


@dataclass(frozen=True)
class RingMap(DeviceMap):
    """A ring: along the first row, back and forth over the others, and up the first column.

    The last row of a loop of two rows may be one short; its end then turns up at a corner.
    """

    @property
    def _is_short(self) -> bool:
        return self.members < self.rows * self.columns

    def member(self, row: int, column: int) -> int | None:
        if not (0 <= row < self.rows and 0 <= column < self.columns):
            return None
        if not row:
            return column
        if not column:
            return self.members - row
        if self._is_short:
            return None if column == self.columns - 1 else self.members - 1 - column
        first = self.columns + (row - 1) * (self.columns - 1)
        return first + (self.columns - 1 - column if row % 2 else column - 1)

    def place(self, member: int) -> tuple[int, int]:
        if member < self.columns:
            return 0, member
        if self._is_short:
            return 1, self.members - 1 - member
        if member > self.members - self.rows:
            return self.members - member, 0
        row, step = divmod(member - self.columns, self.columns - 1)
        return row + 1, step + 1 if row % 2 else self.columns - 1 - step

    def across(self, row: int, gap: int) -> Pair | None:
        if self.corner(row, gap):
            return self.columns, self.columns - 1
        return super().across(row, gap)

    def down(self, gap: int, column: int) -> Pair | None:
        if gap == 1 and self.corner(1, column):
            return self.columns - 1, self.columns
        return super().down(gap, column)

    def corner(self, row: int, gap: int) -> bool:
        return self._is_short and row == 1 and gap == self.columns - 1

    def linked(self, one: int, other: int) -> bool:
        return abs(one - other) in (1, self.members - 1)


@dataclass(frozen=True)
class LineMap(DeviceMap):
    """A line that winds down the page; `closed` where its ends are linked, around the page's edges."""

    closed: bool

    def member(self, row: int, column: int) -> int | None:
        if not (0 <= row < self.rows and 0 <= column < self.columns):
            return None
        found = row * self.columns + (self.columns - 1 - column if row % 2 else column)
        return found if found < self.members else None

    def place(self, member: int) -> tuple[int, int]:
        row, step = divmod(member, self.columns)
        return row, self.columns - 1 - step if row % 2 else step

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


@dataclass(frozen=True)
class TorusMap(DeviceMap):
    """A torus or a grid: the last axis along a row, the one before it down the rows.

    Further axes follow below, in blocks; their links are not drawn.
    """

    torus: Torus

    def member(self, row: int, column: int) -> int | None:
        if not (0 <= row < self.rows and 0 <= column < self.columns):
            return None
        return row * self.columns + column

    def place(self, member: int) -> tuple[int, int]:
        return divmod(member, self.columns)

    def across(self, row: int, gap: int) -> Pair | None:
        if gap in (0, self.columns):
            if not (0 <= row < self.rows and self.torus.is_ring(self._axes[-1])):
                return None
            return (row + 1) * self.columns - 1, row * self.columns
        return super().across(row, gap)

    def down(self, gap: int, column: int) -> Pair | None:
        height = self._block
        if gap % height:
            return super().down(gap, column)
        if len(self._axes) < 2 or not self.torus.is_ring(self._axes[-2]):
            return None
        # Above a block its last row leads to its first; under the last block the same is drawn again.
        first = gap if gap < self.rows else gap - height
        return (first + height - 1) * self.columns + column, first * self.columns + column

    def linked(self, one: int, other: int) -> bool:
        # Only members that stand beside one another within a block are asked about.
        del one, other
        return True

    @property
    def _axes(self) -> list[int]:
        return [axis for axis, size in enumerate(self.torus.dims) if size > 1]

    @property
    def _block(self) -> int:
        return self.torus.dims[self._axes[-2]] if len(self._axes) > 1 else self.rows


@dataclass(frozen=True)
class SwitchMap(DeviceMap):
    """Rows of devices, each linked to the switch above it, which has the number `members`."""

    def member(self, row: int, column: int) -> int | None:
        if not (0 <= row < self.rows and 0 <= column < self.columns):
            return None
        found = row * self.columns + column
        return found if found < self.members else None

    def place(self, member: int) -> tuple[int, int]:
        return divmod(member, self.columns)

    def down(self, gap: int, column: int) -> Pair | None:
        member = self.member(gap, column)
        return None if member is None else (self.members, member)

    def linked(self, one: int, other: int) -> bool:
        del one, other
        return False


def device_map(topology: Topology, columns: int) -> DeviceMap:
    """The map of a topology, at most `columns` wide where that is for the map to choose."""
    n = topology.devices
    columns = max(1, min(columns, n))
    if isinstance(topology, Switch):
        return SwitchMap(n, -(-n // columns), columns)
    assert isinstance(topology, Torus)
    axes = [axis for axis, size in enumerate(topology.dims) if size > 1]
    if len(axes) > 1:
        width = topology.dims[axes[-1]]
        return TorusMap(n, n // width, width, topology)
    closed = bool(axes) and topology.is_ring(axes[0])
    if not closed:
        return LineMap(n, -(-n // columns), columns, False)
    half = -(-n // 2)
    if half <= columns:
        return RingMap(n, 2, half)
    for width in range(columns, max(1, math.ceil(columns / 2) - 1), -1):
        if width > 1 and n % (2 * width) == 0:
            return RingMap(n, n // width, width)
    return LineMap(n, -(-n // columns), columns, True)
