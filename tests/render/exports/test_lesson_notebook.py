"""A lesson as a notebook: valid, and its cells run in a process of their own, answered and not."""

from __future__ import annotations

import json
import subprocess
import sys

import nbformat
import pytest

from shardviz.forms.command_line import to_command_line
from shardviz.lessons.course import course, find
from shardviz.lessons.measures import answer_of
from shardviz.render.exports.lesson_files import INSTALL, lesson_notebook
from shardviz.render.lesson_view import stage_facts

RUN = """
import ast, json, sys
names, shown = {}, []
for source in json.load(sys.stdin):
    *before, last = ast.parse(source).body
    exec(compile(ast.Module(before, []), "cell", "exec"), names)
    if not isinstance(last, ast.Expr):
        exec(compile(ast.Module([last], []), "cell", "exec"), names)
    elif (value := eval(compile(ast.Expression(last.value), "cell", "eval"), names)) is not None:
        shown.append(value._repr_mimebundle_())
json.dump(shown, sys.stderr)
"""


def cells_of(lesson):
    notebook = nbformat.reads(lesson_notebook(lesson), 4)
    nbformat.validate(notebook)
    install, *cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert install == INSTALL
    return cells


def run(cells):
    done = subprocess.run(
        [sys.executable, "-c", RUN], input=json.dumps(cells), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return [shown["text/plain"] for shown in json.loads(done.stderr)], done.stdout


def test_a_lesson_is_played_in_its_cells():
    lesson = find("reduce-scatter")
    *cells, change = cells_of(lesson)
    answers = [answer_of(prediction).text for prediction in lesson.questions.values()]
    shown, printed = run([*cells, change])
    assert shown[0].startswith("See")
    # Nothing is told before an answer is written: the checks show the question.
    for answer, check, reveal in zip(answers, shown[1::2], shown[2::2], strict=False):
        assert f"It is {answer}" not in check
        assert f"It is {answer}" in reveal
    assert "goal" in printed
    assert "The goal is met." not in printed
    # One answer is right, one wrong, and the last cell has the solution's command.
    wrong, reason = next(iter(stage_facts(lesson.predictions[1]).reasons.items()))
    said = {'answer_1 = ""': f"answer_1 = {answers[0]!r}", 'answer_2 = ""': f"answer_2 = {wrong!r}"}
    solved = f"lesson.change({to_command_line(lesson.solution, 'explain')!r})"
    shown, printed = run([*(said.get(cell, cell) for cell in cells), solved])
    assert f"{answers[0]} is right." in shown[1]
    assert " ".join(reason.split()[:6]) in " ".join(shown[3].split())
    assert printed == "The goal is met.\n"


@pytest.mark.parametrize("lesson", course()[1::9], ids=lambda lesson: lesson.name)
def test_every_lesson_is_a_notebook(lesson):
    cells = cells_of(lesson)
    assert sum("reveal" in cell for cell in cells) == len(lesson.questions)
    assert cells[-1].startswith("lesson.change(")
