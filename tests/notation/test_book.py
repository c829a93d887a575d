import pytest

from shardviz.errors import NotationError
from shardviz.notation.book import parse_product, read_book, write_book
from shardviz.notation.mesh import parse_mesh
from shardviz.notation.reading import Context, Reading
from shardviz.sharding import PartitionSpec

XY = {"X": 2, "Y": 4}
LONG = {"data": 2, "model": 4}


def array(text, axis_sizes=XY):
    (found,) = parse_product(text, axis_sizes).operands
    return found


@pytest.mark.parametrize(
    ("text", "name", "dims", "spec"),
    [
        ("A[B_X, D_Y]", "A", "BD", (("X",), ("Y",))),
        ("A[B_X,D]", "A", "BD", (("X",), ())),
        (" A [ B_X , D ] ", "A", "BD", (("X",), ())),
        ("A[I_XY, J]", "A", "IJ", (("X", "Y"), ())),
        ("A[I_YX, J]", "A", "IJ", (("Y", "X"), ())),
        ("A[I_{XY}, J]", "A", "IJ", (("X", "Y"), ())),
        ("A[I_{X,Y}, J]", "A", "IJ", (("X", "Y"), ())),
        ("A[I<sub>XY</sub>, J]", "A", "IJ", (("X", "Y"), ())),
        (r"\mathbf{A}[I_X, J]", "A", "IJ", (("X",), ())),
        ("**A**[I_X, J]", "A", "IJ", (("X",), ())),
        ("W<sub>in</sub>[D, F<sub>Y</sub>]", "W_in", "DF", ((), ("Y",))),
        ("W_in[D, F_Y]", "W_in", "DF", ((), ("Y",))),
        ("[S_X, D_Y]", "", "SD", (("X",), ("Y",))),
        ("A[]", "A", "", ()),
    ],
)
@pytest.mark.parametrize("axis_sizes", [None, XY])
def test_reads(text, name, dims, spec, axis_sizes):
    found = array(text, axis_sizes)
    assert (found.name, found.dims, found.spec.dims) == (name, tuple(dims), spec)


@pytest.mark.parametrize(
    "text",
    [
        "Out[B_X, F]{U_Y}",
        "Out[B_X, F] { U_Y }",
        r"Out[B_X, F] \{ U_Y \}",
        r"Out[B_X, F]\{\ U_Y \ \}",
        "Out[B_X, F] {U_{Y}}",
        "Out[B<sub>X</sub>, F] { U<sub>Y</sub> }",
    ],
)
def test_reads_partial_sums(text):
    assert array(text).spec == PartitionSpec((("X",), ()), ("Y",))


def test_reads_partial_sums_over_several_axes():
    for text in ("A[I]{U_XY}", "A[I]{U_X, U_Y}", "A[I]{U_{X,Y}}"):
        assert array(text).spec == PartitionSpec(((),), ("X", "Y"))


@pytest.mark.parametrize(
    ("text", "axis_sizes", "dims", "spec"),
    [
        ("A[B_{data,model}, D]", None, ("B", "D"), (("data", "model"), ())),
        ("A[B_{data}, D]", None, ("B", "D"), (("data",), ())),
        ("A[B_{data}, D]", LONG, ("B", "D"), (("data",), ())),
        ("A[B_data, D]", LONG, ("B", "D"), (("data",), ())),
        ("A[B_datamodel, D]", LONG, ("B", "D"), (("data", "model"), ())),
        ("A[batch_data, d_model_model]", LONG, ("batch", "d_model"), (("data",), ("model",))),
        ("A[d_model_{}, f_model]", LONG, ("d_model", "f"), ((), ("model",))),
        ("A[I_{XY}]", {"X": 2, "Y": 2, "XY": 2}, ("I",), (("XY",),)),
        ("A[I_XY:(2)2, J_Y:(1)2]", XY, ("I", "J"), (("X", "Y:(2)2"), ("Y:(1)2",))),
        ("A[I<sub>Y:(2)2</sub>]", XY, ("I",), (("Y:(2)2",),)),
        ("A[I_{X,Y}]", {"X": 2, "Y": 2, "XY": 2}, ("I",), (("X", "Y"),)),
    ],
)
def test_reads_long_names(text, axis_sizes, dims, spec):
    found = array(text, axis_sizes)
    assert (found.dims, found.spec.dims) == (dims, spec)


@pytest.mark.parametrize(
    ("text", "axis_sizes"),
    [
        ("A[B_X, D_Y]", XY),
        ("Out[B_X, F]{U_Y}", XY),
        ("A[I_XY, J]", XY),
        ("A[I_{X,Y:(2)2}, J]{U_{Y:(1)2}}", XY),
        ("A[I_{model:(1)2}, J]", LONG),
        ("A[]{U_XY}", XY),
        ("A[B_{data,model}, D]", LONG),
        ("A[B_{data}, D]{U_{model}}", LONG),
        ("A[d_model_{}, e_f_X]", XY),
        ("A[I_{X,Y}, J]", {"X": 2, "Y": 2, "XY": 2}),
        ("A[I_{XY}, J]", {"X": 2, "Y": 2, "XY": 2}),
    ],
)
def test_writes_what_it_read(text, axis_sizes):
    found = array(text, axis_sizes)
    assert write_book(found.name, found.dims, found.spec, tuple(axis_sizes)) == text


