"""The text of a program: what counts as one, its layers, and its statements on one line."""

import pytest

from shardviz.errors import NotationError
from shardviz.notation.program import is_program, joined_lines, split_layers


@pytest.mark.parametrize(
    "text",
    [
        "H = X[b,d] * W1[d,f]; Y = H * W2[f,d]",
        "h=bd,df->bf; g=bd,df->bf",
        "X[b,d] + Y[b,d]",
        "silu(X[b,d])",
        "Y[b,d] = -X[b,d]",
        "0.5 * X[b,d]",
        "Y[b,d] = X[b,d] / c[b]",
        "H[b,f] = X[b,d] * W[d,f]\nY[b,d] = H * V[f,d]",
        "(X[b,d] * W[d,f]) * V[f,e]",
    ],
)
def test_a_program(text):
    assert is_program(text)


@pytest.mark.parametrize(
    "text",
    [
        "bd,df->bf",
        "bd,df->bf; bf,fd->bd",
        "batch d, d f -> batch f",
        "A[B_X, D_Y] * W[D_Y, F]",
        "Out[B_X, F] = A[B_X, D_Y] *_D W[D_Y, F]",
        "A[B_X, D_Y] *_LOCAL W<sub>in</sub>[D_Y, F]",
        r"\mathbf{A}[I, J] \cdot_{J} **B**[J, K]\{U_Y\}",
        "A[I_X, J]",
        r"A[I_{XY}, J] \cdot B[J, K] \to C[I, K]",
        "A[B_X, D_Y] * W[D_Y, F] -> Out[B_X, F]{U_Y}",
    ],
)
def test_an_einsum_a_chain_and_a_product_are_not(text):
    assert not is_program(text)


@pytest.mark.parametrize(
    "text", ["a,b->c × 32", "a,b->c ×32", "a,b->c x 32", "a,b->c\nx 32\n", "a,b->c; x 32"]
)
def test_layers(text):
    assert split_layers(text) == ("a,b->c", 32, ())
    assert split_layers("ax,xb->ab") == ("ax,xb->ab", 1, ())


def test_no_layers():
    with pytest.raises(NotationError, match="at least once, not 0 times"):
        split_layers("a,b->c x 0")


def test_statements_on_one_line():
    lines = "# a layer\nH = X[b,d] *\n    W1[d,f]  # columns\nY = H + H\nx 2"
    assert joined_lines(lines) == "H = X[b,d] * W1[d,f]; Y = H + H x 2"
    assert joined_lines("bd,df->bf ; bf,fd->bd") == "bd,df->bf ; bf,fd->bd"
