"""Timelines as JSON: what the schema promises, and the numbers of the timeline itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from shardviz import explain
from shardviz.cli.group import run
from shardviz.documents.fields import KINDS, schema_of
from shardviz.documents.programs import explain_document
from shardviz.reports.program_report import TargetTimes, TimesAnswer
from tests.render.timelines import LAYER

PROGRAM = Path(__file__).parent.parent / "benchmarks" / "programs" / "four_layers.txt"


def test_a_timeline_is_written_whole() -> None:
    document = KINDS["timeline"].document(LAYER)
    Draft202012Validator(schema_of("timeline")).validate(json.loads(json.dumps(document)))
    assert [op["name"] for op in document["ops"]] == [op.name for op in LAYER.ops]
    assert [op["end_seconds"] for op in document["ops"]] == [op.end for op in LAYER.ops]
    assert document["ops"][5]["seconds"] is None
    assert document["communication"][1] == {"lane": "Y", "seconds": 0.048, "exposed_seconds": 0.016}
    assert document["live_memory"]["over_bytes"] == 0
    assert document["live_memory"]["curve"][1] == {"start_seconds": 0.008, "live_bytes": 9 * 2**30}


def test_a_program_has_its_timeline_beside_its_collectives(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["hlo", str(PROGRAM), "--machine", "v4:2x2x1", "--time", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    Draft202012Validator(schema_of("hlo")).validate(document)
    timeline = document["timeline"]
    waited = sum(op["exposed_seconds"] for op in timeline["ops"])
    assert timeline["seconds"] == pytest.approx(timeline["compute_seconds"] + waited, rel=0.02)
    names = {each["name"] for each in document["collectives"]}
    assert names <= {op["name"] for op in timeline["ops"]}


def test_the_compilers_scheduler_is_a_second_teller() -> None:
    cost = explain("bd,df->bf", specs="XY,Y_->X_", target="none").cost
    answer = TimesAnswer("v5e:2x4", TargetTimes(LAYER, LAYER))
    document = json.loads(json.dumps(explain_document(cost, times=[answer])))
    Draft202012Validator(schema_of("explain")).validate(document)
    plan, model, scheduler = document["timelines"]
    assert [each["teller"] for each in (plan, model, scheduler)] == ["plan", "model", "scheduler"]
    assert model["timeline"] == scheduler["timeline"]
