"""Lines through measured times: latency and bandwidth, in as many regimes as the times have.

A regime is a straight line of time over size, fitted by least squares of relative errors, so that small and
large sizes count alike. Where one line does not hold (a cache is full, a library changes its protocol) the
sizes are cut where two lines hold best, and so on, as long as that is worth its figures. Where a size took
longer than a larger one, other work has slowed it down, and the line goes by the larger one's time.

A machine of what was measured has its collectives as lines. What was not measured falls back to the formulas,
on links with the bandwidth and the latency that make the formulas agree best with what was."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, groupby

from shardviz.devices.question import Case, Measurement, MeasureQuestion
from shardviz.hardware.chips import DeviceFigures
from shardviz.hardware.collective_time import collective_time
from shardviz.hardware.family import Family, SwitchedNodes
from shardviz.hardware.links import LinkSpec
from shardviz.hardware.machine import LARGE, Machine, place_mesh
from shardviz.hardware.measured import COLLECTIVES, MeasuredTimes, Regime, links_alike
from shardviz.hardware.quantities import BANDWIDTH, LATENCY, MEASURED, PEAK, SPREAD

NOISY = 0.2
"""A spread of the runs over their median, and a share of sizes that were slowed down, that are noise."""
HOLDS = 0.25
"""A fit holds where sizes that were held back are predicted this well in the median."""
CLOSE = 0.03
"""Relative errors that no further regime makes worth while."""
GROWTH = 1e-3
"""Of a line that grows by less than this share over its sizes nobody can tell a bandwidth."""
MAX_REGIMES = 4
OF_A_REGIME = 3
"""What a further regime chooses: where it begins, a latency and a bandwidth."""


@dataclass(frozen=True)
class TimeFit:
    """The lines of an operation over axes, from `rows` of growing size. `error` is the median of how far the
    lines are from the times, relative to these; `held_back` that of every second size, predicted from the
    others alone, None where there are too few."""

    rows: tuple[Measurement, ...]
    regimes: tuple[Regime, ...]
    held_back: float | None

    @property
    def op(self) -> str:
        return self.rows[0].case.op

    @property
    def axes(self) -> tuple[str, ...]:
        return self.rows[0].case.axes

    @property
    def noise(self) -> float | None:
        """That of most rows; None where each ran once."""
        known = [row.noise for row in self.rows if row.noise is not None]
        return statistics.median(known) if known else None

    @property
    def slowed(self) -> int:
        """Sizes that took more than 1.1 times as long as a larger one."""
        least = _never_falling([row.median for row in self.rows])
        return sum(row.median > 1.1 * expected for row, expected in zip(self.rows, least, strict=True))

    @property
    def is_noisy(self) -> bool:
        """Other work was in the way, as far as can be told."""
        return (self.noise or 0.0) > NOISY or self.slowed > NOISY * len(self.rows)

    @property
    def error(self) -> float:
        return statistics.median(map(self.off, self.rows))

    @property
    def holds(self) -> bool:
        """It predicts what it has not seen, as far as that could be tried."""
        worst = max(map(self.off, self.rows))
        return (worst if self.held_back is None else self.held_back) <= HOLDS

    def seconds(self, size: float) -> float:
        """The time of so many bytes by the lines."""
        return MeasuredTimes(self.op, "", self.axes, self.regimes, ()).seconds(size)

    def off(self, row: Measurement) -> float:
        """The distance of the lines from a row, relative to its time."""
        return abs(self.seconds(row.case.size) / row.median - 1)


def fits(rows: Sequence[Measurement]) -> tuple[TimeFit, ...]:
    """A fit for each operation and its axes: of a collective from two sizes on, as one tells no latency."""
    time_fits = []
    for _, group in groupby(rows, key=lambda row: row.case.group):
        by_size = sorted(group, key=lambda row: row.case.size)
        if len(by_size) > 1 or not by_size[0].case.is_collective:
            time_fits.append(TimeFit(tuple(by_size), fitted(by_size), _held_back(by_size)))
    return tuple(time_fits)


def of_one_size(rows: Sequence[Measurement]) -> tuple[Case, ...]:
    """The collectives of which there is one size, so that they have no fit."""
    counts = Counter(row.case.group for row in rows)
    return tuple(row.case for row in rows if row.case.is_collective and counts[row.case.group] == 1)


def fitted(rows: Sequence[Measurement]) -> tuple[Regime, ...]:
    """The regimes of rows by size."""
    times = _never_falling([row.median for row in rows])
    points = [(row.case.size, time) for row, time in zip(rows, times, strict=True)]
    noise = statistics.median((row.noise or 0.0) / math.sqrt(len(row.seconds)) for row in rows)
    line = cache(lambda start, stop: _Line(points[start:stop]))
    counts = range(1, max(1, min(MAX_REGIMES, len(rows) // OF_A_REGIME)) + 1)
    regimes: list[Regime] = []
    before: _Line | None = None
    for one in min((_best_cut(line, len(points), count) for count in counts), key=_information):
        begins = one.sizes[0] if before is None else _meeting(before, one)
        latency_error, slope_error = one.errors(noise)
        bandwidth = 1 / one.slope if one.slope else math.inf
        bandwidth_error = slope_error * bandwidth**2 if one.slope else 0.0
        regimes.append(Regime(begins, one.latency, bandwidth, latency_error, bandwidth_error))
        before = one
    return tuple(regimes)


def _never_falling(times: Sequence[float]) -> list[float]:
    """Times by size, each as little as those of larger sizes."""
    return [*accumulate(reversed(times), min)][::-1]


def _held_back(rows: Sequence[Measurement]) -> float | None:
    """The median error of every second size but the ends, by the lines of the others."""
    held = [row for index, row in enumerate(rows[:-1]) if index % 2]
    kept = [row for row in rows if row not in held]
    if not held or len(kept) < OF_A_REGIME:
        return None
    fit = TimeFit(tuple(kept), fitted(kept), None)
    return statistics.median(map(fit.off, held))


class _Line:
    """A straight line through points of a size and a time, whose latency and slope are not below 0, and the
    `squares` of its errors: logarithms of what it says over the time, so that half and twice are as wrong."""

    def __init__(self, points: Sequence[tuple[int, float]]) -> None:
        self.sizes = [size for size, _ in points]
        weighted = [(1 / time, size / time) for size, time in points]
        u, v = (sum(column) for column in zip(*weighted, strict=True))
        uu, vv = (sum(x * x for x in column) for column in zip(*weighted, strict=True))
        uv = sum(a * b for a, b in weighted)
        self._uu, self._vv, self._determinant = uu, vv, uu * vv - uv * uv
        self.latency, self.slope = 0.0, v / vv
        if self._determinant > 1e-12 * uu * vv:
            latency, slope = (u * vv - v * uv) / self._determinant, (v * uu - u * uv) / self._determinant
            if slope * self.sizes[-1] < GROWTH * latency:
                self.latency, self.slope = u / uu, 0.0
            elif latency >= 0:
                self.latency, self.slope = latency, slope
        self.squares = sum(math.log((self.latency + self.slope * size) / time) ** 2 for size, time in points)

    def errors(self, noise: float) -> tuple[float, float]:
        """Standard errors of latency and slope, by how far points lie from it, and by their noise."""
        free = len(self.sizes) - (self.latency > 0) - (self.slope > 0)
        sigma = max(math.sqrt(self.squares / free) if free > 0 else 0.0, noise)
        uu, vv, determinant = self._uu, self._vv, self._determinant
        if self.latency and self.slope and determinant > 0:
            return sigma * math.sqrt(vv / determinant), sigma * math.sqrt(uu / determinant)
        return (sigma / math.sqrt(uu), 0.0) if self.latency else (0.0, sigma / math.sqrt(vv))


def _best_cut(line: Callable[[int, int], _Line], total: int, count: int) -> list[_Line]:
    """The lines of so many regimes through `total` points with the least squares in all."""
    least = 2 if count > 1 else 1
    # Of each number of points from the first on: the squares of the best cuts, and where these are.
    best: dict[int, tuple[float, tuple[int, ...]]]
    best = {stop: (line(0, stop).squares, (0,)) for stop in range(least, total + 1)}
    for _ in range(count - 1):
        best = {
            stop: min(
                (squares + line(cut, stop).squares, (*cuts, cut))
                for cut, (squares, cuts) in best.items()
                if cut + least <= stop
            )
            for stop in range(min(best) + least, total + 1)
        }
    cuts = best[total][1]
    return [line(*span) for span in zip(cuts, (*cuts[1:], total), strict=True)]


def _information(lines: Sequence[_Line]) -> float:
    """Schwarz's criterion, which is the least where errors and the number of regimes are few (G. Schwarz,
    "Estimating the dimension of a model", 1978)."""
    total = sum(len(one.sizes) for one in lines)
    squares = sum(one.squares for one in lines) / total
    return total * math.log(max(squares, CLOSE**2)) + OF_A_REGIME * len(lines) * math.log(total)


def _meeting(before: _Line, after: _Line) -> int:
    """Where a line takes over: where the two cross between their points, else in the middle."""
    low, high = before.sizes[-1] + 1, after.sizes[0]
    steeper = after.slope - before.slope
    crossing = (before.latency - after.latency) / steeper if steeper else math.inf
    middle = crossing if low <= crossing <= high else math.sqrt(low * high)
    return min(max(math.ceil(middle), low), high)


def bare_machine(chip: str, devices: int, node: int) -> Machine:
    """A machine of which nothing is known but its devices, `node` of them in each host."""
    link = LinkSpec()
    family = SwitchedNodes.of(chip, node, devices // node, link, link if devices > node else None)
    return Machine(chip, DeviceFigures(()), family)


def measured_machine(
    base: Machine, question: MeasureQuestion, fits: Sequence[TimeFit], name: str, source: str
) -> Machine:
    """The machine `base` with what was measured. Raises `QuestionError` where the mesh does not fit on it."""
    base = replace(base, name=name, source=source, assumed=False, measured=())
    machine = _with_links(replace(base, device=_device(base.device, fits)), question, fits)
    placed = place_mesh(machine, question.mesh)
    measured = tuple(
        MeasuredTimes(
            fit.op,
            str(question.mesh),
            fit.axes,
            # With figures that a machine's file takes.
            tuple(
                replace(
                    regime,
                    latency=min(regime.latency, LATENCY.most),
                    latency_error=min(regime.latency_error, LATENCY.most),
                    bandwidth=max(regime.bandwidth, MEASURED.least),
                    bandwidth_error=min(regime.bandwidth_error, SPREAD.most),
                )
                for regime in fit.regimes
            ),
            links_alike(placed.levels_for(fit.op, fit.axes)),
            question.dtype,
            fit.noise,
        )
        for fit in fits
        # Lines that tell no bandwidth would have larger sizes take no longer.
        if fit.op in COLLECTIVES and fit.regimes[-1].bandwidth < math.inf
        if placed.published_levels(fit.axes)
    )
    return replace(machine, measured=measured)


def _device(device: DeviceFigures, fits: Sequence[TimeFit]) -> DeviceFigures:
    for fit in fits:
        if fit.op == "matmul":
            best = max(row.flops_per_second or 0.0 for row in fit.rows)
            peaks = dict(device.peak) | {fit.rows[0].case.dtype: best}
            reached = tuple((dtype, peak) for dtype, peak in peaks.items() if peak >= PEAK.least)
            device = replace(device, peak=reached, matmuls="")
        elif fit.op == "copy":
            # By the largest sizes, which no cache holds.
            bandwidth = statistics.median(row.bus_bandwidth for row in fit.rows[-3:])
            device = replace(device, hbm_bandwidth=max(bandwidth, BANDWIDTH.least))
    return device


def links_not_measured(
    machine: Machine, question: MeasureQuestion, fits: Sequence[TimeFit]
) -> dict[str, LinkSpec]:
    """The links of which no fit tells a bandwidth, so that the machine keeps the figures that it had: those
    of a host's devices, "switch", and those between hosts, "network"."""
    family = machine.family
    bandwidths, _ = _implied(machine, question, fits)
    return {
        name: link
        for name, link in family.links.items()
        if name == "network" or (name == "switch" and family.reaches(name))
        if name not in bandwidths
    }


