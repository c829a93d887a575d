"""What pictures, pages and recordings show."""

from __future__ import annotations

import pytest

from shardviz.errors import QuestionError
from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.problem.reading import problem_from_text
from shardviz.render.exports import Subject
from shardviz.render.exports.pictures import svg
from shardviz.render.exports.sections import MAX_ROUNDS, TALL, sections
from shardviz.render.palette import PLAIN

PLAN = """\
bd,df->bf  mesh X=2, Y=4, 8 devices
plan  case 3 over Y
 case 3: both operands shard the contracted dimension over the same axis; textbook: multiply, then
 add partial sums

 1  einsum bd,df->bf  → Out[b_X, f]{U_Y}  160 B of HBM  0.195 ns  HBM
    Every device multiplies its A[4×4] by its W[4×8] locally; each covers 1/4 of d, so the result is
    a partial sum over Y.

A[b_X, d_Y]                    ·  W[d_Y, f]       →  Out[b_X, f]{U_Y}
     d 16
      Y0    Y1    Y2    Y3              f 8               f 8
b 8 ┌─────┬─────┬─────┬─────┐     d 16 ┌───────┐     b 8 ┌─────────────┐
 X0 │ α 0 │ β 1 │ γ 2 │ δ 3 │       Y0 │ ι 0,4 │      X0 │╱ ν 0+1+2+3 ╱│
    ├─────┼─────┼─────┼─────┤          ├───────┤         ├─────────────┤
 X1 │ ε 4 │ ζ 5 │ η 6 │ θ 7 │       Y1 │ κ 1,5 │      X1 │╱ ξ 4+5+6+7 ╱│
    └─────┴─────┴─────┴─────┘          ├───────┤         └─────────────┘
                                    Y2 │ λ 2,6 │
                                       ├───────┤
                                    Y3 │ μ 3,7 │
                                       └───────┘

 2  psum Out over Y  → Out[b_X, f]  96 B sent  4 µs  latency
    Each of the 4 devices along Y holds a partial sum of Out: they are added, and every device gets
    the total; each sends 2×3/4 of 64 bytes = 96.

Out[b_X, f]{U_Y}     →  Out[b_X, f]
     f 8                     f 8
b 8 ┌─────────────┐     b 8 ┌───────────┐
 X0 │╱ ν 0+1+2+3 ╱│      X0 │ ν 0,1,2,3 │
    ├─────────────┤         ├───────────┤
 X1 │╱ ξ 4+5+6+7 ╱│      X1 │ ξ 4,5,6,7 │
    └─────────────┘         └───────────┘

 1 collective; each device sends 96 bytes
"""


def text(parts):
    return "\n\n".join("\n".join(line.plain for line in part.lines) for part in parts)


def test_each_step_of_a_plan_shows_its_arrays_before_and_after():
    mesh, sizes = parse_mesh("X=2,Y=4"), "b=8,d=16,f=8"
    problem = problem_from_text("bd,df->bf", specs="XY,Y_->X_", mesh=mesh, sizes=sizes)
    subject = Subject(plan(problem), "", placed=place_mesh(assumed_machine(), mesh))
    assert text(sections(subject, 100, PLAIN)).startswith(PLAN)


def test_a_picture_tells_each_time_and_each_size_once():
    """Of a problem a page has the answer, or the answer with its reasons."""
    problem = problem_from_text("bd,df->bf", specs="XY,Y_->X_", mesh=parse_mesh("X=2,Y=4"))
    placed = place_mesh(assumed_machine(), problem.mesh)
    *_, short = sections(Subject(problem, "", placed=placed), 100, PLAIN)
    *steps, total = sections(Subject(plan(problem), "", placed=placed), 100, PLAIN)
    assert short.heading == total.heading == "Time and memory"
    for lines in (short.lines, short.more, [line for part in (*steps, total) for line in part.lines]):
        words = "\n".join(line.plain for line in lines)
        for figure in ("4.29 GFLOP", "162 µs", "12 MiB sent", "adds partial sums", "memory at most 16.5 MiB"):
            assert words.count(figure) == (figure != "adds partial sums" or lines is short.lines)
    picture = svg(Subject(problem, "", placed=placed))
    assert picture.count("162&#160;µs") == 1
    assert "at&#160;peak,&#160;each&#160;axis&#160;a&#160;ring" in picture


@pytest.mark.parametrize("width", [40, 100])
def test_no_line_is_wider_than_the_page(subject, width):
    parts = sections(subject, width, PLAIN)
    assert all(part.heading and part.lines for part in parts)
    assert max(line.cell_len for part in parts for line in part.lines) <= width


def test_a_section_for_every_round(ring):
    names = [part.heading for part in sections(ring, 80, PLAIN)]
    assert names == ["Collective", "Before any round", *(f"Round {number} of 6" for number in range(1, 7))]


@pytest.mark.parametrize("width", [40, 120])
@pytest.mark.parametrize("mesh", ["i=1", "i=16", "X=3,Y=5"])
def test_every_round_fits_the_page(run_of, mesh, width):
    size = {"i=1": 1, "i=16": 16, "X=3,Y=5": 15}[mesh]
    run = run_of("all_gather", mesh, range(size), "torus" if "," in mesh else "ring")
    head, *rounds = sections(Subject(run, ""), width, PLAIN)
    assert len(rounds) == run.schedule.rounds + 1
    assert max(len(part.lines) for part in rounds) <= TALL
    assert max(line.cell_len for part in (head, *rounds) for line in part.lines) <= width


def test_more_rounds_than_anybody_looks_at_are_refused_at_once(run_of):
    run = run_of("psum", "i=65536", 65536)
    with pytest.raises(QuestionError, match=f"ring has 131,070 rounds; a picture shows up to {MAX_ROUNDS}"):
        sections(Subject(run, ""), 100, PLAIN)


def test_a_program_has_no_picture():
    with pytest.raises(QuestionError, match="has no picture"):
        sections(Subject("print()", ""), 100, PLAIN)
