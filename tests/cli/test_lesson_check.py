"""`shardviz lesson --check`: the whole course against JAX, and lessons with errors."""

from __future__ import annotations

import json
import re
from contextlib import closing

import pytest

from shardviz.cli.group import run
from shardviz.lessons import verifier
from shardviz.lessons.course import file_names
from shardviz.lessons.verifier import LessonVerifier, Programs
from shardviz.lessons.writing import WritingCheck
from shardviz.sharding import Layout, PartitionSpec

RIGHT = """
title = "Rows"
see = "An array over devices."
screen = "layout"
explain = "Its rows are split."
hints = ["Think of columns."]
[setup]
mesh = "X=2,Y=2"
einsum = "A[I_X, J] * B[J, K] -> C[I_X, K]"
sizes = "I=8,J=4,K=2"
dtype = "f32"
[[predict]]
question = "Which part does device 2 hold?"
ask = "slices A 2"
wrong."0:4, 0:4" = "That is device 0's."
[goal]
text = "Split the columns."
holds = { A = "_X" }
[solution]
einsum = "A[I, J_X] * B[J, K] -> C[I, K]"
"""
PROGRAM = """program = '''
import os
print("devices" in os.environ.get("XLA_FLAGS", ""))
'''
[setup]"""
FAILS = """program = '''
raise ValueError("no devices")
'''
[setup]"""
BROKEN = {
    "missing": ('title = "Rows"\n', "", "title: it is missing"),
    "type": ('"Think of columns."', "3", "hints.1: it is a number, not a text"),
    "unknown": ('dtype = "f32"', 'dtpye = "f32"', "setup.dtpye: there is no such key (did you mean dtype?)"),
    "reach": ('"_X"', '"_Y"', "goal: the solution does not meet it: device 1 holds columns 0:2 of A"),
    "start": ('"_X"', '"X_"', "goal: the start meets it already"),
    "right": ('"0:4, 0:4"', '"[4:8, 0:4]"', "predict.1.wrong.'[4:8, 0:4]': it is right"),
    "figure": (
        "[goal]",
        '[[figures]]\nsays = "split"\nask = "bytes A"\n[goal]',
        "figures.1: 'split' is not a number of bytes",
    ),
    "false": (
        'see = "An array',
        'figures = [{ says = "64 B", ask = "bytes A" }]\nsee = "An array of 64 B',
        "figures.1.says: bytes A is 128 B, not 64 B",
    ),
    "toml": ("[setup]", "[setup", "it is not TOML: "),
    "long": ("Split the columns.", "Split the columns. " * 20, "80x24: goal.text takes more than 2 lines"),
    "fails": ("[setup]", FAILS, "program: it ended with 1: ValueError: no devices"),
}


def lesson(folder, name, old="", new=""):
    path = folder / f"{name}.toml"
    assert old in RIGHT
    path.write_text(RIGHT.replace(old, new, 1) if old else RIGHT, encoding="utf-8")
    return str(path)


@pytest.mark.slow
def test_the_course_has_no_errors(capsys, monkeypatch, printed_by):
    """Its programs run in forks of one process: how each ends in its own is the test below; and what learners
    write is checked in tests/lessons/test_writing.py."""

    def start(programs, program):
        return programs._pool.submit(lambda: "" if printed_by({"": program})[""] else "it prints nothing")

    def checked(lesson, text, **_):
        return WritingCheck((), "" if text == lesson.writing.solution else "it is the starter")

    monkeypatch.setattr(Programs, "start", start)
    monkeypatch.setattr(verifier, "check_written", checked)
    assert run(["lesson", "--check"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[0] for line in lines[:-1]] == [*file_names()]
    assert all(re.search(r"\d of \d answers? checked by JAX", line) for line in lines[:-1])
    assert not any("right" in line for line in lines)
    assert lines[-1] == f"{len(file_names())} lessons, no errors"


def test_each_broken_lesson_is_told_with_file_key_and_reason(tmp_path, capsys):
    files = {name: lesson(tmp_path, name, old, new) for name, (old, new, _) in BROKEN.items()}
    well = lesson(tmp_path, "well", "[setup]", PROGRAM)
    assert run(["lesson", "--check", *files.values(), well, "nowhere.toml"]) == 1
    out, err = capsys.readouterr()
    lines = out.splitlines()
    for name, (_, _, reason) in BROKEN.items():
        assert any(line.startswith(f"{files[name]}: {reason}") for line in lines), out
    assert f"{well}: 1 of 1 answer checked by JAX; goal checked by JAX; its program runs" in lines
    assert any(line.startswith("nowhere.toml: it cannot be read: No such file") for line in lines)
    assert lines[-1] == f"{len(lines) - 2} errors in {len(files) + 1} of {len(files) + 2} lessons"
    assert err == ""


def test_figures_that_nothing_computes_are_counted(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(LessonVerifier, "silence", lambda _: "JAX cannot be imported")
    one = lesson(tmp_path, "one", "An array", "Some 3 µs at 45 GB/s: an array")
    two = lesson(tmp_path, "two", "An array", "Some 3 µs, or 1.5 KiB: an array")
    assert run(["lesson", "--check", one, two]) == 0
    first, second, _ = capsys.readouterr().out.splitlines()
    assert first.endswith("consistent; 1 figure in its text is not checked")
    assert second.endswith("consistent; 2 figures in its text are not checked")


def test_an_answer_that_jax_does_not_give_is_told(tmp_path, capsys, monkeypatch):
    whole = PartitionSpec.replicated(2)
    monkeypatch.setattr(verifier, "Layout", lambda array, mesh: Layout(array.with_spec(whole), mesh))
    assert run(["lesson", "--check", "--json", lesson(tmp_path, "rows")]) == 1
    document = json.loads(capsys.readouterr().out)
    (told,) = document["lessons"]
    reason = "device 0 holds ((0, 8), (0, 4)) of A; JAX gives it ((0, 4), (0, 4))"
    assert told["complaints"][0] == {"key": "predict.1.ask", "reason": reason}
    assert told["asked_of_jax"] == ["predict.1.ask", "goal.holds.A"]


def test_without_jax_the_rest_is_checked(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(LessonVerifier, "silence", lambda _: "JAX cannot be imported")
    path = lesson(tmp_path, "fails", "[setup]", FAILS)
    assert run(["lesson", "--check", path]) == 0
    out, err = capsys.readouterr()
    assert out == f"{path}: 0 of 1 answer checked by JAX, the others are consistent\n1 lesson, no errors\n"
    assert err == "shardviz: note: JAX checked nothing, and no program ran: JAX cannot be imported\n"


ENDS = {
    "print(1)": "",
    "x = 1": "it prints nothing",
    "import sys; sys.exit(3)": "it ended with 3",
    "print(input())": "it ended with 1: EOFError: EOF when reading a line",
    "while True: print(100_000 * 'x')": "it prints more than 16,000,000 bytes",
    "import os; print(os.listdir())": "",
}


def test_how_programs_end():
    with closing(Programs({})) as programs:
        told = {program: programs.start(program) for program in ENDS}
        assert {program: end.result() for program, end in told.items()} == ENDS


def test_a_program_that_does_not_end_is_stopped():
    with closing(Programs({}, 0.2)) as programs:
        assert programs.start("import time; time.sleep(60)").result() == "it was stopped after 0.2 s"