def _with_links(machine: Machine, question: MeasureQuestion, fits: Sequence[TimeFit]) -> Machine:
    """The machine with links on which the formulas take the time that was measured, in the median."""
    bandwidths, latencies = _implied(machine, question, fits)
    family, links = machine.family, {}
    for name, link in _with_any_link(family).links.items():
        bandwidth, latency, start = link.bandwidth, link.latency, link.start
        if name in bandwidths:
            bandwidth = max(statistics.median(bandwidths[name]), BANDWIDTH.least)
        if name in latencies:  # what was measured has the start in it
            latency, start = min(statistics.median(latencies[name]), LATENCY.most), 0.0
        if name in bandwidths or name in family.links:
            links[name] = LinkSpec(latency, bandwidth, start)
    return replace(machine, family=family.with_links(links))


def _with_any_link(family: Family) -> Family:
    """The family with some link in the place of each that nobody publishes."""
    if not family.lacks_links:
        return family
    dimensions = tuple(replace(one, link=one.link or LinkSpec()) for one in family.dimensions)
    return replace(family, dimensions=dimensions)


def _implied(
    machine: Machine, question: MeasureQuestion, fits: Sequence[TimeFit]
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """The bandwidths and the latencies of links with which the formulas take the time of each fit."""
    placed = place_mesh(replace(machine, family=_with_any_link(machine.family)), question.mesh)
    bandwidths: dict[str, list[float]] = {}
    latencies: dict[str, list[float]] = {}
    for fit in fits:
        levels = placed.levels_for(fit.op, fit.axes) if fit.op in COLLECTIVES else ()
        if len(levels) != 1:
            continue
        (level,) = levels
        # Of one axis of a torus its name.
        op, key = COLLECTIVES[fit.op], level.name if level.is_torus else level.kind
        formula = collective_time(op, LARGE, levels)
        if math.isfinite(fit.regimes[-1].bandwidth):
            per_byte = 1 / fit.regimes[-1].bandwidth
            ratio = formula.bandwidth_seconds / LARGE / per_byte
            bandwidths.setdefault(key, []).append(level.spec.bandwidth * ratio)
        if not level.nccl:
            # The hops of the formula: its latency on links of a second each.
            slow = replace(level, spec=replace(level.spec, latency=1.0))
            hops = collective_time(op, 1, (slow,)).latency_seconds
            latencies.setdefault(key, []).append(fit.regimes[0].latency / hops)
    return bandwidths, latencies
