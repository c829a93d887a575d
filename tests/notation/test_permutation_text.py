import re

import pytest

from shardviz.errors import NotationError
from shardviz.notation import parse_permutation


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
