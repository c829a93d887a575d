"""Any text in any field, any edits in any order: nothing raises, and something valid is always shown."""

from __future__ import annotations

import contextlib
import re
import time

import pytest
from hypothesis import example, given, settings, strategies as st

from shardviz.errors import ShardvizError
from shardviz.forms import axis_edits, parsing, retain_fields
from shardviz.forms.axis_edits import (
    add_axis,
    assign,
    clear,
    cycle,
    double_axis,
    enter_axis,
    halve_axis,
    move_axis,
    remove_axis,
    toggle_open,
    toggle_unreduced,
)
from shardviz.forms.command_line import form_from_line, to_command_line, with_collective_from_line
from shardviz.forms.enter import enter
from shardviz.forms.form import ProblemForm, one_line
from shardviz.forms.parsing import parsed, read_mesh
from shardviz.forms.resolve import resolve
from shardviz.forms.share import from_document, from_string, to_document
from shardviz.forms.state_file import state_error
from shardviz.forms.summary import summary
from shardviz.notation import mesh as notation_mesh, notations
from shardviz.notation.mesh import parse_mesh
from shardviz.notation.notations import parse_layout
from shardviz.notation.numbers import parse_shape
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import Mesh
from shardviz.strict_table import StrictTable
from shardviz.targets import parse_targets
from tests.conftest import examples

FIELDS = ("mesh", "einsum", "sizes", "dtype", "axis_types", "device_order", "targets", "collective")
PIECES = (
    *"XYbdf=,;_?()[]{}<>@/*'\" \n\\0248-…\x1b\ud800",
    *(
        "->",
        "{U_",
        "...",
        "P('X', None)",
        "Mesh('X': 2)",
        "NamedSharding(",
        "bf16[8@X,8]",
        "A[I_X, J] * B[J, K]",
    ),
    *(
        "shardviz ",
        "explain ",
        "step ",
        "--mesh ",
        "--specs ",
        "bd,df->bf",
        "XY,Y_->X_",
        "X=2,Y=4",
        "all_gather",
    ),
    *("cpu", "v5e:2x4", "{devices=[2,4]<=[8]}", "b d -> b2 d4", "99999999999999999999", "²", "data"),
)
TEXTS = st.one_of(st.text(max_size=30), st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
AXES = st.sampled_from(["X", "Y", "Z", "data", "", "["])
SMALL = st.integers(-1, 4)
EDITS = st.one_of(
    st.tuples(st.just(enter), st.sampled_from(FIELDS), TEXTS),
    st.tuples(st.just("row"), SMALL, TEXTS),
    st.tuples(st.sampled_from([double_axis, halve_axis, remove_axis]), AXES),
    st.tuples(st.just(add_axis)),
    st.tuples(st.just(enter_axis), AXES, TEXTS),
    st.tuples(st.just(move_axis), AXES, SMALL),
    st.tuples(st.sampled_from([cycle, clear]), SMALL, SMALL),
    st.tuples(st.just(assign), SMALL, SMALL, AXES),
    st.tuples(st.just(toggle_open), SMALL),
    st.tuples(st.just(toggle_unreduced), SMALL, AXES),
)
PATIENCE = 2.0
"""Seconds of processor time that no edit may take: a search that explodes takes minutes."""


@given(st.lists(EDITS, max_size=6))
@examples(60)
@example([(enter_axis, "X", ",\x1f")])
def test_nothing_that_is_done_to_a_draft_raises_or_hangs(edits):
    draft = ProblemForm()
    scene = resolve(draft)
    for edit, *arguments in edits:
        began = time.process_time()
        if edit == "row":
            number, text = arguments
            draft = enter(draft, f"specs.{number % len(draft.specs)}", text)
        else:
            draft = edit(draft, *arguments)
        scene = resolve(draft, scene)
        assert time.process_time() - began < PATIENCE
        assert scene.draft == draft
        assert len(scene.rows) == len(draft.specs)
        assert all(fault.message and "\n" not in fault.message for fault in scene.faults)
        assert resolve(scene.shown, scene).faults == ()
        assert summary(scene)
        assert to_command_line(draft)
        assert from_document(StrictTable(to_document(draft), state_error)) == draft


MESH = Mesh(("X", "Y"), (2, 4))
READERS = {
    "share string": from_string,
    "share string's rest": lambda text: from_string(f"shardviz1-{text}"),
    "command line": lambda text: form_from_line(text, ProblemForm()),
    "collective": lambda text: with_collective_from_line(text, ProblemForm()),
    "targets": parse_targets,
    "shape": parse_shape,
    "layout": lambda text: parse_layout("8x8", MESH, text, None),
    "device order": lambda text: parse_mesh("X=2,Y=4", text),
    "einsum": lambda text: problem_from_text(text, mesh=MESH),
    "specs": lambda text: problem_from_text("bd,df->bf", mesh=MESH, specs=text),
    "open specs": lambda text: problem_from_text("bd,df->bf", mesh=MESH, specs=text, ranked=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_a_reader_gives_a_value_or_an_error_in_bounded_time(name):
    @given(TEXTS, st.sampled_from([1, 1, 1, 2000]))
    @settings(max_examples=60)
    def check(text, times):
        began = time.process_time()
        with contextlib.suppress(ShardvizError):
            READERS[name](text * times)
        assert time.process_time() - began < PATIENCE

    check()


def out_of_order(*_args, **_kwargs):
    raise StopIteration


@pytest.mark.parametrize(
    ("field", "text", "reader"),
    [
        ("mesh", "X=4", "parse_mesh"),
        ("device_order", "0,1,2,3,4,5,6,7", "with_device_order"),
        ("einsum", "ab->a", "parse_chain"),
        ("einsum", "A[I, J]", "parse_product"),
        ("sizes", "b=8,d=8,f=8", "parse_sizes"),
        ("specs.0", "X_", "read_spec_string"),
        ("specs.0", "P('X', None)", "read_sharding"),
    ],
)
def test_whatever_a_reader_raises_is_a_fault_of_its_field(field, text, reader, monkeypatch):
    last = resolve(ProblemForm())
    read_mesh.cache_clear()
    for module in (notation_mesh, notations, parsing, retain_fields, axis_edits):
        if hasattr(module, reader):
            monkeypatch.setattr(module, reader, out_of_order)
    draft = enter(ProblemForm(), field, text)
    scene = resolve(draft, last)
    assert "StopIteration" in {fault.field: fault for fault in scene.faults}[field].message
    assert to_command_line(draft)
    assert add_axis(draft)


def bare(text):
    """What stays of a program when its lines become one: all but its comments and what ends a statement."""
    return re.sub(r"#[^\n]*|[\s;]", "", text)


@given(st.sampled_from(FIELDS), TEXTS)
@examples(60)
@example("einsum", "#")
@example("einsum", "#\n#")
@example("einsum", "bd,df->b? # f ")
@example("einsum", "0\n0 # 1")
def test_text_with_a_fault_stays_as_it_was_typed(field, text):
    entered = enter(ProblemForm(), field, text)
    scene = resolve(entered, resolve(ProblemForm()))
    faulty = {fault.field for fault in scene.faults}
    if field in faulty - {"collective", "device_order"} and parsed(entered).sizes is not None:
        if field == "einsum" and "\n" in text.strip():
            assert bare(entered.einsum) == one_line(bare(text))
            assert entered.einsum or not text.strip()
        else:
            assert getattr(entered, field) == one_line(text) or field == "sizes"
    if field == "sizes" and parsed(entered).sizes is None:
        assert entered.sizes == one_line(text)
    if field != "collective":
        assert enter(entered, field, getattr(entered, field)) == entered
