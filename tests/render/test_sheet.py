"""All arrays of a plan on one sheet, of which only what is seen is drawn."""

from __future__ import annotations

from textwrap import dedent

import pytest

from shardviz.notation import parse_mesh
from shardviz.planner import plan
from shardviz.planner.problem import problem_from_text
from shardviz.render.layouts.cells import BlockCells, Cells, DeviceCells, Spot
from shardviz.render.layouts.sheet import Cursor, PointedSheet, Sheet, arrange
from shardviz.render.palette import TRUECOLOR
from shardviz.render.plans.numbering import numbered_parts
from shardviz.render.plans.question_view import question_view

MATMUL = ("bd,df->bf", "X=2,Y=4", "XY,Y_->X_")
MLP = ("bd,df->bf;bf,fd->bd", "X=2,Y=4", "X_,_Y->_X;_X,Y_->X_")
RANK_3 = ("hbd,df->hbf", "X=2,Y=4", "X_Y,Y_->X__")
UNREDUCED = ("bd,df->bf", "X=2,Y=4", "_Y,Y_->__{U_Y}")
POD = ("bd,df->bf", "X=256,Y=256", "XY,Y_->X_")
HUGE = ("bd,df->bf", f"X={2**20},Y={2**20}", "XY,Y_->X_")


def plan_of(question):
    text, mesh, specs = question
    where = parse_mesh(mesh)
    size = {"h": 4, "b": 8, "d": 2048, "f": 8192} if where.size < 100 else dict.fromkeys("bdf", 2**20)
    sizes = ",".join(f"{dim}={size[dim]}" for dim in sorted(set(text) & set(size)))
    return plan(problem_from_text(text, mesh=where, specs=specs, sizes=sizes))


def sheet_of(question, width=84, height=30, kind=BlockCells) -> Sheet:
    parts = numbered_parts(plan_of(question))
    return arrange(
        [[kind(layout, TRUECOLOR, first) for layout, first in part] for part in parts], width, height
    )


def text_of(sheet, width=84, cursor=None):
    lines = (sheet.line(y, 0, width, cursor).plain.rstrip() for y in range(sheet.height))
    return "\n".join(lines)


LOOKS = [
    (
        "all fits: as explain draws it",
        (MATMUL, 84, 30, BlockCells),
        """
        A[b_X, d_Y]                    ·  W[d_Y, f]         →  Out[b_X, f]
             d 2048
              Y0    Y1    Y2    Y3                f 8192            f 8192
        b 8 ┌─────┬─────┬─────┬─────┐     d 2048 ┌───────┐     b 8 ┌───────────┐
         X0 │ α 0 │ β 1 │ γ 2 │ δ 3 │         Y0 │ ι 0,4 │      X0 │ ν 0,1,2,3 │
            ├─────┼─────┼─────┼─────┤            ├───────┤         ├───────────┤
         X1 │ ε 4 │ ζ 5 │ η 6 │ θ 7 │         Y1 │ κ 1,5 │      X1 │ ξ 4,5,6,7 │
            └─────┴─────┴─────┴─────┘            ├───────┤         └───────────┘
                                              Y2 │ λ 2,6 │
                                                 ├───────┤
                                              Y3 │ μ 3,7 │
                                                 └───────┘
        """,
    ),
    (
        "on few columns and lines: below one another, without lines between the rows",
        (MATMUL, 44, 16, BlockCells),
        """
        A[b_X, d_Y]  8×2048
             Y0    Y1    Y2    Y3
           ┌─────┬─────┬─────┬─────┐
        X0 │ α 0 │ β 1 │ γ 2 │ δ 3 │
        X1 │ ε 4 │ ζ 5 │ η 6 │ θ 7 │
           └─────┴─────┴─────┴─────┘
        · W[d_Y, f]   →  Out[b_X, f]
           ┌───────┐        ┌───────────┐
        Y0 │ ι 0,4 │     X0 │ ν 0,1,2,3 │
        Y1 │ κ 1,5 │     X1 │ ξ 4,5,6,7 │
        Y2 │ λ 2,6 │        └───────────┘
        Y3 │ μ 3,7 │
           └───────┘
        """,
    ),
    (
        "by device: the mesh, and in each cell what the device holds",
        (UNREDUCED, 120, 16, DeviceCells),
        """
        A[b, d_Y]                     ·  W[d_Y, f]                     →  Out[b, f]{U_Y}
             Y0    Y1    Y2    Y3             Y0    Y1    Y2    Y3              Y0      Y1      Y2      Y3
           ┌─────┬─────┬─────┬─────┐        ┌─────┬─────┬─────┬─────┐        ┌───────┬───────┬───────┬───────┐
        X0 │ α 0 │ β 1 │ γ 2 │ δ 3 │     X0 │ ε 0 │ ζ 1 │ η 2 │ θ 3 │     X0 │╱ ι 0 ╱│╱ ι 1 ╱│╱ ι 2 ╱│╱ ι 3 ╱│
           ├─────┼─────┼─────┼─────┤        ├─────┼─────┼─────┼─────┤        ├───────┼───────┼───────┼───────┤
        X1 │ α 4 │ β 5 │ γ 6 │ δ 7 │     X1 │ ε 4 │ ζ 5 │ η 6 │ θ 7 │     X1 │╱ ι 4 ╱│╱ ι 5 ╱│╱ ι 6 ╱│╱ ι 7 ╱│
           └─────┴─────┴─────┴─────┘        └─────┴─────┴─────┴─────┘        └───────┴───────┴───────┴───────┘
        """,
    ),
    (
        "rank 3: a grid for each slice",
        (RANK_3, 60, 20, BlockCells),
        """
        A[h_X, b, d_Y]  4×8×2048
        h 0:2 X0                    h 2:4 X1
          Y0    Y1    Y2    Y3        Y0    Y1    Y2    Y3
        ┌─────┬─────┬─────┬─────┐   ┌─────┬─────┬─────┬─────┐
        │ α 0 │ β 1 │ γ 2 │ δ 3 │   │ ε 4 │ ζ 5 │ η 6 │ θ 7 │
        └─────┴─────┴─────┴─────┘   └─────┴─────┴─────┴─────┘
        · W[d_Y, f]   →  Out[h_X, b, f]  4×8×8192
                         h 0:2 X0        h 2:4 X1
           ┌───────┐     ┌───────────┐   ┌───────────┐
        Y0 │ ι 0,4 │     │ ν 0,1,2,3 │   │ ξ 4,5,6,7 │
        Y1 │ κ 1,5 │     └───────────┘   └───────────┘
        Y2 │ λ 2,6 │
        Y3 │ μ 3,7 │
           └───────┘
        """,
    ),
]


