import pytest
from hypothesis import given, strategies as st

from shardviz.errors import NotationError
from shardviz.notation.spec_string import SpecPart, parse_specs, write_spec, write_specs
from shardviz.sharding import PartitionSpec
from tests.conftest import examples

LETTERS = {"X": 2, "Y": 4, "Z": 2}
LONG = {"data": 8, "model": 4, "d_1": 2}
BOTH = LETTERS | LONG


def spec(*dims, unreduced=()):
    return PartitionSpec(tuple(map(tuple, dims)), unreduced)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("XY,Y_->X_", [SpecPart((spec("X", "Y"), spec("Y", "")), spec("X", ""))]),
        (" X Y , Y _ -> X _ ", [SpecPart((spec("X", "Y"), spec("Y", "")), spec("X", ""))]),
        ("(XY)_", [SpecPart((spec("XY", ""),))]),
        ("(YX)_,_(XZ)", [SpecPart((spec("YX", ""), spec("", "XZ")))]),
        ("X_,?->?", [SpecPart((spec("X", ""), None), None)]),
        ("X_,_Y; ,Y_", [SpecPart((spec("X", ""), spec("", "Y"))), SpecPart((None, spec("Y", "")))]),
        ("X; ->Y", [SpecPart((spec("X"),)), SpecPart((None,), spec("Y"))]),
        ("(),->()", [SpecPart((spec(), spec()), spec())]),
        ("X_{U_Y}", [SpecPart((spec("X", "", unreduced=("Y",)),))]),
        ("X_ {U_YZ} -> _", [SpecPart((spec("X", "", unreduced=("Y", "Z")),), spec(""))]),
        *(
            (text, [SpecPart((spec("X", "Y"), spec("Y", "")), spec("X", ""))])
            for text in (
                "(P('X','Y'),P('Y',None))->P('X',None)",
                "[P('X', 'Y'), P('Y', None),] -> P('X', None)",
                "('X','Y'),('Y',None)->(('X',),None)",
                "(XY,Y_)->X_",
                "[X Y, Y _]->X_",
                "jax.P('X','Y'),jax.P('Y',None)->jax.P('X',None)",
                "jax.sharding.PartitionSpec('X','Y'),shd.PartitionSpec('Y',None)->jax.sharding.P('X',None)",
                "jax.NamedSharding(mesh, P('X','Y')),NamedSharding(mesh=Mesh((2, 4), ('X', 'Y')), "
                "spec=PartitionSpec('Y', None), memory_kind=device)->X_",
                "('X','Y'),('Y',None)->('X',None)",
                "(('X','Y'),('Y',None))->X_",
            )
        ),
        ("(None,'X'),(None,)->(None,('Y','X'))", [SpecPart((spec("", "X"), spec("")), spec("", "YX"))]),
        ("[?, P('Y')]; [, (XY)]", [SpecPart((None, spec("Y"))), SpecPart((None, spec("XY")))]),
    ],
)
@pytest.mark.parametrize("axis_sizes", [None, LETTERS, BOTH])
def test_reads(text, parts, axis_sizes):
    assert parse_specs(text, axis_sizes) == tuple(parts)


@pytest.mark.parametrize(
    ("text", "dims"),
    [
        ("data model", [("data",), ("model",)]),
        ("data _", [("data",), ()]),
        ("(data model) _", [("data", "model"), ()]),
        ("( data )", [("data",)]),
        ("_ d_1", [(), ("d_1",)]),
        ("data:(1)2 (X data:(2)2)", [("data:(1)2",), ("X", "data:(2)2")]),
        ("_ Y:(2)2", [(), ("Y:(2)2",)]),
        ("_Y:(2)2X", [(), ("Y:(2)2",), ("X",)]),
        ("(Y:(2)2X)_", [("Y:(2)2", "X"), ()]),
        ("Y:(1)2", [("Y:(1)2",)]),
    ],
)
@pytest.mark.parametrize("axis_sizes", [None, BOTH])
def test_reads_long_names(text, dims, axis_sizes):
    assert parse_specs(text, axis_sizes) == (SpecPart((PartitionSpec(tuple(dims)),)),)


@pytest.mark.parametrize(
    ("text", "dims"),
    [
        ("data", [("data",)]),
        ("d_1", [("d_1",)]),
        ("(data)_", [("data",), ()]),
        ("(XY) _", [("X", "Y"), ()]),
        ("(XY) data", [("X", "Y"), ("data",)]),
    ],
)
def test_known_names_settle_what_is_meant(text, dims):
    assert parse_specs(text, BOTH) == (SpecPart((PartitionSpec(tuple(dims)),)),)


