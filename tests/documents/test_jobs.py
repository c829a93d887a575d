"""A job as JSON: which process and host hold each device, and the groups that cross hosts."""

from __future__ import annotations

import json

from jsonschema import Draft202012Validator

from shardviz import explain
from shardviz.devices.job import Job
from shardviz.devices.question import measure_question
from shardviz.documents.fields import schema_of
from shardviz.documents.machines import measure_document
from shardviz.documents.programs import explain_document
from shardviz.notation.mesh import parse_mesh

JOB = Job(0, 4, ("node-a", "node-a", "node-b", "node-b"), (0, 0, 1, 1, 2, 2, 3, 3))
LONE = Job(0, 1, ("node-a",), (0,) * 8)
COST = explain("bd,df->bf", specs="XY,Y_->X_", target="none").cost
ACROSS = {
    "axes": ["X"],
    "within_process": 0,
    "across_processes": 0,
    "across_hosts": [{"devices": [first, first + 4], "hosts": ["node-a", "node-b"]} for first in range(4)],
}
WITHIN = {"axes": ["Y"], "within_process": 0, "across_processes": 2, "across_hosts": []}


def test_devices_have_their_process_and_host():
    document = json.loads(json.dumps(explain_document(COST, job=JOB)))
    Draft202012Validator(schema_of("explain")).validate(document)
    assert document["job"] == {
        "processes": 4,
        "hosts": ["node-a", "node-a", "node-b", "node-b"],
        "process_of_device": [0, 0, 1, 1, 2, 2, 3, 3],
        "groups": [ACROSS, WITHIN],
    }


def test_the_groups_are_those_that_were_measured():
    question = measure_question("psum", parse_mesh("X=2,Y=4"), ("Y",), "4KiB", "f32", 1)
    document = json.loads(json.dumps(measure_document(question, (), (), None, True, JOB)))
    Draft202012Validator(schema_of("measure")).validate(document)
    assert document["job"]["groups"] == [WITHIN]


def test_one_process_or_another_mesh_has_no_job():
    elsewhere = Job(0, 2, ("node-a", "node-b"), (0, 0, 1, 1))
    for job in (None, LONE, elsewhere):
        assert "job" not in explain_document(COST, job=job)
