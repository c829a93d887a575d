"""Explanations as text on pages of fixed width."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from textwrap import dedent

import pytest

from shardviz.compare import Difference
from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.hlo import Collective
from shardviz.notation.mesh import parse_mesh
from shardviz.notation.spec_string import parse_specs
from shardviz.planner.plan import Plan
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import PlanCost, price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.ranking import rank
from shardviz.render.cost_view import comparison_words
from shardviz.render.palette import PLAIN, TRUECOLOR
from shardviz.render.plan_pages import explain_view, statement_lines
from shardviz.render.plan_view import case_lines, plan_view
from shardviz.render.plans_compared import ranking_view, specs_text
from shardviz.render.programs.target_answers import target_view
from shardviz.reports.target_result import TargetResult
from shardviz.sharding import PartitionSpec

BOTH = ("bd,df->bf", "XY,Y_->X_", "b=8,d=2048,f=8192")
FREE = ("bx,xy->by; by,yz->bz", "X_,_Y; ?,Y_->X_", "b=8,x=16,y=32,z=64")
CHAIN = ("bx,xy->by; by,yz->bz", "X_,_Y; _Y,Y_->X_", "b=8,x=16,y=32,z=64")


def planned(einsum: str, specs: str | None, sizes: str) -> Plan:
    return plan(problem_from_text(einsum, mesh=parse_mesh("X=2,Y=4"), specs=specs, sizes=sizes))


def priced(plan: Plan) -> PlanCost:
    return price(plan, place_mesh(assumed_machine(), plan.problem.mesh))


def explained(question: tuple[str, str | None, str], width: int) -> str:
    lines = explain_view(priced(planned(*question)), width, TRUECOLOR, verbose=True)
    return "\n".join(line.plain for line in lines)


EXPLANATIONS = [
    (
        "both operands split, 40 columns",
        BOTH,
        40,
        """
        bd,df->bf  mesh X=2, Y=4, 8 devices

        A[b_X, d_Y]
             d 2048
              Y0    Y1    Y2    Y3
        b 8 ┌─────┬─────┬─────┬─────┐
         X0 │ α 0 │ β 1 │ γ 2 │ δ 3 │
            ├─────┼─────┼─────┼─────┤
         X1 │ ε 4 │ ζ 5 │ η 6 │ θ 7 │
            └─────┴─────┴─────┴─────┘

        · W[d_Y, f]       →  Out[b_X, f]
                f 8192            f 8192
        d 2048 ┌───────┐     b 8 ┌───────────┐
            Y0 │ ι 0,4 │      X0 │ ν 0,1,2,3 │
               ├───────┤         ├───────────┤
            Y1 │ κ 1,5 │      X1 │ ξ 4,5,6,7 │
               ├───────┤         └───────────┘
            Y2 │ λ 2,6 │
               ├───────┤
            Y3 │ μ 3,7 │
               └───────┘

        A[b_X, d_Y]  bf16
          8×2048 → 4×512 per device  4 KiB
          not replicated
        W[d_Y, f]  bf16
          2048×8192 → 512×8192 per device  8 MiB
          2 copies
        Out[b_X, f]  bf16
          8×8192 → 4×8192 per device  64 KiB
          4 copies

        plan  case 3 over Y
         case 3: both operands shard the
         contracted dimension over the same
         axis; textbook: multiply, then add
         partial sums
         1  einsum bd,df->bf  → Out[b_X, f]{U_Y}
           8.07 MiB of HBM  10.3 µs  HBM
            Every device multiplies its A[4×512]
            by its W[512×8192] locally; each
            covers 1/4 of d, so the result is a
            partial sum over Y.
         2  psum Out over Y  → Out[b_X, f]
           96 KiB sent  4 µs  latency
            Each of the 4 devices along Y holds
            a partial sum of Out: they are
            added, and every device gets the
            total; each sends 2×3/4 of
            65,536 bytes = 98,304.
            a ring of 4 along Y, both
            directions: twice 3/4 of 64 KiB over
            2 × 45 GB/s; at least twice 2 hops
            of 1 µs
         1 collective; each device sends
         98,304 bytes (96 KiB)
         The work is divided as the given arrays
         are, as compilers and textbooks do.
         A plan that divides the work
         differently is 22 % faster (38 % more
         bytes, 50 % more memory): each device
         moves 47 % less through HBM.
            all_gather A X, psum Out Y,
            all_to_all Out X
        """,
    ),
    (
        "a chain, 120 columns",
        CHAIN,
        120,
        """
        bx,xy->by; by,yz->bz  mesh X=2, Y=4, 8 devices

        A[b_X, x]          ·  W1[x, y_Y]                              →  H1[b_X, y_Y]
                                    y 32                                      y 32
             x 16                     Y0      Y1      Y2      Y3               Y0    Y1    Y2    Y3
        b 8 ┌───────────┐     x 16 ┌───────┬───────┬───────┬───────┐     b 8 ┌─────┬─────┬─────┬─────┐
         X0 │ α 0,1,2,3 │          │ γ 0,4 │ δ 1,5 │ ε 2,6 │ ζ 3,7 │      X0 │ η 0 │ θ 1 │ ι 2 │ κ 3 │
            ├───────────┤          └───────┴───────┴───────┴───────┘         ├─────┼─────┼─────┼─────┤
         X1 │ β 4,5,6,7 │                                                 X1 │ λ 4 │ μ 5 │ ν 6 │ ξ 7 │
            └───────────┘                                                    └─────┴─────┴─────┴─────┘

        H1[b, y_Y]                             ·  W2[y_Y, z]      →  Out[b_X, z]
             y 32
               Y0      Y1      Y2      Y3               z 64              z 64
        b 8 ┌───────┬───────┬───────┬───────┐     y 32 ┌───────┐     b 8 ┌───────────┐
            │ ο 0,4 │ π 1,5 │ ρ 2,6 │ σ 3,7 │       Y0 │ τ 0,4 │      X0 │ ψ 0,1,2,3 │
            └───────┴───────┴───────┴───────┘          ├───────┤         ├───────────┤
                                                    Y1 │ υ 1,5 │      X1 │ ω 4,5,6,7 │
                                                       ├───────┤         └───────────┘
                                                    Y2 │ φ 2,6 │
                                                       ├───────┤
                                                    Y3 │ χ 3,7 │
                                                       └───────┘

        A[b_X, x]     bf16  8×16 → 4×16 per device   128 B  4 copies
        W1[x, y_Y]    bf16  16×32 → 16×8 per device  256 B  2 copies
        H1[b_X, y_Y]  bf16  8×32 → 4×8 per device    64 B   not replicated
        H1[b, y_Y]    bf16  8×32 → 8×8 per device    128 B  2 copies
        W2[y_Y, z]    bf16  32×64 → 8×64 per device  1 KiB  2 copies
        Out[b_X, z]   bf16  8×64 → 4×64 per device   512 B  4 copies

        plan  case 1; case 3 over Y
         case 1: no axis shards the contracted dimension; textbook: multiply
         case 3: both operands shard the contracted dimension over the same axis; textbook: multiply, then
         add partial sums
         1  einsum bx,xy->by      → H1[b_X, y_Y]         448 B of HBM  0.546 ns  HBM
            Every device multiplies its A[4×16] by its W1[16×8] and holds its shard of H1: nothing is sent.
         2  all_gather H1 over X  → H1[b, y_Y]              64 B sent      1 µs  latency
            Every device along X needs all of H1's b, as the next einsum is given H1 sharded along y over Y:
            gather its 2 shards of 4 into 8; each device sends 1/2 of 128 bytes = 64.
            two along X: 1/2 of 128 B over 45 GB/s; at least 1 hop of 1 µs
         3  slice H1 over X       → H1[b_X, y_Y]                       in place
            To shard Out along b over X, each device keeps its own 1/2 of b (4); it already holds it, so
            nothing is sent.
         4  einsum by,yz->bz      → Out[b_X, z]{U_Y}  1.56 KiB of HBM   1.95 ns  HBM
            Every device multiplies its H1[4×8] by its W2[8×64] locally; each covers 1/4 of y, so the result
            is a partial sum over Y.
         5  psum Out over Y       → Out[b_X, z]            768 B sent      4 µs  latency
            Each of the 4 devices along Y holds a partial sum of Out: they are added, and every device gets
            the total; each sends 2×3/4 of 512 bytes = 768.
            a ring of 4 along Y, both directions: twice 3/4 of 512 B over 2 × 45 GB/s; at least twice 2 hops
            of 1 µs
         2 collectives; each device sends 832 bytes
        """,
    ),
]


@pytest.mark.parametrize(
    ("question", "width", "expected"), [case[1:] for case in EXPLANATIONS], ids=[c[0] for c in EXPLANATIONS]
)
def test_explanation(question: tuple[str, str | None, str], width: int, expected: str) -> None:
    assert explained(question, width).partition("\n\ntime  ")[0] == dedent(expected).strip("\n")


@pytest.mark.parametrize("width", [40, 120])
@pytest.mark.parametrize("question", [BOTH, CHAIN, ("A[B_X, D] * W[D, F_X] -> Out[B, F_X]", None, "")])
def test_no_line_is_wider_than_the_page(question: tuple[str, str | None, str], width: int) -> None:
    assert max(map(len, explained(question, width).splitlines())) <= width


def test_an_intermediate_keeps_its_glyphs_where_it_is_used() -> None:
    text = explained(FREE, 200)
    assert text.count("│ η 0 │ θ 1 │ ι 2 │ κ 3 │") == 2


REDUCED = Collective("all-reduce", "all-reduce.1", ("Y",), None, (4, 8192), (4, 8192), "bf16", 65536, 98304)
PROMOTED = Collective("all-reduce", "all-reduce.1", ("Y",), None, (4, 8192), (4, 8192), "f32", 131072, 196608)
GATHERED = Collective(
    "all-gather", "ag", (), ((0, 1), (2, 3)), (4, 512), (8, 512), "f32", 16384, 8192, count=None, arrays=2
)
PERMUTED = Collective(
    "collective-permute", "cp", (), tuple((i, i + 1) for i in range(7)), (4,), (4,), "s8", 4, 4, 32
)
RESULT = PartitionSpec((("X",), ()))


def answered(compiled: TargetResult, differences: tuple[Difference, ...], width: int) -> str:
    lines = target_view(compiled, differences, planned(*BOTH).problem, width, TRUECOLOR)
    return "\n".join(line.plain for line in lines)


ANSWERS = [
    (
        "as planned",
        TargetResult("shardy", "ok", (REDUCED,), RESULT, elapsed_s=0.0031),
        (),
        80,
        """
        shardy  answered in 3.1 ms  → Out[b_X, f]
          all-reduce over Y  bf16[4,8192]  65,536 bytes  98,304 sent
          = as planned
        """,
    ),
    (
        "promoted",
        TargetResult("cpu", "ok", (PROMOTED,), RESULT, (REDUCED,), elapsed_s=1.1416),
        (Difference("cpu", "promoted_dtype", "cpu computes bf16 as f32: 131,072 bytes, not 65,536."),),
        80,
        """
        cpu  answered in 1.14 s  → Out[b_X, f]
          all-reduce over Y  f32[4,8192]  131,072 bytes  196,608 sent
          ≠ promoted_dtype: cpu computes bf16 as f32: 131,072 bytes, not 65,536.
        """,
    ),
    (
        "groups, loops and several arrays, 40 columns",
        TargetResult("cpu", "ok", (GATHERED, PERMUTED)),
        (Difference("cpu", "extra_collective", "the plan has no all-gather."),),
        40,
        """
        cpu
          all-gather {0,1} {2,3}
            f32[4,512]→[8,512] and 1 more array
            16,384 bytes  8,192 sent  in a loop
          collective-permute {0→1} {1→2} +5
            s8[4]  4 bytes  4 sent  ×32
          ≠ extra_collective: the plan has no
            all-gather.
        """,
    ),
    (
        "equal ones in a row share a line",
        TargetResult(
            "cpu", "ok", (REDUCED, replace(REDUCED, name="ar.2"), PROMOTED, REDUCED), None, (REDUCED,) * 2
        ),
        (),
        80,
        """
        cpu
          all-reduce over Y  bf16[4,8192]   65,536 bytes   98,304 sent  ×2
          all-reduce over Y  f32[4,8192]   131,072 bytes  196,608 sent
          all-reduce over Y  bf16[4,8192]   65,536 bytes   98,304 sent
          = as planned
        """,
    ),
    (
        "nothing moves",
        TargetResult("cpu", "ok", (), RESULT, ()),
        (),
        80,
        """
        cpu  → Out[b_X, f]
          no collective: nothing is sent
          = as planned
        """,
    ),
    (
        "an error",
        TargetResult("cpu", "error", error="the cpu compiler was killed by SIGKILL", hint="ask again"),
        (),
        80,
        """
        cpu
          ✗ the cpu compiler was killed by SIGKILL
            ask again
        """,
    ),
    (
        "explicit types",
        TargetResult("shardy", "ok", (), typeof=(("A", "bf16[8@X,2048]"), ("Out", "bf16[8@X,8192]{U:Y}"))),
        (),
        80,
        """
        shardy
          no collective: nothing is sent
          A    bf16[8@X,2048]
          Out  bf16[8@X,8192]{U:Y}
          = as planned
        """,
    ),
]


@pytest.mark.parametrize(
    ("compiled", "differences", "width", "expected"),
    [case[1:] for case in ANSWERS],
    ids=[c[0] for c in ANSWERS],
)
def test_answer(
    compiled: TargetResult, differences: tuple[Difference, ...], width: int, expected: str
) -> None:
    assert answered(compiled, differences, width) == dedent(expected).strip("\n")


PROBLEM = problem_from_text("bd,df->bf", mesh=parse_mesh("X=2,Y=4"), sizes="b=8,d=2048,f=8192")


@cache
def candidates():
    return rank(PROBLEM, place_mesh(assumed_machine(), PROBLEM.mesh))


def ranked(width: int, limit: int) -> str:
    return "\n".join(line.plain for line in ranking_view(PROBLEM, candidates(), width, TRUECOLOR, limit))


RANKINGS = [
    (
        "80 columns",
        80,
        2,
        """
        bd,df->bf  mesh X=2, Y=4, 8 devices

              specs               time  bound    sent    memory        work
        1  ★  __,_(XY)->_(XY)  5.17 µs  HBM       0 B  4.05 MiB  33.6 MFLOP
        2     X_,_(XY)->_(XY)  6.17 µs  HBM    16 KiB  4.06 MiB  33.6 MFLOP
        ★ Pareto-optimal: nothing faster uses less memory. Per device, on v5e, assumed.
        79 more shardings: --limit 81 or --json shows all.
        """,
    ),
]


def test_a_ranking_without_times_and_with_what_does_not_fit() -> None:
    def words(sizes: str, dtype: str) -> str:
        problem = problem_from_text("bd,df->bf", mesh=PROBLEM.mesh, sizes=sizes, dtype=dtype)
        found = rank(problem, place_mesh(assumed_machine(), problem.mesh))
        lines = ranking_view(problem, found, 120, PLAIN, 2)
        return " ".join(" ".join(line.plain.split()) for line in lines)

    unknown = words("b=8,d=2048,f=8192", "f64")
    assert "★ Pareto-optimal in bytes sent, memory and compute; not ranked by time." in unknown
    assert "__,_(XY)->_(XY) ≥ 20.7 µs 0 B" in unknown
    large = words("b=1Mi,d=64Ki,f=64Ki", "bf16")
    assert "★" not in large
    assert "40 GiB!" in large
    assert "! does not fit in 15.8 GiB." in large


@pytest.mark.parametrize(
    ("width", "limit", "expected"), [case[1:] for case in RANKINGS], ids=[case[0] for case in RANKINGS]
)
def test_ranking(width: int, limit: int, expected: str) -> None:
    assert ranked(width, limit) == dedent(expected).strip("\n")


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_of_a_ranking_is_wider_than_the_page(width: int) -> None:
    assert max(map(len, ranked(width, 81).splitlines())) <= width


def test_all_of_them_need_no_remark() -> None:
    assert "--limit" not in ranked(120, 81)


def test_specs_can_be_asked_again() -> None:
    for candidate in candidates()[::9]:
        text = specs_text(candidate.plan)
        assert parse_specs(text, PROBLEM.mesh.axis_names)
        again = problem_from_text("bd,df->bf", mesh=PROBLEM.mesh, specs=text, sizes="b=8,d=2048,f=8192")
        assert plan(again).wire_bytes == candidate.plan.wire_bytes


def test_the_statements_of_a_program_say_what_they_sum_over():
    text = "Y = (silu(X[b,d] * W1[d,f]) * (X * W3[d,f])) * W2[f,d]"
    problem = problem_from_text(text, mesh=parse_mesh("X=2"))
    assert [line.plain.strip() for line in statement_lines(problem, 80)] == [
        "Y_1[b,f] = X[b,d] * W1[d,f] (sums over d)",
        "Y_2[b,f] = silu(Y_1[b,f])",
        "Y_3[b,f] = X[b,d] * W3[d,f] (sums over d)",
        "Y_4[b,f] = Y_2[b,f] * Y_3[b,f]",
        "Y[b,d] = Y_4[b,f] * W2[f,d] (sums over f)",
    ]


def test_a_program_is_its_statements_with_their_splits_and_only_moves_have_words():
    mesh = parse_mesh("X=2,Y=4")
    text = "H = X[b_X,d] * W1[d,f_Y]; Y[b_X,d] = X + silu(H) * W2[f_Y,d]"
    problem = problem_from_text(text, mesh=mesh, sizes="b=4096,d=2048,f=8192")
    lines = [line.plain for line in plan_view(plan(problem), 80, PLAIN, verbose=True)]
    assert lines[:9] == [
        "plan  program of 4 statements",
        " 1  H[b_X, f_Y] = X * W1",
        " 2  Y_1[b_X, f_Y] = silu(H)",
        " 3  Y_2[b_X, d]{U_Y} = Y_1 * W2",
        " 4  psum Y_2 over Y → Y_2[b_X, d]  12 MiB sent",
        "    Each of the 4 devices along Y holds a partial sum of Y_2: they are added,",
        "    and every device gets the total; each sends 2×3/4 of 8,388,608 bytes =",
        "    12,582,912.",
        " 5  Y[b_X, d] = X + Y_2",
    ]


@pytest.mark.parametrize("width", [30, 40, 80])
def test_statements_fit_the_page(width):
    text = "Q[b,t,k,r,h] = rms_norm(X[b,t,d], d, g[d]) * W[d,k,r,h]; Y = causal_attention(Q, K[b,s,k,h], K)"
    problem = problem_from_text(text, mesh=parse_mesh("data=2,model=4"), specs="X=data _ _, W=_ model _ _")
    placed = place_mesh(assumed_machine(), problem.mesh)
    lines = explain_view(price(plan(problem), placed), width, PLAIN)
    assert max(line.cell_len for line in lines) <= width


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Y = (X[b,d] * W1[d,f]) * W2[f,d]",
            [" Y_1[b,f] = X[b,d] * W1[d,f] (sums over d)", " Y[b,d] = Y_1[b,f] * W2[f,d] (sums over f)"],
        ),
        (
            "S = Q[b,t,k] * K[b,s,k]; O = S * V[b,s,k]",
            [" S[t,s] = Q[b,t,k] * K[b,s,k] (sums over b, k)", " O[t,b,k]"],
        ),
        ("bd,df->bf; bf,fd->bd", []),
        ("Y = X[b,d] * W[d,f]", []),
    ],
)
def test_products_one_after_the_other_say_what_each_sums(text, said):
    problem = problem_from_text(text, mesh=parse_mesh("X=2"))
    lines = [line.plain for line in statement_lines(problem, 100)]
    assert len(lines) == len(said)
    assert all(line.startswith(begin) for line, begin in zip(lines, said, strict=True))


def test_small_and_large_differences_of_an_alternative_are_not_rounded_away():
    own = price(
        plan(problem_from_text("bd,df->bf", mesh=parse_mesh("X=2"), specs="_X,X_->__", sizes="b=1000")),
        place_mesh(assumed_machine(), parse_mesh("X=2")),
    )

    class Other:
        wire_bytes, flops = own.wire_bytes * 998 // 1000, own.flops // 500
        unknown, serial_seconds, peak_bytes = (), own.serial_seconds, own.peak_bytes

    assert comparison_words(Other, own) == "sends 0.2 % less, computes 99.8 % less, takes as long"


def test_of_a_program_it_is_said_whose_work_is_repeated():
    """Every device makes all of H; the columns of Y are divided over data."""
    text = "H = X[b,d] * W[d,f]; Y = H * V[f,v]; Z = silu(Y)"
    problem = problem_from_text(
        text,
        mesh=parse_mesh("data=4,tensor=2"),
        specs="X=data _,W=data tensor,V=tensor data",
        sizes="b=8192,d=64,f=4096,v=32000",
    )
    words = " ".join(line.plain.strip() for line in case_lines(plan(problem, None, "bytes"), 80))
    assert words == (
        "plan  every device repeats the work of H 8 ×, though the specs divide it over data·tensor; program "
        "of 3 "
        "statements"
    )


def test_a_row_that_is_wider_than_the_page_leaves_the_others_in_their_columns():
    text = "Q[b,t,k,h] = X[b,t,d] * W[d,k,h]; Y = causal_attention(Q, K[b,s,k,h], V[b,s,k,h]); Z = silu(X)"
    problem = problem_from_text(text, mesh=parse_mesh("X=2"), specs="X=X__,K=X___,V=X___")
    found = plan(problem)
    lines = [line.plain for line in plan_view(found, 64, PLAIN, priced(found).steps, verbose=True)]
    first, second, more, third = (line for line in lines if "=" in line or line.endswith("compute"))
    assert first.rindex("HBM") == third.rindex("HBM")
    assert second.endswith("FLOP")
    assert more.startswith("   ")
