"""What takes time: FLOPs and bytes of a plan, and how far messages go."""

from __future__ import annotations

import pytest

from shardviz.drafts.command_line import form_from_table
from shardviz.drafts.resolve import resolve
from shardviz.errors import QuestionError
from shardviz.lessons.measures import compute
from shardviz.lessons.measures.cost import flops_of

BOOK = {"mesh": "X=2,Y=4", "sizes": "B=1024,D=2048,F=8192"}
GATHERED = "A[B_X, D_Y] * W[D, F_Y] -> Out[B_X, F_Y]"


@pytest.mark.parametrize(
    ("einsum", "specs", "split"),
    [
        (GATHERED, None, 8),
        ("A[B_X, D_Y] * W[D_Y, F] -> Out[B_X, F]", None, 8),
        ("A[B_X, D] * W[D, F] -> Out[B_X, F]", None, 2),
        ("BD,DF->BF", "__,__", 1),
    ],
    ids=["gathered first", "summed in parts", "one axis idle", "everyone does all"],
)
def test_flops_are_those_of_one_device(einsum, specs, split):
    options = BOOK | {"einsum": einsum} | ({"specs": specs} if specs else {})
    assert flops_of(resolve(form_from_table(options)).plan) == 2 * 1024 * 2048 * 8192 // split


def test_flops_of_a_chain_add_up():
    chain = {"mesh": "X=4", "einsum": "bd,df->bf; bf,fg->bg", "specs": "X_,__; ?,__"}
    draft = form_from_table(chain | {"sizes": "b=8,d=2,f=3,g=5"})
    assert flops_of(resolve(draft).plan) == 2 * 2 * (2 * 3 + 3 * 5)


@pytest.mark.parametrize(
    ("flops", "bandwidth", "answer"),
    [
        ("197e12", "45e9", "sending"),
        ("197e12", "180e9", "multiplying"),
        (str(2**32), "1572864", "both alike"),
    ],
)
def test_what_takes_longer(flops, bandwidth, answer):
    draft = form_from_table(BOOK | {"einsum": GATHERED})
    found = compute(f"longer {flops} {bandwidth}", draft)
    assert found.text == answer
    assert found.is_same(f" {answer.upper()}")
    with pytest.raises(QuestionError):
        found.read("neither")


@pytest.mark.parametrize("speed", ["0", "-1", "inf", "nan", "fast"])
def test_a_speed_is_a_positive_number(speed):
    draft = form_from_table(BOOK | {"einsum": GATHERED})
    with pytest.raises(QuestionError, match="not a number a second"):
        compute(f"longer {speed} 1", draft)


@pytest.mark.parametrize(
    ("algorithm", "hops"),
    [("ring", "1"), ("bidirectional-ring", "1"), ("recursive-doubling", "4"), ("direct", "4")],
)
def test_how_far_messages_go(algorithm, hops):
    collective = {"op": "all_gather", "data": "0,1,2,3,4,5,6,7", "algorithm": algorithm}
    draft = form_from_table({"mesh": "i=8", "collective": collective})
    assert compute("hops", draft).text == hops