@pytest.mark.parametrize(("asked", "expected"), [case[1:] for case in LOOKS], ids=[case[0] for case in LOOKS])
def test_it_looks_like_this(asked, expected):
    question, width, height, kind = asked
    assert text_of(sheet_of(question, width, height, kind), width) == dedent(expected).strip("\n")


def coloured(lines):
    """Glyph and devices of every coloured cell, with its colour."""
    return {
        (line.plain[span.start : span.end].strip(" ╱"), span.style.bgcolor.name)
        for line in lines
        for span in line.spans
        if getattr(span.style, "bgcolor", None)
    }


@pytest.mark.parametrize("question", [MATMUL, MLP, RANK_3, UNREDUCED])
def test_cells_are_those_of_explain(question):
    sheet = sheet_of(question, 200, 60)
    lines = [sheet.line(y, 0, 200) for y in range(sheet.height)]
    cells = coloured(lines)
    assert len(cells) > 4
    assert cells == coloured(question_view(plan_of(question), 200, TRUECOLOR))


@pytest.mark.parametrize("kind", [BlockCells, DeviceCells])
@pytest.mark.parametrize("question", [POD, HUGE], ids=["2^16 devices", "2^40 devices"])
def test_the_cost_does_not_grow_with_the_mesh(question, kind, monkeypatch):
    looked_at = []
    cell = Cells.cell

    def counted(self, spot, room=0):
        looked_at.append(spot)
        return cell(self, spot, room)

    monkeypatch.setattr(Cells, "cell", counted)
    sheet = sheet_of(question, 84, 30, kind)
    assert len(looked_at) <= 5 * 3
    looked_at.clear()
    y = 100
    for line in range(y, y + 30):
        sheet.line(line, 1000, 1084)
    assert 0 < len(looked_at) <= 30 * 8
    before = len(looked_at)
    sheet.line(y + 5, 1000, 1084, sheet.cursor_at(1020, y + 5))
    assert len(looked_at) == before


def test_a_part_of_a_line_is_cut_out_of_it():
    sheet = sheet_of(POD)
    gutter = len("X255 ")
    for y in (0, 1, 2, 40, 300):
        whole = sheet.line(y, 0, sheet.width).plain
        for left, right in ((0, 50), (33, 117), (34, 118), (1000, 1084)):
            part = sheet.line(y, left, right).plain
            assert len(part) <= right - left
            if y:
                # Of the first cell a part may be behind the labels: it is left out.
                seen, there = part[gutter:].strip(), whole[left:right][gutter:].rstrip()
                assert there.endswith(seen)
                assert len(there) - len(seen) < 2 * (sheet.arrays[0].plate.fit.inner + 1)


