"""Figures in the sentences of lessons are those of the problem that they are about."""

from __future__ import annotations

import math
from importlib import resources

import pytest

from shardviz.hardware.collective_time import collective_time
from shardviz.hardware.machine_file import named_machine
from shardviz.lessons.checking import complaints, unchecked_figures
from shardviz.lessons.course import file_names, find
from shardviz.lessons.lesson_file import read_lesson
from shardviz.lessons.measures import compute
from shardviz.lessons.measures.subject import resolve_once
from shardviz.planner.search.mesh_ranking import best_meshes
from shardviz.planner.search.question import question_from_text
from shardviz.planner.search.rules import parse_axes


def lesson_with(name, changes):
    """A lesson of the course, some of whose text is another; every text has to be there."""
    (file,) = (file for file in file_names() if file.endswith(f"-{name}.toml"))
    text = (resources.files("shardviz.lessons") / file).read_text(encoding="utf-8")
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return read_lesson(text, file)


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        # The sentence alone, as a slip of its author.
        (
            "rooflines",
            {"takes 164 µs": "takes 146 µs"},
            "seconds is 164 µs, which the lesson's text does not say",
        ),
        # The sentence and what is said of it, as an author who is wrong.
        ("rooflines", {"164 µs": "146 µs"}, "seconds is 164 µs, not 146 µs"),
        # The problem.
        ("experts", {"f=1024": "f=2048"}, "sent is 12 MiB, not 6 MiB"),
    ],
)
def test_a_false_figure_is_told(name, changes, reason):
    found = [each for each in complaints(lesson_with(name, changes)) if each.key.startswith("figures.")]
    assert reason in found[0].reason


def test_a_figure_that_nothing_computes_is_counted():
    lesson = lesson_with("rooflines", {"What takes longest?": "77 ns, 9 kB, 164 µs."})
    assert complaints(lesson) == []
    assert unchecked_figures(lesson) == ["77 ns", "9 kB", *unchecked_figures(find("rooflines"))]


def test_the_best_split_is_that_of_the_search_and_of_the_book():
    """ "How to Scale Your Model", part 5: FSDP alone from 850 tokens a chip on, below √(2·B·N/F) ways."""
    lesson = find("best-split")
    for prediction in lesson.predictions[1:]:
        draft = prediction.draft
        problem = resolve_once(draft).problem
        question = question_from_text(
            draft.einsum,
            named_machine(draft.machine),
            parse_axes("data=fsdp,tensor"),
            sizes=draft.sizes,
            training=problem.training,
        )
        best = best_meshes(question).found[0].mesh.shape
        answer = compute(prediction.ask, draft)
        assert answer.is_same(",".join(f"{axis}={best.get(axis, 1)}" for axis in ("data", "tensor")))
        rows = problem.arguments[0].shape[0]
        ways = 64 if rows / 64 > 850 else (2 * rows * 64 / 32768) ** 0.5
        assert abs(math.log2(best["data"] / ways)) < 1


def test_the_ring_on_a_line_by_the_rule_of_the_book_beside_store_and_forward():
    """Its rule for a message over several hops: the bytes over a link once, and each hop's latency."""
    lesson = find("time-of-a-collective")
    levels = resolve_once(lesson.setup).placed.levels_for("all_gather", ("X",))
    a_round = collective_time("send", 4_500_000, levels, pairs=[(0, 3)]).textbook_seconds
    assert f"{round(3 * a_round * 1e6)} µs" in lesson.explain
    assert "store and forward" in lesson.see
