"""The arrays of a plan on one canvas: as a window shows some of it, and as a page shows all."""

from __future__ import annotations

from textwrap import dedent

import pytest
from hypothesis import given, strategies as st
from rich.cells import cell_len

from shardviz.notation.mesh import parse_mesh
from shardviz.notation.notations import read_sharding
from shardviz.notation.reading import Context
from shardviz.planner.planner import plan
from shardviz.planner.problem.reading import problem_from_text
from shardviz.render.caption import notes, repetition
from shardviz.render.layouts.cells import BlockCells, CellIndex, Cells, Copies, DeviceCells
from shardviz.render.layouts.layout_canvas import (
    CellCursor,
    LayoutCanvas,
    PointedLayout,
    arrange,
    array_lines,
    numbered_parts,
)
from shardviz.render.layouts.layout_view import layout_view
from shardviz.render.palette import ANSI, GLYPHS, PLAIN, TRUECOLOR, Palette
from shardviz.render.plan_pages import question_view
from shardviz.sharding import Layout, Mesh, PartitionSpec, ShardedArray
from tests.conftest import examples

MATMUL = ("bd,df->bf", "X=2,Y=4", "XY,Y_->X_")
MLP = ("bd,df->bf;bf,fd->bd", "X=2,Y=4", "X_,_Y->_X;_X,Y_->X_")
RANK_3 = ("hbd,df->hbf", "X=2,Y=4", "X_Y,Y_->X__")
UNREDUCED = ("bd,df->bf", "X=2,Y=4", "_Y,Y_->__{U_Y}")
POD = ("bd,df->bf", "X=256,Y=256", "XY,Y_->X_")
HUGE = ("bd,df->bf", f"X={2**20},Y={2**20}", "XY,Y_->X_")


def plan_of(question):
    text, mesh, specs = question
    where = parse_mesh(mesh)
    size = (
        {"h": 4, "b": 8, "d": 2048, "f": 8192, "i": 4, "j": 4, "k": 4}
        if where.size < 100
        else dict.fromkeys("bdf", 2**20)
    )
    sizes = ",".join(f"{dim}={size[dim]}" for dim in sorted(set(text) & set(size)))
    return plan(problem_from_text(text, mesh=where, specs=specs, sizes=sizes))


def canvas_of(question, width=84, height=30, kind=BlockCells) -> LayoutCanvas:
    parts = numbered_parts(plan_of(question))
    return arrange(
        [[kind(layout, TRUECOLOR, first) for layout, first in part] for part in parts], width, height
    )


@pytest.mark.parametrize(("width", "height"), [(48, 17), (156, 57)])
@pytest.mark.parametrize("specs", ["_X,XY->XY", "X_,_X->__", "__,XY->(XY)_"])
def test_arrays_of_one_shape_have_boxes_of_one_size(specs, width, height):
    canvas = canvas_of(("ij,jk->ik", "X=2,Y=2", specs), width, height).grown(width, height)
    assert canvas.width <= width
    assert canvas.height <= height
    boxes = {
        (grid.across * (grid.fit.inner + 1), grid.down * (grid.fit.lines + grid.rules))
        for grid in (placed.grid for placed in canvas.arrays)
    }
    assert len(boxes) == 1


def text_of(canvas, width=84, cursor=None):
    lines = (canvas.line(y, 0, width, cursor).plain.rstrip() for y in range(canvas.height))
    return "\n".join(lines)


