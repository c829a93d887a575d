"""The places of a group's devices on a page, so that linked ones are neighbours: an even ring is a loop of
two rows where these fit, another ring or a line winds, and a torus has its last two axes as columns and
rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from shardviz.hardware.topology import Switch, Topology, Torus

Pair = tuple[int, int]
"""Two linked members, the left or the upper one first."""
NOBODY = -1


@dataclass(frozen=True, eq=False)
class DeviceMap:
    """The `members` of a group in a `grid` of rows and columns; neighbours are linked, or those whose numbers
    differ by one of `steps`. A ring of an even number goes along the first row, and back along the second."""

    members: int
    grid: Sequence[Sequence[int]]
    steps: Collection[int] = ()

    @cached_property
    def rows(self) -> int:
        return len(self.grid)

    @cached_property
    def columns(self) -> int:
        return len(self.grid[0])

    def member(self, row: int, column: int) -> int | None:
        """The member at a place; None for nobody, and beyond the edges."""
        is_inside = 0 <= row < self.rows and 0 <= column < self.columns
        member = self.grid[row][column] if is_inside else NOBODY
        return None if member == NOBODY else member

    def place(self, member: int) -> tuple[int, int]:
        row = member // self.columns
        return row, self.grid[row].index(member)

    def across(self, row: int, gap: int) -> Pair | None:
        """The pair linked left of column `gap` of a row; gaps 0 and `columns` are the page's edges."""
        return self._neighbours(self.member(row, gap - 1), self.member(row, gap))

    def down(self, gap: int, column: int) -> Pair | None:
        """The same for the gap above row `gap`."""
        return self._neighbours(self.member(gap - 1, column), self.member(gap, column))

    def _neighbours(self, one: int | None, other: int | None) -> Pair | None:
        if one is None or other is None or (self.steps and abs(one - other) not in self.steps):
            return None
        return one, other


@dataclass(frozen=True, eq=False)
class LineMap(DeviceMap):
    """A line that winds down the page; `closed` where its ends are linked, around the page's edges."""

    steps: Collection[int] = (1,)
    closed: bool = False

    def across(self, row: int, gap: int) -> Pair | None:
        last = self.members - 1
        if self.closed and (row, gap) == (0, 0):
            return last, 0
        end_row, end = self.place(last)
        if self.closed and row == end_row and gap == (end if end_row % 2 else end + 1):
            return (0, last) if end_row % 2 else (last, 0)
        return super().across(row, gap)


@dataclass(frozen=True, eq=False)
class TorusMap(DeviceMap):
    """A torus or a grid: the last axis along rows, the one before it down; blocks of further ones below."""

    torus: Torus = field(kw_only=True)

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
        return TorusMap(n, _in_rows(n, topology.dims[axes[-1]]), torus=topology)
    closed = bool(axes) and topology.is_ring(axes[0])
    is_loop = closed and n % 2 == 0 and 1 < n // 2 <= columns
    winding = _in_rows(n, n // 2 if is_loop else columns)
    winding[1::2] = [row[::-1] for row in winding[1::2]]
    return DeviceMap(n, winding, (1, n - 1)) if is_loop else LineMap(n, winding, closed=closed)


def _in_rows(members: int, columns: int) -> list[list[int]]:
    places = [*range(members), *[NOBODY] * (-members % columns)]
    return [places[start : start + columns] for start in range(0, len(places), columns)]
