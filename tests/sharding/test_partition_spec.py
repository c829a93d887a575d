"""Partition specs: what they refuse, and their text, judged by JAX's."""

from __future__ import annotations

from itertools import product

import pytest

from shardviz.errors import QuestionError
from shardviz.sharding import Mesh, PartitionSpec

ENTRIES = ((), ("X",), ("Y",), ("X", "Y"), ("Y", "X"), ("Z", "X"))


@pytest.mark.parametrize(
    ("dims", "unreduced", "text"),
    [
        ((("X",), ("X",)), (), "P('X', 'X')"),
        ((("X", "Y", "X"),), (), "P(('X', 'Y', 'X'))"),
        ((("X",), ()), ("X",), "P('X', None, unreduced={'X'})"),
    ],
)
def test_an_axis_is_used_once(dims, unreduced, text):
    with pytest.raises(QuestionError) as caught:
        PartitionSpec(dims, unreduced)
    assert caught.value.message == f"mesh axis X is used twice in {text}"
    assert caught.value.hint == "an axis can shard only one dimension of an array"


def test_unreduced_axes_have_no_order():
    assert PartitionSpec(((),), ("Y", "X")) == PartitionSpec(((),), ("X", "Y"))


def test_the_order_of_axes_on_a_dimension_matters():
    assert PartitionSpec((("X", "Y"),)) != PartitionSpec((("Y", "X"),))


def test_parts_and_axes():
    spec = PartitionSpec((("X", "Y"), (), ("Z",)))
    assert spec.axes == ("X", "Y", "Z")
    assert spec.parts(Mesh(("X", "Y", "Z"), (2, 4, 3))) == (8, 1, 3)
    assert list(spec) == [("X", "Y"), (), ("Z",)]
    assert PartitionSpec.replicated(2) == PartitionSpec(((), ()))


def test_check_names_the_array_and_its_rank():
    mesh = Mesh(("X",), (2,))
    with pytest.raises(QuestionError, match="has 1 entry but W has 2 dimensions"):
        PartitionSpec((("X",),)).check(mesh, 2, "W")
    for spec in (PartitionSpec((("Q",),)), PartitionSpec(((),), ("Q",))):
        with pytest.raises(QuestionError, match="unknown mesh axis 'Q'"):
            spec.check(mesh, 1)


def test_text_is_jax_s():
    import jax

    judged = 0
    for dims in product(ENTRIES, repeat=2):
        for unreduced in ((), ("W",)):
            axes = [axis for dim in dims for axis in dim]
            if len(set(axes)) < len(axes):
                continue
            entries = [dim if len(dim) > 1 else dim[0] if dim else None for dim in dims]
            theirs = jax.sharding.PartitionSpec(*entries, unreduced=set(unreduced))
            # Older releases print the long name, newer ones also the kind of a reduction.
            text = str(theirs).replace("PartitionSpec(", "P(").replace(", unreduced_kind=sum", "")
            assert str(PartitionSpec(dims, unreduced)) == text
            judged += 1
    assert judged == 30


def test_a_replicated_scalar_has_an_empty_spec():
    assert str(PartitionSpec(())) == "P()"
    assert str(PartitionSpec((), ("Y", "X"))) == "P(unreduced={'X', 'Y'})"
