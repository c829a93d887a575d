import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardviz.errors import NotationError
from shardviz.notation import parse_numbers


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
        ("  ", "there is no number at character 1 of '  '", "3,9,5,2"),
        ("[]", "there is no number at character 1 of '[]'", "3,9,5,2"),
        ("3,x,5", "'x' is not a number at character 3 of '3,x,5'", "3,9,5,2"),
        ("3,9,five", "'five' is not a number at character 5 of '3,9,five'", "3,9,5,2"),
        ("3,", "expected another number at the end of '3,'", "3,9,5,2"),
        ("3,,5", "expected a number but found ',' at character 3 of '3,,5'", "3,9,5,2"),
        ("[[1,2],[3,4]]", "a bracket stands among the numbers at character 2", "--shape"),
        ("[1,2", "expected ']' at the end of '[1,2'", "3,9,5,2"),
        ("[1] 2", "expected the end but found '2' at character 5 of '[1] 2'", "3,9,5,2"),
        ("1,2]", "expected ',' or a space but found ']' at character 4", "3,9,5,2"),
        ("true,1", "'1' stands among truth values at character 6 of 'true,1'", "only numbers"),
        ("1 true", "'true' stands among numbers at character 3 of '1 true'", "only numbers"),
        ("0x10", "'0x10' is not a number", "3,9,5,2"),
        ("1_000", "'1_000' is not a number", "3,9,5,2"),
        ("١,٢", "'١' is not a number", "3,9,5,2"),
        ("1-2", "'1-2' is not a number", "3,9,5,2"),
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
