"""A pointer in a message: whatever a page says, it is one."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from shardviz.serve.lecture import PagePointer, pointer_in

POINTER = PagePointer(5, 2, 3)


@pytest.mark.parametrize("pointer", [POINTER, PagePointer(), PagePointer(None, 1)])
def test_a_message_brings_it_whole(pointer):
    assert pointer_in({"type": "leads", **asdict(pointer)}) == pointer


@pytest.mark.parametrize(
    "said", [{}, {"lens": 1, "step": 2}, {**asdict(POINTER), "round": "3"}, {**asdict(POINTER), "lens": []}]
)
def test_anything_else_points_at_nothing(said):
    assert pointer_in(said) == PagePointer()