def test_letters_come_before_a_name_made_of_them():
    assert parse_specs("XY", {"X": 2, "Y": 2, "XY": 2}) == (SpecPart((spec("X", "Y"),)),)
    assert parse_specs("( XY )", {"X": 2, "Y": 2, "XY": 2}) == (SpecPart((PartitionSpec((("XY",),)),)),)


@pytest.mark.parametrize(
    ("written", "given"),
    [
        ("X_", spec("X", "")),
        ("(XY)_", spec("XY", "")),
        ("()", spec()),
        ("data _", PartitionSpec((("data",), ()))),
        ("( data )", PartitionSpec((("data",),))),
        ("(data X)", PartitionSpec((("data", "X"),))),
        ("X_{U_( data )}", PartitionSpec((("X",), ()), ("data",))),
        ("(data X){U_Y model}", PartitionSpec((("data", "X"),), ("model", "Y"))),
        ("(){U_YZ}", spec(unreduced=("Z", "Y"))),
        ("Y:(2)2", spec(("Y:(2)2",))),
        ("(Y:(2)2 X) _{U_Y:(1)2}", PartitionSpec((("Y:(2)2", "X"), ()), ("Y:(1)2",))),
        ("?", None),
    ],
)
def test_writes(written, given):
    assert write_spec(given) == written
    assert parse_specs(written, BOTH) == parse_specs(written) == (SpecPart((given,)),)


def test_open_dimensions():
    (part,) = parse_specs("X?,(X Y:(1)2?)_,?->?X", LETTERS)
    assert part.operands == (
        PartitionSpec((("X",), ()), open_dims=(1,)),
        PartitionSpec((("X", "Y:(1)2"), ()), open_dims=(0,)),
        None,
    )
    assert part.result == PartitionSpec(((), ("X",)), open_dims=(0,))
    assert write_specs([part]) == "X?,(X Y:(1)2?) _,?->?X"
    assert parse_specs("P('X', P.UNCONSTRAINED),?", LETTERS)[0].operands == (part.operands[0], None)


def test_parts_that_stand_together_are_one():
    together = "(Y:(1)2 Y:(2)2) (data:(1)2 data:(2)2 X data:(4)2)"
    (part,) = parse_specs(together, BOTH)
    assert part.operands == (PartitionSpec((("Y",), ("data:(1)4", "X", "data:(4)2"))),)
    (part,) = parse_specs("_{U_Y:(2)2 Y:(1)2}", BOTH)
    assert part.operands == (PartitionSpec(((),), ("Y",)),)


OVERLAPPING = ({"X": 2, "Y": 2, "XY": 2}, {"a": 2, "b": 2, "ab": 2, "ba": 2}, {"X": 2, "X_": 2, "XX": 2})
"""Meshes whose axis names are prefixes or concatenations of one another."""


@st.composite
def _specs(draw, axes):
    """A spec of an array; of rank 1 and open it is the array that is open, so not that."""
    left = draw(st.permutations(axes))
    dims = []
    for _ in range(draw(st.integers(0, 3))):
        count = draw(st.integers(0, len(left)))
        dims.append(tuple(left[:count]))
        left = left[count:]
    open_dims = tuple(n for n, dim in enumerate(dims) if (dim or len(dims) > 1) and draw(st.booleans()))
    unreduced = tuple(axis for axis in axes if axis in left and draw(st.booleans()))
    return PartitionSpec(tuple(dims), unreduced, open_dims=open_dims)


@examples(120)
@given(st.data())
def test_reads_what_is_written_where_axis_names_overlap(data):
    mesh = data.draw(st.sampled_from(OVERLAPPING))
    specs = data.draw(st.lists(_specs(list(mesh)), min_size=1, max_size=3))
    texts = [write_spec(each) for each in specs]
    between, around = data.draw(st.sampled_from([",", ", ", " , "])), data.draw(st.sampled_from(["", " "]))
    opened, closed = data.draw(st.sampled_from([("", ""), ("[", "]"), ("(", ")")]))
    if opened == "(" and len(specs) == 1:
        opened = closed = ""
    listed = f"{around}{opened}{around}{between.join(texts)}{around}{closed}{around}->{texts[0]}"
    assert parse_specs(listed, mesh) == (SpecPart(tuple(specs), specs[0]),)


