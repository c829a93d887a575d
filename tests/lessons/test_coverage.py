"""Every line of the table of what the documents show is seen where the table says."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from shardviz.cli.group import run
from shardviz.forms.command_line import to_arguments
from shardviz.forms.examples import examples
from shardviz.lessons.course import course
from shardviz.lessons.measures import answer_of
from tests.conftest import one_in

TABLE = (Path(__file__).parents[2] / "docs" / "coverage.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in TABLE.splitlines()
    if line.startswith("| ") and line.count(" | ") == 2 and not line.startswith("| code")
]
EXAMPLES = {example.title: example for example in examples()}
LESSONS = {lesson.name: lesson for lesson in course()}
WORDS = re.compile("`([^`]+)`")
PLACE = re.compile(r"(lesson|program|example|command) `([^`]+)`(?: \((`[^`]+`(?:, `[^`]+`)*)\))?")
"""Where something is seen; behind a lesson stand those of its answers that tell it."""
PLACES = [place for row in ROWS for place in PLACE.findall(row[2])]
ERROR = re.compile(r"([\d.]+) (µs|ms) measured, estimated (\d+) % (shorter|longer)")
QUICKLY = {"explain": ["--target", "none"], "step": ["--on", "none"]}


@pytest.fixture(scope="module")
def printed(printed_by):
    """What a lesson's program prints."""
    return cache(lambda name: printed_by({name: LESSONS[name].program})[name])


def asked(kind, name):
    """The words that ask for what a place shows, without compilers unless it names one."""
    if kind == "command":
        found = shlex.split(name)[1:]
    else:
        draft = EXAMPLES[name].draft
        found = to_arguments(draft, "explain" if draft.collective is None else "step")
    # The page of a plan has its totals with -v.
    found += ["-v"] if found[0] == "explain" else []
    if kind == "command" and "--target" in found:
        return found
    return [*found, *QUICKLY.get(found[0], [])]


RUNNING = [row for row in ROWS if "program `" in row[2]]
MARKED_ROWS = [
    *(pytest.param(row, marks=pytest.mark.slow) for row in RUNNING),
    *one_in(5, [row for row in ROWS if row not in RUNNING]),
]


@pytest.mark.parametrize("row", MARKED_ROWS, ids=lambda row: row[0])
def test_it_is_seen_there(row, capsys, request):
    _what, shows, where = row
    places = PLACE.findall(where)
    assert places
    assert PLACE.sub("", where).strip("; ") == ""
    for kind, name, answers in places:
        sought = WORDS.findall(answers if kind == "lesson" else shows)
        assert sought
        if kind == "lesson":
            found = [answer_of(prediction).text for prediction in LESSONS[name].predictions]
        elif kind == "program":
            found = request.getfixturevalue("printed")(name)
        else:
            assert run(asked(kind, name)) == 0
            found = capsys.readouterr().out
        if isinstance(found, str):
            found = re.sub(" +", " ", found)  # as a page shows this table
        missing = [text for text in sought if text not in found]
        assert not missing, f"{missing} in\n{found}"


def test_what_differs_from_a_measured_time_is_said():
    rows = [(found, row[1]) for row in ROWS if (found := ERROR.search(row[0]))]
    assert len(rows) == sum("measured" in row[0] for row in ROWS)
    for found, shows in rows:
        measured, unit, percent, way = found.groups()
        (estimated,) = re.findall(rf"`([\d.]+) {unit}`", shows)
        error = float(estimated) / float(measured) - 1
        assert round(abs(error) * 100) == int(percent)
        assert way == ("longer" if error > 0 else "shorter")


EXERCISES = {1: 5, 2: 6, 3: 10, 4: 7, 5: 4, 6: 2, 7: 7, 9: 2}
"""Questions of the scaling book by chapter, as its repository has them; those of chapter 10 are problems."""


def test_every_exercise_of_the_book_is_shown_or_listed():
    shown = {tuple(map(int, found)) for found in re.findall(r"\| Chapter (\d+), question (\d+):", TABLE)}
    listed = set()
    for chapter, text in re.findall(r"^- chapter (\d+), (.*(?:\n  .*)*)", TABLE, re.M):
        for numbers in re.findall(r"questions? ([\d, and]+):", text):
            listed |= {(int(chapter), int(number)) for number in re.findall(r"\d+", numbers)}
    assert not shown & listed
    assert shown | listed == {
        (chapter, number) for chapter, count in EXERCISES.items() for number in range(1, count + 1)
    }


def test_every_lesson_and_every_example_is_in_the_table():
    assert LESSONS.keys() == {name for kind, name, _ in PLACES if kind == "lesson"}
    assert EXAMPLES.keys() == {name for kind, name, _ in PLACES if kind == "example"}
