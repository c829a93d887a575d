"""A pointer in a message: whatever a page says, it is one."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from shardviz.serve.lecture import PagePointer, pointer_in

POINTER = PagePointer(5, 2, 3, ("W", 7, True, False))


@pytest.mark.parametrize("pointer", [POINTER, PagePointer(None, 1, 0, ("A", 0, False, True))])
def test_a_message_brings_it_whole(pointer):
    assert pointer_in({"type": "leads", **asdict(pointer)}) == pointer


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"lens": 1, "step": 2},
        {**asdict(POINTER), "round": "3"},
        {**asdict(POINTER), "lens": []},
        {**asdict(POINTER), "layout": None},
    ],
)
def test_anything_else_points_at_nothing(said):
    assert pointer_in(said) == PagePointer()


@pytest.mark.parametrize(
    "layout", [["A"], ["A", "0", False, False], ["A", -1, False, False], [None, 0, 0, 0]]
)
def test_a_layout_that_is_none_is_left_out(layout):
    assert pointer_in({**asdict(POINTER), "layout": layout}) == PagePointer(5, 2, 3)
