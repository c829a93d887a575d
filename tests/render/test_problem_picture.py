"""The problem's fields, as text on a panel of fixed width."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import pytest

from shardviz.forms.enter import enter
from shardviz.forms.form import OPEN, ProblemForm
from shardviz.forms.resolve import resolve
from shardviz.notation.mesh import parse_mesh
from shardviz.render.palette import TRUECOLOR
from shardviz.render.problem_picture import (
    GUTTER,
    MARK,
    MAX_LINES,
    FieldsPicture,
    Typing,
    chain_lines,
    field_rows,
    headline,
    mesh_in,
)
from shardviz.units import human_bytes

WIDTH = 35


def picture_of(
    draft: ProblemForm, width: int = WIDTH, height: int = 40, typing: Typing | None = None
) -> FieldsPicture:
    scene = resolve(draft, resolve(ProblemForm()))
    return FieldsPicture(field_rows(scene), width, height, mesh_in(scene), TRUECOLOR, typing)


def text_of(picture: FieldsPicture) -> str:
    """All lines, without the gutter."""
    lines = [picture.line(y, 0, picture.width).plain[GUTTER:].rstrip() for y in range(picture.height)]
    return "\n".join(lines)


PICTURES = {
    "no line to spare, so no blank ones; several axes, partial sums, and nobody's choice": (
        ProblemForm(specs=("(XY)_", "_ _{U_Y}", OPEN), mesh="X=2,Y=4,Z=2"),
        12,
        """
        mesh    X=2  Y=4  Z=2  16 devices
        einsum  bd,df->bf
        sizes   b=1024,d=2048,f=8192
        dtype   bf16
        A       b_XY  d           512 KiB
        W       d  f  {U_Y}        32 MiB
        → Out   compiler's choice
        axes    auto
        order   JAX's own
        targets shardy,cpu
        machine v5e rings, assumed
        plan    given
        train   no
        """,
    ),
    "long names of axes and arrays, on as many lines as they need": (
        enter(
            ProblemForm(mesh="data=2,model=4,pipeline=8"),
            "einsum",
            "Inputs_of_layer[B_{data,model}, D] * W[D_pipeline, F] -> Out[B, F]",
        ),
        40,
        """
        mesh          data=2  model=4
                      pipeline=8     = 64

        einsum        Inputs_of_layer[B,
                      D] * W[D, F] ->
                      Out[B, F]
        sizes         B=1024,D=2048,
                      F=8192
        dtype         bf16

        Inputs_of_la… B_{data,model}  D
                                  512 KiB
        W             D_{pipeline}  F
                                    4 MiB
        → Out         B  F         16 MiB

        axes          auto
        order         JAX's own
        targets       shardy,cpu
        machine       v5e rings, assumed
        plan          given
        train         no
        """,
    ),
    "text that cannot be read stays, with what is wrong below": (
        ProblemForm(specs=("X[/b]", "Y_", "X_"), dtype="bf17"),
        40,
        """
        mesh    X=2  Y=4        8 devices

        einsum  bd,df->bf
        sizes   b=1024,d=2048,f=8192
        dtype   bf17
        ✗ Unknown dtype 'bf17'.
          Use for example bf16, f32, f16,
          f8e4m3fn, s8, s32.

        A       X[/b]
        ✗ Expected a dimension but found
          '/' at character 3 of 'X[/b]'.
          Write arrays as A[B_X, D_Y] and
          products as A[B_X, D_Y] *
          W[D_Y, F] -> Out[B_X, F].
        W       d_Y  f
        → Out   b_X  f

        axes    auto
        order   JAX's own
        targets shardy,cpu
        machine v5e rings, assumed
        plan    given
        train   no
        """,
    ),
}


@pytest.mark.parametrize(("draft", "height", "expected"), PICTURES.values(), ids=PICTURES)
def test_the_fields(draft, height, expected):
    assert text_of(picture_of(draft, height=height)) == dedent(expected).strip()


@pytest.mark.parametrize(
    ("mesh", "said"),
    [
        ("X=64,Y=64", "X=64  Y=64   4,096 devices"),
        ("X=256,Y=256", "X=256  Y=256      = 65,536"),
        ("X=8192,Y=8192", "X=8192  Y=8192"),
    ],
)
def test_the_number_of_devices_takes_no_line_of_its_own(mesh, said):
    lines = text_of(picture_of(ProblemForm(mesh=mesh), 36)).splitlines()
    assert lines[0] == f"mesh    {said}"
    assert lines[2].startswith("einsum")


def test_a_long_text_is_cut_where_it_is_shown():
    picture = picture_of(ProblemForm(einsum="[b," * 1000))
    shown = [place for place in picture.places if place.cell.field == "einsum"]
    assert len(shown) == MAX_LINES
    assert "…" in picture.line(shown[-1].y, 0, WIDTH).plain


HOSTILE = {
    "escape": "\x1b[31mred",
    "wide": "日本語" * 20,
    "markup": "[bold]x[/bold]",
    "right to left": "a\u202eb",
    "long": "x" * 5000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("width", [35])
def test_no_text_leaves_the_panel_or_moves_the_cursor(text, width):
    picture = picture_of(ProblemForm(einsum=text, mesh=text, specs=(text, "Y_", "X_"), targets=text), width)
    for y in range(picture.height):
        line = picture.line(y, 0, width)
        assert line.cell_len <= width
        assert line.plain.isprintable()


def test_brackets_and_braces_show_as_typed():
    shown = text_of(picture_of(ProblemForm(specs=("A[b_{Q}, d]{U_Z}", "[/]", "{U_Y}"))))
    for text in ("A[b_{Q}, d]{U_Z}", "[/]", "{U_Y}"):
        assert text in shown


def test_the_cursor_needs_no_colour():
    picture = picture_of(ProblemForm())
    place = next(place for place in picture.places if place.cell.axes == ("Y",))
    picture.cursor = place.cell
    line = picture.line(place.y, 0, WIDTH)
    styles = [str(span.style) for span in line.spans if (span.start, span.end) == (place.left, place.right)]
    assert line.plain.startswith(MARK)
    assert "reverse not dim" in styles
    picture.has_focus = False
    assert MARK not in picture.line(place.y, 0, WIDTH).plain


def test_an_axis_has_its_colour_wherever_it_is():
    picture = picture_of(ProblemForm())
    mesh = parse_mesh("X=2,Y=4")
    styles = {name: TRUECOLOR.axis(mesh, name) for name in mesh.axis_names}
    lines = [picture.line(y, 0, WIDTH) for y in range(picture.height)]
    pieces = [
        (line.plain[span.start : span.end], span.style)
        for line in lines
        for span in line.spans
        if span.style in styles.values()
    ]
    assert [text for text, style in pieces if style == styles["X"]] == ["X", "=2", "X", "X"]
    assert [text for text, style in pieces if style == styles["Y"]] == ["Y", "=4", "Y", "Y"]


def test_typed_text_has_its_place_and_notes_that_do_not_shrink():
    picture = picture_of(ProblemForm(), typing=Typing("specs.0", (), "a hint", 4))
    lines = text_of(picture).splitlines()
    assert lines[picture.typing_line : picture.typing_line + 2] == ["A", "  a hint"]
    assert picture.typing_notes == 4
    assert lines[picture.typing_line + 5].startswith("W ")


CHAIN = enter(
    ProblemForm(), "einsum", ";".join(["ab,bc->ac", *(f"a{x},{x}{y}->a{y}" for x, y in ("cd", "de", "ef"))])
)
PRODUCT = enter(ProblemForm(mesh="data=2,model=4"), "einsum", "A[I_data, J_model] * B[J_model, K]")
LINES = [
    (ProblemForm(), 118, "bd,df->bf   XY,Y_->X_   X=2 Y=4   bf16   shardy,cpu"),
    (ProblemForm(), 78, "bd,df->bf  XY,Y_->X_  X=2 Y=4  bf16  shardy,cpu"),
    (ProblemForm(), 38, "bd,df->bf  XY,Y_->X_  X=2 Y=4  bf16  …"),
    (ProblemForm(sizes="b=8,d=8,f=8"), 78, "bd,df->bf  XY,Y_->X_  X=2 Y=4  b=8 d=8 f=8  bf16  shardy,cpu"),
    (PRODUCT, 78, "A[I_{data}, J_{model}] * B[J_{model}, K]  data=2 model=4  bf16  shardy,cpu"),
    (CHAIN, 78, "ab,bc->ac; ac,cd->ad; ad,…  _X,Y_; ?,__; ?,__; ?,__->…  X=2 Y=4  bf16  …"),
    (ProblemForm(specs=("XQ", "Y_", "X_")), 38, "bd,df->bf  XY,Y_->X_  …    ✗ spec of A"),
    (
        ProblemForm(mesh="", dtype="x"),
        78,
        "bd,df->bf  XY,Y_->X_  X=2 Y=4  bf16  shardy,cpu                      ✗ mesh +1",
    ),
]


@pytest.mark.parametrize(("draft", "width", "expected"), LINES)
def test_the_line(draft, width, expected):
    line = headline(resolve(draft, resolve(ProblemForm())), width, TRUECOLOR)
    assert line.plain == expected
    assert line.cell_len <= width


def test_axes_have_their_colours():
    scene = resolve(ProblemForm())
    line = headline(scene, 80, TRUECOLOR)
    for axis, places in {"X": (12, 19, 24), "Y": (13, 15, 28)}.items():
        style = TRUECOLOR.axis(scene.problem.mesh, axis)
        for place in places:
            assert line.plain[place] == axis
            assert style in [span.style for span in line.spans if span.start <= place < span.end]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("H = X[b,d] * W1[d,f]; Y = silu(H) * W2[f,d] x 4", ["X", "W1", "W2", "H", "Y"]),
        ("H = X[b,d] * W1[d,f]; G = U[b,d] * W2[d,f]", ["X", "W1", "U", "W2", "H", "G"]),
    ],
)
@pytest.mark.parametrize("backward", ["no", "yes"])
def test_a_program_has_the_bytes_of_each_named_array(text, names, backward):
    draft = replace(enter(ProblemForm(), "einsum", text), backward=backward)
    specs = tuple("X _" if name in {"X", "U"} else "_ _" for name in names)
    scene = resolve(replace(draft, specs=specs))
    rows = [row for row in field_rows(scene) if row.is_array]
    said = {row.cells[0].text.removeprefix("→ "): row.remarks for row in rows}
    assert list(said) == names
    arrays = [array for part in scene.problem.forward for array in (*part.operands, part.result)]
    for name in names:
        first = next(array for array in arrays if array.name == name)
        assert said[name] == (human_bytes(first.bytes_per_device(scene.problem.mesh)),)


def test_a_program_has_its_statements_one_a_line_then_its_specs():
    draft = ProblemForm(
        mesh="X=4",
        einsum="H = A[b,d] * W1[d,f]; Y = A + silu(H) * W2[f,d]",
        specs=("X_", "__", "_X", "?", "X_"),
        sizes="b=8,d=8,f=8",
    )
    lines = [line.plain.rstrip() for line in chain_lines(resolve(draft), TRUECOLOR)]
    assert lines[0] == "1   H = A[b,d] * W1[d,f]"
    assert lines[1] == "2   Y = A + silu(H) * W2[f,d]"
    assert sorted(lines[2:]) == ["    A=X_", "    W2=_X", "    Y=X_"]


def test_a_chain_has_the_specs_of_each_einsum_beside_it():
    specs = ("X_", "__", "?", "?", "_X", "?")
    draft = ProblemForm(mesh="X=4", einsum="ab,bc->ac; ac,cd->ad", specs=specs)
    lines = [line.plain.split("   ") for line in chain_lines(resolve(draft), TRUECOLOR)]
    assert [line[1].strip() for line in lines] == ["ab,bc->ac", "ac,cd->ad"]
    assert all(len(line) == 3 for line in lines)
