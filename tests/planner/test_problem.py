"""From text to a problem, and what is said of text that cannot be one."""

from __future__ import annotations

import time

import pytest

from shardviz.errors import NotationError, QuestionError
from shardviz.planner.planner import plan
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import Mesh, PartitionSpec

MESH = Mesh(("X", "Y"), (2, 4))
LONG = Mesh(("data", "model"), (2, 4))
BOOK = "A[B_X, D_Y] * W[D_Y, F] -> Out[B_X, F]"


def problem(text, mesh=MESH, **rest):
    return problem_from_text(text, mesh=mesh, **rest)


def shapes(found):
    return {array.name: array.shape for array in (*found.arguments, found.result)}


BAD = [
    # text, options, the whole message, a piece of the hint
    ("", {"specs": "XY,Y_"}, "there is no einsum in an empty text", "bd,df->bf"),
    ("bd,df->bf", {"specs": ""}, "there is no spec in an empty text", "XY,Y_->X_"),
    (
        "bd,df->bf",
        {"specs": "XX,Y_->X_"},
        "mesh axis 'X' is used twice in one array, again at character 2 of 'XX,Y_->X_'",
        "can shard only one dimension of an array",
    ),
    (
        "bd,df->bf",
        {"specs": "XY,Y_->X_{U_X}"},
        "mesh axis 'X' is used twice in one array, again at character 13 of 'XY,Y_->X_{U_X}'",
        "only one dimension",
    ),
    (
        "bd,df->bf",
        {"specs": "XZ,Y_->X_"},
        "unknown mesh axis 'Z' at character 2 of 'XZ,Y_->X_'",
        "this mesh has the axes X, Y",
    ),
    (
        "bd,df->bf",
        {"specs": "X,Y_->X_"},
        "the spec 'X' has 1 entry, but A has the 2 dimensions 'bd', at character 1 of 'X,Y_->X_'",
        "one entry for each dimension",
    ),
    (
        "bd,df->bf",
        {"specs": "XY,Y_->X__"},
        "the spec 'X__' has 3 entries, but Out has the 2 dimensions 'bf', at character 8 of 'XY,Y_->X__'",
        "one entry for each dimension",
    ),
    (
        "bd,df->bf",
        {"specs": "XY->X_"},
        "1 spec for the 2 operands of 'bd,df->bf' at character 5 of 'XY->X_'",
        "one spec for each operand",
    ),
    (
        "bd,df->bf",
        {"specs": "XY,Y_;XY,__"},
        "the specs have 2 parts but the chain has 1, at character 7 of 'XY,Y_;XY,__'",
        "one part for each einsum",
    ),
    (
        "bx,xy->by; by,yz->bz",
        {"specs": "XY,Y_"},
        "the specs have 1 part but the chain has 2, at the end of 'XY,Y_'",
        "with ; between them",
    ),
    (
        "bx,xy->by; by,yz->bz",
        {"specs": "XY,Y_; X_"},
        "1 spec for the 2 operands of 'by,yz->bz' at the end of 'XY,Y_; X_'",
        "one spec for each operand",
    ),
    (
        "b,bc->c; b,bd->d",
        {"specs": "X,__; ,__"},
        "a part begins with 'b' but the part before it makes 'c', at character 10 of 'b,bc->c; b,bd->d'",
        "the result of the part before it",
    ),
    (
        "bd,df->bf",
        {"specs": "XY,Y_", "sizes": "b=8,d=16,f=8,g=3"},
        "no array has the dimension 'g' given a size at character 14 of 'b=8,d=16,f=8,g=3'",
        "the dimensions are b, d, f",
    ),
    (
        "bd,df->bf",
        {"specs": "XY,Y_", "sizes": "b=8,d=16,f=8,f=9"},
        "dimension 'f' is given twice, again at character 14 of 'b=8,d=16,f=8,f=9'",
        "one size",
    ),
    (
        "bd,df->bf",
        {"specs": "XY,Y_", "sizes": "b=-8,d=16,f=8"},
        "dimension 'b' has the size -8 at character 3 of 'b=-8,d=16,f=8'",
        "0 or more",
    ),
    (
        "bd,df->bf\x00",
        {"specs": "XY,Y_"},
        r"expected a letter, ',', '->' or '...' but found '\x00' at character 10 of 'bd,df->bf\x00'",
        "letters",
    ),
    (
        "bd,df->bf",
        {"specs": "XY,Y\x1b"},
        r"expected the end of a spec but found '\x1b' at character 5 of 'XY,Y\x1b'",
        "one entry",
    ),
    (
        "ab" * 5000,
        {},
        f"an operand has more than 64 dimensions at character 65 of '…{'ba' * 25}b…'",
        "fewer dimensions",
    ),
    ("bd,df->bq", {}, "dimension 'q' is in no operand, at character 9 of 'bd,df->bq'", "of the operands"),
    (
        "bd,df->bf",
        {"specs": "?,Y_->X_"},
        "the operand A needs a spec, at character 1 of '?,Y_->X_'",
        "results and intermediates",
    ),
    (
        "bx,xy->by; by,yz->bz",
        {"specs": "XY,Y_; ?,?"},
        "the operand W2 needs a spec, at character 10 of 'XY,Y_; ?,?'",
        "results and intermediates",
    ),
    (
        BOOK,
        {"specs": "XY,Y_->X_"},
        f"'{BOOK}' has specs in its brackets, but the specs 'XY,Y_->X_' are given as well",
        "give the specs once",
    ),
    (
        "A[B_X, D_X] * W[D_Y, F]",
        {},
        "mesh axis 'X' is used twice in one array, again at character 10 of 'A[B_X, D_X] * W[D_Y, F]'",
        "only one",
    ),
    (
        "A[B_X, D_Y * W[D_Y, F]",
        {},
        "expected ',' or ']' but found '*' at character 12 of 'A[B_X, D_Y * W[D_Y, F]'",
        "A[B_X, D_Y]",
    ),
    ("bd,df->bf", {"specs": "XY,Y_", "dtype": "bf17"}, "unknown dtype 'bf17'", "bf16, f32"),
]