def test_a_dtype_stands_for_a_name():
    context = Context(parse_mesh("X=2,Y=4"))
    spec = PartitionSpec((("X",), ("Y",)))
    assert read_book("float32[S_X, D_Y]", context) == Reading(spec, ("S", "D"), dtype="f32")
    assert read_book("half[S_X, D_Y]", context) == Reading(spec, ("S", "D"), name="half")


SHAPE = "write arrays as A[B_X, D_Y] and products as A[B_X, D_Y] * W[D_Y, F] -> Out[B_X, F]"
KNOWN = "this mesh has the axes X, Y"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "A[I_X, J_X]",
            "mesh axis 'X' is used twice in one array, again at character 10 of 'A[I_X, J_X]'",
            "an axis can shard only one dimension of an array",
        ),
        ("A[I_Z, J]", "unknown mesh axis 'Z' at character 5 of 'A[I_Z, J]'", KNOWN),
        (
            "A[d_model]",
            "unknown mesh axis 'm' at character 5 of 'A[d_model]'",
            f"{KNOWN}; a dimension with an underscore is written d_model_{{}}",
        ),
        ("A[I", "expected ',' or ']' at the end of 'A[I'", SHAPE),
        ("A[I_]", "expected a mesh axis but found ']' at character 5 of 'A[I_]'", SHAPE),
        ("A[8_X]", "expected a dimension but found '8_X' at character 3 of 'A[8_X]'", SHAPE),
        ("", "there is no array in an empty text", SHAPE),
        (
            "A[I]{V_X}",
            "expected 'U' but found 'V_X' at character 6 of 'A[I]{V_X}'",
            "write partial sums over Y as {U_Y}",
        ),
        (
            "A[I]{}",
            "no axis between '{' and '}' at character 6 of 'A[I]{}'",
            "write partial sums over Y as {U_Y}",
        ),
    ],
)
def test_refuses(text, message, hint):
    with pytest.raises(NotationError) as caught:
        parse_product(text, XY)
    assert str(caught.value) == message
    assert caught.value.hint == hint


def test_refuses_subscripts_that_can_be_cut_in_two_ways():
    with pytest.raises(NotationError, match="'XY' can be read in two ways") as caught:
        parse_product("A[I_XY]", {"X": 2, "Y": 2, "XY": 2})
    assert caught.value.hint == "write {X,Y} or {XY}"
    with pytest.raises(NotationError, match="'1' is not an axis name at character 6") as caught:
        parse_product("A[I_X1]")
    assert caught.value.hint == "a subscript takes axes of one letter; write longer names as B_{data,model}"


MLP = "In[B_X, D_Y] *_D W_in[D, F_Y] *_F W_out[F_Y, D] -> Out[B_X, D_Y]"


@pytest.mark.parametrize(
    ("text", "chain"),
    [
        ("A[B_X, D_Y] * W[D_Y, F] -> Out[B_X, F]", ["BD,DF->BF"]),
        ("A[I_X, J] @ B[J, K_Y] -> C[I_X, K_Y]", ["IJ,JK->IK"]),
        (r"\mathbf{A}[I, J] \cdot \mathbf{B}[J, K_Y] \rightarrow \mathbf{C}[I, K_Y]", ["IJ,JK->IK"]),
        (r"A[I, J_X] \cdot_\text{LOCAL} B[J_X, K] \rightarrow C[I, K] \{ U_X \}", ["IJ,JK->IK"]),
        (r"Out[B<sub>X</sub>, F] = In[B<sub>X</sub>, D] \*<sub>D</sub> W[D, F]", ["BD,DF->BF"]),
        (MLP, ["BD,DF->BF", "BF,FD->BD"]),
        ("A[B, D] * W1[D, F] * W2[F, G] -> Out[B, G]", ["BD,DF->BF", "BF,FG->BG"]),
        ("Q[B, S, D] * K[B, T, D] -> L[B, S, T]", ["BSD,BTD->BST"]),
        ("A[B, I] * W[I, J] -> Out[J]", ["BI,IJ->J"]),
        ("A[batch, d] * W[d, f]", ["batch d,d f->batch f"]),
        ("A[I, J] -> B[J, I]", ["IJ->JI"]),
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
            "A[I, J] * B[J] -> C[I, I]",
            "dimension 'I' occurs twice in the result, at character 21 of 'A[I, J] * B[J] -> C[I, I]'",
        ),
        (
            "A[I] *_K B[I]",
            "the product sums over 'K', which its factors do not share, at character 8 of 'A[I] *_K B[I]'",
        ),
        ("A[I] * ", "expected '[' at the end of 'A[I] * '"),
        ("A[I] B[I]", "expected the end but found 'B' at character 6 of 'A[I] B[I]'"),
    ],
)
def test_refuses_products(text, message):
    with pytest.raises(NotationError) as caught:
        parse_product(text, XY)
    assert str(caught.value) == message
    assert caught.value.hint


def test_refuses_long_products():
    with pytest.raises(NotationError, match="more than 64 factors"):
        parse_product("*".join(["A[I]"] * 65))
