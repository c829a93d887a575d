"""The map of a round: which devices send and receive in it, and which chunks they have."""

from __future__ import annotations

import pytest
from rich.style import Style

from shardviz.render.minimap import LENS, Place
from shardviz.render.palette import TRUECOLOR
from shardviz.render.rounds.buffer_table import BufferTable, scrolled_shape
from shardviz.render.rounds.device_picture import DevicePicture, GroupBoxes
from shardviz.render.rounds.round_map import lens_mark, round_map
from shardviz.render.rounds.switch_lanes import SwitchLanes, lane_shape

SIZE = 300


def boxes(run, number):
    return DevicePicture(GroupBoxes(run, 0, 80, 20, TRUECOLOR), number)


def lanes(run, number):
    shapes = GroupBoxes(run, 0, 80, 20, TRUECOLOR)
    return SwitchLanes(shapes, lane_shape(shapes), number)


def table(run, number):
    shape = scrolled_shape(run, 0, 80, 20, TRUECOLOR)
    return BufferTable(run, number, [0], 80, TRUECOLOR, shape=shape)


def ends(run, number):
    """Those that send in a round, and those that receive, as the schedule has them."""
    sends = run.schedule.round(number)
    return set(sends.src.tolist()), set(sends.dst.tolist())


@pytest.mark.parametrize(("draw", "topology"), [(boxes, "ring"), (boxes, "line"), (lanes, "switch")])
@pytest.mark.parametrize("number", [1, 4, 9])
def test_devices_that_send_and_receive(run_of, draw, topology, number):
    run = run_of("psum", f"i={SIZE}", SIZE, "binomial-tree", topology=topology)
    canvas = draw(run, number)
    drawn = round_map(canvas, 36, 6)
    senders, receivers = ends(run, number)
    columns, lines = drawn.size
    shown = set()
    for y in range(lines):
        for x in range(columns):
            member = canvas.places.member(*drawn.place_at(x * drawn.wide, y))
            if member is None:
                continue
            sends, gets = member in senders, member in receivers
            assert drawn.samples[y][x][0] == {(1, 1): "●", (1, 0): "→", (0, 1): "←"}.get((sends, gets), "·")
            shown.add(member)
    assert len(shown) > 10
    assert all(member in range(SIZE) for member in shown)


def test_the_chunks_of_a_table(run_of):
    run = run_of("all_gather", f"i={SIZE}", range(SIZE))
    for number in (0, 120, run.schedule.rounds):
        drawn = round_map(table(run, number), 36, 6)
        columns, lines = drawn.size
        for y in range(lines):
            for x in range(columns):
                member = drawn.place_at(x, y).row
                held = set(run.frames[number].buffer(member).chunk.tolist())
                chunks = set(range(x * drawn.step.column, min(SIZE, (x + 1) * drawn.step.column)))
                expected = "█" if chunks <= held else "▒" if chunks & held else "·"
                assert drawn.samples[y][x][0] == expected


def test_chunks_of_an_all_to_all_have_no_column_each(run_of):
    drawn = round_map(table(run_of("all_to_all", "i=40", 40 * 40), 1), 36, 6)
    assert (drawn.rows, drawn.columns, drawn.unit) == (40, 1, "device")
    assert drawn.samples[0][0][0] == "●"


@pytest.mark.parametrize(("draw", "topology"), [(boxes, "ring"), (lanes, "switch"), (table, "ring")])
def test_the_marked_device_stands_at_its_place(run_of, draw, topology):
    canvas = draw(run_of("all_gather", "i=40", 40, topology=topology), 1)
    mark = lens_mark(canvas, 17, Style(bold=True))
    ((place, (sign, _)),) = mark.items()
    assert isinstance(place, Place)
    assert canvas.places.member(*place) == 17
    assert sign == LENS
    assert lens_mark(canvas, None, Style()) == {}
