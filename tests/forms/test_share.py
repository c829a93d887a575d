"""Problems as JSON objects and as strings: what is shared arrives, and nothing else does."""

from __future__ import annotations

import base64
import json
import string
import zlib
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from shardviz.errors import QuestionError
from shardviz.forms.examples import examples
from shardviz.forms.form import SCREENS, CollectiveFields, ProblemForm
from shardviz.forms.share import (
    MAX_JSON,
    MAX_STRING,
    MAX_TEXT,
    SCHEMA,
    Shared,
    UnknownVersion,
    from_document,
    from_string,
    to_document,
    to_string,
)
from shardviz.forms.state_file import state_error
from shardviz.strict_table import StrictTable

SAFE = set(string.ascii_letters + string.digits + "-_")
LESSON = Shared(
    ProblemForm("X=2,Y=4", "A[I, J] * B[J, K] -> C[I, K]", ("_Y", "Y_", "__"), "I=8,J=8,K=8", "f32"),
    "plan",
    "column-then-row",
    7,
)
TYPED = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), max_size=20)
"""What may stand in a field."""
COLLECTIVES = st.builds(
    CollectiveFields, op=TYPED, data=TYPED, parameters=st.sampled_from(((), (("perm", "(0,1)"),)))
)
SHARED = st.builds(
    Shared,
    st.builds(
        ProblemForm,
        mesh=TYPED,
        einsum=TYPED,
        specs=st.lists(TYPED, max_size=3).map(tuple),
        sizes=TYPED,
        collective=st.none() | COLLECTIVES,
    ),
    st.sampled_from(SCREENS),
    st.just("fsdp"),
    st.integers(0, 30),
)


def packed(document):
    """A string as it is made, around a document of any kind."""
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    deflated = zlib.compress(text, 9, wbits=-15)
    checked = zlib.crc32(deflated).to_bytes(4, "big") + deflated
    return "shardviz1-" + base64.urlsafe_b64encode(checked).rstrip(b"=").decode()


@given(SHARED)
def test_what_is_shared_arrives(shared):
    made = to_string(shared)
    assert set(made) <= SAFE
    assert from_string(made) == shared


@given(st.data())
def test_an_altered_string_is_refused_or_says_the_same(data):
    made = to_string(LESSON)
    place = data.draw(st.integers(0, len(made) - 1))
    stop = data.draw(st.integers(place, len(made)))
    put = data.draw(st.text(max_size=4))
    try:
        read = from_string(made[:place] + put + made[stop:])
    except QuestionError:
        return
    assert read == LESSON


def test_strings_are_short():
    assert max(len(to_string(Shared(example.draft))) for example in examples()) < 350
    assert len(to_string(LESSON)) < 150


def test_a_string_of_this_version_is_read_for_ever():
    """Such strings stand in chats: another default draft would give them another meaning."""
    made = "shardviz1-7COBsqtWSilKTCtRsqpWyk0tzlCyUoqwNVHSUSpJLEpPLSkG8oszEotSKpVqawE"
    assert from_string(made) == Shared(
        ProblemForm("X=4", "bd,df->bf", ("XY", "Y_", "X_"), "", "bf16", "auto", "", "shardy")
    )
    assert from_string(to_string(Shared(ProblemForm()))) == Shared(ProblemForm())


@pytest.mark.parametrize(
    "around", ["  {}\n", "`{}`", '"{}"', "“{}”", "<{}>", "({}).", "\ufeff{}", "```\n{}\n```"]
)
def test_what_a_chat_puts_around_a_string_does_not_matter(around):
    made = to_string(LESSON)
    assert from_string(around.format(made)) == LESSON
    broken = " │\n│ ".join(made[start : start + 40] for start in range(0, len(made), 40))
    assert from_string(around.format(broken)) == LESSON


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hello", "'hello' is not a shared string"),
        ("shardviz1-", "was cut or altered"),
        (to_string(LESSON)[:-1], "was cut or altered"),
        (to_string(LESSON).replace("shardviz1", "shardviz2"), "has version 2"),
        ("shardviz1-" + "A" * 10_000_000, "has at most 64,000 characters; this has 10,000,010"),
        (packed(b"[" * 100_000), "holds no problem"),
        (packed({"run": "rm"}), "run: there is no such key"),
        (packed({"draft": {"mash": "X=2"}}), "draft.mash: there is no such key"),
        (packed({"draft": None}), "draft: it is null, not a table"),
        (packed({"draft": {"specs": [""] * 5000}}), "draft.specs: there are 5,000"),
        (packed({"draft": {"collective": {"data": "1" * 15000, "shape": "2" * 15000}}}), "characters"),
        (packed({"draft": {"mesh": "X\x1b[2J"}}), "characters that a line cannot show"),
        (packed({"draft": {"schema": "shardviz-draft/2"}}), "this shardviz reads shardviz-draft/1"),
        (packed({"screen": ["layout"]}), "screen: it is a list, not a text"),
        (packed({"lesson": "../../etc/passwd"}), "lesson: '../../etc/passwd' is not the name of a lesson"),
        (packed({"lesson": "fsdp", "stage": 1000}), "stage: 1,000 is outside the range 0 to 99"),
        (packed({"stage": 3}), "stage: 3 is outside the range 0 to 0"),
    ],
)
def test_no_other_string_is_read(text, said):
    with pytest.raises(QuestionError) as caught:
        from_string(text)
    assert said in caught.value.message
    assert not {"\n", "\x1b"} & set(caught.value.message)
    assert caught.value.hint


