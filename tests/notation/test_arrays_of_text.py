"""Texts that shard several arrays at once."""

from __future__ import annotations

import pytest

from shardviz.errors import NotationError
from shardviz.notation import Context, parse_mesh, read_arrays, write_spec

CONTEXT = Context(parse_mesh("X=2,Y=4"))


@pytest.mark.parametrize(
    ("text", "arrays"),
    [
        ("XY,Y_->X_", ["A XY", "W Y_", "Out X_"]),
        ("X_,_Y", ["A X_", "W _Y"]),
        ("X_,_Y; ?,Y_", ["A1 X_", "W2 _Y", "W3 Y_"]),
        ("A[B_X, D_Y] * W[D_Y, F] -> Out[B_X, F]", ["A XY", "W Y_", "Out X_"]),
        ("In[B_X, D_Y] *_D W[D, F_Y]", ["In XY", "W _Y"]),
        ("A[I_X, J_Y]", ["A XY"]),
        ("P('X', None)", ["None X_"]),
        ("bf16[8@X,2048@Y]", ["None XY"]),
        ("b d -> b2 d4", ["None XY"]),
    ],
)
def test_every_array_is_read(text: str, arrays: list[str]) -> None:
    assert [f"{one.name} {write_spec(one.spec)}" for one in read_arrays(text, CONTEXT)] == arrays


def test_dimensions_of_a_product_are_kept() -> None:
    assert [one.dims for one in read_arrays("A[B_X, D] * W[D, F_Y]", CONTEXT)] == [("B", "D"), ("D", "F")]


def test_an_axis_that_the_mesh_lacks_is_refused() -> None:
    with pytest.raises(NotationError, match="unknown mesh axis 'Q' at character 4 of 'XY,Q_'"):
        read_arrays("XY,Q_", CONTEXT)
