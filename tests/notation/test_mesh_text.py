import re

import pytest

from shardviz.errors import NotationError, QuestionError
from shardviz.notation.mesh import parse_axes, parse_mesh
from shardviz.sharding import Mesh

XY = Mesh(("X", "Y"), (2, 4))


@pytest.mark.parametrize(
    ("text", "mesh"),
    [
        ("X=2,Y=4", XY),
        ("X=2, Y=4", XY),
        ("X=2 Y=4", XY),
        ("  X = 2 ,\n Y = 4 ", XY),
        ("Mesh('X': 2, 'Y': 4)", XY),
        ("Mesh('X': 2, 'Y': 4, axis_types=(Auto, Explicit))", XY),
        ("AbstractMesh('X': 2, 'Y': 4)", XY),
        ("axis=4", Mesh(("axis",), (4,))),
        ("data=1024,model=16,x=8", Mesh(("data", "model", "x"), (1024, 16, 8))),
        ("d_1=1", Mesh(("d_1",), (1,))),
    ],
)
def test_reads(text, mesh):
    assert parse_mesh(text) == mesh


def test_reads_what_it_prints():
    assert parse_mesh(str(XY)) == XY


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no mesh axis in an empty text"),
        ("X=0", "mesh axis X has the size 0 at character 3 of 'X=0'"),
        ("X=two", "expected the size of mesh axis X but found 'two' at character 3 of 'X=two'"),
        ("X=2.5", "expected ',' or a space but found '.' at character 4 of 'X=2.5'"),
        ("X=2,X=4", "mesh axis X is named twice, again at character 5 of 'X=2,X=4'"),
        ("X=2,", "expected another axis at the end of 'X=2,'"),
        ("=2", "expected an axis name but found '=' at character 1 of '=2'"),
        ("_X=2", "expected an axis name but found '_X' at character 1 of '_X=2'"),
        ("Mesh('X y': 2)", "'X y' is not an axis name at character 7 of 'Mesh('X y': 2)'"),
        ("Mesh('X: 2)", "the string that begins with ' does not end, at character 6 of 'Mesh('X: 2)'"),
    ],
)
def test_refuses(text, message):
    with pytest.raises(NotationError) as caught:
        parse_mesh(text)
    assert str(caught.value) == message
    assert caught.value.hint


def test_refuses_huge_sizes():
    with pytest.raises(NotationError, match="of 5000 digits is too large at character 3"):
        parse_mesh("X=" + "9" * 5000)
    with pytest.raises(QuestionError, match="a mesh of more than 1,099,511,627,776 devices is too large"):
        parse_mesh("X=999999999,Y=99999999")
    with pytest.raises(NotationError, match="more than 64 mesh axes"):
        parse_mesh(",".join(f"a{i}=1" for i in range(65)))


@pytest.mark.parametrize(
    ("order", "ids"),
    [("7,6,5,4,3,2,1,0", (7, 6, 5, 4, 3, 2, 1, 0)), (" Row-Major ", tuple(range(8))), (None, None)],
)
def test_reads_the_order_of_the_devices(order, ids):
    assert parse_mesh("X=2,Y=4", order).device_order == ids


MESH = Mesh(("X", "Y", "data"), (2, 4, 2))


@pytest.mark.parametrize(
    ("text", "axes"), [("X", ("X",)), ("X,Y", ("X", "Y")), ("Y, X", ("Y", "X")), (" data Y ", ("data", "Y"))]
)
def test_reads_axes(text, axes):
    assert parse_axes(text, MESH) == axes


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("Z", "unknown mesh axis 'Z' at character 1 of 'Z'", "X, Y, data"),
        ("X,x", "unknown mesh axis 'x' at character 3 of 'X,x'", "X, Y, data"),
        ("X,Y,X", "mesh axis 'X' is named twice, again at character 5 of 'X,Y,X'", "once"),
        ("", "there is no mesh axis in an empty text", "X,Y"),
        ("X,", "expected another axis at the end of 'X,'", "X,Y"),
        ("X=2", "expected ',' or a space but found '=' at character 2 of 'X=2'", "X,Y"),
    ],
)
def test_refuses_axes(text, message, hint):
    with pytest.raises(NotationError, match=re.escape(message)) as caught:
        parse_axes(text, MESH)
    assert hint in caught.value.hint
