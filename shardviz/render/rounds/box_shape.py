"""How large the boxes of devices are drawn, so that all frames of a walk are alike and a page holds them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from shardviz.hardware import Switch
from shardviz.render.palette import Palette
from shardviz.render.rounds.device_map import DeviceMap, SwitchMap, Winding, device_map
from shardviz.render.rounds.looked_at import NAMES, LookedAt, drawn_columns
from shardviz.render.rounds.piece_label import FORMS
from shardviz.stepping.collective_run import CollectiveRun

GAPS = (7, 5, 3, 1)
"""Columns between boxes, where links are drawn."""
BAR = 12
"""Columns of the bar in place of cells."""
ROOMY = 3
"""Lines between rows of boxes where there is room."""
SIDES = 2
LEAST_INSIDE = 4


@dataclass(frozen=True)
class BoxShape:
    """Boxes with `lines` lines of `inside` columns, and gaps between them.

    `form` is the number of a form among `FORMS`; a line has `per_line` cells of `cell` columns with `blank`
    columns between; `bare` cells have no room for marks. No `cell` is a bar in place of cells. `passing`: a
    line more for what waits to go on. `above` are the lines between rows of boxes.
    """

    inside: int
    lines: int
    gap: int
    form: int = NAMES
    cell: int = 0
    per_line: int = 0
    blank: int = 0
    bare: bool = False
    passing: bool = False
    above: int = 1

    @property
    def width(self) -> int:
        return self.inside + SIDES

    @property
    def height(self) -> int:
        return self.lines + SIDES


def box_shape(
    walk: CollectiveRun, group: int, width: int, height: int, palette: Palette
) -> tuple[BoxShape, DeviceMap]:
    """The richest boxes with which the whole picture fits a page, else boxes with which its width does.

    A ring that closes, and a line or a switch in one row, come before richer boxes. Where sums are made,
    names without marks are worse than a picture that scrolls.
    """
    above = 2 if isinstance(walk.links.topology, Switch) else 1
    shapes = (replace(shape, above=above) for shape in _shapes(walk, group, palette))
    found = [(shape, _map(walk, shape, width)) for shape in shapes]
    fitting = []
    for shape, arranged in found:
        wide, high = page(arranged, shape)
        if wide <= width and high <= height:
            roomy = replace(shape, above=ROOMY)
            fits = page(arranged, roomy)[1] <= height and not isinstance(arranged, SwitchMap)
            fitting.append((roomy if fits else shape, arranged))
    natural = (each for each in fitting if not isinstance(each[1], Winding | SwitchMap) or each[1].rows == 1)
    if fitting and not (fitting[0][0].bare and walk.schedule.pattern.reduces):
        return next(natural, fitting[0])
    names = [each for each in found if each[0].form == NAMES and not each[0].bare]
    wide_enough = [each for each in names if page(each[1], each[0])[0] <= width]
    if not names[0][0].cell:
        # A picture of bars scrolls far anyway: its links rather have room for names.
        return next(iter(wide_enough), names[0])
    return min(wide_enough, key=lambda each: page(each[1], each[0])[1], default=found[-1])


def page(arranged: DeviceMap, shape: BoxShape) -> tuple[int, int]:
    """The columns and lines of a picture."""
    edges = shape.gap * (2 if arranged.across(0, 0) else 0)
    wide = edges + arranged.columns * (shape.width + shape.gap) - shape.gap
    top, bottom = (arranged.down(gap, 0) is not None for gap in (0, arranged.rows))
    above = shape.above
    return wide, arranged.rows * (shape.height + above) + above * (top + bottom - 1)


def _map(walk: CollectiveRun, shape: BoxShape, width: int) -> DeviceMap:
    pitch = shape.width + shape.gap
    arranged = device_map(walk.links.topology, (width + shape.gap) // pitch)
    if arranged.across(0, 0) is not None:
        # What goes around needs room at both edges.
        arranged = device_map(walk.links.topology, (width - shape.gap) // pitch)
    return arranged


def _shapes(walk: CollectiveRun, group: int, palette: Palette) -> Iterator[BoxShape]:
    """Shapes from the richest to the smallest."""
    columns = drawn_columns(walk)
    least = max(LEAST_INSIDE, len(str(walk.mesh.size - 1)) + 2)
    if columns is None:
        for gap in GAPS:
            for inside in (BAR + 4, BAR):
                yield BoxShape(max(inside, least), 1 + walk.followed, gap)
        return
    seen = LookedAt(walk, group, columns, palette)
    lengths: set[tuple[int, int]] = set()
    for form, longest in seen.labels():
        if (longest, FORMS[form].rank) in lengths:
            continue
        lengths.add((longest, FORMS[form].rank))
        for gap in GAPS if form == NAMES else GAPS[:2]:
            for blank in (1, 0) if form == NAMES else (1,):
                yield from _with_cells(seen, form, longest + 2, blank, gap, least)
    for gap in GAPS:
        yield from _with_cells(seen, NAMES, seen.longest_name, 0, gap, least, bare=True)


def _with_cells(
    seen: LookedAt, form: int, cell: int, blank: int, gap: int, least: int, bare: bool = False
) -> Iterator[BoxShape]:
    """The cells in one line, in two lines, ….."""
    count = max(1, len(seen.columns))
    for per_line in dict.fromkeys(-(-count // lines) for lines in range(1, min(count, 8) + 1)):
        inside = max(per_line * (cell + blank) - blank, least)
        lines = -(-count // per_line) + seen.passing
        yield BoxShape(inside, lines, gap, form, cell, per_line, blank, bare, seen.passing)
