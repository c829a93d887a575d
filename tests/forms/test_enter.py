"""Text into fields: every notation, whole problems, and what stays as it was typed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardviz.forms.enter import enter
from shardviz.forms.form import CollectiveFields, ProblemForm
from shardviz.forms.resolve import resolve

USUAL = ProblemForm()
CHAIN = enter(USUAL, "einsum", "bd,df->bf; bf,fd->bd")


def changed(draft, field, text):
    """What of a draft is another after an entry: field → value."""
    entered = enter(draft, field, text)
    names = [name for name in vars(draft) if getattr(entered, name) != getattr(draft, name)]
    return {name: getattr(entered, name) for name in names}


@pytest.mark.parametrize(
    "text",
    [
        "YX",
        "P('Y', 'X')",
        "('Y', 'X')",
        "A[B_Y, D_X]",
        "B/Y D/X",
        "b d -> d2 b4",
        "{devices=[4,2]<=[2,4]T(1,0)}",
        '<@mesh, [{"Y"}, {"X"}]>',
        "NamedSharding(mesh=Mesh('X': 2, 'Y': 4, axis_types=(Auto, Auto)), spec=P('Y', 'X'), memory_kind=x)",
    ],
)
def test_the_spec_of_an_array_in_any_notation(text):
    assert changed(USUAL, "specs.0", text) == {"specs": ("YX", "Y_", "X_")}


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        ("_X,X_->_", None),
        ("_X,X_->__", ("_X", "X_", "__")),
        ("(XY)_,__", ("(XY)_", "__", "?")),
        ("?", ("XY", "?", "X_")),
        ("_Y{U_X}", ("XY", "_Y{U_X}", "X_")),
        ("P()", ("XY", "__", "X_")),
        ("XY->XY", None),
        ("XY,Y_; ,_Y", None),
    ],
)
def test_specs_in_a_row_or_of_all_rows(text, specs):
    assert enter(USUAL, "specs.1", text).specs == (specs or ("XY", text, "X_"))


@pytest.mark.parametrize(
    "text", ["Out[B_Y, F]{U_X}", r"Out[B_Y, F]\{U_X\}", "[b_Y, f]{U_X}", "f32[8@Y,8]{U:X}"]
)
def test_partial_sums_of_one_array(text):
    entered = enter(USUAL, "specs.2", text)
    assert (entered.einsum, entered.specs) == ("bd,df->bf", ("XY", "Y_", "Y_{U_X}"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("W[d, f]{U_Y}", "W[d, f]"),
        ("W[B_X, D]", "W[B, D]"),
        ("[I_X, J]", "A[I, J]"),
        ("d b -> d2 b4", "A[d, b]"),
    ],
)
def test_the_text_of_another_array_is_a_fault_of_the_field(text, said):
    assert changed(USUAL, "specs.0", text) == {"specs": (text, "Y_", "X_")}
    (fault,) = resolve(enter(USUAL, "specs.0", text), resolve(USUAL)).faults
    assert (fault.field, fault.message) == ("specs.0", f"{said} is not the array of this row, A[b, d]")


def test_a_product_in_a_row_takes_the_place_of_the_einsum():
    entered = enter(USUAL, "specs.1", "A[I_X, J] * B[J, K]{U_Y}")
    assert (entered.einsum, entered.specs) == ("A[I, J] * B[J, K]", ("X_", "__{U_Y}", "?"))
    assert enter(USUAL, "specs.1", "A[I_Q, J] * B[J, K]").specs[1] == "A[I_Q, J] * B[J, K]"


def test_specs_of_a_chain():
    entered = enter(CHAIN, "specs.4", "XY,Y_->X_; ,_Y->X_")
    assert entered.specs == ("XY", "Y_", "X_", "?", "_Y", "X_")


def test_a_type_brings_sizes_and_dtype():
    assert changed(USUAL, "specs.0", "f32[16@X,32@Y]") == {"sizes": "b=16,d=32,f=8192", "dtype": "f32"}
    assert changed(USUAL, "specs.1", "32/Y 64") == {"sizes": "b=1024,d=32,f=64"}


@pytest.mark.parametrize(
    "text",
    [
        "NamedSharding(mesh=Mesh('data': 4, 'model': 2), spec=PartitionSpec('data', 'model'))",
        '#sdy.sharding<mesh<["data"=4, "model"=2]>, [{"data"}, {"model"}]>',
    ],
)
def test_a_sharding_brings_its_mesh_and_the_other_specs_follow(text):
    assert changed(USUAL, "specs.0", text) == {
        "mesh": "data=4,model=2",
        "specs": ("data model", "model _", "data _"),
    }


def test_a_sharding_that_cannot_be_read_changes_nothing_but_its_field():
    text = "NamedSharding(mesh=Mesh('data': 4), spec=P('Q'))"
    assert changed(USUAL, "specs.0", text) == {"specs": (text, "Y_", "X_")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bd,df", {}),
        ("df,bd->fb", {"einsum": "df,bd->fb", "specs": ("Y_", "_Y", "_X")}),
        ("ij,jk->ik", {"einsum": "ij,jk->ik"}),
        ("bd->db", {"einsum": "bd->db", "specs": ("XY", "_X")}),
        (
            "bd,df->bf; bf,fd->bd",
            {"einsum": "bd,df->bf; bf,fd->bd", "specs": ("XY", "Y_", "?", "?", "__", "X_")},
        ),
        ("A[I_X, J_Y] · B[J_Y, K]", {"einsum": "A[I, J] * B[J, K]", "specs": ("XY", "Y_", "?")}),
        (
            "C[I, K_Y] = A[I_{X}, J] @ B[J, K_Y]",
            {"einsum": "A[I, J] * B[J, K] -> C[I, K]", "specs": ("X_", "_Y", "_Y")},
        ),
        (
            r"\mathbf{A}[I_X, J] *_J B[J, K]{U_Y}",
            {"einsum": "A[I, J] *_J B[J, K]", "specs": ("X_", "__{U_Y}", "?")},
        ),
        ("A[I_Q, J] * B[J, K]", {"einsum": "A[I_Q, J] * B[J, K]"}),
        ("", {"einsum": ""}),
    ],
)
def test_an_einsum_keeps_what_fits(text, expected):
    assert changed(USUAL, "einsum", text) == expected


def test_an_einsum_with_a_mistake_loses_no_spec_when_it_is_mended():
    wrong = enter(USUAL, "einsum", "bd,df->bq")
    assert enter(wrong, "einsum", "bd,df->fb").specs == ("XY", "Y_", "X_")


def test_subscripts_that_wait_for_an_axis_go_to_the_rows_when_it_comes():
    waiting = enter(USUAL, "einsum", "A[I_Z, J_Y] * B[J_Y, K]")
    assert waiting.specs == USUAL.specs
    assert [fault.field for fault in resolve(waiting, resolve(USUAL)).faults] == ["einsum"]
    mended = enter(waiting, "mesh", "X=2,Y=4,Z=2")
    assert (mended.einsum, mended.specs) == ("A[I, J] * B[J, K]", ("ZY", "Y_", "?"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("b=8", "b=8,d=32,f=64"),
        ("f=1 d=2 b=3", "b=3,d=2,f=1"),
        ("8x4,5x2", "8x4,5x2"),
        ("q=8", "q=8"),
        ("b=", "b="),
    ],
)
def test_sizes(text, expected):
    assert enter(replace(USUAL, sizes="b=16,d=32,f=64"), "sizes", text).sizes == expected


def test_sizes_of_dimensions_that_stay_are_kept():
    draft = enter(enter(USUAL, "sizes", "b=8,d=16,f=32"), "einsum", "bd,dg->bg")
    assert draft.sizes == "b=8,d=16,g=8192"
    assert enter(draft, "einsum", "ij,jk->ik").sizes == ""


def test_an_ellipsis_has_as_many_dimensions_as_have_sizes():
    draft = enter(USUAL, "einsum", "...bd,df->...bf")
    assert draft.specs == ("XY", "Y_", "X_")
    sized = enter(draft, "sizes", "...=4x8")
    assert sized.sizes == "...=4x8,b=8192,d=128,f=128"
    assert sized.specs == ("__XY", "Y_", "__X_")
    assert resolve(sized).problem.result.shape == (4, 8, 8192, 128)
    assert enter(sized, "sizes", "").specs == draft.specs


@pytest.mark.parametrize(
    ("text", "mesh", "specs"),
    [
        ("X=8", "X=8", ("X_", "__", "X_")),
        ("Y=4 X=2", "Y=4,X=2", ("XY", "Y_", "X_")),
        ("X=2,Y=2,Z=2", "X=2,Y=2,Z=2", ("XY", "Y_", "X_")),
        ("data=2,model=4", "data=2,model=4", ("data model", "model _", "data _")),
        ("Mesh('X': 4, 'Y': 2)", "X=4,Y=2", ("XY", "Y_", "X_")),
        ("4x2", "X=4,Y=2", ("XY", "Y_", "X_")),
        ("X=0", "X=0", ("XY", "Y_", "X_")),
        ("", "", ("XY", "Y_", "X_")),
        ("[x=4]{U_Y}", "[x=4]{U_Y}", ("XY", "Y_", "X_")),
    ],
)
def test_the_specs_follow_the_mesh(text, mesh, specs):
    entered = enter(USUAL, "mesh", text)
    assert (entered.mesh, entered.specs) == (mesh, specs)


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("dtype", " float32 ", "f32"),
        ("dtype", "bfloat17", "bfloat17"),
        ("axis_types", "Explicit", "explicit"),
        ("device_order", "0 1 2 3 7 6 5 4", "0,1,2,3,7,6,5,4"),
        ("device_order", "Row-Major", "row-major"),
        ("targets", "CPU,v5e:2x4", "cpu,v5e:2x4"),
        ("targets", "none", "none"),
        ("targets", "", ""),
        ("machine", " V5P-128 ", "v5p:4x4x4"),
        ("machine", "our/cluster.TOML", "our/cluster.TOML"),
    ],
)
def test_other_fields(field, text, value):
    assert getattr(enter(USUAL, field, text), field) == value


@pytest.mark.parametrize(
    ("field", "start"),
    [
        ("einsum", "shardviz explain"),
        ("specs.1", "$ shardviz  tui"),
        ("sizes", "explain"),
        ("collective", "explain"),
    ],
)
def test_a_command_line_in_any_field_is_a_whole_problem(field, start):
    line = f"{start} 'bd,df->bf' \\\n  --mesh i=8 \\\n  --specs='_i,i_' --dtype f32 --width 80 --hlo"
    expected = ProblemForm(mesh="i=8", specs=("_i", "i_", "?"), dtype="f32")
    assert enter(replace(USUAL, sizes="b=2,d=2,f=2"), field, line) == expected


def test_the_line_of_step_brings_a_collective_on_its_mesh():
    draft = enter(
        USUAL, "einsum", "shardviz step all_gather --mesh i=4 --data 3,9,5,2 --algorithm ring --untiled"
    )
    collective = CollectiveFields(
        "all_gather", data="3,9,5,2", algorithm="ring", parameters=(("untiled", "yes"),)
    )
    assert draft == replace(USUAL, mesh="i=4", specs=("__", "__", "__"), collective=collective)


def test_a_collective_in_words():
    assert enter(USUAL, "collective", "psum --axis X") == replace(
        USUAL, collective=CollectiveFields("psum", axis="X")
    )
    assert enter(enter(USUAL, "collective", "psum"), "collective", " ") == USUAL
    assert enter(USUAL, "collective", "psum psum").collective == CollectiveFields("psum psum")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("explain 'bd,df->bf' --mesh X=", "expected the size of mesh axis X at the end of 'X='"),
        ("explain 'bd,df->bf", "a quote in 'explain 'bd,df->bf' is not closed"),
        ("explain bd,df --what 3", "there is no option '--what' here"),
        ("explain bd,df --mesh", "--mesh has no value"),
        ("explain bd,df df", "explain takes one einsum, not 'bd,df' 'df'"),
        ("shardviz layout 8x8", "'layout' is not a command that has a problem"),
        ("step psum --gather-dimension", "--gather-dimension has no value"),
        ("tui bd,df --axis-types manual", "'manual' is not an axis type"),
    ],
)
def test_a_command_line_with_a_mistake_stays_and_says_so(line, message):
    for field, name in (("einsum", "einsum"), ("specs.0", "specs.0")):
        entered = enter(USUAL, field, line)
        assert line in (entered.einsum, entered.specs[0])
        fault = next(fault for fault in resolve(entered, resolve(USUAL)).faults if fault.field == name)
        assert fault.message == message


def test_what_no_terminal_shows_is_not_kept():
    assert enter(USUAL, "dtype", "b\x1b[31mf\t16\n").dtype == "b\ufffd[31mf 16"
