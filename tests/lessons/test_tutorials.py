"""Every line of the table of what the documents show is seen where the table says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from shardviz.cli.group import run
from shardviz.forms.command_line import to_arguments
from shardviz.forms.examples import examples
from shardviz.lessons.course import course

TABLE = (Path(__file__).parents[2] / "docs" / "tutorials.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in TABLE.splitlines()
    if line.startswith("| ") and not line.startswith("| code")
]
EXAMPLES = {example.title: example for example in examples()}
LESSONS = {lesson.name: lesson for lesson in course()}
KINDS = re.compile(r"(lesson|program|example|command) `([^`]+)`")
PLACES = [place for row in ROWS for place in KINDS.findall(row[2])]
QUICKLY = {"explain": ["--target", "none"], "step": ["--on", "none"]}


@pytest.fixture(scope="module")
def printed(printed_by):
    """What the lessons' programs print, by lesson."""
    return printed_by({name: LESSONS[name].program for kind, name in PLACES if kind == "program"})


def asked(kind, name):
    """The words that ask for what a place shows, without compilers unless it names one."""
    if kind == "command":
        found = shlex.split(name)[1:]
    else:
        draft = EXAMPLES[name].draft
        found = to_arguments(draft, "explain" if draft.collective is None else "step")
    if kind == "command" and "--target" in found:
        return found
    return [*found, *QUICKLY.get(found[0], [])]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_it_is_seen_there(row, capsys, request):
    _what, shows, where = row
    places = KINDS.findall(where)
    assert places
    assert KINDS.sub("", where).strip("; ") == ""
    for kind, name in places:
        if kind == "lesson":
            continue
        if kind == "program":
            answer = request.getfixturevalue("printed")[name]
        else:
            assert run(asked(kind, name)) == 0
            answer = capsys.readouterr().out
        sought = re.findall("`([^`]+)`", shows)
        assert sought
        missing = [text for text in sought if text not in answer]
        assert not missing, f"{missing} in\n{answer}"


def test_every_lesson_and_every_example_is_in_the_table():
    assert LESSONS.keys() == {name for kind, name in PLACES if kind == "lesson"}
    assert EXAMPLES.keys() == {name for kind, name in PLACES if kind == "example"}
