"""What the instructions for authors say is so."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from shardviz.forms.form import CollectiveFields
from shardviz.lessons.checking import complaints
from shardviz.lessons.lesson import Goal, Lesson, Prediction, Writing
from shardviz.lessons.lesson_file import read_lesson
from shardviz.lessons.measures import MEASURES
from shardviz.render.lesson_view import fits

DOCS = Path(__file__).parents[2] / "docs"
AUTHORS = (DOCS / "writing-lessons.md").read_text(encoding="utf-8")
EXAMPLE = re.search("```toml\n(.*?)```", AUTHORS, re.DOTALL)[1]
ELSEWHERE = {"predictions", "setup", "goal", "solution", "draft", "wrong", "parameters"}
ELSEWHERE |= {"name", "number", "source", "writing", "options", "most_bytes"}
"""Fields that no key of their own has, or one in brackets, or with more behind it."""


def test_the_example_keeps_its_word():
    lesson = read_lesson(EXAMPLE, "my.toml")
    assert complaints(lesson) == []
    assert fits(lesson) == []


def test_the_example_would_be_caught():
    lesson = read_lesson(EXAMPLE.replace('wrong."4"', 'wrong."2"'), "my.toml")
    (complaint,) = complaints(lesson)
    assert complaint.key.startswith("predict.2.wrong")
    assert "it is right" in complaint.reason


def test_the_table_of_measures_is_whole():
    rows = re.findall(
        r"^\| `(\w+)` \| `([^`]+)` \|", (DOCS / "measures.md").read_text(encoding="utf-8"), re.M
    )
    assert rows == [(name, f"{name} {example}".strip()) for name, (*_, example) in MEASURES.items()]


@pytest.mark.parametrize("kind", [Lesson, Prediction, Goal, CollectiveFields, Writing])
def test_every_key_is_named(kind):
    missing = {field.name for field in fields(kind)} - set(re.findall(r"`(\w+)`", AUTHORS)) - ELSEWHERE
    assert not missing
