"""Programs in the form: their rows, edits that keep specs, and the way to a command line and back."""

import pytest

from shardviz.forms.command_line import form_from_line, to_command_line
from shardviz.forms.enter import enter
from shardviz.forms.form import ProblemForm
from shardviz.forms.resolve import resolve
from shardviz.forms.summary import summary

SWIGLU = "H = X[b,d] * W1[d,f]; G = X * W2[d,f]; Y = (silu(H) * G) * W3[f,d]"
SPLIT = "H = X[b_X,d] * W1[d,f_Y]; G = X * W2[d,f_Y]; Y[b_X,d] = (silu(H) * G) * W3[f_Y,d]"


def entered(text, form=None):
    return enter(form or ProblemForm(), "einsum", text)


def rows(form):
    return {row.name: spec for row, spec in zip(resolve(form).rows, form.specs, strict=True)}


def test_subscripts_move_to_rows_of_arguments_and_named_results():
    form = entered(SPLIT)
    assert form.einsum == SWIGLU.replace("Y =", "Y[b,d] =")
    assert rows(form) == {"X": "X_", "W1": "_Y", "W2": "_Y", "W3": "Y_", "H": "?", "G": "?", "Y": "X_"}


def test_the_form_states_the_problem_that_the_text_states():
    resolved = resolve(entered(SPLIT))
    line = f"shardviz explain '{SPLIT}' --mesh X=2,Y=4"
    assert resolve(form_from_line(line, ProblemForm())).problem == resolved.problem
    assert [part.result.name for part in resolved.problem.parts] == ["H", "G", "Y_1", "Y_2", "Y"]


def test_specs_stay_by_name():
    form = entered(SPLIT)
    longer = entered(f"{form.einsum}; Z = Y + X", form)
    assert rows(longer) == rows(form) | {"Z": "?"}
    shorter = entered("G = X[b,d] * W2[d,f]", longer)
    assert rows(shorter) == {"X": "X_", "W2": "_Y", "G": "?"}


def test_specs_by_name_in_any_row():
    form = enter(entered(SWIGLU), "specs.0", "W1=_Y, X = X_")
    assert rows(form)["W1"] == "_Y"
    assert rows(form)["X"] == "X_"


@pytest.mark.parametrize(
    "text", [SPLIT, SWIGLU, "h=bd,df->bf; y=silu(h),fd->bd x 3", "bd,df->bf; bf,fd->bd x 3"]
)
def test_a_command_line_and_back(text):
    form = enter(entered(text), "sizes", "b=64,f=32")
    again = form_from_line(to_command_line(form), ProblemForm())
    assert again == form
    assert resolve(again).problem == resolve(form).problem


def test_lines_become_statements():
    form = entered("# gated\nH = X[b,d] * W1[d,f]  # columns\nG = X *\n  W2[d,f]\nY = H + G\n x 4")
    assert form.einsum == "H = X[b,d] * W1[d,f]; G = X * W2[d,f]; Y = H + G x 4"
    assert resolve(form).problem.layers == 4


def test_sizes_that_nobody_gave_are_not_written():
    form = enter(entered("K = X[b,t,d] * W[d,h]; Y[b,t,s] = K * V[s,h]"), "sizes", "t=64")
    assert form.sizes == "t=64"
    assert resolve(form).problem.arguments[0].shape == (8, 64, 128)


def test_the_summary_names_what_is_split():
    texts = {part.kind: part.text for part in summary(resolve(entered(SPLIT)))}
    assert texts["specs"] == "X=X_, W1=_Y, W2=_Y, W3=Y_, Y=X_"


@pytest.mark.parametrize(
    ("field", "text", "fault"),
    [
        ("einsum", "H = X[b,d] * W1[d,f]; Y = H + Z", ("einsum", "'Z' has no dimensions yet")),
        ("sizes", "z=3", ("sizes", "no array has the dimension 'z'")),
        ("specs.0", "?", ("specs.0", "the operand X needs a spec")),
        ("specs.1", "X", ("specs.1", "1 dimension, but the array has 2")),
    ],
)
def test_faults_are_of_their_fields(field, text, fault):
    last = resolve(entered(SPLIT))
    found = resolve(enter(last.draft, field, text), last)
    assert found.problem == last.problem
    ((name, message),) = [(each.field, each.message) for each in found.faults]
    assert (name, message.startswith(fault[1])) == (fault[0], True), message
