"""The chart of a timeline in a terminal: what stands where, at any width and any stretch of the clock."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product

import pytest

from shardviz.cli.streams import STAND_INS
from shardviz.render.palette import PLAIN, TRUECOLOR
from shardviz.render.times.gantt import Gantt, legend
from shardviz.render.times.timeline_rows import TimelineRows, TimeWindow, ticks
from tests.render.timelines import LAYER, MS, long_timeline

ROWS = TimelineRows(LAYER)
WHOLE = TimeWindow.whole(LAYER.drawn_seconds)
DRAWN = """\
               busy   exposed  │0       │5 ms     │10 ms   │15 ms    │20 ms   │25 ms    │30 ms    │
                                              ┌──────────────── ×4 while.1 ────────────────┐
                                                                  ┌─────┐
compute       90 ms            ░░░░░░░░░░░░░░░▐█matmul███████▋░░░▐▓▓▓▓▓▓▓?█matmul fusion.3██▍░░░█▓▓▓
HBM copies                     █████▊   ·         ·        ·         ·        ·         ·         ·
X             60 ms      2 ms  ·        ·         ·        ·         ·       █████████████▍       ·
                               ·        ·         ·        ·         ·        · ▕█all-reduce.1██▏ ·
Y             48 ms     16 ms  █all-gather.1██▍█all-gather.2█████▌   ·        ·         ·         ·"""


def gantt_lines(rows, width, palette, window=None):
    """The whole chart, or a window of it, as it is printed."""
    chart = Gantt(rows, width, palette, window or TimeWindow.whole(rows.timeline.drawn_seconds))
    lines = [chart.line(y, 0, width) for y in range(chart.height)]
    for line in lines:
        line.rstrip()
    return lines


def test_every_lane_has_its_rows_and_what_waits_is_marked() -> None:
    assert "\n".join(line.plain for line in gantt_lines(ROWS, 100, PLAIN)) == DRAWN


def test_nothing_waits_while_another_row_computes() -> None:
    beside = replace(LAYER.ops[2], name="fusion.9", start=8 * MS, end=34 * MS, seconds=26 * MS)
    lines = gantt_lines(TimelineRows(replace(LAYER, ops=(*LAYER.ops, beside))), 80, PLAIN)
    first, second = (line.plain for line in lines[3:5])
    assert "█matmul" in second
    column = second.index("█matmul")
    assert "░" in first[:column]
    assert "░" not in first[column : column + 50]


def test_a_line_is_as_wide_as_the_page_and_can_be_written_in_ascii() -> None:
    for width, palette, zoom in product([40, 120], [PLAIN, TRUECOLOR], [1, 0.1, 1e-6]):
        for rows in (ROWS, TimelineRows(long_timeline(500))):
            window = TimeWindow.whole(rows.timeline.drawn_seconds).zoom(zoom, 0.3)
            lines = [*gantt_lines(rows, width, palette, window), *legend(rows, width, palette)]
            assert all(line.cell_len <= width for line in lines)
            assert {c for line in lines for c in line.plain if not c.isascii()} <= set(STAND_INS)


@pytest.mark.parametrize("width", [40, 97, 300])
@pytest.mark.parametrize("zoom", [1, 0.2])
def test_an_operation_is_under_the_cells_in_which_it_is_drawn(width: int, zoom: float) -> None:
    chart = Gantt(ROWS, width, PLAIN, WHOLE.zoom(zoom, 0.7))
    found = 0
    for number, op in enumerate(LAYER.ops):
        place = chart.place_of(number)
        if place is None:
            assert op.end < chart.window.start or op.start >= chart.window.end
            continue
        y, first, stop = place
        found += 1
        assert chart.op_at((first + stop - 1) // 2, y) == number
        assert chart.line(y, 0, width).plain[(first + stop - 1) // 2].strip()
    assert found
    assert chart.op_at(0, chart.top) is None
    assert chart.op_at(width - 1, chart.height) is None


def test_operations_of_one_lane_that_overlap_stand_in_rows_of_their_own() -> None:
    together = {number: ROWS.row_of[number] for number in (7, 8)}
    assert len(set(together.values())) == 2
    assert {ROWS.rows[row].lane for row in together.values()} == {2}


def test_what_is_chosen_and_what_it_waited_for_are_marked() -> None:
    chart = Gantt(ROWS, 80, PLAIN, WHOLE, chosen=4, related=LAYER.ops[4].after)
    marks = {c: y for y in range(chart.height) for c in chart.line(y, 0, 80).plain if c in "▸◂"}
    assert marks == {"▸": chart.place_of(4)[0], "◂": chart.place_of(3)[0]}  # type: ignore[index]


def test_occupancy_is_what_runs_in_a_cell() -> None:
    rows = TimelineRows(long_timeline(4000))
    end = max(op.end for op in rows.timeline.ops)
    covered = sum(row.covered(0, end) for row in rows.rows)
    lasted = sum(row.ends[i] - row.starts[i] for row in rows.rows for i in range(len(row.starts)))
    assert covered == pytest.approx(lasted)
    for row in rows.rows:
        assert row.covered(0, end / 3) + row.covered(end / 3, end) == pytest.approx(row.covered(0, end))


def test_a_timeline_of_nothing_has_a_chart() -> None:
    nothing = replace(LAYER, ops=(), spans=(), drawn_seconds=0.0, memory=None)
    assert gantt_lines(TimelineRows(nothing), 40, PLAIN)


def quickest(rows: TimelineRows) -> float:
    """Seconds of the processor for a frame of 200 columns."""
    taken = []
    for _ in range(5):
        started = time.process_time()
        gantt_lines(rows, 200, TRUECOLOR)
        taken.append(time.process_time() - started)
    return min(taken)


def test_a_frame_costs_what_its_cells_cost() -> None:
    many, few = (TimelineRows(long_timeline(count)) for count in (50_000, 2_500))
    assert quickest(many) < max(2 * quickest(few), 0.016)


@pytest.mark.parametrize(
    ("start", "end", "drawn", "labels"),
    [
        (0, 36 * MS, 36 * MS, ["0", "10 ms", "20 ms", "30 ms"]),
        (0, 3e-9, 3e-9, ["0", "1 ns", "2 ns", "3 ns"]),
        (12.3405 * MS, 12.3410 * MS, 36 * MS, ["12.3406 ms", "12.3408 ms", "12.3410 ms"]),
        (0, 5.4, 5.4, ["0", "1 s", "2 s", "3 s", "4 s", "5 s"]),
    ],
)
def test_ticks_are_round(start: float, end: float, drawn: float, labels: list[str]) -> None:
    assert [text for _, text in ticks(TimeWindow(start, end, drawn), 40)] == labels


def test_a_window_stays_within_the_clock() -> None:
    window = TimeWindow.whole(1.0)
    assert window.zoom(2) == window
    near = window.zoom(0.1, 0.25)
    assert (near.start, near.end) == pytest.approx((0.225, 0.325))
    assert near.pan(-9).start == 0
    assert near.pan(99).end == pytest.approx(1)
    assert near.zoom(1e-30).seconds > 0
    assert near.containing(0.25, 0.3) == near
    moved = near.containing(0.8, 0.85)
    assert moved.seconds == pytest.approx(near.seconds)
    assert moved.start < 0.8 < 0.85 < moved.end
    assert near.around(0.5, 0.52).seconds == pytest.approx(0.04)
