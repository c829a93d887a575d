"""Every line of the table of what the documents show is seen where the table says."""

from __future__ import annotations

import re
import shlex
from importlib.resources import files

import pytest

from shardviz.cli.entry import run
from shardviz.drafts.examples.catalogue import examples
from shardviz.drafts.words import words
from shardviz.lessons.course import course

TABLE = (files("shardviz.lessons") / "COVERAGE.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in TABLE.splitlines()
    if line.startswith("| ") and not line.startswith("| code")
]
EXAMPLES = {example.title: example for example in examples()}
KINDS = re.compile(r"(lesson|example|command) `([^`]+)`")
QUICKLY = {"explain": ["--target", "none"], "step": ["--on", "none"]}


def asked(kind, name):
    """The words that ask for what a place shows."""
    if kind == "lesson":
        return ["lesson", name, "--json"]
    if kind == "command":
        return shlex.split(name)[1:]
    draft = EXAMPLES[name].draft
    return words(draft, "step" if draft.collective is not None else "explain")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_it_is_seen_there(row, capsys):
    _what, shows, where = row
    places = KINDS.findall(where)
    assert places
    assert KINDS.sub("", where).strip("; ") == ""
    for kind, name in places:
        words = asked(kind, name)
        if "--target" not in words or kind == "example":
            words += QUICKLY.get(words[0], [])
        assert run(words) == 0
        answer = capsys.readouterr().out
        if kind != "lesson":
            missing = [text for text in re.findall("`([^`]+)`", shows) if text not in answer]
            assert not missing, f"{missing} in\n{answer}"


def test_every_lesson_and_every_example_is_in_the_table():
    named = {name for row in ROWS for kind, name in KINDS.findall(row[2]) if kind != "command"}
    assert {lesson.name for lesson in course()} | EXAMPLES.keys() == named
