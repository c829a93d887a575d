import re

import numpy as np
import pytest
from hypothesis import given, strategies as st

from shardviz.errors import NotationError
from shardviz.notation.numbers import parse_numbers, parse_permutation, parse_send_sizes, parse_sizes


@pytest.mark.parametrize(
    ("text", "texts", "kind"),
    [
        ("3,9,5,2", ("3", "9", "5", "2"), "int"),
        ("3, 9 5\n2", ("3", "9", "5", "2"), "int"),
        ("[3 9 5 2]", ("3", "9", "5", "2"), "int"),
        (" [3,9] ", ("3", "9"), "int"),
        ("-1,+2", ("-1", "+2"), "int"),
        ("1,2.", ("1", "2."), "float"),
        ("[0.5 -1e3 .25 1E-7]", ("0.5", "-1e3", ".25", "1E-7"), "float"),
        ("inf,-inf,nan,NaN", ("inf", "-inf", "nan", "NaN"), "float"),
        ("true,False", ("true", "False"), "bool"),
        ("1+2j,-3j,4", ("1+2j", "-3j", "4"), "complex"),
        ("1e2-infj", ("1e2-infj",), "complex"),
        ("9" * 300, ("9" * 300,), "int"),
    ],
)
def test_reads(text, texts, kind):
    numbers = parse_numbers(text)
    assert (numbers.texts, numbers.kind, len(numbers)) == (texts, kind, len(texts))


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "there is no number in an empty text", "3,9,5,2"),
        ("3,x,5", "'x' is not a number at character 3 of '3,x,5'", "3,9,5,2"),
        ("3,", "expected another number at the end of '3,'", "3,9,5,2"),
        ("3,,5", "expected a number but found ',' at character 3 of '3,,5'", "3,9,5,2"),
        ("[[1,2],[3,4]]", "a bracket stands among the numbers at character 2", "--shape"),
        ("[1,2", "expected ']' at the end of '[1,2'", "3,9,5,2"),
        ("1,2]", "expected ',' or a space but found ']' at character 4", "3,9,5,2"),
        ("true,1", "'1' stands among truth values at character 6 of 'true,1'", "only numbers"),
        ("1 true", "'true' stands among numbers at character 3 of '1 true'", "only numbers"),
        ("0x10", "'0x10' is not a number", "3,9,5,2"),
        ("1_000", "'1_000' is not a number", "3,9,5,2"),
        ("١,٢", "'١' is not a number", "3,9,5,2"),
        ("3;9", "'3;9' is not a number", "3,9,5,2"),
        ("1," + "7" * 5000, "of 5,000 characters is too long", "at most 400"),
    ],
)
def test_refuses(text, message, hint):
    with pytest.raises(NotationError, match=re.escape(message)) as caught:
        parse_numbers(text)
    assert hint in caught.value.hint


def test_no_end_of_numbers_is_refused(monkeypatch):
    monkeypatch.setattr("shardviz.notation.numbers.MAX_NUMBERS", 2**10)
    with pytest.raises(NotationError, match="more than 1,024 numbers"):
        parse_numbers("1 " * (2**10 + 1))


@given(st.lists(st.floats(width=32), min_size=1))
def test_what_numpy_prints_reads_as_the_same_numbers(values):
    array = np.array(values, dtype=np.float32)
    text = np.array2string(array, threshold=10**6, max_line_width=10**6)
    read = parse_numbers(text)
    assert len(read) == len(values)
    assert all(
        float(word) == float(number)
        for word, number in zip(read.texts, text[1:-1].split(), strict=True)
        if number != "nan"
    )


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("b=8,d=2048,f=8192", {"b": 8, "d": 2048, "f": 8192}),
        (" batch = 8  d_model=2048 ", {"batch": 8, "d_model": 2048}),
        ("...=4x8,b=2", {"...0": 4, "...1": 8, "b": 2}),
        ("b=2 ...=4 x 8 c=0", {"b": 2, "...0": 4, "...1": 8, "c": 0}),
        ("...=3", {"...0": 3}),
        ("b=2k,d=4Ki f=1M", {"b": 2000, "d": 4096, "f": 1_000_000}),
        (
            "...=1Kix2K,k=3Mi,M=2G,Gi=1Gi",
            {"...0": 1024, "...1": 2000, "k": 3 * 2**20, "M": 2 * 10**9, "Gi": 2**30},
        ),
        ("", {}),
    ],
)
def test_reads_sizes(text, sizes):
    assert parse_sizes(text) == sizes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("b", "expected '=' at the end of 'b'"),
        ("b=-1", "dimension 'b' has the size -1 at character 3 of 'b=-1'"),
        ("b=8,b=9", "dimension 'b' is given twice, again at character 5 of 'b=8,b=9'"),
        ("...=4,...=4", "dimension '...0' is given twice, again at character 7 of '...=4,...=4'"),
        ("b=8kg", "expected ',' or a space but found 'kg' at character 4 of 'b=8kg'"),
        ("b=8,", "expected another dimension at the end of 'b=8,'"),
        ("8=b", "expected a dimension but found '8' at character 1 of '8=b'"),
        ("...=4xx", "expected the size of '...' but found 'x' at character 7 of '...=4xx'"),
    ],
)
def test_refuses_sizes(text, message):
    with pytest.raises(NotationError) as caught:
        parse_sizes(text)
    assert str(caught.value) == message
    assert caught.value.hint


