"""Devices on a switch, a line each."""

from __future__ import annotations

from textwrap import dedent

from shardviz.render.palette import PLAIN
from shardviz.render.rounds.device_picture import GroupBoxes
from shardviz.render.rounds.switch_lanes import SwitchLanes, lane_shape


def lanes(run, number: int, width: int, height: int, part=None, lens=None) -> SwitchLanes:
    boxes = GroupBoxes(run, 0, width, height, PLAIN)
    return SwitchLanes(boxes, lane_shape(boxes), number, part, lens)


def text_of(found: SwitchLanes) -> str:
    return "\n".join(found.line(y, 0, found.width).plain for y in range(found.height))


def check(found: str, expected: str) -> None:
    assert found == dedent(expected).strip("\n").rstrip()


def test_every_device_has_a_lane(run_of):
    found = lanes(run_of("all_gather", "i=5", [3, 9, 5, 2, 7], topology="switch"), 2, 60, 6)
    check(
        text_of(found),
        """
        ┏ switch
        ┣←─────ε──────────δ─────→ 0  3  ·  · ▸2  7
        ┣←─────α──────────ε─────→ 1  3  9  ·  · ▸7
        ┣←─────β──────────α─────→ 2 ▸3  9  5  ·  ·
        ┣←─────γ──────────β─────→ 3  · ▸9  5  2  ·
        ┗←─────δ──────────γ─────→ 4  ·  · ▸5  2  7
        """,
    )


def test_lanes_stand_beside_one_another_where_they_are_many(run_of):
    run = run_of("psum", "i=12", 12 * 12, topology="switch")
    found = lanes(run, 1, 120, 7)
    assert (found.width <= 120, found.height) == (True, 7)
    assert [found.rows(member) for member in (0, 5, 6, 11)] == [(1, 2), (6, 7), (1, 2), (6, 7)]
    text = text_of(found)
    assert text.count("┣") + text.count("┗") == 12
    assert "  0 " in text
    assert " 11 " in text


def test_what_fits_nowhere_scrolls(run_of):
    found = lanes(run_of("psum", "i=300", 300 * 300, topology="switch"), 1, 80, 10)
    assert found.width <= 80
    assert found.height == 151


def test_chunks_go_to_the_switch_and_then_from_it(run_of):
    run = run_of("all_gather", "i=5", [3, 9, 5, 2, 7], topology="switch")
    for part, there, not_there in ((0.2, "←", "→"), (0.8, "→", "←")):
        text = text_of(lanes(run, 1, 60, 6, part))
        assert there in text
        assert not_there not in text


def test_a_marked_device_has_its_sign(run_of):
    run = run_of("all_gather", "i=5", [3, 9, 5, 2, 7], topology="switch")
    assert "▹3◃" in text_of(lanes(run, 1, 60, 6, lens=3))
    found = lanes(run_of("psum", "i=12", 12 * 12, topology="switch"), 1, 120, 7)
    assert [found.member_at(5, 1), found.member_at(70, 2), found.member_at(5, 0)] == [0, 7, None]


def test_a_lane_is_the_same_wherever_it_is_cut(run_of):
    found = lanes(run_of("psum", "i=12", 12 * 12, topology="switch"), 1, 120, 7)
    for y in range(found.height):
        whole = found.line(y, 0, found.width).plain.ljust(found.width)
        for left in range(0, found.width, 7):
            assert found.line(y, left, left + 23).plain.ljust(23) == whole[left : left + 23].ljust(23)
