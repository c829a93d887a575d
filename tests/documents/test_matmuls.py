"""A matmul in blocks as JSON: every block once, in slots whose times follow one another."""

from __future__ import annotations

import json

import pytest

from shardviz.documents.rounds import matmul_document
from tests.stepping.test_collective_matmul import FSDP, GATHER, SUM, found, of


@pytest.mark.parametrize("specs", [GATHER, SUM])
def test_every_block_is_in_one_slot(specs):
    matmul = of(specs)
    document = json.loads(json.dumps(matmul_document(matmul, 1), allow_nan=False))
    for member in range(4):
        every = [block for slot in document["slots"] for block in slot["blocks"][member]]
        assert sorted(every) == [*range(document["chunks"])]
    first, *others = document["slots"]
    assert (first["round"], first["round_end_seconds"]) == (None, None)
    for slot in others:
        # A block that came is multiplied after its round, one that is sent before it.
        made = document["slots"][slot["round"] - 1]["end_seconds"]
        if document["is_gather"]:
            assert slot["start_seconds"] >= slot["round_end_seconds"]
        else:
            assert slot["round_start_seconds"] >= made
    assert (document["is_gather"], document["dim_name"]) == (
        (True, "d") if specs is GATHER else (False, None)
    )
    assert document["einsum"] == "bd,df->bf"
    assert document["prefetch"] is None


def test_what_is_fetched_ahead():
    matmul = found(FSDP, 3)
    assert matmul is not None
    document = matmul_document(matmul, 3)
    assert (document["step"], document["prefetch"]["step"]) == (3, 2)
    assert document["prefetch"]["exposed_seconds"] == 0
    both = document["prefetch"]["matmul_seconds"] + document["matmul_seconds"]
    assert document["prefetch"]["seconds"] == pytest.approx(both)
