"""Problems as strings: what is shared arrives, and nothing else does."""

import base64
import json
import string
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardviz.drafts.draft import CollectiveDraft, Draft
from shardviz.drafts.examples.catalogue import examples
from shardviz.drafts.share import MAX_JSON, MAX_STRING, Shared, from_string, to_string
from shardviz.errors import QuestionError

SAFE = set(string.ascii_letters + string.digits + "-_")
LESSON = Shared(
    Draft("X=2,Y=4", "A[I, J] * B[J, K] -> C[I, K]", ("_Y", "Y_", "__"), "I=8,J=8,K=8", "f32"),
    "plan",
    "column-then-row",
    7,
)
TYPED = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), max_size=20)
"""What may stand in a field."""
COLLECTIVES = st.builds(
    CollectiveDraft, op=TYPED, data=TYPED, parameters=st.sampled_from(((), (("perm", "(0,1)"),)))
)
SHARED = st.builds(
    Shared,
    st.builds(
        Draft,
        mesh=TYPED,
        einsum=TYPED,
        specs=st.lists(TYPED, max_size=3).map(tuple),
        sizes=TYPED,
        collective=st.none() | COLLECTIVES,
    ),
    st.sampled_from(("layout", "plan", "step", "compiler")),
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
    assert max(len(to_string(Shared(example.draft))) for example in examples()) < 200
    assert len(to_string(LESSON)) < 150


def test_a_string_of_this_version_is_read_for_ever():
    """Such strings stand in chats: another default draft would give them another meaning."""
    made = "shardviz1-7COBsqtWSilKTCtRsqpWyk0tzlCyUoqwNVHSUSpJLEpPLSkG8oszEotSKpVqawE"
    assert from_string(made) == Shared(
        Draft("X=4", "bd,df->bf", ("XY", "Y_", "X_"), "", "bf16", "auto", "", "shardy")
    )
    assert from_string(to_string(Shared(Draft()))) == Shared(Draft())


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
        ("", "is not a shared string"),
        ("hello", "'hello' is not a shared string"),
        ("\x1b[31mshardviz1-", "is not a shared string"),
        ("shardviz1-", "was cut or altered"),
        (to_string(LESSON)[:-1], "was cut or altered"),
        (to_string(LESSON)[:40], "was cut or altered"),
        (to_string(LESSON) + "A", "was cut or altered"),
        (to_string(LESSON).replace("shardviz1", "shardviz2"), "has version 2"),
        ("shardviz1-" + "A" * 10_000_000, "has at most 64,000 characters; this has 10,000,010"),
        (packed(b" " * 10_000_000), "holds more than 200,000 bytes"),
        (packed(b"[" * 100_000), "holds no problem"),
        (packed(b'{"stage": ' + b"9" * 10_000 + b"}"), "holds no problem"),
        (packed(b"\xff\xfe"), "holds no problem"),
        (packed([1]), "the string holds no object"),
        (packed({"run": "rm"}), "a shared string has no 'run'"),
        (packed({"draft": {"mash": "X=2"}}), "a shared draft has no 'mash'"),
        (packed({"draft": None}), "the draft holds no object"),
        (packed({"draft": {"specs": [""] * 5000}}), "the problem has 5,000 specs"),
        (packed({"draft": {"collective": {"data": "1" * 15000, "shape": "2" * 15000}}}), "characters"),
        (packed({"draft": {"mesh": 3}}), "mesh is a text, not a number"),
        (packed({"draft": {"mesh": "X\x1b[2J"}}), "characters that a line cannot show"),
        (packed({"draft": {"mesh": "\ud800"}}), "characters that a line cannot show"),
        (packed({"draft": {"schema": "shardviz-draft/2"}}), "this shardviz reads shardviz-draft/1"),
        (packed({"draft": {"collective": {"op": []}}}), "collective.op is a text, not a list"),
        (packed({"draft": {"collective": "psum"}}), "the collective holds no object"),
        (packed({"screen": ["layout"]}), "has list as its screen"),
        (packed({"lesson": "../../etc/passwd"}), "has '../../etc/passwd' as its lesson"),
        (packed({"lesson": "fsdp", "stage": True}), "has bool as its stage"),
        (packed({"lesson": "fsdp", "stage": 1000}), "has int as its stage"),
        (packed({"stage": 3}), "has int as its stage"),
    ],
)
def test_no_other_string_is_read(text, said):
    with pytest.raises(QuestionError, match=r"^[^\n\x1b]*$") as caught:
        from_string(text)
    assert said in caught.value.message
    assert caught.value.hint


def test_a_draft_that_no_string_can_hold_is_refused():
    with pytest.raises(QuestionError, match=r"einsum has .* characters"):
        to_string(Shared(Draft(einsum="é" * (MAX_STRING + MAX_JSON))))
