"""Two plans side by side: the figures of both costs, on pages of any width, and as JSON."""

import pytest

from shardviz.documents.fields import KINDS
from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.render.palette import PLAIN
from shardviz.render.plans_compared import versus_table, versus_view

MESH = parse_mesh("X=2,Y=4")


def cost(specs, text="bd,df->bf", **options):
    placed = place_mesh(assumed_machine(), MESH)
    return price(plan(problem_from_text(text, mesh=MESH, specs=specs, **options), placed), placed)


def test_a_row_for_each_figure():
    first, second = cost("XY,Y_->X_"), cost("X_,_Y->XY")
    lines = [line.plain.split() for line in versus_table(first, second, 80)]
    assert lines[0] == ["XY,Y_->X_", "X_,_Y->XY"]
    assert ["sent", "12", "MiB", "0", "B"] in lines
    assert ["compute", "21.8", "µs", "21.8", "µs", "same"] in lines
    assert ["collectives", "psum", "none"] in lines
    assert [line for line in lines if line[0] == "memory"] == [
        ["memory", "16.5", "MiB", "12", "MiB", "×", "0.73"]
    ]


def test_figures_that_differ_are_not_once_each_other():
    first, second = cost("XY,Y_->X_"), cost("XY,Y_->X_", sizes="b=1020")
    lines = [line.plain.split() for line in versus_table(first, second, 80)]
    assert [line[-2:] for line in lines if line[0] == "sent"] == [["×", "0.996"]]
    assert [line[-2:] for line in lines if line[0] == "memory"] == [["×", "0.998"]]


def test_times_without_a_peak_are_lower_bounds_that_have_no_ratio():
    first, second = cost("XY,Y_->X_", dtype="f64"), cost("X_,_Y->XY", dtype="f64")
    lines = {line.plain[:13].strip(): line.plain[13:].split() for line in versus_table(first, second, 80)}
    assert lines["no overlap"] == ["≥", "644", "µs", "≥", "61.4", "µs"]
    assert lines["compute"] == ["≥", "84.4", "µs", "≥", "61.4", "µs"]
    assert lines["communication"] == ["559", "µs", "0", "s"]


@pytest.mark.parametrize("width", [40, 80, 130])
def test_every_line_fits_and_the_steps_stand_side_by_side_where_there_is_room(width):
    lines = versus_view(cost("XY,Y_->X_"), cost("XY,_Y->XY"), width, PLAIN)
    assert max(line.cell_len for line in lines) <= width
    plans = [line.plain.count("plan  ") for line in lines]
    assert max(plans) == (2 if width == 130 else 1)
    assert sum(plans) == 2


def test_a_program_has_its_specs_by_name():
    text = "H = X[b,d] * W1[d,f]; Y = silu(H) * W2[f,d]"
    first, second = (cost(specs, text) for specs in ("X=X_,W1=_Y,W2=Y_", "X=X_,W1=Y_"))
    head = versus_table(first, second, 200)[0].plain
    assert "W1=_Y" in head
    assert "W1=Y_" in head


@pytest.mark.parametrize("width", [36, 42])
def test_where_there_is_little_room_the_figures_stay_in_columns(width):
    text = "H = X[b,d] * W1[d,f]; Y = silu(H) * W2[f,d]"
    first, second = (cost(specs, text) for specs in ("X=X_,W1=_Y,W2=Y_", "X=X_,W1=Y_"))
    lines = [line.plain for line in versus_table(first, second, width)]
    assert max(map(len, lines)) <= width
    assert lines[0].startswith("first  X=X_, W1=_Y")
    head = next(number for number, line in enumerate(lines) if line.split() == ["first", "second"])
    figures = lines[head + 1 :]
    assert [line.split()[0] for line in figures][-5:] == [
        "sent",
        "memory",
        "compute",
        "communication",
        "work",
    ]
    assert len({line.rfind(line.split()[-1]) + len(line.split()[-1]) for line in figures}) <= 2


def test_the_document():
    found = KINDS["versus"].document(first=cost("XY,Y_->X_"), second=cost("X_,_Y->XY"))
    assert found["kind"] == "versus"
    assert [found[each]["plan"]["wire_bytes"] for each in ("first", "second")] == [12_582_912, 0]


def test_a_program_of_layers_says_that_the_figures_are_of_one():
    text = "H = X[b,d] * W1[d,f]; Y = silu(H) * W2[f,d]"
    first, second = (cost("X=X_,W1=_Y,W2=Y_", f"{text}{layers}") for layers in (" x 32", ""))
    assert versus_table(first, first, 80)[0].plain.startswith("one of 32 layers")
    assert "layers" not in versus_table(second, second, 80)[0].plain


def test_figures_stay_in_columns_where_the_collectives_do_not_fit():
    text = "H = X[b,d] * W1[d,f]; Y = silu(H) * W2[f,d]"
    first, second = (cost("X=X_,W1=Y_,W2=Y_", text), cost("X=X_,W1=XY,W2=Y_,Y=_X", text))
    lines = [line.plain for line in versus_table(first, second, 60, ("X=2,Y=4", "X=4,Y=2"))]
    assert len({len(line) for line in lines[1:8]}) == 1
    assert lines[8].startswith("collectives")


def test_two_plans_that_change_sides_with_overlap_say_so():
    mesh = parse_mesh("X=2,Y=4")
    placed = place_mesh(assumed_machine(), mesh)
    problems = (
        problem_from_text("bd,df->bf", mesh=mesh, specs=specs, sizes="b=1024,d=2048,f=8192")
        for specs in ("_Y,__->YX", "XY,_Y->XY")
    )
    first, second = (price(plan(problem, placed), placed) for problem in problems)
    assert first.serial_seconds < second.serial_seconds
    assert first.overlapped_seconds > second.overlapped_seconds
    said = " ".join(line.plain for line in versus_table(first, second, 100))
    assert "the first is faster without overlap, the second with overlap" in said
