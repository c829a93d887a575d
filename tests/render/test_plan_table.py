"""The table of a plan: columns by the width of the page, bars, and the figures of the chosen step in full."""

from __future__ import annotations

from textwrap import dedent

import pytest

from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import PlanCost, price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.problem.training import parse_training
from shardviz.planner.training import with_backward
from shardviz.render.lines import sentence
from shardviz.render.palette import PLAIN, TRUECOLOR
from shardviz.render.plan_view import MARK, PlanTable, update_runs


def priced(einsum: str, specs: str, mesh: str = "X=2,Y=4", sizes: str = "", optimizer: str = "") -> PlanCost:
    problem = problem_from_text(einsum, specs=specs, mesh=parse_mesh(mesh), sizes=sizes)
    if optimizer:
        problem = with_backward(problem, parse_training(True, "none", optimizer, problem.mesh))
    placed = place_mesh(assumed_machine(), problem.mesh)
    return price(plan(problem, placed), placed)


@pytest.fixture(scope="module")
def usual() -> PlanCost:
    return priced("bd,df->bf", "XY,Y_->X_")


@pytest.fixture(scope="module")
def four_steps() -> PlanCost:
    return priced("bd,df->bf", "XY,YX->XY", "X=4,Y=4")


TABLES = [
    (
        80,
        2,
        """
            step                    moves     time
         1  einsum bd,df->bf   4.29 GFLOP  21.8 µs  ███▊
        ▌2  psum Out over Y   12 MiB sent   140 µs  ████████████████████████
        ▌   WHY
            total             12 MiB sent   162 µs
        """,
    ),
    (
        40,
        1,
        """
            step                 time
        ▌1  einsum bd,df->bf  21.8 µs
        ▌   WHY
         2  psum Out over Y    140 µs
            total              162 µs
        """,
    ),
]


@pytest.mark.parametrize(("width", "chosen", "drawn"), TABLES)
def test_it_looks_like_this(usual, width, chosen, drawn):
    lines, _ = PlanTable(usual, width, PLAIN).lines(chosen)
    why = sentence(usual.steps[chosen - 1].step.short_reason, width, 4)
    drawn = drawn.replace("▌   WHY", "\n        ".join(f"▌{line.plain[1:]}" for line in why))
    assert "\n".join(line.plain for line in lines) == dedent(drawn).strip("\n")


@pytest.mark.parametrize("width", [30, 40, 80, 200])
def test_every_line_fits_and_the_place_is_that_of_the_chosen_step(four_steps, width):
    table = PlanTable(four_steps, width, TRUECOLOR)
    for chosen in range(1, len(four_steps.steps) + 1):
        lines, place = table.lines(chosen)
        assert max(line.cell_len for line in lines) <= width
        marked = [number for number, line in enumerate(lines) if line.plain.startswith(MARK)]
        assert marked == [*place]
        assert lines[place.start].plain.startswith(f"{MARK}{chosen}")


def test_a_bar_is_as_long_as_its_step_takes(four_steps):
    lines, _ = PlanTable(four_steps, 100, PLAIN).lines(0)
    bars = [line.plain.count("█") for line in lines]
    longest = max(four_steps.steps, key=lambda each: each.seconds or 0.0)
    number = four_steps.steps.index(longest) + 1
    assert [line.plain.split()[0] for line in lines if line.plain.count("█") == max(bars)] == [f"{number}"]


def test_the_figures_of_the_chosen_step_are_exact(usual):
    table = PlanTable(usual, 100, PLAIN, is_full=True)
    matmul, psum = ("\n".join(line.plain for line in table.lines(number)[0]) for number in (1, 2))
    assert "4,294,967,296 FLOP, 17,301,504 bytes of HBM, 21.802 µs: the longer of FLOPs" in matmul
    assert "8,388,608 bytes, 12,582,912 sent, 139.81 µs: a ring of 4 along Y" in psum
    assert "8,388,608" not in matmul


def test_statements_stand_with_their_values_and_only_the_chosen_one_with_its_reason():
    cost = priced("H = X[b,d] * W1[d,f]; Y = silu(H) * W2[f,d]", "X=X_, W1=_Y, W2=Y_", sizes="b=4096")
    table = PlanTable(cost, 80, PLAIN)
    text = [line.plain for line in table.lines(3)[0]]
    assert any(line.startswith(" 1  H[b_X, f_Y] = X * W1") for line in text)
    assert any("each covers 1/4 of f" in line for line in text)
    assert not any("each covers" in line.plain for line in table.lines(1)[0])


def test_the_update_of_a_parameter_is_one_row_until_one_of_its_steps_is_chosen():
    cost = priced("Y = silu(X[b,d] * W[d,f])", "X=X_, W=_X", "X=4", optimizer="adam")
    number = update_runs(cost.plan)[len(cost.steps)][0]
    table = PlanTable(cost, 100, PLAIN)
    folded, (unfolded, place) = table.lines(1)[0], table.lines(number)
    assert any(f" {number}–{len(cost.steps)} " in line.plain for line in folded)
    assert not any(f" {number}–" in line.plain for line in unfolded)
    assert "mean_new" in unfolded[place[0]].plain
