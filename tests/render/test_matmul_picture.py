"""The blocks of a matmul by device and slot."""

from __future__ import annotations

from textwrap import dedent

from shardviz.forms.form import ProblemForm
from shardviz.forms.options import form_from_options
from shardviz.forms.resolve import resolve
from shardviz.render.palette import PLAIN
from shardviz.render.rounds.matmul_picture import MatmulPicture, matmul_lines
from shardviz.stepping.collective_matmul import matmul_of_step
from shardviz.stepping.collective_run import run_on
from shardviz.stepping.plan_step import question_of_step
from shardviz.targets.hardware import placed_for


def matmul(specs=("XY", "__", "X_")):
    resolved = resolve(ProblemForm(specs=specs, mesh="X=2,Y=4"))
    placed = placed_for(None, (), resolved.problem.mesh)
    number = 1 if specs[1] == "__" else 2
    found = matmul_of_step(
        resolved.plan, placed, number, run_on(question_of_step(resolved.plan, number), placed)
    )
    assert found is not None
    return found


def test_what_is_multiplied_when():
    picture = MatmulPicture(matmul(), 0, 2, 60, PLAIN, lens=1)
    text = "\n".join(picture.line(y, 0, 60).plain.rstrip() for y in range(7))
    assert text == dedent("""
        device 1 multiplies A[b, d:δ] × W[d:δ, f], added to Out[b, …

        slot           0           1           ▸2          3
        0  X0 Y0       α×          δ×          γ×          β
        1  X0 Y1◃      β×          α×          δ×          γ
        2  X0 Y2       γ×          β×          α×          δ
        3  X0 Y3       δ×          γ×          β×          α
        """).strip("\n")
    assert [picture.member_at(0, y) for y in (2, 3, 6, 7)] == [None, 0, 3, None]


def test_a_sum_is_made_in_the_order_of_its_sends():
    lines = [line.plain for line in matmul_lines(matmul(("XY", "Y_", "XY")), 100, PLAIN, 1)]
    assert any("device 0 multiplies A[b, d] × W[d, f:γ], its addend of Out[b, f:γ]" in line for line in lines)
    assert any(line.startswith("together ") for line in lines)


def test_on_a_narrow_page_the_times_stand_below_one_another():
    lines = [line.plain for line in matmul_lines(matmul(), 40, PLAIN)]
    totals = [line for line in lines if line.startswith(("together", "without"))]
    assert [line.endswith(" µs") for line in totals] == [True, True]


def test_the_rounds_that_are_left_multiply_nothing():
    picture = MatmulPicture(matmul(("XY", "Y_", "X_")), 0, 5, 80, PLAIN)
    assert picture.line(0, 0, 80).plain.startswith("all blocks are multiplied")


def test_a_prefetched_gather_stands_beside_the_matmul_before_it():
    form = form_from_options(
        "bd,df->bf;bf,fd->bd", specs="X_,X_;,_X->X_", mesh="X=8", sizes="b=65536,d=2048,f=8192"
    )
    resolved = resolve(form)
    placed = placed_for(None, (), resolved.problem.mesh)
    found = matmul_of_step(resolved.plan, placed, 3, run_on(question_of_step(resolved.plan, 3), placed))
    assert found is not None
    lines = [line.plain for line in matmul_lines(found, 100, PLAIN)]
    assert "or fully prefetched while step 2 multiplies: all of it is hidden" in lines
    assert any(line.startswith("with step 2 prefetched 2.79 ms   block by block 2.79 ms") for line in lines)


def test_no_line_is_longer_than_the_page():
    for width in (24, 40, 70):
        assert all(line.cell_len <= width for line in matmul_lines(matmul(), width, PLAIN))
