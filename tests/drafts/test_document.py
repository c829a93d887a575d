"""A draft as a JSON object, and back."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from shardviz.drafts.document import MAX_TEXT, SCHEMA, UnknownVersion, from_document, to_document
from shardviz.drafts.form import CollectiveFields, ProblemForm
from shardviz.errors import QuestionError

USUAL = ProblemForm()
FULL = ProblemForm(
    mesh="X=2,",
    einsum="[x",
    specs=("{U_Y}", "?"),
    sizes="b=8",
    dtype="",
    axis_types="explicit",
    device_order="row-major",
    targets="none",
    collective=CollectiveFields("ppermute", axis="X", parameters=(("pieces", "4"), ("perm", "(0,1)"))),
)


@pytest.mark.parametrize("draft", [USUAL, FULL])
def test_a_draft_comes_back_as_it_was(draft):
    assert from_document(json.loads(json.dumps(to_document(draft)))) == draft


def test_the_document():
    assert to_document(
        replace(USUAL, collective=CollectiveFields("psum", parameters=(("untiled", "yes"),)))
    ) == {
        "schema": SCHEMA,
        "mesh": "X=2,Y=4",
        "einsum": "bd,df->bf",
        "specs": ["XY", "Y_", "X_"],
        "sizes": "",
        "dtype": "bf16",
        "axis_types": "auto",
        "device_order": "",
        "targets": "shardy,cpu",
        "collective": {
            "op": "psum",
            "axis": "",
            "data": "",
            "shape": "",
            "spec": "",
            "dtype": "",
            "algorithm": "",
            "parameters": {"untiled": "yes"},
        },
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mesh": 3}, "mesh is a text, not a number"),
        ({"specs": "XY"}, "specs are a list, not a text"),
        ({"specs": ["XY", None]}, "specs.1 is a text, not null"),
        ({"meshes": ""}, "the problem has no 'meshes'"),
        ({"collective": []}, "a collective is a JSON object or null, not a list"),
        ({"collective": {"op": "psum"}}, "the collective lacks axis"),
        ({"dtype": "a\nb"}, "dtype has characters that a line cannot show: 'a\\nb'"),
        ({"dtype": "\ud800"}, "dtype has characters that a line cannot show: '\\ud800'"),
        ({"sizes": " " * (MAX_TEXT + 1)}, "sizes has 20,001 characters"),
        ({"specs": ["_" * MAX_TEXT]}, "the problem has 20,034 characters"),
    ],
)
def test_what_no_draft_has_is_refused(change, message):
    with pytest.raises(QuestionError) as caught:
        from_document({**to_document(USUAL), **change})
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ([], "parameters are a JSON object, not a list"),
        ({"q": "1"}, "no collective has the parameter 'q'"),
        ({"source": 1}, "source is a text, not a number"),
    ],
)
def test_parameters_that_no_collective_has_are_refused(parameters, message):
    document = to_document(replace(USUAL, collective=CollectiveFields("psum")))
    document["collective"]["parameters"] = parameters
    with pytest.raises(QuestionError) as caught:
        from_document(document)
    assert caught.value.message == message


def test_a_missing_field_is_named():
    document = to_document(USUAL)
    del document["targets"]
    with pytest.raises(QuestionError, match="the problem lacks targets"):
        from_document(document)


@pytest.mark.parametrize("document", [None, [], "", 3, True])
def test_other_json_is_refused(document):
    with pytest.raises(QuestionError, match="a problem is a JSON object, not"):
        from_document(document)


@pytest.mark.parametrize("schema", [None, "shardviz-draft/2", ["shardviz-draft/1"]])
def test_another_version_is_refused(schema):
    with pytest.raises(UnknownVersion, match="and this shardviz reads shardviz-draft/1"):
        from_document({**to_document(USUAL), "schema": schema})
