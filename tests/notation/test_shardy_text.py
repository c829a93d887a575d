import pytest

from shardviz.errors import NotationError
from shardviz.notation.mesh import parse_mesh
from shardviz.notation.reading import Context, Reading
from shardviz.notation.shardy import read_shardy, write_shardy
from shardviz.sharding import PartitionSpec

CONTEXT = Context(parse_mesh("X=2,Y=4,data=8"))


def spec(*dims, unreduced=()):
    return PartitionSpec(tuple(map(tuple, dims)), unreduced)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<@mesh, [{"X"}, {"Y"}]>', spec("X", "Y")),
        ('<@mesh, [{}, {"X", "Y"}]>', spec("", "XY")),
        ('<@mesh, [{"data"}], unreduced={"X", "Y"}>', spec(["data"], unreduced=("X", "Y"))),
        ("<@mesh, []>", spec()),
        ('<@mesh, [], unreduced={"X"}>', spec(unreduced=("X",))),
    ],
)
def test_reads_and_writes(text, expected):
    assert read_shardy(text, CONTEXT) == Reading(expected)
    assert write_shardy(Reading(expected), CONTEXT) == text


@pytest.mark.parametrize(
    "text",
    [
        '#sdy.sharding<@mesh, [{"X"}, {}]>',
        'sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {}]>',
        '#sdy.sharding<mesh<["X"=2, "Y"=4, "data"=8]>, [{"X"}, {}]>',
        '#sdy.sharding<mesh<["X"=2, "Y"=4, "data"=8], device_ids=['
        + ", ".join(map(str, range(64)))
        + ']>, [{"X"}, {}]>',
        '<@"my mesh",[{"X"},{}]>',
    ],
)
def test_reads_other_forms(text):
    assert read_shardy(text, CONTEXT) == Reading(spec("X", ""))


def test_what_steers_propagation_is_noted():
    reading = read_shardy('<@mesh, [{"X", ?}, {?}p1], replicated={"Y"}, unreduced=sum{"data"}>', CONTEXT)
    assert reading.spec == spec("X", "", unreduced=("data",))
    assert reading.notes == (
        "dimension 0 is open: the compiler may split it further",
        "dimension 1 is open: the compiler may split it further",
        "dimension 1 has priority 1 in propagation",
        "the compiler may not split any dimension over Y",
    )


SHAPE = 'write a Shardy sharding as <@mesh, [{"X"}, {}]>'


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "expected '<' in an empty text", SHAPE),
        ('<@mesh, [{"X"}', "expected ',' or ']' at the end of '<@mesh, [{\"X\"}'", SHAPE),
        (
            '<@mesh, [{"Y":(1)3}]>',
            "mesh axis Y=4 has no part Y:(1)3 at character 12 of '<@mesh, [{\"Y\":(1)3}]>'",
            "1 × 3 must divide 4",
        ),
        (
            '<mesh<["X"=4]>, [{"X"}]>',
            'this mesh differs from the given one at character 2 of \'<mesh<["X"=4]>, [{"X"}]>\'',
            "give the mesh that the text has, not X=2,Y=4,data=8",
        ),
        (
            '<@mesh, [{}], unreduced=max{"X"}>',
            "the pending reduction is a max at character 15 of '<@mesh, [{}], unreduced=max{\"X\"}>'",
            "shardviz models partial sums only",
        ),
    ],
)
def test_refuses(text, message, hint):
    with pytest.raises(NotationError) as caught:
        read_shardy(text, CONTEXT)
    assert str(caught.value) == message
    assert caught.value.hint == hint


def test_refuses_another_rank():
    with pytest.raises(NotationError, match="2 dimensions, but the array has 3, at character 1"):
        read_shardy("<@mesh, [{}, {}]>", Context(CONTEXT.mesh, rank=3))
