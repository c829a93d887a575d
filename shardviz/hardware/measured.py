"""Times of collectives as they were measured, in the place of the formulas, and their tables in a file.

What was measured over an axis of one mesh holds for each axis of another mesh that lies on the same links. A
measured size takes its time, one between two `points` lies on the straight line of the logarithms, and beyond
the points hold the `regimes`, lines fitted to such times, without any the formula."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from shardviz.errors import QuestionError, quote
from shardviz.hardware.links import LinkLevel
from shardviz.hardware.quantities import LATENCY, MEASURED, MEASURED_TIME, PAYLOAD, SPREAD, figure, quoted
from shardviz.notation.mesh import parse_mesh
from shardviz.sharding import Mesh, canonical_dtype
from shardviz.strict_table import StrictTable, closest

COLLECTIVES = {
    "all_gather": "all-gather",
    "psum": "all-reduce",
    "psum_scatter": "reduce-scatter",
    "all_to_all": "all-to-all",
    "ppermute": "collective-permute",
}
MAX_REGIMES, MAX_POINTS = 16, 64
MAX_NOISE = 100.0

Levels = tuple[LinkLevel, ...]
LevelsOf = Callable[[str, tuple[str, ...]], Levels]
"""The levels of the groups over which an operation, by JAX's name, runs along axes of a mesh."""


@dataclass(frozen=True)
class Regime:
    """A straight line of time over size: from `start` bytes on, V bytes take `latency` seconds and V over
    `bandwidth`, in bytes a second. The errors are standard errors of the fit, in the same units."""

    start: int
    latency: float
    bandwidth: float
    latency_error: float = 0.0
    bandwidth_error: float = 0.0

    def seconds(self, size: float) -> float:
        return self.latency + size / self.bandwidth

    def toml(self) -> Iterator[str]:
        for name, quantity in _FIGURES.items():
            if (value := getattr(self, name)) or not name.endswith("_error"):
                yield f"{name} = {quantity.toml(value)}"


class Point(NamedTuple):
    size: int
    seconds: float


_FIGURES = {"latency": LATENCY, "latency_error": LATENCY, "bandwidth": MEASURED, "bandwidth_error": SPREAD}
"""The figures of a regime, in a table as in `Regime`; errors may be left out."""
REGIME_KEYS = ("from", *_FIGURES)
POINT_KEYS = ("size", "time")
KEYS = ("op", "mesh", "axes", "dtype", "noise", "regimes", "points")


@dataclass(frozen=True)
class MeasuredTimes:
    """A collective over the groups along some axes of a mesh, measured over a range of sizes.

    `op` is JAX's name. The first and the last of the `regimes` also hold beyond what was measured. `points`
    are of growing size. `noise` is the usual spread of a time over its median. `links` are the levels of
    these groups, without their names."""

    op: str
    mesh: str
    axes: tuple[str, ...]
    regimes: tuple[Regime, ...]
    links: Levels
    dtype: str = ""
    noise: float | None = None
    points: tuple[Point, ...] = ()

    @property
    def over(self) -> str:
        """``X and Y of X=2,Y=4``."""
        return f"{' and '.join(self.axes)} of {self.mesh}"

    @cached_property
    def rising(self) -> tuple[Point, ...]:
        """The points; one that took longer than a larger size, slowed down by other work, takes that one's
        time."""
        least = [*accumulate((point.seconds for point in reversed(self.points)), min)][::-1]
        return tuple(Point(point.size, seconds) for point, seconds in zip(self.points, least, strict=True))

    def near(self, size: float) -> tuple[Point, ...]:
        below = [point for point in self.rising if point.size <= size]
        above = [point for point in self.rising if point.size >= size]
        return tuple(dict.fromkeys((below[-1], above[0]))) if below and above else ()

    def regime(self, size: float) -> Regime:
        return next((regime for regime in reversed(self.regimes) if regime.start <= size), self.regimes[0])

    def seconds(self, size: float, formula: float = 0.0) -> float:
        """Seconds of so many bytes, as few as those of fewer bytes, or more; of sizes that neither points nor
        regimes have those of the `formula`."""
        before = [one.seconds(after.start) for one, after in pairwise(self.regimes) if after.start <= size]
        beyond = max([self.regime(size).seconds(size), *before]) if self.regimes else formula
        if near := self.near(size):
            (lower, least), (upper, most) = near[0], near[-1]
            part = math.log(size / lower) / math.log(upper / lower) if upper > lower else 0.0
            return least * math.pow(most / least, part)
        smaller = [point.seconds for point in self.rising if point.size < size]
        larger = [point.seconds for point in self.rising if point.size > size]
        return max([min([beyond, *larger]), *smaller])

    def toml(self) -> Iterator[str]:
        texts = {"op": self.op, "mesh": self.mesh, "axes": ",".join(self.axes), "dtype": self.dtype}
        yield from (f"{key} = {quoted(text)}" for key, text in texts.items() if text)
        if self.noise is not None:
            yield f"noise = {self.noise:.3g}"
        regimes = [[f"from = {regime.start}", *regime.toml()] for regime in self.regimes]
        points = [[f"size = {size}", f"time = {MEASURED_TIME.toml(time)}"] for size, time in self.points]
        for key, rows in (("regimes", regimes), ("points", points)):
            if rows:
                yield from (f"{key} = [", *(f"    {{{', '.join(row)}}}," for row in rows), "]")


