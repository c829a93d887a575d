"""Specs of arrays by name."""

import pytest

from shardviz.errors import NotationError
from shardviz.notation.spec_string import is_named, parse_named_specs, write_named_specs
from shardviz.sharding import PartitionSpec

RANKS = {"X": 2, "W1": 2, "Y": 3}


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        ("W1=_Y,X=X_", {"W1": ((), ("Y",)), "X": (("X",), ())}),
        ("X=?", {"X": None}),
        ("X = P('X', None), W1=(XY)_", {"X": (("X",), ()), "W1": (("X", "Y"), ())}),
        ("X = P('X')\n, Y=_X_,", {"X": (("X",), ()), "Y": ((), ("X",), ())}),
    ],
)
def test_named_specs(text, specs):
    assert is_named(text)
    found = parse_named_specs(text, {"X": 2, "Y": 4}, RANKS)
    assert {name: spec and spec.dims for name, spec in found.items()} == specs
    assert parse_named_specs(write_named_specs(found), {"X": 2, "Y": 4}, RANKS) == found


def test_long_names_of_axes():
    found = parse_named_specs("X=data _, W1=_ model", {"data": 2, "model": 4}, RANKS)
    assert found == {"X": PartitionSpec((("data",), ())), "W1": PartitionSpec(((), ("model",)))}


@pytest.mark.parametrize("text", ["XY,Y_->X_", "?", "NamedSharding(mesh, P('X'))", "P('X', None)"])
def test_specs_in_order(text):
    assert not is_named(text)


@pytest.mark.parametrize(
    ("text", "problem", "piece"),
    [
        ("X=X_,Z=X_", "no array is called 'Z'", "Z"),
        ("X=X_,X=X_", "X is given a spec twice", "X"),
        ("X=X_X", "used twice", "X"),
        ("X=X__", "the spec 'X__' of X has 3 of 2 entries", "X__"),
        ("X=Q_", "unknown mesh axis 'Q'", "Q"),
        ("X=X_ W1=_Y", "unknown mesh axis 'X_'", "X_"),
        ("X", "expected '='", ""),
    ],
)
def test_errors_show_the_place(text, problem, piece):
    with pytest.raises(NotationError) as caught:
        parse_named_specs(text, {"X": 2, "Y": 4}, RANKS)
    error = caught.value
    assert problem in error.message
    assert error.text[error.start : error.stop] == piece
    assert error.hint
