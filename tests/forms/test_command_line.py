"""A draft as a command line, and back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from shardviz.cli.group import command_named
from shardviz.errors import QuestionError, ShardvizError
from shardviz.forms.command_line import (
    _click_command,
    form_from_arguments,
    form_from_line,
    to_arguments,
    to_command_line,
)
from shardviz.forms.enter import enter
from shardviz.forms.examples import named_example
from shardviz.forms.form import ProblemForm
from shardviz.forms.options import form_from_options
from shardviz.forms.resolve import resolve
from tests.conftest import examples

USUAL = ProblemForm()


def after(**fields):
    """The usual draft after texts were entered, in their order."""
    draft = USUAL
    for field, text in fields.items():
        draft = enter(draft, field.replace("__", "."), text)
    return draft


@pytest.mark.parametrize(
    ("draft", "line"),
    [
        (USUAL, "shardviz explain 'bd,df->bf' --specs 'XY,Y_->X_'"),
        (
            after(mesh="data=4,model=2", specs__2="?", dtype="f32", axis_types="explicit"),
            "shardviz explain 'bd,df->bf' --mesh data=4,model=2 --specs 'data model,model _' --dtype f32 "
            "--axis-types explicit",
        ),
        (
            after(einsum="bd,df->bf; bf,fd->bd", sizes="b=8", targets="none", device_order="row-major"),
            "shardviz explain 'bd,df->bf; bf,fd->bd' --device-order row-major --specs 'XY,Y_; ?,__->X_' "
            "--sizes b=8,d=2048,f=8192 --target none",
        ),
        (
            after(einsum="A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]"),
            "shardviz explain 'A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]'",
        ),
        (
            after(einsum="A[I_X, J] * B[J, K] -> C[I_X, K] × 4 sharing B", dtype="B=int8"),
            "shardviz explain 'A[I_X, J] * B[J, K] -> C[I_X, K] x 4 sharing B' --dtype bf16,B=s8",
        ),
        (
            after(einsum="H = X[b,d] * W[d,e] x 4", backward="yes", frozen="W"),
            "shardviz explain 'H = X[b,d] * W[d,e] x 4' --specs 'X=XY, W=Y_, H=X_' --backward --frozen W",
        ),
        (
            # A product that names its result cannot leave it open; without the name it can.
            after(einsum="A[I_X, J] * B[J, K] -> C[I_X, K]", specs__2="?"),
            "shardviz explain 'A[I_X, J] * B[J, K]'",
        ),
        (
            # Nor can it say how an intermediate is split.
            after(einsum="A[I_X, J] * B[J, K] * C[K, Long]", specs__2="_X", sizes="Long=8"),
            "shardviz explain 'IJ,JK->IK; IK,Ka->Ia' --specs 'X_,__->_X; ?,__' "
            "--sizes I=1024,J=2048,K=8192,a=8",
        ),
        (after(mesh="X=2,"), "shardviz explain 'bd,df->bf' --mesh X=2, --specs 'XY,Y_->X_'"),
        (
            after(machine="my cluster.toml"),
            "shardviz explain 'bd,df->bf' --specs 'XY,Y_->X_' --machine 'my cluster.toml'",
        ),
    ],
)
def test_only_what_differs_from_the_defaults_is_said(draft, line):
    assert to_command_line(draft) == line


@pytest.mark.parametrize(
    ("draft", "line"),
    [
        (after(collective="psum"), "shardviz step psum"),
        (after(collective="psum --machine h100:8"), "shardviz step psum --machine h100:8"),
        (
            after(mesh="i=4", collective="all_gather --data 3,9,5,2 --untiled --gather-dimension=-1"),
            "shardviz step all_gather --mesh i=4 --data 3,9,5,2 --gather-dimension=-1 --untiled",
        ),
    ],
)
def test_a_collective_is_in_the_words_of_step(draft, line):
    assert to_command_line(draft, "step") == line
    assert form_from_line(line, draft) == draft


def test_there_is_no_line_of_step_without_a_collective():
    with pytest.raises(ValueError, match="no collective"):
        to_arguments(USUAL, "step")


def test_options_say_what_explain_would_answer():
    assert form_from_options() == USUAL
    assert form_from_options("bd,df") == replace(USUAL, specs=("__", "__", "?"))
    assert form_from_options(mesh="i=8") == after(mesh="i=8")
    assert form_from_options("A[B_X, D] * W[D, F] -> Out[B, F]").specs == ("X_", "__", "__")
    assert form_from_options("...d,df->...f", specs="_X_,_Y") == replace(
        USUAL,
        einsum="...d,df->...f",
        specs=("_X_", "_Y", "?"),
        sizes="...=1024x2048,d=8192,f=128",
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"einsum": "bd,df", "specs": "XY"},
            "1 spec for the 2 operands of 'bd,df->bf' at the end of 'XY'",
        ),
        ({"mesh": "X"}, "expected '=' at the end of 'X'"),
        ({"targets": "cpu,"}, "a target is missing at the end of 'cpu,'"),
    ],
)
def test_options_that_are_wrong_are_refused(options, message):
    with pytest.raises(ShardvizError) as caught:
        form_from_options(**options)
    assert caught.value.message == message


AXES = st.lists(st.sampled_from(["X", "Y", "data", "d", "XY", "m_2"]), min_size=1, max_size=4, unique=True)
EINSUMS = (
    "bd,df->bf",
    "bd->db",
    "b,b->",
    "bd,df->bf; bf,fd->bd",
    "...d,df->...f",
    "A[I, J] * B[J, K]",
    "A[I, d_model_{}] *_{d_model} B[d_model_{}, K] -> C[K, I]",
    "A[I, J] * B[J, K] * C[K, L]",
)


@st.composite
def drafts(draw):
    """Valid drafts as edits leave them."""
    axes = draw(AXES)
    draft = enter(USUAL, "mesh", ",".join(f"{axis}={draw(st.sampled_from([1, 2, 4]))}" for axis in axes))
    draft = enter(draft, "einsum", draw(st.sampled_from(EINSUMS)))
    if draw(st.booleans()):
        draft = enter(draft, "sizes", "...=64x64" if "..." in draft.einsum else "")
    for number, row in enumerate(resolve(draft).rows):
        free = draw(st.permutations(axes))
        cuts = sorted(
            draw(st.lists(st.integers(0, len(free)), min_size=len(row.dims), max_size=len(row.dims)))
        )
        entries = [free[start:stop] for start, stop in zip([0, *cuts], cuts, strict=False)]
        text = " ".join(f"({' '.join(entry)} )" if entry else "_" for entry in entries) or "()"
        if row.role != "operand" and draw(st.booleans()):
            text = "?"
        draft = enter(draft, f"specs.{number}", text)
    draft = enter(draft, "dtype", draw(st.sampled_from(["bf16", "f32", "s8"])))
    draft = enter(draft, "axis_types", draw(st.sampled_from(["auto", "explicit"])))
    draft = enter(draft, "device_order", draw(st.sampled_from(["", "row-major"])))
    return enter(draft, "targets", draw(st.sampled_from(["shardy,cpu", "none", "v5e:2x4,h100:8"])))


@given(drafts(), st.sampled_from(["explain", "tui"]))
@examples(32)
def test_the_words_ask_what_the_draft_asks(draft, command):
    again = form_from_arguments(to_arguments(draft, command), USUAL)
    asked, answered = resolve(draft).problem, resolve(again).problem
    if "[" in draft.einsum:
        # Arrays may lose their names, or get one.
        again = replace(again, einsum=draft.einsum, sizes=draft.sizes)
    assert again == draft
    for part, same in zip(asked.parts, answered.parts, strict=True):
        for array, other in zip((*part.operands, part.result), (*same.operands, same.result), strict=True):
            assert (array.shape, array.dtype, array.spec) == (other.shape, other.dtype, other.spec)


def test_a_product_that_needs_its_result_keeps_its_specs_apart():
    """Without its result ``A[a,b] * B[b,c] * C[b,c,e]`` has two readings; an open result is not written."""
    text = "A[a, b] * B[b, c] * C[b, c, e] -> Y[a, e]"
    form = replace(USUAL, einsum=text, specs=("XY", "Y_", "?", "?", "___", "?"))
    again = resolve(form_from_arguments(to_arguments(form), USUAL)).problem
    assert again.text == resolve(form).problem.text == "ab,bc->abc; abc,bce->ae"


def test_an_example_can_stand_in_a_pasted_line():
    shipped = form_from_line("shardviz explain --example swiglu --sizes b=64", USUAL)
    assert shipped.einsum == named_example("swiglu").entry["einsum"]
    assert "b=64" in shipped.sizes
    with pytest.raises(QuestionError, match="two programs"):
        form_from_line("shardviz explain bd,df->bf --example swiglu", USUAL)
    with pytest.raises(QuestionError, match="no example 'swigli'"):
        form_from_line("shardviz explain --example swigli", USUAL)


@pytest.mark.parametrize("name", ["explain", "tui", "step"])
def test_every_option_of_a_command_can_stand_in_a_pasted_line(name):
    options = {flag for each in command_named(name).params for flag in each.opts} - {"-h"}
    known = {flag for each in _click_command(name).params for flag in each.opts}
    assert {flag for flag in options if flag.startswith("-")} - known <= {"--from"}
