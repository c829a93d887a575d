import pytest

from shardviz.errors import NotationError
from shardviz.notation.jax_spec import read_jax, write_jax
from shardviz.notation.mesh import parse_mesh
from shardviz.notation.reading import Context, Reading
from shardviz.sharding import PartitionSpec

CONTEXT = Context(parse_mesh("X=2,Y=4,Z=2,data=8"))


def spec(*dims, unreduced=()):
    return PartitionSpec(tuple(map(tuple, dims)), unreduced)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P('X', 'Y')", spec("X", "Y")),
        ("P('X', None)", spec("X", "")),
        ("P('X',)", spec("X")),
        ("P()", spec()),
        ("P(None, None)", spec("", "")),
        ("P(('X', 'Y'), None)", spec("XY", "")),
        ("P(('Y','X',),)", spec("YX")),
        ("PartitionSpec('X', None)", spec("X", "")),
        ("('data', None)", spec(["data"], "")),
        ("P('X', None, unreduced={'Y'})", spec("X", "", unreduced=("Y",))),
        ("P(unreduced={'Y', 'Z'})", spec(unreduced=("Y", "Z"))),
        ("P('X', unreduced=frozenset({'Z'}))", spec("X", unreduced=("Z",))),
        ("P('X', unreduced={'Y'}, unreduced_kind=sum)", spec("X", unreduced=("Y",))),
    ],
)
def test_reads(text, expected):
    assert read_jax(text, CONTEXT) == Reading(expected)
    assert read_jax(write_jax(Reading(expected), CONTEXT), CONTEXT).spec == expected


def test_pads_to_the_rank():
    context = Context(CONTEXT.mesh, rank=3)
    assert read_jax("P('X')", context).spec == spec("X", "", "")
    with pytest.raises(NotationError, match="4 entries for an array of 3 dimensions"):
        read_jax("P(None, None, None, None)", context)


def test_what_does_not_change_the_layout_is_noted():
    reading = read_jax("P(P.UNCONSTRAINED, 'X', reduced={'Y'})", CONTEXT)
    assert reading.spec == spec("", "X")
    assert reading.notes == (
        "dimension 0 is open: the compiler may split it",
        "reduced over Y: whole on every device, and its gradient is unreduced",
    )


SHAPE = "write a PartitionSpec as P('X', None) or P(('X', 'Y'), None)"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "expected '(' in an empty text", SHAPE),
        ("P('X'", "expected ',' or ')' at the end of 'P('X''", SHAPE),
        ("P('X)", "the string that begins with ' does not end, at character 3 of 'P('X)'", SHAPE),
        (
            "P(('X', None))",
            "expected an axis in quotes but found 'None' at character 9 of 'P(('X', None))'",
            SHAPE,
        ),
        (
            "P('X', 'W')",
            "unknown mesh axis 'W' at character 9 of 'P('X', 'W')'",
            "this mesh has the axes X, Y, Z, data",
        ),
        (
            "P('X', 'X')",
            "mesh axis 'X' is used twice in one array, again at character 9 of 'P('X', 'X')'",
            "an axis can shard only one dimension of an array",
        ),
        (
            "P(unreduced={'X'}, unreduced_kind=max)",
            "the pending reduction is not a sum at character 35 of 'P(unreduced={'X'}, unreduced_kind=max)'",
            "shardviz models partial sums only",
        ),
        (
            "P(unreduced={'X'}, 'Y')",
            "an entry follows unreduced= at character 20 of 'P(unreduced={'X'}, 'Y')'",
            SHAPE,
        ),
        ("P('X') + 1", "expected the end but found '+' at character 8 of 'P('X') + 1'", SHAPE),
        (
            "P(__import__('os'))",
            "expected None, an axis in quotes or a tuple of axes but found '__import__' "
            "at character 3 of 'P(__import__('os'))'",
            SHAPE,
        ),
    ],
)
def test_refuses(text, message, hint):
    with pytest.raises(NotationError) as caught:
        read_jax(text, CONTEXT)
    assert str(caught.value) == message
    assert caught.value.hint == hint


def test_refuses_names_that_no_mesh_has():
    with pytest.raises(NotationError, match="'X y' is not an axis name at character 4"):
        read_jax("P('X y')", Context())
