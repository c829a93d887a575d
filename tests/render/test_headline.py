"""The problem on one line."""

from __future__ import annotations

import pytest

from shardviz.drafts.enter import enter
from shardviz.drafts.form import ProblemForm
from shardviz.drafts.resolve import resolve
from shardviz.render.palette import TRUECOLOR
from shardviz.render.problems.headline import headline

CHAIN = enter(
    ProblemForm(), "einsum", ";".join(["ab,bc->ac", *(f"a{x},{x}{y}->a{y}" for x, y in ("cd", "de", "ef"))])
)
PRODUCT = enter(ProblemForm(mesh="data=2,model=4"), "einsum", "A[I_data, J_model] * B[J_model, K]")
LINES = [
    (ProblemForm(), 118, "bd,df->bf   XY,Y_->X_   X=2 Y=4   bf16   shardy,cpu"),
    (ProblemForm(), 78, "bd,df->bf  XY,Y_->X_  X=2 Y=4  bf16  shardy,cpu"),
    (ProblemForm(), 38, "bd,df->bf  XY,Y_->X_  X=2 Y=4  bf16  …"),
    (ProblemForm(sizes="b=8,d=8,f=8"), 78, "bd,df->bf  XY,Y_->X_  X=2 Y=4  b=8 d=8 f=8  bf16  shardy,cpu"),
    (PRODUCT, 78, "A[I_{data}, J_{model}] * B[J_{model}, K]  data=2 model=4  bf16  shardy,cpu"),
    (CHAIN, 78, "ab,bc->ac; ac,cd->ad; ad,…  _X,Y_; ?,__; ?,__; ?,__->…  X=2 Y=4  bf16  …"),
    (ProblemForm(specs=("XQ", "Y_", "X_")), 38, "bd,df->bf  XY,Y_->X_  …    ✗ spec of A"),
    (
        ProblemForm(mesh="", dtype="x"),
        78,
        "bd,df->bf  XY,Y_->X_  X=2 Y=4  bf16  shardy,cpu                      ✗ mesh +1",
    ),
]


@pytest.mark.parametrize(("draft", "width", "expected"), LINES)
def test_the_line(draft, width, expected):
    line = headline(resolve(draft, resolve(ProblemForm())), width, TRUECOLOR)
    assert line.plain == expected
    assert line.cell_len <= width


def test_axes_have_their_colours():
    scene = resolve(ProblemForm())
    line = headline(scene, 80, TRUECOLOR)
    for axis, places in {"X": (12, 19, 24), "Y": (13, 15, 28)}.items():
        style = TRUECOLOR.axis(scene.problem.mesh, axis)
        for place in places:
            assert line.plain[place] == axis
            assert style in [span.style for span in line.spans if span.start <= place < span.end]
