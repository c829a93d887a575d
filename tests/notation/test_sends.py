import re

import pytest

from shardviz.errors import NotationError
from shardviz.notation import parse_permutation, parse_send_sizes


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
def test_reads(text, pairs):
    assert parse_permutation(text, 4) == pairs


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("(0,1),(0,2)", "device 0 sends twice, again at character 8 of '(0,1),(0,2)'", "one device at most"),
        ("(0,1),(2,1)", "device 1 receives twice, again at character 10", "receives from one"),
        ("(0,4)", "there is no device 4 in a group of 4 at character 4 of '(0,4)'", "from 0 to 3"),
        ("(9,1)", "there is no device 9 in a group of 4 at character 2", "from 0 to 3"),
        ("(0,-1)", "expected a destination but found '-' at character 4", "(0,1),(1,2)"),
        ("(0;1)", "expected ',' but found ';' at character 3", "(0,1),(1,2)"),
        ("(0,1", "expected ')' at the end of '(0,1'", "(0,1),(1,2)"),
        ("(0,1),", "expected another pair at the end of '(0,1),'", "(0,1),(1,2)"),
        ("0,1", "expected '->' after '0' but found ',' at character 2", "(0,1),(1,2)"),
        ("ring", "expected a pair but found 'ring' at character 1", "(0,1),(1,2)"),
        ("", "there is no pair in an empty text", "[] sends nothing"),
        ("[(0,1)", "expected ']' at the end", "(0,1),(1,2)"),
        ("(0," + "9" * 50 + ")", "of 50 digits is too large at character 4", "18 digits"),
    ],
)
def test_refuses(text, message, hint):
    with pytest.raises(NotationError, match=re.escape(message)) as caught:
        parse_permutation(text, 4)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("1,2;0,3", ((1, 2), (0, 3))),
        (" 1 2 ; 0, 3 ", ((1, 2), (0, 3))),
        ("0,0;0,0", ((0, 0), (0, 0))),
    ],
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
