import pytest

from shardviz.errors import NotationError
from shardviz.notation import parse_product

XY = ("X", "Y")

MLP = "In[B_X, D_Y] *_D W_in[D, F_Y] *_F W_out[F_Y, D] -> Out[B_X, D_Y]"


@pytest.mark.parametrize(
    ("text", "chain"),
    [
        ("A[B_X, D_Y] * W[D_Y, F] -> Out[B_X, F]", ["BD,DF->BF"]),
        ("A[B_X, D_Y] *_D W[D_Y, F]", ["BD,DF->BF"]),
        ("A[B_X, D_Y] · W[D_Y, F]", ["BD,DF->BF"]),
        ("A[I_X, J] @ B[J, K_Y] -> C[I_X, K_Y]", ["IJ,JK->IK"]),
        (r"\mathbf{A}[I, J] \cdot \mathbf{B}[J, K_Y] \rightarrow \mathbf{C}[I, K_Y]", ["IJ,JK->IK"]),
        (r"A[I, J_X] \cdot_\text{LOCAL} B[J_X, K] \rightarrow C[I, K] \{ U_X \}", ["IJ,JK->IK"]),
        (r"Out[B<sub>X</sub>, F] = In[B<sub>X</sub>, D] \*<sub>D</sub> W[D, F]", ["BD,DF->BF"]),
        (MLP, ["BD,DF->BF", "BF,FD->BD"]),
        ("A[B, D] * W1[D, F] * W2[F, G] -> Out[B, G]", ["BD,DF->BF", "BF,FG->BG"]),
        ("A[B, D] * W1[D, F] * W2[F, G]", ["BD,DF->BF", "BF,FG->BG"]),
        ("Q[B, S, D] * K[B, T, D] -> L[B, S, T]", ["BSD,BTD->BST"]),
        ("A[B, I] * W[I, J] -> Out[J]", ["BI,IJ->J"]),
        ("A[batch, d] * W[d, f]", ["batch d,d f->batch f"]),
        ("A[I, J] -> B[J, I]", ["IJ->JI"]),
        ("A[I, J]", ["IJ->IJ"]),
        ("x[I] * y[I]", ["I,I->"]),
    ],
)
def test_chain(text, chain):
    assert [str(einsum) for einsum in parse_product(text, XY).chain] == chain


def test_keeps_arrays_and_result():
    product = parse_product(MLP, XY)
    assert [str(array) for array in product.operands] == ["In[B_X, D_Y]", "W_in[D, F_Y]", "W_out[F_Y, D]"]
    assert str(product.result) == "Out[B_X, D_Y]"
    assert product.contracted == (("D",), ("F",))
    assert parse_product("A[B, D] * W[D, F]").result is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "A[I_X, J] * B[J, K_X] -> C[I_X, K_X]",
            "mesh axis 'X' is used twice in one array, again at character 35 of "
            "'A[I_X, J] * B[J, K_X] -> C[I_X, K_X]'",
        ),
        (
            "A[I] * B[I] -> C[K]",
            "dimension 'K' of the result is in no factor or summed over, "
            "at character 18 of 'A[I] * B[I] -> C[K]'",
        ),
        (
            "A[I, J] *_J B[J] -> C[J]",
            "dimension 'J' of the result is in no factor or summed over, "
            "at character 23 of 'A[I, J] *_J B[J] -> C[J]'",
        ),
        (
            "A[I, J] * B[J] -> C[I, I]",
            "dimension 'I' occurs twice in the result, at character 21 of 'A[I, J] * B[J] -> C[I, I]'",
        ),
        (
            "A[I] *_K B[I]",
            "the product sums over 'K', which its factors do not share, at character 8 of 'A[I] *_K B[I]'",
        ),
        ("A[I] * ", "expected '[' at the end of 'A[I] * '"),
        ("A[I] -> ", "expected '[' at the end of 'A[I] -> '"),
        ("A[I] B[I]", "expected the end but found 'B' at character 6 of 'A[I] B[I]'"),
        (
            "A[I] -> B[I] -> C[I]",
            "expected the end but found '-' at character 14 of 'A[I] -> B[I] -> C[I]'",
        ),
    ],
)
def test_refuses(text, message):
    with pytest.raises(NotationError) as caught:
        parse_product(text, XY)
    assert str(caught.value) == message
    assert caught.value.hint


def test_refuses_long_products():
    with pytest.raises(NotationError, match="more than 64 factors"):
        parse_product("*".join(["A[I]"] * 65))
