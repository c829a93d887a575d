"""ProblemForm → scene: which field has which fault, and what is shown meanwhile."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardviz.errors import ShardvizError
from shardviz.forms import parsing
from shardviz.forms.axis_edits import add_axis, cycle
from shardviz.forms.command_line import form_from_line, to_command_line
from shardviz.forms.enter import enter
from shardviz.forms.form import CollectiveFields, ProblemForm
from shardviz.forms.parsing import read_spec
from shardviz.forms.resolve import MAX_PARTS, resolve, resolve_first
from shardviz.planner.training import Optimizer, Training

USUAL = ProblemForm()
SHOWN = resolve(USUAL)


def faults(**fields):
    """The faults of the usual draft with other fields: field → message."""
    scene = resolve(replace(USUAL, **fields), SHOWN)
    return {fault.field: fault.message for fault in scene.faults}


def test_a_valid_draft_is_shown_in_full():
    assert SHOWN.shown == SHOWN.draft == USUAL
    assert SHOWN.faults == ()
    assert SHOWN.problem.mesh.shape == {"X": 2, "Y": 4}
    assert [step.op for step in SHOWN.plan.steps] == ["einsum", "psum"]
    assert [(row.name, row.dims, row.role) for row in SHOWN.rows] == [
        ("A", ("b", "d"), "operand"),
        ("W", ("d", "f"), "operand"),
        ("Out", ("b", "f"), "result"),
    ]
    assert [target.name for target in SHOWN.targets] == ["shardy", "cpu"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"mesh": "X=2,Y"}, {"mesh": "expected '=' at the end of 'X=2,Y'"}),
        (
            {"device_order": "0,1,2"},
            {"device_order": "the device order names 3 devices, but the mesh X=2,Y=4 has 8"},
        ),
        (
            {"einsum": "bd,df->bq"},
            {"einsum": "dimension 'q' is in no operand, at character 9 of 'bd,df->bq'"},
        ),
        (
            {"specs": ("XZ", "Y_", "Q_")},
            {
                "specs.0": "unknown mesh axis 'Z' at character 2 of 'XZ'",
                "specs.2": "unknown mesh axis 'Q' at character 1 of 'Q_'",
            },
        ),
        (
            {"specs": ("?", "Y_", "X_")},
            {"specs.0": "the operand A needs a spec"},
        ),
        (
            {"specs": ("XY", "Y_", "_X{U_Y}"), "einsum": "bd,df->bf", "mesh": "X=2,Y=4"},
            {},
        ),
        (
            {"specs": ("__", "__", "X_{U_Y}")},
            {},
        ),
        (
            {"sizes": "b=8,q=2"},
            {"sizes": "no array has the dimension 'q' given a size at character 5 of 'b=8,q=2'"},
        ),
        ({"sizes": "b=3,d=8,f=8"}, {}),
        ({"mesh": "X=3,Y=4"}, {}),
        ({"dtype": "bf17"}, {"dtype": "unknown dtype 'bf17'"}),
        ({"axis_types": "manual"}, {"axis_types": "'manual' is not an axis type"}),
        ({"targets": "cpu,gpu"}, {"targets": "gpu is not a chip, at character 5 of 'cpu,gpu'"}),
        ({"machine": "v5q:2x4"}, {"machine": "unknown chip 'v5q' at character 1 of 'v5q:2x4'"}),
        ({"machine": "none.toml"}, {"machine": "file 'none.toml' does not exist"}),
        ({"machine": "h100:2x8"}, {"machine": "h100:2x8 has 16 devices, but the mesh X=2,Y=4 has 8"}),
        ({"specs": ("XY", "Y_")}, {"einsum": "2 specs for 3 arrays"}),
        (
            {"einsum": "A[I_X, J] * B[J, K]"},
            {
                "einsum": "the subscripts of 'A[I_X, J] * B[J, K]' say how its arrays are split, as their "
                "rows do"
            },
        ),
    ],
)
def test_a_fault_says_what_is_wrong_in_its_field(fields, expected):
    assert faults(**fields) == expected
    if expected and not {"targets", "machine"} & {*expected}:
        assert resolve(replace(USUAL, **fields), SHOWN).problem is SHOWN.problem


def test_all_fields_with_faults_are_told_at_once():
    found = faults(
        mesh="X=2,Y=",
        einsum="bd;",
        sizes="b",
        dtype="q",
        axis_types="q",
        objective="q",
        targets="q",
        collective=CollectiveFields("q"),
    )
    assert list(found) == ["mesh", "sizes", "einsum", "dtype", "axis_types", "objective", "targets"]
    found = faults(specs=("Q_", "R_", "S_"), sizes="q=1", dtype="q", collective=CollectiveFields("q"))
    assert list(found) == ["dtype", "specs.0", "specs.1", "specs.2", "sizes", "collective"]


@pytest.mark.parametrize(
    ("collective", "message"),
    [
        (CollectiveFields("all_gathr"), "operation: unknown operation 'all_gathr'"),
        (CollectiveFields("ppermute"), "operation: ppermute needs --perm"),
        (CollectiveFields("psum", axis="Q"), "axis: unknown mesh axis 'Q' at character 1 of 'Q'"),
        (CollectiveFields("psum", data="1,x"), "data: 'x' is not a number at character 3 of '1,x'"),
        (CollectiveFields("psum", shape="8y"), "shape: '8y' is not a size at character 1 of '8y'"),
        (CollectiveFields("psum", dtype="q"), "dtype: unknown dtype 'q'"),
        (
            CollectiveFields("psum", parameters=(("pieces", "0"),)),
            "pieces: 0 is outside the range 1 to 1,024",
        ),
        (
            CollectiveFields("psum_scatter", parameters=(("scatter_dimension", "x"),)),
            "scatter_dimension: 'x' is not a whole number",
        ),
        (CollectiveFields("psum", parameters=(("q", "x"),)), "no operation has the parameter 'q'"),
        (
            CollectiveFields("psum", data="1,2,3"),
            "dimension 0 has 3 elements, which X=2, Y=4 does not divide",
        ),
    ],
)
def test_the_fault_of_a_collective_names_its_part(collective, message):
    assert faults(collective=collective) == {"collective": message}


def test_a_collective_of_its_own_is_read_and_kept_while_nothing_of_it_changes():
    draft = enter(USUAL, "collective", "all_to_all --axis Y --split-axis 0 --concat-axis 1 --shape 32x8")
    scene = resolve(draft)
    assert scene.collective.operation.name == "all_to_all"
    assert scene.collective.operation.concat_axis == 1
    assert resolve(enter(draft, "dtype", "f32"), scene).collective is scene.collective
    assert resolve(enter(draft, "mesh", "X=4,Y=4"), scene).faults[0].field == "collective"
    assert resolve(enter(draft, "mesh", "X=4,Y=2"), scene).collective.layout.mesh.shape == {"X": 4, "Y": 2}
    assert resolve(USUAL, scene).collective is None


def test_what_a_fault_does_not_touch_goes_on():
    draft = replace(USUAL, specs=("Q_", "Y_", "X_"), targets="cpu", dtype="f32")
    scene = resolve(draft, SHOWN)
    assert scene.problem is SHOWN.problem
    assert [target.name for target in scene.targets] == ["cpu"]
    assert scene.shown == replace(USUAL, targets="cpu")
    scene = resolve(replace(draft, specs=("__", "Y_", "X_"), targets="q"), scene)
    assert scene.problem.result.dtype == "f32"
    assert [target.name for target in scene.targets] == ["cpu"]
    assert scene.shown == replace(USUAL, specs=("__", "Y_", "X_"), targets="cpu", dtype="f32")


def test_there_is_a_row_for_every_spec_whatever_is_shown():
    chain = enter(USUAL, "einsum", "bd,df->bf; bf,fd->bd")
    wrong = replace(chain, dtype="q")
    assert [row.name for row in resolve(wrong, SHOWN).rows] == ["A", "W1", "H1", "H1", "W2", "Out"]
    wrong = replace(chain, einsum="bd,df->bq")
    assert len(resolve(wrong, SHOWN).rows) == 6
    assert resolve(wrong, resolve(chain)).rows == resolve(chain).rows


def test_a_first_draft_with_faults_is_shown_over_the_usual_one():
    wrong = replace(USUAL, dtype="q", targets="cpu")
    with pytest.raises(ShardvizError, match="unknown dtype 'q'"):
        resolve(wrong)
    scene = resolve_first(wrong)
    assert [fault.field for fault in scene.faults] == ["dtype"]
    assert (scene.draft, scene.shown) == (wrong, replace(USUAL, targets="cpu"))
    assert resolve_first(USUAL) == SHOWN


def test_a_chain_that_takes_too_long_is_refused():
    draft = enter(USUAL, "einsum", "; ".join(["bd,df->bf", "bf,fd->bd"] * MAX_PARTS))
    fault = resolve(draft, SHOWN).faults[0]
    assert fault.message == "a program of 64 statements is too long to be planned while you type"
    assert fault.hint == "edit up to 32 of them; `shardviz explain` takes more"


def test_a_key_reads_each_row_once(monkeypatch):
    read = []

    def counted(text, *others):
        read.append(text)
        return read_spec(text, *others)

    monkeypatch.setattr(parsing, "read_spec", counted)
    parsing.parsed.cache_clear()
    last = resolve(USUAL)
    assert read == list(USUAL.specs)
    for edited in (cycle(last.draft, 0, 0), add_axis(last.draft)):
        read.clear()
        assert resolve(edited, last).faults == ()
        assert len(read) <= len(edited.specs)


def test_the_machine_is_the_one_named_else_the_first_targets():
    first = resolve(replace(USUAL, targets="cpu,v5e:2x4"))
    assert first.machine.name == "v5e:2x4"
    named = resolve(replace(USUAL, targets="cpu,v5e:2x4", machine="h100:8"), first)
    assert named.machine.name == "h100:8"
    assert [level.kind for level in named.placed.group_levels(("Y",))] == ["switch"]
    assert resolve(USUAL).machine.assumed


def test_a_machine_that_does_not_fit_is_a_fault_and_prices_nothing():
    last = resolve(replace(USUAL, machine="h100:8"))
    other = resolve(replace(USUAL, machine="h100:8", mesh="X=4,Y=4"), last)
    assert [fault.field for fault in other.faults] == ["machine"]
    assert (other.machine.assumed, other.shown.machine) == (True, "")
    # Where the problem is the last valid one, its machine is, too.
    wrong = resolve(replace(USUAL, machine="h100:8", mesh="X=4,Y="), last)
    assert (wrong.machine.name, wrong.shown.machine) == ("h100:8", "h100:8")


def test_a_train_step_has_the_rows_of_its_forward_pass():
    form = replace(ProblemForm(), backward="yes", optimizer="adam,over=X", remat="dots")
    resolved = resolve(form)
    assert [row.name for row in resolved.rows] == ["A", "W", "Out"]
    assert dict(resolved.problem.gradients) == {"Out": "dOut", "A": "dA", "W": "dW"}
    assert resolved.problem.training == Training("dots", Optimizer("adam", over=("X",)))


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        ("backward", "perhaps", "'perhaps' is neither yes nor no"),
        ("remat", "all", "'all' is not a remat policy"),
        ("optimizer", "adam,over=Z", "'Z' is not an axis of the mesh"),
    ],
)
def test_errors_of_a_train_step(field, text, message):
    form = replace(ProblemForm(), backward="yes")
    (fault,) = resolve(replace(form, **{field: text}), resolve(ProblemForm())).faults
    assert fault.field == field
    assert fault.message.startswith(message)


def test_without_a_backward_pass_its_choices_say_nothing():
    form = replace(ProblemForm(), remat="dots", optimizer="adam")
    assert resolve(form).problem.training is None
    assert "--remat" not in to_command_line(form)
    trained = replace(form, backward="yes")
    assert to_command_line(trained).endswith("--backward --remat dots --optimizer adam")
    assert form_from_line(to_command_line(trained), USUAL) == trained


def test_the_objective_of_the_plan():
    mlp = ProblemForm(
        mesh="data=2,tensor=4",
        einsum="btd,df->btf; btf,fd->btd",
        specs=("data _ _", "_ tensor", "?", "?", "tensor _", "data _ _"),
        sizes="b=16,t=4096,d=4096,f=14336",
    )
    given, least = (resolve(replace(mlp, objective=objective)).plan for objective in ("given", "bytes"))
    assert [step.op for step in given.collectives] == ["psum"]
    assert [step.op for step in least.collectives] == ["all_gather", "all_gather"]
    assert (given.wire_bytes, least.wire_bytes) == (402_653_184, 176_160_768)
    assert "--objective bytes" in to_command_line(replace(mlp, objective="bytes"))
