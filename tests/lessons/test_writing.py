"""What learners write: every starter fails, every solution passes, and wrong texts are told in a sentence.

The check is JAX's and XLA's: programs run on simulated devices, and are compiled.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardviz.errors import QuestionError
from shardviz.lessons import writing
from shardviz.lessons.attempt import begin
from shardviz.lessons.course import course, find
from shardviz.lessons.writing import SavedFile, check_written, predicted, starter_file
from tests.conftest import one_row_in

LESSONS = {lesson.name: lesson for lesson in course() if lesson.writing is not None}
RING = "all-gather-hop-by-hop"
BOOK = "In[b, d] *_d W1[d, f_axis] *_f W2[f_axis, d] -> Out[b, d_axis]"

STARTERS = {
    "four-spellings": "device 0 holds rows 0:8 of In; the goal wants 0:2",
    "column-then-row": "device 0 holds columns 0:4096 of Out; the goal wants 0:512",
    RING: "device 0 ends with 3, 0, 0, 0; the lesson wants 3, 1, 2, 4",
    "mean-of-each-shard": "device 0 ends with 41 of result 1; the lesson wants 50.4492",
    "shift-within-shards": "device 0 ends with 0 at [0, 0] of its part of result 1; the lesson wants 36",
    "detective": ": the program sends 1 all-gather; the lesson allows none",
    "collective-matmul": ": the program sends 1 all-gather; the lesson allows none",
    "your-own-program": ": the program sends 2 all-gathers; the file predicts none",
}
"""A part of what is said of each starter."""

WRONG = [
    (
        "four-spellings",
        "('Y', 'X'))",
        "('X', 'Y'))",
        "device 1 holds columns 1024:2048 of W; the goal wants 2048",
    ),
    ("column-then-row", "d_axis]", "d]", "device 0 holds columns 0:4096 of Out"),
    (RING, "here - hop", "here + hop", "device 0 ends with 3, 4, 2, 1; the lesson wants 3, 1, 2, 4"),
    (
        RING,
        "return out",
        "return jnp.roll(jax.lax.all_gather(x, 'i', tiled=True), 1)",
        "the program sends 1 all-gather",
    ),
    ("mean-of-each-shard", "axis=(1, 3)", "axis=(0, 2)", "the result has the shape (4, 2), (128, 4)"),
    (
        "shift-within-shards",
        "shard, SHIFT, axis=0) - shard",
        "shard, SHIFT, axis=0)",
        "of result 1; the lesson",
    ),
    ("detective", '(h1 @ w2, "X", None)', "(h1 @ w2, None, None)", "all-gather"),
    ("collective-matmul", "(device - 1)", "(device + 1)", "at [0, 0] of its part; the lesson wants"),
    (
        "your-own-program",
        '{"all-to-all": 2}',
        '{"all-to-all": 1}',
        "the program sends 2 all-to-alls; the file pr",
    ),
    ("your-own-program", "PREDICTED =", "GUESSED =", "the file predicts nothing: PREDICTED is missing"),
]
"""A lesson, a part of its solution, what stands there instead, and a part of what is said."""

FAULTS = [
    ("    return out\n", "    while True:\n        pass\n", "program.py:18: it takes longer than 2 s"),
    ("    return out\n", "    return out +\n", "program.py:18: SyntaxError"),
    ("    return out\n", "    __import__('os')._exit(3)\n", "program.py ended the process with status 3"),
    ("    return out\n", "    return oops\n", "program.py:18: NameError: name 'oops' is not defined"),
    ("    return out\n", "    return out[:2]\n", "the result has the shape (2,); the lesson wants (4,)"),
    ("out_specs=P()", 'out_specs=P("i")', "the function program has changed"),
]


def text_with(name, old, new):
    solution = LESSONS[name].writing.solution
    assert solution.count(old) == 1
    return solution.replace(old, new)


def test_eight_lessons_ask():
    assert LESSONS.keys() == STARTERS.keys()


@pytest.mark.parametrize("name", STARTERS)
def test_starters_fail_and_solutions_pass(name, worker):
    lesson = LESSONS[name]
    assert STARTERS[name] in check_written(lesson, starter_file(lesson), worker).wrong
    solved = check_written(lesson, lesson.writing.solution, worker)
    assert (solved.wrong, bool(solved.right)) == ("", True)


@pytest.mark.parametrize(("name", "old", "new", "said"), one_row_in(3, WRONG))
def test_wrong_texts_are_told(name, old, new, said, worker):
    assert said in check_written(LESSONS[name], text_with(name, old, new), worker).wrong


@pytest.mark.parametrize(("old", "new", "said"), FAULTS)
def test_nothing_that_a_file_does_gets_out(old, new, said, worker, monkeypatch, capfd):
    if "while" in new:
        monkeypatch.setattr(writing, "SECONDS", 2.0)
    check = check_written(LESSONS[RING], text_with(RING, old, new), worker)
    assert said in check.wrong.replace("'program.py' ended", "program.py ended")
    assert "\n" not in check.wrong
    assert capfd.readouterr() == ("", "")


def test_a_target_that_is_not_here_is_named(worker):
    lesson = LESSONS[RING]
    elsewhere = replace(lesson, writing=replace(lesson.writing, target="v5e:2x2"))
    check = check_written(elsewhere, lesson.writing.solution, worker)
    assert check.wrong == "" or "libtpu" in check.wrong + check.hint


def test_other_spellings_pass(worker):
    lesson = LESSONS["four-spellings"]
    assert not check_written(lesson, "# mine\nYX, _(YX)\n-> Y_", worker).wrong


def test_a_lesson_without_anything_to_write(worker):
    with pytest.raises(QuestionError, match="nothing is written in the lesson mesh-and-axes"):
        check_written(find("1"), "", worker)


def test_a_prediction_that_is_not_python():
    assert predicted("def (") == {}
    with pytest.raises(QuestionError, match="line 1: PREDICTED has no number for each kind"):
        predicted("PREDICTED = 3")


def test_saves_are_seen_also_of_a_file_that_is_replaced(tmp_path):
    path = tmp_path / "ring.py"
    file = SavedFile(path, "0")
    assert (file.saved(), path.read_text()) == ("0", "0")
    path.write_text("1 more")
    assert (file.saved(), file.saved()) == ("1 more", None)
    (tmp_path / "new").write_text("2")
    (tmp_path / "new").replace(path)
    assert (file.saved(), file.saved()) == ("2", None)
    path.unlink()
    assert file.saved() is None
    path.write_bytes(b"\xff")
    with pytest.raises(QuestionError, match="it is not text in UTF-8"):
        file.saved()


def test_a_program_that_passed_stays():
    passed = begin(LESSONS[RING]).wrote("passes", True)
    assert passed.wrote("fails", False) == passed
    assert passed.wrote("passes too", True).written == "passes too"
