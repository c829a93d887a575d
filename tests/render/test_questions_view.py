"""The figures beside the fields, by the lines that there are, and the list of questions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardviz.forms.form import ProblemForm
from shardviz.forms.resolve import ResolvedProblem, resolve
from shardviz.render.palette import PLAIN, TRUECOLOR
from shardviz.render.questions_view import figures_beside, question_rows

FIRST = ProblemForm(targets="none")


def asked(**fields: object) -> ResolvedProblem:
    return resolve(replace(FIRST, **fields))


NOW = asked(mesh="X=4,Y=4", specs=("XY", "YX", "XY"))
BEFORE = (asked(mesh="X=4,Y=4"), asked(), asked(dtype="f32"))


def figures(height: int, now: ResolvedProblem = NOW, before: ResolvedProblem | None = BEFORE[0]) -> str:
    lines = figures_beside(now, before, 35, height, PLAIN)
    assert len(lines) <= height
    assert all(line.cell_len <= 35 for line in lines)
    return "\n".join(line.plain.rstrip() for line in lines)


def test_with_few_lines_there_are_the_totals():
    assert figures(3) == ""
    assert figures(4).split("\n") == [
        "─" * 35,
        "  time     77.9 µs  was 85.6 µs",
        "  sent    5.44 MiB  was 6 MiB",
        "  memory  7.25 MiB  was 12.2 MiB",
    ]


def test_with_more_lines_the_memory_has_a_bar():
    assert figures(30).split("\n")[1:] == [
        "  time     77.9 µs  was 85.6 µs",
        "  sent    5.44 MiB  was 6 MiB",
        "  memory  7.25 MiB  was 12.2 MiB",
        "  of HBM  15.8 GiB ▏        < 0.1 %",
    ]


def test_without_a_question_before_nothing_is_compared():
    assert "was" not in figures(30, before=None)


def test_what_does_not_fit_has_a_sign():
    large = asked(sizes="b=64Ki,d=64Ki,f=64Ki", specs=("__", "__", "__"))
    over = next(line for line in figures(10, large, None).split("\n") if "HBM" in line)
    assert over.endswith("✗ 152 %")
    assert "✗" not in figures(10)


@pytest.mark.parametrize("width", [36, 40, 70, 110, 190])
def test_a_row_for_each_question(width):
    questions = (NOW, *BEFORE)
    head, *rows = question_rows(questions, NOW, width, TRUECOLOR)
    assert head.plain.split()[0] == "time"
    assert ("collectives" in head.plain) == (width >= 100)
    assert [row.plain.startswith("▸") for row in rows] == [True, False, False, False]
    assert all(row.cell_len <= width for row in (head, *rows))
    # The einsum is the same in all: only the question that is shown has it.
    assert not any("bd,df" in row.plain for row in rows[1:])


def test_one_question_is_told_whole():
    _, row = question_rows((NOW,), NOW, 80, PLAIN)
    assert row.plain.startswith("▸ bd,df->bf  XY,YX->XY  X=4 Y=4  bf16")
