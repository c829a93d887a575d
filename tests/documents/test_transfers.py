"""The messages of a collective as JSON: a reader who knows nothing else replays them."""

from __future__ import annotations

import json

import pytest

from shardviz.documents.rounds import step_document, transfers_document
from tests.render.conftest import _run_of as run_of


def document(run, number=None):
    return json.loads(json.dumps(transfers_document(run, number), allow_nan=False))


@pytest.mark.parametrize("algorithm", ["ring", "halving-doubling", "direct"])
def test_their_numbers_add_up_to_the_sums(algorithm):
    """A reader adds the numbers that come to those that are there."""
    run = run_of("psum", "X=2,Y=4", range(64), algorithm, axes=("Y",), device_order=(5, 2, 7, 0, 4, 1, 3, 6))
    found, steps = document(run), json.loads(json.dumps(step_document(run, None)))
    chunks = found["chunks"]
    held = {
        (device["id"], chunk): device["values"][chunk * 8 // chunks : (chunk + 1) * 8 // chunks]
        for device in steps["before"]
        for chunk in range(chunks)
    }
    for each in found["rounds"]:
        before = {place: list(values) for place, values in held.items()}
        for transfer in each["transfers"]:
            came = [value for chunk in transfer["chunks"] for value in before[transfer["src"], chunk]]
            assert transfer["values"] == came
            for chunk in transfer["chunks"]:
                there, new = held[transfer["dst"], chunk], before[transfer["src"], chunk]
                both = [a + b for a, b in zip(there, new, strict=True)]
                held[transfer["dst"], chunk] = both if transfer["reduce"] else new
    after = {device["id"]: device["values"] for device in steps["after"]}
    for device, values in after.items():
        assert [value for chunk in range(chunks) for value in held[device, chunk]] == values


def test_messages_are_the_sends_of_each_round_put_together():
    run = run_of("all_gather", "i=8", range(8), "recursive-doubling")
    messages, steps = document(run)["rounds"], step_document(run, None)["rounds"]
    for one, other in zip(messages, steps, strict=True):
        sends = {(send["src"], send["dst"], send["chunk"]) for send in other["sends"]}
        assert {
            (each["src"], each["dst"], chunk) for each in one["transfers"] for chunk in each["chunks"]
        } == sends
        assert sum(each["bytes"] for each in one["transfers"]) == sum(
            each["bytes"] for each in other["sends"]
        )
        assert one["end_seconds"] - one["start_seconds"] == pytest.approx(other["seconds"])


def test_one_round_alone():
    run = run_of("psum", "i=4", 64)
    assert [each["round"] for each in document(run, 2)["rounds"]] == [2]
    assert document(run, 2)["rounds"] == document(run)["rounds"][1:2]
    assert document(run, 0)["rounds"] == []
    assert document(run, 2)["rounds"][0]["transfers"][0]["values"] is None
