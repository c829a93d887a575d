"""What a selection shows of a program, and in which order."""

from __future__ import annotations

import pytest

from shardviz.errors import QuestionError
from shardviz.reports.entries import Selection
from shardviz.sharding import Mesh
from tests.reports.entries import entry

GATHER = entry(sent=100, argument="params['w_in']", scopes=("mlp",), seconds=2.0, exposed=0.5)
SUM = entry("all-reduce", axes=("model:(2)2",), sent=300, seconds=3.0, exposed=1.0, source="layer.py:3")
LOOP = entry("all-reduce", runs=None, sent=7, seconds=1.0, exposed=1.0, source="a/layer.py:30")
HIDDEN = entry("all-to-all", axes=("data", "model"), sent=900, seconds=9.0, exposed=0.0, source="")
ALL = (GATHER, SUM, LOOP, HIDDEN)


@pytest.mark.parametrize(
    ("selection", "chosen"),
    [
        (Selection(), ALL),
        (Selection(ops=("all-reduce",)), (SUM, LOOP)),
        # A part of an axis is on that axis.
        (Selection(axes=("model",)), (SUM, HIDDEN)),
        (Selection(axes=("data",), ops=("all-to-all",)), (HIDDEN,)),
        # A loop may run often enough.
        (Selection(least_bytes=600), (SUM, LOOP, HIDDEN)),
        (Selection(source="step.py"), (GATHER,)),
        (Selection(source="step.py:1"), ()),
        (Selection(source="tep.py"), ()),
        (Selection(source="layer.py:3"), (SUM,)),
        (Selection(source="layer.py"), (SUM, LOOP)),
        (Selection(source="w_in"), (GATHER,)),
    ],
)
def test_filters(selection, chosen):
    assert selection.chosen(ALL) == chosen


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        # Nobody can tell what the loop costs, so it stands where it is seen.
        ("cost", (LOOP, SUM, GATHER, HIDDEN)),
        ("bytes", (LOOP, HIDDEN, SUM, GATHER)),
        ("order", ALL),
    ],
)
def test_orders(sort, order):
    assert tuple(group.first for group in Selection(sort).groups(ALL)) == order
    assert Selection(sort, top=2).shown(ALL) == tuple(each for each in ALL if each in order[:2])


def test_without_a_machine_bytes_are_the_cost():
    bare = [entry(sent=5), entry("all-reduce", sent=50)]
    assert [group.first for group in Selection().groups(bare)] == bare[::-1]


@pytest.mark.parametrize(
    ("selection", "said", "hint"),
    [
        (
            Selection(ops=("allgather",)),
            "'allgather' is not an operation of this program",
            "did you mean all-gather? this program has all-gather, all-reduce, all-to-all",
        ),
        (
            Selection(axes=("modle",)),
            "'modle' is not a mesh axis of this program",
            "did you mean model? this program has data, model",
        ),
    ],
)
def test_what_the_program_does_not_have(selection, said, hint):
    with pytest.raises(QuestionError) as error:
        selection.check(ALL)
    assert (error.value.message, error.value.hint) == (said, hint)


def test_a_question_whose_answer_is_none_is_fair():
    mesh = Mesh(("data", "model", "expert"), (2, 2, 2))
    Selection(ops=("reduce-scatter",), axes=("expert",)).check(ALL, mesh)