def links_alike(levels: Sequence[LinkLevel]) -> Levels:
    """The levels without their names: groups of which these are equal have the same links."""
    return tuple(replace(level, name="") for level in levels)


def measured_times(
    op: str, levels: Sequence[LinkLevel], measured: Sequence[MeasuredTimes]
) -> tuple[MeasuredTimes, ...]:
    """All that was measured of HLO's operation `op` over groups with such links, maybe along several axes."""
    of_op = [times for times in measured if COLLECTIVES[times.op] == op]
    links = links_alike([level for level in levels if level.size > 1]) if of_op else ()
    return tuple(times for times in of_op if times.links == links)


def read_measured(
    tables: Sequence[StrictTable], place: Callable[[Mesh], LevelsOf]
) -> tuple[MeasuredTimes, ...]:
    """The times of a machine's tables, on which `place` puts a mesh. Raises what the tables make."""
    known: list[MeasuredTimes] = []
    for table in tables:
        times = _times(table, place)
        if any((one.op, one.mesh, one.axes) == (times.op, times.mesh, times.axes) for one in known):
            over = f"{times.op} over {' and '.join(times.axes)} of {times.mesh}"
            table.fail("op", f"{over} is given twice", "leave one of them out")
        known.append(times)
    return tuple(known)


def _times(table: StrictTable, place: Callable[[Mesh], LevelsOf]) -> MeasuredTimes:
    table.only(KEYS)
    op = table.choice("op", tuple(COLLECTIVES))
    text = table.line("mesh", 200)
    try:
        mesh = parse_mesh(text)
        levels_of = place(mesh)
    except QuestionError as error:
        table.fail("mesh", error.message, error.hint)
    axes = tuple(name.strip() for name in table.line("axes", 200).split(","))
    for name in axes:
        if name not in mesh.axis_names:
            table.fail("axes", f"{mesh} has no axis {quote(name, 30)}", closest(name, mesh.axis_names))
    if len(set(axes)) < len(axes):
        table.fail("axes", "an axis is named twice", "name each once")
    links = links_alike(levels_of(op, axes))
    if not links:
        table.fail("axes", "its groups have one device, which sends nothing", "leave this table out")
    dtype = ""
    if "dtype" in table:
        try:
            dtype = canonical_dtype(table.line("dtype", 20))
        except QuestionError as error:
            table.fail("dtype", error.message, error.hint)
    regimes = tuple(_regimes(table)) if "regimes" in table or "points" not in table else ()
    points = tuple(_points(table)) if "points" in table else ()
    noise: Any = table.values.get("noise")
    if "noise" in table and (type(noise) not in (int, float) or not 0 <= noise <= MAX_NOISE):
        shown = quote(str(noise), 30)
        table.fail("noise", f"{shown} is not a number from 0 to {MAX_NOISE:g}", "0.2 is 20 %")
    spread = None if noise is None else float(noise)
    return MeasuredTimes(op, str(mesh), axes, regimes, links, dtype, spread, points)


def _rising(
    table: StrictTable, kind: str, most: int, keys: Sequence[str], least: float | None = None
) -> Iterator[tuple[StrictTable, int]]:
    """The rows of a list, a `kind` each, and their sizes under the first key, which must rise."""
    rows, before = table.tables(f"{kind}s"), -1
    if not 1 <= len(rows) <= most:
        table.fail(f"{kind}s", f"there are {len(rows):,}", f"write 1 to {most}")
    for row in rows:
        row.only(keys)
        size = int(figure(row, keys[0], PAYLOAD, least))
        if size <= before:
            row.fail(keys[0], f"it is not above that of the {kind} before", "begin with small sizes")
        before = size
        yield row, size


def _regimes(table: StrictTable) -> Iterator[Regime]:
    for row, start in _rising(table, "regime", MAX_REGIMES, REGIME_KEYS, 0.0):
        figures = {
            name: figure(row, name, quantity, 0.0 if name.endswith("_error") else None)
            for name, quantity in _FIGURES.items()
        }
        regime = Regime(start, **figures)
        if regime.bandwidth == math.inf and not regime.latency:
            row.fail("bandwidth", "with no latency it takes no time at all", "give one of the two")
        yield regime


def _points(table: StrictTable) -> Iterator[Point]:
    for row, size in _rising(table, "point", MAX_POINTS, POINT_KEYS):
        if not size:
            row.fail("size", "it is 0 bytes, which sends nothing", "begin with 1 byte or more")
        yield Point(size, figure(row, "time", MEASURED_TIME))
