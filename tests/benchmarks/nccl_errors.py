"""Collectives over GPUs: ours against every time that was measured, as a table and as a picture by size."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from measured_gpus import measured_times

from shardviz.hardware.chips import GPUS
from shardviz.hardware.collective_time import collective_time
from shardviz.hardware.family import SwitchedNodes
from shardviz.units import human_bytes

KIB, MIB, GIB = 2**10, 2**20, 2**30
BANDS = ((0, MIB), (MIB, 64 * MIB), (64 * MIB, 2**60))
COLORS = {"h100": "#0072b2", "b200": "#d55e00", "gb200": "#009e73", "gb300": "#cc79a7"}
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 340, 64, 24, 28, 48
RATIOS = {2.0: "2 ×", 1.35: "+35 %", 1.0: "1 ×", 0.65: "−35 %", 0.5: "½ ×"}
"""Ours over measured, where the picture has a line."""
MOST = 2.0
"""The picture reaches from half as long to twice as long; what is farther off stands on its edge."""


class Point(NamedTuple):
    chip: str
    op: str
    devices: int
    size: int
    error: float
    """Ours over measured, less 1."""


@cache
def points() -> tuple[Point, ...]:
    found = []
    for chip, op, devices, size, seconds in measured_times():
        level = SwitchedNodes.published(GPUS[chip], 1, devices).dimensions[0].level(devices)
        ours = collective_time(op, size, [level]).seconds
        found.append(Point(chip, op, devices, size, ours / seconds - 1))
    return tuple(found)


def table() -> str:
    """A row for each GPU, each collective, and all."""
    rows = [("all", points())]
    for name in ("chip", "op"):
        for value in dict.fromkeys(getattr(point, name) for point in points()):
            rows.append((value, [point for point in points() if getattr(point, name) == value]))
    return "\n".join(f"| {' | '.join([name, *_cells(own)])} |" for name, own in rows)


def spread(errors: Iterable[float]) -> Iterator[str]:
    """How many they are, their median, and within what 90 % of them lie."""
    off = sorted(map(abs, errors))
    yield f"{len(off):,}"
    yield f"{statistics.median(off):.1%}"
    yield f"{off[int(0.9 * len(off))]:.0%}"


def _cells(own: Sequence[Point]) -> Iterator[str]:
    yield from spread(point.error for point in own)
    for low, high in BANDS:
        yield f"{statistics.median(point.error for point in own if low <= point.size < high):+.1%}"


def picture() -> str:
    """The errors of all points over the size, as SVG: both axes in powers of two."""
    largest = max(point.size for point in points())
    across = (WIDTH - LEFT - RIGHT) / math.log2(largest / KIB)
    middle = TOP + (HEIGHT - TOP - BOTTOM) / 2

    def x(size: float) -> float:
        return LEFT + math.log2(size / KIB) * across

    def y(ratio: float) -> float:
        within = min(max(ratio, 1 / MOST), MOST)
        return middle - math.log(within, MOST) * (middle - TOP)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        "<title>Time of a collective over GPUs, shardviz over measured, by size</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    end = WIDTH - RIGHT
    for ratio, words in RATIOS.items():
        color = "#000" if ratio == 1 else "#bbb"
        lines.append(f'<path d="M{LEFT} {y(ratio):.1f}H{end}" stroke="{color}"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{y(ratio) + 4:.1f}" text-anchor="end">{words}</text>')
    below = HEIGHT - BOTTOM + 18
    for size in (KIB, MIB, 64 * MIB, GIB, 32 * GIB):
        words = human_bytes(size)
        lines.append(f'<text x="{x(size):.1f}" y="{below}" text-anchor="middle">{words}</text>')
    lines += [
        f'<circle cx="{x(point.size):.1f}" cy="{y(1 + point.error):.1f}" r="2.2" fill="{COLORS[point.chip]}" '
        'fill-opacity="0.6"/>'
        for point in points()
    ]
    for number, (chip, color) in enumerate(COLORS.items()):
        words = f"● {chip.upper()}"
        lines.append(f'<text x="{LEFT + 90 * number}" y="{HEIGHT - 8}" fill="{color}">{words}</text>')
    return "\n".join([*lines, "</svg>", ""])