@pytest.mark.parametrize(("text", "options", "message", "hint"), BAD)
def test_one_sentence_and_one_hint(text, options, message, hint):
    with pytest.raises(QuestionError) as caught:
        problem(text, **options)
    assert caught.value.message == message
    assert hint in caught.value.hint
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("specs", ["X_,__->__{U_Y}", "XY,Y_->__{U_X}", "__,__->__{U_Y}"])
def test_a_result_may_be_wanted_as_partial_sums_that_nobody_has(specs):
    """Where no summed dimension is split so, the first device keeps the result and the others have zeros; or
    each pads its shard with zeros, or the summed dimension is cut for it."""
    found = plan(problem("bd,df->bf", specs=specs))
    assert found.result_spec.unreduced == (specs[-2],)
    assert any(step.op in ("mask", "slice", "pad") for step in found.steps)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("text", "[" * 10_000),
        ("text", "A[" + "(" * 9_000),
        ("text", ";" * 10_000),
        ("text", "a," * 5_000),
        ("text", "." * 10_000),
        ("text", "A[B]" + "*A[B]" * 2_000),
        ("text", "a->a;" * 3_000),
        ("specs", "(" * 10_000),
        ("specs", "X" * 10_000),
        ("specs", "__,__;" * 2_000),
        ("specs", "{U_" * 3_000),
        ("sizes", "=" * 10_000),
        ("sizes", "b=" + "9" * 9_000),
        ("sizes", ",".join(f"x{i}=1" for i in range(2_000))),
        ("dtype", "f" * 10_000),
    ],
)
def test_hostile_text_is_refused_at_once(option, value):
    options = {"text": "bd,df->bf", "specs": "XY,Y_", option: value}
    start = time.process_time()
    with pytest.raises(QuestionError) as caught:
        problem(**options)
    assert time.process_time() - start < 8
    assert len(caught.value.message) < 250
    assert caught.value.message.isprintable()


def test_a_place_can_be_pointed_at():
    with pytest.raises(NotationError) as caught:
        problem("bd,df->bf", specs="XZ,Y_")
    assert (caught.value.text, caught.value.start, caught.value.stop) == ("XZ,Y_", 1, 2)


def test_names_dims_and_default_sizes():
    found = problem("bd,df->bf", specs="XY,Y_->X_")
    assert shapes(found) == {"A": (1024, 2048), "W": (2048, 8192), "Out": (1024, 8192)}
    assert [array.dims for array in found.arguments] == [("b", "d"), ("d", "f")]
    assert {array.dtype for array in found.arguments} == {"bf16"}
    assert found.result.spec == PartitionSpec((("X",), ()))


def test_further_dimensions_are_128_by_default():
    assert shapes(problem("abcd,cdef->abef", specs="____,____"))["W"] == (8192, 128, 128, 128)


def test_attention_has_sizes_by_letter():
    found = shapes(problem("bhqd,bhkd->bhqk", specs="____,____"))
    assert found == {"A": (8, 16, 2048, 128), "W": (8, 16, 2048, 128), "Out": (8, 16, 2048, 2048)}
    assert shapes(problem("bd,dh->bh; bh,hk->bk", specs="__,__; ?,__"))["A"] == (1024, 2048)


def test_sizes_that_are_given_take_the_place_of_the_defaults():
    assert shapes(problem("bd,df->bf", specs="XY,Y_", sizes="d=4Ki")) == {
        "A": (1024, 4096),
        "W": (4096, 8192),
        "Out": (1024, 8192),
    }