LOOKS = [
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
    assert text_of(canvas_of(question, width, height, kind), width) == dedent(expected).strip("\n")


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
    canvas = canvas_of(question, 200, 60)
    lines = [canvas.line(y, 0, 200) for y in range(canvas.height)]
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
    canvas = canvas_of(question, 84, 30, kind)
    assert len(looked_at) <= 5 * 3
    looked_at.clear()
    y = 100
    for line in range(y, y + 30):
        canvas.line(line, 1000, 1084)
    assert 0 < len(looked_at) <= 30 * 8
    before = len(looked_at)
    canvas.line(y + 5, 1000, 1084, canvas.cursor_at(1020, y + 5))
    assert len(looked_at) == before


def test_a_part_of_a_line_is_cut_out_of_it():
    canvas = canvas_of(POD)
    gutter = len("X255 ")
    for y in (0, 1, 2, 40, 300):
        whole = canvas.line(y, 0, canvas.width).plain
        for left, right in ((0, 50), (33, 117), (34, 118), (1000, 1084)):
            part = canvas.line(y, left, right).plain
            assert len(part) <= right - left
            if y:
                # Of the first cell a part may be behind the labels: it is left out.
                seen, there = part[gutter:].strip(), whole[left:right][gutter:].rstrip()
                assert there.endswith(seen)
                assert len(there) - len(seen) < 2 * (canvas.arrays[0].grid.fit.inner + 1)


def test_names_stay_in_sight():
    canvas = canvas_of(POD)
    assert canvas.line(0, 1000, 1084).plain.startswith("A[b_X, d_Y]")
    assert canvas.line(100, 1000, 1084).plain.startswith(" X97 ")
    assert canvas.heading(100, 1000, 1084).plain.split()[:2] == ["Y72", "Y73"]
    assert canvas.heading(0, 0, 84) is None


ALL = [
    (question, kind) for question in (MATMUL, MLP, RANK_3, UNREDUCED) for kind in (BlockCells, DeviceCells)
]


def cursors(canvas):
    for array, each in enumerate(canvas.arrays):
        last = each.grid.cells.last
        for grid in range(last.grid + 1):
            for row in range(last.row + 1):
                for column in range(last.column + 1):
                    yield CellCursor(array, CellIndex(grid, row, column))


def names_of(canvas):
    return [cells.layout.array.name for cells in canvas.all_cells]


def test_a_chain_is_one_row_where_there_is_room_for_it():
    wide, narrow = canvas_of(MLP, 150), canvas_of(MLP)
    assert names_of(wide) == ["A", "W1", "H1", "W2", "Out"]
    assert [each.sign for each in wide.arrays] == ["", "·", "→", "·", "→"]
    assert {each.shelf for each in wide.arrays} == {0}
    assert names_of(narrow) == ["A", "W1", "H1", "H1", "W2", "Out"]
    # What is not in the layout that the next part takes is shown twice.
    assert names_of(canvas_of((*MLP[:2], "X_,_Y->_X;X_,Y_->X_"), 300)).count("H1") == 2


def test_all_lines_of_the_cells_of_a_marked_device_are_lit():
    canvas = canvas_of(MATMUL).grown(110, 17)
    for y, lit in ((9, []), (11, [" " * 7, " " * 23]), (12, ["▹ θ 7 ◃", "▹      ξ 4,5,6,7      ◃"])):
        line = canvas.line(y, 0, 110, CellCursor(0, CellIndex(0, 0, 0)), lens=7)
        marked = [line.plain[span.start : span.end] for span in line.spans if span.style == TRUECOLOR.lens]
        assert marked == lit


@pytest.mark.parametrize(("question", "kind"), ALL)
@pytest.mark.parametrize(("width", "height"), [(84, 30), (40, 9)])
def test_every_cell_is_where_it_is_drawn(question, kind, width, height):
    canvas = canvas_of(question, width, height, kind).grown(width, height)
    for cursor in cursors(canvas):
        x, y, cell = canvas.place_of(cursor)
        assert canvas.cursor_at(x, y) == canvas.cursor_at(x + cell - 1, y) == cursor
        line = PointedLayout(canvas, cursor).line(y, 0, canvas.width).plain
        assert (line[x], line[x + cell - 1]) == ("▸", "◂")
        assert line.count("▸") == 1
        labels = canvas.cells(cursor).cell(cursor.cell).labels
        assert any(label in line[x : x + cell] for label in labels)


GROWN = """
A[b_X, d_Y]                            ·  W[d_Y, f]             →  Out[b_X, f]
     d 2048
       Y0      Y1      Y2      Y3                 f 8192                f 8192
b 8 ┌───────┬───────┬───────┬───────┐     d 2048 ┌───────────┐     b 8 ┌───────────────────────┐
    │       │       │       │       │         Y0 │   ι 0,4   │         │                       │
    │       │       │       │       │            │           │         │                       │
 X0 │  α 0  │  β 1  │  γ 2  │  δ 3  │            ├───────────┤      X0 │       ν 0,1,2,3       │
    │       │       │       │       │         Y1 │   κ 1,5   │         │    b 0:4, f 0:8192    │
    │       │       │       │       │            │           │         │                       │
    ├───────┼───────┼───────┼───────┤            ├───────────┤         ├───────────────────────┤
    │       │       │       │       │         Y2 │   λ 2,6   │         │                       │
    │       │       │       │       │            │           │         │                       │
 X1 │  ε 4  │  ζ 5  │  η 6  │  θ 7  │            ├───────────┤      X1 │       ξ 4,5,6,7       │
    │       │       │       │       │         Y3 │   μ 3,7   │         │    b 4:8, f 0:8192    │
    │       │       │       │       │            │           │         │                       │
    └───────┴───────┴───────┴───────┘            └───────────┘         └───────────────────────┘
"""


def test_cells_grow_to_the_room_that_there_is():
    assert text_of(canvas_of(MATMUL).grown(110, 17), 110) == dedent(GROWN).strip()


@pytest.mark.parametrize(("question", "kind"), ALL)
@pytest.mark.parametrize(("width", "height"), [(84, 30), (300, 90)])
def test_what_grows_stays_within_its_room(question, kind, width, height):
    before = canvas_of(question, width, height, kind)
    after = before.grown(width, height)
    assert before.height <= after.height <= height
    assert after.width <= width
    # Half of the columns or half of the lines are used at least, unless cells would look stretched.
    assert max(2 * after.height - height, 2 * after.width - width) > 0


def test_a_tall_cell_says_what_of_the_array_it_is():
    text = text_of(canvas_of(MATMUL).grown(156, 57), 156)
    for words in ("b 4:8, d 1536:2048", "d 512:1024, f 0:8192", "b 0:4, f 0:8192"):
        assert text.count(words) == 1


def test_what_is_too_large_for_its_window_does_not_grow():
    canvas = canvas_of(POD)
    assert canvas.grown(84, 30) is canvas


@pytest.mark.parametrize(("question", "kind"), ALL)
def test_arrows_reach_every_cell_and_come_back(question, kind):
    canvas = canvas_of(question, 60, 20, kind)
    reached, waiting = set(), [CellCursor(0, CellIndex(0, 0, 0))]
    while waiting:
        cursor = waiting.pop()
        if cursor not in reached:
            reached.add(cursor)
            waiting += [canvas.moved(cursor, *way) for way in ((1, 0), (-1, 0), (0, 1), (0, -1))]
    assert reached == set(cursors(canvas))


def test_over_the_edge_is_the_next_array():
    canvas = canvas_of(MATMUL, 120)
    at_edge = CellCursor(0, CellIndex(0, 1, 3))
    assert canvas.moved(at_edge, 1, 0) == CellCursor(1, CellIndex(0, 1, 0))
    assert canvas.moved(CellCursor(1, CellIndex(0, 1, 0)), -1, 0) == at_edge
    assert canvas.moved(at_edge, 0, 1) == at_edge


def marked(canvas, cursor):
    """The cells that are marked as having the cursor's data, by array."""
    found = []
    for other in cursors(canvas):
        x, y, _ = canvas.place_of(other)
        if canvas.line(y, 0, canvas.width, cursor).plain[x] == "›":
            found.append((other.array, canvas.cells(other).position(other.cell)))
    return found


@pytest.mark.parametrize("focused", [True, False])
def test_the_cursor_stands_out_while_keys_move_it(focused):
    canvas = PointedLayout(canvas_of(MATMUL), CellCursor(0, CellIndex(0, 0, 0)), focused=focused)
    line = canvas.line(4, 0, 84)
    (span,) = [span for span in line.spans if line.plain[span.start : span.end] == "▸α 0◂"]
    assert bool(span.style.reverse) == focused
    assert span.style.bold


def test_who_holds_the_same_data_is_marked():
    by_device = canvas_of(MATMUL, kind=DeviceCells)
    assert marked(by_device, CellCursor(0, CellIndex(0, 0, 0))) == []
    assert marked(by_device, CellCursor(1, CellIndex(0, 0, 1))) == [(1, 5)]
    assert marked(by_device, CellCursor(2, CellIndex(0, 1, 0))) == [(2, 5), (2, 6), (2, 7)]


def test_partial_sums_are_not_the_same_data():
    by_device = canvas_of(UNREDUCED, kind=DeviceCells)
    assert marked(by_device, CellCursor(2, CellIndex(0, 0, 1))) == [(2, 5)]


def test_an_intermediate_is_marked_in_both_its_pictures():
    canvas = canvas_of(MLP, 120, 40)
    assert marked(canvas, CellCursor(2, CellIndex(0, 0, 1))) == [(3, 4)]
    assert canvas.repeats(CellCursor(2, CellIndex(0, 0, 1)))


def layout_of(shape: tuple[int, ...], mesh: str, spec: str) -> Layout:
    where = parse_mesh(mesh)
    reading = read_sharding(spec, Context(where, len(shape)))
    return Layout(ShardedArray(reading.name or "A", reading.dim_names, shape, "bf16", reading.spec), where)


def drawn(layout: Layout, width: int) -> str:
    return "\n".join(line.plain for line in array_lines([[(layout, 0)]], width, TRUECOLOR))


PICTURES = [
    (
        "replicas stand in one cell",
        layout_of((2048, 8192), "X=2,Y=4", "W[d_Y, f]"),
        40,
        """
        W[d_Y, f]
                f 8192
        d 2048 ┌───────┐
            Y0 │ α 0,4 │
               ├───────┤
            Y1 │ β 1,5 │
               ├───────┤
            Y2 │ γ 2,6 │
               ├───────┤
            Y3 │ δ 3,7 │
               └───────┘
        """,
    ),
    (
        "partial sums are striped and joined by +",
        layout_of((8, 8192), "X=2,Y=4", "Out[b_X, f]{U_Y}"),
        80,
        """
        Out[b_X, f]{U_Y}
             f 8192
        b 8 ┌─────────────┐
         X0 │╱ α 0+1+2+3 ╱│
            ├─────────────┤
         X1 │╱ β 4+5+6+7 ╱│
            └─────────────┘
        """,
    ),
    (
        "partial sums with replicas",
        layout_of((8,), "X=2,Y=2", "A[b]{U_Y}"),
        80,
        """
        A[b]{U_Y}
         b 8
        ┌─────────────────┐
        │╱ α (0,2)+(1,3) ╱│
        └─────────────────┘
        """,
    ),
    (
        "rank 1, padded",
        layout_of((10,), "X=2,Y=4", "A[b_Y]"),
        80,
        """
        A[b_Y]
         b 10
           Y0      Y1      Y2      Y3
        ┌───────┬───────┬───────┬───────┐
        │ α 0,4 │ β 1,5 │ γ 2,6 │ δ░3,7░│
        └───────┴───────┴───────┴───────┘
        """,
    ),
    (
        "rank 0",
        layout_of((), "X=2,Y=2", "()"),
        80,
        """
        A[]
        ┌───────────┐
        │ α 0,1,2,3 │
        └───────────┘
        """,
    ),
    (
        "two axes on one dimension, labels shortened to fit",
        layout_of((4096, 8192), "X=2,Y=4", "A[b, d_XY]"),
        40,
        """
        A[b, d_XY]
                d 8192
                0,0 0,1 0,2 0,3 1,0 1,1 1,2 1,3
        b 4096 ┌───┬───┬───┬───┬───┬───┬───┬───┐
               │ 0 │ 1 │ 2 │ 3 │ 4 │ 5 │ 6 │ 7 │
               └───┴───┴───┴───┴───┴───┴───┴───┘
        """,
    ),
    (
        "131,072 devices on 40 columns",
        layout_of((4096, 8192), "data=1024,model=16,x=8", "A[b_{data}, d_{model}]"),
        40,
        """
        A[b_{data}, d_{model}]
                   d 8192
                    0    1    2    3    …   15
           b 4096 ┌────┬────┬────┬────┬───┬────┐
           data 0 │ ×8 │ ×8 │ ×8 │ ×8 │ … │ ×8 │
                  ├────┼────┼────┼────┼───┼────┤
           data 1 │ ×8 │ ×8 │ ×8 │ ×8 │ … │ ×8 │
                  ├────┼────┼────┼────┼───┼────┤
           data 2 │ ×8 │ ×8 │ ×8 │ ×8 │ … │ ×8 │
                  ├────┼────┼────┼────┼───┼────┤
           data 3 │ ×8 │ ×8 │ ×8 │ ×8 │ … │ ×8 │
                ⋮ │ ⋮  │ ⋮  │ ⋮  │ ⋮  │ … │ ⋮  │
        data 1023 │ ×8 │ ×8 │ ×8 │ ×8 │ … │ ×8 │
                  └────┴────┴────┴────┴───┴────┘
        some of 1024×16 blocks
        """,
    ),
]


@pytest.mark.parametrize(
    ("layout", "width", "expected"), [case[1:] for case in PICTURES], ids=[c[0] for c in PICTURES]
)
def test_picture(layout: Layout, width: int, expected: str) -> None:
    assert drawn(layout, width) == dedent(expected).strip("\n")


def test_device_order_shows_in_the_cells() -> None:
    layout = layout_of((8, 8), "X=2,Y=2", "XY")
    mesh = Mesh(("X", "Y"), (2, 2), (3, 1, 2, 0))
    text = drawn(Layout(layout.array, mesh), 80)
    assert "│ α 3 │ β 1 │" in text
    assert "│ γ 2 │ δ 0 │" in text


@pytest.mark.parametrize(
    ("shape", "mesh", "spec"),
    [
        ((512, 512), "X=8,Y=8", "XY"),
        ((512, 512), "X=16,Y=16,Z=2", "(XZ)Y"),
        ((4, 64, 64), "X=4,Y=8,Z=8", "XYZ"),
        ((40, 64, 64), "X=40,Y=2", "X_Y"),
    ],
)
@pytest.mark.parametrize("width", [40, 60, 100])
def test_every_cell_of_an_array_has_its_glyph_or_none_has(
    shape: tuple[int, ...], mesh: str, spec: str, width: int
) -> None:
    text = drawn(layout_of(shape, mesh, spec), width)
    cells = [cell for line in text.splitlines() for cell in line.split("│")[1:-1]]
    shown = [any(letter in GLYPHS for letter in cell) for cell in cells if any(map(str.isdigit, cell))]
    assert len(shown) > 1
    assert len(set(shown)) == 1


def test_columns_that_are_left_out_leave_room_for_glyphs() -> None:
    text = drawn(layout_of((512, 512), "X=64,Y=64", "XY"), 60)
    assert "│ α₁₆₈ 4032 │" in text


COLOURS_REPEAT = "colours repeat after 24; letters and device numbers do not"


@pytest.mark.parametrize(
    ("shards", "palette", "said"),
    [
        (24, TRUECOLOR, []),
        (25, TRUECOLOR, [COLOURS_REPEAT]),
        (13, ANSI, [COLOURS_REPEAT.replace("24", "11")]),
        (25, PLAIN, []),
    ],
)
def test_colours_that_repeat_are_said(shards: int, palette: Palette, said: list[str]) -> None:
    assert [line.plain for line in repetition(shards, palette)] == said
    lines = layout_view(layout_of((shards,), f"X={shards}", "X"), 80, palette)
    assert [line.plain for line in lines if "repeat" in line.plain] == said


def test_many_slices_are_summarised() -> None:
    text = drawn(layout_of((64, 8, 8), "X=64", "A[h_X, b, d]"), 80)
    assert "h 0:1 X0" in text
    assert "59 slices before the last not shown" in text
    assert "h 63:64 X63" in text


NOTES = [
    (
        layout_of((10, 8), "X=2,Y=4", "YX"),
        "░ I of A: 10 is not divisible by the 4 shards over Y. jit pads it to 12, 3 per device; the last 2 "
        "are padding. jax.device_put raises IndivisibleError.",
    ),
    (
        layout_of((7, 8), "X=2,Y=4", "XY"),
        "░ I of A: 7 is not divisible by the 2 shards over X. jit pads it to 8, 4 per device; the last one "
        "is padding. jax.device_put raises IndivisibleError.",
    ),
    (
        layout_of((8, 8), "X=2,Y=4", "Out[b_X, f]{U_Y}"),
        "╱ Out is unreduced over Y: each block is the sum of 4 partial sums, one on each of the "
        "devices joined by +.",
    ),
]


@pytest.mark.parametrize(("layout", "note"), NOTES)
def test_notes(layout: Layout, note: str) -> None:
    assert notes(layout) == [note]


def test_an_even_layout_needs_no_note() -> None:
    assert notes(layout_of((8, 8), "X=2,Y=4", "XY")) == []


@st.composite
def layouts(draw: st.DrawFn, most_devices: int = 64) -> Layout:
    sizes: list[int] = []
    for _ in range(draw(st.integers(0, 4))):
        sizes.append(draw(st.integers(1, max(1, min(8, most_devices // max(1, _product(sizes)))))))
    names = tuple("XYZW"[: len(sizes)])
    order = draw(st.none() | st.permutations(range(_product(sizes))).map(tuple))
    rank = draw(st.integers(0, 4))
    dims: list[list[str]] = [[] for _ in range(rank)]
    pending = []
    for name in draw(st.permutations(names)):
        place = draw(st.integers(-2, rank - 1))
        if place >= 0:
            dims[place].append(name)
        elif place == -2:
            pending.append(name)
    spec = PartitionSpec(tuple(map(tuple, dims)), tuple(pending))
    shape = tuple(draw(st.integers(0, 40)) for _ in range(rank))
    return Layout(
        ShardedArray("A", tuple("bdfh"[:rank]), shape, "bf16", spec), Mesh(names, tuple(sizes), order)
    )


def _product(sizes: list[int]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product


@given(layouts(), st.integers(40, 200))
@examples(100)
def test_no_line_is_wider_than_the_page(layout: Layout, width: int) -> None:
    assert max(map(cell_len, drawn(layout, width).splitlines())) <= width


@given(layouts())
@examples(100)
def test_every_cell_names_the_devices_that_hold_its_block(layout: Layout) -> None:
    held: dict[tuple[tuple[int, ...], int], list[int]] = {}
    for position in range(len(layout)):
        key = (layout.block(position), layout.partial(position))
        held.setdefault(key, []).append(layout.mesh.device_id(position))
    for (block, partial), ids in held.items():
        found = Copies(layout).holders(block, partial)
        assert found.first == tuple(sorted(ids))
        assert (found.last, found.count) == (max(ids), len(ids))
        assert next(found.labels()) == ",".join(map(str, sorted(ids)))


def test_labels_grow_shorter() -> None:
    layout = layout_of((8, 8), "X=4,Y=16", "Y _")
    assert list(Copies(layout).holders((0, 0)).labels()) == [
        "0,16,32,48",
        "0,16,…,48",
        "4 devices",
        "0,…,48",
        "×4",
    ]
    layout = layout_of((8, 8), "X=4,Y=16", "X _")
    assert list(Copies(layout).holders((1, 0)).labels())[1:] == ["16–31", "16 devices", "16–31", "×16"]
    layout = layout_of((8, 8), "X=4,Y=2", "A[b, d]{U_X}")
    assert list(Copies(layout).labels((0, 0))) == ["(0,1)+(2,3)+(4,5)+(6,7)", "(0,1)+…+(6,7)", "Σ4"]


def test_holders_of_a_huge_mesh_are_not_listed() -> None:
    layout = layout_of((8, 8), "X=1048576,Y=1048576", "_ _")
    found = Copies(layout).holders((0, 0))
    assert (found.first[:3], found.last, found.count) == ((0, 1, 2), 2**40 - 1, 2**40)
    assert next(found.labels()) == f"0–{2**40 - 1}"
