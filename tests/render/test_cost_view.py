"""The cost of a plan as lines of fixed width."""

from __future__ import annotations

from textwrap import dedent

import pytest

from shardviz.hardware.clusters import parse_cluster
from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import PlanCost, Threshold, price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.render.cost_view import fit_lines, padding_lines, threshold_words
from shardviz.render.plan_pages import time_lines

BOTH = ("bd,df->bf", "XY,Y_->X_", "")
LLAMA = ("btd,df->btf; btf,fd->btd", "X__,_Y; ?,Y_->X__", "b=64,t=2048,d=8192,f=28672")


def priced(
    question: tuple[str, str, str], mesh: str = "X=2,Y=4", machine: str = "", dtype: str = "bf16"
) -> PlanCost:
    text, specs, sizes = question
    problem = problem_from_text(text, mesh=parse_mesh(mesh), specs=specs, sizes=sizes, dtype=dtype)
    cluster = parse_cluster(machine) if machine else None
    chosen = assumed_machine() if cluster is None else cluster
    return price(plan(problem), place_mesh(chosen, problem.mesh))


def shown(cost: PlanCost, width: int) -> str:
    return "\n".join(line.plain for line in time_lines(cost, width))


CASES = [
    (
        priced(BOTH),
        80,
        """
        time  v5e, assumed, each mesh axis a ring: 197 TFLOP/s in bf16, HBM 820 GB/s
         162 µs without overlap, 140 µs with perfect overlap: compute 21.8 µs, Y 140 µs
         compute-bound from d = 13,136 on (now 2,048); at no size of b, f
         248 FLOPs per HBM byte (v5e is compute-bound above 240), 341 per byte sent; 13
         % of the peak, overlapped 16 %
         memory at most 16.5 MiB, at step 1, of 15.8 GiB
        """,
    ),
    (
        priced(BOTH),
        40,
        """
        time  v5e, assumed, each mesh axis a
          ring: 197 TFLOP/s in bf16, HBM
          820 GB/s
         162 µs without overlap, 140 µs with
         perfect overlap: compute 21.8 µs, Y
         140 µs
         compute-bound from d = 13,136 on (now
         2,048); at no size of b, f
         248 FLOPs per HBM byte (v5e is
         compute-bound above 240), 341 per byte
         sent; 13 % of the peak, overlapped 16 %
         memory at most 16.5 MiB, at step 1, of
         15.8 GiB
        """,
    ),
    (
        priced(BOTH, dtype="f64"),
        100,
        """
        time  v5e, assumed, each mesh axis a ring: no peak in f64 is published, HBM 820 GB/s
         the time of step 1 counts only HBM: the totals are lower bounds
         ≥ 644 µs without overlap, ≥ 559 µs with perfect overlap: compute ≥ 84.4 µs, Y 559 µs
         62 FLOPs per HBM byte, 85 per byte sent
         memory at most 66 MiB, at step 1, of 15.8 GiB
        """,
    ),
    (
        priced(("bd,df->bf", "X_,_Y", "b=16")),
        100,
        """
        time  v5e, assumed, each mesh axis a ring: 197 TFLOP/s in bf16, HBM 820 GB/s
         10.3 µs total: nothing is sent
         compute-bound from b = 628 on (now 16); at no size of d, f
         7.9 FLOPs per HBM byte (v5e is compute-bound above 240); 3 % of the peak
         memory at most 8.06 MiB, at step 1, of 15.8 GiB
        """,
    ),
]


@pytest.mark.parametrize(("cost", "width", "expected"), CASES)
def test_costs(cost: PlanCost, width: int, expected: str) -> None:
    assert shown(cost, width) == dedent(expected).strip("\n")


def test_llama_70b_on_a_slice_of_v5p() -> None:
    cost = priced(LLAMA, "X=16,Y=8", "v5p:4x4x8")
    text = shown(cost, 100)
    assert text.startswith("time  v5p:4x4x8: 459 TFLOP/s in bf16, HBM 2.8 TB/s\n")
    assert cost.bound == "compute"


@pytest.mark.parametrize("width", [30, 40, 80, 120, 200])
def test_no_line_is_wider_than_the_page(width: int) -> None:
    for cost in (priced(BOTH), priced(LLAMA, "X=16,Y=8", "v5p:4x4x8")):
        assert max(map(len, shown(cost, width).splitlines())) <= width


def test_what_does_not_fit_says_so_first() -> None:
    cost = priced(("bd,df->bf", "X_,_Y", "b=512Ki,d=32Ki,f=64Ki"))
    (line,) = fit_lines(cost, 100)
    assert (
        line.plain == "✗ does not fit: 9.25 GiB over the 15.8 GiB of v5e: at step 1 each device holds 25 GiB"
    )
    assert fit_lines(priced(BOTH), 100) == []


@pytest.mark.parametrize(
    ("thresholds", "words"),
    [
        ([], ""),
        ([Threshold("b", 8, 2, 2, None, "")], "compute-bound at every size of b"),
        ([Threshold("b", 8, 2, None, None, "HBM")], "not compute-bound at any size of b"),
        ([Threshold("b", 8, 2, 2, 64, "HBM")], "compute-bound up to b = 64 (now 8)"),
        ([Threshold("b", 8, 2, 16, 64, "HBM")], "compute-bound from b = 16 to 64 (now 8)"),
        (
            [Threshold("b", 1024, 2, 12_240, None, "Y"), Threshold("d", 8, 1, 1, None, "")],
            "compute-bound from b = 12,240 on (now 1,024); at every size of d",
        ),
    ],
)
def test_thresholds_in_words(thresholds: list[Threshold], words: str) -> None:
    assert threshold_words(thresholds) == words


def test_what_is_padded() -> None:
    mesh = parse_mesh("X=2,Y=4")
    placed = place_mesh(assumed_machine(), mesh)

    def lines(sizes: str) -> str:
        found = plan(problem_from_text("bd,df->bf", mesh=mesh, specs="XY,Y_->X_", sizes=sizes), placed)
        padding = price(found, placed).plan.problem.padding
        return " ".join(line.plain.strip() for line in padding_lines(padding, 80))

    assert lines("b=8,d=16,f=8") == ""
    assert lines("b=7,d=16,f=16").startswith("padded: b=7 to 8, divisible by the axes.")