def test_a_draft_that_no_string_can_hold_is_refused():
    with pytest.raises(QuestionError, match=r"einsum: it has .* characters"):
        to_string(Shared(ProblemForm(einsum="é" * (MAX_STRING + MAX_JSON))))


def read(document):
    return from_document(StrictTable(document, state_error))


USUAL = ProblemForm()
FULL = ProblemForm(
    mesh="X=2,",
    einsum="[x",
    specs=("{U_Y}", "?"),
    sizes="b=8",
    dtype="",
    axis_types="explicit",
    device_order="row-major",
    targets="none",
    collective=CollectiveFields("ppermute", axis="X", parameters=(("pieces", "4"), ("perm", "(0,1)"))),
)


@pytest.mark.parametrize("draft", [USUAL, FULL])
def test_a_draft_comes_back_as_it_was(draft):
    assert read(json.loads(json.dumps(to_document(draft)))) == draft


def test_the_document():
    assert to_document(
        replace(USUAL, collective=CollectiveFields("psum", parameters=(("untiled", "yes"),)))
    ) == {
        "schema": SCHEMA,
        "mesh": "X=2,Y=4",
        "einsum": "bd,df->bf",
        "specs": ["XY", "Y_", "X_"],
        "sizes": "",
        "dtype": "bf16",
        "axis_types": "auto",
        "device_order": "",
        "targets": "shardy,cpu",
        "machine": "",
        "backward": "no",
        "remat": "none",
        "objective": "given",
        "optimizer": "none",
        "frozen": "",
        "collective": {
            "op": "psum",
            "axis": "",
            "data": "",
            "shape": "",
            "spec": "",
            "dtype": "",
            "algorithm": "",
            "parameters": {"untiled": "yes"},
        },
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"specs": "XY"}, "specs: it is a text, not a list"),
        ({"specs": ["XY", None]}, "specs.2: it is null, not a text"),
        ({"meshes": ""}, "meshes: there is no such key"),
        ({"collective": {"op": "psum"}}, "collective.axis: it is missing"),
        ({"dtype": "a\nb"}, "dtype: it has characters that a line cannot show: 'a\\nb'"),
        ({"sizes": " " * (MAX_TEXT + 1)}, "sizes: it has 20,001 characters"),
        ({"specs": ["_" * MAX_TEXT]}, "the problem has 20,049 characters"),
    ],
)
def test_what_no_draft_has_is_refused(change, message):
    with pytest.raises(QuestionError) as caught:
        read({**to_document(USUAL), **change})
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ([], "collective.parameters: it is a list, not a table"),
        ({"q": "1"}, "collective.parameters.q: there is no such key"),
        ({"source": 1}, "collective.parameters.source: it is a number, not a text"),
    ],
)
def test_parameters_that_no_collective_has_are_refused(parameters, message):
    document = to_document(replace(USUAL, collective=CollectiveFields("psum")))
    document["collective"]["parameters"] = parameters
    with pytest.raises(QuestionError) as caught:
        read(document)
    assert caught.value.message == message


def test_a_missing_field_is_named():
    document = to_document(USUAL)
    del document["targets"]
    with pytest.raises(QuestionError, match=r"^targets: it is missing$"):
        read(document)


@pytest.mark.parametrize("document", [None, [], "", 3, True])
def test_other_json_is_refused(document):
    with pytest.raises(QuestionError, match=r"(?m)^it is .*, not a table$"):
        read(document)


@pytest.mark.parametrize("schema", [None, "shardviz-draft/2", ["shardviz-draft/1"]])
def test_another_version_is_refused(schema):
    with pytest.raises(UnknownVersion, match="and this shardviz reads shardviz-draft/1"):
        read({**to_document(USUAL), "schema": schema})