def test_refuses_huge_sizes():
    with pytest.raises(NotationError, match="of 19 digits is too large at character 3"):
        parse_sizes("b=" + "1" * 19)
    with pytest.raises(NotationError, match="more than 64 dimensions"):
        parse_sizes("...=" + "x".join("2" * 65))


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("(0,1),(1,2)", ((0, 1), (1, 2))),
        ("(0, 1) (1, 2)", ((0, 1), (1, 2))),
        ("[(0, 1), (1, 2), (3, 3)]", ((0, 1), (1, 2), (3, 3))),
        ("0->1, 1→2", ((0, 1), (1, 2))),
        (str([(i, (i + 1) % 4) for i in range(4)]), ((0, 1), (1, 2), (2, 3), (3, 0))),
        ("[]", ()),
        ("(2,0,)", ((2, 0),)),
    ],
)
def test_reads_sends(text, pairs):
    assert parse_permutation(text, 4) == pairs


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("(0,1),(0,2)", "device 0 sends twice, again at character 8 of '(0,1),(0,2)'", "one device at most"),
        ("(0,1),(2,1)", "device 1 receives twice, again at character 10", "receives from one"),
        ("(0,4)", "there is no device 4 in a group of 4 at character 4 of '(0,4)'", "from 0 to 3"),
        ("(0;1)", "expected ',' but found ';' at character 3", "(0,1),(1,2)"),
        ("(0,1),", "expected another pair at the end of '(0,1),'", "(0,1),(1,2)"),
        ("0,1", "expected '->' after '0' but found ',' at character 2", "(0,1),(1,2)"),
        ("ring", "expected a pair but found 'ring' at character 1", "(0,1),(1,2)"),
        ("", "there is no pair in an empty text", "[] sends nothing"),
        ("(0," + "9" * 50 + ")", "of 50 digits is too large at character 4", "18 digits"),
    ],
)
def test_refuses_sends(text, message, hint):
    with pytest.raises(NotationError, match=re.escape(message)) as caught:
        parse_permutation(text, 4)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("text", "rows"),
    [("1,2;0,3", ((1, 2), (0, 3))), (" 1 2 ; 0, 3 ", ((1, 2), (0, 3))), ("0,0;0,0", ((0, 0), (0, 0)))],
)
def test_reads_send_sizes(text, rows):
    assert parse_send_sizes(text, 2) == rows


def test_one_device_alone():
    assert parse_send_sizes("5", 1) == ((5,),)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "there is no line of numbers in an empty text", "1,2;0,3"),
        ("1,2", "only 1 of 2 lines at character 1 of '1,2'", "1,2;0,3"),
        ("1,2;0,3;4,5", "a line too many for a group of 2 at character 9", "as many lines"),
        ("1;0,3", "the line '1' has 1 number for a group of 2, at character 1", "its own among them"),
        ("1,2;0,3,4", "the line '0,3,4' has a number too many for a group of 2, at character 5", "its own"),
        ("1,2;", "the line '' has 0 numbers for a group of 2, at the end of '1,2;'", "its own among them"),
        ("1,-2;0,3", "a negative number of rows at character 3", "0 rows or more"),
        ("1,x;0,3", "expected a number of rows but found 'x' at character 3", "1,2;0,3"),
        ("1,2.5;0,3", "expected ',' or a space but found '.' at character 4", "1,2;0,3"),
    ],
)
def test_refuses_send_sizes(text, message, hint):
    with pytest.raises(NotationError, match=re.escape(message)) as caught:
        parse_send_sizes(text, 2)
    assert hint in caught.value.hint