def test_names_stay_in_sight():
    sheet = sheet_of(POD)
    assert sheet.line(0, 1000, 1084).plain.startswith("A[b_X, d_Y]")
    assert sheet.line(100, 1000, 1084).plain.startswith(" X97 ")
    assert sheet.heading(100, 1000, 1084).plain.split()[:2] == ["Y72", "Y73"]
    assert sheet.heading(0, 0, 84) is None


ALL = [
    (question, kind) for question in (MATMUL, MLP, RANK_3, UNREDUCED) for kind in (BlockCells, DeviceCells)
]


def cursors(sheet):
    for array, each in enumerate(sheet.arrays):
        last = each.plate.cells.last
        for grid in range(last.grid + 1):
            for row in range(last.row + 1):
                for column in range(last.column + 1):
                    yield Cursor(array, Spot(grid, row, column))


@pytest.mark.parametrize(("question", "kind"), ALL)
@pytest.mark.parametrize(("width", "height"), [(84, 30), (40, 9)])
def test_every_cell_is_where_it_is_drawn(question, kind, width, height):
    sheet = sheet_of(question, width, height, kind)
    for cursor in cursors(sheet):
        x, y, cell = sheet.place_of(cursor)
        assert sheet.cursor_at(x, y) == sheet.cursor_at(x + cell - 1, y) == cursor
        line = PointedSheet(sheet, cursor).line(y, 0, sheet.width).plain
        assert (line[x], line[x + cell - 1]) == ("▸", "◂")
        assert line.count("▸") == 1
        labels = sheet.cells(cursor).cell(cursor.spot).labels
        assert any(label in line[x : x + cell] for label in labels)


@pytest.mark.parametrize(("question", "kind"), ALL)
def test_arrows_reach_every_cell_and_come_back(question, kind):
    sheet = sheet_of(question, 60, 20, kind)
    reached, waiting = set(), [Cursor(0, Spot(0, 0, 0))]
    while waiting:
        cursor = waiting.pop()
        if cursor not in reached:
            reached.add(cursor)
            waiting += [sheet.moved(cursor, *way) for way in ((1, 0), (-1, 0), (0, 1), (0, -1))]
    assert reached == set(cursors(sheet))


def test_over_the_edge_is_the_next_array():
    sheet = sheet_of(MATMUL, 120)
    at_edge = Cursor(0, Spot(0, 1, 3))
    assert sheet.moved(at_edge, 1, 0) == Cursor(1, Spot(0, 1, 0))
    assert sheet.moved(Cursor(1, Spot(0, 1, 0)), -1, 0) == at_edge
    assert sheet.moved(at_edge, 0, 1) == at_edge


def marked(sheet, cursor):
    """The cells that are marked as having the cursor's data, by array."""
    found = []
    for other in cursors(sheet):
        x, y, _ = sheet.place_of(other)
        if sheet.line(y, 0, sheet.width, cursor).plain[x] == "›":
            found.append((other.array, sheet.cells(other).position(other.spot)))
    return found


@pytest.mark.parametrize("focused", [True, False])
def test_the_cursor_stands_out_while_keys_move_it(focused):
    canvas = PointedSheet(sheet_of(MATMUL), Cursor(0, Spot(0, 0, 0)), focused=focused)
    line = canvas.line(4, 0, 84)
    (span,) = [span for span in line.spans if line.plain[span.start : span.end] == "▸α 0◂"]
    assert bool(span.style.reverse) == focused
    assert span.style.bold


def test_who_holds_the_same_data_is_marked():
    by_device = sheet_of(MATMUL, kind=DeviceCells)
    assert marked(by_device, Cursor(0, Spot(0, 0, 0))) == []
    assert marked(by_device, Cursor(1, Spot(0, 0, 1))) == [(1, 5)]
    assert marked(by_device, Cursor(2, Spot(0, 1, 0))) == [(2, 5), (2, 6), (2, 7)]


def test_partial_sums_are_not_the_same_data():
    by_device = sheet_of(UNREDUCED, kind=DeviceCells)
    assert marked(by_device, Cursor(2, Spot(0, 0, 1))) == [(2, 5)]


def test_an_intermediate_is_marked_in_both_its_pictures():
    sheet = sheet_of(MLP, 120, 40)
    assert marked(sheet, Cursor(2, Spot(0, 0, 1))) == [(3, 4)]
    assert sheet.repeats(Cursor(2, Spot(0, 0, 1)))
