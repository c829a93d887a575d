"""The file that keeps a summary: always the same bytes, one line a collective, read back strictly."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import get_args

import pytest
from jsonschema import Draft202012Validator

from shardviz.documents.fields import record, schema_of
from shardviz.documents.plans import PHASES
from shardviz.documents.summaries import load_summary, read_summary, save_summary, summary_text
from shardviz.errors import QuestionError
from shardviz.reports.changes import ChangeKind, ReportSummary, SummaryLine
from shardviz.reports.entries import Phase

GATHER = SummaryLine(
    "all-gather", ("data",), "forward", "params['wé']", "bf16[64]→[256]", 4, 512, 384, 4, True
)
REDUCE = SummaryLine("all-reduce", (), "backward", "", "f32[]", None, 4, 4, 0)
NO_PHASE = replace(GATHER, phase=None)
KEPT = ReportSummary((("data", 4), ("model", 2)), "v5e:2x4", (GATHER, REDUCE), 1.25e-3, 1 << 30)


@pytest.mark.parametrize(
    "kept",
    [
        KEPT,
        replace(KEPT, seconds=None, memory=None),
        ReportSummary((), "", (NO_PHASE, REDUCE)),
    ],
)
def test_a_file_gives_its_summary_back(kept, tmp_path):
    path = tmp_path / "folder" / "step.json"
    save_summary(kept, path)
    assert load_summary(path) == kept
    assert path.read_text(encoding="utf-8") == summary_text(kept)
    assert [each.name for each in path.parent.iterdir()] == ["step.json"]


def test_the_words_of_the_documents_are_those_of_the_reports():
    assert get_args(Phase) == PHASES
    assert [*get_args(ChangeKind)] == record("summaries", "change").schema["properties"]["kind"]["enum"]


def test_it_is_a_document_and_a_line_is_a_collective():
    text = summary_text(KEPT)
    Draft202012Validator(schema_of("summary")).validate(json.loads(text))
    assert sum('"op":' in line for line in text.splitlines()) == 2
    assert text.endswith("  ]\n}\n")
    assert "params['wé']" in text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{", "[", "'step.json': line "),
        ('"kind": "summary"', '"kind": "hlo"', "'step.json', kind: it is 'hlo', not 'summary'"),
        ('"machine"', '"machines"', "'step.json', machines: there is no such key"),
        ('"runs": 4', '"runs": -1', "'step.json', collectives.1.runs: -1 is outside the range 0 to"),
        ('"runs": 4, ', "", "'step.json', collectives.1.runs: it is missing"),
        ('"forward"', '"sideways"', "'step.json', collectives.1.phase: 'sideways' is none of forward,"),
        ('"data": 4', '"data": true', "'step.json', mesh.data: it is a truth value"),
        ("0.00125", "-1", "'step.json', seconds: it is not a number of seconds"),
        ("all-gather", "all\\u001bgather", "'step.json', collectives.1.op: it has characters that a line"),
    ],
)
def test_a_damaged_file_is_told_in_one_sentence(old, new, message):
    text = summary_text(KEPT)
    assert old in text
    with pytest.raises(QuestionError) as raised:
        read_summary(text.replace(old, new, 1), "step.json")
    assert raised.value.message.startswith(message)
    assert "\n" not in raised.value.message
    assert raised.value.hint


@pytest.mark.parametrize("text", ["{", "[]", "3", "{}", "[" * 100_000, '{"a": 1' + "0" * 5000 + "}"])
def test_other_json_is_no_summary(text):
    with pytest.raises(QuestionError):
        read_summary(text, "step.json")


def test_files_that_cannot_be_read_or_written(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_summary(tmp_path / "nothing.json")
    (tmp_path / "latin.json").write_bytes(b"\xe9")
    with pytest.raises(QuestionError, match="is not UTF-8"):
        load_summary(tmp_path / "latin.json")
    with pytest.raises(QuestionError, match="cannot read"):
        load_summary(tmp_path)
    with pytest.raises(QuestionError, match="cannot write"):
        save_summary(KEPT, tmp_path / "latin.json" / "below.json")


def test_what_another_process_is_writing_stays(tmp_path):
    """The workers of a parallel pytest may renew one baseline at the same time."""
    path = tmp_path / "step.json"
    other = tmp_path / "step.json.tmp"
    other.write_text("of another")
    save_summary(KEPT, path)
    assert other.read_text() == "of another"
    assert sorted(tmp_path.iterdir()) == [path, other]