@pytest.mark.parametrize("text", ["(X Y ) (XY )", "(X Y) ( XY)", "( X Y ) ( XY )", "( X Y )XY"])
def test_a_space_makes_a_name_of_letters(text):
    (part,) = parse_specs(text, OVERLAPPING[0])
    assert part.operands == (PartitionSpec((("X", "Y"), ("XY",))),)


def test_an_open_dimension_over_a_long_name():
    written = write_spec(PartitionSpec((("XY",), ("X",)), open_dims=(0,)))
    assert written == "(XY ?) X"
    assert parse_specs(written, OVERLAPPING[0])[0].operands[0].dims == (("XY",), ("X",))


def test_writes_parts():
    text = "X_,_Y; ?,Y_->()"
    assert write_specs(parse_specs("X_,_Y; ,Y_->")) == text
    assert parse_specs(text) == parse_specs("X_,_Y; ,Y_->")


SHAPE = "write one entry for each dimension, as in XY,Y_->X_ or 'data model, model _ -> data _'"
RESULT = "write -> before the spec of the result, as in XY,Y_->X_"
UNQUOTED = "write specs without quotes, as in XY,Y_->X_, or as P('X', 'Y')"
JAX = "write a PartitionSpec as P('X', None) or P(('X', 'Y'), None)"
NAMED = "write a NamedSharding as NamedSharding(mesh, P('X', None))"
KNOWN = "this mesh has the axes X, Y, Z"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "there is no spec in an empty text", SHAPE),
        ("Y:(1)3_", "mesh axis Y=4 has no part Y:(1)3 at character 1 of 'Y:(1)3_'", "1 × 3 must divide 4"),
        (
            "XY:(1)1",
            "no axis has the part 'Y:(1)1' at character 2 of 'XY:(1)1'",
            "write the product of the sizes before it, then its own size, 2 or more: X:(1)2",
        ),
        (
            "YY:(1)2",
            "mesh axis 'Y' is used twice in one array, again at character 2 of 'YY:(1)2'",
            "an axis can shard only one dimension of an array",
        ),
        ("XW,Y_", "unknown mesh axis 'W' at character 2 of 'XW,Y_'", KNOWN),
        (
            "XY _",
            "unknown mesh axis 'XY' at character 1 of 'XY _'",
            f"{KNOWN}; with a space in it, a spec needs one between X and Y",
        ),
        ("(XY_", "'(' is not closed, at character 1 of '(XY_'", SHAPE),
        ("XY)_", "expected the end of a spec but found ')' at character 3 of 'XY)_'", SHAPE),
        ("(X,Y),Z", "the list of operands has ended at character 6 of '(X,Y),Z'", RESULT),
        ("'X_',Y", "a quoted spec begins at character 1 of ''X_',Y'", UNQUOTED),
        (
            "NamedSharding(P('X'))",
            "expected ',' but found ')' at character 21 of 'NamedSharding(P('X'))'",
            NAMED,
        ),
        ("X,None", "unknown mesh axis 'N' at character 3 of 'X,None'", f"{KNOWN}; write _ for None"),
        ("((X))", "expected an axis, '_' or '(' but found '(' at character 2 of '((X))'", SHAPE),
        ("()_", "nothing stands between '(' and ')' at character 1 of '()_'", SHAPE),
        (
            "X{Y}",
            "expected 'U_' but found 'Y' at character 3 of 'X{Y}'",
            "write partial sums over Y as {U_Y}",
        ),
        (
            "X{U_Y_}",
            "'{U_}' takes axes only at character 5 of 'X{U_Y_}'",
            "write partial sums over Y as {U_Y}",
        ),
    ],
)
def test_refuses(text, message, hint):
    with pytest.raises(NotationError) as caught:
        parse_specs(text, LETTERS)
    assert str(caught.value) == message
    assert caught.value.hint == hint


def test_refuses_long_specs():
    with pytest.raises(NotationError, match="a spec of more than 64 dimensions is too long"):
        parse_specs("_" * 10_000)
    with pytest.raises(NotationError, match="more than 64 operands"):
        parse_specs("," * 10_000)
    with pytest.raises(NotationError, match="more than 1024 parts"):
        parse_specs("X;" * 5_000)


def test_advises_a_space():
    with pytest.raises(NotationError, match="unknown mesh axis 'd' at character 1 of 'data_'") as caught:
        parse_specs("data_", {"data": 2, "model": 2})
    assert caught.value.hint == "this mesh has the axes data, model; separate a long name with spaces: data _"
