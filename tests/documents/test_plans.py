"""JSON documents: the keys of the schema, and values that agree with the objects and with one another."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from shardviz.compare import Difference
from shardviz.documents.fields import KINDS
from shardviz.documents.plans import ranking_document
from shardviz.documents.programs import explain_document
from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.hardware.placement import DeviceCoords, Placement
from shardviz.hlo import Collective, CollectiveMatmul, Work
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import PlanCost, price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.problem.training import parse_training
from shardviz.planner.ranking import rank
from shardviz.planner.training import with_backward
from shardviz.reports.target_result import TargetResult
from shardviz.sharding import Layout, Mesh, PartitionSpec, ShardedArray


def priced(einsum: str, specs: str, mesh: str = "X=2,Y=4") -> PlanCost:
    problem = problem_from_text(einsum, mesh=parse_mesh(mesh), specs=specs)
    return price(plan(problem), place_mesh(assumed_machine(), problem.mesh))


def through_json(document: dict[str, Any]) -> dict[str, Any]:
    """The document as a reader of the text gets it: it must survive unchanged."""
    again: dict[str, Any] = json.loads(json.dumps(document))
    assert again == document
    return again


REDUCED = Collective("all-reduce", "ar", ("Y",), ((0, 1),), (4, 8), (4, 8), "bf16", 64, 96, None, "f.py:3")


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        ("H = X[b,d] * W1[d,f]; G = X * W3[d,f]; Y = (silu(H) * G) * W2[f,d]", "X=X_"),
        ("eb,befd->", "XY,__Y_"),
        ("bd,df->bf; bf,fg->bg", "XY,__; ?,Y_"),
        ("ab,bc,cd->ad", "XY,Y_,X_"),
    ],
)
def test_every_array_is_there_once(text: str, specs: str) -> None:
    cost = priced(text, specs)
    arrays = explain_document(cost, (), ())["problem"]["arrays"]
    names = [array["name"] for array in arrays]
    assert len({*names}) == len(names)
    assert {*names} >= {array.name for array in cost.plan.problem.arrays}
    given = {array["name"] for array in arrays if array["role"] == "operand"}
    assert given == {array.name for array in cost.plan.problem.arguments}
    assert [array["role"] for array in arrays].count("result") == 1


def test_explain() -> None:
    compiled = TargetResult("cpu", "ok", (REDUCED,), PartitionSpec((("X",), ())), None, elapsed_s=0.25)
    refused = TargetResult("real", "unavailable", error="there are 1 of 8 devices", hint="ask cpu")
    difference = Difference("cpu", "promoted_dtype", "twice the bytes")
    document = through_json(
        explain_document(priced("bd,df->bf", "XY,Y_->X_"), (compiled, refused), (difference,))
    )
    assert [array["role"] for array in document["problem"]["arrays"]] == ["operand", "operand", "result"]
    assert [array["spec"] for array in document["problem"]["arrays"]] == [
        [["X"], ["Y"]],
        [["Y"], []],
        [["X"], []],
    ]
    assert document["plan"]["result_spec"] == [["X"], []]
    assert document["plan"]["steps"][0]["to_unreduced"] == ["Y"]
    cpu, real = document["targets"]
    assert cpu["collectives"][0]["groups"] == [[0, 1]]
    assert cpu["collectives"][0]["count"] is None
    assert cpu["error"] is None
    assert (real["status"], real["error"], real["result_spec"]) == (
        "unavailable",
        "there are 1 of 8 devices",
        None,
    )
    assert document["differences"] == [
        {"target": "cpu", "code": "promoted_dtype", "message": "twice the bytes"}
    ]


def test_a_chain_names_every_array_once() -> None:
    document = through_json(explain_document(priced("bx,xy->by; by,yz->bz", "X_,_Y; ?,Y_->X_")))
    assert [(array["name"], array["role"], array["spec"]) for array in document["problem"]["arrays"]] == [
        ("A", "operand", [["X"], []]),
        ("W1", "operand", [[], ["Y"]]),
        ("H1", "intermediate", [["X"], ["Y"]]),
        ("W2", "operand", [["Y"], []]),
        ("Out", "result", [["X"], []]),
    ]


def test_the_compilers_choice_is_shown_as_the_plans() -> None:
    document = through_json(explain_document(priced("bd,df->bf", "X_,_Y")))
    result = document["problem"]["arrays"][-1]
    assert result["spec"] == document["plan"]["result_spec"] == [["X"], ["Y"]]
    assert result["asked_spec"] is None


def test_a_constraint_on_an_intermediate_is_told_from_a_choice() -> None:
    document = through_json(explain_document(priced("bx,xy->by; by,yz->bz", "X_,__; XY,__")))
    asked = {array["name"]: array["asked_spec"] for array in document["problem"]["arrays"]}
    assert (asked["H1"], asked["Out"], asked["A"]) == ([["X"], ["Y"]], None, [["X"], []])


def test_slices_are_no_collectives() -> None:
    sliced = replace(REDUCED, op="slice", wire_bytes=0)
    compiled = TargetResult("shardy", "ok", (sliced, REDUCED), None)
    document = through_json(explain_document(priced("bd,df->bf", "XY,Y_->X_"), (compiled,), ()))
    (shardy,) = document["targets"]
    assert [each["op"] for each in shardy["collectives"]] == ["all-reduce"]
    assert [each["op"] for each in shardy["slices"]] == ["slice"]


def test_what_a_schedule_and_a_placement_tell() -> None:
    under_way = replace(
        REDUCED,
        is_async=True,
        overlapped=(Work("fusion.1", "matmul", 52626), Work("copy.2", "copy")),
        algorithm="RotatedPincerEmitter",
        between_slices=True,
    )
    ring = CollectiveMatmul("all-gather", ("Y",), 2, 4, ("cp.1", "cp.2"), ("fusion.1",), 1024, None)
    places = Placement(
        (0, 2, 1, 3), tuple(DeviceCoords((i % 2, i // 2)) for i in range(4)), (2, 2), (True, False)
    )
    compiled = TargetResult(
        "v5e:2x2", "ok", (under_way,), text="HloModule m", collective_matmuls=(ring,), placement=places
    )
    question = priced("bd,df->bf", "XY,Y_->X_", "X=2,Y=2")
    (target,) = through_json(explain_document(question, (compiled,)))["targets"]
    (told,) = target["collectives"]
    assert (told["is_async"], told["algorithm"], told["between_slices"]) == (
        True,
        "RotatedPincerEmitter",
        True,
    )
    assert told["overlapped"] == [
        {"name": "fusion.1", "op": "matmul", "cycles": 52626},
        {"name": "copy.2", "op": "copy", "cycles": None},
    ]
    assert target["collective_matmuls"] == [
        {
            "op": "all-gather",
            "axes": ["Y"],
            "directions": 2,
            "group_size": 4,
            "permutes": ["cp.1", "cp.2"],
            "matmuls": ["fusion.1"],
            "bytes": 1024,
            "wire_bytes": None,
            "source": "",
        }
    ]
    assert (target["placement"]["torus"], target["placement"]["wrap"]) == ([2, 2], [True, False])
    assert target["placement"]["axes"][0] == {"axis": "X", "along": ["y"], "hops": 1, "is_ring": False}
    assert target["placement"]["devices"][1] == {"id": 2, "coords": [1, 0], "core": 0, "slice": 0}
    assert "text" not in target
    (target,) = explain_document(question, (compiled,), with_text=True)["targets"]
    assert target["text"] == "HloModule m"


def test_a_train_step() -> None:
    forward = problem_from_text("Y = X[b,d] * W[d,f] x 3", mesh=parse_mesh("X=2"), specs="X=X_,Y=X_")
    problem = with_backward(forward, parse_training(True, "dots", "adam,over=X", forward.mesh))
    cost = price(plan(problem), place_mesh(assumed_machine(), problem.mesh))
    document = through_json(explain_document(cost, ()))
    training = document["problem"]["training"]
    assert (training["remat"], training["optimizer"]) == ("dots", "adam,over=X")
    assert training["gradients"][0] == {"array": "Y", "gradient": "dY"}
    assert training["updates"][-1] == {"array": "W", "updated": "W_new"}
    phases = [step["phase"] for step in document["plan"]["steps"]]
    assert list(dict.fromkeys(phases)) == list(document["cost"]["seconds_by_phase"])
    assert sum(document["cost"]["seconds_by_phase"].values()) == pytest.approx(
        document["cost"]["serial_seconds"]
    )
    memory = document["cost"]["training_memory"]
    assert memory["parameters_bytes"] == 3 * 2 * 2048 * 8192
    assert memory["optimizer_bytes"] == 6 * memory["parameters_bytes"] // 2
    assert memory["peak_bytes"] > memory["parameters_bytes"] + memory["optimizer_bytes"]


def test_ranking() -> None:
    problem = problem_from_text("bd,df->bf", mesh=parse_mesh("X=2,Y=2"))
    candidates = rank(problem, place_mesh(assumed_machine(), problem.mesh))
    document = through_json(ranking_document(candidates))
    assert len(document["candidates"]) == len(candidates)
    for each in document["candidates"]:
        assert each["wire_bytes"] == sum(step["wire_bytes"] for step in each["plan"]["steps"])
        assert each["memory_bytes_per_device"] >= sum(array["bytes_per_device"] for array in each["arrays"])
    assert any(each["best"] for each in document["candidates"])


@pytest.mark.parametrize(
    ("spec", "unreduced"), [(("X", "Y"), ()), (("Y", ""), ()), (("", ""), ("X",)), (("XY", ""), ())]
)
def test_layout(spec: tuple[str, str], unreduced: tuple[str, ...]) -> None:
    array = ShardedArray("A", ("b", "d"), (8, 16), "f32", PartitionSpec(tuple(map(tuple, spec)), unreduced))
    layout = Layout(array, Mesh(("X", "Y"), (2, 4), (7, 6, 5, 4, 3, 2, 1, 0)))
    document = through_json(KINDS["layout"].document(layout))
    assert document["array"]["unreduced"] == list(unreduced)
    devices = document["devices"]
    assert [device["id"] for device in devices] == [7, 6, 5, 4, 3, 2, 1, 0]
    assert [tuple(device["coords"]) for device in devices] == list(
        map(layout.mesh.coords, range(layout.mesh.size))
    )
    for device in devices:
        shape = [stop - start for start, stop in device["slices"]]
        assert shape == document["array"]["shard_shape"]
    shards = [device["shard"] for device in devices]
    assert all(shards.count(shard) == document["array"]["replicas"] for shard in shards)
    if not unreduced:
        held = {(device["shard"], json.dumps(device["slices"])) for device in devices}
        assert len(held) == len(set(shards))
