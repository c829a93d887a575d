"""A short lesson, and what the tests of lessons do with it."""

from __future__ import annotations

import pytest

from shardviz.lessons.lesson_file import read_lesson

TEXT = '''
title = "Rows"
see = """
Each device
holds rows.

Look at device 5."""
screen = "layout"
explain = "Rows follow X."
hints = ["The first letter is for rows.", "Write _Y."]
program = """
print(1)
"""

[setup]
mesh = "X=2,Y=4"
einsum = "A[I_X, J] * B[J, K] -> C[I_X, K]"
sizes = "I=8,J=16,K=8"
dtype = "f32"

[[predict]]
question = "Which part of A does device 5 hold?"
ask = "slices A 5"
wrong."0:4, 0:16" = "That is the upper half."
wrong."4:8, 0:8" = "J is not split."

[[predict]]
question = "And now?"
ask = "shard_shape A"
with.specs = "XY,Y_->X_"
before = "plan"
screen = "plan"
wrong."8x16" = "That is all of it."

[goal]
text = "Split the columns of A over Y instead, with nothing to be sent but one sum."
holds = { A = "A[I, J_Y]" }
collectives = ["psum C Y"]

[solution]
specs = "_Y,Y_->__"
'''


@pytest.fixture
def lesson_text():
    return TEXT


@pytest.fixture
def lesson_of():
    """Reads the lesson with some of its text replaced; every text has to be there."""

    def read(changes=(), number=0):
        text = TEXT
        for old, new in dict(changes).items():
            assert old in text
            text = text.replace(old, new)
        return read_lesson(text, "07-rows.toml", number)

    return read