def test_an_ellipsis_beside_words_stands_for_what_a_spec_has_left():
    found = problem("...batch d, d f -> ...batch f", specs="_XY,Y_")
    assert found.parts[0].operands[0].dims == ("...0", "batch", "d")


def test_operands_may_be_open_where_shardings_are_ranked():
    found = problem("bd,df->bf", specs="X_,?->?", ranked=True)
    assert [array.spec for array in found.arguments] == [PartitionSpec((("X",), ())), None]


def test_without_specs_the_operands_are_open():
    assert [array.spec for array in problem("bd,df->bf").arguments] == [None, None]


def test_without_an_arrow_the_result_is_the_compiler_s_choice():
    assert problem("bd,df->bf", specs="XY,Y_").result.spec is None
    assert problem("bd,df->bf", specs="XY,Y_->?").result.spec is None


def test_a_chain_names_its_intermediates():
    found = problem("bx,xy->by; by,yz->bz; bz,zw->bw", specs="__,__->X_; Y_,__; ,__->?", sizes="")
    assert [array.name for array in found.arguments] == ["A", "W1", "W2", "W3"]
    assert [part.result.name for part in found.parts] == ["H1", "H2", "Out"]
    assert [part.operands[0].name for part in found.parts] == ["A", "H1", "H2"]
    assert found.parts[0].result.spec == PartitionSpec((("X",), ()))
    assert found.parts[1].operands[0].spec == PartitionSpec((("Y",), ()))
    assert found.parts[2].operands[0].spec is None


def test_a_book_product_brings_names_and_specs():
    found = problem("In[B_X, D_Y] *_D W_in[D, F_Y] *_F W_out[F_Y, D] -> Out[B_X, D_Y]", sizes="B=8,D=16,F=32")
    assert shapes(found) == {"In": (8, 16), "W_in": (16, 32), "W_out": (32, 16), "Out": (8, 16)}
    assert found.parts[0].result.name == "H1"
    assert found.result.spec == PartitionSpec((("X",), ("Y",)))
    assert found.parts[1].operands[0].spec is None


@pytest.mark.parametrize("specs", ["A=XY,W=Y_,Out=X_", "XY,Y_->X_", "[P('X','Y'), P('Y')] -> P('X')"])
def test_a_book_product_without_subscripts_takes_specs_by_name_or_in_order(specs):
    assert problem("A[B, D] * W[D, F] -> Out[B, F]", specs=specs) == problem(BOOK)
    with pytest.raises(QuestionError, match="has specs in its brackets, but the specs"):
        problem("A[B_X, D] * W[D, F] -> Out[B, F]", specs=specs)


def test_a_book_product_may_use_one_name_twice():
    found = problem("A[B_X, D] * A[D, F]", sizes="B=8,D=16,F=32")
    assert shapes(found) == {"A": (8, 16), "A_2": (16, 32), "Out": (8, 32)}


def test_long_axis_names():
    found = problem("bd,df->bf", LONG, specs="data model, model _ -> data _")
    assert found.arguments[0].spec == PartitionSpec((("data",), ("model",)))


@pytest.mark.parametrize("sizes", ["...=4x8,d=16,f=8", "d=16 ...=4x8 f=8"])
def test_an_ellipsis_has_the_sizes_given_for_it(sizes):
    found = problem("...d,df->...f", specs="X_Y,Y_", sizes=sizes)
    assert shapes(found) == {"A": (4, 8, 16), "W": (16, 8), "Out": (4, 8, 8)}


def test_an_ellipsis_has_as_many_dimensions_as_its_spec():
    assert problem("...d,df->...f", specs="X_Y,Y_").arguments[0].rank == 3


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        ("abcd,cdef->abef", "ABCD,EFGH->HGFE"),
        ("abcd,cdef->abef", "(AB)(CD)(EF)(GH),(HG)(FE)(DC)(BA)->(AC)(EG)(BD)(FH)"),
        ("abcd,cdef->abef", "(ABCDEFGH)___,_(HGFEDCBA)__->__(ABCD)(EFGH)"),
        ("abcd,cdef->abef", "(ABCDEFGH)___,_(HGFEDCBA)__"),
    ],
)
def test_eight_axes_are_planned_without_delay(text, specs):
    """The number of states grows with the factorial of the axes; what is looked at must not."""
    mesh = Mesh(tuple("ABCDEFGH"), (2,) * 8)
    asked = problem(text, mesh, specs=specs, sizes=",".join(f"{dim}=256" for dim in "abcdef"))
    start = time.process_time()
    found = plan(asked)
    assert time.process_time() - start < 12
    assert found.collectives
