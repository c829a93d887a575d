"""The JSON of a collective: its sends, replayed by a reader who knows nothing else, give its results."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shardviz.collectives.verification import VerificationResult
from shardviz.documents.fields import KINDS, plain
from shardviz.documents.rounds import step_document
from shardviz.reports.target_result import ExecutionResult
from shardviz.stepping.collective_run import CollectiveRun, Verdict

RunOf = Callable[..., CollectiveRun]


def document(run: CollectiveRun, verdict: Verdict | None = None) -> dict[str, Any]:
    """As a strict reader gets it."""
    read: dict[str, Any] = json.loads(json.dumps(step_document(run, verdict), allow_nan=False))
    return read


def test_what_the_design_promises(run_of: RunOf) -> None:
    found = document(run_of("all_gather", "i=4", (3, 9, 5, 2)))
    assert found["schema"] == "shardviz/1"
    assert (found["op"], found["algorithm"], found["axes"]) == ("all_gather", "ring", ["i"])
    assert found["parameters"] == {"axis": 0, "tiled": True}
    assert found["mesh"]["axis_sizes"] == [4]
    assert found["before"] == [{"id": i, "coords": [i], "values": [x]} for i, x in enumerate((3, 9, 5, 2))]
    assert len(found["rounds"]) == 3
    assert found["rounds"][0]["sends"][3] == {"src": 3, "dst": 0, "chunk": 3, "bytes": 4, "reduce": False}
    assert found["rounds"][0]["device_bytes"] == 4
    assert {tuple(device["values"]) for device in found["after"]} == {(3, 9, 5, 2)}
    assert found["result"] == {"dtype": "s32", "shape": [16], "spec": "P('i')", "values": [3, 9, 5, 2] * 4}
    assert found["optimum"] == {"rounds": 2, "wire_bytes": 12}
    assert (found["wire_bytes"], found["verified_against"]) == (12, None)
    assert {row["algorithm"] for row in found["algorithms"]} > {"ring", "direct"}


REPLAYED = [("psum", name) for name in ("ring", "halving-doubling", "binomial-tree", "double-binary-tree")]
REPLAYED += [("psum_scatter", name) for name in ("ring", "bidirectional-ring", "recursive-halving")]


@pytest.mark.parametrize(("name", "algorithm"), REPLAYED)
@pytest.mark.parametrize(("mesh", "axes"), [("i=4", ("i",)), ("X=2,Y=4", ("Y",))])
def test_a_replay_of_the_sends_gives_the_sums(
    run_of: RunOf, name: str, algorithm: str, mesh: str, axes: tuple[str, ...]
) -> None:
    """A reader keeps which devices' addends each device has of every chunk; NumPy knows the totals."""
    order = (5, 2, 7, 0, 4, 1, 3, 6) if "," in mesh else None
    devices = 8 if "," in mesh else 4
    run = run_of(name, mesh, range(devices * 12), algorithm, axes=axes, device_order=order, pieces=None)
    found = document(run)
    ids = [device["id"] for device in found["before"]]
    assert sorted(ids) == list(range(devices))
    held = {(i, chunk): {i} for i in ids for chunk in range(found["chunks"])}
    for each in found["rounds"]:
        before = dict(held)
        for send in each["sends"]:
            came = before[send["src"], send["chunk"]]
            slot = send["dst"], send["chunk"]
            assert not (send["reduce"] and held[slot] & came)
            held[slot] = held[slot] | came if send["reduce"] else came
    values = {device["id"]: np.array(device["values"]) for device in found["before"]}
    after = {device["id"]: np.array(device["values"]) for device in found["after"]}
    for group in found["groups"]:
        total = sum(values[i] for i in group)
        for place, i in enumerate(group):
            if name == "psum":
                assert all(held[i, chunk] == set(group) for chunk in range(found["chunks"]))
                assert (after[i] == total).all()
            else:
                part = np.split(total, len(group))[place]
                assert (after[i] == part).all()
                assert sum(held[i, chunk] == set(group) for chunk in range(found["chunks"])) >= 1


def test_numbers_that_json_does_not_have(run_of: RunOf) -> None:
    found = document(run_of("psum", "i=2", [1.5, float("nan"), float("inf"), 4], dtype="float32"))
    assert [device["values"] for device in found["before"]] == [[1.5, "nan"], ["inf", 4.0]]
    assert found["result"]["values"] == ["inf", "nan"]
    assert plain([1 + 2j, complex(0, float("-inf"))]) == [[1.0, 2.0], [0.0, "-inf"]]
    nested = document(run_of("all_gather", "i=2", range(8), shard=(2, 2)))
    assert nested["before"][1]["values"] == [[4, 5], [6, 7]]


def test_without_numbers_there_are_none(run_of: RunOf) -> None:
    found = document(run_of("psum", "i=4", 2**20))
    assert (found["before"], found["after"], found["result"]) == (None, None, None)
    assert found["shard_shape"] == [2**18]
    assert len(found["rounds"]) == 6
    assert len(document(run_of("all_gather", "X=4,Y=4", 16, axes=("Y",)))["rounds"][0]["sends"]) == 16


@pytest.mark.parametrize(
    ("verdict", "target"),
    [
        (Verdict(ExecutionResult("cpu", "ok", program="lax.psum"), VerificationResult("equal", 4)), "cpu"),
        (
            Verdict(ExecutionResult("real", "ok", program="lax.psum"), VerificationResult("rounding", 4, 1)),
            "real",
        ),
        (
            Verdict(ExecutionResult("cpu", "ok", program="lax.psum"), VerificationResult("different", 4, 1)),
            None,
        ),
    ],
)
def test_who_agrees(run_of: RunOf, verdict: Verdict, target: str | None) -> None:
    found = document(run_of("psum", "i=2", (1, 2)), verdict)
    assert found["verified_against"] == target
    assert (found["verdict"], found["program"]) == (verdict.verification.verdict, "lax.psum")


def test_nobody_was_asked(run_of: RunOf) -> None:
    found = document(run_of("psum", "i=2", (1, 2)))
    assert (found["verified_against"], found["verdict"], found["program"]) == (None, None, None)


def test_the_busiest_link_by_device_ids(run_of: RunOf) -> None:
    run = run_of("all_gather", "i=3", (1, 2, 3), device_order=(2, 0, 1))
    link = document(run)["rounds"][0]["busiest_link"]
    assert link == [2, 0]
    switched = run_of("all_gather", "i=3", (1, 2, 3), topology="switch")
    assert "switch" in document(switched)["rounds"][0]["busiest_link"]


def test_a_comparison(run_of: RunOf) -> None:
    run = run_of("psum", "i=5", range(40))
    found = json.loads(json.dumps(KINDS["comparison"].document(run), allow_nan=False))
    rows = {row["algorithm"]: row for row in found["algorithms"]}
    assert rows["ring"]["rounds"] == 8
    assert rows["recursive-doubling"] == {
        "algorithm": "recursive-doubling",
        "reason": "5 devices are not a power of two",
    }
    assert (found["bytes"], found["optimum"]["rounds"], found["topology"]) == (32, 3, "ring of 5")


def test_the_links_of_a_round_carry_what_the_busiest_does(run_of: RunOf) -> None:
    first = document(run_of("all_gather", "i=4", range(4)))["rounds"][0]
    assert max(link["bytes"] for link in first["links"]) == first["busiest_bytes"]
    assert first["busiest_link"] in [link["ends"] for link in first["links"]]
    assert sum(link["bytes"] for link in first["links"]) == sum(send["bytes"] for send in first["sends"])
