"""The JSON of a whole model agrees with its schema, and with what it is made of."""

from __future__ import annotations

import jsonschema
import pytest

import shardviz
from shardviz.documents.fields import schema_of


@pytest.mark.parametrize(
    ("source", "options"),
    [
        (
            "mixtral-8x7b",
            {"rules": "expert", "mesh": "expert=8", "backward": False, "batch": 8, "sequence": 256},
        ),
        (
            "gemma-3-1b",
            {"rules": "data", "mesh": "data=2", "backward": False, "batch": 2, "sequence": 64},
        ),
        ({"w": [1]}, None),
    ],
)
def test_a_document_is_valid(source, options):
    if options is None:
        from types import SimpleNamespace

        leaf = SimpleNamespace(shape=(50, 4), dtype="float32")
        source, options = {"w": leaf}, {"rules": [("w", "X_"), ("v", "X_")], "mesh": "X=4"}
    report = shardviz.model(source, **options)
    document = report.document()
    jsonschema.validate(document, schema_of("model"))
    assert (
        sum(each["count"] * each["bytes_per_device"] for each in document["parameters"])
        == (document["device_memory"]["parameters_bytes"])
    )
    assert (document["step"] is None) == (report.step is None)


def test_what_does_not_divide_and_what_matches_nothing_is_there():
    rules = [("wte", "X_"), ("nothing", "X_")]
    document = shardviz.model("gpt2", rules=rules, mesh="X=4", backward=False).document()
    table = document["parameters"][0]
    assert table["uneven"] == [{"dim": 0, "elements": 50257, "parts": 4, "padded_elements": 50260}]
    assert document["unused_rules"] == [{"rule": "nothing", "place": None}]
    assert not document["parameters"][1]["is_matched"]
