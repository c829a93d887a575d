import re

import pytest

from shardviz.errors import NotationError
from shardviz.notation import parse_axes
from shardviz.sharding import Mesh

MESH = Mesh(("X", "Y", "data"), (2, 4, 2))


@pytest.mark.parametrize(
    ("text", "axes"),
    [("X", ("X",)), ("X,Y", ("X", "Y")), ("Y, X", ("Y", "X")), (" data Y ", ("data", "Y"))],
)
def test_reads(text, axes):
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
def test_refuses(text, message, hint):
    with pytest.raises(NotationError, match=re.escape(message)) as caught:
        parse_axes(text, MESH)
    assert hint in caught.value.hint
