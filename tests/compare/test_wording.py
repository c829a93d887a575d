"""The words for transfers, one and several."""

from __future__ import annotations

import pytest

from shardviz.compare.comparison import ArrayTransfer, arrays, listed, with_article


def transfer(*names):
    return ArrayTransfer("all-gather", ("X",), 8, 16, 8, "bf16", names)


@pytest.mark.parametrize(
    ("count", "said"),
    [(1, "an all-gather over X (16 bytes)"), (2, "2 times all-gather over X (16 bytes)")],
)
def test_several_have_no_article(count, said):
    assert with_article(listed([transfer("A")] * count)) == said


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("A",), "A"),
        (("A", "B", "C"), "A or B or C"),
        (("A", "B", "C", "D"), "one of 4 arrays"),
        ((), "other data"),
    ],
)
def test_arrays_that_one_may_be_are_named_up_to_three(names, said):
    assert arrays([transfer(*names)]) == said
